"""The checks of each stage's asset, made in the step that made it. All are blocking, of severity ERROR.

The orchestration contract: a check is how a person sees the verdict and how a run stops. The guarantee is elsewhere:
a stage takes only what the register names, and verifies it.
"""

from collections.abc import Sequence

import dagster as dg

from meta_eval.defs.partitions import blocking_check
from meta_eval.defs.usefulness import shown
from meta_eval.defs.usefulness.jobs import studies_partitions
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.replay import load_verified
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.usefulness import acceptance
from meta_eval.lanes.usefulness.evidence_rows import DISAGREEMENTS
from meta_eval.lanes.usefulness.line import LineStage
from meta_eval.lanes.usefulness.steps import Made
from meta_eval.lanes.usefulness.studies import REBUILDS

GATES, REPLAY = "every_gate_passed", "artifact_rebuilds_from_its_replay"
CONDITIONS, AGREEMENT = "every_condition_is_met", "sql_agrees_with_python"
_TRUTHS = {
    GATES: "Every rule of this stage held: no artifact of it names a blocker.",
    REPLAY: "Each file on disk, read again, is rebuilt whole from its own replay at its own recorded time.",
    CONDITIONS: "Each set has enough useful answers; where it is due, there is a gain and no set is lower.",
    AGREEMENT: "DuckDB counts the verdict again from rows alone, and each count equals what Python wrote.",
}


def check_names(stage: LineStage) -> tuple[str, ...]:
    """The checks of a stage; only acceptance has figures to judge."""
    return (GATES, REPLAY, *((CONDITIONS, AGREEMENT) if stage.kind == acceptance.KIND else ()))


def check_specs(stage: LineStage, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    return [blocking_check(name, key, _TRUTHS[name], studies_partitions) for name in check_names(stage)]


def check_results(stage: LineStage, made: Sequence[Made], store: EvidenceStore) -> list[dg.AssetCheckResult]:
    """A result for each check of the stage."""
    results = [_gates(made), _replay(made)]
    if stage.kind == acceptance.KIND:
        results += [_conditions(made[0]), _agreement(made[0], store)]
    return results


def _result(name: str, passed: bool, metadata: shown.Metadata) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
        description=_TRUTHS[name],
    )


def _gates(made: Sequence[Made]) -> dg.AssetCheckResult:
    blocked = [artifact for artifact, _ in made if artifact["status"] == "blocked" or artifact["blockers"]]
    # No artifact at all is no pass.
    return _result(GATES, bool(made) and not blocked, {"blockers": shown.blockers_table(made)})


def _replay(made: Sequence[Made]) -> dg.AssetCheckResult:
    for artifact, path in made:
        try:
            again = load_verified(path, REBUILDS, kind=artifact["artifact"])
        except VerificationError as error:
            return _result(REPLAY, False, {"rule": error.rule, "at": error.pointer or "/"})
        except InputError as error:
            return _result(REPLAY, False, {"rule": error.rule})
        if again["digest"] != artifact["digest"]:
            return _result(REPLAY, False, {"rule": "another artifact lies in its place"})
    return _result(REPLAY, bool(made), {"artifacts": len(made)})


def _conditions(made: Made) -> dg.AssetCheckResult:
    result = made[0]["result"]
    met = result.get("met") or {}
    # Without figures nothing is missed, and nothing is met either.
    return _result(CONDITIONS, bool(met) and all(met.values()), {"missed": ", ".join(result["missed"]) or "none"})


def _agreement(made: Made, store: EvidenceStore) -> dg.AssetCheckResult:
    digest = made[0]["digest"]
    ((written,),) = store.rows("SELECT count(*) FROM acceptance WHERE artifact_digest = ?", [digest])
    ((recomputed,),) = store.rows("SELECT count(*) FROM recomputed_acceptance WHERE artifact_digest = ?", [digest])
    ((differing,),) = store.rows(DISAGREEMENTS, [digest])
    # No disagreement over no figures is no agreement.
    passed = written > 0 and recomputed == written and differing == 0
    metadata = {"figures in Python": written, "figures in SQL": recomputed, "disagreeing": differing}
    return _result(AGREEMENT, passed, metadata)
