"""The forms: the same bytes for the same sheet, and nothing that could leave the page.

`meta_eval_tests/live/test_forms.py` fills them in a real browser.
"""

from __future__ import annotations

import json
from typing import Any

from meta_eval.lanes.usefulness import form
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval_tests.lanes.usefulness.world import small


def sheet() -> dict[str, Any]:
    return small().sheet(people.SCORERS[0])


def test_a_form_is_self_contained_and_byte_stable() -> None:
    page = form.scoring_form(sheet())
    assert page == form.scoring_form(json.loads(json.dumps(sheet())))
    text = page.decode()
    assert "default-src 'none'" in text
    shell = text[: text.index('<script type="application/json"')] + text[text.index("\n<script>") :]
    for word in ("http:", "https:", "src=", "fetch(", "XMLHttpRequest", "localStorage", "innerHTML", "eval("):
        assert word not in shell


def test_a_text_cannot_end_the_block_that_holds_it() -> None:
    hostile = sheet()
    hostile["entries"][0]["question"] = "</script><script>alert(1)</script>"
    text = form.scoring_form(hostile).decode()
    assert text.count("<script") == 2
    assert "alert(1)</script>" not in text
