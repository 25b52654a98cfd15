"""Simple commands of shell texts: as real bash reads them, for any text, within bounds."""

from __future__ import annotations

import shutil
import subprocess
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blockpty.control.shell_commands import MOST_COMMANDS, Known, simple_commands
from blockpty.control.simple_command import SEVERAL, UNKNOWN, SimpleCommand
from tests.support.command_texts import CWD, HOME, lines, texts
from tests.support.profile import one_in_turn

KNOWN = Known(CWD, HOME)
LONG = 100_000


def commands(text: str, known: Known = KNOWN) -> list[SimpleCommand]:
    return list(simple_commands(text, known))


def programs(text: str, known: Known = KNOWN) -> list[str]:
    return [one.program for one in commands(text, known)]


def last(text: str) -> SimpleCommand:
    return commands(text)[-1]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("a 'b c' \"d e\" f\\ g", ("b c", "d e", "f g")),
        ("a $'\\x41\\n' b", ("A\n", "b")),
        ("a {b,c}{1..2} '{x,y}'", ("b1", "b2", "c1", "c2", "{x,y}")),
        ("a $HOME/x ~/y \"$PWD\" '~'", ("/home/me/x", "/home/me/y", CWD, "~")),
        ("a $x \"$x\" ${x:-y}", (SEVERAL, UNKNOWN, SEVERAL)),
        ("x='b c'; a $x \"$x\"", ("b", "c", "b c")),
        ("x=1; x=2; a $x", (SEVERAL,)),
        ("if true; then x=1; fi; a $x", (SEVERAL,)),
        ("a $(echo b c) \"$(echo b c)\"", ("b", "c", "b c")),
        ("a b#c #d", ("b#c",)),
        ("a \"\" ''", ("", "")),
        ("a b\\\nc \\\n d", ("bc", "d")),
        ("x=1 a b=2 2>&1 >c d", ("b=2", "d")),
    ],
)  # fmt: skip
def test_words(text: str, arguments: tuple[str, ...]) -> None:
    assert last(text).arguments == arguments


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a | b && c || d; e & f", ["a", "b", "c", "d", "e", "f"]),
        ("sudo -u x env A=1 nice -n 3 rm x", ["sudo", "env", "nice", "rm"]),
        ("find . -exec grep -q a {} \\; -print", ["find", "grep"]),
        ("bash -c 'a; b' c", ["bash", "a", "b"]),
        ("a <<E\n$(b) `c`\nE\nd", ["b", "c", "a", "d"]),
        ("a <<'E'\n$(b)\nE", ["a"]),
        ("f() { a; }; f", ["a", "f"]),
        ("alias x='a b'\nx c", ["alias", "a", "a"]),
        ("for i in a b; do $i; done", ["a", "b"]),
        ("case x in (a|b) c;; *) d;& esac", ["c", "d"]),
        ("[[ a < b && ( c > d || e =~ ^(f|g)$ ) ]]; h", ["h"]),
        ("((a < b)); for ((i=0; i<3; i++)); do c; done", ["c"]),
        ("python -m pytest -q", ["python", "pytest"]),
        ("ssh -p 22 me@host 'a | b'", ["ssh", "a", "b"]),
        ("docker run --rm -e A=b -v a:b image sh -c 'c d'", ["docker", "sh", "c"]),
        ("command -v rm", ["command"]),
        ("> x", [""]),
        ("$((1 + $(a)))", ["a", ""]),
        ("$( (a) )", ["a", ""]),
    ],
)  # fmt: skip
def test_programs(text: str, names: list[str]) -> None:
    assert [one.program for one in commands(text) if one.program or not one.unknown or one.source] == names


def test_what_starts_a_command_is_known() -> None:
    assert last("sudo xargs -n1 rm -f").via == ("sudo", "xargs")
    assert last("cd sub && rm x").cwd == f"{CWD}/sub"
    assert last("(cd sub); rm x").cwd == CWD
    assert last("if a; then cd sub; fi; rm x").cwd is None
    assert last("ssh host rm x").cwd is None
    assert last("a b > c 2>> d").redirections[1].target == "d"
    stdin = last("curl x | tee y | sh -s").stdin
    assert stdin is not None and [one.program for one in stdin.commands] == ["curl", "tee"]


@pytest.mark.parametrize(
    "text", ["a 'b", "a (", "a )", "if a", "a <<E\nb", "${", "a |", "a &&", "fi", "coproc a", "a(b)"]
)
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert any(one.unknown for one in commands(text))


def test_every_ordinary_text_is_read_in_whole() -> None:
    for text in [*lines("ordinary_commands.txt"), *texts("ordinary_scripts.txt")]:
        assert [one for one in commands(text) if one.unknown and not text.startswith("curl -LsSf")] == [], text


# --- beside a real bash

