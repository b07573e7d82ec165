"""The forms that scorers and the adjudicator fill in: one HTML file each, which works offline and sends nothing.

Source: the usefulness contract, blinding, and the issue's wish for a form a person can fill by keyboard. The page
saves the very JSON document that `score` and `adjudicate` read. Its own content security policy forbids every
connection; texts are put in as text, never as markup. The same sheet always gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources

from meta_eval.evidence.canonical import digest
from meta_eval.lanes.usefulness.stage import Row


def scoring_form(sheet: Row) -> bytes:
    """The form of one scorer's sheet."""
    return _page({"mode": "score", "sheet": sheet, "sheetDigest": digest(sheet), "file": "scores.json"}, "Scores")


def adjudication_form(sheet: Row) -> bytes:
    """The form of the adjudicator's sheet."""
    data = {"mode": "adjudicate", "sheet": sheet, "sheetDigest": digest(sheet), "file": "adjudication.json"}
    return _page(data, "Adjudication")


def _page(data: Row, title: str) -> bytes:
    style, script = (_part(name) for name in ("form.css", "form.js"))
    policy = (
        f"default-src 'none'; style-src '{_source(style)}'; script-src '{_source(script)}'; "
        "form-action 'none'; base-uri 'none'"
    )
    # "<" is written as an escape, so that no text of a sheet can end the block that holds it.
    content = json.dumps(data, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{style}</style></head>\n"
        "<body><noscript>This form needs JavaScript; sheet.json can be filled by hand.</noscript>"
        '<main id="form"></main>'
        f'<script type="application/json" id="data">{content}</script>\n<script>{script}</script></body></html>\n'
    ).encode()


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
