"""What a plain text must at least hold for a rule of the identifier screen to find anything in it.

Defined by the section "Identifier screen" of the production design. Most questions hold a year, an accession number
or nothing at all, and the rules, asked one after the other, take longer over them than all the rest of a row's
work. Each `may_hold_…` is a necessary condition of one rule: False means that the rule answers False, and True
means nothing. A verdict never rests on them, so one that is too generous costs time and no more; the tests hold
each against its rule. One pattern is the other way about: what it matches, a rule refuses.

Three habits make them quick. A pattern begins with a digit or a mark, which the engine looks for without trying
anything else, and only then looks back. A word that stands before a number is looked for in the text read
backwards, so that the digit comes first there too. And other words are looked for with `in`, in the lower-cased
text: a plain text (see identifiers.py) holds no character that ignoring case takes for an ASCII letter, and no
digits but ASCII ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from meta_eval.evidence.contact_patterns import PLATFORM_WORDS
from meta_eval.evidence.postal_addresses import CONTEXT

# --- e-mail, networks, handles --------------------------------------------------------------------------------
_SPELT_MARK = re.compile(
    r"[\[({<]\s{0,2}(?:at|ät|@|arobase|dot|\.|punkt|point|punto)\s{0,2}[\])}>]",
    re.IGNORECASE,
)
_OPENING: Final = ("(", "[", "{", "<")
_QUAD_SHAPE = re.compile(r"[0-9](?<![\w.][0-9])[0-9]{0,2}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_PROFILE_SHAPE = re.compile(r"\.(?:com|net|me|app)/", re.IGNORECASE)
# --- numbers --------------------------------------------------------------------------------------------------
_IBAN_SHAPE = re.compile(r"[0-9][0-9](?<=[A-Za-z]{2}[0-9][0-9])(?:[ -]?[A-Za-z0-9]){11}")
_CARD_SHAPE = re.compile(r"[0-9](?:[ .-]?[0-9]){11}")
_NATIONAL_SHAPE = re.compile(r"[0-9][0-9](?:[0-9]-[0-9][0-9]-[0-9]{4}| [0-9][0-9] [0-9][0-9] [A-Da-d])")
_NATIONAL_WORDS: Final = (
    "ssn", "itin", "social security", "national insurance", "nino", "passport", "licen", "tax id",
)  # fmt: skip
_SEVEN_DIGITS = re.compile(r"[0-9](?:[ ().\-/]{0,3}[0-9]){6,}")
# Whole runs of digits that the phone rule takes out before it looks: a range of years, and an accession number of
# which no part can be read as a date or as pairs of digits to call.
_YEAR_RANGE = re.compile(r"(?:1[0-9]{3}|20[0-9][0-9])-(?:1[0-9]{3}|20[0-9][0-9])")
_ACCESSION = re.compile(
    r"(?:1[5-9][0-9][0-9]|20[0-9][0-9])(?:\.[0-9]{1,5})+(?:-[0-9]{1,5})?|[0-9][0-9]\.[0-9]{3}(?:\.[0-9]{1,3})+"
)
# --- postal addresses -----------------------------------------------------------------------------------------


def _backwards(words: Iterable[str]) -> str:
    return "|".join(word[::-1] for word in words)


# What stands straight before the number of a box, a flat, or a street written as one word.
_WORDS_BEFORE: Final = (
    "box", "bus", "boks", "fach", "postale", "apartado", "correos", "apt", "appt", "apartment", "flat", "suite", "ste",
    "unit", "straße", "strasse", "str", "straat", "gasse", "weg", "laan", "plein", "gracht", "kade", "singel", "vej",
    "vegen", "veien", "vegur", "gata", "gatan", "gade", "vägen", "väg", "vænget", "stræde", "stræti", "straeti",
    "braut", "katu", "kuja", "polku", "tie", "brücke", "allee", "allé", "platz", "dreef", "põik", "puiestee", "gate",
    "utca", "út", "útja", "tér", "tere", "rkp", "tee",
)  # fmt: skip
_WORD_BEFORE_NUMBER = re.compile(rf"[0-9](?:\s\.?on)?[\s.,#]{{1,5}}(?:{_backwards(_WORDS_BEFORE)}|u\s)")
_STOP_WORD = (
    r"(?:on|in|at|of|the|to|near|from|for|by|and|or|with|is|are|was|were|a|an|i|my|between|along|this|that|who|what|"
    r"which|when|where|how|people|star|am|pm)\b"
)
_HOUSE = r"[0-9](?<![\w.,:/$-][0-9])[0-9]{0,4}[A-Za-z]?,?\s{1,2}"
# A house number, then what a street's name can begin with.
_HOUSE_FIRST = re.compile(rf"{_HOUSE}(?:(?!(?i:{_STOP_WORD}))[^\W\d_]|[A-Z]|[0-9])")
_HOUSE_CAPITAL = re.compile(rf"{_HOUSE}(?:[A-Z]|[0-9]{{1,3}}[A-Za-z])")
_ROMANCE = (
    r"(?:rue|via|viale|vicolo|corso|piazza|piazzetta|rua|rúa|avenida|avda\.?|calle|c/|paseo|plaza|praça|largo|strada|"
    r"chemin|allée|impasse|quai|boulevard|bd|avenue|av\.?|place|ul\.|al\.|ulica|aleja|leoforos|λεωφόρο[ςσ]|πλατεία|λ\.)"
)
_ROMANCE_NAME = re.compile(rf"{_ROMANCE}\s")
_HOUSE_ROMANCE = re.compile(rf"{_HOUSE}(?:bis\s|ter\s)?{_ROMANCE}\s")
# The digits of a postcode; or a number before the name, without which a year behind the name is a date.
_POSTCODE_OR_ROMANCE = re.compile(rf"[0-9](?:[0-9]{{4}}|[A-Z0-9]?\s[0-9][A-Z]|\s{{1,2}}(?i:{_ROMANCE})\s)")
# A number after white space that is no year, no accession number and no decimal.
_NUMBER_LAST = re.compile(
    r"[0-9](?<=\s[0-9])(?!(?:(?<=1)[3-9]|(?<=2)0)[0-9][0-9](?![0-9]))[0-9]{0,4}[A-Za-z]?(?!\w|\.[0-9])"
)
_STREET_WORDS: Final = ("str", "ave", "road", "rd", "blvd", "crescent")
_CONTEXT_WORDS: Final = (
    "address", "liv", "located", "office", "station", "restaurant", "send", "sent", "return", "meet", "moved", "drop",
    "side", "enter", "arrived", "taxi", "ship", "corner",
)  # fmt: skip


# --- all of it at once ----------------------------------------------------------------------------------------
_ROMANCE_ASCII = (
    r"(?i:rue|via|viale|vicolo|corso|piazza|piazzetta|rua|avenida|avda\.?|calle|c/|paseo|plaza|largo|strada|chemin|"
    r"impasse|quai|boulevard|bd|avenue|av\.?|place|ul\.|al\.|ulica|aleja|leoforos)\s"
)
_NO_YEAR = (
    r"\s(?:[0-9]{1,3}|[03-9][0-9]{3}|1[0-2][0-9]{2}|2[1-9][0-9]{2}|[0-9]{5})[A-Za-z]?(?:[^0-9A-Za-z_.]|\.[^0-9]|\.?$)"
)
_NEXT = r"[0-9][A-Za-z]?,?\s{1,2}"
_CONTEXT_ASCII = (
    r"(?i:\b(?:address|li(?:ve|ves|ved|ving)\s|located\s|(?:offices?|station|restaurant)\s|sen[dt]\s|return(?:ed)?\s|"
    r"meet\s|moved|drops?\s|side\s|enter\s|arrived\s|taxi\s|deliver(?:ed)?\s|ship(?:ped)?\s|corner\s))"
)
ASCII_MAY_HOLD: Final[tuple[tuple[str, ...], ...]] = (
    (
        "|".join(
            [
                r"[@%&]|:[^:]*:|[\[({<]\s{0,2}(?i:at|arobase|dot|\.|punkt|point|punto)\s{0,2}[\])}>]",
                rf"(?i:dot|_at_|ig\s?:|\.(?:com|net|me|app)/|{'|'.join(PLATFORM_WORDS)})",
                r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]|[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11}",
                r"[0-9](?:[ ().\-/]{0,3}[0-9]){6}|[0-9]{2} [0-9]{2} [0-9]{2} [A-Da-d]",
                rf"(?i:corner of|{'|'.join(_NATIONAL_WORDS)})",
                rf"(?i:{'|'.join(filter(str.isascii, _WORDS_BEFORE))}|\su)[\s.,#]{{1,5}}(?i:no\.?\s)?[0-9]",
                rf"[0-9](?:[0-9]{{4}}|[A-Z0-9]?\s[0-9][A-Z]|\s{{1,2}}{_ROMANCE_ASCII})",
                rf"{_NEXT}(?:[A-Z]|[0-9]{{1,3}}[A-Za-z]|(?i:bis\s|ter\s)?{_ROMANCE_ASCII})",
            ]
        ),
    ),
    (r"\s(?i:street|avenue|ave|road|rd|boulevard|blvd|crescent|str)\b", _NEXT),
    (_ROMANCE_ASCII, _NO_YEAR),
    (_CONTEXT_ASCII, rf"{_NO_YEAR}|{_NEXT}(?s:.*)[0-9]"),
)
"""What an ASCII text must hold for any rule to find anything, for an engine (RE2) that looks for one pattern in many
texts: of one of these groups every pattern. That engine compiles a pattern at every call, so they are short."""
SURELY_HOLDS: Final = (
    r"[0-9A-Za-z]@(?:[A-Za-z][0-9A-Za-z]{0,30}\.){1,3}(?i:com|org|net|edu|info|uk|de|fr|nl|it|es|jp)"
    r"(?:\.?$|\.?[\t-\r ]|[,;!?)\"'])"
)
"""An e-mail address as most are written: in a plain text (see identifiers.py) that holds one, a rule finds one."""


def _any_of(words: tuple[str, ...], lowered: str) -> bool:
    # A plain loop: over a few words it takes half the time of any() with a generator.
    for word in words:  # noqa: SIM110
        if word in lowered:
            return True
    return False


def may_hold_url_user_info(text: str, lowered: str) -> bool:
    """User info stands between `://` and `@`."""
    return "@" in text and "://" in lowered


def may_hold_email(text: str, lowered: str) -> bool:
    """An address has an `@`, or a word or a bracketed mark that spells one or the dot after it."""
    return (
        "@" in text
        or "dot" in lowered
        or "_at_" in lowered
        or (_any_of(_OPENING, text) and _SPELT_MARK.search(text) is not None)
    )


def may_hold_ip_address(text: str, lowered: str) -> bool:
    """Four numbers with dots and nothing before them, or two colons."""
    return (text.count(".") > 2 and _QUAD_SHAPE.search(text) is not None) or text.count(":") > 1


def may_hold_iban(text: str, lowered: str) -> bool:
    """Two letters, two digits, eleven more of both."""
    return _IBAN_SHAPE.search(text) is not None


def may_hold_card_number(text: str, lowered: str) -> bool:
    """Twelve digits, no two of them further apart than one sign."""
    return _CARD_SHAPE.search(text) is not None


def may_hold_national_id(text: str, lowered: str) -> bool:
    """A number grouped as one, or a word for one."""
    return _NATIONAL_SHAPE.search(text) is not None or _any_of(_NATIONAL_WORDS, lowered)


def may_hold_phone(text: str, lowered: str) -> bool:
    """Seven digits in one run that is not from end to end a museum's number."""
    for run in _SEVEN_DIGITS.finditer(text):  # noqa: SIM110
        if not _is_museum_number(text, run):
            return True
    return False


