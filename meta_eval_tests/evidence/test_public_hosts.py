"""The public-host policy: each rule by name, spellings that others let through, and properties."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meta_eval.evidence.public_hosts import (
    HOST_RULES,
    MAX_URL_LENGTH,
    REHEARSAL_NAMES,
    STAND_IN_WORDS,
    WILDCARD_DNS_DOMAINS,
    url_refusal,
)

REPOSITORY = Path(__file__).parents[2]


def production(url: object) -> str | None:
    return url_refusal(url, environment="production")


def rehearsal(url: object) -> str | None:
    return url_refusal(url, environment="rehearsal")


IP_HOSTS = [
    # Shorthand, decimal, hex, octal and zero-padded spellings of an IPv4 address.
    *(
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "010.0.0.1",
        "012.0.0.1",
    ),
    *("2852039166", "127.0.0.0x1", "0", "00000000.0", "192.168.257", "127.0.0.1", "0X7F.1", "0x", "1.2.3.0x"),
    # Full-width, circled and mathematical digits, and ideographic full stops, which map to ASCII.
    *("１２７.０.０.１", "①②⑦.⓪.⓪.①", "𝟙𝟚𝟟.𝟘.𝟘.𝟙", "127。0。0。1", "１２７．１"),
    # Neither private nor global, documentation, multicast, future use, broadcast, link-local, and a public one.
    *("100.64.0.1", "198.18.0.1", "192.0.2.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1"),
    "0.0.0.0",  # noqa: S104 - a host to refuse, not to bind
    *("255.255.255.255", "169.254.169.254", "169.254.169.254.", "192.0.78.9"),
    # A last label that is a number makes an address of any host, or nothing.
    *("museum.256", "www.museum.999999999999", "1.2.3.4.5"),
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:a9fe:a9fe]", "[2001:db8::1]", "[fd00::1]"),
    *("[febf::1]", "[::1]", "[::]", "[v1.x]"),
]


@pytest.mark.parametrize("host", IP_HOSTS)
@pytest.mark.parametrize("environment", ["production", "rehearsal"])
def test_an_ip_literal_is_refused_in_every_spelling(host: str, environment: str) -> None:
    assert url_refusal(f"https://{host}/evidence", environment=environment) == "ip-literal"


@pytest.mark.parametrize(
    "url",
    [
        "HTTPS://WWW.METMUSEUM.ORG/art/collection/search/436535",
        "https://www.metmuseum.org",
        "https://www.metmuseum.org./",
        "https://www.metmuseum.org:443/art",
        "https://www.metmuseum.org?q=1",
        "https://www.metmuseum.org#top",
        "https://latest.rijksmuseum.nl/en",
        "https://www.greatestmuseums.org/",
        "https://www.democracymuseum.org/",
        "https://localarchives.gov.uk/",
        "https://attestation.org/",
        "https://contest.org/",
        "https://en.wikipedia.org/wiki/Test?example=demo#sandbox",
        "https://www.metmuseum.org/path%20with/a@sign?to=10.0.0.1",
        "https://xn--mnchen-3ya.de/",
        "https://münchen.de/",
        "https://ＷＷＷ．ｍｅｔｍｕｓｅｕｍ．ｏｒｇ/",
        "https://4.rijksmuseum.nl/",
        "https://collection.github.io/",
    ],
)
def test_a_public_host_is_accepted_in_production(url: str) -> None:
    assert production(url) is None


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        (None, "not-a-string"),
        (b"https://www.metmuseum.org/", "not-a-string"),
        (["https://www.metmuseum.org/"], "not-a-string"),
        ("https://www.metmuseum.org/" + "a" * MAX_URL_LENGTH, "too-long"),
        ("https://10.0.0.1\\@www.metmuseum.org/", "forbidden-character"),
        ("https://www.metmuseum.org\\@10.0.0.1/", "forbidden-character"),
        (" https://www.metmuseum.org/", "forbidden-character"),
        ("https://www.metmuseum.org/\n", "forbidden-character"),
        ("https://www.met\tmuseum.org/", "forbidden-character"),
        ("https://www.metmuseum.org/\x00", "forbidden-character"),
        ("https://www.metmuseum.org/\ud800", "forbidden-character"),
        ("", "not-https"),
        ("www.metmuseum.org", "not-https"),
        ("http://www.metmuseum.org/", "not-https"),
        ("javascript:https://www.metmuseum.org/", "not-https"),
        ("https:www.metmuseum.org", "no-host"),
        ("https:///www.metmuseum.org", "no-host"),
        ("https://", "no-host"),
        ("https://?q", "no-host"),
        ("https://:443/", "no-host"),
        ("https://user:pw@www.metmuseum.org/", "user-info"),
        ("https://www.metmuseum.org:443@10.0.0.1/", "user-info"),
        ("https://www.metmuseum.org%2f@10.0.0.1/", "user-info"),
        ("https://@www.metmuseum.org/", "user-info"),
        ("https://loc%61lhost/", "percent-in-authority"),
        ("https://[fe80::1%25eth0]/", "percent-in-authority"),
        ("https://www.metmuseum.org:0/", "port"),
        ("https://www.metmuseum.org:/", "port"),
        ("https://www.metmuseum.org:80/", "port"),
        ("https://www.metmuseum.org:8443/", "port"),
        ("https://www.metmuseum.org:99999/", "port"),
        ("https://www.metmuseum.org:0443/", "port"),
        ("https://www.metmuseum.org:４４３/", "port"),
        ("https://[::1/", "malformed-host"),
        ("https://www..metmuseum.org/e", "malformed-host"),
        ("https://.metmuseum.org/e", "malformed-host"),
        ("https://www.metmuseum.org../", "malformed-host"),
        ("https://./", "malformed-host"),
        ("https://-a.metmuseum.org/", "malformed-host"),
        ("https://a_b.metmuseum.org/", "malformed-host"),
        ("https://xn--a.metmuseum.org/", "malformed-host"),
        ("https://☃.metmuseum.org/", "malformed-host"),
        ("https://" + "a" * 64 + ".metmuseum.org/", "malformed-host"),
        ("https://" + "a." * 130 + "metmuseum.org/", "malformed-host"),
    ],
)
@pytest.mark.parametrize("environment", ["production", "rehearsal"])
def test_syntax_is_refused_by_its_rule_in_both_environments(url: object, rule: str, environment: str) -> None:
    assert url_refusal(url, environment=environment) == rule


@pytest.mark.parametrize(
    ("host", "rule"),
    [
        *((host, "reserved-name") for host in ("localhost", "localhost.", "LOCALHOST", "foo.localhost")),
        *((host, "reserved-name") for host in ("printer.local.", "x.internal.", "localhost.localdomain")),
        *((host, "reserved-name") for host in ("router.home.arpa", "1.0.0.127.in-addr.arpa", "8.b.d.ip6.arpa")),
        *((host, "reserved-name") for host in ("a.invalid", "db.test", "museum.example", "vault.onion", "nas.lan")),
        *((host, "reserved-name") for host in ("www.example.com", "sub.example.org.", "example.net", "x.corp")),
        ("www.metmuseum.org.example", "reserved-name"),
        ("loc\u00adalhost", "reserved-name"),
        ("ｌｏｃａｌｈｏｓｔ", "reserved-name"),
        ("intranet", "single-label"),
        ("org", "single-label"),
        ("www.museum.notatld", "no-public-suffix"),
        ("co.uk", "no-public-suffix"),
        ("127.0.0.1.nip.io", "wildcard-dns"),
        ("10-0-0-1.sslip.io", "wildcard-dns"),
        ("localtest.me", "wildcard-dns"),
        ("a.b.lvh.me", "wildcard-dns"),
        ("127.0.0.1.metmuseum.org", "wildcard-dns"),
        ("10-0-0-1.metmuseum.org", "wildcard-dns"),
        ("demo.metmuseum.org", "stand-in-word"),
        ("test.metmuseum.org", "stand-in-word"),
        ("my-sandbox.metmuseum.org", "stand-in-word"),
        ("www.sample-museum.org", "stand-in-word"),
        ("ＤＥＭＯ.metmuseum.org", "stand-in-word"),
        ("demo-münchen.de", "stand-in-word"),
    ],
)
def test_a_host_that_is_not_public_is_refused_in_production(host: str, rule: str) -> None:
    assert production(f"https://{host}/evidence") == rule


@pytest.mark.parametrize(
    "host", ["museum.example", "www.museum.test", "a.invalid", "demo.sandbox.example", "MUSEUM.EXAMPLE."]
)
def test_a_rehearsal_takes_the_reserved_names_and_production_refuses_them(host: str) -> None:
    assert rehearsal(f"https://{host}/e") is None
    assert production(f"https://{host}/e") == "reserved-name"


@pytest.mark.parametrize(
    ("host", "rule"),
    [
        *((host, "not-a-reserved-name") for host in ("www.metmuseum.org", "www.example.com", "a.localhost", "x.lan")),
        ("example", "single-label"),
        ("test.", "single-label"),
    ],
)
def test_a_rehearsal_takes_no_other_host(host: str, rule: str) -> None:
    assert rehearsal(f"https://{host}/e") == rule


def test_every_rule_is_documented_and_every_answer_is_a_rule() -> None:
    assert all(text.endswith(".") and rule == rule.lower() for rule, text in HOST_RULES.items())
    hosts = ["localhost", "intranet", "a.notatld", "nip.io", "demo.metmuseum.org", "1.1", "a..b"]
    answers = {production(f"https://{host}") for host in hosts} | {rehearsal("https://metmuseum.org")}
    assert answers <= set(HOST_RULES)


@pytest.mark.parametrize("environment", ["", "Production", "golden"])
def test_another_environment_is_an_error(environment: str) -> None:
    with pytest.raises(ValueError, match="production or rehearsal"):
        url_refusal("https://www.metmuseum.org/", environment=environment)


def test_every_stand_in_word_and_wildcard_service_is_refused() -> None:
    for word in STAND_IN_WORDS:
        assert production(f"https://{word}.metmuseum.org/") == "stand-in-word"
        assert production(f"https://a-{word}-b.metmuseum.org/") == "stand-in-word"
        assert production(f"https://x{word}.metmuseum.org/") is None
    for domain in WILDCARD_DNS_DOMAINS:
        assert production(f"https://a.{domain}/") == "wildcard-dns"


def _octet_spellings(value: int) -> list[str]:
    return [str(value), f"0{value:o}", f"{value:#x}", f"{value:#X}", f"{value:03d}"]


@given(st.lists(st.integers(0, 255).flatmap(lambda n: st.sampled_from(_octet_spellings(n))), min_size=1, max_size=4))
@settings(deadline=None)
def test_ipv4_in_any_mixture_of_spellings_is_refused(parts: list[str]) -> None:
    host = ".".join(parts)
    assert production(f"https://{host}/") == "ip-literal"
    assert production(f"https://{host}./") == "ip-literal"
    assert production("https://" + host.translate({ord("0") + n: 0xFF10 + n for n in range(10)})) == "ip-literal"


_LABELS = st.lists(st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True), min_size=1, max_size=4)
_ENDS = st.sampled_from(["org", "nl", "co.uk", "example", "test", "local", "notatld", "nip.io", "7"])


@given(labels=_LABELS, end=_ENDS, environment=st.sampled_from(["production", "rehearsal"]))
@settings(deadline=None)
def test_the_verdict_does_not_depend_on_case_or_a_trailing_dot(labels: list[str], end: str, environment: str) -> None:
    host = ".".join([*labels, end])
    verdict = url_refusal(f"https://{host}/e", environment=environment)
    assert url_refusal(f"HTTPS://{host.upper()}/e", environment=environment) == verdict
    assert url_refusal(f"https://{host}./e", environment=environment) == verdict


@given(labels=_LABELS, end=_ENDS)
@settings(deadline=None)
def test_no_host_serves_both_environments(labels: list[str], end: str) -> None:
    url = f"https://{'.'.join([*labels, end])}/"
    assert production(url) is not None or rehearsal(url) is not None
    if rehearsal(url) is None:
        assert end in REHEARSAL_NAMES


@given(
    st.one_of(st.text(), st.text().map("https://".__add__), st.binary(), st.none(), st.floats(), st.lists(st.text()))
)
@settings(deadline=None)
def test_nothing_raises_and_the_answer_never_holds_the_url(url: Any) -> None:
    for environment in ("production", "rehearsal"):
        verdict = url_refusal(url, environment=environment)
        assert verdict is None or verdict in HOST_RULES


def test_the_verdict_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the policy opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    from meta_eval.evidence import public_hosts

    public_hosts._registrable_domain.cache_clear()
    assert production("https://www.metmuseum.org/") is None
    assert production("https://www.museum.notatld/") == "no-public-suffix"


def test_importing_the_policy_loads_neither_library() -> None:
    code = (
        "import sys, meta_eval.evidence.public_hosts, meta_eval.evidence.identifiers;"
        "print([m for m in ('tldextract', 'idna', 'phonenumbers', 'email_validator') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert result.stdout.strip() == "[]"
