"""A call as a server gets it, and what its answer says: parameters, method, target, content, errors.

Both clients use this file, the asynchronous one and that of plain calls of the command line; it does no input or
output, and knows only the manifest.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from blockpty.errors import BlockptyError, InternalError, error_from_code
from blockpty.ops.manifest import ManifestEntry
from blockpty.surfaces.wire import Unanswered

# Of an input that waits; without `match` the others mean nothing.
_OF_A_WAIT: Final = ("match", "stop", "timeout_ms", "view", "max_bytes")


def wire_params(name: str, params: Mapping[str, Any], *, here: bool) -> dict[str, Any]:
    """Return the parameters of an operation as JSON has them.

    `here`: the server is one of this machine. Then paths are those of the caller: `cwd` of open is by default its own
    directory, and `env_from` its own environment.
    """
    found = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in params.items()}
    if isinstance(found.get("data"), bytes) and found.get("data_b64") is None:
        found |= {"data": None, "data_b64": base64.b64encode(found["data"]).decode("ascii")}
    for field in ("env", "env_from"):
        if isinstance(found.get(field), Mapping):
            found[field] = dict(found[field])
    # A server of an older version refuses what it does not know.
    if found.get("secret") is False:
        del found["secret"]
    if found.get("match", "") is None:
        found = {key: value for key, value in found.items() if key not in _OF_A_WAIT}
    if here and name == "open" and found.get("cwd") is None and _is_here(found.get("source")):
        found["cwd"] = os.getcwd()
    if here and name == "open" and found.get("env_from") is None:
        # Not the server's, which may be of hours ago and of another terminal.
        from blockpty.host.shells import kept_of

        found["env_from"] = kept_of(os.environ)
    if here and name == "import_recording":
        paths = {key: found.get(key) for key in ("path", "timing")}
        found |= {key: os.path.abspath(path) for key, path in paths.items() if isinstance(path, str)}
    return found


def _is_here(source: object) -> bool:
    """Whether what a conversation shows has a directory of this machine."""
    return source is None or (isinstance(source, str) and source.partition(":")[0] in ("shell", "exec"))


def request_of(operation: ManifestEntry, params: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any] | None]:
    """Return method, target and JSON body of the request for these parameters."""
    method, path = operation.route
    rest = dict(params)
    for name in operation.positional:
        if f"{{{name}}}" in path:
            # Refused by the server if it is no name; quoted so that it stays one part of the path.
            path = path.replace(f"{{{name}}}", _part(rest.pop(name, "")))
    if method != "GET":
        return method, path, rest
    query = {name: _text(value) for name, value in rest.items() if value is not None}
    # Half a character is for the server to refuse, as the engine does.
    return method, f"{path}?{urlencode(query, errors='surrogatepass')}" if query else path, None


def _part(value: Any) -> str:
    """Return a value as one part of a path, whatever stands in it."""
    part = quote(str(value), safe="", errors="surrogatepass") or "-"
    # What parts of only dots mean, a URL library would do before it asks.
    return part.replace(".", "%2E") if part in (".", "..") else part


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def content_of(status: int, body: bytes) -> dict[str, Any]:
    """Return the content of an answer; raises BlockptyError where it says so, and Unanswered for half of one."""
    try:
        content: Any = json.loads(body)
    except ValueError:
        if status == 200:
            # Begun as a long answer, and never ended.
            raise Unanswered("half an answer", sent=True) from None
        content = None
    if not isinstance(content, dict):
        raise InternalError(f"the answer (status {status}) is not one of a blockpty server")
    if content.get("ok") is not True:
        raise error_of(content)
    return content


def error_of(content: Mapping[str, Any]) -> BlockptyError:
    """Return the error that an answer says."""
    error = content.get("error", {})
    return error_from_code(
        str(error.get("code")), str(error.get("message")), str(error.get("hint", "")), error.get("details")
    )
