"""The chain of a round: what one artifact alone cannot prove, and its surroundings can.

Source: the evidence contract. An artifact alone can be forged into the honest artifact of other inputs: another
receipt, another time. In its round, every digest that it names must be that of another artifact there, every receipt
that of a file that is there, and where the evidence store is at hand, its own digest must be one that the store was
given.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.production import (
    attestation,
    bundle,
    documents,
    labels,
    manifest,
    metrics,
    question_export,
    readiness,
    run_kit,
)
from meta_eval.lanes.production.joined import normalised_bundle
from meta_eval.lanes.production.rounds import artifact_name

_KEY = "pseudonymKey"
"""The one input named by a digest that is no artifact's."""
_INPUTS: Mapping[str, frozenset[str]] = {
    attestation.KIND: frozenset({"queryLog"}),
    question_export.KIND: frozenset({"queryLog", "attestation", _KEY}),
    manifest.KIND: frozenset({"questionExport"}),
    labels.KIND: frozenset({"labels", "preparedManifest"}),
    run_kit.KIND: frozenset({"runOperator", "frozenLabels"}),
    bundle.KIND: frozenset(
        {"observations", "reviews", "evidenceReference", "releaseManifest", "frozenLabels", "runKit"}
    ),
    metrics.KIND: frozenset({"frozenLabels", "assembledBundle"}),
}
"""What each stage takes in a round. Outside one, some may be left out."""


@dataclass(frozen=True)
class Surroundings:
    """What lies around the artifacts of a round.

    digests: of every artifact of the round that verified.
    receipts: of every file that people put in, and of every export.
    elsewhere: the inputs whose files this machine does not hold, where machines share the artifacts.
    loaded: the digests that the evidence store was given for this round, or None where no store is at hand.
    key: SHA-256 of the pseudonym key, or None where it is withheld.
    """

    round_name: str | None
    digests: Set[str]
    receipts: Set[str]
    loaded: Set[str] | None
    elsewhere: Set[str] = frozenset()
    key: str | None = None


def broken_link(artifact: Artifact, around: Surroundings, *, file_name: str, newest: bool) -> tuple[str, str] | None:
    """The rule that a verified artifact breaks in its round and the pointer to where, or None.

    Args:
        file_name: the name that the artifact is kept under.
        newest: whether it is the current one of its stage. A document that was replaced later unbinds older ones.
    """
    if artifact["round"] != around.round_name:
        return "belongs to another round", "/round"
    if file_name != artifact_name(artifact):
        return "kept under the name of another artifact", "/digest"
    if artifact["inputs"].keys() != _INPUTS.get(artifact["artifact"], artifact["inputs"].keys()):
        return "made from other inputs than its stage takes", "/inputs"
    for name, entry in artifact["inputs"].items():
        if name == _KEY:
            if around.key not in (None, entry["digest"]):
                return "made under another pseudonym key than the round's", f"/inputs/{name}/digest"
        elif "digest" in entry and entry["digest"] not in around.digests:
            return "made from an artifact that is not in its round", f"/inputs/{name}/digest"
        due = newest and "receipt" in entry and name not in around.elsewhere
        if due and entry["receipt"] not in around.receipts:
            return "made from a file that the round no longer holds", f"/inputs/{name}/receipt"
    if around.loaded is not None and artifact["digest"] not in around.loaded:
        return "not an artifact that the evidence store was given; run its stage again", "/digest"
    return None


def unlike_upstream(artifact: Artifact, by_digest: Mapping[str, Artifact]) -> str | None:
    """The pointer to a part that an artifact keeps of another one, and that is not what that one holds; or None.

    An artifact can be rebuilt from an edited part to the last figure, and still name the honest artifact's digest. So
    whatever it keeps of an upstream artifact is compared with the artifact of that digest, where it is at hand.
    """
    upstream = {
        name: by_digest[entry["digest"]]
        for name, entry in artifact["inputs"].items()
        if entry.get("digest") in by_digest
    }
    for key, due in _parts_due(artifact["artifact"], upstream).items():
        if artifact["replay"][key] != due:
            return f"/replay/{key}"
    return None


def _parts_due(kind: str, upstream: Mapping[str, Artifact]) -> dict[str, Any]:
    """By replay key, what an artifact of a kind keeps of those that it was made from."""
    due: dict[str, Any] = {}
    if kind in (run_kit.KIND, bundle.KIND, metrics.KIND) and "frozenLabels" in upstream:
        frozen = upstream["frozenLabels"]
        due["manifest"] = labels.manifest_of(frozen)
        due["frozen"] = {key: frozen[key] for key in documents.UPSTREAM.keys}
    if kind == labels.KIND and "preparedManifest" in upstream:
        due["prepared"] = labels.extract_of(upstream["preparedManifest"])
    if kind == bundle.KIND and "runKit" in upstream:
        due["kit"] = bundle.kit_extract(upstream["runKit"])
    if kind == metrics.KIND and "assembledBundle" in upstream:
        assembled = upstream["assembledBundle"]
        due["bundle"] = normalised_bundle(assembled["replay"]) if assembled["status"] == "ready" else None
        due["assembled"] = metrics.assembled_extract(assembled)
    if kind == readiness.KIND and "productionMetrics" in upstream:
        due["metrics"] = upstream["productionMetrics"]
    return due
