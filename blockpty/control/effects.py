"""Effects of a simple command: what it would do that no pattern of words can say.

Rules of this file: pure; one function an effect. An effect that is possible counts as there, unless it is certain that
it is not: a target known only at run time may be anything.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import Final

from blockpty.control.launchers import started, subcommands
from blockpty.control.simple_command import SEVERAL, SOME_NAME, TEMPORARY, UNKNOWN, SimpleCommand

_DEVICE: Final = re.compile(
    r"/proc/sysrq-trigger|/dev/(?!(?:null|zero|full|stdin|stdout|stderr|tty|ptmx|random|urandom|(?:fd|tcp|udp|shm)/.*|pts/\d+)$)"
)
_FETCHERS: Final = frozenset({
    "curl", "wget", "fetch", "aria2c", "http", "https", "httpie", "xh", "lynx", "w3m", "links", "ftp", "tftp", "nc",
    "ncat", "netcat", "socat", "scp", "ssh", "gsutil", "s3cmd", "rclone", "telnet", "openssl", "lwp-request", "get",
    "curlie", "dig",
})  # fmt: skip


def _targets(command: SimpleCommand, values: str = "") -> Iterator[str]:
    """Yield the arguments that are no options."""
    rest = iter(command.arguments)
    for argument in rest:
        if argument == "--":
            yield from rest
        elif not argument.startswith("-") or argument == "-":
            yield argument
        elif values and argument[-1] in values:
            next(rest, None)


def _options(command: SimpleCommand) -> tuple[str, list[str]]:
    """Return the letters of the short options, and the long options."""
    letters, names = "", []
    for argument in command.arguments:
        if argument == "--":
            break
        if argument.startswith("--"):
            names.append(argument)
        elif argument.startswith("-"):
            letters += argument[1:]
    return letters, names


def _is_inside(target: str, command: SimpleCommand, base: str | None, home: str | None) -> bool:
    """Whether a target is certainly below the directory of the conversation, and that is no home and no root."""
    if base is None or command.cwd is None or target.startswith(UNKNOWN) or target == "":
        return False
    if base == "/" or (home and (home == base or home.startswith(base.rstrip("/") + "/"))):
        return False
    if target.startswith(TEMPORARY):
        return ".." not in target
    if target.startswith(SOME_NAME):
        return False
    # What is not known may climb out of the directory.
    if UNKNOWN in target.replace(SOME_NAME, ""):
        return False
    # `.*` may be `..`, and a shell may replace what begins with an exclamation mark.
    if re.search(r"(?:^|/)\.[*?\[]|!", target):
        return False
    path = posixpath.normpath(posixpath.join(command.cwd, target))
    return path.startswith(base.rstrip("/") + "/")


def _deletes_outside(command: SimpleCommand, base: str | None, home: str | None) -> bool:
    program = command.program
    if program in ("rm", "srm", "trash", "shred", "wipe", "grm", "zf_rm", "unlink", "rimraf"):
        letters, names = _options(command)
        unknown = [one for one in command.arguments if one.startswith(SEVERAL)]
        singles = [one for one in command.arguments if one.startswith(UNKNOWN)]
        recursive = re.search("[rR]", letters) or any(
            "--recursive".startswith(name) and len(name) > 2 for name in names
        )
        many = bool(command.via) and command.via[-1] in ("find", "gfind", "fd", "fdfind", "xargs", "gxargs", "parallel")
        if program not in ("shred", "rimraf") and not recursive and not many:
            if not unknown and len(singles) < 2:
                return False
            recursive = bool(unknown) and not _only_names(command)
            if not recursive:
                return False
        return not all(_is_inside(target, command, base, home) for target in _targets(command))
    if program in ("find", "gfind", "fd", "fdfind"):
        if not any(argument in ("-delete", SEVERAL) for argument in command.arguments):
            return False
        roots = []
        for argument in command.arguments:
            if argument.startswith(("-", "(", "!")) and argument not in ("-H", "-L", "-P"):
                break
            roots.append(argument)
        return not all(
            _is_inside(f"{root}/x", command, base, home) for root in roots or ["."] if root not in ("-H", "-L", "-P")
        )
    if program == "rsync":
        if not any(argument.startswith(("--del", "--remove-source")) for argument in command.arguments):
            return False
        targets = list(_targets(command, "e"))
        return not targets or ":" in targets[-1] or not _is_inside(targets[-1], command, base, home)
    if program == "git":
        return _cleans_outside(command, base, home)
    if program in ("tar", "gtar", "bsdtar") and "--remove-files" in command.arguments:
        return not all(_is_inside(target, command, base, home) for target in _targets(command, "fC"))
    return False


def _cleans_outside(command: SimpleCommand, base: str | None, home: str | None) -> bool:
    """Whether `git clean -d` deletes elsewhere than below where it runs."""
    place = next((place for place in subcommands(command.arguments) if command.arguments[place] == "clean"), None)
    if place is None:
        return False
    before, after = command.arguments[:place], command.arguments[place + 1 :]
    if not any("d" in one for one in after if one.startswith("-") and not one.startswith("--")):
        return False
    moved = [before[index + 1] for index, one in enumerate(before) if one in ("-C", "--work-tree", "--git-dir")]
    moved += [one.partition("=")[2] for one in before if one.startswith(("--work-tree=", "--git-dir="))]
    targets = [one for one in after if not one.startswith("-")]
    return not all(_is_inside(f"{one}/x", command, base, home) for one in (*moved, *targets))


def _only_names(command: SimpleCommand) -> bool:
    """Whether every unknown word comes from `--` on, where none is an option."""
    arguments = command.arguments
    if "--" not in arguments:
        return False
    return not any(one.startswith(UNKNOWN) for one in arguments[: arguments.index("--")])


def _writes_device(command: SimpleCommand, base: str | None, home: str | None) -> bool:
    for one in command.redirections:
        if one.operator in (">", ">>", ">|", "&>", "&>>", "<>", ">&") and _is_device(one.target):
            return True
    program = command.program
    if program in ("dd", "dcfldd", "gdd"):
        return any(
            argument == SEVERAL
            or (argument.startswith("of=") and (_is_device(argument[3:]) or argument[3:].startswith(UNKNOWN)))
            for argument in command.arguments
        )
    if program in ("tee", "shred", "wipe", "truncate", "sponge", "badblocks", "curl", "wget", "tar", "pv", "ddrescue"):
        return any(_is_device(argument) for argument in command.arguments)
    if program in ("cp", "mv", "install", "ln", "cat", "rsync", "scp"):
        return (
            bool(command.arguments)
            and program != "cat"
            and (
                _is_device(command.arguments[-1])
                or any(one.startswith(("-t/dev", "--target-directory=/dev")) for one in command.arguments)
            )
        )
    return False


def _is_device(path: str) -> bool:
    if "/dev/" not in path and "/proc/sysrq" not in path:
        return False
    return _DEVICE.match(posixpath.normpath(re.sub(r"^/+", "/", path))) is not None


def _runs_download(command: SimpleCommand, base: str | None, home: str | None) -> bool:
    before = command.stdin.commands if command.stdin is not None else ()
    if not any(one.program in _FETCHERS for one in (*before, *command.inner)):
        return False
    return any(one.unknown for one in started(command.program, command.arguments, command.stdin))


_CHECKS: Final[dict[str, Callable[[SimpleCommand, str | None, str | None], bool]]] = {
    "delete-outside": _deletes_outside,
    "device-write": _writes_device,
    "run-download": _runs_download,
}
EFFECTS: Final = tuple(_CHECKS)
"""The names of the effects, as rules give them."""


def has_effect(name: str, command: SimpleCommand, cwd: str | None, home: str | None) -> bool:
    """Return whether a command has, or may have, an effect, seen from the directory of the conversation."""
    return _CHECKS[name](command, cwd, home)
