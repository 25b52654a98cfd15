"""Start plans of shells, one function for each family: arguments, environment and startup files with our hooks."""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from blockpty.errors import BadRequest, SpawnFailed
from blockpty.host.shells.staging import fish_quote_bytes, quote_bytes

_CLEAN = re.compile(r"[^0-9A-Za-z._-]")


class Place(Struct, frozen=True):
    """Where and for whom a shell is started.

    Attributes:
        directory: absolute path of the conversation.
        folder: the private directory of this shell instance, relative to it.
        nonce: what authenticates this instance's marks; not in `repr`.
        login: whether a login shell was asked for.
    """

    directory: str
    folder: str
    nonce: str
    login: bool

    def __repr__(self) -> str:
        return f"<Place {self.folder} of {self.directory}>"


class ShellPlan(Struct, frozen=True):
    """Everything that starts one shell instance.

    Attributes:
        name: the family when our hooks go in ("bash", "zsh", "fish"), else the basename of the program.
        argv: absolute program path first.
        env: the complete environment.
        files: (path relative to the conversation directory, content); write them 0600, their directories 0700, before
            the shell starts. Not in `repr`, because they hold the nonce.
        secret_files: relative paths to remove at the first authenticated mark, in this order: files to unlink, then
            directories to rmdir.
        is_piped: whether the program writes what it passes on into a pipe of the recorder, and not to its terminal.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    files: tuple[tuple[str, bytes], ...]
    secret_files: tuple[str, ...]
    is_piped: bool = False

    def __repr__(self) -> str:
        return f"<ShellPlan {self.name} {self.argv}>"


def shellrc_directory() -> Path:
    """Return the directory of the shell files: inside the installed package, else beside it in a checkout.

    Raises:
        SpawnFailed: there is neither.
    """
    package = Path(__file__).resolve().parents[2]
    for candidate in (package / "_shellrc", package.parent / "shellrc"):
        if (candidate / "bash" / "blockpty.bash").is_file():
            return candidate
    raise SpawnFailed("the shell integration files are missing", hint="reinstall blockpty")


def _header(forget: bytes, nonce: str, directory: str) -> bytes:
    """Forget inherited variables of our names, with their export attribute, then set what only this instance knows."""
    return b"\\builtin unset " + forget + f"\n__bpty_n='{nonce}'\n__bpty_dir=".encode() + quote_bytes(directory) + b"\n"


def bash_plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how bash is started with our hooks in it."""
    name = f"{place.folder}/bashrc"
    head = _header(b'-v "${!__bpty_@}"', place.nonce, place.directory) + f"__bpty_login={int(place.login)}\n".encode()
    body = (shellrc_directory() / "bash" / "blockpty.bash").read_bytes()
    # Long options must precede short ones.
    argv = (path, "--rcfile", os.path.join(place.directory, name), "-i")
    return ShellPlan("bash", argv, env, ((name, head + body),), (name, place.folder))


def zsh_plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how zsh is started with our hooks in it."""
    name = f"{place.folder}/.zshenv"
    head = _header(b"-m '__bpty_*'", place.nonce, place.directory)
    if "ZDOTDIR" in env:
        head += b"__bpty_zdotdir=" + quote_bytes(env["ZDOTDIR"]) + b"\n"
    source = shellrc_directory() / "zsh"
    content = head + (source / "blockpty.zsh").read_bytes() + (source / "zshenv").read_bytes()
    argv = (path, "-l", "-i") if place.login else (path, "-i")
    env = {**env, "ZDOTDIR": os.path.join(place.directory, place.folder)}
    return ShellPlan("zsh", argv, env, ((name, content),), (name, place.folder))


def fish_plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how fish is started with our hooks in it: `-C` runs after the user's configuration."""
    name = f"{place.folder}/blockpty.fish"
    content = fish_hooks(place.nonce, place.directory)
    source = "source " + os.fsdecode(fish_quote_bytes(os.path.join(place.directory, name)))
    argv = (path, *(("-l",) if place.login else ()), "-i", "-C", source)
    return ShellPlan("fish", argv, env, ((name, content),), (name, place.folder))


def fish_hooks(nonce: str, directory: str, file: str | None = None) -> bytes:
    """Return the hooks of one shell instance, whose conversation lives in `directory`.

    `file`: of a shell that gets them while it runs, the file that holds them; whether it can be read, it says.
    """
    head = f"set -gu __bpty_n '{nonce}'\nset -gu __bpty_dir ".encode() + fish_quote_bytes(directory) + b"\n"
    if file is not None:
        head += b"set -gu __bpty_file " + fish_quote_bytes(file) + b"\n"
    return head + (shellrc_directory() / "fish" / "blockpty.fish").read_bytes()


def posix_plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how a shell whose prompt alone can be marked (dash, busybox ash, ksh93, mksh, `sh`) is started.

    ENV names our file, which gives the user's ENV back.

    It is not started as a login shell even where one is asked for: a profile that sets ENV would take ours away; the
    file reads the profiles instead.

    Raises:
        BadRequest: the shell would expand the file's name.
    """
    name = f"{place.folder}/blockpty.sh"
    file = os.path.join(place.directory, name)
    base = os.path.basename(path)
    if any(character in file for character in "$`\\"):
        raise BadRequest(f"{base} would expand the name {file!r}", hint="use a home without $, ` and backslash")
    head = (
        f"__bpty_n='{place.nonce}'\n__bpty_login={int(place.login)}\n__bpty_sh='{_CLEAN.sub('_', base)}'\n"
        "__bpty_esc='\x1b' __bpty_bel='\x07' __bpty_soh='\x01' __bpty_cr='\r'\n"
    ).encode()
    head += b"__bpty_dir=" + quote_bytes(place.directory) + b"\n"
    if "ENV" in env:
        head += b"__bpty_env=" + quote_bytes(env["ENV"]) + b"\n"
    content = head + (shellrc_directory() / "posix" / "blockpty.sh").read_bytes()
    # busybox is many programs and takes the name of the one it is to be from its arguments.
    argv = (path, "ash", "-i") if base.startswith("busybox") else (path, "-i")
    return ShellPlan(base, argv, {**env, "ENV": file}, ((name, content),), (name, place.folder))
