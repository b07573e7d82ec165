"""The record of one scored session: `aiat-llm-eval/1.0`, kind `session-eval`.

The record contract. Keys are snake_case, as that standard has them. There is no overall figure: a record that carries
one is refused. Unknown is null, never 0. A judge's opinion is marked as advisory and uncalibrated by us.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.errors import MetaEvalError
from meta_eval.lanes.sessions.fields import is_text, measure, number_of, shown
from meta_eval.lanes.sessions.instants import instant_ms
from meta_eval.lanes.sessions.verdicts import STATUSES, Dimension

Record = dict[str, Any]
STANDARD, SCHEMA_VERSION, KIND = "aiat-llm-eval/1.0", 1, "session-eval"
FORBIDDEN = ("overall", "total", "mean", "global_score")
KPIS = ("duration_seconds", "total_waves", "total_agents", "token_input", "token_output", "carryover")
MODEL_SOURCES = ("self-report", "env", "config")
UNCALIBRATED = "uncalibrated"
_DUE = (
    *("record_kind", "run_id", "session_id", "standard_version", "rubric_version", "provenance", "model", "harness"),
    *("kpis", "dimensions", "handle", "anonymized", "timestamp"),
)
_HEX = re.compile(r"[0-9a-f]{8,64}")


class RecordError(MetaEvalError):
    """A record that the contract refuses, by the field that breaks it. The value is not quoted."""

    exit_code = 1

    def __init__(self, field: str | None) -> None:
        self.field = field
        super().__init__(f"the record contract refuses {'what is no object' if field is None else field}")


@dataclass(frozen=True)
class Provenance:
    """What one call knows beside the ledgers: every record of the call carries it."""

    timestamp: str
    rubric_version: str
    rubric_sha256: str
    engine_commit: str
    model_id: str = "unknown"
    model_source: str = "self-report"
    plugin_version: str = "unknown"
    platform: str = "unknown"
    hostname_hash: str | None = None
    handle: str | None = None


def run_id_of(session_id: object, timestamp: object) -> str:
    """`<session_id>-eval-<timestamp without - : .>`.

    Raises:
        RecordError: no usable session id, or no instant.
    """
    if not isinstance(session_id, str) or not is_text(session_id):
        raise RecordError("session_id")
    if not isinstance(timestamp, str) or instant_ms(timestamp) is None:
        raise RecordError("timestamp")
    return f"{session_id}-eval-{re.sub('[-:.]', '', timestamp)}"


def made_record(
    session_id: str, kpis: Mapping[str, Any], dimensions: Sequence[Dimension], host_class: str | None, made: Provenance
) -> Record:
    """A whole record. `checked` says whether the contract takes it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "record_kind": KIND,
        "run_id": run_id_of(session_id, made.timestamp),
        "session_id": session_id,
        "standard_version": STANDARD,
        "rubric_version": made.rubric_version,
        "provenance": {"rubric_sha256": made.rubric_sha256, "engine_commit": made.engine_commit},
        "model": {"id": made.model_id, "source": made.model_source},
        "harness": {
            "plugin_version": made.plugin_version,
            "platform": made.platform,
            "host_class": host_class,
            "hostname_hash": made.hostname_hash,
        },
        "kpis": dict(kpis),
        "dimensions": list(dimensions),
        "handle": made.handle,
        "anonymized": made.handle is None,
        "timestamp": made.timestamp,
    }


def checked(record: object) -> Record:
    """The record, where the contract takes it.

    Raises:
        RecordError: names the first field that breaks the contract, in the contract's order.
    """
    if not isinstance(record, dict):
        raise RecordError(None)
    if "schema_version" in record and number_of(measure(record["schema_version"])) != SCHEMA_VERSION:
        raise RecordError("schema_version")
    _require(next((name for name in FORBIDDEN if name in record), None))
    _require(next((name for name in _DUE if name not in record), None))
    if record["record_kind"] != KIND:
        raise RecordError("record_kind")
    texts = ("run_id", "session_id", "standard_version", "rubric_version")
    _require(next((name for name in texts if not is_text(record[name])), None))
    _check_parts(record)
    if not isinstance(record["dimensions"], list):
        raise RecordError("dimensions")
    for index, dimension in enumerate(record["dimensions"]):
        _check_dimension(dimension, f"dimensions[{index}]")
    if record["handle"] is not None and not is_text(record["handle"]):
        raise RecordError("handle")
    if not isinstance(record["anonymized"], bool):
        raise RecordError("anonymized")
    if instant_ms(record["timestamp"]) is None:
        raise RecordError("timestamp")
    return record


