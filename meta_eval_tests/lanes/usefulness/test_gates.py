"""Freeze, preflight, runs, blinding, scores, adjudication, unblinding: one broken thing, exactly that blocker."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from meta_eval.evidence.canonical import digest
from meta_eval.evidence.errors import UsageError, VerificationError
from meta_eval.lanes.usefulness import blinding
from meta_eval.lanes.usefulness.custody import ledger_name
from meta_eval.lanes.usefulness.hiding import text_digest
from meta_eval.lanes.usefulness.rehearsal import people
from meta_eval.lanes.usefulness.rubric import CRITERIA
from meta_eval_tests.lanes.usefulness.world import KEY, NAME, NONCE, SECRET, World, chained, found, sha, whole

Found = set[tuple[str, str, int]]
Edit = Callable[[Any], Any]


def cases(table: dict[str, tuple[Edit, Found]]) -> Any:
    return pytest.mark.parametrize(("edit", "expected"), list(table.values()), ids=list(table))


# --- freeze ------------------------------------------------------------------------------------------------------


@cases(
    {
        "another runner": (
            lambda d: d.update(runnerCode="OWN-5N"),
            {("not-the-declared-runner", "freeze.runnerCode", 1)},
        ),
        "another corpus": (lambda d: d.update(corpusDigest=sha("x")), {("corpus-changed", "freeze.corpusDigest", 1)}),
        "another activation": (
            lambda d: d.update(activationDigest=sha("x")),
            {("activation-changed", "freeze.activationDigest", 1)},
        ),
        "no model": (lambda d: d.pop("modelDigest"), {("missing-key", "freeze.modelDigest", 1)}),
        "no candidate": (lambda d: d.update(candidateDigest="v4"), {("not-a-sha256", "freeze.candidateDigest", 1)}),
        "eleven attempts": (
            lambda d: d.update(mostAttempts=11),
            {("not-a-bound-of-attempts", "freeze.mostAttempts", 1)},
        ),
    }
)
def test_freeze(edit: Edit, expected: Found) -> None:
    document = whole().copy("freeze")
    edit(document)
    assert found(whole().frozen(document)) == expected


def test_a_freeze_waits_for_every_set_and_comes_once() -> None:
    assert found(whole().frozen(state=whole().state("seal set-b"))) == {("set-not-sealed", "register", 1)}
    assert found(whole().frozen(state=whole().state("preflight"))) == {("already-frozen", "register", 1)}
    undeclared = whole().state("freeze") | {"declared": None}
    assert found(whole().frozen(state=undeclared)) == {("not-yet-declared", "register", 1)}
    late = whole().state("freeze") | {"at": "2026-11-29T00:00:00.000Z"}
    assert found(whole().frozen(state=late)) == {("clock-before-register", "register", 1)}


# --- preflight ---------------------------------------------------------------------------------------------------


def ledger(**changes: Any) -> Any:
    return chained(ledger_name(NAME), [("budget", whole().documents["budget"] | changes)])


def test_preflight_names_what_does_not_fit() -> None:
    differs = ("budget-differs-from-freeze", "ledger", 1)
    # 0.25 known + 2 x 0.02 unknown + 240 x 0.02 planned + 1.00 retained = 6.09.
    assert whole().made["preflight"]["result"]["worstCase"] == "6.09"
    assert found(whole().preflighted(ledger(budget="6.09"))) == {differs}
    assert found(whole().preflighted(ledger(budget="6.089"))) == {differs, ("over-budget", "ledger", 1)}
    assert found(whole().preflighted(ledger(spentUnknown=23))) == {differs, ("over-budget", "ledger", 1)}
    assert found(whole().preflighted(ledger(plannedCompletions=239))) == {
        differs,
        ("plan-smaller-than-the-run", "ledger", 239),
    }
    assert found(whole().preflighted(ledger(mostAttempts=1))) == {differs, ("attempts-differ-from-freeze", "ledger", 1)}
    assert found(whole().preflighted(ledger(budget="1e3"))) == {("not-an-amount", "budget.budget", 1)}
    assert found(whole().preflighted([])) == {("ledger-not-opened", "ledger", 1)}
    assert found(whole().preflighted(state=whole().state("freeze"))) == {("not-yet-frozen", "register", 1)}


def test_a_ledger_of_another_study_is_not_believed() -> None:
    with pytest.raises(VerificationError, match="does not follow"):
        whole().preflighted(chained(ledger_name("autumn"), [("budget", whole().documents["budget"])]))


# --- runs --------------------------------------------------------------------------------------------------------


def row_of(d: Any, question: str, arm: str, attempt: int = 1) -> Any:
    return next(r for r in d["runs"] if (r["questionId"], r["arm"], r["attempt"]) == (question, arm, attempt))


def add(d: Any, row: Any, **changes: Any) -> None:
    d["runs"].append(row | changes)


BASE, PAID = "records-lookup", "assistant"


@cases(
    {
        "a question left out": (
            lambda d: d["runs"].remove(row_of(d, "set-a-00", BASE)),
            {("question-not-run", "runs.runs", 1)},
        ),
        "a bad answer left out": (
            lambda d: d["runs"].remove(row_of(d, "set-a-49", PAID)),
            {("question-not-run", "runs.runs", 1), ("reserved-completion-not-recorded", "runs.runs", 1)},
        ),
        "a lost attempt left out": (
            lambda d: d["runs"].remove(row_of(d, "set-a-51", PAID)),
            {("attempt-missing", "runs.runs", 1), ("reserved-completion-not-recorded", "runs.runs", 1)},
        ),
        "an unknown question": (
            lambda d: add(d, row_of(d, "set-a-00", BASE), questionId="set-a-99"),
            {("run-of-unknown-question-or-arm", "runs.runs", 1)},
        ),
        "an attempt twice": (
            lambda d: add(d, row_of(d, "set-a-00", BASE)),
            {("attempt-recorded-twice", "runs.runs", 1)},
        ),
        "a retry after a delivery": (
            lambda d: add(d, row_of(d, "set-a-00", BASE), attempt=2),
            {("retried-after-a-delivery", "runs.runs", 1)},
        ),
        "a gap in the attempts": (
            lambda d: row_of(d, "set-a-00", BASE).update(attempt=2),
            {("attempt-missing", "runs.runs", 1)},
        ),
        "beyond the bound": (
            lambda d: row_of(d, "set-a-00", BASE).update(attempt=3),
            {("attempt-missing", "runs.runs", 1), ("attempt-beyond-bound", "runs.runs", 1)},
        ),
        "answered without an answer": (
            lambda d: row_of(d, "set-a-00", BASE).update(answer=None),
            {("delivery-without-answer", "runs.runs", 1)},
        ),
        "another status": (
            lambda d: row_of(d, "set-a-00", BASE).update(status="skipped"),
            {("not-a-status", "runs.runs[].status", 1), ("question-not-run", "runs.runs", 1)},
        ),
        "a deterministic cost": (
            lambda d: row_of(d, "set-a-00", BASE).update(cost="0.01"),
            {("deterministic-arm-with-cost", "runs.runs", 1)},
        ),
        "not reserved": (
            lambda d: row_of(d, "set-a-00", PAID).update(reservationId=None),
            {("completion-not-reserved", "runs.runs", 1), ("reserved-completion-not-recorded", "runs.runs", 1)},
        ),
        "another's reservation": (
            lambda d: row_of(d, "set-a-00", PAID).update(reservationId="r-set-a-01-1"),
            {("completion-not-reserved", "runs.runs", 1), ("reserved-completion-not-recorded", "runs.runs", 1)},
        ),
        "another cost": (
            lambda d: row_of(d, "set-a-00", PAID).update(cost="0.001"),
            {("cost-differs-from-ledger", "runs.runs", 1)},
        ),
        "unknown made known": (
            lambda d: row_of(d, "set-a-07", PAID).update(cost="0"),
            {("cost-differs-from-ledger", "runs.runs", 1)},
        ),
        "another runner": (
            lambda d: d.update(runnerCode="IMP-6T"),
            {("not-the-designated-runner", "runs.runnerCode", 1)},
        ),
        "another corpus": (lambda d: d.update(corpusDigest=sha("x")), {("corpus-changed", "runs.corpusDigest", 1)}),
        "another activation": (
            lambda d: d.update(activationDigest=sha("x")),
            {("activation-changed", "runs.activationDigest", 1)},
        ),
        "another freeze": (lambda d: d.update(freezeDigest=sha("x")), {("freeze-differs", "runs.freezeDigest", 1)}),
        "latency as text": (
            lambda d: row_of(d, "set-a-00", BASE).update(latencyMs="fast"),
            {("not-milliseconds", "runs.runs[].latencyMs", 1)},
        ),
    }
)
def test_runs(edit: Edit, expected: Found) -> None:
    document = whole().copy("runs")
    edit(document)
    assert found(whole().ran(document)) == expected


def test_runs_need_their_openings_and_ended_reservations() -> None:
    w = whole()
    assert found(w.ran(state=w.state("open set-b"))) == {("packet-not-opened", "register", 1)}
    assert found(w.ran(state=w.state())) == {("already-runs-recorded", "register", 1)}
    booked = [("budget", w.documents["budget"]), *w.documents["booked"][:-1]]
    open_one = chained(ledger_name(NAME), booked)
    assert found(w.ran(ledger=open_one)) == {("reservation-still-open", "runs.runs", 1)}


def test_no_question_or_answer_is_in_the_artifacts_of_a_run() -> None:
    w = whole()
    kept = str([w.made[name] for name in w.made if name != "publish"])
    for row in w.documents["runs"]["runs"]:
        assert row["answer"] is None or row["answer"] not in kept
    for name in ("scores 1", "scores 2"):
        assert w.documents[name]["scores"][0]["reason"] not in kept
    told = w.documents["runs"]["runs"][0]["answer"]
    assert text_digest(told, KEY) in kept
    assert text_digest(told, bytes(32)) not in kept


# --- blinding ----------------------------------------------------------------------------------------------------


def test_an_answer_that_names_its_arm_blocks_the_sheets() -> None:
    document = whole().copy("runs")
    row_of(document, "set-a-00", PAID)["answer"] = "As Assist-4.1 I know that."
    row_of(document, "set-a-01", BASE)["links"][0]["claim"] = "lookup-v1 says so"
    assert found(whole().blinded(runs_document=document)) == {("answer-names-an-arm", "sheets", 2)}


def test_blinding_is_once_after_the_runs_and_for_both_scorers() -> None:
    w = whole()
    assert found(w.blinded(state=w.state("record-runs"))) == {("not-yet-runs-recorded", "register", 1)}
    assert found(w.blinded(state=w.state())) == {("already-blinded", "register", 1)}
    one = {people.SCORERS[0]: w.sheet(people.SCORERS[0])}
    assert found(w.blinded(sheets=one)) == {("not-one-sheet-a-scorer", "sheets", 1)}
    short = {code: w.sheet(code) | {"entries": w.sheet(code)["entries"][:119]} for code in people.SCORERS}
    assert found(w.blinded(sheets=short)) == {("denominator-reduced", "sheets", 119)}


def test_a_sheet_holds_what_a_scorer_may_see_and_nothing_else() -> None:
    sheet = whole().sheet(people.SCORERS[0])
    assert set(sheet) == {
        "version",
        "study",
        "scorerCode",
        "activation",
        "criteria",
        "assessments",
        "defects",
        "entries",
    }
    for entry in sheet["entries"]:
        assert set(entry) == {
            "setId", "questionId", "question", "clauses", "exactSourceNavigation", "oracle", "deliveries"
        }  # fmt: skip
        assert [delivery["label"] for delivery in entry["deliveries"]] == ["X", "Y"]
        for delivery in entry["deliveries"]:
            assert set(delivery) == {"label", "answer", "limitations", "links"}
    for word in (*people.AUTHORS.values(), BASE, PAID, "deterministic", "0.0125", "latency", "assist-4.1"):
        assert word not in str(sheet)


def test_expanded_text_is_on_no_sheet_and_in_no_export() -> None:
    document = whole().copy("runs")
    for row in document["runs"]:
        row["expandedText"] = "a whole story that repairs the answer"
    assert "whole story" not in str(whole().sheet(people.SCORERS[0], document))
    assert "whole story" not in str(whole().published(runs=document))


def test_a_key_needs_real_randomness() -> None:
    for weak in (b"", b"seed", bytes(31), bytes(32), b"ab" * 16):
        with pytest.raises(UsageError, match="32 random bytes"):
            blinding.drawn_key(weak, {"a": ["1"]}, ["x", "y"])


# --- scores ------------------------------------------------------------------------------------------------------


def judgment(d: Any, *, useful: bool = True) -> Any:
    return next(row for row in d["scores"] if row["useful"] is useful and row["firstSourceDecisive"] is not None)


def navigation(d: Any) -> Any:
    return next(r for r in d["scores"] if r["questionId"] == "set-a-08" and r["useful"])


SCORES = "scores.scores"


@cases(
    {
        "one answer left out": (lambda d: d["scores"].pop(), {("answer-not-scored", SCORES, 1)}),
        "one answer twice": (lambda d: d["scores"].append(d["scores"][0]), {("answer-scored-twice", SCORES, 1)}),
        "an unknown answer": (
            lambda d: d["scores"].append(d["scores"][0] | {"questionId": "set-a-99"}),
            {("score-of-unknown-answer", SCORES, 1)},
        ),
        "useful against the criteria": (
            lambda d: judgment(d, useful=False).update(useful=True),
            {("useful-contradicts-criteria", f"{SCORES}[]", 1)},
        ),
        "not useful against the criteria": (
            lambda d: judgment(d).update(useful=False, defects=["omission"]),
            {("useful-contradicts-criteria", f"{SCORES}[]", 1)},
        ),
        "useful though sources fail": (
            lambda d: judgment(d).update(sourceSupport="material-failure"),
            {("material-failure-without-its-criterion", f"{SCORES}[]", 1)},
        ),
        "useful though limits fail": (
            lambda d: judgment(d).update(essentialLimits="material-failure"),
            {("material-failure-without-its-criterion", f"{SCORES}[]", 1)},
        ),
        "more clauses than asked": (
            lambda d: judgment(d).update(clauseCoverage=3),
            {("more-clauses-than-asked", f"{SCORES}[]", 1)},
        ),
        "not useful and no defect": (
            lambda d: judgment(d, useful=False).update(defects=[]),
            {("not-useful-without-defect", f"{SCORES}[]", 1)},
        ),
        "a defect twice": (
            lambda d: judgment(d, useful=False).update(defects=["omission", "omission"]),
            {("defect-repeated", f"{SCORES}[]", 1)},
        ),
        "a defect of no class": (
            lambda d: judgment(d, useful=False).update(defects=["dull"]),
            {("not-a-defect-class", f"{SCORES}[].defects[]", 1)},
        ),
        "exact navigation not led": (
            lambda d: navigation(d).update(firstSourceDecisive=False),
            {("useful-contradicts-criteria", f"{SCORES}[]", 1)},
        ),
        "a criterion open": (
            lambda d: judgment(d)["criteria"].update(explicit=None),
            {("not-true-or-false", f"{SCORES}[].criteria.explicit", 1)},
        ),
        "no reason": (lambda d: judgment(d).update(reason=" "), {("not-a-text", f"{SCORES}[].reason", 1)}),
        "the author as scorer": (
            lambda d: d.update(scorerCode="AUT-1A"),
            {("not-a-scorer", "scores.scorerCode", 1)},
        ),
        "the implementer as scorer": (
            lambda d: d.update(scorerCode="IMP-6T"),
            {("not-a-scorer", "scores.scorerCode", 1)},
        ),
        "another sheet": (lambda d: d.update(sheetDigest=sha("x")), {("sheet-differs", "scores.sheetDigest", 1)}),
        "the other's sheet": (
            lambda d: d.update(sheetDigest=digest(whole().sheet(people.SCORERS[1]))),
            {("sheet-differs", "scores.sheetDigest", 1)},
        ),
    }
)
def test_scores(edit: Edit, expected: Found) -> None:
    document = whole().copy("scores 1")
    edit(document)
    assert found(whole().scored(1, document)) == expected


def test_decisiveness_enters_only_where_an_exact_source_was_asked_for() -> None:
    document = whole().copy("scores 1")
    plain = next(r for r in document["scores"] if r["useful"] and r["questionId"] not in _navigation_questions())
    plain["firstSourceDecisive"] = False
    assert found(whole().scored(1, document)) == set()


def _navigation_questions() -> set[str]:
    return {
        entry["questionId"]
        for set_id in ("set-a", "set-b")
        for entry in whole().documents[set_id]["questions"]
        if entry["exactSourceNavigation"]
    }


@pytest.mark.parametrize("name", list(CRITERIA))
def test_each_criterion_alone_decides(name: str) -> None:
    document = whole().copy("scores 1")
    judgment(document)["criteria"][name] = False
    assert found(whole().scored(1, document)) == {("useful-contradicts-criteria", f"{SCORES}[]", 1)}


def test_a_score_is_written_once_and_needs_nothing_of_the_other() -> None:
    w = whole()
    again = found(w.scored(1, state=w.state("score 2")))
    assert again == {("score-already-recorded", "register", 1)}
    assert found(w.scored(2, state=w.state("score 1"))) == set()
    late = w.state("adjudicate") | {"scored": {}, "adjudicated": sha("x")}
    assert found(w.scored(1, state=late)) == {("scored-after-adjudication", "register", 1)}
    assert found(w.scored(1, state=w.state("blind"))) == {("not-yet-blinded", "register", 1)}


# --- adjudication ------------------------------------------------------------------------------------------------

DECISIONS = "adjudication.decisions"


@cases(
    {
        "one undecided": (lambda d: d["decisions"].pop(), {("disagreement-undecided", DECISIONS, 1)}),
        "one decided twice": (
            lambda d: d["decisions"].append(d["decisions"][0]),
            {("decided-twice", DECISIONS, 1)},
        ),
        "no disagreement": (
            lambda d: d["decisions"].append(d["decisions"][0] | {"questionId": "set-a-00"}),
            {("decision-without-disagreement", DECISIONS, 1)},
        ),
        "no rationale": (
            lambda d: d["decisions"][0].update(rationale=""),
            {("not-a-text", f"{DECISIONS}[].rationale", 1)},
        ),
        "against it, and no cause": (
            lambda d: d["decisions"][0].update(disposition="not-useful", cause=None),
            {("cause-missing", DECISIONS, 1)},
        ),
        "a scorer adjudicates": (
            lambda d: d.update(adjudicatorCode=people.SCORERS[0]),
            {("not-the-adjudicator", "adjudication.adjudicatorCode", 1)},
        ),
        "an author adjudicates": (
            lambda d: d.update(adjudicatorCode="AUT-1A"),
            {("not-the-adjudicator", "adjudication.adjudicatorCode", 1)},
        ),
        "another sheet": (
            lambda d: d.update(sheetDigest=sha("x")),
            {("sheet-differs", "adjudication.sheetDigest", 1)},
        ),
    }
)
def test_adjudication(edit: Edit, expected: Found) -> None:
    document = whole().copy("adjudication")
    edit(document)
    assert found(whole().adjudicated(document)) == expected


def test_adjudication_waits_for_both_scores_on_record() -> None:
    w = whole()
    assert found(w.adjudicated(state=w.state("score 2"))) == {("score-not-in-register", "scores", 1)}
    assert found(w.adjudicated(state=w.state())) == {("already-adjudicated", "register", 1)}


def test_the_adjudicators_sheet_names_no_scorer_and_no_arm() -> None:
    sheet = whole().documents["adjudication sheet"]
    assert len(sheet["entries"]) == 10
    for word in (*people.SCORERS, BASE, PAID, "0.0125"):
        assert word not in str(sheet)
    assert all(len(entry["deliveries"]) == 1 and len(entry["judgments"]) == 2 for entry in sheet["entries"])


# --- unblinding --------------------------------------------------------------------------------------------------


def test_unblinding_waits_for_adjudication_and_keeps_the_key_until_then() -> None:
    w = whole()
    early = w.unblinded(state=w.state("adjudicate"))
    assert found(early) == {("unblinding-before-adjudication", "register", 1), ("key-missing", "key", 1)}
    assert early["replay"]["key"] is None
    assert NONCE not in str(early)


def swapped(w: World) -> Any:
    key = w.copy("key")
    labels = key["key"]["set-a"]["set-a-00"]
    labels["X"], labels["Y"] = labels["Y"], labels["X"]
    return key


def test_only_the_key_that_was_committed_to_opens() -> None:
    w = whole()
    wrong = {("key-does-not-open-commitment", "key", 1)}
    assert found(w.unblinded(swapped(w))) == wrong
    assert found(w.unblinded(w.documents["key"] | {"nonce": "00" * 32})) == wrong
    assert found(w.unblinded({"key": {}})) == wrong
    assert "00" * 32 not in str(w.unblinded(w.documents["key"] | {"nonce": "00" * 32}))
    assert found(w.unblinded(state=w.state())) == {("already-unblinded", "register", 1), ("key-missing", "key", 1)}


def test_the_mapping_cannot_be_found_by_enumerating_seeds() -> None:
    """Every obvious way from a small seed to a secret, with the nonce unknown or drawn from the same seed."""
    w = whole()
    published = w.made["blind"]["result"]["commitment"]
    ids = {set_id: [entry["questionId"] for entry in w.documents[set_id]["questions"]] for set_id in ("set-a", "set-b")}
    arms = [BASE, PAID]
    for seed in range(300):
        secrets = [
            seed.to_bytes(32, "big"),
            hashlib.sha256(str(seed).encode()).digest(),
            random.Random(seed).randbytes(32),  # noqa: S311 - what must not be done
        ]
        for secret in secrets:
            if len(set(secret)) < 8:
                continue
            key = blinding.drawn_key(secret, ids, arms)
            for nonce in (secret.hex(), "00" * 32, hashlib.sha256(secret).hexdigest()):
                assert blinding.commitment(key, nonce) != published
    # Even with the key in hand, the commitment does not confirm it without the nonce.
    assert blinding.commitment(blinding.drawn_key(SECRET, ids, arms), "00" * 32) != published
