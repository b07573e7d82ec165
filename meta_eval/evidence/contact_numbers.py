"""Numbers that identify or reach a person, in a text that is already plain: phone, card, IBAN, national id.

Defined by the section "Identifier screen" of the production design. A museum's own numbers look much the same, so
what is written like a date, a range of years, an accession number, an ISBN, a coordinate or a price is first
taken out. What remains is a phone number where

* a word about calling stands before or after it, and it has seven digits or more; or
* it begins with `+`, and some region's plan holds it possible, or with `00` and some plan holds it valid; or
* it is grouped as in North America (`202-555-0123`, `(202) 555-0123`); or
* it begins with a trunk `0`, is grouped or as long as a mobile number, and is valid in one of
  TRUNK_ZERO_REGIONS; or
* it is grouped, has 11 to 13 digits and is valid once `+` is put before it.

National formats without a trunk zero (Spain, Norway, Poland and others) are therefore found only beside a word
about calling: without one they cannot be told from a catalogue number.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from meta_eval.evidence.contact_patterns import MAX_LOOKUPS

TRUNK_ZERO_REGIONS: Final = (
    "GB", "FR", "DE", "NL", "BE", "CH", "AT", "IE", "SE", "FI", "IT", "AU", "NZ", "ZA", "JP", "IN", "IL", "TR", "SK",
)  # fmt: skip

# --- what a museum writes -------------------------------------------------------------------------------------
_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})"
_MUSEUM_NUMBER = re.compile(
    r"\bISBN(?:-1[03])?\W{0,3}[0-9][0-9 -]{8,15}[0-9Xx]"
    r"|(?<![\w.])97[89](?:[ -]?[0-9]){10}(?!\w)"
    rf"|(?<![\w.-])(?<!\d ){_YEAR}-[0-9]{{2}}-[0-9]{{2}}(?:[T ][0-9]{{2}}:[0-9:.]+)?(?![\w-])"
    rf"|(?<![\w.-])(?<!\d )[0-9]{{1,2}}([./-])[0-9]{{1,2}}\1{_YEAR}(?!\w)"
    rf"|(?<![\w.-])(?<!\d ){_YEAR} ?- ?(?:[0-9]{{2}}|{_YEAR})(?![\w-])"
    rf"|(?<![\w.+(-])(?!0[0-9](?:\.[0-9]{{2}}){{4}}(?!\d))(?:1[5-9][0-9]{{2}}|20[0-9]{{2}}|[0-9]{{2}})(?:\.[0-9]{{1,5}})+"
    r"(?:-\.?[0-9]+)*(?![0-9])"
    r"|(?<![\w.])[0-9]{1,3}\.[0-9]{4,}(?![\w.])"
    r"|[$€£¥]\s?[0-9][0-9.,]*",
    re.IGNORECASE,
)
# --- phone ----------------------------------------------------------------------------------------------------
_RUN = re.compile(r"(?<![\w.])(?<!\d[,/-])(?:\(?\+\(?|\()?\d(?:[ ().\-/]{0,3}\d)+")
_CALL_WORD = re.compile(
    r"(?:\b(?:call(?:s|ed|ing)?(?!\W{1,3}(?:number|no\b|nr|mark|slip))|ring|phone|phones|telephone|tel|mobile|cell|"
    r"cellphone|fax|text|texts|texted|sms|whatsapp|dial|desk|office|reach|contact|pager|handy|portable|"
    r"(?:my|your|his|her|our|their|phone|mobile)\s+number|answering|messages? (?:to|on my)|"
    r"ll[aá]ma(?:me|r)|appelez|appeler|chiamami|anrufen|t[eé]l[eé]phone|t[eé]l|telefon|telefoon|tel[eé]fono|telefono|telefone|num[eé]ro|nummer)\b|\bwa\.me/)[^\d]{0,40}$",
    re.IGNORECASE,
)
# Four or five pairs with dots are an accession number (71.33.52.22), unless they are plainly a number to call.
_CALL_PAIRS = re.compile(
    r"\b(?:phone|tel|telephone|mobile|fax|whatsapp|t[eé]l[eé]phone|t[eé]l|telefon|"
    r"(?:call|ring|text|phone|reach) (?:me|us)|my number|num[eé]ro)"
    r"\W{1,3}(?:is|at|on|est)?\W{0,3}\d{2}(?:\.\d{2}){3,4}(?![\d.-])",
    re.IGNORECASE,
)
_CALL_WORD_AFTER = re.compile(
    r"[\s,(-]{1,3}(?:office|fax|mobile|cell|home|desk|phone|tel|work|handy)\b"
    r"|\s{1,2}is\s(?:my|our|his|her|their|the)\s(?:\w{1,12}\s){0,2}(?:number|phone|mobile|cell|fax)\b",
    re.IGNORECASE,
)
_NORTH_AMERICA = re.compile(
    r"(?<![\w.-])(?:\+?1[ .-]{1,2})?(?:\([2-9]\d{2}\) {0,2}|[2-9]\d{2}([./-]))[2-9]\d{2}[ .-]\d{4}(?![\d.-]\d|\d)"
)
_SPACED_NORTH_AMERICA = re.compile(r"(?<![\w.-])(?<!\d )[2-9]\d{2} [2-9]\d{2} \d{4}(?![\w-]| \d|\.\d)")
_TRUNK_ZERO = re.compile(r"(?<![\w.-])(?<!\d )\(?0[1-9]\d{0,4}\)?(?:[ ./-]{1,2}\d{2,8}){1,5}(?![\d-])")
_BARE_MOBILE = re.compile(r"(?<![\w.-])(?:0[4-8]\d{8}|0[1-9]\d{9})(?![\w-])")
_COUNTRY_FIRST = re.compile(r"(?<![\w.-])(?<!\d )[1-9]\d{0,2}(?:[ -]\d{1,5}){2,5}(?![\w-]| \d|\.\d)")
_ISBN_TAIL = re.compile(r"-\d$")
# --- cards, accounts, national ids ----------------------------------------------------------------------------
_DIGIT_GROUPS = re.compile(r"(?<!\w)\d++(?:[ .-]\d++)*+")
_CARD_BRANDS = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"3[0689]"), (14, 15, 16, 17, 18, 19)),
    (re.compile(r"35"), (16, 17, 18, 19)),
    (re.compile(r"1800|2131"), (15,)),
    (re.compile(r"5[06-8]|6|0604"), tuple(range(12, 20))),
)
IBAN_LENGTHS: Final[dict[str, int]] = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28,
    "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20,
    "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
_IBAN = re.compile(r"(?<![^\W_])(?=(([A-Z]{2})\d{2}(?:[ -]?[A-Z0-9]){11,29}))", re.IGNORECASE)
_NATIONAL_ID = re.compile(
    r"(?<![\w.-])(?!000|666)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"
    r"|\b(?:ssn|itin|social security)\b\D{0,30}\d{3}[ .-]?\d{2}[ .-]?\d{4}(?!\d)"
    r"|(?<![\w.-])\d{3}[ -]?\d{2}[ -]?\d{4}\W{1,3}(?:is )?(?:my )?(?:ssn|social security)\b"
    r"|(?<!\w)(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] \d{2} \d{2} \d{2} [A-D](?!\w)"
    r"|\b(?:national insurance|nino)\b\W{0,3}(?:number|no)?\W{0,3}(?:is)?\W{0,3}[A-Z]{2}\s?\d{2}\s?\d{2}\s?\d{2}"
    r"|\b(?:passport|driver'?s? licen[cs]e|driving licen[cs]e|tax id)\b[^\d\n]{0,30}\d{6,}",
    re.IGNORECASE,
)


def holds_card_number(text: str) -> bool:
    """12 to 19 digits, also in groups, that begin like a card's and satisfy Luhn."""
    for match in _DIGIT_GROUPS.finditer(text):
        groups = re.split(r"[ .-]", match.group())
        for start in range(len(groups)):
            if _card_begins(groups, start):
                return True
    return False