def _require(broken: str | None) -> None:
    if broken is not None:
        raise RecordError(broken)


def _check_parts(record: Mapping[str, Any]) -> None:
    _texts(_part(record, "provenance"), "provenance", ("rubric_sha256", "engine_commit"))
    model = _part(record, "model")
    _texts(model, "model", ("id",))
    if model.get("source") not in MODEL_SOURCES:
        raise RecordError("model.source")
    harness = _part(record, "harness")
    _texts(harness, "harness", ("plugin_version", "platform"))
    for name in ("host_class", "hostname_hash"):
        if name not in harness:
            raise RecordError(f"harness.{name}")
        value = harness[name]
        fits = is_text(value) if name == "host_class" else isinstance(value, str) and _HEX.fullmatch(value)
        if value is not None and not fits:
            raise RecordError(f"harness.{name}")
    kpis = _part(record, "kpis")
    for name in KPIS:
        if name not in kpis:
            raise RecordError(f"kpis.{name}")
        value = measure(kpis[name])
        if value is not None and (isinstance(value, str) or value < 0):
            raise RecordError(f"kpis.{name}")


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if not isinstance(record[name], dict):
        raise RecordError(name)
    part: Mapping[str, Any] = record[name]
    return part


def _texts(part: Mapping[str, Any], name: str, fields: Sequence[str]) -> None:
    _require(next((f"{name}.{field}" for field in fields if not is_text(part.get(field))), None))


def _check_dimension(dimension: object, place: str) -> None:
    if not isinstance(dimension, dict):
        raise RecordError(place)
    method = dimension.get("method")
    broken = None
    if not is_text(dimension.get("id")):
        broken = "id"
    elif method not in ("deterministic", "judge"):
        broken = "method"
    elif dimension.get("status") not in STATUSES:
        broken = "status"
    elif not isinstance(dimension.get("evidence"), str):
        broken = "evidence"
    elif isinstance(measure(dimension.get("score")), str):
        broken = "score"
    elif method == "judge":
        if dimension.get("advisory") is not True:
            broken = "advisory"
        elif dimension.get("calibration_status") != UNCALIBRATED:
            broken = "calibration_status"
    else:
        broken = next((name for name in ("advisory", "calibration_status") if name in dimension), None)
    if broken is not None:
        raise RecordError(f"{place}.{broken}")


def normalised(record: Any) -> Any:
    """A record as an older writer may have left it, with what the contract implies filled in. Nothing is mended."""
    if not isinstance(record, dict):
        return record
    filled = dict(record)
    filled.setdefault("schema_version", SCHEMA_VERSION)
    for name, value in (("record_kind", KIND), ("standard_version", STANDARD)):
        if filled.get(name) is None:
            filled[name] = value
    if not isinstance(filled.get("anonymized"), bool):
        filled["anonymized"] = filled.get("handle") is None
    if "kpis" in filled:
        kpis = filled["kpis"] if isinstance(filled["kpis"], dict) else {}
        filled["kpis"] = {**dict.fromkeys(KPIS), **kpis}
    if isinstance(filled.get("dimensions"), list):
        filled["dimensions"] = [_normalised_dimension(each) for each in filled["dimensions"]]
    return filled


def _normalised_dimension(dimension: Any) -> Any:
    if not isinstance(dimension, dict) or dimension.get("method") != "judge":
        return dimension
    return {"advisory": True, "calibration_status": UNCALIBRATED} | dimension


def title(record: Mapping[str, Any]) -> str:
    """A record's run id as a person is shown it."""
    return shown(str(record.get("run_id")), most=160)
