"""Stage 3: the question export, consented questions under pseudonyms, and a public receipt of counts and digests.

Source: the production evaluation document. Filtering a log never proves that it is production data, so the export
needs a person's completed attestation of this very file. Nothing at all is exported unless enough eligible
questions remain. `judge` decides; only then does the caller write the questions and seal the artifact.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, at_least, made_at_ms, named_inputs, sealed
from meta_eval.evidence.chronology import instant_ms, written_instant
from meta_eval.evidence.documents import WRITTEN_INSTANT, Keyed, kept_part, none_or, read, read_projection, whole_number
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import documents
from meta_eval.lanes.production.policy import Policy, policy_of
from meta_eval.lanes.production.query_log import OUTCOMES, LogScan

KIND = "question-export"
AUTHORITY = {
    "provesProductionTraffic": False,
    "permitsLabelling": False,
    "statement": "Questions that people agreed to have evaluated. The filter proves nothing about their origin.",
}


@dataclass(frozen=True)
class Judged:
    """An export that has been decided on but not written: its replay, inputs and blockers."""

    replay: dict[str, Any]
    inputs: dict[str, dict[str, str]]
    blockers: list[Blocker]
    environment: str | None
    source: str | None


def judge(
    scan: LogScan, attestation: object, *, attestation_receipt: str, key: bytes, made_at: int, policy: Policy
) -> Judged:
    """Whether a scanned log may be exported under an attestation, judged at `made_at`."""
    environment = documents.environment_of(attestation)
    newest = scan.newest_asked_at_ms
    replay = {
        "attestation": read(attestation, documents.attestation(environment), subject="attestation").projection,
        "outcomes": scan.counts,
        "newestAskedAt": None if newest is None else written_instant(newest),
    }
    inputs = {
        "queryLog": {"receipt": scan.receipt},
        "attestation": {"receipt": attestation_receipt},
        "pseudonymKey": {"digest": hashlib.sha256(key).hexdigest()},
    }
    return _judged(replay, inputs, made_at, policy)


def seal(
    judged: Judged, *, export_receipt: str | None, made_at: int, policy: Policy, round_name: str | None = None
) -> Artifact:
    """The artifact of a judged export.

    Raises:
        ValueError: `export_receipt`, the SHA-256 of the written file, is given for a blocked export, or is missing.
    """
    ready = not judged.blockers
    if ready is (export_receipt is None):
        raise ValueError("an export is written where nothing blocks it, and only there")
    replay = {**judged.replay, "exportSha256": export_receipt}
    return sealed(
        kind=KIND,
        environment=judged.environment,
        round_name=round_name,
        status="ready" if ready else "blocked",
        blockers=judged.blockers,
        policy_digest=policy.digest,
        made_at_ms=made_at,
        inputs=judged.inputs,
        result={
            "exportSha256": export_receipt,
            "caseCount": judged.replay["outcomes"]["eligible"] if ready else 0,
            "rowCount": sum(judged.replay["outcomes"].values()),
            "outcomes": judged.replay["outcomes"],
        },
        replay=replay,
        authority=AUTHORITY,
    )


def rebuild(artifact: Artifact) -> Artifact:
    """The artifact again, from its own replay."""
    made_at, policy = made_at_ms(artifact), policy_of(artifact)
    kept = dict(artifact["replay"])
    export_receipt = kept.pop("exportSha256")
    judged = _judged(kept, artifact["inputs"], made_at, policy)
    return seal(judged, export_receipt=export_receipt, made_at=made_at, policy=policy, round_name=artifact["round"])


def public_receipt(export: Artifact) -> dict[str, Any]:
    """Counts and digests only: what anybody may see of an export."""
    return {
        "version": 1,
        "status": export["status"],
        "statusDigest": export["digest"],
        "policyDigest": export["policyDigest"],
        "exportSha256": export["result"]["exportSha256"],
        "logSha256": export["inputs"]["queryLog"]["receipt"],
        "attestationSha256": export["inputs"]["attestation"]["receipt"],
        "pseudonymKeySha256": export["inputs"]["pseudonymKey"]["digest"],
        "caseCount": export["result"]["caseCount"],
        "rowCount": export["result"]["rowCount"],
        "outcomes": export["result"]["outcomes"],
        "blockers": export["blockers"],
    }


_COUNT = whole_number(least=0, most=2**53 - 1, rule="not-a-count")
_COUNTED = Keyed({"outcomes": Keyed(dict.fromkeys(OUTCOMES, _COUNT)), "newestAskedAt": none_or(WRITTEN_INSTANT)})


def _judged(replay: dict[str, Any], inputs: dict[str, dict[str, str]], made_at: int, policy: Policy) -> Judged:
    environment = documents.environment_of(replay["attestation"])
    reading = read_projection(replay["attestation"], documents.attestation(environment), subject="attestation")
    counted = kept_part(
        {key: replay[key] for key in _COUNTED.keys},
        _COUNTED,
        pointer="/replay",
    )
    if counted["outcomes"]["eligible"] and counted["newestAskedAt"] is None:
        raise VerificationError("replay", "eligible rows that were never asked", "/replay/newestAskedAt")
    replay = {"attestation": reading.projection, **counted}
    attestation = reading.value or {}
    blockers = [
        *reading.blockers,
        *_attestation_blockers(attestation, inputs, replay["newestAskedAt"], made_at, policy),
        *at_least(
            replay["outcomes"]["eligible"], policy.least_cases, code="too-few-eligible-questions", subject="queryLog"
        ),
    ]
    named = named_inputs(inputs, {"queryLog": "receipt", "attestation": "receipt", "pseudonymKey": "digest"})
    return Judged(replay, named, blockers, attestation.get("environment"), attestation.get("source"))


def _attestation_blockers(
    attestation: dict[str, Any], inputs: dict[str, dict[str, str]], newest: str | None, made_at: int, policy: Policy
) -> list[Blocker]:
    blockers = []
    attested = attestation.get("logSha256")
    if attested is not None and attested != inputs["queryLog"]["receipt"]:
        blockers.append(Blocker("log-receipt-mismatch", "attestation.logSha256"))
    exported_at = instant_ms(attestation.get("exportedAt"))
    if exported_at is None:
        return blockers
    newest_ms = instant_ms(newest)
    if exported_at > made_at:
        blockers.append(Blocker("attestation-in-the-future", "attestation.exportedAt"))
    if made_at - exported_at > policy.attestation_ms:
        blockers.append(Blocker("attestation-stale", "attestation.exportedAt"))
    if newest_ms is not None and exported_at < newest_ms:
        blockers.append(Blocker("attestation-before-newest-row", "attestation.exportedAt"))
    return blockers
