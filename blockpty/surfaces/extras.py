"""Optional dependencies of the surfaces, and the error where one of them is not installed.

The names are those of pyproject.toml; a test compares. The extras of the rooms below say so themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from blockpty.errors import BadRequest

_SERVER: Final = ("httpx2", "prometheus_client", "starlette", "uvicorn", "websockets")
EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "server": _SERVER, "mcp": (*_SERVER, "mcp"), "view": (*_SERVER, "textual"),
}  # fmt: skip
"""The modules that each extra brings."""


def require(extra: str, what: str, *modules: str) -> None:
    """Raise BadRequest, with what to install, where a module is missing.

    Args:
        extra: one of `EXTRAS`.
        what: what needs it, as the message begins.
        modules: those that are needed, if not all of the extra.
    """
    missing = [module for module in modules or EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise BadRequest(
            f"{what} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            hint=f"pip install 'blockpty[{extra}]'",
            details={"extra": extra, "missing": missing},
        )
