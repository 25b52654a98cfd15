"""Values of arguments and options: conditions, variables, durations and moments as a person writes them."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only since click 8.2

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|min|[smhdw]))+", re.ASCII)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|min|[smhdw])", re.ASCII)
_EXAMPLES: Final = "such as 500ms, 30s, 5m, 2h or 1h30m"


class Conditions(ParamType):
    """JSON where it is an object or a list; any other text is the text to look for."""

    name = "text|json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        parsed = _json_or_none(value)
        return parsed if isinstance(parsed, (dict, list)) else value


class Variables(ParamType):
    """NAME=value, or a JSON object of several."""

    name = "name=value|json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        parsed = _json_or_none(value)
        if isinstance(parsed, dict):
            return parsed
        name, equals, content = value.partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is neither NAME=value nor a JSON object", param, ctx)
        return {name: content}


class Duration(ParamType):
    """A number in the unit of the parameter, or a duration with units of its own.

    Args:
        unit_ms: the unit of the parameter, in milliseconds.
    """

    name = "duration"

    def __init__(self, unit_ms: int) -> None:
        self._unit_ms = unit_ms

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if value.removeprefix("-").isascii() and value.removeprefix("-").isdecimal():
            return int(value)
        milliseconds = duration_ms(value)
        if milliseconds is None:
            self.fail(f"{value!r} is neither a number nor a duration {_EXAMPLES}", param, ctx)
        return -(-milliseconds // self._unit_ms)


class PointInTime(ParamType):
    """Milliseconds since 1970, how long ago (`2h`), or a date and time of the local time zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        if value.isascii() and value.isdecimal():
            return int(value)
        ago = duration_ms(value)
        if ago is not None:
            return max(0, time.time_ns() // 1_000_000 - ago)
        try:
            return max(0, round(datetime.fromisoformat(value).timestamp() * 1000))
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time: give how long ago ({_EXAMPLES}), a date such as 2026-11-22 or "
                "2026-11-22T14:30, or milliseconds since 1970",
                param,
                ctx,
            )


def duration_ms(text: str) -> int | None:
    """Return a duration such as `1h30m` in milliseconds; None when it is none."""
    if not _DURATION.fullmatch(text):
        return None
    return round(sum(float(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text)))


def _json_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
