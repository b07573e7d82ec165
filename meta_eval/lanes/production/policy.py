"""Every threshold of the production lane, in one frozen object whose digest is written into every artifact.

Source: the production evaluation document, thresholds section. A policy is never edited: a change is a new
object beside the old one in `KNOWN_POLICIES`, so that what was judged under the old one can still be replayed,
and `rubrics/production-policy-v1.json` holds the same values under lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import DAY_MS
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import Rebuild


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Thresholds by name. Ratios are written `numerator/denominator` and compared as exact fractions."""

    version: int
    freshness_days: int
    """Age of log rows and of traces, in days, inclusive to the millisecond."""
    attestation_days: int
    """Age of an attestation's `exportedAt` when the export runs, in days, inclusive."""
    least_cases: int
    least_cases_per_class: int
    least_reviewed_citations: int
    least_reviewers: int
    least_precision: str
    least_recall: str
    least_citation_accuracy: str
    least_refusal_accuracy: str
    most_p95_latency_ms: int
    longest_question: int
    """Code points."""
    consent_contract: str

    @property
    def freshness_ms(self) -> int:
        return self.freshness_days * DAY_MS

    @property
    def attestation_ms(self) -> int:
        return self.attestation_days * DAY_MS

    def least_ratio(self, metric: str) -> Fraction:
        """The threshold of a ratio metric (`precision`, `recall`, `citation_accuracy`, `refusal_accuracy`)."""
        return Fraction(str(getattr(self, f"least_{metric}")))

    @property
    def document(self) -> dict[str, Any]:
        """The policy as JSON, in camelCase as every document."""
        words = {name: name.split("_") for name in asdict(self)}
        return {
            parts[0] + "".join(part.capitalize() for part in parts[1:]): getattr(self, name)
            for name, parts in words.items()
        }

    @property
    def digest(self) -> str:
        return digest(self.document)


PRODUCTION_POLICY_V1 = Policy(
    version=1,
    freshness_days=35,
    attestation_days=7,
    least_cases=50,
    least_cases_per_class=10,
    least_reviewed_citations=25,
    least_reviewers=2,
    least_precision="9/10",
    least_recall="9/10",
    least_citation_accuracy="19/20",
    least_refusal_accuracy="19/20",
    most_p95_latency_ms=10_000,
    longest_question=1000,
    consent_contract="research-ai-evaluation-v1",
)
CURRENT_POLICY = PRODUCTION_POLICY_V1
KNOWN_POLICIES = {PRODUCTION_POLICY_V1.digest: PRODUCTION_POLICY_V1}


def policy_of(artifact: Mapping[str, Any]) -> Policy:
    """The policy under which an artifact says it was made.

    Raises:
        VerificationError: no policy of that digest was ever in force.
    """
    policy = KNOWN_POLICIES.get(artifact["policyDigest"])
    if policy is None:
        raise VerificationError(artifact["artifact"], "a policy that was never in force", "/policyDigest")
    return policy


def unchanged_policy(made_under: str, policy: Policy, *, subject: str) -> list[Blocker]:
    """A blocker where an earlier stage was made under another policy than the one in force now."""
    return [] if made_under == policy.digest else [Blocker("policy-changed-after-freeze", subject)]


def replayed(build: Callable[..., Artifact]) -> Rebuild:
    """How a stage's artifact is made again: by the stage itself, from the artifact's own replay and inputs, at its own
    recorded time, under the policy that it names.

    Raises, when called:
        VerificationError: that policy was never in force.
    """

    def rebuild(artifact: Artifact) -> Artifact:
        return build(
            artifact["replay"],
            artifact["inputs"],
            made_at=made_at_ms(artifact),
            policy=policy_of(artifact),
            round_name=artifact["round"],
        )

    return rebuild
