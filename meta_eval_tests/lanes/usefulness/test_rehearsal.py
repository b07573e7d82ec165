"""A rehearsal runs every step for real; the endings that only the verdict tells apart, played on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from meta_eval.lanes.usefulness import steps
from meta_eval.lanes.usefulness.line import advance, stage_named
from meta_eval.lanes.usefulness.rehearsal import invented, people
from meta_eval.lanes.usefulness.rehearsal.invented import own_objects
from meta_eval.lanes.usefulness.rehearsal.play import Script, play
from meta_eval.lanes.usefulness.rehearsal.scenarios import SCENARIOS, Scenario
from meta_eval.lanes.usefulness.studies import Study
from meta_eval_tests.lanes.usefulness.world import SMALL_POLICY, START, found, played

SMALL = Scenario({"set-a": (4, 5), "set-b": (5, 5)})


@pytest.mark.parametrize("name", ["short-of-41", "lower-in-one-set"])
def test_an_ending_on_disk(name: str, tmp_path: Path) -> None:
    script = Script(SCENARIOS[name], own_objects(1), START, os.urandom(32), "00" * 32)
    made = dict(play(Study(tmp_path, "demo"), script))
    assert made["accept"]["status"] == SCENARIOS[name].ends == "failed"
    assert made["publish"]["status"] == "ready"
    assert {artifact["environment"] for artifact in made.values()} == {"rehearsal"}
    assert {artifact["evidenceClass"] for artifact in made.values()} == {"rehearsal"}


def test_a_tampered_score_ends_the_study(tmp_path: Path) -> None:
    script = Script(SCENARIOS["tampered-score"], own_objects(1), START, os.urandom(32), "00" * 32)
    *_, (step, last) = play(Study(tmp_path, "demo"), script)
    assert (step, last["status"]) == ("accept", "blocked")
    assert ("score-differs-from-register", "scores", 1) in found(last)


def test_a_reused_packet_is_refused_in_the_next_study(tmp_path: Path) -> None:
    script = Script(SCENARIOS["reused-packet"], own_objects(1), START, os.urandom(32), "00" * 32)
    *_, (step, last) = play(Study(tmp_path, "demo"), script, again=Study(tmp_path, "again"))
    assert step == "seal again"
    assert found(last) == {
        ("question-consumed", "packet.questions", 30),
        ("question-near-paraphrase-of-consumed", "packet.questions", 30),
    }


def test_a_study_that_was_stopped_between_record_and_files_goes_on(tmp_path: Path) -> None:
    """A machine may die after the register was written and before a sheet or an export was."""
    place = Study(tmp_path, "demo")
    script = Script(SCENARIOS["accepted"], own_objects(1), START, os.urandom(32), "5e" * 32)
    made = dict(play(place, script))
    sheet = place.scorers / people.SCORERS[0] / "sheet.json"
    [export] = place.export.glob("*.json")
    lost = {path: path.read_bytes() for path in (sheet, sheet.with_suffix(".html"), export)}
    for path in lost:
        path.unlink()
    for name in ("blinded_sheets", "public_export"):
        [(again, _)] = advance(place, stage_named(name), script.setting(place, 15), os.urandom)
        assert again["digest"] in (made["blind"]["digest"], made["publish"]["digest"])
    assert {path: path.read_bytes() for path in lost} == lost


def test_other_budget_terms_than_the_frozen_ones_never_open_the_ledger(tmp_path: Path) -> None:
    place = Study(tmp_path, "demo")
    script = Script(SCENARIOS["accepted"], own_objects(1), START, os.urandom(32), "5e" * 32)
    for step, _ in play(place, script):
        if step == "freeze":
            break
    good = (place.inbox / "budget.json").read_bytes()
    (place.inbox / "budget.json").write_bytes(good.replace(b'"6.50"', b'"65.0"'))
    made, _ = steps.preflight(place, script.setting(place, 4))
    assert found(made) == {("budget-differs-from-freeze", "ledger", 1)}
    assert place.ledger.entries() == []
    (place.inbox / "budget.json").write_bytes(good)
    assert steps.preflight(place, script.setting(place, 4))[0]["status"] == "ready"


def test_a_study_in_production_passes_on_public_hosts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = people.study()
    monkeypatch.setattr(people, "study", lambda: declared | {"environment": "production"})
    monkeypatch.setattr(people, "QUESTIONS", SMALL_POLICY.questions_per_set)
    with pytest.raises(AssertionError, match="url-reserved-name"):
        played(SMALL, SMALL_POLICY)
    monkeypatch.setattr(invented, "HOST", "https://www.metmuseum.org")
    accepted = played(SMALL, SMALL_POLICY).made["accept"]
    assert (accepted["status"], accepted["evidenceClass"], accepted["environment"]) == (
        "passed",
        "usefulness",
        "production",
    )


def test_two_rehearsals_of_one_seed_label_differently(tmp_path: Path) -> None:
    """The labels follow from the operating system's bytes, never from the seed."""
    commitments = set()
    for name in ("one", "two"):
        script = Script(SCENARIOS["accepted"], own_objects(1), START, os.urandom(32), os.urandom(32).hex())
        for step, artifact in play(Study(tmp_path, name), script):
            if step == "blind":
                commitments.add(artifact["result"]["commitment"])
                break
    assert len(commitments) == 2
