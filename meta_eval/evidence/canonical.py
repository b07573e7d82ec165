"""Canonical JSON (RFC 8785), digests and receipts, and the strict reader of JSON documents.

A *receipt* is the SHA-256 of a file's raw bytes; a *digest* is the SHA-256 of a value's canonical JSON. White
space changes a receipt and never a digest. The strict reader refuses what two readers could understand in two
ways: repeated keys, NaN and Infinity, lone surrogates, integers that a double cannot hold, over-deep nesting.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import rfc8785

from meta_eval.evidence.errors import InputError

MAX_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1
_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)


class Readable(Protocol):
    """A file, wherever it lies: a path, or an object of a store. As text it is its place, for messages."""

    @property
    def name(self) -> str: ...

    def read_bytes(self) -> bytes: ...


def canonical_bytes(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value.

    Raises:
        ValueError: a value that canonical JSON cannot hold (NaN, an integer beyond 2^53 - 1, a lone surrogate).
    """
    try:
        return _ENCODER.encode(_encodable(value))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        raise ValueError("not a value of canonical JSON") from None


# rfc8785 is plain Python, and half the cost of a large round. msgspec writes the same bytes some fifty times faster for
# all but floats and keys that are not ASCII, which RFC 8785 orders by UTF-16 code unit; rfc8785 still writes those.
_ENCODER = msgspec.json.Encoder(order="sorted")
_WRITTEN_ALIKE = frozenset({str, bool, type(None)})


def _encodable(node: Any) -> Any:
    """The value itself where msgspec writes it canonically, else a copy that holds the other parts as bytes."""
    kind = type(node)
    if kind in _WRITTEN_ALIKE or (kind is int and -MAX_SAFE_INTEGER <= node <= MAX_SAFE_INTEGER):
        return node
    changed: Any = None
    if kind is list:
        for index, item in enumerate(node):
            if type(item) not in _WRITTEN_ALIKE and (written := _encodable(item)) is not item:
                changed = changed or list(node)
                changed[index] = written
        return changed or node
    if kind is dict and _has_ascii_keys(node):
        for key, item in node.items():
            if type(item) not in _WRITTEN_ALIKE and (written := _encodable(item)) is not item:
                changed = changed or dict(node)
                changed[key] = written
        return changed or node
    return msgspec.Raw(rfc8785.dumps(node))


def _has_ascii_keys(node: dict[Any, Any]) -> bool:
    try:
        return "".join(node).isascii()
    except TypeError:  # a key that is no text
        return False


def digest(value: Any) -> str:
    """SHA-256, in lower-case hex, of a value's canonical JSON."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def receipt(data: bytes) -> str:
    """SHA-256, in lower-case hex, of raw bytes."""
    return hashlib.sha256(data).hexdigest()


def file_receipt(path: Path) -> str:
    """SHA-256 of a file's raw bytes, read in pieces.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Readable, error: OSError) -> InputError:
    """The error for a file that the operating system will not give us."""
    rules = {FileNotFoundError: "no such file", IsADirectoryError: "a folder, not a file"}
    rule = rules.get(type(error), "cannot be read (permission or device)")
    return InputError(str(path), rule, next_step="check the path and its permissions")


class _FaultError(Exception):
    """A rule that the strict reader found broken, before its place is known."""


def read_document(path: Readable) -> tuple[Any, str]:
    """A JSON document's value and its receipt.

    Raises:
        InputError: not readable, not UTF-8, not JSON, or JSON that two readers could understand in two ways;
            names the byte offset.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    return parse_document(data, source=str(path)), receipt(data)


def parse_document(data: bytes, *, source: str) -> Any:
    """The value of a JSON text under the strict reading; `source` names it in errors.

    Raises:
        InputError: as for `read_document`.
    """
    start = len(_BOM) if data.startswith(_BOM) else 0
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(source, "not UTF-8", start + error.start) from None
    if not text.strip():
        raise _refused(source, "empty, where a JSON document is due", 0)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_safe_integer,
        )
        _check_tree(value)
    except json.JSONDecodeError as error:
        offset = start + len(text[: error.pos].encode("utf-8", "surrogatepass"))
        ends_early = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        rule = "truncated: the JSON text ends too early" if ends_early else "not JSON"
        raise _refused(source, rule, offset) from None
    except RecursionError:
        raise _refused(source, _DEEP, _fault_offset(data, _DEEP)) from None
    except _FaultError as fault:
        raise _refused(source, str(fault), _fault_offset(data, str(fault))) from None
    return value


_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_REPEATED = "a repeated key"
_NOT_FINITE = "NaN, Infinity or a number too large to hold"
_BIG_INTEGER = "an integer beyond 2^53 - 1, which a double cannot hold exactly"
_SURROGATE = "a lone surrogate, which is not Unicode text"


def _refused(source: str, rule: str, offset: int | None) -> InputError:
    return InputError(source, rule, offset=offset, next_step="mend the file and run the command again")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _FaultError(_REPEATED)
    return result


def _no_constant(_: str) -> None:
    raise _FaultError(_NOT_FINITE)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _FaultError(_NOT_FINITE)
    return value


def _safe_integer(text: str) -> int:
    # int() itself refuses more than 4,300 digits with a ValueError, so the length is looked at first.
    if len(text) > 17 or abs(int(text)) > MAX_SAFE_INTEGER:
        raise _FaultError(_BIG_INTEGER)
    return int(text)


def _check_tree(value: Any) -> None:
    level, depth = [value], 0
    while level:
        texts = [node for node in level if type(node) is str]
        objects = [node for node in level if type(node) is dict]
        if any(map(_has_surrogate, itertools.chain(texts, *objects))):
            raise _FaultError(_SURROGATE)
        lists = [node for node in level if type(node) is list]
        depth += 1
        if depth > MAX_DEPTH and (objects or lists):
            raise _FaultError(_DEEP)
        level = list(itertools.chain(*lists, *(node.values() for node in objects)))


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _fault_offset(data: bytes, rule: str) -> int | None:
    """The byte where a rule is first broken. Runs only on refused documents, so it may be slow and plain."""
    keys: list[set[str] | None] = []
    previous: tuple[bytes, int] = (b"", 0)
    start = len(_BOM) if data.startswith(_BOM) else 0
    for token, offset in _tokens(data, start):
        if token in b"[{":
            keys.append(set() if token == b"{" else None)
            if rule == _DEEP and len(keys) > MAX_DEPTH:
                return offset
        elif token in b"]}":
            keys.pop()
        elif token == b":" and keys and (seen := keys[-1]) is not None:
            key = json.loads(previous[0])
            if rule == _REPEATED and key in seen:
                return previous[1]
            seen.add(key)
        elif _token_breaks(token, rule):
            return offset
        previous = (token, offset)
    return None


def _tokens(data: bytes, start: int) -> Iterator[tuple[bytes, int]]:
    for match in _TOKEN.finditer(data, start):
        yield match.group(), match.start()


def _token_breaks(token: bytes, rule: str) -> bool:
    if rule == _SURROGATE:
        return token.startswith(b'"') and _has_surrogate(json.loads(token))
    if token.startswith(b'"') or token in (b":", b",", b"true", b"false", b"null"):
        return False
    if rule == _NOT_FINITE:
        return not math.isfinite(float(token))
    if rule == _BIG_INTEGER and token.lstrip(b"-").isdigit():
        return len(token) > 17 or abs(int(token)) > MAX_SAFE_INTEGER
    return False
