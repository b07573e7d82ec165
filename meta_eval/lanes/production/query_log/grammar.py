"""Where one JSON value ends, found in pieces of any size without holding the value.

Source: RFC 8259's grammar, widened by the tokens NaN, Infinity and -Infinity: a row that holds one is a row of
its own that the row rules refuse, while any other break of the grammar leaves no way to tell where rows end.
Strings are not decoded and keys not compared here. Memory is bounded by the nesting, which is capped.
"""

from __future__ import annotations

import re

DEEPEST = 1_000_000
"""Levels that are followed. A row is refused far earlier; this only bounds what an array file can cost."""

_BLANK = re.compile(rb"[ \t\n\r]*")
_TEXT = re.compile(rb'[^"\\\x00-\x1f]*')
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPE_BEGUN = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_WORD = re.compile(rb'[^ \t\n\r\[\]{}:,"]+')
_SCALAR = re.compile(rb"true|false|null|NaN|-?Infinity|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(rb"([0-9]{2})[0-9]+")
_LONGEST_WORD = 64

_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _NEXT, _DONE = range(7)


class GrammarError(Exception):
    """The text is no JSON at this byte, counted from the start of the value."""

    def __init__(self, offset: int) -> None:
        super().__init__("not JSON")
        self.offset = offset


class ValueScanner:
    """Reads one JSON value piece by piece.

    `feed` returns how many bytes of the piece belong to the value; once `done`, the next byte does not. A bare
    word (number, true, NaN) ends only where something else begins, so at the end of the text call `finish`.
    """

    def __init__(self) -> None:
        self.done = False
        self._expect = _VALUE
        self._stack = bytearray()
        self._in_string = False
        self._carry = b""
        self._carry_at = 0
        self._fed = 0

    def feed(self, piece: bytes, start: int = 0) -> int:
        """Read on in `piece` from `start`; where in it the value, or the piece, ends.

        Raises:
            GrammarError: the value is no JSON.
        """
        held = len(self._carry)
        text, position = (self._carry + piece[start:], 0) if held else (piece, start)
        # What turns a position in `text` into an offset in the value, and into a position in `piece`.
        base = self._fed - held - position
        back = start - held - position
        self._carry = b""
        while position < len(text) and not self.done:
            if self._in_string:
                position = self._string(text, position, base)
                continue
            position = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing too
            if position < len(text):
                at = self._carry_at if held and not position else base + position
                position = self._token(text, position, at)
        end = position + back
        self._fed += end - start
        return end

    def finish(self) -> bool:
        """Whether the text, ending here, was one whole value."""
        if not self.done and self._carry and not self._in_string and not self._stack:
            self.done = self._expect == _VALUE and _SCALAR.fullmatch(self._carry) is not None
            self._carry = b""
        return self.done

    def _string(self, text: bytes, position: int, base: int) -> int:
        run = _TEXT.match(text, position)
        position = run.end() if run else position
        if position == len(text):
            return position
        if text[position] == 0x22:
            self._in_string = False
            self._after_string()
            return position + 1
        if escape := _ESCAPE.match(text, position):
            return escape.end()
        if _ESCAPE_BEGUN.match(text, position):
            self._hold(text[position:], base + position)
            return len(text)
        raise GrammarError(base + position)

    def _after_string(self) -> None:
        if self._expect in (_KEY, _KEY_OR_END):
            self._expect = _COLON
        else:
            self._after_value()

    def _after_value(self) -> None:
        self._expect = _NEXT
        self.done = not self._stack

    def _token(self, text: bytes, position: int, at: int) -> int:
        char = text[position]
        expect = self._expect
        if char == 0x22 and expect in (_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END):
            self._in_string = True
        elif char in b"[{" and expect in (_VALUE, _VALUE_OR_END) and len(self._stack) < DEEPEST:
            self._stack.append(char)
            self._expect = _VALUE_OR_END if char == 0x5B else _KEY_OR_END
        elif char in b"]}" and self._closes(char):
            self._stack.pop()
            self._after_value()
        elif char == 0x3A and expect == _COLON:
            self._expect = _VALUE
        elif char == 0x2C and expect == _NEXT:
            self._expect = _VALUE if self._stack[-1] == 0x5B else _KEY
        elif char not in b'[]{}:,"' and expect in (_VALUE, _VALUE_OR_END):
            return self._word(text, position, at)
        else:
            raise GrammarError(at)
        return position + 1

    def _closes(self, char: int) -> bool:
        opened, empty = (0x5B, _VALUE_OR_END) if char == 0x5D else (0x7B, _KEY_OR_END)
        return bool(self._stack) and self._stack[-1] == opened and self._expect in (_NEXT, empty)

    def _word(self, text: bytes, position: int, at: int) -> int:
        word = _WORD.match(text, position)
        end = word.end() if word else position
        if end == len(text):
            self._hold(text[position:], at)
        elif _SCALAR.fullmatch(text, position, end):
            self._after_value()
        else:
            raise GrammarError(at)
        return end

    def _hold(self, rest: bytes, at: int) -> None:
        """Keep an unfinished token for the next piece. Digits beyond two of a run never decide anything."""
        if len(rest) > _LONGEST_WORD:
            rest = _DIGITS.sub(rb"\1", rest)
            if len(rest) > _LONGEST_WORD:
                raise GrammarError(at)
        self._carry, self._carry_at = rest, at


def is_one_value(text: bytes) -> bool:
    """Whether a text is one JSON value (under the widened grammar) and nothing else but white space."""
    scanner = ValueScanner()
    try:
        used = scanner.feed(text)
    except GrammarError:
        return False
    return scanner.finish() and not text[used:].strip(b" \t\n\r")
