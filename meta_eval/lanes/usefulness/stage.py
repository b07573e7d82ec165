"""What every stage of the lane shares: it judges a replay and seals what it found, the same way when it is replayed.

Source: the evidence contract. A stage's `judge` sees nothing but the replay, the inputs and the setting, so `rebuild`
is `make` on what the artifact keeps. `basis` in each result binds replay, inputs, study, policy and instant together:
a value of the replay that no figure depends on is still bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from meta_eval.evidence.artifacts import Artifact, Blocker, made_at_ms, sealed
from meta_eval.evidence.canonical import digest
from meta_eval.evidence.chronology import written_instant
from meta_eval.lanes.usefulness.policy import CURRENT_POLICY, Policy, policy_of

Row = dict[str, Any]
Inputs = Mapping[str, Mapping[str, str]]
EVIDENCE_CLASS = "usefulness"


@dataclass(frozen=True)
class Setting:
    """The clock (milliseconds), the study and the policy."""

    made_at: int
    study: str
    policy: Policy = CURRENT_POLICY


@dataclass(frozen=True)
class Judged:
    """What a stage found: nothing but blockers, or a result; `verdict` is acceptance's own word instead of ready."""

    environment: str | None
    blockers: Sequence[Blocker]
    result: Row = field(default_factory=dict)
    verdict: str = "ready"


@dataclass(frozen=True)
class Stage:
    """A kind of artifact, what it does not permit, and how its replay is judged."""

    kind: str
    authority: Mapping[str, Any]
    judge: Callable[[Row, Inputs, Setting], Judged]

    def make(self, replay: Row, inputs: Inputs, setting: Setting) -> Artifact:
        """The artifact that this replay amounts to."""
        judged = self.judge(replay, inputs, setting)
        basis = {
            "replay": replay,
            "inputs": {name: dict(entry) for name, entry in inputs.items()},
            "study": setting.study,
            "policy": setting.policy.digest,
            "madeAt": written_instant(setting.made_at),
        }
        return sealed(
            kind=self.kind,
            environment=judged.environment,
            round_name=setting.study,
            status="blocked" if judged.blockers else judged.verdict,
            blockers=judged.blockers,
            policy_digest=setting.policy.digest,
            made_at_ms=setting.made_at,
            inputs=inputs,
            result={"basis": digest(basis), **judged.result},
            replay=replay,
            authority=self.authority,
            evidence_class=EVIDENCE_CLASS if judged.environment == "production" else None,
        )

    def rebuild(self, artifact: Artifact) -> Artifact:
        """The artifact again, from its own replay."""
        setting = Setting(made_at_ms(artifact), str(artifact["round"]), policy_of(artifact))
        return self.make(artifact["replay"], artifact["inputs"], setting)


def by_digest(**artifacts: Artifact) -> dict[str, dict[str, str]]:
    """Artifacts as inputs."""
    return {name: {"digest": artifact["digest"]} for name, artifact in artifacts.items()}
