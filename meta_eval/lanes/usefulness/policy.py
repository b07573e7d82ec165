"""Every threshold of the usefulness lane, in one frozen object whose digest is written into every artifact.

Source: the usefulness contract. A policy is never edited: a change is a new object beside the old one in
`KNOWN_POLICIES`, and `rubrics/usefulness-v1.json` holds the same values under lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from meta_eval.evidence.canonical import digest
from meta_eval.evidence.errors import VerificationError


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Thresholds by name."""

    version: int
    sets: int
    """Packets in a study, each by its own author."""
    questions_per_set: int
    """Always the denominator."""
    least_useful_per_set: int
    least_combined_gain: int
    """Net useful gain over the baseline, for a candidate that a provider or an agent answers."""
    most_loss_per_set: int
    """How far a set's useful count may fall below the baseline's."""
    refused_similarity: int
    """Token-set ratio from which a new question counts as a repaired old one."""
    listed_similarity: int
    """Token-set ratio from which a person must clear a new question."""
    longest_question: int
    longest_text: int

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


USEFULNESS_POLICY_V1 = Policy(
    version=1,
    sets=2,
    questions_per_set=60,
    least_useful_per_set=41,
    least_combined_gain=1,
    most_loss_per_set=0,
    refused_similarity=90,
    listed_similarity=75,
    longest_question=1000,
    longest_text=20_000,
)
CURRENT_POLICY = USEFULNESS_POLICY_V1
KNOWN_POLICIES = {USEFULNESS_POLICY_V1.digest: USEFULNESS_POLICY_V1}


def policy_of(artifact: Mapping[str, Any]) -> Policy:
    """The policy under which an artifact says it was made.

    Raises:
        VerificationError: no policy of that digest was ever in force.
    """
    policy = KNOWN_POLICIES.get(artifact["policyDigest"])
    if policy is None:
        raise VerificationError(artifact["artifact"], "a policy that was never in force", "/policyDigest")
    return policy
