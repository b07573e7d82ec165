"""Evidence on disk: private, whole or not there at all, and never over something else."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from meta_eval.evidence.errors import InputError, OverwriteError
from meta_eval.evidence.files import private_folder, remove_partials, replacing, write_bytes, write_document


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".partial"))


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_files_are_0600_in_folders_that_are_0700(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        file = write_document(tmp_path / "rounds" / "spring" / "a.json", {"b": 1, "a": "é"})
    finally:
        os.umask(before)
    assert (mode(file), mode(file.parent), mode(file.parent.parent)) == (0o600, 0o700, 0o700)
    assert file.read_bytes() == '{"a":"é","b":1}\n'.encode()
    assert leftovers(file.parent) == []


def test_the_same_bytes_again_are_fine(tmp_path: Path) -> None:
    first = write_bytes(tmp_path / "a", b"one")
    born = first.stat().st_ino
    assert write_bytes(tmp_path / "a", b"one") == first
    assert first.stat().st_ino == born, "the file that was there is kept"


def test_other_bytes_never_replace_what_is_there(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"one")
    with pytest.raises(OverwriteError, match="never overwritten"):
        write_bytes(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert leftovers(tmp_path) == []


def test_a_symbolic_link_is_never_followed_nor_replaced(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"one")
    (tmp_path / "a").symlink_to(target)
    for data in (b"one", b"two"):
        with pytest.raises(OverwriteError):
            write_bytes(tmp_path / "a", data)
    (tmp_path / "b").symlink_to(tmp_path / "nothing")
    with pytest.raises((OverwriteError, InputError)):
        write_bytes(tmp_path / "b", b"one")
    assert target.read_bytes() == b"one"
    assert not (tmp_path / "nothing").exists()


def test_a_block_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    class CrashError(Exception):
        pass

    with pytest.raises(CrashError), replacing(tmp_path / "a") as file:  # noqa: PT012
        file.write(b"half")
        raise CrashError
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_is_killed_leaves_no_file_of_that_name_and_its_rest_is_cleaned_up(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from meta_eval.evidence.files import replacing
        with replacing(Path(sys.argv[1]) / "a") as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert run.returncode == -9
    assert not (tmp_path / "a").exists()
    assert len(leftovers(tmp_path)) == 1
    assert remove_partials(tmp_path) == 1
    write_bytes(tmp_path / "a", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_rest_of_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as file:
        assert remove_partials(tmp_path) == 0
        file.write(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_killed_writers_rest_goes_though_a_living_process_has_its_number_now(tmp_path: Path) -> None:
    code = "import os, signal, sys, pathlib; from meta_eval.evidence.files import replacing\n"
    code += "with replacing(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False).returncode == -9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "kill", lambda *_: None)  # every process lives
        assert remove_partials(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_cleaned_up_before_it_was_locked_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, removed = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        removed.append(remove_partials(tmp_path))
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write_bytes(tmp_path / "a", b"whole")
    assert removed == [1]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_writer_removes_what_a_killed_writer_of_that_name_left_and_nothing_else(tmp_path: Path) -> None:
    dead, alive = "99999999999999999999-ab", f"{os.getpid()}-ab"
    others = [".a.json", f".b.{dead}.partial", f".a.{alive}.partial", "a.partial"]
    for name in (*others, f".a.{dead}.partial", f".a[1].{dead}.partial"):
        (tmp_path / name).write_bytes(b"half")
    write_bytes(tmp_path / "a", b"whole")
    write_bytes(tmp_path / "a[1]", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "a", "a[1]"])


@pytest.mark.parametrize("name", [".a.99999999999999999999-ab.partial", ".a.x-ab.partial", ".partial.partial"])
def test_a_rest_that_no_living_process_can_own_is_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert remove_partials(tmp_path) == 1


def test_of_rival_writers_one_wins_and_the_others_are_refused(tmp_path: Path) -> None:
    def attempt(n: int) -> str:
        try:
            write_bytes(tmp_path / "a", str(n).encode() * 10_000)
        except OverwriteError:
            return "refused"
        return "won"

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(attempt, range(8)))
    assert sorted(results) == ["refused"] * 7 + ["won"]
    data = (tmp_path / "a").read_bytes()
    assert data == data[:1] * 10_000, "one writer's bytes, whole"
    assert leftovers(tmp_path) == []


def test_rival_writers_of_the_same_bytes_all_succeed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: write_bytes(tmp_path / "a", b"same"), range(8)))) == 1


def test_a_folder_where_a_file_is_due_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_bytes(tmp_path / "a", b"one")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be made"):
        private_folder(tmp_path / "file" / "inside")
    with pytest.raises(InputError, match="cannot be made"):
        private_folder(tmp_path / "file")
