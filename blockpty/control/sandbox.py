"""Sandbox profiles: what a sandboxed shell may write, read and reach, as data.

A profile is a table `[sandbox.NAME]` of `policy.toml`; `default` is there without one. Rules of this file: it reads no
file and asks no system. The runtime resolves the paths, the host sets the boundary up before the shell runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from blockpty.errors import BadRequest

METHODS: Final = ("auto", "bwrap", "landlock")

HIDDEN: Final[tuple[str, ...]] = tuple(  # one text: easier to check than 50 quoted names
    """
    ~/.ssh ~/.gnupg ~/.aws ~/.azure ~/.kube ~/.docker ~/.netrc ~/.pgpass ~/.my.cnf ~/.git-credentials ~/.npmrc
    ~/.yarnrc.yml ~/.pypirc ~/.vault-token ~/.terraform.d ~/.terraformrc ~/.password-store ~/.cargo/credentials
    ~/.cargo/credentials.toml ~/.gem/credentials ~/.m2/settings.xml ~/.gradle/gradle.properties ~/.boto ~/.s3cfg
    ~/.config/gcloud ~/.config/gh ~/.config/glab-cli ~/.config/hub ~/.config/git/credentials ~/.config/op
    ~/.config/doctl ~/.config/rclone ~/.config/containers ~/.config/sops ~/.config/age ~/.config/github-copilot
    ~/.config/google-chrome ~/.config/chromium ~/.config/BraveSoftware ~/.mozilla ~/.thunderbird ~/.claude ~/.codex
    ~/.local/share/keyrings ~/.local/share/kwalletd ~/.bash_history ~/.zsh_history ~/.python_history
    ~/.local/share/fish/fish_history ~/.psql_history ~/.mysql_history ~/.Xauthority ~/.ICEauthority
    /etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d /var/lib/docker /var/spool/cron
    """.split()  # noqa: SIM905
)
"""What no sandboxed shell can read, beside the blockpty home, /run and /tmp."""

SOCKET_VARIABLES: Final = frozenset(
    {
        "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY",
        "WAYLAND_DISPLAY", "XAUTHORITY", "KRB5CCNAME", "TMPDIR",
    }
)  # fmt: skip
"""Variables that name sockets and directories outside of the sandbox; the shell does not get them."""


class SandboxProfile(Struct, frozen=True):
    """One profile.

    Attributes:
        method: `bwrap` (namespaces), `landlock`, or `auto`: bwrap where it works, else Landlock.
        network: whether the network can be reached.
        cwd: whether the directory in which the shell starts can be written to.
        read_write, read_only: further paths that can be written to, and that cannot although one around them can.
        hide: paths that cannot be read, beside `HIDDEN`.
        env: variables that are set in the shell.
        Paths are absolute or begin with `~/`.
    """

    name: str
    method: str = "auto"
    network: bool = False
    cwd: str = "read_write"
    read_write: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


DEFAULT: Final = SandboxProfile("default")
_KEYS: Final = tuple(name for name in SandboxProfile.__struct_fields__ if name != "name")
_PATHS: Final = ("read_write", "read_only", "hide")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"method": METHODS, "cwd": ("read_write", "read_only")}


def parse_profiles(tables: Any) -> dict[str, SandboxProfile]:
    """Return the profiles that `sandbox` of a `policy.toml` holds, and the default one, by name; raises BadRequest."""
    if not isinstance(tables, Mapping):
        raise BadRequest("policy.toml: sandbox is not a table", hint="write [sandbox.NAME]")
    return {DEFAULT.name: DEFAULT, **{name: _profile(name, table) for name, table in tables.items()}}


def find_profile(profiles: Mapping[str, SandboxProfile], name: str) -> SandboxProfile:
    """Return a profile by name; raises BadRequest."""
    try:
        return profiles[name]
    except KeyError:
        raise BadRequest(
            f"no sandbox profile is called {name[:40]!r}",
            hint=f"one of {', '.join(profiles)}; [sandbox.NAME] in policy.toml adds one",
        ) from None


def _profile(name: str, table: Any) -> SandboxProfile:
    where = f"policy.toml: sandbox.{name}"
    if not isinstance(table, Mapping):
        raise BadRequest(f"{where} is not a table", hint=f"write [sandbox.{name}]")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, 1)
            hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(_KEYS)}"
            raise BadRequest(f"{where}.{key} is not known", hint=hint)
        values[key] = _value(f"{where}.{key}", key, value)
    return SandboxProfile(name, **values)


def _value(where: str, key: str, value: Any) -> Any:
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise BadRequest(f"{where} is {str(value)[:40]!r}", hint=f"one of {', '.join(_CHOICES[key])}")
        return value
    if key == "network":
        if not isinstance(value, bool):
            raise BadRequest(f"{where} is neither true nor false", hint="write true or false, without quotes")
        return value
    if key == "env":
        if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
            raise BadRequest(f"{where} is not a table of strings", hint=f'write {key} = {{ NAME = "value" }}')
        return dict(value)
    assert key in _PATHS
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadRequest(f"{where} is not a list of paths", hint=f'write {key} = ["/a", "~/b"]')
    for path in value:
        if "\0" in path or not (path.startswith(("/", "~/")) or path == "~") or ".." in path.split("/"):
            raise BadRequest(f"{where}: {path[:60]!r} cannot be used", hint="an absolute path, or one below ~/")
    return tuple(value)


class Mounts(Struct, frozen=True):
    """Resolved paths of a boundary, in the order in which they hold: a later one is inside an earlier one, or wins.

    Attributes:
        entries: (`rw`, `ro`, `hide` or `own`, path); `own`: an empty directory of the sandbox's own.
    """

    entries: tuple[tuple[str, str], ...]

    def paths(self, kind: str) -> list[str]:
        """Return the paths of one kind."""
        return [path for one, path in self.entries if one == kind]


def arrange(
    read_write: list[str],
    read_only: list[str],
    hidden: list[str],
    own: list[str],
    *,
    home: str,
    directory: str,
    user_homes: list[str],
) -> Mounts:
    """Order absolute, resolved paths so that the deeper one decides; what is hidden wins over what is as deep.

    Args:
        home: the blockpty home, which is always hidden; directory: that of the conversation in it, which can be read.
        user_homes: the home directories of the user.

    Raises:
        BadRequest: a path to be written to holds the home directory or the blockpty home, or lies in the latter or in
            what is hidden.
    """
    for path in read_write:
        for inside, what in (*((one, "your home directory") for one in user_homes), (home, "the blockpty home")):
            if is_below(inside, path):
                raise BadRequest(
                    f"a sandbox cannot write to {path}, which holds {what}",
                    hint="its startup files would run outside; start in a directory of the project (cwd)",
                )
        for around in (home, *hidden):
            if is_below(path, around):
                raise BadRequest(
                    f"a sandbox cannot write to {path}, because {around} is hidden", hint="choose another directory"
                )
    ranked = [
        *(("rw", path, 0) for path in read_write),
        *(("ro", path, 1) for path in read_only),
        *(("hide", path, 2) for path in hidden),
        *(("own", path, 3) for path in own),
    ]
    ranked.sort(key=lambda one: (one[1].rstrip("/").count("/"), one[2]))
    seen = {path: kind for kind, path, _ in ranked}
    order = dict.fromkeys(path for _, path, _ in ranked)
    return Mounts((*((seen[path], path) for path in order), ("hide", home), ("ro", directory)))


def is_below(path: str, around: str) -> bool:
    """Whether a path is another one or lies in it; both absolute and resolved."""
    return path == around or path.startswith(around.rstrip("/") + "/")
