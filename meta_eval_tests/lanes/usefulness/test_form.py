"""The forms: the same bytes for the same sheet, nothing that could leave the page, and a person can fill them in.

The tests in a real browser fill every question of a small study by what the sheet says and by keyboard, save, and
hand the saved file to the very stages that a real one goes to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.canonical import digest
from meta_eval.lanes.usefulness import form
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval_tests.lanes.usefulness.browser import CHROMIUM, Browser
from meta_eval_tests.lanes.usefulness.world import found, small

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


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


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    made = Browser(tmp_path / "browser")
    yield made
    made.close()


def opened(browser: Browser, tmp_path: Path, page: bytes) -> None:
    path = tmp_path / "sheet.html"
    path.write_bytes(page)
    browser.open(path)


_FILL = """(judgment) => {
  const panel = document.querySelector(`[data-place="${judgment.place}"]`);
  const pick = (name, value) =>
    panel.querySelector(`input[type=radio][name="${judgment.place}/${name}"][value="${value}"]`).click();
  for (const [name, value] of Object.entries(judgment.picks)) pick(name, value);
  const put = (node, value) => { node.value = value; node.dispatchEvent(new Event("input")); };
  if (judgment.clauses !== undefined) put(panel.querySelector("input[type=number]"), judgment.clauses);
  for (const box of panel.querySelectorAll("input[type=checkbox]"))
    if (judgment.defects.includes(box.parentNode.textContent.trim().replaceAll(" ", "-"))) box.click();
  put(panel.querySelector("textarea"), judgment.text);
}"""


def filled_in(browser: Browser, judgment: dict[str, Any]) -> None:
    browser.run(f"({_FILL})({json.dumps(judgment)})")


def told(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}.get(value, value)


@needs_browser
def test_a_scorer_fills_the_form_and_the_stage_takes_it(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, form.scoring_form(sheet()))
    assert browser.run("document.querySelector('#progress').textContent") == "Question 1 of 16 · 0 complete"
    expected = people.scores(sheet(), strict=False)
    rows = {(row["setId"], row["questionId"], row["label"]): row for row in expected["scores"]}
    for number, entry in enumerate(sheet()["entries"]):
        assert browser.run("document.querySelector('h1').textContent") == entry["question"]
        assert browser.run("document.querySelector('#save').disabled")
        for delivery in entry["deliveries"]:
            row = rows[entry["setId"], entry["questionId"], delivery["label"]]
            picks = {name: told(value) for name, value in row["criteria"].items()}
            picks |= {"support": row["sourceSupport"], "limits": row["essentialLimits"]}
            picks |= {"relevant": told(row["firstSourceRelevant"]), "decisive": told(row["firstSourceDecisive"])}
            filled_in(
                browser,
                {
                    "place": f"{entry['setId']}/{entry['questionId']}/{delivery['label']}",
                    "picks": picks,
                    "clauses": row["clauseCoverage"],
                    "defects": row["defects"],
                    "text": row["reason"],
                },
            )
        done = f"Question {number + 1} of 16 · {number + 1} complete"
        assert browser.run("document.querySelector('#progress').textContent") == done
        browser.press("ArrowRight", "ArrowRight", alt=True)
    browser.run("document.querySelector('#save').click()")
    saved = browser.downloaded("scores.json")
    assert saved == expected
    assert found(small().scored(1, saved)) == set()
    assert [url for url in browser.requests if not url.startswith(("file:", "blob:", "about:"))] == []
    assert browser.errors == []


@needs_browser
def test_the_form_is_worked_by_keyboard_and_says_what_is_open(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, form.scoring_form(sheet()))
    outcome = "document.querySelector('.outcome').textContent"
    assert "all six criteria" in browser.run(outcome)
    browser.press("KeyX", "x", alt=True)
    for _ in range(6):
        browser.press("Space", " ", text=" ")
        browser.press("Tab", "Tab")
    assert "all six criteria" not in browser.run(outcome)
    assert all(
        browser.run(
            "metaEvalForm.filled().scores[0].criteria && Object.values(metaEvalForm.filled().scores[0].criteria)"
        )
    )
    browser.press("ArrowRight", "ArrowRight", alt=True)
    assert browser.run("document.querySelector('#progress').textContent").startswith("Question 2 of 16")
    browser.press("ArrowLeft", "ArrowLeft", alt=True)
    assert browser.run("document.querySelectorAll('input[type=radio]:checked').length") == 6
    browser.press("KeyS", "s", alt=True)
    draft = browser.downloaded("draft.json")
    assert draft["sheetDigest"] == digest(sheet())
    assert found(small().scored(1, draft)) != set()


@needs_browser
def test_hostile_text_is_only_text(browser: Browser, tmp_path: Path) -> None:
    hostile = sheet()
    hostile["entries"][0]["question"] = "</script><img src=x onerror=document.title='taken'>"
    hostile["entries"][0]["deliveries"][0]["answer"] = "<script>document.title='taken'</script>"
    opened(browser, tmp_path, form.scoring_form(hostile))
    assert browser.run("document.querySelector('h1').textContent") == hostile["entries"][0]["question"]
    assert browser.run("document.title") == "Scores"
    assert browser.run("document.querySelectorAll('img').length") == 0
    # The page itself may connect to nothing.
    blocked = "fetch('https://records.museum.example/').then(() => 'sent', () => 'refused')"
    assert browser.run(blocked) == "refused"


@needs_browser
def test_the_adjudicator_fills_the_form_and_the_stage_takes_it(browser: Browser, tmp_path: Path) -> None:
    content = small().documents["adjudication sheet"]
    assert content["entries"]
    opened(browser, tmp_path, form.adjudication_form(content))
    expected = small().documents["adjudication"]
    for row in expected["decisions"]:
        place = f"{row['setId']}/{row['questionId']}/{row['label']}"
        picks = {"disposition": row["disposition"], "cause": told(row["cause"])}
        filled_in(browser, {"place": place, "picks": picks, "defects": [], "text": row["rationale"]})
        browser.press("ArrowRight", "ArrowRight", alt=True)
    browser.run("document.querySelector('#save').click()")
    saved = browser.downloaded("adjudication.json")
    assert saved == expected
    assert found(small().adjudicated(saved)) == set()
