"""The forms in a real browser: filled by what the sheet says and by keyboard, saved, and taken by the stages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from meta_eval.evidence.canonical import digest
from meta_eval.lanes.usefulness import form
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval_tests.lanes.usefulness.world import found, small


def sheet() -> dict[str, Any]:
    return small().sheet(people.SCORERS[0])


class Desk:
    """A page with a form on it. `requests` lists every URL that it asked for, `errors` what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.saved: list[Any] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("download", lambda download: self.saved.append(download))

    def open(self, folder: Path, content: bytes) -> None:
        path = folder / "sheet.html"
        path.write_bytes(content)
        self.page.goto(path.as_uri())

    def run(self, script: str) -> Any:
        """What an expression gives in the page."""
        return self.page.evaluate(script)

    def press(self, keys: str) -> None:
        """Keys, as a person presses them."""
        self.page.keyboard.press(keys)

    def downloaded(self, name: str) -> Any:
        while not self.saved:
            self.page.wait_for_event("download")
        download = self.saved.pop()
        assert download.suggested_filename == name
        return json.loads(Path(download.path()).read_bytes())


@pytest.fixture
def desk(page: Page) -> Desk:
    return Desk(page)


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


def filled_in(desk: Desk, judgment: dict[str, Any]) -> None:
    desk.run(f"({_FILL})({json.dumps(judgment)})")


def told(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}.get(value, value)


def test_a_scorer_fills_the_form_and_the_stage_takes_it(desk: Desk, tmp_path: Path) -> None:
    desk.open(tmp_path, form.scoring_form(sheet()))
    assert desk.run("document.querySelector('#progress').textContent") == "Question 1 of 16 · 0 complete"
    expected = people.scores(sheet(), strict=False)
    rows = {(row["setId"], row["questionId"], row["label"]): row for row in expected["scores"]}
    for number, entry in enumerate(sheet()["entries"]):
        assert desk.run("document.querySelector('h1').textContent") == entry["question"]
        assert desk.run("document.querySelector('#save').disabled")
        for delivery in entry["deliveries"]:
            row = rows[entry["setId"], entry["questionId"], delivery["label"]]
            picks = {name: told(value) for name, value in row["criteria"].items()}
            picks |= {"support": row["sourceSupport"], "limits": row["essentialLimits"]}
            picks |= {"relevant": told(row["firstSourceRelevant"]), "decisive": told(row["firstSourceDecisive"])}
            filled_in(
                desk,
                {
                    "place": f"{entry['setId']}/{entry['questionId']}/{delivery['label']}",
                    "picks": picks,
                    "clauses": row["clauseCoverage"],
                    "defects": row["defects"],
                    "text": row["reason"],
                },
            )
        done = f"Question {number + 1} of 16 · {number + 1} complete"
        assert desk.run("document.querySelector('#progress').textContent") == done
        desk.press("Alt+ArrowRight")
    desk.run("document.querySelector('#save').click()")
    saved = desk.downloaded("scores.json")
    assert saved == expected
    assert found(small().scored(1, saved)) == set()
    assert [url for url in desk.requests if not url.startswith(("file:", "blob:", "about:"))] == []
    assert desk.errors == []


def test_the_form_is_worked_by_keyboard_and_says_what_is_open(desk: Desk, tmp_path: Path) -> None:
    desk.open(tmp_path, form.scoring_form(sheet()))
    outcome = "document.querySelector('.outcome').textContent"
    assert "all six criteria" in desk.run(outcome)
    desk.press("Alt+KeyX")
    for _ in range(6):
        desk.press("Space")
        desk.press("Tab")
    assert "all six criteria" not in desk.run(outcome)
    assert all(
        desk.run("metaEvalForm.filled().scores[0].criteria && Object.values(metaEvalForm.filled().scores[0].criteria)")
    )
    desk.press("Alt+ArrowRight")
    assert desk.run("document.querySelector('#progress').textContent").startswith("Question 2 of 16")
    desk.press("Alt+ArrowLeft")
    assert desk.run("document.querySelectorAll('input[type=radio]:checked').length") == 6
    desk.press("Alt+KeyS")
    draft = desk.downloaded("draft.json")
    assert draft["sheetDigest"] == digest(sheet())
    assert found(small().scored(1, draft)) != set()


def test_hostile_text_is_only_text(desk: Desk, tmp_path: Path) -> None:
    hostile = sheet()
    hostile["entries"][0]["question"] = "</script><img src=x onerror=document.title='taken'>"
    hostile["entries"][0]["deliveries"][0]["answer"] = "<script>document.title='taken'</script>"
    desk.open(tmp_path, form.scoring_form(hostile))
    assert desk.run("document.querySelector('h1').textContent") == hostile["entries"][0]["question"]
    assert desk.run("document.title") == "Scores"
    assert desk.run("document.querySelectorAll('img').length") == 0
    # The page itself may connect to nothing.
    blocked = "fetch('https://records.museum.example/').then(() => 'sent', () => 'refused')"
    assert desk.run(blocked) == "refused"


def test_the_adjudicator_fills_the_form_and_the_stage_takes_it(desk: Desk, tmp_path: Path) -> None:
    content = small().documents["adjudication sheet"]
    assert content["entries"]
    desk.open(tmp_path, form.adjudication_form(content))
    expected = small().documents["adjudication"]
    for row in expected["decisions"]:
        place = f"{row['setId']}/{row['questionId']}/{row['label']}"
        picks = {"disposition": row["disposition"], "cause": told(row["cause"])}
        filled_in(desk, {"place": place, "picks": picks, "defects": [], "text": row["rationale"]})
        desk.press("Alt+ArrowRight")
    desk.run("document.querySelector('#save').click()")
    saved = desk.downloaded("adjudication.json")
    assert saved == expected
    assert found(small().adjudicated(saved)) == set()
