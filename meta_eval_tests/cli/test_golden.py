"""`meta-eval golden` as a newcomer and as a CI server run it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from meta_eval.lanes.golden import steps
from meta_eval_tests.cli.test_production import call

MUSEUM = Path(__file__).parents[3] / "shared" / "data" / "museum-records.jsonl"
BUILT_IN = ("golden", "run", "--answerer", "builtin")


def told(*words: Any, home: Path, expect: int = 0) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(call(*words, "--json", home=home, expect=expect).stdout)
    return value


def test_the_built_in_answerer_is_its_own_baseline(tmp_path: Path) -> None:
    found = told(*BUILT_IN, home=tmp_path)
    assert found["status"] == "no-regression"
    assert found["result"]["counts"] == {"same": 120, "fixed": 0, "regressed": 0, "changed": 0}
    (file,) = found["files"]
    assert Path(file).parent == tmp_path / "golden-runs"
    assert "1 verified, 0 refused" in call("verify", file, home=tmp_path).stdout
    asked = call("query", "SELECT count(*) AS n FROM recomputed_golden WHERE verdict = 'same'", "--json", home=tmp_path)
    assert json.loads(asked.stdout) == [{"n": 120}]


def test_no_word_of_a_question_is_in_the_verdict_or_the_store(tmp_path: Path) -> None:
    (file,) = told(*BUILT_IN, home=tmp_path)["files"]
    questions = [prompt["question"].encode() for prompt in json.loads(steps.PROMPTS.read_bytes())["prompts"]]
    for path in (Path(file), *(tmp_path / "evidence").glob("*.duckdb")):
        assert not [question for question in questions if question in path.read_bytes()]


def test_a_change_that_breaks_a_prompt_is_seen_and_named(tmp_path: Path) -> None:
    answerer = tmp_path / "answerer.py"
    answerer.write_text(
        "import json, sys\n"
        "from meta_eval.lanes.golden import steps\n"
        "from meta_eval.lanes.golden.answerer import BuiltInAnswerer\n"
        "from meta_eval.lanes.golden.seed_records import read_records\n"
        "built_in = BuiltInAnswerer(read_records(steps.RECORDS))\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    answer = built_in.answer(asked['question'])\n"
        "    if asked['promptId'] == 'museum-number-03':\n"
        "        answer |= {'refused': True, 'claims': []}\n"
        "    if asked['promptId'] == 'answerable-06':\n"
        "        answer |= {'refused': False, 'claims': [{'claimId': 'invented-0127.made', 'citations': ['x']}]}\n"
        "    print(json.dumps(answer | {'promptId': asked['promptId']}), flush=True)\n"
    )
    command, junit = shlex.join([sys.executable, str(answerer)]), tmp_path / "junit.xml"
    words = ("golden", "run", "--answerer", command, "--baseline", steps.BASELINE, "--junit", junit)
    done = call(*words, home=tmp_path, expect=1)
    assert "118 same, 1 fixed, 1 regressed, 0 changed" in done.stdout
    assert "regressed  museum-number-03" in done.stdout
    assert "now      a refusal" in done.stdout
    assert junit.read_text().count("<failure") == 1
    assert junit.read_text().count("<testcase") == 120


def test_a_run_can_be_frozen_and_compared_with(tmp_path: Path) -> None:
    refuser = tmp_path / "refuser.py"
    refuser.write_text(
        'import sys\nfor line in sys.stdin: print(\'{"refused":true,"claims":[],"latencyMs":1}\', flush=True)\n'
    )
    command, frozen = shlex.join([sys.executable, str(refuser)]), tmp_path / "frozen.json"
    first = told("golden", "run", "--answerer", command, "--write-baseline", frozen, home=tmp_path, expect=1)
    # By hand: 36 of the 120 prompts are to be refused; without a baseline all others have regressed.
    assert first["result"]["met"] == 36
    assert first["result"]["counts"]["regressed"] == 84
    again = told("golden", "run", "--answerer", command, "--baseline", frozen, home=tmp_path)
    assert again["result"]["counts"]["same"] == 120
    better = told(*BUILT_IN, "--baseline", frozen, home=tmp_path)
    assert better["result"]["counts"]["fixed"] == 78


def test_prompts_of_other_records_and_a_baseline_of_other_prompts_block(tmp_path: Path) -> None:
    records, prompts = tmp_path / "records.jsonl", tmp_path / "prompts.json"
    lines = steps.RECORDS.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(lines[:100] + lines[110:]))
    found = told(*BUILT_IN, "--records", records, "--prompts", steps.PROMPTS, home=tmp_path, expect=1)
    assert [entry["code"] for entry in found["blockers"]] == ["records-differ-from-prompts"]
    call("golden", "prompts", "--records", records, "--output", prompts, home=tmp_path)
    words = (*BUILT_IN, "--records", records, "--prompts", prompts)
    found = told(*words, "--baseline", steps.BASELINE, home=tmp_path, expect=1)
    assert [entry["code"] for entry in found["blockers"]] == ["baseline-of-other-prompts"]
    assert told(*words, home=tmp_path, expect=1)["status"] == "regressed", "the expectation is the baseline"


def test_readiness_refuses_a_golden_verdict_by_name(tmp_path: Path) -> None:
    (file,) = told(*BUILT_IN, home=tmp_path)["files"]
    release = tmp_path / "release.json"
    release.write_text(json.dumps({"version": 1, "files": [{"path": "app.py", "sha256": "ab" * 32}]}))
    words = ("production", "readiness", "--metrics", file, "--release-manifest", release)
    found = told(*words, home=tmp_path, expect=1)
    assert "regression-evidence-refused" in {entry["code"] for entry in found["blockers"]}
    assert found["status"] == "blocked"


def test_a_call_that_cannot_be_used_says_what_to_do(tmp_path: Path) -> None:
    done = call(*BUILT_IN, "--records", steps.RECORDS, home=tmp_path, expect=2)
    assert "give --records and --prompts together" in done.stderr
    done = call("golden", "run", "--answerer", "/no/such/command", home=tmp_path, expect=2)
    assert "cannot be started" in done.stderr
    (tmp_path / "broken.json").write_text("{")
    done = call(*BUILT_IN, "--baseline", tmp_path / "broken.json", home=tmp_path, expect=2)
    assert "truncated" in done.stderr
    assert not (tmp_path / "golden-runs").exists()


@pytest.mark.skipif(not MUSEUM.exists(), reason="the shared data folder is absent")
def test_a_real_collection_of_three_thousand_records(tmp_path: Path) -> None:
    prompts, frozen = tmp_path / "prompts.json", tmp_path / "frozen.json"
    call("golden", "prompts", "--records", MUSEUM, "--output", prompts, home=tmp_path)
    words = (*BUILT_IN, "--records", MUSEUM, "--prompts", prompts)
    first = told(*words, "--write-baseline", frozen, home=tmp_path, expect=1)
    assert first["result"]["outcomes"]["error"] == 0
    assert told(*words, "--baseline", frozen, home=tmp_path)["result"]["counts"]["same"] == 120
