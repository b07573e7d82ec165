"""E-mail addresses, user info in URLs, IP addresses and social handles in a text that is already plain.

Defined by the section "Identifier screen" of the production design. Each function answers whether a plain text
(see identifiers.py) holds such a detail. Every pattern is bounded or anchored, so time grows with the length
of the text and no faster.
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache, lru_cache
from typing import Final

# A text that makes us look this many distinct candidates up without one being confirmed is refused: no question
# is like that, and so an invented text cannot buy hours of work.
MAX_LOOKUPS: Final = 40

# --- e-mail ---------------------------------------------------------------------------------------------------
_NO_LABEL = r"\s@.,;:!?/\\()<>\[\]{}\"'|#%&*+=^~$`"
_LABEL = rf"[^{_NO_LABEL}]{{1,63}}"
_LOCAL_END = re.compile(r"[\w!#$%&'*+/=?^`{|}~\"-]")
_DOMAIN = re.compile(rf"\s{{0,2}}((?:{_LABEL}\.){{1,8}}[^\W\d_][^{_NO_LABEL}]{{1,62}})")
_LOCALHOST = re.compile(r"localhost\b", re.IGNORECASE)
_OPEN, _CLOSE = r"\s{0,2}[\[({<]\s{0,2}", r"\s{0,2}[\])}>]\s{0,2}"
_AT_MARK = rf"{_OPEN}(?:at|ät|@|arobase){_CLOSE}"
_DOT_MARK = rf"{_OPEN}(?:dot|\.|punkt|point|punto){_CLOSE}"
_WORD_DOT = r"\s{1,3}dot\s{1,3}"
_NAME = r"[^\W_][\w-]{0,62}"
# After bare words ("visitor at example dot org") only endings that are no English words are believed.
_ENDING = r"(?:com|org|net|edu|gov|info|museum|example|test|invalid|io|uk|co|eu|de|fr|nl|ch|pl|ca|au|us|jp|se|dk|fi)"
_SPELT_EMAIL = re.compile(
    rf"[^\W_](?:(?:{_AT_MARK}|_at_){_NAME}(?:(?:{_DOT_MARK}|{_WORD_DOT}|\.){_NAME}){{1,6}}"
    rf"|(?:\s{{0,2}}@\s{{0,2}}|\s{{1,3}}at\s{{1,3}}){_NAME}{_DOT_MARK}[^\W\d_]{{2,}}"
    rf"|\s{{0,2}}@\s{{0,2}}{_NAME}\s{{1,2}}\.\s{{1,2}}{_ENDING}\b"
    rf"|(?:\s{{0,2}}@\s{{0,2}}|\s{{1,3}}at\s{{1,3}}){_NAME}(?:{_WORD_DOT}{_NAME}){{0,3}}?{_WORD_DOT}{_ENDING}\b)",
    re.IGNORECASE,
)
_BRACKET = re.compile(r"[\[({<]")
# --- URLs -----------------------------------------------------------------------------------------------------
_USER_INFO = re.compile(r"://[^\s/?#@]{0,256}@")
# --- IP addresses ---------------------------------------------------------------------------------------------
_QUAD = re.compile(r"(?<![\w.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\w-]|\.\w|\.-)")
_V6 = re.compile(r"(?<![\w:.])(?=[0-9a-f]{0,4}:)[0-9a-f:]{2,39}(?:\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])", re.IGNORECASE)
_NETWORK_WORD = re.compile(
    r"\b(?:ip|ipv4|ip4|address|server|servers|ping|login|log in|router|network|firewall|dns|subnet|netmask|gateway|"
    r"proxy|vpn|traceroute|ssh|ftp|https?|client|browse|blocked|port|connect|connected|internet|wifi|wi-fi|lan)\b"
    r"|_ip\b|\bip_",
    re.IGNORECASE,
)
_NUMBERING_WORD = re.compile(
    r"\b(?:version|release|build|firmware|section|chapter|clause|paragraph|figure|fig|table|item)\b\W{0,3}$",
    re.IGNORECASE,
)
# --- social handles -------------------------------------------------------------------------------------------
PLATFORM_WORDS: Final = (
    "insta", "twitter", "facebook", "tiktok", "snapchat", "telegram", "whatsapp", "linkedin", "discord", "skype",
    "wechat", "mastodon",
)  # fmt: skip
_HANDLE = re.compile(r"(?<![\w@.])@[^\W\d]\w{1,29}")
_PROFILE = re.compile(
    r"(?<![\w-])(?:(?:instagram|twitter|x|facebook|tiktok|snapchat|linkedin)\.com|threads\.net|(?:t|wa)\.me|"
    r"bsky\.app)/(?:in/|add/|profile/|@)?[\w.-]{2,}",
    re.IGNORECASE,
)
_SHORT_PLATFORM = re.compile(r"\big\s?:\s?[\w.]{2,}", re.IGNORECASE)
_PLATFORM = (
    r"(?:insta(?:gram)?|twitter|facebook|tiktok|snapchat|telegram|whatsapp|linkedin|discord|skype|wechat|mastodon)"
)
_NAMED_HANDLE = re.compile(
    rf"\b(?:my|our|his|her|their)\s+{_PLATFORM}(?:\s+(?:handle|name|id|username|profile))?\s*(?:is|:|=)\s*[\w.]{{2,}}"
    rf"|\b{_PLATFORM}\s+(?:handle|id|username)\s*(?:is|:|=)?\s*[\w.]{{2,}}|\b{_PLATFORM}\s*[:=]\s*[\w.]{{2,}}"
    rf"|\b{_PLATFORM}\s+(?=[^\W\d_]\w*[_\d])\w{{3,}}",
    re.IGNORECASE,
)


def holds_email(text: str) -> bool:
    """An e-mail address, written with `@` or spelt (`name [at] host [dot] org`)."""
    lookups = 0
    seen: set[str] = set()
    at = text.find("@")
    while at >= 0:
        before = text[max(0, at - 3) : at].rstrip()
        if before and (_LOCAL_END.match(before[-1]) or text[at - 1] == "."):
            if _LOCALHOST.match(text, at + 1):
                return True
            domain = _DOMAIN.match(text, at + 1)
            if domain and domain[1] not in seen:
                seen.add(domain[1])
                lookups += 1
                if lookups > MAX_LOOKUPS or _is_mail_domain(domain[1]):
                    return True
        at = text.find("@", at + 1)
    return _may_spell_email(text) and _SPELT_EMAIL.search(text) is not None


def _may_spell_email(text: str) -> bool:
    lowered = text.lower()
    return "dot" in lowered or "_at_" in lowered or "@" in text or _BRACKET.search(text) is not None


@lru_cache(maxsize=1024)
def _is_mail_domain(domain: str) -> bool:
    # The part before the sign is replaced: whatever a person puts there, a real host behind it gives them away.
    import email_validator

    host = domain.rstrip("-_").replace("_", "-")
    try:
        email_validator.validate_email(f"x@{host}", check_deliverability=False, globally_deliverable=False)
    except email_validator.EmailNotValidError:
        return False
    return True


def holds_url_user_info(text: str) -> bool:
    """A URL with a user name before its host."""
    return _USER_INFO.search(text) is not None


def holds_ip_address(text: str) -> bool:
    """An IPv4 or IPv6 address; a dotted accession number is none.

    `94.198.2.7` is both an address and an accession number of 1994. Where the first part can be a year of the
    twentieth century (11 to 99) and a later one is small (below 20, or below 5 where two others are over 99), it
    is an accession number, unless a word about networks stands near. A first part below 10 after `version`,
    `section` and the like is a numbering. Everything else that reads as four octets is an address.
    """
    # Asked once of the whole text before it is asked around each number: a list of accession numbers is long.
    networked: bool | None = None
    for match in _QUAD.finditer(text):
        octets = [int(part) for part in match.groups()]
        if max(octets) > 255 or _is_numbering(text, match, octets[0]):
            continue
        if not _is_accession(match[1], octets):
            return True
        networked = _NETWORK_WORD.search(text) is not None if networked is None else networked
        if networked and _NETWORK_WORD.search(text, max(0, match.start() - 60), match.end() + 40):
            return True
    return any(_is_v6(match.group()) for match in _V6.finditer(text)) if ":" in text else False


def _is_numbering(text: str, match: re.Match[str], first: int) -> bool:
    return first < 10 and _NUMBERING_WORD.search(text[max(0, match.start() - 20) : match.start()]) is not None


def _is_accession(written_first: str, octets: list[int]) -> bool:
    first, rest = octets[0], octets[1:]
    # A leading zero (06.16.2.1) is how the accession numbers of 1901 to 1909 are written.
    of_a_year = 11 <= first <= 99 or (0 < first < 10 and written_first == f"0{first}")
    return of_a_year and min(rest) < (20 if sum(part > 99 for part in rest) <= 1 else 5)


def _is_v6(written: str) -> bool:
    if len(written) < 3:
        return False
    try:
        ipaddress.IPv6Address(written.rstrip(":") if not written.endswith("::") else written)
    except ValueError:
        return False
    return True


@cache
def _no_handles() -> frozenset[str]:
    # Rules of style sheets and Java, which visitors of a museum's site do ask about.
    return frozenset({"@media", "@import", "@font", "@override", "@property", "@noon", "@midnight"})


def holds_social_handle(text: str) -> bool:
    """`@name`, a profile's URL, or a name given for a platform. `oil @ canvas` is none; `@rijksmuseum` is one."""
    if "@" in text and any(match.group().lower() not in _no_handles() for match in _HANDLE.finditer(text)):
        return True
    if ("/" in text and _PROFILE.search(text)) or (":" in text and _SHORT_PLATFORM.search(text)):
        return True
    lowered = text.lower()
    return any(word in lowered for word in PLATFORM_WORDS) and _NAMED_HANDLE.search(text) is not None
