"""Injection of our hooks into a running shell, and commands for one that cannot read our files.

This is only the text that is to be read or typed; the caller has to know that the shell is ready for it.
A shell at the other end of ssh, or in a container, has no file of ours: everything then goes through the terminal. The
hooks are fed to a line that reads them with echo off. What our key of a command is to load follows the key; where
there is no such key, a command is one line `eval $'...'`, which bash and zsh read alike.
"""

from __future__ import annotations

from typing import Final

from blockpty.errors import BadRequest
from blockpty.host.shells import shellrc_directory, submit_line
from blockpty.host.shells.plans import fish_hooks
from blockpty.host.shells.staging import cd_target, encode, escaped, fish_quote_bytes, quote_bytes

HANDED_OVER: Final = {"bash": b'-v "${!__bpty_@}"', "zsh": b"-m '__bpty_*'", "fish": b""}
"""The shells that can take our hooks over while they run, and how each forgets all names of ours."""


def hooks_of(shell: str, *, directory: str, file: str, nonce: str) -> bytes:
    """Return the text that puts our hooks into a running shell, which then shows a prompt with marks.

    Args:
        shell: "bash", "zsh" or "fish".
        directory: absolute path of the conversation; the shell writes its history there, if the place exists.
        file: absolute path of the file that will hold this text; whether the shell can read it, its hello says.
        nonce: 22 characters of base64url, fresh.

    Raises:
        BadRequest: no hooks are known for this shell.
    """
    if shell not in HANDED_OVER:
        raise BadRequest(f"there are no hooks for a running {shell!r}", hint=f"known: {', '.join(sorted(HANDED_OVER))}")
    if shell == "fish":
        return fish_hooks(nonce, directory, file)
    header = (
        b"\\builtin unset " + HANDED_OVER[shell] + b"\n__bpty_n=" + escaped(nonce.encode(), every_byte=True)
        + b"\n__bpty_login=no\n__bpty_dir=" + escaped(encode(directory))
        + b"\n__bpty_file=" + escaped(encode(file)) + b"\n"
    )  # fmt: skip
    # zsh is in the middle of a command now; its installer runs before the next prompt, as it does at the start.
    last = b"" if shell == "bash" else b"precmd_functions+=(__bpty_install)\n"
    # Hooks that it had from an earlier attachment would print the first marks before it has said who it is.
    first = b"" if shell == "bash" else b"".join(b"%s=(${%s:#__bpty_*})\n" % (name, name) for name in _ZSH_ARRAYS)
    return header + first + (shellrc_directory() / shell / f"blockpty.{shell}").read_bytes() + last


def offered_hooks(shell: str, *, directory: str, file: str, nonce: str) -> bytes:
    """Return the text of the file from which a shell with `blockpty shell-init` takes our hooks, once.

    The shell is a person's own, and so is its history: that stays as it is. Arguments as of `hooks_of`.
    """
    hooks = hooks_of(shell, directory=directory, file=file, nonce=nonce)
    # It may still be there at the prompts after this one. The nonce tells this offer from another.
    word = nonce.encode()
    if shell == "fish":
        # A name that begins with ours is not forgotten by the hooks of fish.
        return (
            b'if test "$__blockpty_offered" = %s\n    return\nend\nset -gu __blockpty_offered %s\n'
            b"set -gu __blockpty_taken 1\nset -gu __bpty_keep 1\n" % (word, word)
        ) + hooks
    header, newline, rest = hooks.partition(b"\n")
    return (
        b"if [[ ${__blockpty_offered-} == %s ]]; then\n\t\\builtin return 0\nfi\n" % word
        + b"__blockpty_offered=%s __blockpty_taken=1\n" % word
        + header + newline + b"__bpty_keep=1\n" + rest
    )  # fmt: skip


INIT_KEYS: Final = {"bash": b"\x1b[7716~", "zsh": b"\x1b[7716~", "fish": b"\x1e\x1f"}
"""The key at which a shell with `blockpty shell-init` looks for such a file."""


def init_text(shell: str, directory: str) -> bytes:
    """Return what `blockpty shell-init` prints: the shell then looks for offers in this directory.

    Raises:
        BadRequest: there is none for this shell.
    """
    if shell not in INIT_KEYS:
        raise BadRequest(f"there is no shell-init for {shell!r}", hint=f"known: {', '.join(sorted(INIT_KEYS))}")
    if shell == "fish":
        head = b"set -gu __blockpty_dir " + fish_quote_bytes(directory)
    else:
        head = b"__blockpty_dir=" + quote_bytes(directory)
    return head + b"\n" + (shellrc_directory() / shell / f"init.{shell}").read_bytes()


def read_line(shell: str, path: str) -> bytes:
    """Return the line that has a running shell read the file of its hooks."""
    if shell == "fish":
        # Its submitted lines call functions that this file is about to define.
        return b" source " + fish_quote_bytes(path)
    return encode(submit_line(path, shell))


NOWHERE: Final = "/dev/null/blockpty"
"""A path that is on no machine, in place of our directory: a shell elsewhere may find another one there."""

PASTED: Final = frozenset({"zsh", "fish"})
"""Those that take a paste in brackets whatever their version; they draw their line again for every other key."""

_ZSH_ARRAYS: Final = (b"precmd_functions", b"preexec_functions")

