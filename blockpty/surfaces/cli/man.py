"""Command `blockpty man`: the manual page, made from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from blockpty import __version__

_DOC = """Print the manual page, for man: blockpty man | man -l -

To keep it: blockpty man > ~/.local/share/man/man1/blockpty.1
"""


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Command(
        "man", params=[*anywhere()], help=_DOC, short_help="Print the manual page.", callback=_print_page
    )


@click.pass_context
def _print_page(context: click.Context) -> int:
    program = context.find_root().command
    assert isinstance(program, click.Group)
    click.echo("\n".join(_page(program)))
    return 0


def _page(program: click.Group) -> Iterator[str]:
    from blockpty.surfaces.cli.groups import GROUPS

    context = click.Context(program, info_name="blockpty")
    known = {name: program.get_command(context, name) for name in program.list_commands(context)}
    yield f'.TH BLOCKPTY 1 "" "blockpty {__version__}" "User Commands"'
    yield ".SH NAME"
    yield r"blockpty \- run a real shell for a program, and record what happens in it"
    yield ".SH SYNOPSIS"
    yield r".B blockpty"
    yield r".RI [ options ] \ command \ [ arguments ]"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(program.help or "")
    yield ".SH OPTIONS"
    yield from _options(program, context)
    for title, names in GROUPS.items():
        yield f'.SH "COMMANDS: {title.upper()}"'
        for name in names:
            found = known.get(name)
            if found is None or found.hidden:
                continue
            inner = click.Context(found, info_name=name, parent=context)
            yield f'.SS "{_plain(" ".join([name, *found.collect_usage_pieces(inner)]))}"'
            yield from _paragraphs(found.help or "")
            yield from _options(found, inner)
    yield ".SH EXIT STATUS"
    yield "0 success, 1 error, 2 usage, 3 timeout, 4 exited, 130 interrupted;"
    yield ".B run"
    yield "returns the exit status of its command."


def _options(found: click.Command, context: click.Context) -> Iterator[str]:
    everywhere = {"home", "as_json", "read_only", "help"}
    for parameter in found.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or (context.parent is not None and parameter.name in everywhere):
            continue
        yield ".TP"
        yield f".B {_plain(record[0])}"
        yield _plain(record[1]) or r"\&"


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield _plain(" ".join(paragraph.split()))


def _plain(text: str) -> str:
    """Return a text in which nothing is a request or an escape of roff."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{text}" if text.startswith((".", "'")) else text
