"""The tree of fish texts: words as fish reads them, blocks flat, and what is refused."""

from __future__ import annotations

import pytest

from blockpty.control.fish_syntax import parse
from blockpty.control.shell_commands import Known, simple_commands
from blockpty.control.shell_syntax import Incomplete, Unparsed

KNOWN = Known("/x", "/h", "fish")


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a 'it\\'s' \"b\\\"c\" d\\ e \\x41", ("it's", 'b"c', "d e", "A")),
        ("a {b,c}d ~/e $HOME/f", ("bd", "cd", "/h/e", "/h/f")),
        ("a (echo b) $(echo c) \"$(echo d e)\"", ("b", "c", "d e")),
        ("a b#c # d", ("b#c",)),
        ("a '' \"\"", ("", "")),
    ],
)  # fmt: skip
def test_words(text: str, arguments: tuple[str, ...]) -> None:
    assert simple_commands(text, KNOWN)[-1].arguments == arguments


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("if a; b; else if c; d; else; e; end; f", ["a", "b", "c", "d", "e", "f"]),
        ("for x in (a); b $x; end", ["a", ":", "b"]),
        ("while a; and b; or not c; end | d", ["a", "b", "c", "d"]),
        ("begin; a; end > b; c & d", ["a", "", "c", "d"]),
        ("function a --wraps b; c; end", [":", "c"]),
        ("a &| b 2>| c && d || e", ["a", "b", "c", "d", "e"]),
        ("a <b >c 2>>d ^e", ["a"]),
    ],
)
def test_programs(text: str, programs: list[str]) -> None:
    assert [one.program for one in simple_commands(text, KNOWN)] == programs


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a (b", "if a", "begin; a", "a \\", "(if a)"])
def test_what_goes_on_is_incomplete(text: str) -> None:
    with pytest.raises(Incomplete):
        parse(text)


@pytest.mark.parametrize("text", ["end", "a)", "{ a; }", "a > ", "a $x[(b)]", "a" * 2_000_000, "(" * 100])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(Unparsed):
        parse(text)
