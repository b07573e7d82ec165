"""Postal addresses in a text that is already plain: streets, boxes, military mail and postcodes.

Defined by the section "Identifier screen" of the production design. A street alone is no address and a number alone
is none; together they are, whoever lives there: `10 Downing Street` is refused. A number that can be a year counts
as a house number only where no word such as `in` or `circa` stands before it.
"""

from __future__ import annotations

import re
from typing import Final

_YEAR = re.compile(r"1[3-9]\d\d|20\d\d")
_BEFORE_YEAR = re.compile(
    r"(?:\b(?:in|since|by|from|circa|c|ca|before|after|until|till|during|around|about|of|and|to|year|summer|winter|"
    r"spring|autumn|fall|january|february|march|april|may|june|july|august|september|october|november|december)\b\.?"
    r"|[-–~])\s{0,2}$",
    re.IGNORECASE,
)
# Words that end a street's name when they come up between a number and `street`.
_STOP: Final = (
    r"(?!(?:on|in|at|of|the|to|near|from|for|by|and|or|with|is|are|was|were|a|an|i|my|between|along|this|that|who|"
    r"what|which|when|where|how|people|painting|paintings|print|prints|photograph|photographs|view|views|scene|"
    r"scenes|minutes?|miles?|days?|hours?|star|am|pm|percent|route|flight|via|versus)\b)"
)
_WORD = rf"{_STOP}(?:[^\W\d_][\w'’.-]{{0,30}}|\d{{1,3}}(?:st|nd|rd|th))"
_CAPITAL = (
    r"(?:(?!(?:Black|White|Red|Blue|Green|Yellow|Large|Small|The|In|On|At)\b)[A-Z][\w'’.-]{0,30}"
    r"|\d{1,3}(?:st|nd|rd|th))"
)
_HOUSE = r"(?<![\w.,:/$£€#-])\d{1,5}[A-Za-z]?,?\s{1,2}"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
_TAIL = rf",?\s{{1,2}}\d{{1,5}}[A-Za-z]?(?![\w:/-]|\.\d|\s{_MONTH})"
_NUMBER_NAME = re.compile(r"\d[A-Za-z]?,?\s{1,2}\w")
_NAME_NUMBER = re.compile(r"[\w'’.-],?\s{1,2}(?!(?:1[3-9]|20)\d\d(?!\d))\d")

_ENGLISH = re.compile(
    rf"({_HOUSE})(?:{_WORD}\s{{1,2}}){{1,4}}?(?:street|avenue|ave|road|rd|boulevard|blvd|crescent|str)\b",
    re.IGNORECASE,
)
_ENGLISH_CAPITAL = re.compile(
    rf"({_HOUSE})(?:{_CAPITAL}\s{{1,2}}){{1,3}}?(?:Drive|Dr|Lane|Ln|Court|Ct|Close|Place|Pl|Terrace|Way|Square|Sq|St|"
    r"Parade|Highway|Parkway|Mews|Grove|Row|Gardens|Av)\b(?!\w)"
)
_ROMANCE_NAME = (
    r"(?:rue|via|viale|vicolo|corso|piazza|piazzetta|rua|rúa|avenida|avda\.?|calle|c/|paseo|plaza|praça|largo|strada|"
    r"chemin|allée|impasse|quai|boulevard|bd|avenue|av\.?|place|ul\.|al\.|ulica|aleja|leoforos|λεωφόρος|πλατεία|λ\.)"
)
_ROMANCE_HOUSE_FIRST = re.compile(rf"({_HOUSE})(?:bis\s|ter\s)?{_ROMANCE_NAME}\s{{1,2}}{_WORD}", re.IGNORECASE)
_ROMANCE_HOUSE_LAST = re.compile(
    rf"(?<!\w){_ROMANCE_NAME}\s{{1,2}}(?:{_WORD}\s{{1,2}}){{0,5}}{_WORD}({_TAIL})", re.IGNORECASE
)
_COMPOUND = re.compile(
    r"(?<!\w)(?!brigade|renegade)(?:\w{2,30}(?:straße|strasse|str\.|straat|gasse|weg|laan|plein|gracht|kade|singel|vej|"
    r"vegen|veien|vegur|gata|gatan|gade|vägen|väg|vænget|stræde|stræti|straeti|braut|katu|kuja|polku|ntie|stie|ttie|"
    r"brücke|allee|platz|dreef|põik|puiestee|sgate|rgate)"
    r"|[^\W\d_]\w{1,30}\s(?:utca|út|útja|tér|tere|u\.|rkp\.|strasse|straße|straat|gate|gata|weg|allé|allee|platz|tee))"
    rf"({_TAIL})",
    re.IGNORECASE,
)
_BOX = re.compile(
    r"\b(?:p\.?\s?o\.?\s?box|post\s?box|postbus|postboks|postfach|casella postale|apartado(?: de correos)?|"
    r"bo[iî]te postale)\s{1,2}(?:no\.?\s|#)?\d{1,6}\b"
    r"|\b(?:psc|unit|cmr)\s\d{1,5},?\s{1,2}box\s\d{1,5}\b",
    re.IGNORECASE,
)
_MILITARY = re.compile(r"\b(?:APO|FPO|DPO),?\s(?:AA|AE|AP)\s\d{5}\b", re.IGNORECASE)
_UNIT = re.compile(r"\b(?:(apt|appt)|apartment|flat|suite|ste|unit)\b\.?\s{0,2}#?\d{1,5}[a-z]?\b", re.IGNORECASE)
_HOUSE_NEXT = re.compile(r"\s\d{3,5}\s[^\W\d_]")
_CORNER = re.compile(r"\bcorner of\s{1,2}(?:\d|[^.?!\n]{1,60}?\d{1,4}\.?\s{1,2}(?:st\.?\s)?and\b)", re.IGNORECASE)
_STATE: Final = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]"
)
_POSTCODE = re.compile(
    rf"[A-Za-z],?\s{{1,2}}(?:{_STATE})\s{{1,2}}\d{{5}}(?:-\d{{4}})?(?!\w)"
    r"|(?<!\w)(?:[A-Z]{1,2}\d[A-Z\d]?\s\d[ABD-HJLNP-UW-Z]{2})(?!\w)"
    r"|(?<!\w)[ABCEGHJ-NPRSTVXY]\d[ABCEGHJ-NPRSTV-Z]\s\d[ABCEGHJ-NPRSTV-Z]\d(?!\w)"
    r"|[^\W\d_]\s\d{1,4}[a-z]?,\s{1,2}\d{5}\s{1,2}[A-Z]\w"
)
CONTEXT = re.compile(
    r"\b(?:address(?:es)?(?:\s+(?:is|was|to|with|of))?\b|li(?:ve|ves|ved|ving)\s+(?:at|on|in)\b|located\s+at\b|"
    r"(?:office|offices|station|restaurant)\s+(?:is|are)\s+(?:at|on|located)\b|sen[dt]\s+(?:\w+\s+){0,4}?to\b|"
    r"return(?:ed)?\s+to\b|meet\s+(?:me|you|us|\w+\s+at)\b|moved\b|drops?\s+(?:you|me)\s+off\b|side\s+of\b|enter\s+on\b|"
    r"arrived\s+at\b|taxi\s+to\b|deliver(?:ed)?\s+to\b|ship(?:ped)?\s+to\b|corner\s+of\b)",
    re.IGNORECASE,
)
_NO_STREET: Final = (
    r"(?!(?:gallery|galleries|room|floor|level|hall|case|wing|bay|shelf|stop|platform|exit|page|lot|no|nr|number|figure|"
    r"fig|plate|table|line|pier|dock|object|item|accession|inv|chapter|section|part|catalogue|catalog|next|last|about|"
    r"approximately|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|"
    r"july|august|september|october|november|december|width|height|box|group|under|over|than|exactly|only)\b)"
)
_WEAK_LAST = re.compile(
    rf"(?<!\w){_NO_STREET}{_WORD}(\s{{1,2}}\d{{1,4}})(?!\w|\.\d|:|,\d|\s?(?:am|pm|o'clock|%|x\b|cm|in\.|inch|mm|times|years?|"
    r"months?|weeks?|days?|hours?|minutes?|people|paintings?|works?|pieces?|parts?|bc|ad|ce))",
    re.IGNORECASE,
)
_BOTH = re.compile(rf"({_HOUSE})(?:{_NO_STREET}{_WORD}\s{{1,2}}){{1,5}}?\d{{1,4}}(?!\w|\.\d|:|,\d|/)", re.IGNORECASE)
_TWO_NUMBERS = re.compile(rf"(?<![\w.,:/$-])\d{{2,5}}\s\d{{1,4}}\s{_WORD}\s{_WORD}", re.IGNORECASE)
_CONTEXT_REACH = 75
# Contexts closer together than this share a look, which bounds the work on a text made of nothing else.
_CONTEXT_STEP = 25


