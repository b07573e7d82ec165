"""Artifacts under a root of objects: written once, whole, listed as they are, and refused in words of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.artifact_roots import FolderRoot, ObjectRoot, artifact_root_at
from meta_eval.evidence.errors import InputError, OverwriteError, UsageError
from meta_eval_tests import object_storage
from meta_eval_tests.object_storage import SECRET

KEPT = ("r-1", "kind", "20261130T120000000Z-0123456789ab.json")
KEY = "rounds/r-1/artifacts/kind/20261130T120000000Z-0123456789ab.json"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with object_storage.s3_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["memory://evidence", "s3://evidence"])
def root(request: pytest.FixtureRequest, endpoint: str) -> ObjectRoot:
    # A prefix a test: nobody empties a bucket of evidence.
    return ObjectRoot(f"{request.param}/{request.node.name.partition('[')[0]}")


def test_no_url_is_the_rounds_own_folder_byte_for_byte(tmp_path: Path) -> None:
    root = artifact_root_at(None, tmp_path)
    assert root == FolderRoot(tmp_path)
    file = root.keep(*KEPT, {"b": 1, "a": "é"})
    assert file == tmp_path.joinpath(*KEY.split("/")[1:])
    assert file.read_bytes() == '{"a":"é","b":1}\n'.encode()
    assert (tmp_path / "r-1/artifacts/kind").stat().st_mode & 0o777 == 0o700
    assert Path(str(file)).stat().st_mode & 0o777 == 0o600


def test_an_object_has_the_name_and_the_bytes_of_the_file(root: ObjectRoot) -> None:
    file = root.keep(*KEPT, {"b": 1, "a": "é"})
    assert (str(file), file.name, file.key) == (f"{root}/{KEY}", KEPT[-1], KEY)
    assert file.read_bytes() == '{"a":"é","b":1}\n'.encode()


def test_the_same_again_is_nothing_and_another_is_refused(root: ObjectRoot) -> None:
    first = root.keep(*KEPT, {"a": 1})
    assert root.keep(*KEPT, {"a": 1}) == first
    with pytest.raises(OverwriteError, match="never overwritten"):
        root.keep(*KEPT, {"a": 2})
    assert first.read_bytes() == b'{"a":1}\n'


def test_of_writers_at_once_one_is_kept_and_the_others_are_told(root: ObjectRoot) -> None:
    def keep(number: int) -> int | None:
        try:
            root.keep(*KEPT, {"a": number})
        except OverwriteError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        [winner] = [number for number in pool.map(keep, range(8)) if number is not None]
    assert root.found(KEY) == b'{"a":%d}\n' % winner


def test_a_condition_that_fails_after_a_free_look_overwrites_nothing(
    root: ObjectRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rival comes between our look and our put: only the condition of the put can tell."""
    ObjectRoot(str(root)).keep(*KEPT, {"a": 1})
    found, looked = root.found, []

    def found_after_the_first_look(key: str) -> bytes | None:
        looked.append(key)
        return None if len(looked) == 1 else found(key)

    monkeypatch.setattr(root, "found", found_after_the_first_look)
    with pytest.raises(OverwriteError):
        root.keep(*KEPT, {"a": 2})
    assert found(KEY) == b'{"a":1}\n'


def test_lists_are_sorted_and_hold_artifacts_only(root: ObjectRoot) -> None:
    for round_name, kind, name in (
        ("r-2", "labels", "2026-b.json"),
        ("r-1", "labels", "2026-c.json"),
        ("r-1", "labels", "2026-a.json"),
        ("r-1", "bundle", "2026-d.json"),
        ("r-10", "labels", "2026-e.json"),
    ):
        root.keep(round_name, kind, name, {})
    for key in ("README.txt", "rounds/notes.json", "rounds/r-3/inbox/labels.json", "rounds/r-1/artifacts/a/b/c.json"):
        root._files.pipe_file(root._path(key), b"{}")
    assert [file.name for file in root.files("r-1", "labels")] == ["2026-a.json", "2026-c.json"]
    assert [file.name for file in root.files_of_round("r-1")] == ["2026-d.json", "2026-a.json", "2026-c.json"]
    assert [file.name for file in root.every_file()] == [f"2026-{letter}.json" for letter in "abcde"]
    assert root.round_names() == ["r-1", "r-10", "r-2"]
    assert root.files("r-4", "labels") == []


