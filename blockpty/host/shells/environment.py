"""Environment of a new shell: an allow-list, and what no caller may add to it."""

from __future__ import annotations

from collections.abc import Mapping

from blockpty.errors import BadRequest

KEPT = frozenset(  # one text: a list of 60 quoted names is not easier to check
    """
    HOME PATH USER LOGNAME SHELL HOSTNAME MAIL LANG LANGUAGE TZ TZDIR TMPDIR EDITOR VISUAL PAGER BROWSER LESS
    LESSCHARSET VIRTUAL_ENV MANPATH INFOPATH LS_COLORS TERMINFO TERMINFO_DIRS SSH_AUTH_SOCK DISPLAY WAYLAND_DISPLAY
    XAUTHORITY TMUX_TMPDIR
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

REFUSED_PREFIXES = ("__bpty_", "BASH_FUNC___bpty_")

NO_PAGERS = {
    **dict.fromkeys(
        "PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER GH_PAGER BAT_PAGER PSQL_PAGER AWS_PAGER DELTA_PAGER".split(),  # noqa: SIM905
        "cat",
    ),
    # Where less is called by its name: what fits on the screen is printed, and the screen stays as it is.
    "LESS": "-FRX",
}
"""Variables with which programs print in place of waiting for keys in a pager."""

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def kept_of(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return what the allow-list keeps of an environment."""
    return {
        name: value
        for name, value in inherited.items()
        if (name in KEPT or name.startswith(KEPT_PREFIXES)) and _is_entry(name, value)
    }


def clean_environment(inherited: Mapping[str, str], additions: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a shell: what `KEPT` names, TERM and COLORTERM of our terminal, then `additions`.

    An allow-list, so that LD_*, DYLD_*, BASH_ENV, ENV, PYTHON*, NODE_OPTIONS, BLOCKPTY_* and credentials of the
    server never arrive by accident. An explicit addition may carry any of these names: who writes it, means it.

    Raises:
        BadRequest: an addition has a malformed name or value, or a name of `REFUSED`.
    """
    env = kept_of(inherited)
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


def _is_entry(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and "\0" not in value
