"""The whole line, from a log in an inbox to a verdict: what each stage trusts, and that no rule goes untested."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import meta_eval
from meta_eval.evidence.artifacts import digest_of
from meta_eval.evidence.canonical import read_document
from meta_eval.evidence.chronology import written_instant
from meta_eval.evidence.errors import VerificationError, WaitingError
from meta_eval.evidence.replay import load_verified
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.stages import STAGES, advance, stage_named
from meta_eval.lanes.production.steps import REBUILDS, Setting
from meta_eval_tests.valid_world import (
    APPROVED_AT,
    ASSEMBLED_AT,
    FROZEN_AT,
    MINUTE,
    OBSERVED_AT,
    REVIEWED_AT,
    START,
    blockers,
    sha,
)

HOST = "https://evidence.metmuseum.org"
STAGE_TIMES = [START, START, START, APPROVED_AT, APPROVED_AT, ASSEMBLED_AT, ASSEMBLED_AT]


def put(round_: Round, name: str, document: Any) -> None:
    (round_.inbox / name).write_text(json.dumps(document))


def worksheet(round_: Round, start: str) -> Any:
    found = sorted(round_.worksheets.glob(f"{start}.*.json"))
    return read_document(found[-1])[0]


def fill_inbox(round_: Round, stage: str) -> None:
    """What people put in the inbox before a stage, filled in from the blank forms that the line made."""
    if stage == "log_attestation":
        rows = [
            {
                "queryId": f"query-{n}",
                "question": f"What is the story of object number {n}?",
                "askedAt": written_instant(START - 60 * MINUTE + n),
                "outcome": "answered",
                "consent": {
                    "contract": "research-ai-evaluation-v1",
                    "granted": True,
                    "recordedAt": written_instant(START - 90 * MINUTE),
                },
            }
            for n in range(60)
        ]
        put(round_, "ai-query-log.json", rows)
    elif stage == "question_export":
        template = worksheet(round_, "attestation-template")
        attested = {
            "environment": "production",
            "source": f"{HOST}/log",
            "exportedAt": written_instant(START),
            "operatorCode": "OPS-7Q",
            "questionCollectionApproved": True,
        }
        put(round_, "attestation.json", template | attested)
    elif stage == "frozen_labels":
        labels = worksheet(round_, "labels-worksheet") | {"frozenAt": written_instant(FROZEN_AT)}
        for n, case in enumerate(labels["cases"]):
            case |= {"shouldRefuse": n >= 40, "relevantClaimIds": [] if n >= 40 else [f"claim-{n}"]}
        labels["approval"] = {
            "approverCode": "APP-1A",
            "approvedAt": written_instant(APPROVED_AT),
            "evidenceUrl": f"{HOST}/approval",
            "receiptSha256": sha("approval"),
            "independentOfRunOperator": True,
        }
        put(round_, "labels.json", labels)
    elif stage == "run_kit":
        put(round_, "run-operator.json", {"version": 1, "operatorCode": "OPS-7Q"})
    elif stage == "assembled_bundle":
        fill_run(round_)


def fill_run(round_: Round) -> None:
    observed = worksheet(round_, "observation-worksheet")
    for n, row in enumerate(observed["observations"]):
        row |= {
            "traceSha256": sha(f"trace-{n}"),
            "observedAt": written_instant(OBSERVED_AT),
            "modelVersion": "assist-4.1",
            "promptVersion": "p-12",
            "refused": n >= 40,
            "claims": [] if n >= 40 else [{"claimId": f"claim-{n}", "citations": [f"{HOST}/objects/{n}"]}],
            "latencyMs": 100 + n,
            "cost": {"amount": "0.002", "currency": "EUR", "basis": "production-instrumentation"},
        }
    claims = {row["caseId"]: row["claims"] for row in observed["observations"]}
    entries = [
        entry
        | {
            "reviewerCode": f"REV-{lane.upper()}1",
            "reviewedAt": written_instant(REVIEWED_AT),
            "evidenceUrl": f"{HOST}/reviews",
            "receiptSha256": sha(f"review-{entry['caseId']}"),
            "decisions": [
                {"claimId": claim["claimId"], "citation": url, "supported": True}
                for claim in claims[entry["caseId"]]
                for url in claim["citations"]
            ],
        }
        for lane in ("a", "b")
        for entry in worksheet(round_, f"review-worksheet-{lane}")["reviews"]
    ]
    put(round_, "observations.json", observed)
    put(round_, "reviews.json", {"version": 1, "datasetDigest": observed["datasetDigest"], "reviews": entries})
    put(round_, "evidence-reference.json", {"version": 1, "evidenceUrl": f"{HOST}/run", "receiptSha256": sha("run")})
    put(round_, "release-manifest.json", {"version": 1, "files": [{"path": "app/a.py", "sha256": sha("a")}]})


def run(round_: Round, *, until: str = "production_metrics") -> dict[str, Any]:
    """Every stage in order, up to and with `until`; the artifacts by stage."""
    made = {}
    for stage, made_at in zip(STAGES, STAGE_TIMES, strict=True):
        fill_inbox(round_, stage.name)
        made[stage.name] = advance(round_, stage, Setting(made_at, round_.name))
        if stage.name == until:
            break
    return made


def test_a_round_runs_from_log_to_verdict_and_every_artifact_verifies(tmp_path: Path) -> None:
    made = run(Round(tmp_path, "spring").make())
    statuses = [kept.artifact["status"] for kept in made.values()]
    assert statuses == ["ready"] * 6 + ["passed"]
    for kept in made.values():
        assert load_verified(kept.path, REBUILDS) == kept.artifact
        assert kept.path.stat().st_mode & 0o777 == 0o600
        assert kept.artifact["round"] == "spring"


def test_artifacts_name_by_digest_what_they_were_made_from(tmp_path: Path) -> None:
    made = {name: kept.artifact for name, kept in run(Round(tmp_path, "spring").make()).items()}
    chain = [
        ("prepared_manifest", "questionExport", "receipt", made["question_export"]["result"]["exportSha256"]),
        ("frozen_labels", "preparedManifest", "digest", made["prepared_manifest"]["digest"]),
        ("run_kit", "frozenLabels", "digest", made["frozen_labels"]["digest"]),
        ("assembled_bundle", "frozenLabels", "digest", made["frozen_labels"]["digest"]),
        ("assembled_bundle", "runKit", "digest", made["run_kit"]["digest"]),
        ("production_metrics", "assembledBundle", "digest", made["assembled_bundle"]["digest"]),
    ]
    assert [made[stage]["inputs"][name][kind] for stage, name, kind, _ in chain] == [value for *_, value in chain]


def test_no_question_or_raw_id_is_in_any_file_outside_the_private_folder_and_the_inbox(tmp_path: Path) -> None:
    round_ = Round(tmp_path, "spring").make()
    run(round_)
    files = [path for folder in (round_.artifacts, round_.worksheets) for path in folder.rglob("*.json")]
    assert len(files) >= 12
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "story of object" not in text, path.name
        assert "query-1" not in text, path.name
    private = list(round_.private.iterdir())
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}
    assert len(next(path for path in private if path.name == "pseudonym.key").read_bytes()) == 32


def test_a_stage_waits_for_what_it_needs(tmp_path: Path) -> None:
    round_ = Round(tmp_path, "spring").make()
    for stage in STAGES:
        with pytest.raises(WaitingError, match="waiting for"):
            advance(round_, stage, Setting(START, "spring"))


# From the second stage on: the export reads the log itself and trusts no attestation artifact.
@pytest.mark.parametrize("index", range(1, len(STAGES) - 1))
def test_a_stage_refuses_an_upstream_file_that_was_edited(tmp_path: Path, index: int) -> None:
    round_ = Round(tmp_path, "spring").make()
    upstream, stage = STAGES[index], STAGES[index + 1]
    kept = run(round_, until=upstream.name)[upstream.name]
    fill_inbox(round_, stage.name)
    forged = kept.artifact | {"authority": {"permitsEverything": True}}
    kept.path.chmod(0o600)
    kept.path.write_text(json.dumps(forged | {"digest": digest_of(forged)}))
    with pytest.raises(VerificationError, match="differs"):
        advance(round_, stage, Setting(STAGE_TIMES[index + 1], "spring"))


def test_a_stage_that_runs_again_keeps_what_is_there_unless_something_changed(tmp_path: Path) -> None:
    round_ = Round(tmp_path, "spring").make()
    first = run(round_, until="frozen_labels")["frozen_labels"]
    again = advance(round_, stage_named("frozen_labels"), Setting(APPROVED_AT + 1, "spring"))
    assert (again.reused, again.artifact) == (True, first.artifact)
    labels = read_document(round_.inbox / "labels.json")[0]
    labels["cases"][0]["relevantClaimIds"] = ["claim-other"]
    put(round_, "labels.json", labels)
    relabelled = advance(round_, stage_named("frozen_labels"), Setting(APPROVED_AT + 2, "spring"))
    assert not relabelled.reused
    assert relabelled.artifact["result"]["datasetDigest"] != first.artifact["result"]["datasetDigest"]
    assert len(round_.artifact_files("frozen-labels")) == 2, "the old one stays"


def test_relabelling_after_observing_fails_alignment(tmp_path: Path) -> None:
    round_ = Round(tmp_path, "spring").make()
    run(round_)
    labels = read_document(round_.inbox / "labels.json")[0]
    labels["cases"][0]["relevantClaimIds"] = ["claim-other"]
    put(round_, "labels.json", labels)
    later = Setting(ASSEMBLED_AT + MINUTE, "spring")
    advance(round_, stage_named("frozen_labels"), later)
    verdict = advance(round_, stage_named("production_metrics"), later).artifact
    assert blockers(verdict) == {
        ("labels-differ-from-bundle", "assembledBundle", 1),
        ("dataset-digest-mismatch", "assembledBundle", 1),
    }
    bundle = advance(round_, stage_named("assembled_bundle"), later).artifact
    assert blockers(bundle) == {
        ("dataset-digest-mismatch", "observations.datasetDigest", 1),
        ("dataset-digest-mismatch", "reviews.datasetDigest", 1),
        ("dataset-digest-mismatch", "runKit", 1),
    }


def test_a_blocked_export_writes_no_question_at_all(tmp_path: Path) -> None:
    round_ = Round(tmp_path, "spring").make()
    run(round_, until="log_attestation")
    fill_inbox(round_, "question_export")
    attested = read_document(round_.inbox / "attestation.json")[0]
    put(round_, "attestation.json", attested | {"logSha256": sha("another log")})
    artifact = advance(round_, stage_named("question_export"), Setting(START, "spring")).artifact
    assert blockers(artifact) == {("log-receipt-mismatch", "attestation.logSha256", 1)}
    assert [path.name for path in round_.private.iterdir()] == ["pseudonym.key"]


# --- the same on every machine -----------------------------------------------------------------------------------

WORLD = """
from meta_eval_tests.lanes.production.broken import scored, whole
from meta_eval_tests.valid_world import World
made = whole(overlap=10)
failed = scored(World(overlap=10), decide=lambda r, c, *_: (r + c).encode()[-1] % 3 > 0)
artifacts = (made.prepared, made.frozen, made.kit, made.bundle, made.verdict, failed.bundle, failed.verdict)
print([artifact["digest"] for artifact in artifacts])
"""


def test_h8_every_digest_is_the_same_under_any_zone_and_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", WORLD],
            env=os.environ | {"TZ": zone, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for zone, seed in (("America/New_York", "0"), ("UTC", "1"))
    }
    assert len(outputs) == 1
    assert outputs.pop().count("'") == 14


# --- no rule without a test --------------------------------------------------------------------------------------

PACKAGE = Path(meta_eval.__file__).parent
LANE = PACKAGE / "lanes" / "production"
SOURCES = [
    *(LANE / f"{name}.py" for name in ("attestation", "question_export", "manifest", "labels", "run_kit", "bundle")),
    *(LANE / f"{name}.py" for name in ("metrics", "coverage", "contracts", "documents", "policy")),
    PACKAGE / "evidence" / "documents.py",
    PACKAGE / "evidence" / "gates.py",
]
_CODE = re.compile(r"[a-z]+(?:-[a-z0-9]+)+|repeated")
# Strings of that form in those files that name no blocker.
NO_BLOCKER = frozenset(
    "query-log-attestation question-export prepared-manifest frozen-labels run-kit assembled-bundle production-metrics "
    "provider-receipt production-instrumentation research-ai-evaluation-v1".split()
)
# Faults of a replay that nobody's paper can cause: verification refuses them, see test_mutations.py.
FORGERIES = frozenset("not-a-status not-a-count not-as-written not-question-digests not-a-length".split())


def codes_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {word for word in words if _CODE.fullmatch(word)}


def test_every_blocker_has_a_test() -> None:
    produced = set().union(*map(codes_in, SOURCES)) - NO_BLOCKER
    assert len(produced) > 80
    tests = [path for path in Path(__file__).parents[2].rglob("test_*.py") if path != Path(__file__)]
    tested = set().union(*map(codes_in, [*tests, Path(__file__)])) - NO_BLOCKER
    assert sorted(produced - tested - FORGERIES) == []


def test_every_check_of_the_contracts_is_named_in_a_test() -> None:
    tree = ast.parse((LANE / "contracts.py").read_text(encoding="utf-8"))
    names = [
        keyword.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    ]
    tested = set().union(*map(codes_in, Path(__file__).parent.glob("test_*.py")))
    assert len(names) > 25
    assert [name for name in names if name not in tested] == []