_FED_LINE: Final = 3900
# A pipe of Linux and macOS holds so much, and bash wants room for the line end.
_PIPE_BYTES: Final = 60_000
_FED_WORD: Final = frozenset(range(0x20, 0x7F)) - frozenset(b"\\;!")
_FED_PLAIN: Final = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_./-=")
# fish alone has a builtin `string`, and `type -q`: it reads the text behind `&&`, any other shell that behind `||`; to
# both the other text is a word in quotes. fish cannot read lines without drawing them, so `sh` does it for it. What it
# gets has hex escapes, and no quotes.
_SAYS: Final = (
    b' type -q string >/dev/null 2>&1 && eval \'eval (sh -c "stty -echo; printf '
    b'\\"\\\\\\\\033]7716;%s;fish\\\\\\\\007\\" >/dev/tty; '
    b'while IFS= read -r l && [ \\"\\$l\\" ]; do printf %%s \\"\\$l\\"; done; '
    b'stty echo" | string unescape | string collect); true\' || eval \''
    b'stty -echo 2>/dev/null; printf "\\033]7716;%s;%%s\\007" "${BASH_VERSION:+bash}${ZSH_VERSION:+zsh}"; __bpty_v=; '
    b'while IFS= read -r __bpty_l && [ "$__bpty_l" ]; do __bpty_v=$__bpty_v$__bpty_l; done; '
    b'stty echo 2>/dev/null; eval "$__bpty_v"\''
)


def asking_line(token: str, *, pasted: bool) -> bytes:
    """Return the line that has an unknown shell say which it is, then read lines with echo off and evaluate them.

    `pasted`: its line editor has said that it takes pastes in brackets. `answer_in` finds what it says.
    """
    line = _SAYS % (token.encode(), token.encode())
    return (_bracketed(line) if pasted else line) + b"\r"


def answer_in(data: bytes, token: str) -> str | None:
    """Return which shell has answered the line with this token: "" for one without hooks; None before that."""
    introducer = f"\x1b]7716;{token};".encode()
    name, bell, _ = data.partition(introducer)[2].partition(b"\x07")
    return name.decode("ascii", "replace") if bell else None


def fed_lines(text: bytes, shell: str = "bash") -> bytes:
    """Return what a shell reads that was sent `asking_line`, to run a text; nothing is run where that is empty.

    No line is longer than a terminal takes.
    """
    line = b"eval " + escaped(text) if text else b""
    if shell == "fish":
        line = b"".join(b"%c" % byte if byte in _FED_PLAIN else b"\\X%02x" % byte for byte in text)
    return b"".join(line[at : at + _FED_LINE] + b"\n" for at in range(0, len(line), _FED_LINE)) + b"\n"


def fed_text(content: bytes, tag: str) -> bytes:
    """Return what follows our key where the shell cannot read the file whose content this would be.

    A key that is not bound leaves it all on the command line, the tag in front.
    """
    text, nul, history = content.partition(b"\0")
    first, second = _fed_word(text), b"+" + _fed_word(history) if nul else b""
    return b"%s;%d;%s;%s!" % (tag.encode(), len(first) + len(second), first, second)


def _fed_word(text: bytes) -> bytes:
    return b"".join(b"%c" % byte if byte in _FED_WORD else b"\\x%02x" % byte for byte in text)


def typed_command(shell: str, command: str, cwd: str | None = None) -> bytes:
    """Return the line that runs a command where the shell reads no file of ours, as it is typed."""
    return _pasted(shell, command_line(shell, command, cwd))


def command_line(shell: str, command: str, cwd: str | None = None) -> bytes:
    """Return the line that runs a command, in directory `cwd` if one is given, in a shell that reads no file of ours.

    The status is that of the command, or of `cd` when that fails, and then nothing of the command runs.
    """
    if shell == "fish":
        # The line itself marks beginning and end of the output, as one that reads a file does.
        change = b"" if cwd is None else b"builtin cd -- " + _fish_escaped(encode(cd_target(cwd))) + b"; and "
        return b" __bpty_begun; " + change + b"eval " + _fish_escaped(encode(command)) + b"; __bpty_over"
    run = b" eval " + escaped(encode(command) + b"\n")
    if cwd is None:
        return run
    return b" \\builtin cd -- " + escaped(encode(cd_target(cwd))) + b" &&" + run


def read_here(text: bytes) -> bytes:
    """Return the line that has bash run a text as it would from a file, where it reads no file of ours.

    After an incomplete text in `eval` bash takes its next line wrongly; what it reads from a descriptor may be so. A
    byte 31 stands for the number of the descriptor, which our key chooses. More than fits into a pipe would be written
    to a file over there, so that is given to `eval`.
    """
    text = text.removesuffix(b"\n")
    if len(text) > _PIPE_BYTES:
        return b" eval " + escaped(text)
    return b" . /dev/fd/\x1f \x1f<<<" + escaped(text)  # this adds a line end


def _fish_escaped(data: bytes) -> bytes:
    """Return a word of fish in printable ASCII, without quotes: a paste would change those."""
    plain = b"".join(b"%c" % byte if byte in _FED_PLAIN else b"\\X%02x" % byte for byte in data)
    return plain or b"''"


def _pasted(shell: str, line: bytes) -> bytes:
    """zsh draws its line again for every key (35 s for 200 kB, measured) unless it is pasted; fish too."""
    return _bracketed(line) if shell in PASTED else line


def _bracketed(line: bytes) -> bytes:
    """Return a line as a paste; fish takes blanks away in front of one."""
    text = line.lstrip(b" ")
    return line[: len(line) - len(text)] + b"\x1b[200~" + text + b"\x1b[201~"

