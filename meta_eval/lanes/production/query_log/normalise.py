"""The normal form in which two questions are the same question.

Source: the production evaluation document, the duplicate rule. The form depends on the Unicode data of the
Python that made it (`unicodedata.unidata_version`).
"""

from __future__ import annotations

import unicodedata

# NFKC has already turned the full-width kin of . ? ! into these, and the half-width ideographic stop into 。
_TRAILING = ".?!。 "
ASCII_TRAILING = "".join(filter(str.isascii, _TRAILING))
# Letters and marks of Latin, Greek and Cyrillic, quotation marks, kana, Chinese characters and Hangul.
_SETTLED = (
    r"\x00-\x7f"
    "\u00a1-\u00a7\u00a9\u00ab\u00ac\u00ae\u00b0\u00b1\u00b6\u00b7\u00bb\u00bf-\u012f\u0134-\u013e\u0141-\u0148"
    "\u014a-\u017e\u0386\u0388-\u038a\u038c\u038e\u038f\u0391-\u03a1\u03a3-\u03af\u03b1-\u03c1\u03c3-\u03ce"
    "\u0400-\u0482\u048a-\u052f\u2018-\u201f\u20ac\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fff\uac00-\ud7a3"
)
UNSETTLED = f"[^{_SETTLED}]"
"""A character, in a pattern for RE2, that NFKC may change, alone or beside another, or that folding changes otherwise
than lower-casing each letter (of the settled ones it does only ß, to ss)."""


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
