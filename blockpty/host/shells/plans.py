"""What a plan for starting a shell is, and what the families' modules share in making one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from blockpty.errors import SpawnFailed
from blockpty.host.shells.staging import quote_bytes


@dataclass(frozen=True)
class Place:
    """Where and for whom a shell is started.

    Attributes:
        directory: absolute path of the conversation.
        folder: the private directory of this shell instance, relative to it.
        nonce: what authenticates this instance's marks.
        login: whether a login shell was asked for.
    """

    directory: str
    folder: str
    nonce: str = field(repr=False)
    login: bool


@dataclass(frozen=True)
class ShellPlan:
    """Everything that starts one shell instance.

    Attributes:
        name: the family when our hooks go in ("bash", "zsh", "fish"), else the basename of the program.
        argv: absolute program path first.
        env: the complete environment.
        files: (path relative to the conversation directory, content); write them 0600, their directories 0700, before
            the shell starts. Not in `repr`, because they hold the nonce.
        secret_files: relative paths to remove at the first authenticated mark, in this order: files to unlink, then
            directories to rmdir.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    files: tuple[tuple[str, bytes], ...] = field(repr=False)
    secret_files: tuple[str, ...]


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


def header(forget: bytes, nonce: str, directory: str) -> bytes:
    """Forget inherited variables of our names, with their export attribute, then set what only this instance knows."""
    return b"\\builtin unset " + forget + f"\n__bpty_n='{nonce}'\n__bpty_dir=".encode() + quote_bytes(directory) + b"\n"
