"""The page: static files of blockpty/_page, which the build makes, at paths that need no token.

    /  /c/...  /search    the page itself, the same for every place
    /embed/...            one terminal to look at, for a frame in a page of an allowed origin
    /assets/...           its scripts, styles and fonts; their names change with their content

The server may be below a path that a proxy takes away again, so that addresses in the page are relative: they lead up
from the place that was asked for to ours.

Rules of this file: nothing of a home or a request is put into an answer but how deep the place is, and only files that
were there when the server started are served.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

BUILT: Final = Path(__file__).parents[2] / "_page"
ASSETS: Final = "/assets/"
EMBED: Final = "/embed/"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:",
        "font-src 'self'", "worker-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'",
        "require-trusted-types-for 'script'", "trusted-types 'none'",
    )
)  # fmt: skip
_OFF: Final = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer", "microphone", "midi",
    "payment", "publickey-credentials-get", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": f"{_POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": ", ".join([*(f"{name}=()" for name in _OFF), "clipboard-write=(self)"]),
}
_MISSING: Final = (
    "This blockpty was installed without its page. Reinstall it with a network connection and without "
    "BLOCKPTY_NO_PAGE; the command line works as it is.\n"
)
_DEEPEST: Final = 4
_WORTH_COMPRESSING: Final = 1400
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2", ".svg": "image/svg+xml"}


def is_page(path: str) -> bool:
    """Whether a path is one of the page, which needs no token."""
    return path in ("/", "/search") or path.startswith(("/c/", ASSETS, EMBED))


def page_address(url: str, code: str) -> str:
    """Return the address that signs a browser in, once: the code is in the fragment, which no request carries."""
    return f"{url}/#code={code}"


class _PageFile(Struct, frozen=True, dict=True):
    content: bytes
    kind: str

    @cached_property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def compressed(self) -> bytes | None:
        """The content with gzip, made when it is first asked for; None where that saves nothing."""
        if len(self.content) < _WORTH_COMPRESSING or not self.kind.startswith(("text/", "image/svg")):
            return None
        return gzip.compress(self.content, mtime=0)


class BuiltPage:
    """The built files, read once.

    Args:
        directory: where they are; the page that stands there says so when it is missing.
        frames: origins of pages that may frame a terminal; by default none.
    """

    def __init__(self, directory: Path = BUILT, *, frames: Iterable[str] = ()) -> None:
        ancestors = " ".join(frames) or "'none'"
        self._framed = {**_HEADERS, "Content-Security-Policy": f"{_POLICY}; frame-ancestors {ancestors}"}
        files = {
            f"/{path.relative_to(directory).as_posix()}": _read(path)
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }
        self._assets = {name: file for name, file in files.items() if name.startswith(ASSETS)}
        self._pages = {
            (name, depth): _PageFile(file.content.replace(b'"./', b'"' + (b"../" * depth or b"./")), file.kind)
            for name, file in files.items()
            if name.endswith(".html")
            for depth in range(_DEEPEST + 1)
        }

    def routes(self) -> list[Route]:
        """Return the routes; HEAD is answered where GET is."""
        paths = ("/", "/search", "/c/{place:path}", EMBED + "{place:path}", ASSETS + "{name:path}")
        return [Route(path, self._answer, methods=["GET"]) for path in paths]

    async def _answer(self, request: Request) -> Response:
        path = request.scope["path"]
        is_asset = path.startswith(ASSETS)
        is_embedded = path.startswith(EMBED)
        depth = request.scope["raw_path"].count(b"/") - 1
        place = "/embed.html" if is_embedded else "/index.html"
        found = self._assets.get(path) if is_asset else self._pages.get((place, depth))
        if found is None:
            if is_asset or depth > _DEEPEST:
                return PlainTextResponse("There is no such file.\n", 404, dict(_HEADERS))
            return PlainTextResponse(_MISSING, 503, dict(_HEADERS))
        # An asset's name has a hash of its content; the page itself is asked for again each time.
        caching = "public, max-age=31536000, immutable" if is_asset else "no-cache"
        headers = {
            **(self._framed if is_embedded else _HEADERS),
            "ETag": f"W/{found.tag}", "Cache-Control": caching, "Vary": "Accept-Encoding",
        }  # fmt: skip
        given = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
        if found.tag in given:
            return Response(status_code=304, headers=headers)
        content = found.content
        if _takes_gzip(request) and found.compressed is not None:
            content = found.compressed
            headers["Content-Encoding"] = "gzip"
        return Response(content, headers=headers, media_type=found.kind)


def _takes_gzip(request: Request) -> bool:
    for one in request.headers.get("accept-encoding", "").split(","):
        name, _, weight = one.partition(";")
        if name.strip().lower() == "gzip":
            return not re.fullmatch(r"q=0(\.0*)?", weight.strip())
    return False


def _read(path: Path) -> _PageFile:
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _PageFile(path.read_bytes(), kind)
