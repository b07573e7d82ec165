"""The identifier screen: contact details in free text, identifying and content keys, pseudonym codes.

Defined by the section "Identifier screen" of the production design and by "code" in the house's word list. The
screen refuses too much rather than too little, but lets museum language through: accession numbers, years, sizes,
ISBNs. It answers with the name of a rule, never with what it found.

A text is screened in its plain form (NFKC, invisible characters removed, every script's digits and dashes as
ASCII) and, where it holds percent-escapes or character references, in its decoded forms too. Decided here: a
social handle such as `@rijksmuseum` is refused, a museum's own included, and `oil @ canvas` is not; `name @ host.org`
is an e-mail address. No limit of length skips the scan, and time grows linearly with the text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final
from urllib.parse import unquote, urlsplit

from meta_eval.evidence import contact_prefilters as prefilters
from meta_eval.evidence.contact_numbers import holds_card_number, holds_iban, holds_national_id, holds_phone
from meta_eval.evidence.contact_patterns import (
    PLATFORM_WORDS,
    holds_email,
    holds_ip_address,
    holds_social_handle,
    holds_url_user_info,
)
from meta_eval.evidence.postal_addresses import holds_postal_address

_Holds = Callable[[str], bool]
_MayHold = Callable[[str, str], object]

# In the order in which they are asked: the rule, how many digits a text needs before it can hit, and what the text
# must at least hold (which decides nothing: see contact_prefilters).
_RULES: Final[tuple[tuple[str, _Holds, int, _MayHold], ...]] = (
    ("url-user-info", holds_url_user_info, 0, prefilters.may_hold_url_user_info),
    ("e-mail", holds_email, 0, prefilters.may_hold_email),
    ("ip-address", holds_ip_address, 0, prefilters.may_hold_ip_address),
    ("iban", holds_iban, 9, prefilters.may_hold_iban),
    ("card-number", holds_card_number, 12, prefilters.may_hold_card_number),
    ("national-id", holds_national_id, 6, prefilters.may_hold_national_id),
    ("phone", holds_phone, 7, prefilters.may_hold_phone),
    ("postal-address", holds_postal_address, 1, prefilters.may_hold_postal_address),
    ("social-handle", holds_social_handle, 0, prefilters.may_hold_social_handle),
)
_DIGITLESS_RULES: Final = tuple(rule for rule in _RULES if rule[2] == 0)
CONTACT_RULES: Final = tuple(rule[0] for rule in _RULES)

_SIGN = re.compile(r"[0-9@%&:/\[({<_]")
_DIGIT = re.compile(r"[0-9]")
_SIGN_WORDS: Final = ("dot", *PLATFORM_WORDS)
ASCII_SIGN: Final = f"{_SIGN.pattern}|(?i:{'|'.join(_SIGN_WORDS)})"
"""`may_hold_contact` of an ASCII text, as a regular expression that RE2 reads too."""
_DECODE_ROUNDS = 3
# NFKC reorders runs of combining marks in quadratic time, so a long text is normalised in pieces.
_PIECE = 2048
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹣－"), "-") | {ord("。"): ".", ord("ı"): "i", ord("İ"): "I"}
_INVISIBLE = re.compile(
    # The format characters (category Cf), written out since asking for each character's category is slow ...
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f"
    # ... and what is as invisible without being one: joiner, fillers, variation selectors, keycap.
    "\u034f\u115f\u1160\u17b4\u17b5\u20e3\u3164\ufe00-\ufe0f]"
)
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
# Latin, Greek and Cyrillic letters, curly quotes, kana, Chinese characters and Hangul: what a normalised text mostly
# is, and nothing that the steps after NFKC would change. A text of these alone skips them.
_SETTLED = re.compile(
    "[\x00-\xac\xae-\u012f\u0132-\u02ff\u0370-\u052f\u2018-\u201f\u20a0-\u20bf\u3003-\u3020\u3040-\u30ff\u4e00-\u9fff"
    "\uac00-\ud7a3]*"
)


def may_hold_contact(text: str) -> bool:
    """The cheap prefilter: False guarantees that `contact_rule` answers None."""
    plain = text if text.isascii() else _plain(text)
    return _has_sign(plain, plain.lower())


def contact_rule(text: str) -> str | None:
    """The name of the first rule (see CONTACT_RULES) that finds a contact detail in free text, else None."""
    plain = text if text.isascii() else _plain(text)
    lowered = plain.lower()
    if not _has_sign(plain, lowered):
        return None
    rule = _first_rule(plain, lowered)
    if rule is None and ("%" in plain or "&" in plain):
        for form in islice(_forms(plain), 1, None):
            if (rule := _first_rule(form, form.lower())) is not None:
                return rule
    return rule


def _first_rule(form: str, lowered: str) -> str | None:
    """The first rule that hits; those that cannot are passed over."""
    digits = len(_DIGIT.findall(form))
    for name, holds, least_digits, may_hold in _RULES if digits else _DIGITLESS_RULES:
        if digits >= least_digits and may_hold(form, lowered) and holds(form):
            return name
    return None


def specified_contact_rule(text: str) -> str | None:
    """`contact_rule` as it is specified: every rule in its order, with nothing passed over. Tests compare the two."""
    for form in _forms(text if text.isascii() else _plain(text)):
        digits = len(re.sub(r"\D", "", form))
        for name, holds, least_digits, _ in _RULES:
            if digits >= least_digits and holds(form):
                return name
    return None


def _has_sign(plain: str, lowered: str) -> bool:
    if _SIGN.search(plain):
        return True
    # A plain loop: over a few words it takes half the time of any() with a generator.
    for word in _SIGN_WORDS:  # noqa: SIM110
        if word in lowered:
            return True
    return False


def _plain(text: str) -> str:
    if len(text) <= _PIECE:
        plain = unicodedata.normalize("NFKC", text)
    else:
        pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
        plain = "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
    if plain.isascii() or _SETTLED.fullmatch(plain):
        return plain
    plain = _INVISIBLE.sub("", plain).translate(_DASHES)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), plain)


def _forms(plain: str) -> Iterator[str]:
    """The plain text, and what percent-escapes and character references in it stand for."""
    yield plain
    for _ in range(_DECODE_ROUNDS):
        if "%" not in plain and "&" not in plain:
            return
        decoded = html.unescape(unquote(plain, errors="replace"))
        if decoded == plain:
            return
        plain = decoded if decoded.isascii() else _plain(decoded)
        yield plain


def urls_carry_contact(url: str) -> bool:
    """An e-mail address or user info in the path, query or fragment of a URL, percent-decoded."""
    try:
        parts = urlsplit(url)
        rest = " ".join((parts.path, parts.query, parts.fragment))
    except ValueError:
        rest = url
    return any(holds_email(form) or holds_url_user_info(form) for form in _forms(_plain(rest)))


# --- keys -----------------------------------------------------------------------------------------------------
IDENTIFYING_WORDS: Final = frozenset(
    {
        *("contact", "contacts", "email", "emails", "mail", "mails", "mailbox", "mailto"),
        *("phone", "phones", "telephone", "tel", "mobile", "cell", "cellphone", "fax", "msisdn", "whatsapp"),
        *("address", "addresses", "addr", "street", "postcode", "postalcode", "zip", "zipcode", "postal"),
        *(
            "name",
            "names",
            "firstname",
            "lastname",
            "surname",
            "fullname",
            "givenname",
            "familyname",
            "middlename",
        ),
        *(
            "username",
            "nickname",
            "displayname",
            "realname",
            "screenname",
            "login",
            "handle",
            "handles",
            "twitter",
        ),
        *("ip", "ips", "ipv4", "ipv6", "ipaddress", "ipaddr", "ssn", "iban", "passport", "birthdate", "dob"),
        *("emailaddress", "mailaddress", "homeaddress", "streetaddress", "postaladdress", "phonenumber"),
        *("mobilenumber", "telephonenumber", "faxnumber", "cardnumber", "useremail", "userphone", "userip"),
        *("clientip", "remoteip", "remoteaddr", "remoteaddress", "sourceip", "socialsecurity", "nationalid"),
    }
)
CONTENT_WORDS: Final = frozenset(
    {
        *("prompt", "prompts", "question", "questions", "query", "output", "outputs", "answer", "answers"),
        *("content", "contents", "text", "texts", "message", "messages", "response", "responses", "reply"),
        *("completion", "completions", "transcript", "transcripts", "utterance", "utterances", "body"),
        *("questiontext", "answertext", "messagetext", "prompttext", "rawtext", "fulltext", "chatlog"),
    }
)
_KEY_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NOT_ASCII_WORD = re.compile(r"[\W\d_]+")


def identifying_key(key: str) -> bool:
    """Does the key name something that identifies or reaches a person? Whole words: `userEmail` yes, `shipping` no."""
    return _names(key, "identifying")


def content_key(key: str) -> bool:
    """Does the key name what a person or a model said? Whole words: `finalAnswer` yes, `unanswered` no."""
    return _names(key, "content")


@lru_cache(maxsize=4096)
def _names(key: str, kind: str) -> bool:
    words = IDENTIFYING_WORDS if kind == "identifying" else CONTENT_WORDS
    return not words.isdisjoint(_key_words(key))


def _key_words(key: str) -> set[str]:
    """The words of a key, each pair of neighbours joined (`e-mail`, `ip_v4`), and the whole key joined."""
    plain = _plain(key)
    runs = [run for run in _NOT_ASCII_WORD.split(plain) if run]
    words = [word.lower() for run in runs for word in (_KEY_WORD.findall(run) if run.isascii() else [run])]
    pairs = (first + second for first, second in pairwise(words))
    return {*words, *pairs, *(run.lower() for run in runs), "".join(words), re.sub(r"\W", "", plain).lower()}


# --- codes ----------------------------------------------------------------------------------------------------
_CODE = re.compile(r"(?=[0-9-]*[A-Z])[A-Z0-9-]{3,40}")
_CODE_LETTERS = re.compile(r"[A-Z]+-?|-(?=[A-Z])")


def is_code(value: object) -> bool:
    """Is the value a pseudonym such as `REV-7Q2K`, and nothing that reaches a person?

    Its digits are screened without its letters as well, so that `NN-202-555-0123` is no code.
    """
    return isinstance(value, str) and _CODE.fullmatch(value) is not None and _reaches_nobody(value)


@lru_cache(maxsize=4096)  # a round names a few people in many rows
def _reaches_nobody(value: str) -> bool:
    return contact_rule(value) is None and contact_rule(_CODE_LETTERS.sub(" ", value)) is None
