"""DSSE: what is signed, and what is refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from meta_eval.evidence.errors import InputError, OverwriteError, VerificationError
from meta_eval.evidence.signatures import (
    make_key_pair,
    opened_envelope,
    pre_authentication_encoding,
    private_key,
    public_key,
    signed_envelope,
)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    private, public = tmp_path / "key", tmp_path / "key.pub.pem"
    make_key_pair(private, public)
    return private, public


def test_the_encoding_is_the_specifications_own_example() -> None:
    # The worked example of the DSSE v1 protocol document.
    encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_a_signed_payload_opens_under_its_key(keys: tuple[Path, Path]) -> None:
    envelope = signed_envelope(b'{"a":1}', private_key(keys[0]))
    assert opened_envelope(json.loads(json.dumps(envelope)), public_key(keys[1]), source="e") == {"a": 1}
    assert keys[0].stat().st_mode & 0o777 == 0o600


def _swap_payload(envelope: dict[str, Any]) -> None:
    envelope["payload"] = base64.b64encode(b'{"a":2}').decode()


def _flip_signature(envelope: dict[str, Any]) -> None:
    signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    signature[0] ^= 1
    envelope["signatures"][0]["sig"] = base64.b64encode(bytes(signature)).decode()


TAMPERED = {
    "payload": (_swap_payload, "no signature of this key"),
    "signature": (_flip_signature, "no signature of this key"),
    "type": (lambda e: e.update(payloadType="text/plain"), "a payload of another type"),
    "no signatures": (lambda e: e.update(signatures=[]), "no signature"),
    "a list of anything": (lambda e: e.update(signatures=["x", 1, None]), "no signature of this key"),
    "not base64": (lambda e: e.update(payload="%%%"), "not base64"),
    "a further key": (lambda e: e.update(note="x"), "not a DSSE envelope"),
    "a missing key": (lambda e: e.pop("payloadType"), "not a DSSE envelope"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_envelope_is_refused(keys: tuple[Path, Path], name: str) -> None:
    change, rule = TAMPERED[name]
    envelope = signed_envelope(b'{"a":1}', private_key(keys[0]))
    change(envelope)
    with pytest.raises(VerificationError, match=rule):
        opened_envelope(envelope, public_key(keys[1]), source="e")


def test_another_key_does_not_open_it(keys: tuple[Path, Path], tmp_path: Path) -> None:
    make_key_pair(tmp_path / "other", tmp_path / "other.pub.pem")
    envelope = signed_envelope(b"{}", private_key(tmp_path / "other"))
    with pytest.raises(VerificationError, match="no signature of this key"):
        opened_envelope(envelope, public_key(keys[1]), source="e")


def test_keys_are_never_overwritten_and_never_taken_for_each_other(keys: tuple[Path, Path]) -> None:
    private, public = keys
    with pytest.raises(OverwriteError):
        make_key_pair(private, public)
    with pytest.raises(InputError, match="not an Ed25519 verifying key"):
        public_key(private)
    with pytest.raises(InputError, match="not an Ed25519 signing key"):
        private_key(public)
    private.chmod(0o644)
    with pytest.raises(InputError, match="others can read"):
        private_key(private)
