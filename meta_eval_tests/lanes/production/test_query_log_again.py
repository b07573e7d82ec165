"""A second reading with a record of the first says what a whole scan says, or steps aside; and it lets nothing out."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meta_eval.evidence.chronology import DAY_MS, written_instant
from meta_eval.lanes.production import steps
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.query_log import OUTCOMES, again, record, scan_again, scan_log
from meta_eval.lanes.production.query_log import scan as scan_module
from meta_eval.lanes.production.query_log.outcomes import CONTACT_BEARING, ELIGIBLE
from meta_eval.lanes.production.query_log.reading import read_rows
from meta_eval_tests.lanes.production.query_log_world import KEY, NAMED, as_of_ms, cases_of, good_row, lines
from meta_eval_tests.lanes.production.test_query_log_properties import logs, spellings

Told = tuple[Any, ...]


def told(scanned: Any) -> Told:
    """All that a scan says, and the questions that it hands on."""
    log = scanned.log
    return log.receipt, log.byte_count, log.outcomes.tolist(), log.counts, log.newest_asked_at_ms, cases_of(scanned)


def first(path: Path, kept: Path, **options: Any) -> Told:
    with scan_log(
        path, **({"as_of_ms": as_of_ms(), "policy": CURRENT_POLICY, "pseudonyms": NAMED} | options), record=kept
    ) as scanned:
        return told(scanned)


def second(path: Path, kept: Path, **options: Any) -> Told | None:
    with scan_again(
        path, kept, **({"as_of_ms": as_of_ms(), "policy": CURRENT_POLICY, "pseudonyms": NAMED} | options)
    ) as scanned:
        return None if scanned is None else told(scanned)


def whole(path: Path, as_of: int) -> Told:
    with scan_log(path, as_of_ms=as_of, policy=CURRENT_POLICY, pseudonyms=NAMED) as scanned:
        return told(scanned)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    log=logs(),
    chunk=st.sampled_from([7, 100, 4096]),
    later=st.sampled_from([0, 1, 10 * DAY_MS, 20 * DAY_MS, 40 * DAY_MS]),
)
def test_every_spelling_read_again_at_any_later_clock_is_what_a_whole_scan_finds(
    log: tuple[list[tuple[object, Callable[[str], str] | None]], list[str]],
    chunk: int,
    later: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items, expected = log
    with monkeypatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for module in (scan_module, again):
            patch.setattr(module, "read_rows", lambda path: read_rows(path, chunk_bytes=chunk, batch_bytes=chunk * 20))
        path, kept = Path(folder) / "log", Path(folder) / "private" / record.NAME
        for name, data in spellings(items, False).items():
            path.write_bytes(data)
            found = first(path, kept)
            assert [OUTCOMES[index] for index in found[2]] == expected, name
            read_again = second(path, kept, as_of_ms=as_of_ms() + later)
            if "future" in expected and later:
                assert read_again is None, "a question that was never looked at"
            else:
                assert read_again == whole(path, as_of_ms() + later), name


def test_a_conflict_of_ids_ends_when_one_of_the_two_is_stale(tmp_path: Path) -> None:
    consent = good_row(1)["consent"] | {"recordedAt": "2026-10-01T00:00:00.000Z"}
    rows = [
        good_row(1, question="one", askedAt="2026-10-30T00:00:00.000Z", consent=consent),
        good_row(1, question="two"),
    ]
    path, kept = tmp_path / "log", tmp_path / record.NAME
    path.write_text(lines(*rows))
    assert [OUTCOMES[index] for index in first(path, kept)[2]] == ["malformed", "malformed"]
    read_again = second(path, kept, as_of_ms=as_of_ms() + 10 * DAY_MS)
    assert read_again is not None
    assert [OUTCOMES[index] for index in read_again[2]] == ["stale", "eligible"]


# --- a record that does not fit, or lies --------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> tuple[Path, Path]:
    path, kept = tmp_path / "log", tmp_path / "private" / record.NAME
    path.write_text(lines(*(good_row(number) for number in range(60)), good_row(99, question="at guest@example.org")))
    first(path, kept)
    assert second(path, kept) is not None
    return path, kept


def test_a_record_that_is_damaged_anywhere_is_none(kept: tuple[Path, Path]) -> None:
    path, file = kept
    whole_text = file.read_bytes()
    for at in range(0, len(whole_text), 97):
        file.write_bytes(whole_text[:at] + bytes([whole_text[at] ^ 1]) + whole_text[at + 1 :])
        assert second(path, file) is None
        file.write_bytes(whole_text[:at])
        assert second(path, file) is None
    file.unlink()
    assert second(path, file) is None


@pytest.mark.parametrize(
    "options",
    [{"as_of_ms": as_of_ms() - 1}, {"policy": replace(CURRENT_POLICY, longest_question=999)}],
)
def test_a_record_of_a_later_clock_or_another_policy_does_not_fit(
    kept: tuple[Path, Path], options: dict[str, Any]
) -> None:
    assert second(*kept, **options) is None


def test_a_record_of_other_rules_does_not_fit(kept: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "rules_digest", lambda: "0" * 64)
    assert second(*kept) is None


def test_a_record_that_others_may_have_written_is_not_read(kept: tuple[Path, Path]) -> None:
    kept[1].chmod(0o620)
    assert second(*kept) is None


def test_a_log_changed_after_it_was_recorded_is_scanned_anew(kept: tuple[Path, Path]) -> None:
    path, file = kept
    path.write_text(path.read_text().replace("picture 7?", "picture 9?"))
    assert second(path, file) is None
    last = path.read_text().splitlines()[-1]
    path.write_text(path.read_text().replace(last, "{}\n{}".ljust(len(last))))  # as many bytes, and a row more
    assert second(path, file) is None


def _sealed(path: Path, file: Path, change: Callable[[record.Rows], record.Rows]) -> None:
    """A record that is whole and of this log, but for what was changed in its rows."""
    honest = record.fitting(file, byte_count=path.stat().st_size, as_of_ms=as_of_ms(), policy=CURRENT_POLICY)
    assert honest is not None
    (rows,) = list(honest)
    with record.recording(file) as writer:
        writer.add(change(rows))
        writer.finish(honest.binding)


def _called_eligible(rows: record.Rows, row: int) -> record.Rows:
    outcomes, one = rows.outcomes.copy(), np.array([[1, 1]], np.uint64)
    outcomes[row] = ELIGIBLE
    keys = [np.vstack((found, one)) for found in (rows.id_keys, rows.question_keys)]
    return record.Rows(outcomes, rows.asked_at_ms, *keys)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: replace(rows, outcomes=rows.outcomes[:-1]),
        lambda rows: replace(rows, asked_at_ms=rows.asked_at_ms[1:]),
        lambda rows: replace(rows, id_keys=rows.id_keys[1:]),
        lambda rows: replace(rows, question_keys=np.vstack((rows.question_keys, rows.question_keys))),
        lambda rows: replace(rows, outcomes=np.where(rows.outcomes == CONTACT_BEARING, 200, rows.outcomes)),
    ],
)
def test_a_sealed_record_that_does_not_fit_together_is_scanned_past(
    kept: tuple[Path, Path], change: Callable[[record.Rows], record.Rows]
) -> None:
    assert second(*kept) is not None
    _sealed(*kept, change)
    assert second(*kept) is None


def test_a_record_that_calls_a_contact_eligible_lets_nothing_out(kept: tuple[Path, Path]) -> None:
    path, file = kept
    assert first(path, file)[2][60] == CONTACT_BEARING
    _sealed(path, file, lambda rows: _called_eligible(rows, 60))
    assert second(path, file) is None


def test_a_record_holds_nothing_of_the_log(tmp_path: Path) -> None:
    path, file = tmp_path / "log", tmp_path / record.NAME
    path.write_text(lines(*(good_row(n, question=f"zebrafish {n}", queryId=f"canary-{n}") for n in range(9))))
    first(path, file)
    data = file.read_bytes()
    assert b"zebrafish" not in data
    assert b"canary" not in data
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_scan_that_fails_leaves_the_older_record_and_nothing_else(kept: tuple[Path, Path]) -> None:
    path, file = kept
    before = file.read_bytes()
    (file.parent / f".{file.name}.999999999-0.partial").touch()  # a killed run's
    path.write_text(path.read_text() + '{"cut')
    with pytest.raises(Exception, match="truncated"):
        first(path, file)
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]
    assert file.read_bytes() == before


# --- the two steps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_an_export_is_the_same_with_a_record_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(steps, "LARGE_LOG", 0)
    path, private = tmp_path / "log", tmp_path / "private"
    rows = [
        good_row(n, question=f"question {n % 70}", outcome="failed" if n % 9 == 0 else "answered") for n in range(99)
    ]
    data = lines(*rows, "not JSON").encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    attested = steps.attest_log(path, steps.Setting(as_of_ms()), private=private)
    assert steps.attest_log(path, steps.Setting(as_of_ms())) == attested
    document = dict(attested.artifact["result"]["attestationTemplate"])
    document |= {"environment": "production", "source": "https://evidence.metmuseum.org/log", "operatorCode": "OPS-7Q"}
    document |= {"exportedAt": written_instant(as_of_ms()), "questionCollectionApproved": True}
    (tmp_path / "attestation.json").write_text(json.dumps(document))

    def export(name: str, private: Path | None) -> tuple[steps.Step, bytes]:
        step = steps.export_questions(
            path,
            tmp_path / "attestation.json",
            steps.Setting(as_of_ms() + 1000),
            key=KEY,
            export_file=lambda _: tmp_path / name / "export.json",
            private=private,
        )
        return step, (tmp_path / name / "export.json").read_bytes()

    plain = export("plain", None)
    assert plain[0].artifact["status"] == "ready"
    monkeypatch.setattr(steps, "scan_log", lambda *_, **__: pytest.fail("scanned anew"))
    assert export("again", private) == plain
    assert [entry.name for entry in private.iterdir()] == [record.NAME]
