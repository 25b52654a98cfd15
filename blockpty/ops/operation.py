"""Operations as data: one line of the table, and how plain parameters become its request.

This file knows no operation by name and no surface.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from pydantic import ValidationError

from blockpty.errors import BadRequest
from blockpty.model.events import Event
from blockpty.model.results import Result
from blockpty.ops.manifest import Effect as Effect
from blockpty.ops.manifest import Shape as Shape
from blockpty.ops.requests import Request

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Operation(Struct, frozen=True):
    """One line of the table.

    Attributes:
        name: as in CLI (with dashes), HTTP, MCP and Python.
        request: model of the parameters; its docstring describes the operation.
        result: class of the result, of one event for a stream.
        effect, shape: of what kind it is.
        route: HTTP method and path; names in braces are parameters.
        positional: parameters that need no name, the required ones first.
        result_attribute: where the result stands in what the method returns; None: that is the result.
    """

    name: str
    request: type[Request]
    result: type[Result | Event]
    effect: Effect
    shape: Shape
    route: tuple[str, str]
    positional: tuple[str, ...]
    result_attribute: str | None = None

    @property
    def doc(self) -> str:
        """The description, first line one sentence."""
        return cleandoc(self.request.__doc__ or "")

    def parse(self, params: Mapping[str, Any]) -> Request:
        """Return the request of these parameters; raises BadRequest, which names the parameter and never its value."""
        try:
            return self.request.model_validate(dict(params))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise self._bad_request(found) from None

    def parse_text(self, params: Mapping[str, str]) -> Request:
        """Return the request of parameters that are all text, as in the query of a URL; raises as `parse` does."""
        try:
            found_request = self.request.model_validate_strings(dict(params))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            raise self._bad_request(found) from None
        for name, text in params.items():
            value = getattr(found_request, name)
            if isinstance(value, int) and not isinstance(value, bool) and not _INTEGER.fullmatch(text):
                # pydantic takes 80.0, 8_0 and blanks as well.
                raise self._bad_request([{"type": "int_parsing", "loc": (name,), "msg": _NO_INTEGER, "input": None}])
        return found_request

    def _bad_request(self, errors: list[ErrorDetails]) -> BadRequest:
        found = []
        for error in errors:
            field = ".".join(str(part) for part in error["loc"])
            found.append({"parameter": field, "message": _REPHRASED.get(error["type"], error["msg"])})
        first = errors[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return BadRequest(
            f"{self.name}: {found[0]['parameter']}: {found[0]['message']}{more}",
            hint=self._hint(str(first["loc"][0]), first["type"]),
            details={"operation": self.name, "errors": found},
        )

    def _hint(self, name: str, kind: str) -> str:
        known = list(self.request.model_fields)
        if kind == "extra_forbidden":
            close = difflib.get_close_matches(name, known, 1)
            return f"did you mean {close[0]}?" if close else f"the parameters of {self.name} are {', '.join(known)}"
        return f"{name}: {self.request.model_fields[name].description}"


_INTEGER = re.compile("[-+]?[0-9]+")
_NO_INTEGER = "Input should be a valid integer"
_REPHRASED = {"missing": "is missing", "extra_forbidden": "no parameter has this name"}


def unwrapped(text: str) -> str:
    """Return a docstring without its line breaks, so that wrapping one anew changes nothing."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