def _is_museum_number(text: str, run: re.Match[str]) -> bool:
    start, end = run.span()
    before = text[start - 1] if start else " "
    if before.isalnum() or before in "_.+(-":
        return False
    if _ACCESSION.fullmatch(text, start, end):
        return True
    after = text[end] if end < len(text) else " "
    return not (after.isalnum() or after in "_-") and _YEAR_RANGE.fullmatch(text, start, end) is not None


def may_hold_postal_address(text: str, lowered: str) -> bool:
    """A number beside what a street, a box, a flat or a postcode has beside its number."""
    if "corner of" in lowered or _POSTCODE_OR_ROMANCE.search(text) or _WORD_BEFORE_NUMBER.search(lowered[::-1]):
        return True
    first = _HOUSE_FIRST.search(text) is not None
    if first and (
        _any_of(_STREET_WORDS, lowered) or _HOUSE_CAPITAL.search(text) is not None or _HOUSE_ROMANCE.search(lowered)
    ):
        return True
    last = _NUMBER_LAST.search(text) is not None
    if last and _ROMANCE_NAME.search(lowered):
        return True
    return (first or last) and _any_of(_CONTEXT_WORDS, lowered) and CONTEXT.search(text) is not None


def may_hold_social_handle(text: str, lowered: str) -> bool:
    """A handle's sign, a profile's host, or the name of a platform."""
    if "@" in text or (":" in text and "ig" in lowered) or ("/" in text and _PROFILE_SHAPE.search(text)):
        return True
    return _any_of(PLATFORM_WORDS, lowered)
