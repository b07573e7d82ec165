"""What of a record may be sent to others: a whitelist, so that a field that nobody thought of stays here.

The record contract, `submission`. Evidence and the session id are not sent; the run id names the session, so whoever
calls sessions by private names sends nothing.
"""

from __future__ import annotations

from meta_eval.lanes.sessions.record import KPIS, Record

_SUBMITTED = (
    "schema_version",
    "record_kind",
    "run_id",
    "standard_version",
    "rubric_version",
    "handle",
    "anonymized",
    "timestamp",
)
_SUBMITTED_PARTS = {
    "provenance": ("rubric_sha256", "engine_commit"),
    "model": ("id", "source"),
    "harness": ("plugin_version", "platform", "host_class", "hostname_hash"),
    "kpis": KPIS,
}
_SUBMITTED_DIMENSION = ("id", "method", "status", "score", "advisory", "calibration_status")


def submission(record: object) -> Record:
    """What may be sent to others: a whitelist. Evidence, session id and everything unknown stay here."""
    if not isinstance(record, dict):
        return {}
    sent: Record = {name: record[name] for name in _SUBMITTED if name in record}
    for name, fields in _SUBMITTED_PARTS.items():
        part = record.get(name)
        sent[name] = {field: part[field] for field in fields if field in part} if isinstance(part, dict) else {}
    dimensions = record.get("dimensions")
    sent["dimensions"] = [
        {field: each[field] for field in _SUBMITTED_DIMENSION if field in each}
        for each in (dimensions if isinstance(dimensions, list) else [])
        if isinstance(each, dict)
    ]
    return sent
