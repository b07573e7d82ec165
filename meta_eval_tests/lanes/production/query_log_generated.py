"""Invented rows of a query log, of every kind there is, each with the outcome that it was made to have.

The outcome of a row follows from the kind that was drawn (the contract and decision 0002 say which), and what a whole
log amounts to follows from the rows' groups and instants: nothing here asks the code under test. `KINDS` holds every
kind for tests that walk them all, `logs()` draws whole logs.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from meta_eval.lanes.production.query_log import OUTCOMES, ROW_LIMIT
from meta_eval_tests.lanes.production.query_log_world import AS_OF, CONTRACT, MISSING

_RECORDED = "2026-10-01T00:00:00Z"
_AS_OF_MS = 1_795_996_800_000
"""2026-11-30T00:00:00Z, from `date -d 2026-11-30T00:00:00Z +%s`."""
_DAY_MS = 86_400_000
assert AS_OF == "2026-11-30T00:00:00.000Z"


# --- writing JSON in any spelling ----------------------------------------------------------------------------


class Raw(str):
    """JSON text that is put in as it stands."""


class Pairs(list[tuple[str, Any]]):
    """An object whose keys may repeat."""


@dataclass(frozen=True)
class Style:
    """How a row is written: what means the same however it is done."""

    comma: str = ","
    colon: str = ":"
    inside: str = ""
    """White space after an opening and before a closing brace."""
    escapes: str = "none"
    """none, ascii (all but ASCII escaped), all (every letter escaped), slash (`/` as `\\/`)."""
    order: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Of the row's own keys; others stand behind them."""
    consent_order: tuple[int, ...] = (0, 1, 2)

    def written(self, value: object) -> str:
        if isinstance(value, Raw):
            return str(value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            value = Pairs(value.items())
        if isinstance(value, Pairs):
            members = self.comma.join(f"{self.written(key)}{self.colon}{self.written(held)}" for key, held in value)
            return "{" + self.inside + members + self.inside + "}" if value else "{}"
        if isinstance(value, list):
            return "[" + self.comma.join(map(self.written, value)) + "]"
        return json.dumps(value)

    def _text(self, value: str) -> str:
        text = json.dumps(value, ensure_ascii=self.escapes == "ascii")
        if self.escapes == "slash":
            text = text.replace("/", "\\/")
        if self.escapes == "all":
            units = value.encode("utf-16-be", "surrogatepass")
            return '"' + "".join(f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2)) + '"'
        # What is no half of a pair stands as it is; a lone half can only be written as an escape.
        return "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in text)


PLAIN = Style()
STYLES = (
    PLAIN,
    Style(comma=", ", colon=": "),
    Style(comma=" ,\t", colon=" :\r "),
    Style(comma=",\n  ", colon=": ", inside="\n"),
    Style(escapes="ascii"),
    Style(escapes="all"),
    Style(comma=", ", escapes="slash"),
    Style(order=(4, 2, 0, 3, 1), consent_order=(2, 1, 0)),
    Style(comma=" , ", order=(3, 4, 1, 0, 2), consent_order=(1, 2, 0)),
)


# --- one row -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Base:
    """What a row is before anything is done to it: eligible."""

    number: int
    group: int
    """Which question it asks; questions of other groups are other questions."""
    spelling: int = 0
    """How the question is written: the normal form of all spellings is one."""
    asked_at_ms: int = _AS_OF_MS - 10 * _DAY_MS
    style: Style = PLAIN

    @property
    def query_id(self) -> str:
        return f"query-{_word(self.number)}"

    @property
    def question(self) -> str:
        return SPELLINGS[self.spelling % len(SPELLINGS)](f"wer malte straße, café und gei\u00dfe {_word(self.group)}")

    def row(self, **changes: Any) -> Pairs:
        """The row's keys and values; a change to MISSING takes a key out, a new key stands last."""
        values = {
            "queryId": self.query_id,
            "question": self.question,
            "askedAt": _instant(self.asked_at_ms),
            "outcome": "answered",
            "consent": self.consent(),
        }
        known, new = list(values), {key: value for key, value in changes.items() if key not in values}
        values |= changes
        pairs = [(known[at], values[known[at]]) for at in self.style.order] + list(new.items())
        return Pairs((key, value) for key, value in pairs if value is not MISSING)

    def consent(self, **changes: Any) -> Pairs:
        values: dict[str, Any] = {"contract": CONTRACT, "granted": True, "recordedAt": _RECORDED}
        known, new = list(values), {key: value for key, value in changes.items() if key not in values}
        values |= changes
        pairs = [(known[at], values[known[at]]) for at in self.style.consent_order] + list(new.items())
        return Pairs((key, value) for key, value in pairs if value is not MISSING)

    def text(self, **changes: Any) -> str:
        return self.style.written(self.row(**changes))


