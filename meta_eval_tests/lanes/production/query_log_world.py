"""A good row of a query log, and short ways to break it and to scan what was broken."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from meta_eval.evidence.chronology import instant_ms
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.pseudonyms import case_ids
from meta_eval.lanes.production.query_log import OUTCOMES, LogScan, ScannedLog, classify, scan_log
from meta_eval.lanes.production.query_log.outcomes import ELIGIBLE
from meta_eval.lanes.production.query_log.questions import Questions, question_judged

AS_OF = "2026-11-30T00:00:00.000Z"
CONTRACT = "research-ai-evaluation-v1"
MISSING = object()
KEY = bytes(range(32))
NAMED = partial(case_ids, key=KEY)


def as_of_ms() -> int:
    value = instant_ms(AS_OF)
    assert value is not None
    return value


def good_row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A row that is eligible as it stands; a change to MISSING takes the key out."""
    row = {
        "queryId": f"query-{number}",
        "question": f"Who painted invented picture {number}?",
        "askedAt": "2026-11-20T10:00:00.000Z",
        "outcome": "answered",
        "consent": good_consent(),
    } | changes
    return {key: value for key, value in row.items() if value is not MISSING}


def good_consent(**changes: Any) -> dict[str, Any]:
    consent = {"contract": CONTRACT, "granted": True, "recordedAt": "2026-11-20T10:00:00.000Z"} | changes
    return {key: value for key, value in consent.items() if value is not MISSING}


def compact(row: object) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def outcome_of(row: str | bytes | dict[str, Any] | None) -> str:
    """The outcome of one row by itself, as `classify` gives it."""
    text = compact(row) if isinstance(row, dict) else row
    data = text.encode() if isinstance(text, str) else text
    batch = pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=["row"])
    classified = classify(batch, as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    return OUTCOMES[classified.column("outcome")[0].as_py()]


def judged_singly(questions: pa.Array, longest: int, *, normal: bool) -> Questions:
    """`judged_questions`, a question at a time and with no pattern but the rules' own."""
    found = [question_judged(text, longest) for text in questions.to_pylist()]
    forms = pa.array([form for outcome, form in found if outcome == ELIGIBLE], pa.string())
    return Questions(np.array([outcome for outcome, _ in found], dtype=np.int8), forms if normal else None)


def scanned(path: Path, data: bytes | str, **options: Any) -> LogScan:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    options = {"work_dir": path.parent, "pseudonyms": NAMED} | options
    with scan_log(path, as_of_ms=as_of_ms(), policy=CURRENT_POLICY, **options) as result:
        return result.log


def outcomes(log: LogScan) -> list[str]:
    return [OUTCOMES[index] for index in log.outcomes]


def lines(*rows: object) -> str:
    return "".join((row if isinstance(row, str) else compact(row)) + "\n" for row in rows)


def cases_of(scan: ScannedLog) -> list[dict[str, str]]:
    """What a scan that was given pseudonyms hands on, in its order."""
    found: list[dict[str, str]] = json.loads(b"[" + b"".join(scan.cases()) + b"]")
    return found
