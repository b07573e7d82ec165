"""What each production asset and input is, in words that need no reading of code, and the tables it is gated by.

The column schemas are read from the Pandera contracts, so that the catalogue cannot say something else than the gate.
"""

from collections.abc import Mapping, Sequence

import dagster as dg

from meta_eval.lanes.production import contracts
from meta_eval.lanes.production.rounds import INBOX

CONTRACT = "docs/production-rules.md"

STAGES_IN_WORDS: Mapping[str, str] = {
    "log_attestation": (
        "What a query log amounts to: one outcome a row, counted, and a blank attestation for a person to complete. "
        "It keeps no question, id or instant."
    ),
    "question_export": (
        "The consented questions under pseudonyms, written into the round's private folder, and a public receipt of "
        "counts and digests. Blocked unless a person attested to this very file and enough questions are left."
    ),
    "prepared_manifest": "One blank label a case, bound to the export by digest: the worksheet that people complete.",
    "frozen_labels": (
        "The completed labels, approved by somebody independent of the run, checked case by case against the "
        "prepared manifest and frozen under one dataset digest."
    ),
    "run_kit": "Blank worksheets for the run and its reviewers, in two balanced lanes shuffled by the dataset digest.",
    "assembled_bundle": (
        "Frozen labels, observed traces, reviews and the release joined into one bundle. Every rule is checked and "
        "reported, not only the first that fails."
    ),
    "production_metrics": (
        "Precision, recall, citation accuracy, refusal accuracy, latency and cost, recomputed from frozen labels and a "
        "ready bundle, each against its threshold. Traces age, so the verdict is judged again every day."
    ),
    "readiness": (
        "Whether this very release is ready on this day: a passed, replayed, fresh verdict of production and nothing "
        "else. A rehearsal is refused by name, and so fails when somebody asks. It permits nothing."
    ),
}

INPUTS_IN_WORDS: Mapping[str, str] = {
    "query_log": "The feature's query log, as it was exported.",
    "attestation": "The completed attestation of that log, from the blank that log_attestation leaves in worksheets.",
    "labels": "The completed and approved labels, from the blank that prepared_manifest leaves in worksheets.",
    "run_operator": "The code of the person who runs the feature, and how many cases both review lanes share.",
    "observations": "What production answered, case by case, from the blank that run_kit leaves in worksheets.",
    "reviews": "What the reviewers decided about each citation, from the blanks that run_kit leaves in worksheets.",
    "evidence_reference": "Where the run's own evidence is kept, and its receipt.",
    "release_manifest": "The files of the release that was observed, each with its SHA-256.",
}

_MODELS: Mapping[str, Sequence[type[contracts.Contract]]] = {
    "prepared_manifest": (contracts.ExportedCases,),
    "frozen_labels": (contracts.Labels, contracts.LabelledCases),
    "assembled_bundle": (
        contracts.Traces,
        contracts.CaseCoverage,
        contracts.EmittedClaims,
        contracts.CitationDecisions,
        contracts.Reviews,
    ),
}
KINDS: Mapping[str, set[str]] = {
    "log_attestation": {"python", "duckdb", "json"},
    "question_export": {"python", "json"},
    "run_kit": {"python", "json"},
    "readiness": {"python", "json", "duckdb"},
}


def stage_description(stage: str) -> str:
    return f"{STAGES_IN_WORDS[stage]}\n\nContract: `{CONTRACT}`. The artifact is JSON that `meta-eval verify` rebuilds."


def input_description(name: str) -> str:
    """What the input is, and which file goes where."""
    files = " or ".join(f"`rounds/ROUND/inbox/{file}`" for file in INBOX[name])
    where = f"Put it into {files}. Made by people; the line only reads it."
    return f"{INPUTS_IN_WORDS[name]}\n\n{where} Contract: `{CONTRACT}`."


def schema_metadata(stage: str) -> Mapping[str, dg.TableSchema]:
    """The contracts of a stage's tables; the first is the one that the catalogue shows as the asset's columns."""
    models = _MODELS.get(stage, ())
    return {
        "dagster/column_schema" if place == 0 else f"contract {model.__name__}": table_schema(model)
        for place, model in enumerate(models)
    }


def table_schema(model: type[contracts.Contract]) -> dg.TableSchema:
    """A Pandera contract as Dagster shows it: columns, types and the names of the rules."""
    schema = model.to_schema()
    columns = [
        dg.TableColumn(
            name,
            type=str(column.dtype),
            constraints=dg.TableColumnConstraints(
                nullable=column.nullable,
                unique=bool(column.unique),
                other=[str(check.name) for check in column.checks],
            ),
        )
        for name, column in schema.columns.items()
    ]
    return dg.TableSchema(columns, constraints=dg.TableConstraints([str(check.name) for check in schema.checks]))
