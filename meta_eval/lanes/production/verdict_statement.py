"""A verdict for others: an in-toto Statement v1 of the published test-result predicate.

Source: the interop contract. The subjects are the bundle and the release that were measured; the configuration names
policy, labels and the verdict itself by digest. A rehearsal or a blocked verdict is WARNED, never PASSED.
"""

from __future__ import annotations

from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.errors import VerificationError
from meta_eval.lanes.production import metrics
from meta_eval.lanes.production.figures import FIGURES

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
_RESULTS = {"passed": "PASSED", "failed": "FAILED", "rehearsed": "WARNED"}


def statement_of(verdict: Artifact) -> dict[str, Any]:
    """The Statement of a verified verdict.

    Raises:
        VerificationError: another kind of artifact, or a blocked verdict, which has no bundle to speak of.
    """
    if verdict["artifact"] != metrics.KIND:
        raise VerificationError(verdict["artifact"], f"not a verdict; give a {metrics.KIND} artifact", "/artifact")
    if verdict["status"] == "blocked":
        raise VerificationError(verdict["artifact"], "a blocked verdict, which says nothing about a release", "/status")
    result = verdict["result"]
    tests = {name: figure["met"] for name, figure in result["metrics"].items() if figure.get("met") is not None}
    rehearsal = verdict["status"] == "rehearsed"
    met = [_test_name(name, result["metrics"][name]) for name in FIGURES if tests.get(name) is True]
    missed = [_test_name(name, result["metrics"][name]) for name in FIGURES if tests.get(name) is False]
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": "evidence-bundle", "digest": {"sha256": result["bundleDigest"]}},
            {"name": "release-manifest", "digest": {"sha256": result["releaseDigest"]}},
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": _RESULTS[verdict["status"]],
            "configuration": [
                {"name": "policy", "digest": {"sha256": verdict["policyDigest"]}},
                {"name": "frozen-labels", "digest": {"sha256": result["datasetDigest"]}},
                {"name": metrics.KIND, "digest": {"sha256": verdict["digest"]}},
            ],
            "passedTests": [] if rehearsal else met,
            "warnedTests": met if rehearsal else [],
            "failedTests": missed,
        },
    }


def _test_name(name: str, figure: dict[str, Any]) -> str:
    sign = "at most" if name == "p95LatencyMs" else "at least"
    return f"{name} {sign} {figure['threshold']}"
