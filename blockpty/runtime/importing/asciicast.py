"""Reader of asciicast: version 1 (one JSON object), 2 and 3 (a line of JSON for each event).

Rules of this file: memory does not grow with a recording of version 2 or 3. A marker begins a block. What was typed
(`i`) is left out: what of it is a password is not known. Codes that are not known are passed over, as the formats want.
v1: https://docs.asciinema.org/manual/asciicast/v1/, v2: .../v2/, v3: .../v3/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import orjson

from blockpty.api.progress import Progress
from blockpty.runtime.importing.parts import (
    MAX_LINE,
    Border,
    Cut,
    Header,
    Over,
    Part,
    Shown,
    Sized,
    bad,
    checked_size,
    seconds_of,
    status_of,
    text_of,
)

# Version 1 is one object, which is in memory as a whole.
MAX_V1: Final = 256 * 1024 * 1024
_NOTHING: Final = object()


def asciicast(path: Path) -> Iterator[Part]:
    """Yield the parts of an asciicast, the header first; raises BadRequest, with the line, for what is none."""
    with path.open("rb") as file:
        first = file.readline(MAX_LINE + 1)
        header = _json(first)
        if isinstance(header, dict) and header.get("version") in (2, 3):
            yield from _lines(path.name, header, file)
            return
        if isinstance(header, dict) and "version" in header and header["version"] != 1:
            version = str(header["version"])[:20]
            raise bad(path.name, f"asciicast version {version!r} is not known")
        file.seek(0)
        yield from _version_1(path.name, file)


def _json(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        # This one takes lone surrogates, which recorders write for half a character.
        return json.loads(line)
    except (ValueError, RecursionError):
        return _NOTHING


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _lines(name: str, about: dict[str, Any], file: IO[bytes]) -> Iterator[Part]:
    relative = about["version"] == 3
    term = about.get("term") if relative else None
    size = (term.get("cols"), term.get("rows")) if isinstance(term, dict) else (about.get("width"), about.get("height"))
    yield _header(f"{name}, line 1", about, *size)
    passed, at_ms, number = 0.0, 0, 1
    status, over = None, False
    progress = Progress.of_caller()
    while line := file.readline(MAX_LINE + 1):
        number += 1
        progress.add(len(line))
        where = f"{name}, line {number}"
        if len(line) > MAX_LINE:
            raise bad(where, f"longer than {MAX_LINE} bytes")
        if not line.strip() or line.startswith(b"#"):
            continue
        event = _json(line)
        if event is _NOTHING and not line.endswith(b"\n"):
            yield Cut(at_ms)
            return
        if not isinstance(event, list) or len(event) != 3 or not isinstance(event[1], str):
            raise bad(where, "no event: [time, code, data] is expected")
        passed = passed + seconds_of(where, event[0]) if relative else max(passed, seconds_of(where, event[0]))
        at_ms = round(seconds_of(where, passed) * 1000)
        code, data = event[1], event[2]
        if code in ("o", "r", "m", "x") and not isinstance(data, str):
            raise bad(where, f"the data of an event {code!r} must be a text")
        if code == "o":
            yield Shown(at_ms, _bytes(data))
        elif code == "m":
            yield Border(at_ms, _bytes(data).decode())
        elif code == "r":
            cols, _, rows = data.partition("x")
            given = (int(part) if _is_number(part) else part for part in (cols, rows))
            yield Sized(at_ms, *checked_size(where, *given))
        elif code == "x":
            status, over = status_of(data), True
    if over:
        yield Over(at_ms, status)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _header(where: str, about: dict[str, Any], cols: Any, rows: Any) -> Header:
    size = checked_size(where, cols, rows)
    began = about.get("timestamp")
    env = about.get("env")
    shell = env.get("SHELL") if isinstance(env, dict) else None
    return Header(
        f"asciicast-{about['version']}",
        *size,
        ts=None if began is None else round(seconds_of(where, began) * 1000),
        title=text_of(about.get("title")),
        command=text_of(about.get("command")),
        shell=text_of(shell),
    )


def _version_1(name: str, file: IO[bytes]) -> Iterator[Part]:
    content = file.read(MAX_V1 + 1)
    if len(content) > MAX_V1:
        raise bad(name, f"not an asciicast 2 or 3, and over the {MAX_V1} bytes that one of version 1 may have")
    about = _json(content)
    if not isinstance(about, dict) or about.get("version") != 1 or not isinstance(about.get("stdout"), list):
        raise bad(
            name,
            "not an asciicast: its first line is not a header of version 2 or 3, and the whole is not one of version 1",
        )
    yield _header(name, about, about.get("width"), about.get("height"))
    passed = 0.0
    for index, event in enumerate(about["stdout"]):
        where = f"{name}, stdout[{index}]"
        if not isinstance(event, list) or len(event) != 2 or not isinstance(event[1], str):
            raise bad(where, "no event: [delay, data] is expected")
        passed = seconds_of(where, passed + seconds_of(where, event[0]))
        yield Shown(round(passed * 1000), _bytes(event[1]))
