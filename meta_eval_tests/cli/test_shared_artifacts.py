"""A round whose artifacts machines share: played on one machine, verified and rebuilt on another that has nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from meta_eval.defs.line import run_line
from meta_eval.evidence.artifact_roots import ObjectRoot
from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.production import labels, metrics
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round
from meta_eval_tests import object_storage
from meta_eval_tests.cli.test_production import VERDICT, call
from meta_eval_tests.object_storage import SECRET

KINDS = 7


@pytest.fixture(scope="module", params=["memory://evidence/team", "s3://evidence/team"])
def root(request: pytest.FixtureRequest) -> Iterator[ObjectRoot]:
    with object_storage.s3_server(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("META_EVAL_ARTIFACTS", request.param)
        yield ObjectRoot(request.param)


@pytest.fixture(scope="module")
def played(root: ObjectRoot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine that holds the inbox: a whole rehearsal through Dagster in this process."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "dagster").mkdir()
    shutil.copy(Path(__file__).parents[2] / ".dagster_home" / "dagster.yaml", folder / "dagster")
    home = folder / "home"

    def run(names: Sequence[str], at: int) -> bool:
        told = run_line(home, "r-1", names, as_of=written_instant(at))
        return all(report["state"] == "done" for report in told)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(folder / "dagster"))
        assert play(Round(home / "rounds", "r-1", root), Script(VERDICT, rows=600), run)
    return home


@pytest.fixture
def elsewhere(played: Path, tmp_path: Path) -> Path:
    return tmp_path / "second"


def told(*words: str, home: Path, expect: int = 0) -> Any:
    return json.loads(call(*words, "--json", home=home, expect=expect).stdout)


def verdict(root: ObjectRoot) -> Any:
    return root.files("r-1", metrics.KIND)[-1]


@pytest.fixture
def changed(root: ObjectRoot) -> Iterator[Any]:
    """Puts other bytes in place of an object, as its owner can, and the honest ones back."""
    honest = {}

    def change(file: Any, data: bytes | None) -> None:
        path = root._path(file.key)
        honest[path] = file.read_bytes()
        root._files.rm_file(path) if data is None else root._files.pipe_file(path, data)

    yield change
    for path, data in honest.items():
        root._files.pipe_file(path, data)


def test_artifacts_are_objects_and_everything_private_stays(root: ObjectRoot, played: Path) -> None:
    assert len(root.files_of_round("r-1")) == KINDS
    assert not (played / "rounds/r-1/artifacts").exists()
    keys = root._files.find(root._path(""))
    assert len(keys) == KINDS  # nothing else is there at all
    private = sorted(path.name for path in (played / "rounds/r-1/private").iterdir())
    assert private[0] == "pseudonym.key" or private[1] == "pseudonym.key"
    assert (played / "evidence/evidence.duckdb").exists()


def test_where_the_inbox_lies_every_receipt_is_checked(root: ObjectRoot, played: Path) -> None:
    assert told("verify", "--round", "r-1", home=played)["verified"] == KINDS
    done = call("verify", "--all", home=played)
    assert done.stdout.endswith(f"{KINDS} verified, 0 refused\n")
    assert "not checked" not in done.stdout
    inbox = played / "rounds/r-1/inbox/labels.json"
    kept = inbox.read_bytes()
    inbox.write_bytes(kept + b"\n")
    try:
        done = call("verify", "--round", "r-1", home=played, expect=1)
    finally:
        inbox.write_bytes(kept)
    assert "made from a file that the round no longer holds at /inputs/labels/receipt" in done.stdout


def test_a_machine_with_nothing_verifies_and_says_what_it_cannot_check(root: ObjectRoot, elsewhere: Path) -> None:
    for words in (["verify", "--round", "r-1"], ["verify", "--all"]):
        done = call(*words, home=elsewhere)
        assert done.stdout.endswith(f"{KINDS} verified, 0 refused\n")
        assert "not checked here" in done.stdout
        assert "queryLog" in done.stdout
    artifacts = told("verify", "--round", "r-1", home=elsewhere)["artifacts"]
    unchecked = {entry["artifact"]: entry.get("notChecked", []) for entry in artifacts}
    assert unchecked[labels.KIND] == ["labels"]
    assert unchecked[metrics.KIND] == []
    assert not elsewhere.exists()  # looking leaves nothing behind


def test_the_store_is_rebuilt_from_the_root_alone(root: ObjectRoot, played: Path, elsewhere: Path) -> None:
    assert told("rebuild-store", home=elsewhere) == {"loaded": KINDS, "refused": []}
    sql = "SELECT * FROM recomputed_metrics ORDER BY ALL"
    assert call("query", sql, home=elsewhere).stdout == call("query", sql, home=played).stdout
    assert told("verify", "--round", "r-1", home=elsewhere)["verified"] == KINDS  # also against the store


def test_rounds_and_lineage_are_read_from_the_root(root: ObjectRoot, played: Path, elsewhere: Path) -> None:
    [entry] = told("rounds", home=elsewhere)
    assert (entry["round"], entry["stage"], entry["status"]) == ("r-1", "production_metrics", "rehearsed")
    assert told("lineage", "--round", "r-1", home=elsewhere) == told("lineage", "--round", "r-1", home=played)


def test_another_machine_scores_again_and_the_first_one_sees_it(
    root: ObjectRoot, played: Path, elsewhere: Path, changed: Any
) -> None:
    """A verdict needs artifacts only, so any machine can judge it: at the same time it is the same, and is kept."""
    words = ("production", "evaluate", "--round", "r-1", "--evaluated-at", written_instant(VERDICT))
    again = told(*words, home=elsewhere)
    assert (again["status"], again["reused"]) == ("rehearsed", True)
    assert again["files"] == [str(verdict(root))]
    changed(verdict(root), None)
    made = told(*words, home=elsewhere)
    assert (made["reused"], made["digest"]) == (False, again["digest"])
    assert told("verify", "--round", "r-1", home=played)["verified"] == KINDS


def test_another_machine_makes_no_second_key(root: ObjectRoot, played: Path, elsewhere: Path) -> None:
    shutil.copytree(played / "rounds/r-1/inbox", elsewhere / "rounds/r-1/inbox")
    done = call("production", "export", "--round", "r-1", home=elsewhere, expect=2)
    assert "no pseudonym key can be read here" in done.stderr
    assert not (elsewhere / "rounds/r-1/private/pseudonym.key").exists()


def test_artifacts_of_before_in_the_folder_are_not_passed_over(root: ObjectRoot, elsewhere: Path) -> None:
    folder = elsewhere / "rounds/r-1/artifacts/production-metrics"
    folder.mkdir(parents=True)
    (folder / "old.json").write_text("{}")
    done = call("production", "evaluate", "--round", "r-1", home=elsewhere, expect=2)
    assert "copy its artifacts there" in done.stderr


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (lambda data: data.replace(b'"rehearsed"', b'"passed"'), "the digest is not that of the contents at /digest"),
        (lambda data: data[: len(data) // 2], "truncated: the JSON text ends too early"),
        (lambda data: b"", "empty, where a JSON document is due"),
    ],
)
def test_an_object_that_is_not_what_was_put_is_refused(
    root: ObjectRoot, played: Path, elsewhere: Path, changed: Any, fault: Any, rule: str
) -> None:
    file = verdict(root)
    changed(file, fault(file.read_bytes()))
    done = call("verify", "--round", "r-1", home=elsewhere, expect=1)
    assert f"{file}  {rule}" in done.stdout
    assert done.stdout.endswith(f"{KINDS - 1} verified, 1 refused\n")
    assert told("rebuild-store", home=elsewhere, expect=1)["loaded"] == KINDS - 1
    done = call("production", "evaluate", "--round", "r-1", home=played, expect=1 if b"digest" in rule.encode() else 2)
    assert rule in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_object_that_the_listing_leaves_out_breaks_the_chain(
    root: ObjectRoot, played: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = type(root._files)
    find = files.find
    monkeypatch.setattr(files, "find", lambda *given: [path for path in find(*given) if labels.KIND not in path])
    done = call("verify", "--round", "r-1", home=elsewhere, expect=1)
    assert "made from an artifact that is not in its round at /inputs/frozenLabels/digest" in done.stdout
    done = call("production", "evaluate", "--round", "r-1", home=played, expect=1)
    assert done.stderr == f"meta-eval: waiting for: a {labels.KIND} artifact of round r-1\n"


@pytest.mark.parametrize(
    ("environment", "rule"),
    [
        ({"META_EVAL_ARTIFACTS": "s3://no-such-bucket"}, "no such bucket"),
        ({"META_EVAL_ARTIFACTS": f"s3://user:{SECRET}@evidence"}, "is not s3://BUCKET"),
    ],
)
def test_a_root_that_cannot_be_used_ends_in_one_line(
    root: ObjectRoot, played: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], rule: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    evaluate = ("production", "evaluate", "--round", "r-1")
    for words in (["verify", "--all"], ["verify", "--round", "r-1"], ["rounds"], ["rebuild-store"], evaluate):
        done = call(*words, home=played, expect=2)
        assert rule in done.stderr
        assert done.stderr.count("\n") == 1
        assert SECRET not in done.stderr
    monkeypatch.undo()
    assert told("verify", "--round", "r-1", home=played)["verified"] == KINDS  # and the store is as it was
