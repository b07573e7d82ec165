"""The checks of each stage's asset, made in the step that made the artifact. All are blocking, of severity ERROR.

The orchestration contract: a check is how a person sees the verdict and how a run stops. The guarantee is elsewhere:
a stage verifies what it reads, so a later run of a downstream stage alone is refused as well.
"""

import dagster as dg

from meta_eval.defs.partitions import blocking_check, rounds_partitions
from meta_eval.defs.production import shown
from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.replay import load_verified
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.production import metrics
from meta_eval.lanes.production.rounds import Kept
from meta_eval.lanes.production.stages import Stage
from meta_eval.lanes.production.steps import REBUILDS

GATES, REPLAY = "every_gate_passed", "artifact_rebuilds_from_its_replay"
THRESHOLDS, AGREEMENT = "every_threshold_is_met", "sql_agrees_with_python"
_TRUTHS = {
    GATES: "Every Pandera contract and every rule of this stage held: the artifact names no blocker.",
    REPLAY: "The file on disk, read again, is rebuilt whole from its own replay at its own recorded time.",
    THRESHOLDS: "Each metric with a threshold meets it, as an exact fraction. An empty denominator misses it.",
    AGREEMENT: "DuckDB computes every figure again from rows alone, and each one equals what Python wrote.",
}


def check_names(stage: Stage) -> tuple[str, ...]:
    """The checks of a stage; only the metrics have figures to judge."""
    return (GATES, REPLAY, *((THRESHOLDS, AGREEMENT) if stage.kind == metrics.KIND else ()))


def check_specs(stage: Stage, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    return [blocking_check(name, key, _TRUTHS[name], rounds_partitions) for name in check_names(stage)]


def check_results(stage: Stage, kept: Kept, store: EvidenceStore) -> list[dg.AssetCheckResult]:
    """A result for each check of the stage, from the artifact, its file and the store."""
    results = [_gates(kept.artifact), _replay(kept.artifact, kept.path)]
    if stage.kind == metrics.KIND:
        results += [_thresholds(kept.artifact), _agreement(kept.artifact, store)]
    return results


def _result(name: str, passed: bool, metadata: shown.Metadata, why: str = "") -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=metadata,
        description=why or _TRUTHS[name],
    )


def _gates(artifact: Artifact) -> dg.AssetCheckResult:
    passed = artifact["status"] != "blocked" and not artifact["blockers"]
    metadata = {"status": artifact["status"], "blockers": shown.blockers_table(artifact)}
    return _result(GATES, passed, metadata, shown.blockers_in_words(artifact))


def _replay(artifact: Artifact, path: Readable) -> dg.AssetCheckResult:
    try:
        again = load_verified(path, REBUILDS, kind=artifact["artifact"])
    except VerificationError as error:
        return _result(REPLAY, False, {"rule": error.rule, "at": error.pointer or "/"})
    except InputError as error:
        return _result(REPLAY, False, {"rule": error.rule})
    return _result(REPLAY, again["digest"] == artifact["digest"], {"digest": again["digest"]})


def _thresholds(artifact: Artifact) -> dg.AssetCheckResult:
    figures, missed = artifact["result"]["metrics"], artifact["result"]["missed"]
    # Without figures nothing is missed, and nothing is met either.
    return _result(
        THRESHOLDS, bool(figures) and not missed, {"missed": ", ".join(missed) or "none", "judged": bool(figures)}
    )


def _agreement(artifact: Artifact, store: EvidenceStore) -> dg.AssetCheckResult:
    digest, written = artifact["digest"], len(artifact["result"]["metrics"] or {})
    disagreeing = [
        name
        for (name,) in store.rows(
            "SELECT metric FROM metric_disagreements WHERE artifact_digest = ? ORDER BY 1", [digest]
        )
    ]
    ((recomputed,),) = store.rows("SELECT count(*) FROM recomputed_metrics WHERE artifact_digest = ?", [digest])
    # No disagreement over no figures is no agreement.
    passed = written > 0 and recomputed == written and not disagreeing
    return _result(
        AGREEMENT,
        passed,
        {"figures in Python": written, "figures in SQL": recomputed, "disagreeing": ", ".join(disagreeing) or "none"},
    )
