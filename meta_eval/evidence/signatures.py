"""DSSE envelopes: a payload signed with an Ed25519 key that the operator holds.

Source: the evidence contract and the DSSE v1 specification. What is signed is the pre-authentication encoding of
type and payload, never the JSON around it, so that no two readings of an envelope are possible.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from meta_eval.evidence.canonical import parse_document
from meta_eval.evidence.errors import InputError, VerificationError
from meta_eval.evidence.files import write_bytes

IN_TOTO_TYPE = "application/vnd.in-toto+json"


def make_key_pair(private_file: Path, public_file: Path) -> str:
    """Make a key pair, both files in PEM and readable by their owner only; returns the key's id.

    Raises:
        OverwriteError: one of the files is there already.
    """
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_bytes(private_file, private)
    write_bytes(public_file, _public_pem(key.public_key()))
    return key_id(key.public_key())


def private_key(path: Path) -> Ed25519PrivateKey:
    """The signing key of a PEM file. Raises InputError: not one, or readable by others."""
    data = _key_bytes(path)
    if path.stat().st_mode & 0o077:
        raise InputError(str(path), "a signing key that others can read", next_step="chmod 600 it, or make a new one")
    try:
        key = serialization.load_pem_private_key(data, password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(str(path), "not an Ed25519 signing key", next_step="make one with meta-eval keygen")
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The verifying key of a PEM file. Raises InputError: not one."""
    data = _key_bytes(path)
    try:
        key = serialization.load_pem_public_key(data)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(str(path), "not an Ed25519 verifying key", next_step="use the .pub.pem file that keygen made")
    return key


def key_id(key: Ed25519PublicKey) -> str:
    """SHA-256 of the key in DER: names a key, and proves nothing."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def signed_envelope(payload: bytes, key: Ed25519PrivateKey, *, payload_type: str = IN_TOTO_TYPE) -> dict[str, Any]:
    """A DSSE envelope around a payload."""
    signature = key.sign(pre_authentication_encoding(payload_type, payload))
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": payload_type,
        "signatures": [{"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }


def opened_envelope(envelope: object, key: Ed25519PublicKey, *, source: str) -> Any:
    """The parsed JSON payload of an envelope, after its signature was verified.

    1. the envelope has exactly the keys of DSSE, and our payload type;
    2. at least one signature, of which one verifies under the key;
    3. only then is the payload parsed, strictly.

    Raises:
        VerificationError: the first of these that does not hold.
        InputError: the signed payload is no JSON document.
    """
    if not isinstance(envelope, dict) or envelope.keys() != {"payload", "payloadType", "signatures"}:
        raise VerificationError(source, "not a DSSE envelope")
    if envelope["payloadType"] != IN_TOTO_TYPE:
        raise VerificationError(source, "a payload of another type", "/payloadType")
    payload = _decoded(envelope["payload"], source, "/payload")
    signatures = envelope["signatures"]
    if not isinstance(signatures, list) or not signatures:
        raise VerificationError(source, "no signature", "/signatures")
    encoded = pre_authentication_encoding(IN_TOTO_TYPE, payload)
    if not any(_verifies(entry, encoded, key, source) for entry in signatures):
        raise VerificationError(source, "no signature of this key", "/signatures")
    return parse_document(payload, source=source)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """What DSSE signs: lengths and bytes of type and payload."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _verifies(entry: object, encoded: bytes, key: Ed25519PublicKey, source: str) -> bool:
    if not isinstance(entry, dict):
        return False
    try:
        key.verify(_decoded(entry.get("sig"), source, "/signatures"), encoded)
    except InvalidSignature:
        return False
    return True


def _decoded(value: object, source: str, pointer: str) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else b"?", validate=True)
    except binascii.Error:
        raise VerificationError(source, "not base64", pointer) from None


def _public_pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _key_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(str(path), "no key can be read here", next_step="check the path") from error


def envelope_bytes(envelope: dict[str, Any]) -> bytes:
    """An envelope as a file."""
    return json.dumps(envelope, indent=2).encode() + b"\n"
