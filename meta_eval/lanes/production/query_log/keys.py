"""Keys by which texts are compared without the texts: equal texts have equal keys, and unlike texts unlike ones.

Source: the production evaluation document, the duplicate rule. A key is two SipHash values of 64 bits under two secret
keys that are drawn anew for every reading. So nobody can make two questions that collide, as that takes the secrets,
and a collision by chance is beyond any log (of ten million texts, one in 10^24).
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

NO_KEYS = np.empty((0, 2), dtype=np.uint64)


class Secrets(NamedTuple):
    """Two keys of sixteen characters."""

    first: str
    second: str

    @classmethod
    def drawn(cls) -> Secrets:
        """New ones, from the system's source of randomness."""
        return cls(secrets.token_hex(8), secrets.token_hex(8))


def keys_of(texts: pa.Array, under: Secrets) -> np.ndarray:
    """The key of each text (none null): two uint64 each, a row a text."""
    values = texts.cast(pa.binary()).to_numpy(zero_copy_only=False)
    hashed = [pd.util.hash_array(values, hash_key=secret, categorize=False) for secret in under]
    return np.column_stack(hashed) if values.size else NO_KEYS
