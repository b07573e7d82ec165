"""The same job written without care: row by row in Python, and with pandas and a lazy Pandera schema.

Both hold the whole log in memory and use our own contact screen. Neither is strict: of a repeated key they take the
last, and they do not look for identifying keys. So they do less than the real thing, and the comparison favours them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from meta_eval.evidence.identifiers import contact_rule

KEY = bytes(range(32))
CONTRACT = "research-ai-evaluation-v1"
_FRESH = timedelta(days=35)
_RESULTS = ("answered", "refused", "failed")


def _rows(data: str) -> Iterator[Any]:
    if data.startswith("["):
        yield from json.loads(data)
        return
    for line in data.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            yield None


def _instant(text: Any) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError("no offset")
    return instant


def _normal(question: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", question).casefold().split()).rstrip(".?! ")


def _outcome(row: Any, now: datetime) -> tuple[str, str]:
    try:
        question, asked, consent = row["question"], _instant(row["askedAt"]), row["consent"]
        if row["outcome"] not in _RESULTS or not isinstance(row["queryId"], str) or not isinstance(question, str):
            return "malformed", ""
        if consent is not None and _instant(consent["recordedAt"]) > asked:
            return "malformed", ""
    except (KeyError, TypeError, ValueError):
        return "malformed", ""
    if consent is None or not consent["granted"]:
        return "missing-consent", ""
    if consent["contract"] != CONTRACT:
        return "wrong-consent-contract", ""
    if row["outcome"] == "failed":
        return "unsuccessful", ""
    if asked > now or now - asked > _FRESH:
        return ("future" if asked > now else "stale"), ""
    if contact_rule(question):
        return "contact-bearing", ""
    normal = _normal(question)
    if not normal or len(question) > 1000:
        return ("over-length" if normal else "empty-question"), ""
    return "eligible", normal


def _written(cases: list[tuple[str, str]]) -> str:
    named = sorted((f"case-{hmac.digest(KEY, name.encode(), 'sha256').hex()[:20]}", text) for name, text in cases)
    document = {"cases": [{"caseId": name, "question": text} for name, text in named], "version": 1}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def row_by_row(path: Path, target: Path, as_of: str) -> int:
    """The job in one loop over Python dictionaries."""
    data = path.read_bytes()
    hashlib.sha256(data).hexdigest()
    now = _instant(as_of)
    best: dict[str, tuple[datetime, int, str, str]] = {}
    count = 0
    for count, row in enumerate(_rows(data.decode()), 1):
        outcome, normal = _outcome(row, now)
        if outcome == "eligible":
            found = (_instant(row["askedAt"]), count, row["queryId"], row["question"])
            best[normal] = min(best.get(normal, found), found)
    target.write_text(_written([(name, text) for _, _, name, text in best.values()]), encoding="utf-8")
    return count


def pandas_pandera(path: Path, target: Path, as_of: str) -> int:
    """The job as columns of a data frame, its shape checked by a lazy Pandera schema."""
    import pandas as pd
    import pandera.pandas as pa
    from pandera.errors import SchemaErrors

    data = path.read_bytes()
    hashlib.sha256(data).hexdigest()
    read = [row if isinstance(row, dict) else {} for row in _rows(data.decode())]
    consents: list[Any] = [row["consent"] if isinstance(row.get("consent"), dict) else {} for row in read]
    asked: list[Any] = [row.get("askedAt") for row in read]
    frame = pd.DataFrame({name: [row.get(name) for row in read] for name in ("queryId", "question", "outcome")})
    frame["askedAt"] = pd.to_datetime(pd.Series(asked), errors="coerce", utc=True, format="ISO8601")
    for name in ("contract", "granted", "recordedAt"):
        frame[name] = [consent.get(name) for consent in consents]
    schema = pa.DataFrameSchema(
        {
            "queryId": pa.Column(str, pa.Check.str_length(1, 200)),
            "question": pa.Column(str),
            "outcome": pa.Column(str, pa.Check.isin(_RESULTS)),
            "askedAt": pa.Column("datetime64[us, UTC]", nullable=False),
        }
    )
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as errors:
        frame = frame.drop(index=errors.failure_cases["index"].dropna().unique())
    now = pd.Timestamp(_instant(as_of).astimezone(UTC))
    kept = frame[(frame.granted == True) & (frame.contract == CONTRACT) & (frame.outcome != "failed")]  # noqa: E712
    kept = kept[(kept.askedAt <= now) & (now - kept.askedAt <= _FRESH)]
    kept = kept[kept.question.map(contact_rule).isna() & (kept.question.str.len() <= 1000)]
    kept = kept.assign(normal=kept.question.map(_normal))
    kept = kept[kept.normal != ""].sort_values("askedAt", kind="stable").drop_duplicates("normal")
    target.write_text(_written(list(zip(kept.queryId, kept.question, strict=True))), encoding="utf-8")
    return len(frame)
