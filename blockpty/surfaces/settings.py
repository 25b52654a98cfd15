"""Settings of a server: flags first, then `BLOCKPTY_*` variables, then `config.toml` in the home.

The file has one table, `[server]`, with the names of the fields below; a variable is the name in capitals
(`BLOCKPTY_PORT`), lists with commas.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from blockpty.errors import BadRequest
from blockpty.host.protocol import DURABILITIES, NICEST, PROCESS_LIMIT, SHELL_NICE

DEFAULT_PORT: Final = 7717
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?")
_WORDS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class Settings(Struct, frozen=True):
    """Settings of a server.

    Attributes:
        host: address to listen on; another one than loopback needs TLS files or `behind_proxy`.
        port: TCP port, 0 for any free one; None: the usual one (7717), or any free one when that is taken.
        allowed_hosts: further values of the Host header that are ours, as clients write them.
        allowed_origins: origins of web pages that may call, such as https://example.org.
        allowed_frames: origins of web pages that may show a terminal in a frame, at /embed/.
        tls_certificate, tls_key: PEM files.
        behind_proxy: a proxy on the way in does TLS; only with it may the server listen beyond loopback without.
        session_limit: how many shells may be open at once.
        process_limit: how many processes a conversation may have at once; 0: no bound.
        shell_nice: highest nice value of the sessions of shells at work, 0 to 19; it rises with their number.
        idle_timeout_seconds: close a conversation when nothing was printed, typed or waited for in it for so long, and
            no command runs; 0: never.
        keep_days: delete conversations whose shell has ended and that were not used for so many days; 0: never.
        keep_total_mb: delete the oldest conversations whose shell has ended while all take more MiB; 0: never.
        keep_conversation_mb: drop the oldest part of a record while its files take more MiB, 8 or more; 0: never.
        durability: what power loss may cost: process, interval, block or always.
        redact: redact secrets in all output; the files hold them either way.
        allow_uncovered: let an export be asked for with its secrets (`redact` false), by the scope admin.
        idle_exit_seconds: leave when no shell has been open and no request has come for so long; 0: never.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    allowed_frames: tuple[str, ...] = ()
    tls_certificate: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False
    session_limit: int = 15
    process_limit: int = PROCESS_LIMIT
    shell_nice: int = SHELL_NICE
    idle_timeout_seconds: int = 0
    keep_days: int = 0
    keep_total_mb: int = 0
    keep_conversation_mb: int = 0
    durability: str = "interval"
    redact: bool = True
    allow_uncovered: bool = False
    idle_exit_seconds: int = 0


def load(home: Path, flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings; raises BadRequest, which says where a value stands that cannot be used."""
    values: dict[str, Any] = {}
    for place, found in (("config.toml", _file(home)), ("the environment", _variables(environment)), ("flags", flags)):
        for name, value in found.items():
            if value is not None and value != ():
                values[name] = _checked(name, value, place)
    settings = Settings(**values)
    _check(settings)
    return settings


def _file(home: Path) -> Mapping[str, Any]:
    path = home / "config.toml"
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise BadRequest(f"{path} cannot be read: {problem}", hint="correct or remove it") from None
    table = content.get("server", {})
    if not isinstance(table, dict):
        raise BadRequest(f"{path}: server must be a table", hint="write [server], and the settings below it")
    return table


def _variables(environment: Mapping[str, str]) -> Mapping[str, Any]:
    names = {f"BLOCKPTY_{name.upper()}": name for name in Settings.__struct_fields__}
    return {names[name]: value for name, value in environment.items() if name in names and value}


def _checked(name: str, value: Any, place: str) -> Any:
    kinds = Settings.__annotations__
    if name not in kinds:
        raise BadRequest(f"{place}: no setting is called {name[:40]!r}", hint=f"one of {', '.join(kinds)}")
    try:
        return _converted(kinds[name], value)
    except (TypeError, ValueError):
        raise BadRequest(f"{place}: {name} cannot be {str(value)[:60]!r}") from None


def _converted(kind: str, value: Any) -> Any:
    if kind.startswith("tuple"):
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
            raise TypeError
        return tuple(part.strip() for part in parts if part.strip())
    if kind == "bool":
        if isinstance(value, bool):
            return value
        word = str(value).lower()
        if word not in _WORDS:
            raise ValueError
        return _WORDS[word]
    if kind.startswith("int"):
        if not isinstance(value, (int, str)) or isinstance(value, bool):
            raise TypeError
        number = int(value)
        if not 0 <= number <= 10**9:
            raise ValueError
        return number
    if not isinstance(value, str):
        raise TypeError
    return value


def _check(settings: Settings) -> None:
    if settings.port is not None and settings.port > 65535:
        raise BadRequest(f"port cannot be {settings.port}", hint="0 to 65535")
    if settings.shell_nice > NICEST:
        raise BadRequest(f"shell_nice cannot be {settings.shell_nice}", hint=f"0 to {NICEST}")
    if settings.durability not in DURABILITIES:
        raise BadRequest(f"durability cannot be {settings.durability[:60]!r}", hint=", ".join(DURABILITIES))
    for origin in settings.allowed_frames:
        if not _ORIGIN.fullmatch(origin):
            raise BadRequest(f"allowed_frames cannot hold {origin[:60]!r}", hint="an origin, as https://example.org")
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise BadRequest("tls_certificate and tls_key go together")
    if settings.host not in LOOPBACK and not settings.tls_certificate and not settings.behind_proxy:
        raise BadRequest(
            f"listening on {settings.host} would send tokens and terminals in clear",
            hint="give --tls-certificate and --tls-key, or --behind-proxy when a proxy does TLS",
        )
