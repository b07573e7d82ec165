"""`meta-eval production collection-readiness`, `readiness` and `release-manifest`, as a person calls them."""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.evidence.errors import InputError
from meta_eval.evidence.files import write_document
from meta_eval.lanes.production import collection, readiness_page, release, stages
from meta_eval.lanes.production.rounds import artifact_name
from meta_eval_tests.cli.test_production import call, put
from meta_eval_tests.lanes.production.broken import scored, whole
from meta_eval_tests.lanes.production.test_readiness import LAST_FRESH, case
from meta_eval_tests.valid_world import ASSEMBLED_AT, START, World, sha

FRESH = ("--as-of", written_instant(LAST_FRESH))


def round_of(home: Path, name: str, **size: Any) -> Path:
    """A round that holds a verdict, what it was made from, and its release manifest."""
    from meta_eval.lanes.production import metrics

    made = whole(**size)
    verdict = metrics.evaluate(
        made.frozen, made.bundle, made_at=ASSEMBLED_AT, policy=made.world.policy, round_name=name
    )
    folder = home / "rounds" / name
    write_document(folder / "artifacts" / verdict["artifact"] / artifact_name(verdict), verdict)
    write_document(folder / "inbox" / "release-manifest.json", made.world.release())
    return folder


def told(*words: str | Path, home: Path | None = None, expect: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(call("production", *words, "--json", home=home, expect=expect).stdout)
    return answer


@pytest.fixture
def files(tmp_path: Path) -> tuple[str | Path, ...]:
    metrics = write_document(tmp_path / "metrics.json", whole().verdict)
    manifest = write_document(tmp_path / "release.json", World().release())
    return "--metrics", metrics, "--release-manifest", manifest


def test_collection_waits_for_a_person_then_for_activation(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = told("collection-readiness", "--output", out, "--as-of", written_instant(START), expect=1)
    assert first["status"] == "awaiting-human-approval"
    assert json.loads((out / "collection-contract.json").read_text()) == dict(collection.CONTRACT)
    blank = json.loads((out / "collection-approval-template.json").read_text())
    filled = blank | {
        "approverCode": "APP-1A",
        "approvedAt": written_instant(START),
        "evidenceUrl": "https://evidence.metmuseum.org/approval",
        "receiptSha256": sha("approval"),
    }
    approved = ("--approval", put(tmp_path / "approval.json", filled), "--as-of", written_instant(START))
    ready = told("collection-readiness", *approved)
    assert (ready["status"], ready["result"]["collectionEnabled"]) == ("ready-for-runtime-activation", False)
    assert told("collection-readiness", *approved, "--switch", "on")["result"]["collectionEnabled"] is True
    other = ("--approval", put(tmp_path / "other.json", filled | {"contractSha256": sha("another")}))
    assert told("collection-readiness", *other, expect=1)["status"] == "approval-mismatch"
    call("verify", out)


def test_a_release_is_ready_by_files_and_the_artifact_verifies(tmp_path: Path, files: tuple[Any, ...]) -> None:
    out = tmp_path / "out"
    assert told("readiness", *files, *FRESH, "--output", out)["status"] == "ready"
    assert "release-readiness ready" in call("verify", out).stdout
    stale = told("readiness", *files, "--as-of", written_instant(LAST_FRESH + 1), expect=1)
    assert [entry["code"] for entry in stale["blockers"]] == ["trace-stale"]
    assert not list(tmp_path.glob("*/*")) or {path.name for path in out.iterdir()} == {"release-readiness.json"}


def test_without_a_verdict_the_round_that_measured_the_release_is_found(tmp_path: Path, files: tuple[Any, ...]) -> None:
    manifest = files[2:]
    missing = told("readiness", *manifest, *FRESH, home=tmp_path, expect=1)
    assert [entry["code"] for entry in missing["blockers"]] == ["metrics-missing"]
    round_of(tmp_path, "r-1")
    assert told("readiness", *manifest, *FRESH, home=tmp_path)["status"] == "ready"
    call("production", "readiness", home=tmp_path, expect=2)


def test_a_round_is_judged_kept_and_verified_with_its_chain(tmp_path: Path) -> None:
    folder = round_of(tmp_path, "r-1")
    first = told("readiness", "--round", "r-1", *FRESH, home=tmp_path)
    assert (first["status"], first["reused"]) == ("ready", False)
    assert told("readiness", "--round", "r-1", *FRESH, home=tmp_path)["reused"] is True
    stale = told(
        "readiness", "--round", "r-1", "--as-of", written_instant(LAST_FRESH + DAY_MS), home=tmp_path, expect=1
    )
    assert {entry["code"] for entry in stale["blockers"]} == {"trace-stale"}
    assert len(list((folder / "artifacts" / "release-readiness").glob("*.json"))) == 2
    results = json.loads(call("verify", "--round", "r-1", "--json", home=tmp_path, expect=1).stdout)["artifacts"]
    # The verdict's own inputs are not in this folder; both readinesses are linked to the verdict, and hold.
    assert {entry["artifact"] for entry in results if entry["verified"]} == {"release-readiness"}
    for stage in stages.STAGES[:-1]:
        put_stage = folder / "artifacts" / stage.kind
        write_document(put_stage / "1.json", {"status": "ready"})
    assert call("rounds", home=tmp_path).stdout.split() == ["r-1", "readiness", "blocked"]
    for stage in stages.STAGES[:-1]:
        (folder / "artifacts" / stage.kind / "1.json").unlink()
    chain = json.loads(call("lineage", "--round", "r-1", "--json", home=tmp_path).stdout)
    assert chain[-1]["stage"] == "readiness"
    rows = json.loads(
        call("query", "--json", "SELECT requirement, state FROM release_requirements", home=tmp_path).stdout
    )
    assert {"requirement": "traces-fresh", "state": "missed"} in rows
    assert len(rows) == 14
    call("production", "readiness", "--round", "r-1", "--output", tmp_path / "o", home=tmp_path, expect=2)


def test_a_rehearsal_is_refused_by_its_command_and_nowhere_else(tmp_path: Path) -> None:
    round_of(tmp_path, "r-1", environment="rehearsal")
    refused = told("readiness", "--round", "r-1", *FRESH, home=tmp_path, expect=1)
    assert [entry["code"] for entry in refused["blockers"]] == ["rehearsal-refused"]
    assert refused["environment"] == "rehearsal"


def test_the_release_folder_is_compared_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "a.txt").write_text("1")
    manifest = tmp_path / "manifest.json"
    call("release-manifest", folder, "--output", manifest)
    document = json.loads(manifest.read_text())
    world = World()
    world.release = lambda: document  # type: ignore[method-assign]
    metrics = write_document(tmp_path / "metrics.json", scored(world).verdict)
    given = ("--metrics", metrics, "--release-manifest", manifest, "--release", folder, *FRESH)
    assert told("readiness", *given)["status"] == "ready"
    for edit, code in (
        (lambda: (folder / "b.txt").write_text("2"), "release-file-unlisted"),
        (lambda: (folder / "b.txt").unlink() or (folder / "a.txt").write_text("3"), "release-file-changed"),
        (lambda: (folder / "a.txt").unlink(), "release-file-missing"),
    ):
        edit()
        assert [entry["code"] for entry in told("readiness", *given, expect=1)["blockers"]] == [code]


def test_the_page_shows_each_requirement_and_what_to_do(tmp_path: Path, files: tuple[Any, ...]) -> None:
    page = tmp_path / "page.html"
    call("production", "readiness", *files, *FRESH, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert text.count("✓ met") == 7
    assert "authorises no publication" in text
    assert not any(word in text for word in ("<script", "src=", "href=", "http:", "https:"))
    stale = case()
    stale.made_at = LAST_FRESH + 1
    shown = readiness_page.page(stale.judged()).decode()
    assert shown.count("✗ missed") == 1
    assert "collect fresh traces" in shown
    assert readiness_page.page(stale.judged()) == readiness_page.page(stale.judged())


def test_the_page_escapes_whatever_it_shows() -> None:
    judged = case().judged()
    judged["round"] = judged["blockers"] = None
    judged |= {"round": "<b>r</b>", "blockers": [{"code": "<i>", "subject": '"><script>', "count": 1}]}
    text = readiness_page.page(judged).decode()
    assert "<b>r" not in text
    assert "<script" not in text
    assert "<i>" not in text


# --- the release manifest -------------------------------------------------------------------------------------------


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        release.listed(folder)
    return caught.value.rule


def test_paths_ascend_by_code_point_over_folders(tmp_path: Path) -> None:
    for name in ("b/z", "a-b", "a/b", "Z"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    assert [entry["path"] for entry in release.listed(tmp_path)] == ["Z", "a-b", "a/b", "b/z"]
    assert release.listed(tmp_path)[0]["sha256"] == hashlib.sha256(b"Z").hexdigest()


@pytest.mark.parametrize(("one", "other"), [("Read.txt", "read.txt"), ("é.txt", unicodedata.normalize("NFD", "é.txt"))])
def test_two_names_that_some_disk_takes_for_one_are_refused(tmp_path: Path, one: str, other: str) -> None:
    (tmp_path / one).write_text("1")
    (tmp_path / other).write_text("2")
    assert refused(tmp_path) == "two names that differ by case or by Unicode form only"


def test_links_and_special_files_are_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    release_folder = tmp_path / "release"
    release_folder.mkdir()
    (release_folder / "link").symlink_to(elsewhere)
    assert refused(release_folder) == "a link in a release"
    (release_folder / "link").unlink()
    (release_folder / "gone").symlink_to(elsewhere / "nothing")
    assert refused(release_folder) == "a link in a release"
    (release_folder / "gone").unlink()
    os.mkfifo(release_folder / "pipe")
    assert refused(release_folder) == "neither a file nor a folder"


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_text("1")
    assert refused(tmp_path) == "a file name that is not UTF-8"


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The suite may run as root, whom no permission stops, so the refusal is played.
    def walk(_: Path, onerror: Any) -> list[Any]:
        onerror(PermissionError(13, "denied", str(tmp_path)))
        return []

    monkeypatch.setattr(release.os, "walk", walk)
    assert refused(tmp_path) == "cannot be listed"


def test_an_empty_folder_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "release" / "empty").mkdir(parents=True)
    done = call("release-manifest", tmp_path / "release", "--output", tmp_path / "m.json", expect=2)
    assert "no file to release" in done.stderr
    assert not (tmp_path / "m.json").exists()


def test_a_big_file_is_read_in_pieces(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    with (folder / "big").open("wb") as file:
        file.truncate(200_000_000)
    digest = hashlib.sha256()
    for _ in range(200):
        digest.update(bytes(1_000_000))
    import tracemalloc

    tracemalloc.start()
    [entry] = release.listed(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert entry["sha256"] == digest.hexdigest()
    assert peak < 20_000_000
