"""Public-host policy: may this URL serve as evidence in a round of this environment?

Defined by the section "Public-host policy" of the production design and by the house's word list (production,
rehearsal). One function decides, `url_refusal`; it answers with the name of the rule that a URL breaks, never
with the URL. Nothing is resolved and nothing is fetched: the suffix list is the one bundled with tldextract.

What is decided here, where the design leaves room:

* The whole URL may hold no white space, control character, lone surrogate or backslash, since two readers could
  then see two hosts; nor may its authority hold a percent sign. At most 2,048 characters.
* The host is mapped as a browser maps it (UTS 46, non-transitional) and must then be valid IDNA 2008, so an
  underscore and a `--` in the third place are refused. A port is either absent or exactly `:443`.
* One trailing dot is removed before anything is compared: `www.metmuseum.org.` gets the same verdict as
  `www.metmuseum.org`. More than one, or an empty label anywhere, is `malformed-host`.
* A host whose last label is all digits or `0x` and hex digits is an IP literal or nothing: refused either way, a
  public address as well (`ip-literal` says that literals are refused, not that the address is private).
* The registrable domain is the one under the ICANN part of the suffix list: `name.github.io` counts as public.
* Stand-in words are looked for as whole labels and as hyphen-separated words of a label (`my-sandbox` is one,
  `contest` is not), in the Unicode form of the label. Path, query and fragment are not searched for words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final, Literal

Environment = Literal["production", "rehearsal"]

MAX_URL_LENGTH: Final = 2048

HOST_RULES: Final[dict[str, str]] = {
    "not-a-string": "A URL is text.",
    "too-long": f"A URL has at most {MAX_URL_LENGTH} characters.",
    "forbidden-character": "A URL holds no white space, control character, lone surrogate or backslash.",
    "not-https": "The scheme is https.",
    "no-host": "Two slashes and a host follow the scheme.",
    "user-info": "No user name or password stands before the host.",
    "percent-in-authority": "Neither host nor port is percent-encoded.",
    "port": "No port is given, or exactly 443.",
    "malformed-host": "The host is valid IDNA 2008 after one trailing dot is removed, without empty labels.",
    "ip-literal": "The host is a name, not an IP address in any spelling that a browser would take for one.",
    "single-label": "The host has at least two labels.",
    "reserved-name": "The host lies under no reserved, local or reverse name.",
    "wildcard-dns": "The host does not spell an address, itself or through a service that answers with one.",
    "stand-in-word": "No label is, or has as a hyphenated word, a word for a stand-in such as demo or sandbox.",
    "no-public-suffix": "The host has a registrable domain under a public suffix.",
    "not-a-reserved-name": "A rehearsal's host lies under .example, .test or .invalid.",
}

REHEARSAL_NAMES: Final = frozenset({"example", "test", "invalid"})
# Top-level names that never lead to a public host: RFC 2606, 6761, 6762, 7686, 8375, 9476, ICANN's `internal`, and
# the names that private networks use most. `arpa` covers home.arpa and the reverse zones.
RESERVED_TOP_LEVEL: Final = REHEARSAL_NAMES | frozenset(
    ["localhost", "local", "localdomain", "internal", "lan", "corp", "home", "onion", "alt", "arpa"]
)
RESERVED_DOMAINS: Final = frozenset({"example.com", "example.net", "example.org", "example.edu"})
# Services whose names spell an address, or always loop back to the machine that asks.
WILDCARD_DNS_DOMAINS: Final = frozenset(
    {
        *(
            "nip.io",
            "sslip.io",
            "xip.io",
            "xip.name",
            "ip6.name",
            "ipq.co",
            "1u.ms",
            "rbndr.us",
            "backname.io",
        ),
        *("local-ip.co", "local-ip.sh", "plex.direct", "addr.tools", "localtest.me", "lvh.me", "vcap.me"),
        *("traefik.me", "lacolhost.com", "fuf.me", "smackaho.st", "yoogle.com", "42foo.com", "lcl.host"),
        *("localho.st", "local.gd", "localhost.direct", "localstack.cloud", "127-0-0-1.org.uk"),
        *("lndo.site", "ddev.site", "docksal.site"),
    }
)
STAND_IN_WORDS: Final = frozenset(
    ["example", "test", "sandbox", "demo", "fixture", "staging", "mock", "dummy", "sample", "placeholder"]
)

_SCHEME = re.compile(r"https://", re.IGNORECASE)
_FORBIDDEN = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NUMBER_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_SPELT_ADDRESS = re.compile(rf"(?:^|\.){_OCTET}(?:-{_OCTET}){{3}}\.|(?:^|\.)(?:{_OCTET}\.){{4}}")


def url_refusal(url: object, *, environment: str) -> str | None:
    """None where the URL may serve as evidence, else the name of the rule (see HOST_RULES) that it breaks.

    `https://www.metmuseum.org./` and the same URL without the trailing dot get the same verdict.

    Raises:
        ValueError: `environment` is neither "production" nor "rehearsal". No URL raises anything.
    """
    if environment not in ("production", "rehearsal"):
        raise ValueError("environment is either production or rehearsal")
    if not isinstance(url, str):
        return "not-a-string"
    refusal, authority = _authority(url)
    if refusal is not None:
        return refusal
    host = _host(authority)
    if isinstance(host, _Refusal):
        return host.rule
    return _rehearsal_refusal(host) if environment == "rehearsal" else _production_refusal(host)


class _Refusal:
    """A rule broken by the syntax of a host, where a host was due."""

    def __init__(self, rule: str) -> None:
        self.rule = rule


def _authority(url: str) -> tuple[str | None, str]:
    """The rule that the frame of the URL breaks, if any, and its authority without the port."""
    if len(url) > MAX_URL_LENGTH:
        return "too-long", ""
    if _FORBIDDEN.search(url):
        return "forbidden-character", ""
    if not _SCHEME.match(url):
        return ("no-host" if url[:6].lower() == "https:" else "not-https"), ""
    authority = re.split(r"[/?#]", url[8:], maxsplit=1)[0]
    if "@" in authority:
        return "user-info", ""
    if "%" in authority:
        return "percent-in-authority", ""
    if authority.startswith("["):
        return ("ip-literal" if "]" in authority else "malformed-host"), ""
    host, colon, port = authority.partition(":")
    if not host:
        return "no-host", ""
    if colon and port != "443":
        return "port", ""
    return None, host


def _host(written: str) -> str | _Refusal:
    """The host in lower-case ASCII, without its trailing dot, or the rule that it breaks."""
    mapped = _idna_mapping()(written)
    if mapped is None:
        return _Refusal("malformed-host")
    mapped = mapped.removesuffix(".")
    labels = mapped.split(".")
    if "" in labels:
        return _Refusal("malformed-host")
    # Before IDNA's own check: a browser takes such a host for an address whatever its other labels are.
    if _NUMBER_LABEL.fullmatch(labels[-1]):
        return _Refusal("ip-literal")
    ascii_host = _idna_encoding()(mapped)
    return _Refusal("malformed-host") if ascii_host is None else ascii_host


def _rehearsal_refusal(host: str) -> str | None:
    labels = host.split(".")
    if len(labels) < 2:
        return "single-label"
    return None if labels[-1] in REHEARSAL_NAMES else "not-a-reserved-name"


def _production_refusal(host: str) -> str | None:
    labels = host.split(".")
    if labels[-1] in RESERVED_TOP_LEVEL or ".".join(labels[-2:]) in RESERVED_DOMAINS:
        return "reserved-name"
    if len(labels) < 2:
        return "single-label"
    domain = _registrable_domain()(host)
    if not domain:
        return "no-public-suffix"
    if domain in WILDCARD_DNS_DOMAINS or _SPELT_ADDRESS.search(host):
        return "wildcard-dns"
    if any(word in STAND_IN_WORDS for label in labels for word in _words(label)):
        return "stand-in-word"
    return None


def _words(label: str) -> list[str]:
    import idna

    # In Punycode the ASCII letters of a label come first, so `xn--demo-...` need not hold the word demo.
    return (idna.ulabel(label) if label.startswith("xn--") else label).split("-")


# The libraries are loaded at the first verdict and not at import: most commands never ask for one.


@cache
def _idna_mapping() -> Callable[[str], str | None]:
    import idna

    def mapped(host: str) -> str | None:
        try:
            return idna.uts46_remap(host, std3_rules=True, transitional=False)
        except UnicodeError:
            return None

    return mapped


@cache
def _idna_encoding() -> Callable[[str], str | None]:
    import idna

    def encoded(host: str) -> str | None:
        try:
            return idna.encode(host).decode("ascii")
        except UnicodeError:
            return None

    return encoded


@cache
def _registrable_domain() -> Callable[[str], str]:
    import tldextract

    # No URL of a newer list and no cache folder: the bundled list only, so nothing is fetched or written.
    extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    return lambda host: str(extract(host).top_domain_under_public_suffix)
