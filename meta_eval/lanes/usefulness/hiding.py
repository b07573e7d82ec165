"""Text that no artifact may hold: questions, answers, reasons. What is kept instead is a digest under the study's key.

Source: the house promise *private by construction*. A plain SHA-256 of a short answer can be found by trying answers,
and would tell a scorer which arm an answer came from; an HMAC under a key that stays in the private folder cannot.
A document is read under its full shape, then `hidden` replaces each private text in the projection, and the artifact
keeps a document of the same shape in which `hidden_shape` expects a digest wherever there was text.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

from meta_eval.evidence.documents import REFUSED, SHA256, Keyed, Leaf, Listed, Reading, Shape, none_or, read

KEY_BYTES = 32


@dataclass(frozen=True)
class PrivateText(Leaf):
    """Text of a document that its artifact may keep only as a digest."""

    optional: bool = False


def private_text(most: int, *, optional: bool = False) -> PrivateText:
    """Text of 1 to `most` code points, none of them a control character; null where it is optional."""

    def rule_broken(value: object) -> str | None:
        if value is None and optional:
            return None
        if not isinstance(value, str) or not value.strip():
            return "not-a-text"
        if len(value) > most:
            return "text-too-long"
        return "control-character" if any(char < " " and char not in "\n\t" for char in value) else None

    return PrivateText(rule_broken, optional)


def text_digest(text: str, key: bytes) -> str:
    """What stands for a private text in an artifact."""
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def hidden_shape(shape: Shape) -> Shape:
    """The shape of a document whose private texts have been replaced by digests."""
    if isinstance(shape, PrivateText):
        return none_or(SHA256) if shape.optional else SHA256
    if isinstance(shape, Listed):
        return Listed(hidden_shape(shape.entry))
    if isinstance(shape, Keyed):
        return Keyed({key: hidden_shape(inner) for key, inner in shape.keys.items()}, shape.optional, shape.ignored)
    return shape


def hidden(projection: Any, shape: Shape, key: bytes) -> Any:
    """A projection with every private text replaced. Parts that were refused stay as they are: they hold no text."""
    if isinstance(shape, PrivateText):
        return text_digest(projection, key) if isinstance(projection, str) else projection
    if isinstance(shape, Listed) and isinstance(projection, list):
        return [hidden(entry, shape.entry, key) for entry in projection]
    if isinstance(shape, Keyed) and isinstance(projection, dict) and projection.keys() != {REFUSED}:
        return {
            name: hidden(inner, shape.keys[name], key) if name in shape.keys else inner
            for name, inner in projection.items()
        }
    return projection


def read_hidden(document: object, shape: Shape, key: bytes, *, subject: str) -> tuple[Reading, Any]:
    """The reading of a document, for logic, and its projection without private text, for the replay."""
    reading = read(document, shape, subject=subject)
    return reading, hidden(reading.projection, shape, key)
