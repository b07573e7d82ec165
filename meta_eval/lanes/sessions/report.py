"""A record as one HTML file: no script, no font, no picture from elsewhere, and the same bytes for the same record.

The record contract, `report`. A report is a view: it adds nothing to the record and drops nothing that a reader needs
to recompute a verdict by hand. Everything in it is escaped, for a record's texts come from a ledger.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from meta_eval.evidence.canonical import digest
from meta_eval.lanes.sessions.record import Record, title

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;"
    "background:#fff}table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;padding:.4rem .6rem;"
    "border-bottom:1px solid #ccc;vertical-align:top;overflow-wrap:break-word}"
    "td:last-child,h1,p{overflow-wrap:anywhere}.s{font-weight:600;white-space:nowrap}"
    ".pass{color:#14622a}.fail{color:#a11212}.not-applicable{color:#555}.cannot-determine{color:#7a4d00}"
    ".note{color:#555;font-size:.9rem}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#181818}th,td{border-color:#444}"
    ".pass{color:#6fcf8b}.fail{color:#ff8a80}.not-applicable,.note{color:#aaa}.cannot-determine{color:#e8b45a}}"
)


def report(record: Record) -> str:
    """The report of a record that the contract takes."""
    rows = [each for each in record["dimensions"] if each["method"] == "deterministic"]
    opinions = [each for each in record["dimensions"] if each["method"] == "judge"]
    parts = [
        f"<h1>{_text(title(record))}</h1>",
        (
            f"<p>Session {_text(record['session_id'])}, scored at {_text(record['timestamp'])} under "
            f"{_text(record['rubric_version'])}. A self-evaluation by the session's own records, not an audit. "
            "There is no overall figure, on purpose.</p>"
        ),
        "<h2>Verdicts</h2>",
        _table(("Dimension", "Verdict", "Score", "Evidence"), [_verdict_row(each) for each in rows]),
        "<h2>Figures, reported and not graded</h2>",
        _table(("KPI", "Value"), [(name, _value(value)) for name, value in sorted(record["kpis"].items())]),
    ]
    if opinions:
        parts += [
            "<h2>Opinions of a judge: advisory, uncalibrated</h2>",
            '<p class="note">No verdict rests on these. Without them the evaluation is complete.</p>',
            _table(("Question", "Opinion", "Score", "Reason"), [_verdict_row(each) for each in opinions]),
        ]
    parts += ["<h2>Where it comes from</h2>", _table(("", ""), _provenance(record))]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{_text(title(record))}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)


def _value(value: Any) -> str:
    return "unknown" if value is None else _text(value)


def _verdict_row(dimension: Mapping[str, Any]) -> tuple[str, ...]:
    status = _text(dimension["status"])
    score = _value(dimension["score"]) if "score" in dimension else ""
    return (
        _text(dimension["id"]),
        f'<span class="s {status}">{status}</span>',
        score,
        _text(dimension["evidence"]),
    )


def _provenance(record: Record) -> list[tuple[str, ...]]:
    flat = {
        "standard": record["standard_version"],
        "rubric SHA-256": record["provenance"]["rubric_sha256"],
        "engine": record["provenance"]["engine_commit"],
        "model": f"{record['model']['id']} ({record['model']['source']})",
        "platform": f"{record['harness']['platform']}, plugin {record['harness']['plugin_version']}",
        "host class": record["harness"]["host_class"],
        "host pseudonym": record["harness"]["hostname_hash"],
        "handle": record["handle"],
        "record digest": digest(record),
    }
    return [(name, _value(value)) for name, value in flat.items()]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    top = "".join(f"<th>{cell}</th>" for cell in head)
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    header = f"<tr>{top}</tr>\n" if any(head) else ""
    return "<table>\n" + header + "\n".join(lines) + "\n</table>"
