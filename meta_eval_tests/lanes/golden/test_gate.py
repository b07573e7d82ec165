"""The gate's verdicts by hand, the blockers that forbid to ask, the replay, and the same again in SQL."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.artifacts import Artifact, digest_of
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.evidence.store import EvidenceStore
from meta_eval.lanes.golden import evidence_rows, gate
from meta_eval.lanes.golden.junit import junit_xml
from meta_eval.lanes.golden.prompts import Prompt
from meta_eval.lanes.golden.protocol import Given, faulty

NOW = 1_796_000_000_000
SHA, OTHER = "ab" * 32, "cd" * 32
RIGHT = Given("answered", None, ("a.maker",), False, 10.0)
WRONG = Given("answered", None, ("b.maker",), False, 20.0)
REFUSAL = Given("refused", None, (), False, 30.0)
UNCITED = Given("answered", None, ("a.maker",), True, 10.0)
ERROR, OTHER_ERROR = faulty("timed-out"), faulty("ended")
REBUILDS = {gate.KIND: gate.rebuild}


def prompt(number: int, claims: tuple[str, ...] = ("a.maker",)) -> Prompt:
    return Prompt(f"p-{number}", "answerable", f"Question {number}?", claims)


def asked(prompts: list[Prompt], *, records: str = SHA) -> gate.Asked:
    return gate.Asked([each.kept for each in prompts], records, SHA)


def verdict(now: list[Given], before: list[Given] | None = None, prompts: list[Prompt] | None = None) -> Artifact:
    prompts = prompts or [prompt(n) for n in range(len(now))]
    rows = [gate.answer_row(each.prompt_id, given_) for each, given_ in zip(prompts, now, strict=True)]
    baseline = None
    if before is not None:
        baseline = gate.baseline_of(judged(prompts, before))
    receipts = {"records": SHA, "prompts": SHA} | ({"baseline": SHA} if before is not None else {})
    return gate.judge(asked(prompts), rows, baseline, answerer_sha256=SHA, receipts=receipts, made_at=NOW)


def judged(prompts: list[Prompt], given_: list[Given]) -> Artifact:
    rows = [gate.answer_row(each.prompt_id, one) for each, one in zip(prompts, given_, strict=True)]
    receipts = {"records": SHA, "prompts": SHA}
    return gate.judge(asked(prompts), rows, None, answerer_sha256=SHA, receipts=receipts, made_at=NOW)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (RIGHT, RIGHT, "same"),
        (RIGHT, WRONG, "regressed"),
        (RIGHT, REFUSAL, "regressed"),
        (RIGHT, ERROR, "regressed"),
        (RIGHT, UNCITED, "regressed"),
        (WRONG, RIGHT, "fixed"),
        (REFUSAL, RIGHT, "fixed"),
        (ERROR, RIGHT, "fixed"),
        (UNCITED, RIGHT, "fixed"),
        (WRONG, WRONG, "same"),
        (WRONG, REFUSAL, "changed"),
        (WRONG, ERROR, "changed"),
        (ERROR, ERROR, "same"),
        (ERROR, OTHER_ERROR, "changed"),
        (UNCITED, WRONG, "changed"),
        (None, RIGHT, "same"),
        (None, WRONG, "regressed"),
        (None, ERROR, "regressed"),
    ],
)
def test_the_verdict_of_one_prompt(before: Given | None, now: Given, expected: str) -> None:
    made = verdict([now], None if before is None else [before])
    assert made["result"]["verdicts"] == [{"promptId": "p-0", "verdict": expected, "met": now is RIGHT}]
    assert made["status"] == ("regressed" if expected == "regressed" else "no-regression")


def test_a_refusal_is_met_where_a_refusal_is_expected() -> None:
    due = [prompt(0, ()), prompt(1, ())]
    made = verdict([REFUSAL, RIGHT], [REFUSAL, REFUSAL], due)
    assert [row["met"] for row in made["result"]["verdicts"]] == [True, False]
    assert made["status"] == "regressed"


def test_several_claims_are_compared_as_a_set() -> None:
    due = [prompt(0, ("b.made", "a.maker"))]
    both = Given("answered", None, ("a.maker", "b.made"), False, 1.0)
    assert verdict([both], None, due)["status"] == "no-regression"
    assert verdict([RIGHT], None, due)["status"] == "regressed"


def test_everything_is_counted_and_nothing_dropped() -> None:
    made = verdict([RIGHT, WRONG, ERROR, REFUSAL], [RIGHT, RIGHT, WRONG, RIGHT])["result"]
    assert (made["prompts"], made["met"]) == (4, 1)
    assert made["counts"] == {"same": 1, "fixed": 0, "regressed": 2, "changed": 1}
    assert made["outcomes"] == {"answered": 2, "refused": 1, "error": 1}
    assert made["byKind"] == {"answerable": {"prompts": 4, "met": 1, "regressed": 2}}
    assert made["p95LatencyMs"] == 30.0  # rank ceil(0.95 * 3) of 10, 20, 30


def test_it_is_evidence_of_regression_and_permits_nothing() -> None:
    made = verdict([RIGHT])
    assert (made["evidenceClass"], made["environment"]) == ("regression", None)
    assert made["authority"]["isProductionEvidence"] is made["authority"]["permitsRelease"] is False


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda a, _: a.update(records=OTHER), "records-differ-from-prompts"),
        (lambda a, _: a["prompts"].append(a["prompts"][0]), "repeated-prompt"),
        (lambda a, _: a["prompts"].clear(), "no-prompts"),
        (lambda _, b: b.update(promptsDigest=OTHER), "baseline-of-other-prompts"),
        (lambda _, b: b["answers"].pop(), "baseline-lacks-prompts"),
        (lambda _, b: b["answers"].append(b["answers"][0]), "baseline-lacks-prompts"),
    ],
)
def test_what_does_not_belong_together_is_not_asked(change: Any, code: str) -> None:
    prompts = [prompt(0), prompt(1)]
    given_: dict[str, Any] = {"prompts": prompts, "records": SHA}
    baseline = gate.baseline_of(judged(prompts, [RIGHT, WRONG]))
    change(given_, baseline)
    made_of = asked(given_["prompts"], records=given_["records"])
    assert code in {blocker.code for blocker in gate.preflight(made_of, baseline)}
    receipts = dict.fromkeys(("records", "prompts", "baseline"), SHA)
    made = gate.judge(made_of, [], baseline, answerer_sha256=SHA, receipts=receipts, made_at=NOW)
    assert made["status"] == "blocked"
    assert code in {entry["code"] for entry in made["blockers"]}
    assert verified(copy.deepcopy(made), REBUILDS) == made
    assert evidence_rows.tables_of(made) == {}


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from leaves(node[key], (*path, key))
    yield path


def test_no_changed_part_survives_but_those_that_nothing_hangs_on() -> None:
    made, survivors, tried = verdict([RIGHT, WRONG, ERROR], [RIGHT, RIGHT, REFUSAL]), set[str](), 0
    for path in leaves(made):
        if not path or path == ("digest",):
            continue
        for other in (None, "x", 7, [], {}, True, OTHER, "2026-01-01T00:00:00.000Z"):
            forged = copy.deepcopy(made)
            parent = forged
            for key in path[:-1]:
                parent = parent[key]
            if parent[path[-1]] == other and type(parent[path[-1]]) is type(other):
                continue
            parent[path[-1]] = other
            forged["digest"] = digest_of(forged)
            tried += 1
            try:
                verified(forged, REBUILDS)
            except VerificationError:
                continue
            survivors.add("/".join("*" if isinstance(key, int) else key for key in path))
    assert tried > 500
    # When and on what it was run, how long an answer took, and which wrong claim it made: given to it, and no verdict
    # within hangs on them. The files and the evidence store, which holds every digest it was given, tell those.
    assert survivors == {
        "madeAt",
        "inputs/records/receipt",
        "inputs/prompts/receipt",
        "inputs/baseline/receipt",
        "replay/answererSha256",
        "replay/answers/*/latencyMs",
        "replay/answers/*/claimIds/*",
        "replay/answers/*/uncited",
        "replay/baseline/answers/*/uncited",
    }


ANY = st.sampled_from([RIGHT, WRONG, REFUSAL, UNCITED, ERROR, OTHER_ERROR])


@given(
    st.lists(st.tuples(ANY, ANY, st.sampled_from([("a.maker",), (), ("a.maker", "b.made")])), min_size=1, max_size=8),
    st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_sql_agrees_with_python_on_every_prompt(tmp_path_factory: Any, drawn: Any, with_baseline: bool) -> None:
    prompts = [prompt(n, claims) for n, (_, _, claims) in enumerate(drawn)]
    made = verdict([now for now, _, _ in drawn], [before for _, before, _ in drawn] if with_baseline else None, prompts)
    store = EvidenceStore(Path(tmp_path_factory.mktemp("store")), [evidence_rows.SCHEMA])
    store.load(made, evidence_rows.tables_of(made))
    assert store.rows("SELECT * FROM golden_disagreements") == []
    again = store.rows("SELECT prompt_id, verdict, met FROM recomputed_golden ORDER BY prompt_id")
    assert again == [(row["promptId"], row["verdict"], row["met"]) for row in made["result"]["verdicts"]]


def test_an_edited_row_is_a_disagreement(tmp_path: Path) -> None:
    made = verdict([RIGHT, WRONG], [RIGHT, RIGHT])
    rows = dict(evidence_rows.tables_of(made))
    table = rows["golden_results"]
    edited = table.set_column(table.schema.get_field_index("verdict"), "verdict", [["same", "same"]])
    store = EvidenceStore(tmp_path, [evidence_rows.SCHEMA])
    store.load(made, {"golden_results": edited})
    assert store.rows("SELECT prompt_id, sql_verdict FROM golden_disagreements") == [("p-1", "regressed")]


def test_every_table_view_and_column_tells_what_it_means(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path, [evidence_rows.SCHEMA])
    made = verdict([RIGHT])
    store.load(made, evidence_rows.tables_of(made))
    assert store.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal AND comment IS NULL") == []
    bare = "SELECT column_name FROM duckdb_columns() WHERE table_name = 'golden_results' AND comment IS NULL"
    assert store.rows(bare) == []


def test_junit_has_a_case_a_prompt_and_a_failure_a_regression() -> None:
    prompts = [prompt(n) for n in range(4)]
    made = verdict([RIGHT, ERROR, REFUSAL, WRONG], [RIGHT, RIGHT, WRONG, RIGHT], prompts)
    root = ElementTree.fromstring(junit_xml(made, prompts))  # noqa: S314 - our own document
    cases = root.findall(".//testcase")
    assert [case.get("name") for case in cases] == ["p-0", "p-1", "p-2", "p-3"]
    assert {case.get("classname") for case in cases} == {"golden.answerable"}
    failures = {case.get("name"): case[0].get("message") for case in cases if case.find("failure") is not None}
    assert failures == {
        "p-1": "expected a.maker; got an error (timed-out)",
        "p-3": "expected a.maker; got b.maker",
    }
    assert cases[2].findtext("system-out") == "changed: a refusal"
