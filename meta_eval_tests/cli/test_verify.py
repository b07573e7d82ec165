"""`meta-eval verify` on a whole round: each artifact by itself, and the chain between them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.artifacts import digest_of, made_at_ms
from meta_eval.evidence.canonical import digest, file_receipt
from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes import catalogue
from meta_eval.lanes.production import metrics, rounds, stages
from meta_eval.lanes.production.policy import CURRENT_POLICY
from meta_eval.lanes.production.rehearsal.play import Script, play
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.steps import Setting
from meta_eval_tests.cli.test_production import VERDICT, call


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("played")
    round_ = Round(home / "rounds", "r-1")

    def run(names: Sequence[str], at: int) -> bool:
        for stage in names:
            stages.advance(round_, stages.stage_named(stage), Setting(at, "r-1"))
        return True

    assert play(round_, Script(VERDICT, rows=600), run)
    return home


@pytest.fixture
def home(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "home"))


def artifact_file(home: Path, kind: str) -> Path:
    [path] = (home / "rounds" / "r-1" / "artifacts" / kind).glob("*.json")
    return path


def refused(home: Path) -> dict[str, str]:
    """By kind of artifact, why `verify --round` refuses it."""
    done = call("verify", "--round", "r-1", "--json", home=home, expect=1)
    told = json.loads(done.stdout)
    return {Path(entry["path"]).parent.name: entry["reason"] for entry in told["artifacts"] if not entry["verified"]}


def forge(path: Path, change: Any) -> None:
    """Change an artifact and compute its digest anew."""
    artifact = json.loads(path.read_text())
    change(artifact)
    artifact["digest"] = digest_of(artifact)
    path.unlink()
    path.with_name(rounds.artifact_name(artifact)).write_text(json.dumps(artifact))


def test_a_good_round_verifies_by_name_and_among_all(home: Path) -> None:
    assert call("verify", "--round", "r-1", home=home).stdout.endswith("7 verified, 0 refused\n")
    assert call("verify", "--all", home=home).stdout.endswith("7 verified, 0 refused\n")


def test_a_forgery_that_verifies_alone_breaks_the_chain(home: Path) -> None:
    path = artifact_file(home, "query-log-attestation")
    forge(path, lambda artifact: artifact["inputs"]["queryLog"].update(receipt="0" * 64) or _template(artifact))
    assert call("verify", path.parent, home=home).stdout.endswith("1 verified, 0 refused\n")
    assert refused(home) == {
        "query-log-attestation": "made from a file that the round no longer holds at /inputs/queryLog/receipt"
    }


def _template(artifact: dict[str, Any]) -> None:
    artifact["result"]["attestationTemplate"]["logSha256"] = "0" * 64


def test_a_missing_artifact_is_missed_by_those_made_from_it(home: Path) -> None:
    artifact_file(home, "frozen-labels").unlink()
    reason = "made from an artifact that is not in its round at /inputs/frozenLabels/digest"
    assert refused(home) == dict.fromkeys(("run-kit", "assembled-bundle", "production-metrics"), reason)


def test_a_document_changed_after_its_stage_ran_is_noticed(home: Path) -> None:
    reviews = home / "rounds" / "r-1" / "inbox" / "reviews.json"
    reviews.write_text(reviews.read_text() + " ")
    assert refused(home) == {
        "assembled-bundle": "made from a file that the round no longer holds at /inputs/reviews/receipt"
    }


def test_an_artifact_of_another_round_does_not_belong(home: Path) -> None:
    path = artifact_file(home, "production-metrics")
    forge(path, lambda artifact: artifact.update(round="r-2"))
    assert refused(home) == {"production-metrics": "belongs to another round at /round"}


def test_an_artifact_that_the_store_was_never_given_is_noticed_where_the_store_is_at_hand(home: Path) -> None:
    store = catalogue.evidence_store(home / "evidence")
    for path in sorted((home / "rounds" / "r-1" / "artifacts").glob("*/*.json")):
        artifact = json.loads(path.read_text())
        store.load(artifact, catalogue.tables_of(artifact))
    call("verify", "--round", "r-1", home=home)
    # The last of the chain, which no other artifact names: judged an hour later, it would be as honest.
    forge(
        artifact_file(home, "production-metrics"), lambda artifact: artifact.update(madeAt="2026-11-30T01:53:20.000Z")
    )
    reason = "not an artifact that the evidence store was given; run its stage again at /digest"
    assert refused(home) == {"production-metrics": reason}


def test_a_verdict_rebuilt_from_edited_rows_does_not_fit_the_bundle_that_it_names(home: Path) -> None:
    path = artifact_file(home, "production-metrics")
    verdict = json.loads(path.read_text())
    doubted = next(
        decision
        for case in verdict["replay"]["bundle"]["cases"]
        for claim in case["claims"]
        for citation in claim["citations"]
        for decision in citation["decisions"]
        if not decision["supported"]
    )
    doubted["supported"] = True
    verdict["replay"]["assembled"]["bundleDigest"] = digest(verdict["replay"]["bundle"])
    rebuilt = catalogue.REBUILDS["production-metrics"](verdict)
    path.unlink()
    forged = path.with_name(rounds.artifact_name(rebuilt))
    forged.write_text(json.dumps(rebuilt))
    # Every figure follows from its rows, so alone it verifies; its rows are not those of the bundle.
    assert call("verify", forged, home=home).stdout.endswith("1 verified, 0 refused\n")
    reason = "keeps something else than the artifact that it names holds at /replay/bundle"
    assert refused(home) == {"production-metrics": reason}


def rebuild(path: Path, change: Any) -> None:
    """Change what an artifact keeps, and let its own stage rebuild all that follows from it."""
    artifact = json.loads(path.read_text())
    change(artifact)
    rebuilt = catalogue.REBUILDS[artifact["artifact"]](artifact)
    path.unlink()
    path.with_name(rounds.artifact_name(rebuilt)).write_text(json.dumps(rebuilt))


FROM_FILES = "differs from what its stage makes of the files that it names at "


def test_an_artifact_rebuilt_from_an_edited_row_is_not_what_its_stage_makes_of_the_files(home: Path) -> None:
    forged = artifact_file(home, "assembled-bundle")
    rebuild(forged, lambda a: a["replay"]["observations"]["observations"][3].update(latencyMs=1))
    told = refused(home)
    assert told["assembled-bundle"].startswith(FROM_FILES)
    assert (
        told["production-metrics"] == "made from an artifact that is not in its round at /inputs/assembledBundle/digest"
    )


def test_without_the_files_the_store_knows_a_rebuilt_artifact(home: Path) -> None:
    told = json.loads(call("verify", "--round", "r-1", "--json", home=home).stdout)
    assert all(entry["madeAgain"] for entry in told["artifacts"])
    for name in ("inbox", "private"):
        shutil.rmtree(home / "rounds" / "r-1" / name)
    told = refused(home)
    assert "production-metrics" not in told, "it is made from artifacts alone"
    assert told["assembled-bundle"].startswith("made from a file that the round no longer holds")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("run-kit", "runOperator"), ("assembled-bundle", "evidenceReference"), ("assembled-bundle", "runKit")],
)
def test_an_input_that_is_kept_quiet_is_missed(home: Path, kind: str, name: str) -> None:
    def forget(artifact: Any) -> None:
        del artifact["inputs"][name]
        if name == "runKit":
            artifact["replay"]["kit"] = None

    rebuild(artifact_file(home, kind), forget)
    assert refused(home)[kind] == "made from other inputs than its stage takes at /inputs"


def test_another_pseudonym_key_than_the_rounds_is_noticed(home: Path) -> None:
    rebuild(artifact_file(home, "question-export"), lambda a: a["inputs"]["pseudonymKey"].update(digest="ab" * 32))
    reason = "made under another pseudonym key than the round's at /inputs/pseudonymKey/digest"
    assert refused(home)["question-export"] == reason


def test_a_forged_bundle_cannot_hide_behind_the_newest(home: Path) -> None:
    # Dated before the honest one, it is not the newest of its stage; the verdict that is names it.
    honest = artifact_file(home, "assembled-bundle")
    forged = json.loads(honest.read_text())
    forged["replay"]["observations"]["observations"][3]["latencyMs"] = 1
    forged["madeAt"] = written_instant(made_at_ms(forged) - 1)
    forged = catalogue.REBUILDS["assembled-bundle"](forged)
    assert forged["status"] == "ready"
    honest.with_name(rounds.artifact_name(forged)).write_text(json.dumps(forged))
    frozen = json.loads(artifact_file(home, "frozen-labels").read_text())
    path = artifact_file(home, "production-metrics")
    made_at = made_at_ms(json.loads(path.read_text()))
    verdict = metrics.evaluate(frozen, forged, made_at=made_at, policy=CURRENT_POLICY, round_name="r-1")
    path.unlink()
    path.with_name(rounds.artifact_name(verdict)).write_text(json.dumps(verdict))
    reason = "made from something else than what its round holds now at /inputs/assembledBundle/digest"
    assert refused(home) == {"production-metrics": reason}


def test_a_file_that_no_stage_can_read_proves_nothing(home: Path) -> None:
    reviews = home / "rounds" / "r-1" / "inbox" / "reviews.json"
    reviews.write_text("no JSON at all")
    receipt = file_receipt(reviews)
    rebuild(artifact_file(home, "assembled-bundle"), lambda a: a["inputs"]["reviews"].update(receipt=receipt))
    assert refused(home)["assembled-bundle"] == "its stage cannot be run again on what it names at /inputs"


def test_an_artifact_lies_in_the_folder_of_its_kind(home: Path) -> None:
    path = artifact_file(home, "production-metrics")
    path.rename(artifact_file(home, "run-kit").with_name(path.name))
    assert refused(home)["run-kit"] == "kept in the folder of another kind at /artifact"


def test_verifying_leaves_nothing_behind(home: Path) -> None:
    before = sorted(home.rglob("*"))
    call("verify", "--round", "r-1", home=home)
    assert sorted(home.rglob("*")) == before


def test_a_file_keeps_the_name_of_its_artifact(home: Path) -> None:
    path = artifact_file(home, "run-kit")
    path.rename(path.with_name("20990101T000000000Z-000000000000.json"))
    assert refused(home) == {"run-kit": "kept under the name of another artifact at /digest"}


def test_a_file_that_is_no_json_is_named_and_the_others_are_still_verified(home: Path) -> None:
    path = artifact_file(home, "run-kit")
    path.write_bytes(path.read_bytes()[:-100])
    told = refused(home)
    assert told["run-kit"].startswith("truncated")
    assert set(told) == {"run-kit", "assembled-bundle"}


def test_nothing_to_verify_is_not_success(tmp_path: Path) -> None:
    done = call("verify", "--all", home=tmp_path, expect=2)
    assert "no artifact to verify" in done.stderr
    (tmp_path / "empty").mkdir()
    assert "no artifact to verify" in call("verify", tmp_path / "empty", expect=2).stderr
    assert "give one of" in call("verify", expect=2).stderr
