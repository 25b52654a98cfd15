"""The tree of shell texts: its forms, what is incomplete, and what is refused because it cannot be read exactly."""

from __future__ import annotations

import pytest

from blockpty.control.shell_syntax import (
    EMPTY,
    Compound,
    Incomplete,
    Parameter,
    Simple,
    Substitution,
    Unparsed,
    WordNode,
    parse,
    quote,
    unquote,
)
from tests.support.command_texts import lines, texts


def one(text: str) -> Simple | Compound:
    ((_, pipeline),) = parse(text).pipelines
    (command,) = pipeline.commands
    return command


def test_the_parts_of_a_simple_command() -> None:
    found = one("A=1 b \"c$D\" 2>e <<F\n$G\nF\n")
    assert isinstance(found, Simple)
    assert found.assignments == [("A", (WordNode(("1",)),))]
    assert found.words == [WordNode(("b",)), WordNode(("c", Parameter("D", quoted=True)), quoted=True)]
    assert [(redirect.operator, redirect.descriptor) for redirect in found.redirects] == [(">", "2"), ("<<", "")]
    assert found.redirects[1].body == (Parameter("G", quoted=True), "\n")


@pytest.mark.parametrize(
    ("text", "kind", "bodies"),
    [
        ("if a; then b; elif c; then d; else e; fi", "if", 5), ("while a; do b; done", "while", 2), ("(a)", "(", 1),
        ("until a; do b; done", "until", 2), ("for x in a; do b; done", "for", 1),
        ("select x in a; do b; done", "select", 1),
        ("for ((;;)); do a; done", "while", 1), ("case x in a) b;; (c|d) e;& esac", "case", 2), ("{ a; }", "{", 1),
        ("f() { a; }", "function", 1), ("function f { a; }", "function", 1), ("[[ a ]]", "[[", 0), ("((1))", "((", 0),
        ("( (a) )", "(", 1), ("((a); b)", "(", 1),
    ],
)  # fmt: skip
def test_compound_commands(text: str, kind: str, bodies: int) -> None:
    found = one(text)
    assert isinstance(found, Compound)
    assert (found.kind, len(found.bodies)) == (kind, bodies)


def test_two_here_documents_are_read_in_order() -> None:
    found = one("cat <<A <<-'B' x\na\nA\n\t$b\n\tB\n")
    assert isinstance(found, Simple) and len(found.words) == 2
    assert ["".join(map(str, redirect.body)) for redirect in found.redirects] == ["a\n", "$b\n"]


def test_a_backtick_in_a_backtick() -> None:
    found = one(r"a `b \`c\``")
    assert isinstance(found, Simple)
    outer = found.words[1].parts[0]
    assert isinstance(outer, Substitution)
    inner = outer.body.pipelines[0][1].commands[0]
    assert isinstance(inner, Simple) and isinstance(inner.words[1].parts[0], Substitution)


@pytest.mark.parametrize(
    "text",
    ["a 'b", 'a "b', "a `b", "a $(b", "a ${b", "a <<E\nb", "a |", "a &&", "if a; then b", "(a", "{ a", "a=(b", "[[ a"],
)
def test_what_goes_on_is_incomplete(text: str) -> None:
    with pytest.raises(Incomplete):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a &&", "ends after &&"), ("a ||", "ends after ||"), ("a |", "ends where a command belongs"),
        ("case", "ends where a word belongs"), ("cat <<E\nb", "has a here-document without end"),
        ("cat <<E", "has a here-document without end"), ('a "b', "has a quote without end"),
        ("a `b", "has a backtick without end"), ("(a", "has a bracket without end"), ("a ${b", "has a ${ without }"),
        ("while a", "has a compound command without 'do'"),
    ],
)  # fmt: skip
def test_the_reason_says_what_has_no_end(text: str, reason: str) -> None:
    with pytest.raises(Incomplete) as found:
        parse(text)
    assert str(found.value) == reason


@pytest.mark.parametrize("text", ["time", "time -p", "time # x", "time\n", "time; time -p"])
def test_time_may_stand_alone(text: str) -> None:
    commands = [pipeline.commands for _, pipeline in parse(text).pipelines]
    assert commands and all(isinstance(one, Simple) and not one.words for (one,) in commands)


@pytest.mark.parametrize(
    "text",
    [
        "fi", "a)", "a (b)", "a >", "coproc a", "a @(b|c)", "${x@P}", "${ a; }", "a $[1]", "a[$(b)]=c", "; a",
        "case a b",
        "a $\\\nb",
    ],
)  # fmt: skip
def test_what_cannot_be_read_exactly_is_refused(text: str) -> None:
    with pytest.raises(Unparsed):
        parse(text)


def test_quoting_is_undone() -> None:
    assert unquote(quote("{a,b}*?[~]é")) == "{a,b}*?[~]é"
    assert unquote(EMPTY) == ""


def test_every_ordinary_text_is_read() -> None:
    for text in [*lines("ordinary_commands.txt"), *texts("ordinary_scripts.txt")]:
        assert parse(text).pipelines, text