def test_what_another_process_put_is_listed_at_once(endpoint: str) -> None:
    """The other process has a file system of its own, so ours is not told to forget what it listed."""
    root = ObjectRoot("s3://evidence/another-process")
    root.keep(*KEPT, {"a": 1})
    assert len(root.files("r-1", "kind")) == 1
    object_storage.file_system().pipe_file(root._path(KEY.replace("2026", "2027")), b"{}")
    assert len(root.files("r-1", "kind")) == 2


def test_what_is_listed_and_gone_is_an_error(root: ObjectRoot) -> None:
    root.keep(*KEPT, {"a": 1})
    [file] = root.files("r-1", "kind")
    root._files.rm_file(root._path(KEY))
    with pytest.raises(InputError, match="no such object"):
        file.read_bytes()


@pytest.mark.parametrize("landed", [True, False])
def test_a_lost_answer_is_settled_by_what_lies_there(
    root: ObjectRoot, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    put = root._files.pipe_file

    def broken(path: str, data: bytes, mode: str) -> None:
        if landed:
            put(path, data, mode=mode)
        raise TimeoutError(f"no answer; sent with {SECRET}")

    monkeypatch.setattr(root._files, "pipe_file", broken)
    name = f"{landed}.json"
    if landed:
        assert root.keep("r-1", "kind", name, {}).read_bytes() == b"{}\n"
    else:
        with pytest.raises(InputError, match="cannot be reached") as caught:
            root.keep("r-1", "kind", name, {})
        assert SECRET not in str(caught.value)
        assert root.files("r-1", "kind") == [file for file in root.files("r-1", "kind") if file.name != name]


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA:an-invented-secret-that-nothing-may-print@evidence/a",
        "s3://evidence/a?secret=an-invented-secret-that-nothing-may-print",
        "s3://evidence/a#b",
        "s3://evidence/../other",
        "s3://evidence//a",
        "s3:///",
        "s3://evidence/a b",
        "s3://evidence/a::file://b",
        "file:///home/a",
        "https://evidence.example/a",
        "/home/a",
        "evidence",
    ],
)
def test_a_url_holds_a_bucket_and_a_prefix_and_nothing_else(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        artifact_root_at(url, tmp_path)
    assert SECRET not in str(caught.value)
    assert url not in str(caught.value)


def refused(call: Any) -> str:
    """Why a root of objects cannot answer: one line, exit code 2, no secret, and no cause that holds one."""
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.exit_code == 2
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value.rule


def every_call(root: ObjectRoot) -> list[Any]:
    return [
        root.round_names,
        root.every_file,
        lambda: root.files("r-1", "kind"),
        lambda: root.files_of_round("r-1"),
        lambda: root.found(KEY),
        lambda: root.keep(*KEPT, {}),
    ]


def test_a_missing_bucket_is_not_an_empty_one(endpoint: str) -> None:
    root = ObjectRoot("s3://no-such-bucket/a")
    assert {refused(call) for call in every_call(root)} == {"no such bucket"}


def test_no_credentials(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    object_storage.file_system().clear_instance_cache()
    root = ObjectRoot("s3://evidence/a")
    assert {refused(call) for call in every_call(root)} == {"no credentials that can be used"}
    object_storage.file_system().clear_instance_cache()


def test_connection_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in object_storage.environment("http://127.0.0.1:1").items():
        monkeypatch.setenv(name, value)
    object_storage.forget_connections()
    assert refused(ObjectRoot("s3://evidence/a").round_names) == "the storage cannot be reached"
    object_storage.forget_connections()


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (PermissionError(f"denied for {SECRET}"), "access is refused"),
        (OSError(5, SECRET), "the storage failed (OSError)"),
        (RuntimeError(SECRET), "the storage failed (RuntimeError)"),
    ],
)
def test_the_storages_own_words_are_not_passed_on(
    root: ObjectRoot, monkeypatch: pytest.MonkeyPatch, error: Exception, rule: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    for name in ("find", "cat_file", "pipe_file", "exists"):
        monkeypatch.setattr(root._files, name, fail)
    assert {refused(call) for call in every_call(root)} == {rule}


def test_without_the_package_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['s3fs'] = None; from meta_eval.cli.main import main; sys.argv[1:] = ['rounds']; main()"
    )
    environment = {**os.environ, "META_EVAL_ARTIFACTS": "s3://evidence/a"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "install meta-eval[s3]" in done.stderr
