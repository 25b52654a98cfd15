"""Whatever the output is: a wait's answer is the reference's, for every cut and from every place to go on from."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from blockpty.engine.views import View, raw_offset
from blockpty.model.conditions import parse_conditions
from blockpty.testing import Recording, wait_on
from tests.support.machines import (
    Answer,
    property_settings,
    running,
    slow_view,
    slow_wait,
    stops_of,
    wait_from,
    waiter_for,
)
from tests.support.random_records import RECORDS

WORDS = st.sampled_from(
    [b"foo", b"bar", b"abc", b"port 80", b"80", b" ", b"x", b"\r\n", b"\r\n", b"\n", b"\r", b"\x1b[31m", b"\x1b[0K",
     b"\x1b]0;t\x07", b"\x1b]0;t\x1b\\", b"\xc3\xa9", b"\xff", b"\t", b"\x08", b"\x1b(B"]
)  # fmt: skip
BROKEN = st.sampled_from(
    [b"foo", b"x", b"\r", b"\n", b"\x1b", b"[", b"]", b"\x1b[", b"\x1b]", b"0;", b"\x07", b"\\", b"\x18",
     b"m", b"P", b" ",
     b"\x1b]7717;", b"__END__;n=a;i=1;s=1;c=1", b"\xc3"]
)  # fmt: skip
PATTERNS = st.sampled_from(
    ["foo", "^foo", "bar$", "^bar$", "fo+ ?", r"\d+", r"port (\d+)", r"\bfoo\b", r"foo\s+bar", "foo\n", "(?<=foo)bar",
     "foo(?=bar)", "foo(?!bar)", r"\Aabc", r"foo\Z", r"foo\s$", "^$", ".*", "[^a]+$", "(?s)foo.*bar", "x*",
     r"\B", "(?r)foo",
     "(?-m:foo$)", r"foo\Kbar", "(?i)FOO", "é", r"foo\n\K", r"(?<=\n)", r"(?P<word>\w+)\W", r"\s\Z", "(foo|foobar)$",
     r"(?:fob){e<=1}", r"(?>fo*)bar", "a*+b", r"\Z"]
)  # fmt: skip
CONDITION = st.one_of(
    PATTERNS.map(lambda pattern: {"regex": pattern}),
    st.sampled_from(["foo", "foobar", "o\nb", "\n", "80\n", "\r", "é"]),
    st.sampled_from([{"token": "PROMPT"}, {"idle_ms": 25}, {"idle_ms": 1000}]),
)
MATCH = st.lists(CONDITION, min_size=1, max_size=3)
PLACES = st.lists(st.integers(0, 2000), max_size=4)
SETTLED = None


def recorded(output: list[Any], ended: bool) -> tuple[Recording, int, int]:
    """Return a record with this output, where it begins and where it ends; a silence lies wherever `SETTLED` stands."""
    pty, begin = running()
    for piece in output:
        if piece is not SETTLED:
            pty.output(piece)
        elif not pty.recording.stream.endswith(b"\r") and len(pty.recording.stream) > begin:
            pty.silence()
    end = len(pty.recording.stream)
    if ended:
        pty.end()
        pty.prompt()
    return pty.recording, begin, end


OUTPUT = st.lists(st.one_of(WORDS, WORDS, WORDS, st.just(SETTLED)), max_size=14)


@property_settings(600)
@example([b"\r"], False, ["\r"], "text", None, [])
@example([b"\r", b"\r"], False, [{"regex": "foo"}], "text", 1, [])
@given(
    OUTPUT,
    st.booleans(),
    MATCH,
    st.sampled_from(["text", "text", "ansi", "raw"]),
    st.none() | st.integers(1, 30),
    PLACES,
)
def test_answer_is_the_reference_s(
    output: list[Any], ended: bool, match: list[Any], view: str, max_bytes: int | None, places: list[int]
) -> None:
    recording, begin, end = recorded(output, ended)
    size = len(recording.stream)
    expected = slow_wait(
        recording, begin, end, size if ended else None, parse_conditions(match), view=view, max_bytes=max_bytes
    )
    for cuts in ((), range(size), [begin + place % (size - begin + 1) for place in places]):
        outcome = wait_on(recording, waiter_for(match, begin, view=view, max_bytes=max_bytes), cuts)
        assert Answer.of(outcome) == expected


@property_settings(300)
@given(RECORDS, MATCH, st.integers(0, 3000), st.sampled_from(["text", "ansi", "raw"]), st.booleans(), PLACES)
def test_answer_is_the_same_for_every_cut_of_any_record(
    recording: Recording, match: list[Any], cursor: int, view: str, echo: bool, places: list[int]
) -> None:
    size = len(recording.stream)
    match = [*match, "text", "typed\n"]
    cursor %= size + 1
    expected = wait_on(recording, waiter_for(match, cursor, view=view, echo=echo))
    for cuts in (range(size + 1), [place % (size + 1) for place in places]):
        assert wait_on(recording, waiter_for(match, cursor, view=view, echo=echo), cuts) == expected


@property_settings(150)
@given(RECORDS, MATCH, st.integers(0, 3000), PLACES)
def test_answer_is_the_same_from_every_place_to_go_on_from(
    recording: Recording, match: list[Any], cursor: int, places: list[int]
) -> None:
    size = len(recording.stream)
    cursor %= size + 1
    stops, _ = stops_of(recording, [place % (size + 1) for place in places])
    for seen in (stops[-1], stops[len(stops) // 2]):
        expected = wait_from(recording, waiter_for(match, cursor), stops[0], seen)
        for stop in stops:
            if stop.is_certain and stop.fed <= min(cursor, seen.fed) and stop.applied <= seen.applied:
                assert wait_from(recording, waiter_for(match, cursor), stop, seen) == expected


LINES = st.sampled_from([b"foo\n", b"foo\n", b"foobar\n", b"f\n", b"80\n", b"\n"])
TYPED = st.tuples(LINES, st.booleans(), st.booleans())
# Echo that comes whole, in pieces, late or never, beside lines of a program that look the same.
ECHOED = st.sampled_from(
    [b"foo\r\n", b"foo\r\n", b"fo", b"o\r\n", b"foobar\r\n", b"80\r\n", b"\r\n", b"bar", b"f", b"x" * 3000]
)
ACTS = st.lists(st.one_of(TYPED, ECHOED, ECHOED, st.just(SETTLED)), max_size=14)


@property_settings(400)
@given(ACTS, CONDITION, st.integers(0, 400), PLACES)
def test_answer_is_the_same_from_between_an_input_and_its_echo(
    acts: list[Any], match: Any, cursor: int, places: list[int]
) -> None:
    pty, begin = running()
    for act in acts:
        if isinstance(act, tuple):
            pty.type(act[0], echo=act[1], icanon=act[2])
        elif act is not SETTLED:
            pty.output(act)
        else:
            pty.silence()
    recording = pty.recording
    size = len(recording.stream)
    cursor = begin + cursor % (size - begin + 1)
    stops, _ = stops_of(recording, [begin + place % (size - begin + 1) for place in places])
    seen, waiter = stops[-1], [match, "foo\n"]
    expected = wait_from(recording, waiter_for(waiter, cursor), stops[0], seen)
    for stop in stops:
        if stop.is_certain and stop.fed <= cursor:
            assert wait_from(recording, waiter_for(waiter, cursor), stop, seen) == expected


@property_settings(400)
@given(st.lists(WORDS, max_size=10), st.lists(WORDS, max_size=10), CONDITION, st.integers(0, 60))
def test_waiting_again_misses_nothing(early: list[bytes], late: list[bytes], match: Any, cut: int) -> None:
    output = b"".join([*early, *late])
    recording, begin, _ = recorded([output[:cut]], False)
    waiter = waiter_for(match, begin)
    if wait_on(recording, waiter) is not None:
        return
    recording, begin, _ = recorded([output], True)
    first = wait_on(recording, waiter_for(match, begin))
    again = wait_on(recording, waiter_for(match, waiter.resume_cursor()))
    if isinstance(match, dict) and r"\A" in match.get("regex", ""):
        return  # the beginning of the text is where one begins to look
    assert Answer.of(again) == Answer.of(first)


@property_settings(500)
@given(st.lists(st.one_of(WORDS, BROKEN), max_size=16), st.sampled_from(["raw", "ansi", "text"]), PLACES)
def test_view_is_the_reference_s_with_every_offset(pieces: list[bytes], name: str, places: list[int]) -> None:
    raw = b"".join(pieces)
    expected = slow_view(name, raw, 100)
    for cuts in ([], list(range(1, len(raw))), sorted({place % (len(raw) + 1) for place in places})):
        view, shown, at = View(name, 100), [], 0
        for place in [*cuts, len(raw), None]:
            piece = view.finish() if place is None else view.feed(raw[at:place])
            at = at if place is None else place
            shown += [
                (code, raw_offset(name, piece, place), raw_offset(name, piece, place, after=True))
                for place, code in enumerate(piece.text)
            ]
        assert shown == [tuple(item) for item in expected]
