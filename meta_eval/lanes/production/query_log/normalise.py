"""The normal form in which two questions are the same question.

Source: the production evaluation document, the duplicate rule. The form depends on the Unicode data of the
Python that made it (`unicodedata.unidata_version`).
"""

from __future__ import annotations

import unicodedata

# NFKC has already turned the full-width kin of . ? ! into these, and the half-width ideographic stop into 。
_TRAILING = ".?!。 "
ASCII_TRAILING = "".join(filter(str.isascii, _TRAILING))


def normalised_question(text: str) -> str:
    """NFKC, case folded, NFKC again, white space to single spaces, no closing punctuation.

    The second NFKC is needed: folding can leave a sequence that NFKC would still compose.
    """
    if text.isascii():
        # Of ASCII text NFKC is the identity and case folding is lower-casing.
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split()).rstrip(_TRAILING)
