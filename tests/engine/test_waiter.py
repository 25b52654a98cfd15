"""Waits: a table of cases, each cut in every way and compared with the slow reference where it applies."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.engine import waiter
from blockpty.engine.machine import Machine
from blockpty.engine.marks import MAX_MARK
from blockpty.engine.matchers import LINE_LIMIT
from blockpty.engine.shown import KEPT_BYTES
from blockpty.engine.views import HELD_LIMIT
from blockpty.engine.waiter import PASSED_BYTES, Outcome
from blockpty.model.conditions import parse_conditions
from blockpty.testing import FakePty, wait_on
from tests.support.machines import Answer, at_prompt, finished, running, slow_wait, the_same, unmarked, waiter_for
from tests.support.profile import LONG

ESCAPED = b"a\r\n\x1b[0mb\r\n"

# name: output, match, options
ANSWERED: dict[str, tuple[bytes, Any, dict[str, Any]]] = {
    "text": (b"one two\r\n", "two", {}),
    "text over a control sequence": (b"on\x1b[1me\x1b]0;title\x07 two\r\n", "one two", {}),
    "text over a line end": (b"one\r\ntwo\r\n", "one\ntwo", {}),
    "text in the raw view": (b"on\x1b[1me\r\n", "\x1b[1m", {"view": "raw"}),
    "text in the ansi view": (b"on\x1b[1me\r\nx", "e\nx", {"view": "ansi"}),
    "text that is not there": (b"one\r\n", "two", {}),
    "no half number": (b"port 80\r\nport 8080\r\n", {"regex": r"port (\d{3,})"}, {}),
    "groups over lines": (b"key\r\nvalue\r\n", {"regex": r"key\s+(\w+)"}, {}),
    "unterminated last line": (b"x\r\nGuess: ", {"regex": r"^Guess: $"}, {}),
    "anchored": (b"foobar\r\nfoo\r\n", {"regex": r"^foo$"}, {}),
    "word border": (b"foobar\r\nfoo\r\n", {"regex": r"\bfoo\b"}, {}),
    "progress line": (b"10%\r20%\r30%\r\n", {"regex": r"^20%$"}, {}),
    "progress line, last of the output": (b"10%\r20%\r", {"regex": r"^20%$"}, {}),
    "text before a pattern's line end": (b"foo bar\r\n", [{"regex": "foo"}, "ba"], {}),
    "order in a list": (b"foo\r\n", [{"regex": "foo"}, "foo\n"], {}),
    "CR ends a line, text in front": (b"abc\r\x1b[Kdef\r\n", [{"regex": "abc"}, "\r"], {}),
    "CR ends a line, in the raw view": (b"abc\rdef\r\n", [{"regex": "abc"}, "\r"], {"view": "raw"}),
    "max_bytes": (b"one two three\r\n", "three", {"max_bytes": 5}),
    "max_bytes at the match": (b"one two three\r\n", "two", {"max_bytes": 7}),
    "max_bytes at a CR": (b"abc\r\x1b[Kdef\r\n", {"regex": "abc"}, {"max_bytes": 4}),
    "max_bytes at a CR, raw": (b"abc\rdef\r\n", {"regex": "abc"}, {"max_bytes": 4, "view": "raw"}),
    "lookahead": (b"foo\r\nfoobar\r\n", {"regex": r"foo(?=bar)"}, {}),
    "lookbehind": (b"bar\r\nfoobar\r\n", {"regex": r"(?<=foo)bar"}, {}),
    "refused lookahead": (b"foo\r\nbar\r\n", {"regex": r"foo(?!\nb)"}, {}),
    "end of a line that ends at a CR": (b"foo\rbar\r\n", {"regex": r"foo\s$"}, {}),
    "multiline switched off": (b"foo\r\nbar\r\n", {"regex": r"(?-m:foo$)"}, {}),
    "reverse search": (b"foo 1\r\nfoo 2\r\n", {"regex": r"(?r)foo"}, {}),
    "match start moved": (b"foo\r\nbar\r\n", {"regex": r"foo\n\Kb"}, {}),
    "match start moved to the end": (ESCAPED, {"regex": r"a\n\K"}, {}),
    "empty match behind a line end": (ESCAPED, {"regex": r"(?<=\n)"}, {}),
    "empty match": (b"\x1b[0mfoo\r\n", {"regex": r"x*"}, {}),
    "empty line": (b"foo\r\n\x1b[0m\r\nbar\r\n", {"regex": r"^$"}, {}),
    "beginning of the text": (b"foo\r\nbar\r\n", {"regex": r"\Abar"}, {}),
    "end of the text": (b"foo\r\nbar\r\n", {"regex": r"foo\Z"}, {}),
    "possessive": (b"aaa\r\naab\r\n", {"regex": r"a*+b"}, {}),
    "not UTF-8": (b"\xff\xfefoo\r\n", {"regex": r"foo$"}, {}),
    "half a character": ("é".encode()[:1] + b"\r\n" + "é\r\n".encode(), {"regex": "é"}, {}),
    "prompt": (b"foo\r\n", {"token": "PROMPT"}, {}),
    "nothing but a prompt": (b"", "foo", {}),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_answer_is_the_reference_s_for_every_cut(name: str) -> None:
    output, match, options = ANSWERED[name]
    recording, begin = finished(output)
    expected = slow_wait(
        recording, begin, begin + len(output), len(recording.stream), parse_conditions(match), **options
    )
    assert Answer.of(the_same(recording, lambda: waiter_for(match, begin, **options))) == expected


@pytest.mark.parametrize(
    ("output", "match", "reason"),
    [
        (b"Guess: ", {"regex": r"Guess: $"}, "matched"),
        (b"Guess: ", "never", None),
        (b"Guess: ", {"idle_ms": 25}, "matched"),
        (b"Guess: ", {"idle_ms": 26}, None),
        (b"\r\n", {"regex": "^$"}, "matched"),
        (b"abc\r", {"regex": "^abc$"}, "matched"),
        (b"abc\r\x1b[K", {"regex": "^abc$"}, "matched"),
    ],
)
def test_silence_settles_the_last_line(output: bytes, match: Any, reason: str | None) -> None:
    pty, begin = running()
    pty.output(output)
    pty.silence()
    outcome = the_same(pty.recording, lambda: waiter_for(match, begin))
    assert (outcome and outcome.reason) == reason


def test_kernel_echo_is_not_output() -> None:
    pty, begin = running()
    pty.output(b"> ")
    pty.silence()
    pty.type(b"secret word\n")
    pty.output(b"secret word\r\nYou said: secret word\r\n")
    outcome = the_same(pty.recording, lambda: waiter_for("secret word", begin))
    assert outcome.span == (begin + 25, begin + 36)
    assert the_same(pty.recording, lambda: waiter_for("secret word", begin, echo=True)).span[0] == begin + 2


def test_line_editor_s_echo_is_not_output() -> None:
    pty, begin = running()
    pty.output(b">>> ")
    pty.silence(icanon=False, echo=False)
    pty.type(b"print(6*7)\r", echo=False, icanon=False)
    pty.output(b"print(6*7)\r\n42\r\n>>> ")
    pty.silence(icanon=False, echo=False)
    assert the_same(pty.recording, lambda: waiter_for("print", begin)) is None
    assert the_same(pty.recording, lambda: waiter_for({"regex": r"^\d+$"}, begin + 4)).match_text == "42"


def test_echo_that_only_begins_like_the_input_is_output() -> None:
    pty, begin = running()
    pty.type(b"abc\n")
    pty.output(b"abX and more\r\n")
    assert the_same(pty.recording, lambda: waiter_for("abX", begin)).span == (begin, begin + 3)


def test_echo_given_up_late_hides_nothing_for_any_cut() -> None:
    pty, begin = running()
    pty.type(b"never\n")
    pty.type(b"abc\n")
    pty.output(b"." * 4090 + b"......nev..abc\r\n..abc\r\n")
    cuts = [(place,) for place in range(begin + 4060, len(pty.recording.stream))]
    the_same(pty.recording, lambda: waiter_for("abc", begin), [*cuts, range(len(pty.recording.stream))])


@pytest.mark.parametrize("lost", ["begin", "not run"])
@pytest.mark.parametrize("match", ["hello", {"regex": "hello"}, {"token": "PROMPT"}])
@pytest.mark.parametrize("kept", [PASSED_BYTES, 6])
def test_output_that_is_known_at_its_end_is_seen_alike_for_every_cut(
    monkeypatch: pytest.MonkeyPatch, lost: str, match: Any, kept: int
) -> None:
    monkeypatch.setattr(waiter, "PASSED_BYTES", kept)
    pty = at_prompt()
    typed = len(pty.recording.stream)
    if lost == "begin":
        pty.submit("x")
        pty.count, pty.seq = pty.count + 1, pty.seq + 1
    else:
        pty.submit_key("x")
        pty.output(b"x\r\n")
    pty.output(b"hello\r\n")
    pty.end(2, l=1)
    pty.prompt(2)
    outcome = the_same(pty.recording, lambda: waiter_for(match, typed))
    assert outcome.matched == (kept > 6 or match == {"token": "PROMPT"})


def without_begin(before_it: bytes) -> tuple[FakePty, int]:
    """Return a terminal whose command printed this and two lines, with no BEGIN, and where it was typed."""
    pty = unmarked()
    typed = pty.recording.entries[-1].offset
    pty.output(before_it + b"hello\r\nlater\r\n")
    pty.end()
    pty.prompt()
    return pty, typed


@pytest.mark.parametrize("match", ["hello", {"regex": "hello\\nlater"}, {"token": "PROMPT"}])
@pytest.mark.parametrize("before_it", [b"", b"\x1b[?2004l\r", b"\x1b[?2004h"])
def test_output_is_seen_before_its_end_where_no_begin_comes(match: Any, before_it: bytes) -> None:
    pty, typed = without_begin(before_it)
    end = pty.recording.stream.index(b"later\r\n") + len(b"later\r\n")
    outcome = the_same(pty.recording, lambda: waiter_for(match, typed))
    assert outcome.matched
    assert outcome.at <= end or match == {"token": "PROMPT"}


def test_the_echo_is_not_output_where_no_begin_comes() -> None:
    pty, typed = without_begin(b"")
    assert not the_same(pty.recording, lambda: waiter_for("/c/1", typed)).matched


@pytest.mark.parametrize("before_it", [b"\x1b[?2004l", b"\x1b[?2004h", b"\x1b[01m"])
def test_all_of_the_output_is_seen_where_no_begin_comes(before_it: bytes) -> None:
    pty, typed = without_begin(before_it)
    assert the_same(pty.recording, lambda: waiter_for(f"{before_it.decode()}hello", typed, view="raw")).matched


@pytest.mark.parametrize("stop", ["two", {"regex": "two"}, {"idle_ms": 25}, {"token": "PROMPT"}])
def test_stop_ends_a_wait_early(stop: Any) -> None:
    pty, begin = running()
    pty.output(b"one\r\ntwo\r\n")
    pty.silence()
    pty.end()
    pty.prompt()
    outcome = the_same(pty.recording, lambda: waiter_for("three", begin, stop=stop))
    assert (outcome.matched, outcome.reason, outcome.index) == (False, "stopped", 0)


def test_eof_ends_a_session() -> None:
    pty, begin = running(kind="session")
    pty.output(b"bye\r\n")
    pty.end()
    pty.prompt()
    assert the_same(pty.recording, lambda: waiter_for({"token": "EOF"}, begin)).reason == "eof"


def test_exit_ends_every_wait() -> None:
    pty, begin = running()
    pty.output(b"bye")
    pty.entry("exit", status=3, signal=None)
    pty.entry("eof")
    assert the_same(pty.recording, lambda: waiter_for("never", begin)).reason == "eof"
    assert the_same(pty.recording, lambda: waiter_for({"token": "EOF"}, begin)).matched
    assert the_same(pty.recording, lambda: waiter_for({"regex": "bye$"}, begin)).matched


def test_password_prompt_ends_a_wait() -> None:
    pty, begin = running()
    pty.output(b"Password: ")
    pty.silence(icanon=True, echo=False)
    assert the_same(pty.recording, lambda: waiter_for("never", begin)).reason == "password"


def test_a_program_that_is_at_work_with_echo_off_does_not_ask_for_a_password() -> None:
    pty, begin = running()
    pty.silence(icanon=True, echo=False, busy=True)
    pty.output(b"done")
    assert the_same(pty.recording, lambda: waiter_for("done", begin)).reason == "matched"
    assert the_same(pty.recording, lambda: waiter_for({"token": "INPUT"}, begin)) is None


@pytest.mark.parametrize(("busy", "reason"), [({}, "incomplete_input"), ({"busy": True}, "prompt")])
def test_a_shell_that_has_not_read_a_line_is_not_incomplete(busy: dict[str, bool], reason: str) -> None:
    pty = at_prompt()
    begin = len(pty.recording.stream)
    pty.output(b"for x in 1; do\r\n> " + pty.mark("PS2"))
    pty.type(b"done\r", author="user", icanon=False, echo=False)
    pty.silence(icanon=False, echo=False, foreground="shell", wants_input=True, **busy)
    pty.output(b"done\r\n")
    pty.begin()
    pty.end()
    pty.prompt()
    assert the_same(pty.recording, lambda: waiter_for({"token": "PROMPT"}, begin)).reason == reason


def test_line_longer_than_the_limit_is_looked_at_in_pieces() -> None:
    output = b"x" * 65_530 + b"needle" + b"y" * 70_000 + b"needle\r\n"
    recording, begin = finished(output)
    cuts: list[Any] = [
        (begin + 65_535,),
        (begin + 65_536,),
        (begin + 65_537,),
        range(begin, len(recording.stream), 1021),
    ]
    for match in ({"regex": "needle"}, {"regex": r"needle$"}, {"regex": r"needle\s"}, "needle\n"):
        outcome = the_same(recording, lambda match=match: waiter_for(match, begin), cuts)
        expected = slow_wait(recording, begin, begin + len(output), len(recording.stream), parse_conditions(match))
        assert Answer.of(outcome) == expected


# What was there when the wait gave up, what came then, what was waited for.
RESUMED: dict[str, tuple[bytes, bytes, Any]] = {
    "half a text": (b"abc", b"def\r\n", "cd"),
    "half a line": (b"abc", b"def\r\n", {"regex": "^abcdef$"}),
    "several lines": (b"abc\r\n", b"def\r\n", {"regex": r"abc\ndef"}),
    "half a control sequence": (b"\r\n\x1b[", b"0mabc\r\n", {"regex": "^abc"}),
    "half a control sequence in a text": (b"x\x1b]0;tit", b"le\x07abc\r\n", {"regex": "^x?abc"}),
    "half a title is no text": (b"\x1b]0;ti", b"tle\x07\r\nabc\r\n", "tle"),
    "half a line end": (b"abc\r", b"\ndef\r\n", "abc\nd"),
    "half a mark": (b"ab\x1b]7717;__EN", b"D__;n=x\x07c\r\n", "abc"),
}


@pytest.mark.parametrize("name", RESUMED)
def test_waiting_again_misses_nothing(name: str) -> None:
    early, late, match = RESUMED[name]
    pty, begin = running()
    pty.output(early)
    waiter = waiter_for(match, begin)
    assert wait_on(pty.recording, waiter) is None
    again = waiter.resume_cursor()
    pty.output(late)
    first = the_same(pty.recording, lambda: waiter_for(match, begin))
    second = the_same(pty.recording, lambda: waiter_for(match, again))
    assert (second and second.span) == (first and first.span)


def test_waiting_again_misses_nothing_that_began_like_an_echo() -> None:
    pty, begin = running()
    pty.output(b"> ")
    pty.type(b"abc\r")
    pty.output(b"ab")
    waiter = waiter_for("ab!", begin)
    assert wait_on(pty.recording, waiter) is None
    pty.output(b"!\r\n")
    assert wait_on(pty.recording, waiter_for("ab!", begin)) is not None
    assert wait_on(pty.recording, waiter_for("ab!", waiter.resume_cursor())) is not None


def _span_of(outcome: Outcome | None) -> tuple[int, int]:
    assert outcome is not None and outcome.span is not None
    return outcome.span


@pytest.mark.parametrize("view", ["raw", "ansi", "text"])
def test_span_is_the_raw_bytes_with_the_sequences_inside(view: str) -> None:
    output = b"\x1b[1mfo\x1b]0;t\x1b\\o\r\n\x1b[0mbar\x1b[K\r\n"
    recording, begin = finished(output)
    needle = {"raw": "fo\x1b]0;t\x1b\\o\r\n\x1b[0mbar", "ansi": "fo\x1b]0;t\x1b\\o\n\x1b[0mbar", "text": "foo\nbar"}[
        view
    ]
    first, last = _span_of(the_same(recording, lambda: waiter_for(needle, begin, view=view)))
    assert recording.stream[first:last] == b"fo\x1b]0;t\x1b\\o\r\n\x1b[0mbar"


FILLERS = {
    "one line": b"x" * 65_536,
    "lines": b"x\r\n" * 21_000,
    "carriage returns": b"\r" * 65_536,
    "a title without end": b"\x1b]0;" + b"t" * 65_530,
    "titles without end": (b"\x1b]0;" + b"t" * 300) * 200,
    "control sequences": b"\x1b[K" * 21_000,
    "control sequences and some text": (b"\x1b[K" * 16_000 + b"x"),
    "near-miss marks": b"\x1b]7717;__END__;n=x\x18" * 3_000,
    "half marks": b"\x1b]7717;__END__;" + b"x" * 400,
}


@pytest.mark.parametrize(
    ("name", "view", "match"),
    # Each filler in one view with one of the matches, but in a long run.
    [
        (name, view, match)
        for number, name in enumerate(FILLERS)
        for second, view in enumerate(("text", "ansi", "raw"))
        for third, match in enumerate(("never", {"regex": "never"}, {"regex": r"ne\sver"}))
        if LONG or (second, third) == (number % 3, number // 3)
    ],
)
def test_memory_of_a_wait_is_bounded(name: str, view: str, match: Any) -> None:
    filler = FILLERS[name]
    pty, begin = running()
    waiter, machine = waiter_for(match, begin, view=view), Machine()
    for step in pty.recording.steps():
        _, signals = machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
        waiter.advance(step if isinstance(step, bytes) else b"", signals, machine.classified)
    # More than the largest of the bounds.
    for _ in range(min(40, 18 * LINE_LIMIT // len(filler) + 1)):
        _, signals = machine.feed(filler)
        assert waiter.advance(filler, signals, machine.classified) is None
        assert len(waiter._raw) <= MAX_MARK
        assert len(waiter._view._held) <= HELD_LIMIT
        assert len(waiter._window.text) <= 4 * LINE_LIMIT
        assert sum(len(piece.raw) for piece in waiter._window._pieces) <= 16 * LINE_LIMIT
        assert len(waiter.shown.before()) <= 2 * KEPT_BYTES
