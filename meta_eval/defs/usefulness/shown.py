"""What a person sees on an asset's page: verdict, paired table, blockers, digests and the next step.

The orchestration contract. Counts, digests, codes of rules and ids only: no question, answer, reason or machine path.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from meta_eval.defs.resources import MetaEvalHome
from meta_eval.lanes.usefulness import guidance
from meta_eval.lanes.usefulness.steps import Made

Metadata = Mapping[str, Any]
_CONTRACT = "Rules: `docs/usefulness-rules.md`. Who does what: `docs/study-handbook.md`."
INPUTS = {
    "study": f"inbox/study.json: who holds which role, which arms, on which corpus. {_CONTRACT}",
    "packets": f"packets/SET.json, mode 0600: each author's sealed packet. {_CONTRACT}",
    "freeze": f"inbox/freeze.json: candidate, configuration, model and budget by digest. {_CONTRACT}",
    "budget": f"inbox/budget.json: the terms of the budget ledger. {_CONTRACT}",
    "runs": f"inbox/runs.json: every attempt of both arms, from the designated runner. {_CONTRACT}",
    "scores": f"scorers/CODE/scores.json: each scorer's filled sheet. {_CONTRACT}",
    "adjudication": f"inbox/adjudication.json: decisions on what the scorers disagree about. {_CONTRACT}",
}
STAGES = {
    "declared_study": f"Roles, arms, corpus and configuration, said before any packet. {_CONTRACT}",
    "sealed_packets": f"What may be known of each packet before the freeze, and that it is fresh. {_CONTRACT}",
    "study_freeze": f"All that a run depends on, fixed before any packet is opened. {_CONTRACT}",
    "budget_preflight": f"Everything planned fits the budget at its worst. {_CONTRACT}",
    "opened_packets": f"Each packet, opened once by the designated runner at the terminal. {_CONTRACT}",
    "recorded_runs": f"Every attempt of both arms at every question, whatever came of it. {_CONTRACT}",
    "blinded_sheets": f"Answers under random labels, and the commitment to the key. {_CONTRACT}",
    "blind_scores": f"Both scorers' judgments, whole, consistent and written once. {_CONTRACT}",
    "adjudication": f"Every disagreement, decided with a rationale. {_CONTRACT}",
    "unblinding": f"The key that opens the commitment, after adjudication closed. {_CONTRACT}",
    "acceptance": f"The verdict, recomputed from every row. {_CONTRACT}",
    "public_export": f"What anybody may read, and recount. {_CONTRACT}",
}


def metadata_of(made: Sequence[Made], home: MetaEvalHome) -> Metadata:
    """The metadata of one materialization."""
    last = made[-1][0]
    shown: dict[str, Any] = {
        "status": next((one["status"] for one, _ in made if one["status"] == "blocked"), last["status"]),
        "next step": guidance.next_step(last),
        "blockers": blockers_table(made),
        "environment": last["environment"] or "not declared",
        "evidence class": last["evidenceClass"],
        "digests": [artifact["digest"] for artifact, _ in made],
        "policy digest": last["policyDigest"],
        "files": [home.relative(path) for _, path in made],
    }
    for artifact, _ in made:
        shown |= {name: value for name, value in artifact["result"].items() if type(value) is int}
    if "combined" in last["result"]:
        shown["paired table"] = _paired(last["result"])
        shown["conditions"] = dg.MetadataValue.table(
            [
                dg.TableRecord({"condition": name, "met": "yes" if met else "no"})
                for name, met in sorted(last["result"]["met"].items())
            ],
            dg.TableSchema([dg.TableColumn("condition"), dg.TableColumn("met")]),
        )
    return shown


def blockers_table(made: Sequence[Made]) -> dg.TableMetadataValue:
    columns = [dg.TableColumn("code"), dg.TableColumn("subject"), dg.TableColumn("count", "int")]
    rows = [dg.TableRecord(row) for artifact, _ in made for row in artifact["blockers"]]
    return dg.MetadataValue.table(rows, dg.TableSchema(columns))


def _paired(result: Metadata) -> dg.TableMetadataValue:
    names = ("both", "recoveries", "losses", "neither", "gain", "questions")
    tables = [*sorted(result["sets"].items()), ("both sets", result["combined"])]
    rows = [
        dg.TableRecord({"set": set_id, **table["useful"], **{name: table[name] for name in names}})
        for set_id, table in tables
    ]
    columns = [dg.TableColumn("set"), *(dg.TableColumn(n, "int") for n in ("baseline", "candidate", *names))]
    return dg.MetadataValue.table(rows, dg.TableSchema(columns))
