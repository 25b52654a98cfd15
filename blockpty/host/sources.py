"""Sources of terminals that are not a shell of ours: a program, another host, a tmux pane, a container.

A source is one line of a table: what it is called, how its text is read, the arguments of the program on our terminal,
the way of its hooks, and what its end means (`blockpty/engine/outcome.py`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from blockpty.errors import BadRequest, SpawnFailed
from blockpty.host.launch import BARE_PACKAGE, ROOT
from blockpty.host.shells import ShellPlan, clean_environment
from blockpty.host.shells.families import find_program

SHELL: Final = "shell"
"""The source of a conversation that has none of these: a shell on this machine."""

NEVER: Final = "never"
"""A program without a shell: there is nothing to hook."""
TYPED: Final = "typed"
"""A shell somewhere else: the hooks are typed at its first prompt."""
ASKED: Final = "asked"
"""What runs already: hooks go in where a caller asks for it."""

_BRIDGE: Final = f"""{BARE_PACKAGE}
from importlib import import_module
sys.exit(import_module("blockpty.host." + sys.argv[2]).main(sys.argv[3]))
"""
_LONGEST: Final = 16 * 1024
# No name begins with a dash, so none is an option.
_USER: Final = r"(?:(?P<user>[\w.+][\w.+-]*)@)?"
_SSH: Final = re.compile(
    _USER + r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<host>\w[\w.-]*))(?::(?P<port>\d{1,5}))?", re.ASCII
)
_CONTAINER: Final = re.compile(
    r"(?P<runtime>docker|podman|kubectl)/(?:(?P<space>\w[\w.-]*)/)?(?P<name>\w[\w.-]*)", re.ASCII
)
# The best shell that is there, in a container that may have only one.
_BEST_SHELL: Final = "for s in bash zsh; do command -v $s >/dev/null && exec $s -i; done; exec sh -i"


class TerminalSource(Struct, frozen=True):
    """Source of the bytes of a conversation.

    Attributes:
        kind: the word in front of the colon.
        target: the text behind it.
        argv: what is started on the terminal.
        hooks: `never`, `typed` or `asked`.
        is_piped: whether the program writes into a pipe of the recorder rather than to the terminal that it reads from.
    """

    kind: str
    target: str
    argv: tuple[str, ...]
    hooks: str
    is_piped: bool

    @property
    def text(self) -> str:
        """The source as it was asked for."""
        return f"{self.kind}:{self.target}"

    @property
    def command(self) -> str:
        """What is started, as one line of a shell."""
        return shlex.join(self.argv)


def parse_source(text: str) -> TerminalSource | None:
    """Return the source that a text names, None for `shell`; raises BadRequest."""
    kind, colon, target = text.partition(":")
    if text == SHELL:
        return None
    if kind not in KINDS or not colon:
        raise BadRequest(
            f"{text[:40]!r} is not a source",
            hint=f"shell, or one of {', '.join(f'{name}:{form}' for name, (form, *_) in KINDS.items())}",
        )
    form, read, hooks, is_piped = KINDS[kind]
    if "\0" in target or len(target) > _LONGEST or not target.strip():
        raise BadRequest(f"the source {text[:40]!r} names nothing that can be started", hint=f"{kind}:{form}")
    return TerminalSource(kind, target, read(target), hooks, is_piped)


def plan_source(
    source: TerminalSource, inherited: Mapping[str, str], additions: Mapping[str, str] | None = None
) -> ShellPlan:
    """Say how a source is started; raises SpawnFailed where its program is not there, BadRequest for an addition."""
    env = clean_environment(inherited, additions)
    program = find_program(source.argv[0], env["PATH"])
    if program is None:
        raise SpawnFailed(
            f"no program {source.argv[0]!r} was found for the source {source.kind}",
            hint="install it, or give an absolute path",
            details={"program": source.argv[0], "path": env["PATH"]},
        )
    argv = (program, *source.argv[1:])
    return ShellPlan(os.path.basename(program), argv, env, (), (), is_piped=source.is_piped)


def plan_bridge(
    plan: ShellPlan, module: str, settings: Mapping[str, Any], directory: str, instance: int
) -> ShellPlan:
    """Return a plan in which a bridge of this room stands for the program; it removes the file of its settings."""
    name = f"rc/{instance}/{module}.json"
    argv = (sys.executable, "-I", "-S", "-c", _BRIDGE, ROOT, module, os.path.join(directory, name))
    content = json.dumps(settings).encode()
    return replace(plan, argv=argv, files=((name, content),), secret_files=(name, f"rc/{instance}"))


def _program(target: str) -> tuple[str, ...]:
    """Return the arguments of `exec:`: a JSON list of strings, or a line that is split as a shell splits it."""
    if target.lstrip().startswith('["'):
        try:
            argv = json.loads(target)
        except ValueError:
            raise BadRequest("the JSON list of exec: cannot be read", hint='exec:["program", "argument"]') from None
        if not isinstance(argv, list) or not all(isinstance(one, str) for one in argv):
            raise BadRequest("exec: takes a list of strings", hint='exec:["program", "argument"]')
    else:
        try:
            argv = shlex.split(target)
        except ValueError as problem:
            raise BadRequest(f"the arguments of exec: cannot be split: {problem}", hint="quote them") from None
    if not argv or not argv[0] or "\0" in "".join(argv):
        raise BadRequest("exec: names no program", hint="exec:program argument ...")
    return tuple(argv)


def _host(target: str) -> tuple[str, ...]:
    """Return the arguments of `ssh:[user@]host[:port]`, for the system's own client, which reads its own files.

    `-e none`: no key of ours is one of its own commands.
    """
    found = _SSH.fullmatch(target)
    if found is None or not 0 < int(found["port"] or 22) < 65536:
        raise BadRequest(f"{target[:60]!r} is not a host name", hint="ssh:[user@]host[:port]; an IPv6 address in []")
    user = ("-l", found["user"]) if found["user"] else ()
    port = ("-p", found["port"]) if found["port"] else ()
    return ("ssh", "-tt", "-e", "none", "-o", "SendEnv=LANG LC_*", *port, *user, "--", found["host"] or found["six"])


def _container(target: str) -> tuple[str, ...]:
    """Return the arguments of `container:runtime/name`; of kubectl a namespace may stand in front of the pod."""
    found = _CONTAINER.fullmatch(target)
    if found is None or (found["space"] and found["runtime"] != "kubectl"):
        raise BadRequest(
            f"{target[:60]!r} names no container", hint="docker/name, podman/name, kubectl/pod or kubectl/namespace/pod"
        )
    if found["runtime"] == "kubectl":
        space = ("-n", found["space"]) if found["space"] else ()
        term = ("env", "TERM=xterm-256color")
        return ("kubectl", "exec", "-it", *space, found["name"], "--", *term, "sh", "-c", _BEST_SHELL)
    return (found["runtime"], "exec", "-it", "-e", "TERM=xterm-256color", found["name"], "sh", "-c", _BEST_SHELL)


def _pane(target: str) -> tuple[str, ...]:
    """Return the arguments that stand for `tmux:target`; what is started is the bridge (`tmux_bridge.py`)."""
    if target.startswith("-") or not target.isprintable():
        raise BadRequest(
            f"{target[:60]!r} is not a tmux target", hint="session, session:window, session:window.pane or %pane"
        )
    return ("tmux", "-C", "attach-session", "-t", target)


# ssh and our bridges need a terminal only to read from; docker asks the one that it writes to for its size.
KINDS: Final[dict[str, tuple[str, Callable[[str], tuple[str, ...]], str, bool]]] = {
    "exec": ("program argument ...", _program, NEVER, False),
    "ssh": ("[user@]host[:port]", _host, TYPED, True),
    "tmux": ("target", _pane, ASKED, True),
    "container": ("runtime/name", _container, TYPED, False),
}
"""Every kind: the form of its target, what reads it, the way of its hooks, and whether it writes into a pipe."""