def _word(number: int) -> str:
    """A number as syllables: no digit, no sign of a contact, and in no spelling another number's."""
    syllables = ("ba", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu")
    return "".join(syllables[int(digit)] for digit in f"{number:04d}")


def _instant(ms: int) -> str:
    """A written instant of November 2026 or thereabouts."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def _wide(text: str) -> str:
    return "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else "\u3000" if char == " " else char for char in text
    )


SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: text.upper(),  # ß becomes SS, which folding makes of it too
    lambda text: text.title() + "?",
    lambda text: f"  {text} \t?! ",
    lambda text: text.replace(" ", "\u00a0 "),
    lambda text: text.replace("é", "e\u0301") + "。",
    _wide,
    lambda text: _wide(text) + "？",
    lambda text: text.replace(" ", "\r\n"),
    lambda text: text + "｡ .",
)
"""One question in ten spellings: case, width, white space, composition, closing punctuation."""


@dataclass(frozen=True)
class Row:
    """A row's text, and what is due to it."""

    kind: str
    text: str
    outcome: str
    """If no other row bears on it."""
    base: Base
    asked_at_ms: int | None = None
    """Of a row that is not malformed."""
    query_id: str = ""
    question: str = ""
    group: object = None
    """Of a candidate: rows ask the same question where their groups are equal."""

    @property
    def in_array(self) -> bool:
        """A row that is no JSON leaves no way to tell where an array's rows end: the file is refused."""
        return not self.kind.startswith("no JSON")

    @property
    def in_lines(self) -> bytes:
        """A line feed can only be white space between tokens here, and would end the line."""
        return self.text.replace("\n", " ").encode()


Change = Callable[[Base], str]


@dataclass(frozen=True)
class Kind:
    """A way to make a row, and the outcome due to it."""

    name: str
    outcome: str
    text: Change
    asked_at_ms: int | None = None
    """Where the kind sets the instant."""
    query_id: Callable[[Base], str] = field(default=lambda base: base.query_id)
    question: Callable[[Base], str] | None = None
    """Where a candidate asks something of the kind's own."""

    def made(self, base: Base) -> Row:
        asked = base.asked_at_ms if self.asked_at_ms is None else self.asked_at_ms
        own = None if self.question is None else self.question(base)
        return Row(
            self.name,
            self.text(base),
            self.outcome,
            base,
            None if self.outcome == "malformed" else asked,
            self.query_id(base),
            base.question if own is None else own,
            base.group if own is None else own,
        )


def _with(**changes: Any) -> Change:
    """The row with fixed values."""
    return lambda base: base.text(**changes)


def _consent(**changes: Any) -> Change:
    return lambda base: base.text(consent=base.consent(**changes))


def _last(member: str) -> Change:
    """The row's text with one more member."""
    return lambda base: base.text()[:-1].rstrip() + "," + member + "}"


def _always(text: str) -> Change:
    """A text that is nothing of a row's."""
    return lambda _base: text


def _first(member: str) -> Change:
    return lambda base: "{" + member + "," + base.text()[1:]


def _edited(old: str, new: str) -> Change:
    """A plain row's text, changed where it says `old`."""

    def change(base: Base) -> str:
        text = replace(base, style=PLAIN).text()
        assert old in text
        return text.replace(old, new, 1)

    return change


# --- malformed -----------------------------------------------------------------------------------------------

_OTHER_TYPES = (MISSING, None, 5, -0.5, True, False, [], ["Who?"], {}, {"text": "Who?"})
_BAD_INSTANTS = (
    "", "2026-11-20", "2026-11-20T10:00:00", "2026-11-20 10:00:00Z", "2026-11-20t10:00:00Z", "2026-11-20T10:00:00z",
    "20/11/2026", "2026-02-30T10:00:00.000Z", "2026-02-29T10:00:00.000Z", "2026-11-31T10:00:00.000Z",
    "2026-00-20T10:00:00.000Z", "2026-13-20T10:00:00.000Z", "2026-11-00T10:00:00.000Z", "2026-11-20T24:00:00.000Z",
    "2026-11-20T10:60:00.000Z", "2016-12-31T23:59:60.000Z", "2026-11-20T10:00:60Z", "2026-11-20T10:00:00-00:00",
    "2026-11-20T10:00:00+0000", "2026-11-20T10:00:00+02", "2026-11-20T10:00:00+14:01", "2026-11-20T10:00:00+01:60",
    "2026-11-20T10:00:00,000Z", "2026-11-20T10:00:00.Z", "2026-11-20T10:00:00.0000000000Z", "0000-11-20T10:00:00Z",
    "+2026-11-20T10:00:00Z", "２０２６-11-20T10:00:00.000Z", "2026-11-20T10:00:00.000Z ", "1795996800000",
    "2026-W47-5T10:00:00Z", "2026-11-20T10:00:00.00\u0660Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
)  # fmt: skip
_IDENTIFYING = ("email", "phoneNumber", "ip_address", "visitor-name", "e-mail", "userEmail", "Ｅmail", "ema\u200bil")
_OTHER_CASE = ("QueryId", "queryid", "QUESTION", "askedat", "Outcome", "Consent", "Granted", "recordedat", "queſtion")

_MALFORMED: dict[str, list[Change]] = {
    "no object": [_always(text) for text in ("null", "42", "-0.5e+3", "true", '"text"', "[]", "{}", "NaN")]
    + [lambda base: f"[{base.text()}]", lambda base: base.style.written(base.text())],
    "wrong type": [_with(**{key: v}) for key in ("queryId", "question", "askedAt", "outcome") for v in _OTHER_TYPES],
    "consent no object": [_with(consent=value) for value in (1, 0, "yes", "", True, False, [], {})]
    + [lambda base: base.text(consent=[base.consent()])],
    "consent of wrong type": [
        _consent(**{key: value})
        for key, values in {
            "contract": (MISSING, None, 1, True, [], {}),
            "granted": (MISSING, None, 1, 0, "true", "", [], {}),
            "recordedAt": (MISSING, None, 1, True, [], {}),
        }.items()
        for value in values
    ],
    "consent recorded after": [
        lambda base, late=late, granted=granted: base.text(
            consent=base.consent(recordedAt=_instant(base.asked_at_ms + late), granted=granted)
        )
        for late in (1, 1000, 86_400_000)
        for granted in (True, False)
    ],
    "query id": [_with(queryId=value) for value in ("", " ", "\t\u00a0", "\u3000\u2003", "x" * 201, "😀" * 201)],
    "control character": [_with(question=f"Who{char}?") for char in "\x00\x01\x08\x0b\x0c\x0e\x1b\x1f"],
    "result": [_with(outcome=value) for value in ("", "ok", "Answered", "answered ", "FAILED", "\uff41nswered")],
    "instant": [_with(askedAt=value) for value in _BAD_INSTANTS],
    "instant of consent": [_consent(recordedAt=value) for value in _BAD_INSTANTS],
    "identifying key": [_with(**{key: None}) for key in _IDENTIFYING]
    + [_with(meta=[{"inner": {key: 1}}]) for key in _IDENTIFYING]
    + [_consent(**{key: 1}) for key in _IDENTIFYING],
    "key in another case": [_with(**{key: 1}) for key in _OTHER_CASE]
    + [_with(meta={key: 1}) for key in _OTHER_CASE]
    + [_consent(**{key: 1}) for key in _OTHER_CASE],
    "repeated key": [
        _last('"outcome":"answered"'), _last('"outc\\u006fme":"answered"'), _first('"queryId":"another"'),
        _last('"consent":null'), _first('"consent":null'), _last('"meta":{"a":1,"a":1}'),
        _last('"meta":[{"b":{"a":1,"\\u0061":2}}]'), _last('"n":1,"n":1'), _last('"":1,"":1'),
        _edited('"granted":true', '"granted":false,"granted":true'),
        _edited('"granted":true', '"granted":true,"gr\\u0061nted":true'),
        _edited('"contract":', '"contract":"v0","contract":'),
    ],
    "lone surrogate": [
        _last(where % escape)
        for where in ('"note":"%s"', '"%s":1', '"meta":["a",{"b":"%s"}]', '"meta":{"%s":1}')
        for escape in ("\\ud83d", "\\uDE00", "\\ude00\\ud83d", "\\ud83dx", "\\ud83d\\u0041")
    ]
    + [_with(question="half \ud83d"), _with(queryId="half \ude00"), _consent(contract="half \ud83d")],
    "number": [
        _last(f'"n":{value}')
        for value in (
            "NaN", "Infinity", "-Infinity", "[NaN]", '{"a":-Infinity}', "1e400", "-1e400", "9007199254740992",
            "-9007199254740992", "1" * 30, "9" * 5000, "[1,2,1e999]",
        )
    ],
    "nesting": [
        _last('"meta":' + "[" * depth + "]" * depth) for depth in (64, 70, 1030, 5000)
    ]
    + [_last('"meta":' + '{"a":' * 64 + "1" + "}" * 64)],
    "no JSON: cut": [lambda base, part=part: _cut(base, part) for part in (0.1, 0.3, 0.5, 0.7, 0.9, 1)],
    "no JSON: comma": [_last('"a":1,'), _last('"a":[1,2,]'), _last('"a":{"b":1,}'), _edited("true,", "true,,")],
    "no JSON: word": [
        _last(f'"a":{value}')
        for value in ("tru", "True", "None", "nan", "undefined", "01", "+1", "1.", ".5", "0x10", "1e", "--1", "1_000")
    ]
    + [_last("a:1"), _last("'a':1"), _last('"a" 1'), _last('"a":1:2'), _last('"a"'), _last('"a":1 /* one */')],
    "no JSON: escape": [_last(f'"a":"{escape}"') for escape in ("\\x41", "\\u12g4", "\\u12", "\\'", "\\")],
    "no JSON: raw control": [_last(f'"a":"x{char}y"') for char in "\x00\x01\t\x0b\x1f\r"],
    "no JSON: two values": [
        lambda base: base.text() * 2, lambda base: base.text() + "," + base.text(), lambda base: base.text() + " 1",
        lambda base: base.text() + "}", lambda base: base.text() + "\r" + base.text(),
        lambda base: base.text() + "\x00",
    ],
    "no JSON: white space": [
        lambda base: "{\u00a0" + base.text()[1:], lambda base: "{\x0b" + base.text()[1:],
        lambda base: "{\ufeff" + base.text()[1:], lambda base: base.text() + "\u2028",
        lambda base: base.text() + "\x0c",
    ],
    "no JSON: text": [_always(text) for text in ("not JSON", "{", "}", "]", '"', "{]", "queryId,question")],
}  # fmt: skip
_OVER_LONG: tuple[Change, ...] = (
    lambda base: _of_bytes(base, ROW_LIMIT + 1, "x"),
    lambda base: _of_bytes(base, ROW_LIMIT + 2, "é"),
)


def _cut(base: Base, part: float) -> str:
    text = base.text()
    return text[: max(1, int((len(text) - 1) * part))]


def _of_bytes(base: Base, size: int, filling: str) -> str:
    """The row with a note that makes it so many bytes long."""
    bare = len(base.text(note="").encode())
    times, rest = divmod(size - bare, len(filling.encode()))
    return base.text(note=filling * times + "x" * rest)


# --- every other outcome -------------------------------------------------------------------------------------

_CONTACTS = (
    "write to visitor@example.org", "visitor @ example.org", "ｖｉｓｉｔｏｒ＠ｅｘａｍｐｌｅ．ｏｒｇ",
    "visitor@exam\u200bple.org", "v\u00adisitor@example.org", "visitor%40example.org", "visitor&#64;example.org",
    "VISITOR@EXAMPLE.ORG?", "visitor@example.org " + "x" * 1000, "a " * 600 + "visitor@example.org",
    "ask @rijksmuseum about it",
)  # fmt: skip
_ELIGIBLE_QUESTIONS = (
    'say "a" \\ b', "tab\there", "two\nlines", "\u2028 and \u2029", "🙂 who", "\x7fwho\x85", "oil @ canvas",
    "誰が描いた", "\u0130stanbul", "?who",
    "}, {", "],[", "\\ud83d as text", "</script>", "null", "x" * 1000, "é" * 1000, "😀" * 1000,
)  # fmt: skip


def _asking(name: str, outcome: str, question: str) -> Kind:
    return Kind(name, outcome, lambda base: base.text(question=question))


def _eligible_asking(question: str) -> Kind:
    """The question ends in the row's own word, unless it is one of the longest."""

    def asked(base: Base) -> str:
        word = f" {_word(base.number)}"
        return question[: -len(word)] + word if len(question) == 1000 else question + word

    return Kind("question", "eligible", lambda base: base.text(question=asked(base)), question=asked)


def _at(name: str, outcome: str, written: str, asked_at_ms: int) -> Kind:
    change = {"askedAt": written}
    if asked_at_ms < _AS_OF_MS - 50 * _DAY_MS:
        return Kind(
            name,
            outcome,
            lambda base: base.text(**change, consent=base.consent(recordedAt=written)),
            asked_at_ms,
        )
    return Kind(name, outcome, _with(**change), asked_at_ms)


def _named(name: str) -> Kind:
    """An eligible row whose id is written in an unusual way."""

    def query_id(base: Base) -> str:
        word = _word(base.number)
        return word + name if len(name) < 200 else word + name[len(word) :]

    return Kind("odd id", "eligible", lambda base: base.text(queryId=query_id(base)), query_id=query_id)


_OTHERS: list[Kind] = [
    Kind("plain", "eligible", _with()),
    Kind("refused", "eligible", _with(outcome="refused")),
    *[
        Kind("extra keys", "eligible", _with(**extra))
        for extra in (
            {"latencyMs": 7}, {"latencyMs": "12"}, {"modelVersion": None}, {"": 1}, {"meta": {"},{": ["]", '"', "[{"]}},
            {"granted": False}, {"shipping": 1}, {"n": Raw("-0")}, {"n": Raw("1e308")}, {"n": Raw("1e-400")},
            {"n": Raw("1.50")}, {"n": Raw("9007199254740991")}, {"n": Raw("[" * 63 + "]" * 63)}, {"note": "[" * 100},
            {"note": Raw('"\\\\ud83d"')}, {"note": Raw('"\\ud83d\\ude00"')}, {"a": [], "b": {}},
        )
    ],
    Kind("extra key in consent", "eligible", _consent(version=[1, {"n": 2}])),
    *[_eligible_asking(question) for question in _ELIGIBLE_QUESTIONS],
    *[_named(name) for name in ("\u00e9", "\u3000", "\x00", '"', "\\", "😀" * 200, "x" * 200, "\u200b", "\u2028")],
    *[
        Kind("no consent", "missing-consent", _with(consent=value)) for value in (MISSING, None)
    ],
    Kind("consent refused", "missing-consent", _consent(granted=False)),
    Kind("consent refused, other contract", "missing-consent", _consent(granted=False, contract="v0")),
    *[
        Kind("other contract", "wrong-consent-contract", _consent(contract=value))
        for value in ("", "v0", CONTRACT + " ", CONTRACT.upper(), CONTRACT[:-1], CONTRACT + "0", "\u0000")
    ],
    Kind("failed", "unsuccessful", _with(outcome="failed")),
    Kind("failed and contact-bearing", "unsuccessful", _with(outcome="failed", question="visitor@example.org")),
    _at("a millisecond ahead", "future", "2026-11-30T00:00:00.001Z", _AS_OF_MS + 1),
    _at("an offset ahead", "future", "2026-11-29T23:00:00.5-01:00", _AS_OF_MS + 500),
    _at("a century ahead", "future", "2126-11-30T00:00:00Z", _AS_OF_MS + 36_524 * _DAY_MS),
    _at("at the clock", "eligible", "2026-11-30T00:00:00.000Z", _AS_OF_MS),
    _at("at the clock, with an offset", "eligible", "2026-11-30T14:00:00+14:00", _AS_OF_MS),
    _at("35 days old", "eligible", "2026-10-26T00:00:00.000Z", _AS_OF_MS - 35 * _DAY_MS),
    _at("35 days old, with an offset", "eligible", "2026-10-25T23:30:00.000999999-00:30", _AS_OF_MS - 35 * _DAY_MS),
    _at("a millisecond older", "stale", "2026-10-25T23:59:59.999Z", _AS_OF_MS - 35 * _DAY_MS - 1),
    _at("of the epoch", "stale", "1970-01-01T00:00:00.000Z", 0),
    _at("before the epoch", "stale", "1969-12-31T23:59:59.999Z", -1),
    *[_asking("contact", "contact-bearing", question) for question in _CONTACTS],
    *[
        _asking("blank", "empty-question", question)
        for question in ("", " ", "?", " . ! ? ", "。", "？！．", "｡", "\u3000", "?" * 1001, "\u00a0" * 1001, "\t\n")
    ],
    *[
        _asking("long", "over-length", question)
        for question in ("x" * 1001, "é" * 1001, "😀" * 1001, "x" + " " * 1000, "a\u0301" * 501)
    ],
]  # fmt: skip
_OTHERS_LARGE = [
    Kind("row at the limit", "eligible", lambda base: _of_bytes(base, ROW_LIMIT, "é")),
    Kind("row longer than a layout", "eligible", _with(note="x" * 70_000)),
]

KINDS: tuple[Kind, ...] = (
    *[Kind(name, "malformed", change) for name, changes in _MALFORMED.items() for change in changes],
    *_OTHERS,
)
LARGE_KINDS: tuple[Kind, ...] = (
    *[Kind("over-long row", "malformed", change) for change in _OVER_LONG],
    *_OTHERS_LARGE,
)
"""Rows of a mebibyte, which are drawn rarely."""
_BY_NAME: dict[str, list[Kind]] = {}
for _kind in KINDS:
    _BY_NAME.setdefault(_kind.name, []).append(_kind)
_MALFORMED_NAMES = tuple(_MALFORMED)
_OTHER_NAMES = tuple(name for name in _BY_NAME if name not in _MALFORMED)


# --- whole logs ----------------------------------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn, *, most: int = 10, large: bool = False) -> list[Row]:
    """Rows of drawn kinds, few enough questions and ids that many rows repeat one or the other."""
    rows: list[Row] = []
    for _ in range(draw(st.integers(0, most))):
        base = Base(
            number=draw(st.integers(0, 30)),
            group=draw(st.integers(0, 2)),
            spelling=draw(st.integers(0, len(SPELLINGS) - 1)),
            asked_at_ms=_AS_OF_MS - draw(st.integers(1, 20)) * _DAY_MS - draw(st.sampled_from([0, 0, 1, 999])),
            style=draw(st.sampled_from(STYLES)),
        )
        names = draw(st.sampled_from([("plain", "refused", "question"), _OTHER_NAMES, _MALFORMED_NAMES]))
        rows.append(draw(st.sampled_from(_BY_NAME[draw(st.sampled_from(names))])).made(base))
    if large:
        rows.insert(draw(st.integers(0, len(rows))), draw(st.sampled_from(LARGE_KINDS)).made(Base(9999, 9999)))
    return rows


def every_kind(style: Style = PLAIN) -> list[Row]:
    """A log that holds every kind once, with an id and a question of its own for each row."""
    return [kind.made(Base(number, number, number, style=style)) for number, kind in enumerate(KINDS)]


@dataclass(frozen=True)
class Expected:
    """What a log amounts to, by the rows that it was made of."""

    outcomes: list[str]
    newest_asked_at_ms: int | None
    cases: list[tuple[str, str]]
    """Query id and question of the eligible rows, in row order."""

    @property
    def counts(self) -> dict[str, int]:
        return {name: self.outcomes.count(name) for name in OUTCOMES}

    def export(self, key: bytes, *, environment: str, source: str) -> bytes:
        """The canonical JSON of the export. Sorted keys and escapes are those of RFC 8785 for texts such as these."""
        named = sorted(
            (f"case-{hmac.new(key, query_id.encode(), 'sha256').hexdigest()[:20]}", question)
            for query_id, question in self.cases
        )
        cases = [{"caseId": name, "question": question} for name, question in named]
        document = {"version": 1, "environment": environment, "source": source, "cases": cases}
        return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def expected(rows: list[Row]) -> Expected:
    """The outcomes of rows in this order: each row's own, then conflicting ids, then duplicates."""
    outcomes = [row.outcome for row in rows]
    candidates = [at for at, row in enumerate(rows) if row.outcome == "eligible"]
    for at in candidates:
        asked_under_it = {rows[other].group for other in candidates if rows[other].query_id == rows[at].query_id}
        if len(asked_under_it) > 1:
            outcomes[at] = "malformed"
    kept = [at for at in candidates if outcomes[at] == "eligible"]
    for at in kept:
        rivals = [(rows[other].asked_at_ms, other) for other in kept if rows[other].group == rows[at].group]
        if min(rivals)[1] != at:
            outcomes[at] = "duplicate"
    instants = [
        row.asked_at_ms
        for row, outcome in zip(rows, outcomes, strict=True)
        if outcome != "malformed" and row.asked_at_ms is not None and row.asked_at_ms <= _AS_OF_MS
    ]
    cases = [(row.query_id, row.question) for row, outcome in zip(rows, outcomes, strict=True) if outcome == "eligible"]
    return Expected(outcomes, max(instants, default=None), cases)


# --- framings ------------------------------------------------------------------------------------------------


def framings(rows: list[Row]) -> Iterator[tuple[str, list[Row], bytes]]:
    """A log in every framing that has no member of gzip: its name, the rows that it can carry, and its text."""
    whole = [row for row in rows if row.in_array]
    texts = [row.text.encode() for row in whole]
    yield "array, compact", whole, b"[" + b",".join(texts) + b"]"
    yield "array, pretty", whole, b"[\n  " + b",\n  ".join(texts) + b"\n]\n"
    yield "array, CRLF", whole, b"\r\n [\r\n" + b" \r\n,\r\n\t".join(texts) + b"\r\n]\r\n"
    # The first byte says which framing it is, so a file of lines begins with an object (whole or not). A file of no
    # line at all is an empty delivery, which is refused.
    first = next((at for at, row in enumerate(rows) if row.text.startswith("{")), len(rows))
    rows = rows[first:]
    if not rows:
        return
    lines = [row.in_lines for row in rows]
    yield "lines", rows, b"".join(line + b"\n" for line in lines)
    yield "lines, CRLF", rows, b"".join(line + b"\r\n" for line in lines)
    yield "lines, blank ones between", rows, b" \t\n\n" + b"".join(b"\t" + line + b" \n \r\n\n" for line in lines)
    yield "lines, marks", rows, b"".join(b"\xef\xbb\xbf" + line + b"\n" for line in lines)
    # Only a last line that is JSON may want its line feed: else the file counts as cut.
    if rows[-1].in_array:
        yield "lines, no last line feed", rows, b"\n".join(lines)