def holds_postal_address(text: str) -> bool:
    """A postal address, by any of the spellings above."""
    if _BOX.search(text) or _MILITARY.search(text) or _CORNER.search(text) or _POSTCODE.search(text):
        return True
    if any(_is_dwelling(text, match) for match in _UNIT.finditer(text)):
        return True
    number_first = _NUMBER_NAME.search(text) is not None
    patterns: list[re.Pattern[str]] = []
    if number_first:
        patterns += (_ENGLISH, _ENGLISH_CAPITAL, _ROMANCE_HOUSE_FIRST)
    # A year after the name counts only behind a house number, so most questions with a year end here.
    if number_first or _NAME_NUMBER.search(text):
        patterns += (_ROMANCE_HOUSE_LAST, _COMPOUND)
    for pattern in patterns:
        if any(not _is_year(text, match, 1) for match in pattern.finditer(text)):
            return True
    return _in_context(text)


def _is_year(text: str, match: re.Match[str], group: int) -> bool:
    number = re.sub(r"\D", "", match[group])
    if not _YEAR.fullmatch(number):
        return False
    # After a street's name a year is a date unless a second number stands before the name.
    if match.start(group) != match.start():
        return not re.search(r"\d\s{1,2}$", text[max(0, match.start() - 8) : match.start()])
    return _BEFORE_YEAR.search(text[max(0, match.start(group) - 14) : match.start(group)]) is not None


def _is_dwelling(text: str, match: re.Match[str]) -> bool:
    # "Suite 12" may be a set of prints; after a house number it is a door.
    before = text[max(0, match.start() - 50) : match.start()]
    return (
        match[1] is not None or re.search(r"\d", before) is not None or _HOUSE_NEXT.match(text, match.end()) is not None
    )


def _in_context(text: str) -> bool:
    """A name and a number soon after words that introduce an address."""
    looked_at = -_CONTEXT_STEP
    for context in CONTEXT.finditer(text):
        if context.end() < looked_at + _CONTEXT_STEP:
            continue
        looked_at = context.end()
        following = text[context.end() : context.end() + _CONTEXT_REACH]
        if not re.search(r"\d", following):
            continue
        if _TWO_NUMBERS.search(following):
            return True
        # Between two numbers a name is a street's even where the second could be a year.
        for pattern in (_BOTH, _WEAK_LAST):
            if any(not _YEAR.fullmatch(match[1].strip()) for match in pattern.finditer(following)):
                return True
    return False