_PIECES = st.sampled_from([
    *("a", "-b", "C/d.e", "é", "=", ":", "#", "%", "+", "@", "^", "!", ",", "~", "\\\n", "\\ ", "\\'", "\\{"),
    *("'f g'", "'$h'", '"i j"', '"\\$k\\"\\\\l\\m"', "''", '""', "$'n\\x41\\n\\t\\'\\101'", "$'\\u00e9'"),
    *("{o,p}", "{1..3}", "{c..a}", "{q", "r}", "{s,'t,u'}"),
    *("{,A}", "{D,E{F,G}}", "{01..3}", "{5..1..2}", "{H,{I}}", "{J}", "{K,L"),
    *("$(echo v w)", '"$(echo x  y)"', "`echo z`", '"`echo \\"B\\"`"', "$HOME", '"$HOME"', "$PWD", "$(( 1 ))$"),
])  # fmt: skip


@pytest.mark.needs("bash")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=40))
def test_words_are_those_of_bash(words: list[str]) -> None:
    text = "printf '%s\\0' - " + " ".join(words)
    found = commands(text, Known("/", HOME))
    # A `#` may hide the rest, and a form that is not read on purpose is unknown.
    assume(len({one.program for one in found} & {"printf"}) == 1 and not any(one.unknown for one in found))
    bash = shutil.which("bash")
    assert bash is not None
    environment = {"HOME": HOME, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([bash, "--norc", "-fc", text], env=environment, cwd="/", capture_output=True, check=False)
    expected = done.stdout.decode().split("\0")[:-1]
    arguments = [one for one in found if one.program == "printf"][-1].arguments[1:]
    shown = [one for one in arguments if UNKNOWN not in one]
    assert len(shown) < len(arguments) or list(arguments) == expected


# --- any text, and any size


_ANY = st.text() | st.text("abrm$`'\"\\(){}[];&|<>\n #=*?~!-/0", max_size=200)
_CORPUS = [*texts("ways_around.txt"), *texts("ordinary_scripts.txt"), *lines("ordinary_commands.txt")]
_BROKEN = st.builds(
    lambda text, begin, end, piece: text[: begin % len(text)] + piece + text[end % len(text) :],
    st.sampled_from(_CORPUS), st.integers(0, 99), st.integers(0, 99), st.sampled_from(["", *"$`'\"\\(){};&|<>\n "]),
)  # fmt: skip


def check(text: str) -> None:
    """Assert what holds for any text: what is found runs, redirects or is unknown, and nothing hides in it."""
    for shell in ("bash", "fish"):
        found = simple_commands(text, Known(CWD, HOME, shell))
        assert all(one.program or one.unknown or one.redirections for one in found)
        assert len(found) <= MOST_COMMANDS + 2
        if any(unicodedata.category(char) == "Cc" and char not in "\t\n" for char in text):
            assert [one.unknown for one in found] == ["has control or invisible characters in it"]
        else:
            # What follows a text is found, or the text is not read at all.
            after = simple_commands(f"{text}\nlast-of-all", Known(CWD, HOME, shell))
            assert any(one.unknown or "last-of-all" in one.source for one in after)


@settings(deadline=None)
@given(_ANY | _BROKEN)
def test_any_text_is_read_or_unknown(text: str) -> None:
    check(text)


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_read_or_unknown(data: bytes) -> None:
    check(data.decode("latin-1"))
    check(data.decode("utf-8", "surrogateescape"))


PIECES = (
    *("a ", "(", "((", "$(", "$((", '"$(', "{ ", "{a,", "{a,b}", "<<a ", "cat <<a\n", "if a; then ", "`", "'"),
    *("\\", "a;", "\n", "a=1 ", "env ", "sudo ", "sh -c ", "eval '", "a|", "2>&1 ", "<(", "~", "$a", "${a:-"),
    *("begin;", "case x in ", "for i in 1 2 3 4 5 6 7 8; do ", "find . -exec ", "alias a='a a'\n", "a=1;rm $a;"),
    *("x", "#", "\0"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("piece", "shell"),
    [(piece, shell) for number, piece in enumerate(PIECES) for shell in one_in_turn(number, ("bash", "fish"))],
)
def test_a_text_of_any_size_is_read_in_bounded_steps(piece: str, shell: str) -> None:
    # The limit of a test's time is the measure; most of these take exponential or quadratic time if read naively.
    assert len(simple_commands(piece * (LONG // len(piece)), Known(CWD, HOME, shell))) <= MOST_COMMANDS + 2


def test_a_large_here_document_is_read() -> None:
    assert programs("cat > x <<'E'\n" + "$(rm)\n" * 100_000 + "E\nls") == ["cat", "ls"]


def test_too_long_a_text_is_unknown() -> None:
    assert commands("a " * 600_000)[0].unknown == "is too long to be checked"