def _card_begins(groups: list[str], start: int) -> bool:
    digits = ""
    for group in groups[start : start + 6]:
        digits += group
        if len(digits) > 19 or (len(group) < 3 and digits != group):
            return False
        if len(digits) >= 12 and _is_card(digits):
            return True
    return False


def _is_card(digits: str) -> bool:
    if not any(len(digits) in lengths and brand.match(digits) for brand, lengths in _CARD_BRANDS):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(int(digit) for digit in digits[-1::-2]) + sum(doubled)) % 10 == 0


def holds_iban(text: str) -> bool:
    """An account number of a country that has them, of its length and with a check value that holds (mod 97)."""
    # The pattern looks ahead only, so that a code before the account (`AB12 DE89 3704 ...`) does not swallow it.
    for match in _IBAN.finditer(text):
        length = IBAN_LENGTHS.get(match[2].upper())
        written = re.sub(r"[ -]", "", match[1]).upper()
        if length and len(written) >= length and written.isascii():
            turned = written[4:length] + written[:4]
            if int("".join(str(int(char, 36)) for char in turned)) % 97 == 1:
                return True
    return False


def holds_national_id(text: str) -> bool:
    """A US social security number, a UK National Insurance number, or a number given for a passport or licence."""
    return bool(_NATIONAL_ID.search(text) and _NATIONAL_ID.search(_MUSEUM_NUMBER.sub("~", text)))


