"""What a shell is started with: its arguments, its environment, its private startup files; and how a command is staged.

Lives here: which shells are known, the allow-list of the environment, the header put in front of shellrc/, the text
of a staged command and of the line that submits it.
Does not know: PTYs, processes, who writes the files (they are returned as bytes), what the marks mean.

The nonce goes into a startup file only. It is never in argv or in the environment, because /proc/PID/environ keeps
what a shell has long unset (../../shellrc/README.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blockpty.errors import BadRequest, SpawnFailed

KEPT = frozenset(  # one text: a list of 60 quoted names is not easier to check
    """
    HOME PATH USER LOGNAME SHELL HOSTNAME MAIL LANG LANGUAGE TZ TZDIR TMPDIR EDITOR VISUAL PAGER BROWSER LESS
    LESSCHARSET MANPATH INFOPATH LS_COLORS TERMINFO TERMINFO_DIRS SSH_AUTH_SOCK DISPLAY WAYLAND_DISPLAY XAUTHORITY
    DBUS_SESSION_BUS_ADDRESS KRB5CCNAME SSL_CERT_FILE SSL_CERT_DIR NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE ZDOTDIR
    http_proxy https_proxy ftp_proxy no_proxy all_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY NO_PROXY ALL_PROXY
    """.split()  # noqa: SIM905
)
"""Names taken over from the inherited environment; with `KEPT_PREFIXES` the whole list."""

KEPT_PREFIXES = ("LC_", "XDG_")

REFUSED = frozenset("PROMPT_COMMAND PS0 PS1 PS2 PROMPT PROMPT_EOL_MARK POSIXLY_CORRECT SHELLOPTS BASHOPTS".split())  # noqa: SIM905
"""Names that no caller may add: with any of them in the environment the marks would be lost or printed twice.

POSIXLY_CORRECT makes bash ignore --rcfile; SHELLOPTS can trace the startup file, nonce and all.
"""

REFUSED_PREFIXES = ("__bp_", "BASH_FUNC___bp_")

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASH = re.compile(r"-?r?bash(-?[0-9][0-9.]*)?")
_ZSH = re.compile(r"-?r?zsh(-?[0-9][0-9.]*)?")
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}")
_PLAIN = re.compile(r"[ -&(-\[\]-~]*")


@dataclass(frozen=True)
class ShellPlan:
    """Everything that starts one shell instance.

    Attributes:
        name: "bash" or "zsh" when our hooks go in, else the basename of the program.
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


def plan(
    shell: str | None,
    *,
    directory: str,
    instance: int,
    nonce: str,
    login: bool,
    inherited: Mapping[str, str],
    additions: Mapping[str, str] | None = None,
) -> ShellPlan:
    """Say how to start `shell` in the conversation whose directory is `directory`.

    Args:
        shell: a name looked up on PATH, an absolute path, or None: $SHELL when it is bash or zsh, else bash, else zsh.
        directory: absolute path of the conversation.
        instance: 1 for the first shell of the conversation, and so on; names the private directory `rc/<instance>`.
        nonce: 22 characters of base64url.
        login: read the profile files instead of (bash) or in addition to (zsh) the interactive ones.
        inherited: the environment of the caller; filtered by `clean_environment`.
        additions: names and values the caller asks for explicitly.

    Raises:
        SpawnFailed: the shell does not exist or cannot be executed.
        BadRequest: a parameter or an addition is not acceptable.
    """
    if not os.path.isabs(directory) or "\0" in directory:
        raise BadRequest(f"the conversation directory {directory!r} is not an absolute path")
    if instance < 1:
        raise BadRequest(f"the shell instance {instance} is below 1")
    if not _NONCE.fullmatch(nonce):
        raise BadRequest("the nonce is not 16 to 64 characters of base64url")
    env = clean_environment(inherited, additions)
    path = _find_shell(shell, env)
    base = os.path.basename(path)
    folder = f"rc/{instance}"
    if _BASH.fullmatch(base):
        return _plan_bash(path, env, directory, folder, nonce, login)
    if _ZSH.fullmatch(base):
        return _plan_zsh(path, env, directory, folder, nonce, login)
    argv = (path, "-l", "-i") if login else (path, "-i")
    return ShellPlan(name=base, argv=argv, env=env, files=(), secret_files=())


