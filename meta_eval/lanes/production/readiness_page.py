"""A release's readiness as one HTML page: each requirement met, missed or unknown, and what to do about it.

It is made from the artifact alone, holds no script and no outside reference, and the same artifact always gives the
same bytes. Everything in it is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import readiness
from meta_eval.lanes.production.guidance import REQUIREMENTS, next_step

_STYLE = (
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "body{margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem;width:100%}"
    "th,td{border-bottom:1px solid GrayText;padding:.4rem .6rem;text-align:left;vertical-align:top}"
    "caption{text-align:left;font-weight:600}thead th{white-space:nowrap}tbody th{font-weight:400}"
    ".verdict{font-size:1.6rem;font-weight:700}.state{font-weight:700;white-space:nowrap}"
    ".met{color:light-dark(#0a6b2d,#6fdc94)}.missed{color:light-dark(#9b1c00,#ff9d85)}"
    ".unknown{color:light-dark(#6b4a00,#f0c36a)}code{overflow-wrap:anywhere}"
)
_MARKS = {readiness.MET: "✓ met", readiness.MISSED: "✗ missed", readiness.UNKNOWN: "? unknown"}
_WHEN_UNKNOWN = "cannot be judged before what is missed is mended"


def page(artifact: Artifact) -> bytes:
    """The page of a verified readiness. Raises VerificationError for another kind of artifact."""
    if artifact["artifact"] != readiness.KIND:
        raise VerificationError(artifact["artifact"], f"not a {readiness.KIND} artifact", "/artifact")
    result, ready = artifact["result"], artifact["status"] == "ready"
    where = "" if artifact["round"] is None else f"Round {escape(artifact['round'])}. "
    verdict = "Ready" if ready else "Not ready"
    body = [
        "<h1>Is this release ready?</h1>",
        f'<p class="verdict {"met" if ready else "missed"}">{verdict}</p>',
        f"<p>{where}Judged {escape(artifact['madeAt'])}. {_freshness(result['freshUntil'])}</p>",
        _table("Requirements", ("requirement", "state", "what to do"), map(_requirement, result["requirements"])),
        _blockers(artifact["blockers"]),
        f"<p>Next: {escape(next_step(artifact))}.</p>" if ready else "",
        _folder_note(artifact),
        f"<h2>What it does not permit</h2><p>{escape(artifact['authority']['statement'])}</p>",
        _table("Where it comes from", ("", "SHA-256"), _sources(artifact)),
    ]
    title = f"Release readiness: {verdict.lower()}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>{chr(10).join(filter(None, body))}</main></body></html>\n"
    ).encode()


def _freshness(until: str | None) -> str:
    return "" if until is None else f"Its traces are fresh to {escape(until)}, inclusive."


def _requirement(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    text, remedy = REQUIREMENTS[entry["requirement"]]
    state = entry["state"]
    do = {readiness.MET: "", readiness.MISSED: remedy, readiness.UNKNOWN: _WHEN_UNKNOWN}[state]
    return escape(text), f'<span class="state {escape(state)}">{_MARKS[state]}</span>', escape(do)


def _blockers(blockers: Sequence[Mapping[str, Any]]) -> str:
    if not blockers:
        return ""
    rows = [
        (f"<code>{escape(str(b['code']))}</code>", escape(str(b["subject"])), escape(str(b["count"]))) for b in blockers
    ]
    return _table("What blocks it", ("rule", "place", "count"), rows)


def _folder_note(artifact: Artifact) -> str:
    if artifact["replay"]["releaseFiles"] is not None:
        return ""
    return "<p>Nobody looked into the release's folder: the release is bound by its manifest's digest.</p>"


def _sources(artifact: Artifact) -> list[tuple[str, ...]]:
    result = artifact["result"]
    named = {
        "this readiness": artifact["digest"],
        "release": result["releaseDigest"],
        "verdict": result["metricsDigest"],
        "policy": artifact["policyDigest"],
    }
    return [(name, f"<code>{escape(value or 'none')}</code>") for name, value in named.items()]


def _table(caption: str, head: Sequence[str], rows: Any) -> str:
    top = "".join(f'<th scope="col">{escape(name)}</th>' if name else "<td></td>" for name in head)
    lines = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"