def holds_phone(text: str) -> bool:
    """A phone number, by the four rules that the module states."""
    if not any(_digit_count(match) >= 7 for match in _RUN.finditer(text)):
        return False
    rest = _MUSEUM_NUMBER.sub("~", text)
    if _NORTH_AMERICA.search(rest) or _CALL_PAIRS.search(text):
        return True
    seen: set[str] = set()
    for match in _RUN.finditer(rest):
        digits = re.sub(r"\D", "", match.group())
        if len(digits) < 7:
            continue
        if _beside_call_word(rest, match):
            return True
        if match.group().lstrip("(").startswith("+") and _is_plan_number("+" + digits[:15], None):
            return True
        seen.update(_to_look_up(match.group(), digits))
        if len(seen) > MAX_LOOKUPS:
            return True
    return any(_is_national_number(written) for written in seen)


def _digit_count(match: re.Match[str]) -> int:
    return sum(map(str.isdigit, match.group()))


def _beside_call_word(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 48) : match.start()]
    if _CALL_WORD.search(before):
        return True
    return _CALL_WORD_AFTER.match(text, match.end()) is not None


def _to_look_up(run: str, digits: str) -> list[str]:
    """The spellings in a run of digits that a numbering plan must decide on."""
    found = [match.group() for match in _SPACED_NORTH_AMERICA.finditer(run)]
    found += [match.group() for match in _TRUNK_ZERO.finditer(run) if not _ISBN_TAIL.search(match.group())]
    found += [match.group() for match in _BARE_MOBILE.finditer(run)]
    found += ["+" + match.group() for match in _COUNTRY_FIRST.finditer(run) if 11 <= _digit_count(match) <= 13]
    if re.match(r"\(?00\W{0,2}[1-9]", run):
        found.append("+" + digits[2:17])
    return found


@lru_cache(maxsize=4096)
def _is_national_number(written: str) -> bool:
    if written.startswith("+"):
        return _is_plan_number(written, None, valid=True)
    digits = re.sub(r"\D", "", written)
    if not 9 <= len(digits) <= 11:
        return False
    regions = TRUNK_ZERO_REGIONS if digits.startswith("0") else ("US", "CA")
    return any(_is_plan_number(digits, region, valid=True) for region in regions)


@lru_cache(maxsize=4096)
def _is_plan_number(digits: str, region: str | None, *, valid: bool = False) -> bool:
    import phonenumbers

    try:
        number = phonenumbers.parse(digits, region)
    except phonenumbers.NumberParseException:
        return False
    check = phonenumbers.is_valid_number if valid else phonenumbers.is_possible_number
    return bool(check(number))