def clean_environment(inherited: Mapping[str, str], additions: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a shell: what `KEPT` names, TERM and COLORTERM of our terminal, then `additions`.

    An allow-list, so that LD_*, DYLD_*, BASH_ENV, ENV, PYTHON*, NODE_OPTIONS, BLOCKPTY_* and credentials of the
    server never arrive by accident. An explicit addition may carry any of these names: who writes it, means it.

    Raises:
        BadRequest: an addition has a malformed name or value, or a name of `REFUSED`.
    """
    env = {
        name: value
        for name, value in inherited.items()
        if (name in KEPT or name.startswith(KEPT_PREFIXES)) and _is_entry(name, value)
    }
    env.setdefault("PATH", _DEFAULT_PATH)
    env["TERM"] = "xterm-256color"
    env["COLORTERM"] = "truecolor"
    for name, value in (additions or {}).items():
        if not _is_entry(name, value):
            raise BadRequest(
                f"the environment entry {name!r} is malformed", hint="no NUL; no '=' and no emptiness in a name"
            )
        if name in REFUSED or name.startswith(REFUSED_PREFIXES):
            raise BadRequest(
                f"the environment variable {name} would break the shell integration",
                hint="set it in the user's startup file or by a command instead",
                details={"name": name},
            )
        env[name] = value
    return env


def submit_line(path: str) -> str:
    """Return the line that runs the staged file at `path`, without the carriage return.

    Printable ASCII without quote, backslash and exclamation mark goes into '...'; anything else into $'...' with hex
    escapes, which bash and zsh read alike, so that neither readline's meta conversion nor history expansion touches it.

    Raises:
        BadRequest: the path is not absolute (`.` would search PATH) or holds a NUL.
    """
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"the staged file {path!r} is not an absolute path")
    return f" . {_quote(path)}"


def stage(command: str, cwd: str | None = None) -> bytes:
    """Return the content of the file that runs `command`, in directory `cwd` if one is given.

    The text is the user's own, plus a newline where the last line has none: so a here-document, a comment or a
    backslash at the end means what it means in any script. The change of directory shares the first line, so that line
    numbers stay true; if it fails, nothing of the command runs and the status is that of `cd`.

    Raises:
        BadRequest: a NUL in the command or the directory, or an empty directory.
    """
    if "\0" in command:
        raise BadRequest("the command holds a NUL character")
    text = _encode(command)
    if not text.endswith(b"\n"):
        text += b"\n"
    if cwd is None:
        return text
    if not cwd or "\0" in cwd:
        raise BadRequest("the working directory is empty or holds a NUL character")
    # A relative name would be looked up in CDPATH, and `-` means the previous directory.
    target = cwd if cwd.startswith("/") else f"./{cwd}"
    return b"\\builtin cd -- " + _quote_bytes(target) + b" || \\builtin return; " + text


def shellrc_directory() -> Path:
    """Return the directory of the shell files: inside the installed package, else beside it in a checkout.

    Raises:
        SpawnFailed: there is neither.
    """
    package = Path(__file__).resolve().parent.parent
    for candidate in (package / "_shellrc", package.parent / "shellrc"):
        if (candidate / "bash" / "blockpty.bash").is_file():
            return candidate
    raise SpawnFailed("the shell integration files are missing", hint="reinstall blockpty")


def _plan_bash(path: str, env: dict[str, str], directory: str, folder: str, nonce: str, login: bool) -> ShellPlan:
    name = f"{folder}/bashrc"
    header = _header(b'-v "${!__bp_@}"', nonce, directory) + b"__bp_login=" + (b"1" if login else b"0") + b"\n"
    body = (shellrc_directory() / "bash" / "blockpty.bash").read_bytes()
    # Long options must precede short ones.
    argv = (path, "--rcfile", os.path.join(directory, name), "-i")
    return ShellPlan("bash", argv, env, ((name, header + body),), (name, folder))


def _plan_zsh(path: str, env: dict[str, str], directory: str, folder: str, nonce: str, login: bool) -> ShellPlan:
    name = f"{folder}/.zshenv"
    header = _header(b"-m '__bp_*'", nonce, directory)
    if "ZDOTDIR" in env:
        header += b"__bp_zdotdir=" + _quote_bytes(env["ZDOTDIR"]) + b"\n"
    source = shellrc_directory() / "zsh"
    content = header + (source / "blockpty.zsh").read_bytes() + (source / "zshenv").read_bytes()
    argv = (path, "-l", "-i") if login else (path, "-i")
    env = {**env, "ZDOTDIR": os.path.join(directory, folder)}
    return ShellPlan("zsh", argv, env, ((name, content),), (name, folder))


def _header(forget: bytes, nonce: str, directory: str) -> bytes:
    """Forget inherited variables of our names, with their export attribute, then set what only this instance knows."""
    return b"\\builtin unset " + forget + f"\n__bp_n='{nonce}'\n__bp_dir=".encode() + _quote_bytes(directory) + b"\n"


def _find_shell(shell: str | None, env: Mapping[str, str]) -> str:
    if shell is None:
        own = env.get("SHELL", "")
        if is_supported(own) and os.path.isabs(own) and _is_program(own):
            return own
        for name in ("bash", "zsh"):
            found = _on_path(name, env["PATH"])
            if found is not None:
                return found
        raise SpawnFailed("neither bash nor zsh was found on PATH", hint="name a shell by its absolute path")
    if os.path.isabs(shell):
        if not _is_program(shell):
            raise SpawnFailed(
                f"the shell {shell!r} does not exist or cannot be executed",
                hint="give the absolute path of an executable shell, or a name found on PATH",
                details={"shell": shell},
            )
        return shell
    found = None if "/" in shell or not shell else _on_path(shell, env["PATH"])
    if found is None:
        raise SpawnFailed(
            f"no shell {shell!r} was found on PATH",
            hint="install it, or give its absolute path; bash and zsh have full support",
            details={"shell": shell, "path": env["PATH"]},
        )
    return found


def is_supported(shell: str) -> bool:
    """Tell whether our hooks go into this shell, by its basename."""
    base = os.path.basename(shell)
    return bool(_BASH.fullmatch(base) or _ZSH.fullmatch(base))


def _on_path(name: str, path: str) -> str | None:
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, name)
        if os.path.isabs(candidate) and _is_program(candidate):
            return candidate
    return None


def _is_program(path: str) -> bool:
    return "\0" not in path and os.path.isfile(path) and os.access(path, os.X_OK)


def _is_entry(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and "\0" not in value


def _encode(text: str) -> bytes:
    """UTF-8 whatever the locale of this process; undecodable bytes of file names come back as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadRequest("the text holds a lone surrogate", details={"position": error.start}) from None


def _quote(text: str) -> str:
    if _PLAIN.fullmatch(text) and "!" not in text:
        return f"'{text}'"
    return (
        "$'"
        + "".join(
            chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\!" else f"\\x{byte:02x}" for byte in _encode(text)
        )
        + "'"
    )


def _quote_bytes(text: str) -> bytes:
    return b"'" + _encode(text).replace(b"'", b"'\\''") + b"'"
