"""Tool sets: which tools a client lists, and may call.

A client puts every description into its model's context, so the set that is offered by default is small: it is enough
to work in a terminal, and costs under 4,000 tokens with all schemas. The tools of that set are described in fewer
words than the operations, with the parameters that matter for an agent; the others can still be given.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_types import Tool
from msgspec import Struct

from blockpty.errors import BadRequest
from blockpty.surfaces.mcp.tools import PREFIX, TOOLS, PtyTool

_ONLY_IN_ALL: Final = frozenset(
    f"{PREFIX}{name}"
    for name in ("delete", "prune", "archive", "import_recording", "repair", "seal", "put_file", "get_file")
)
"""Tools that are there only where the user has asked for them: they change the record, or move whole files."""

_ONE: Final = [{"type": "string"}, {"type": "object"}]
_CONDITION: Final = {"anyOf": [*_ONE, {"type": "array", "items": {"anyOf": _ONE}}]}

_WAITS: Final = ("match", "timeout_ms")
_CORE: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "pty_run": (
        "Run a shell command and wait for its end; gives exit status and output (head and tail when long). Directory "
        "and variables are kept between calls. It keeps running after timeout_ms, and when it asks for input: then "
        "answer with pty_send_line or pty_send_keys.",
        ("command", "cwd", "timeout_ms", "max_bytes"),
    ),
    "pty_send_line": (
        "Type a text and Enter into the running program; with match, wait for what it answers in the same call.",
        ("text", *_WAITS),
    ),
    "pty_send_keys": (
        "Press keys: text, ^C, [ENTER] [ESC] [TAB] [BS] [UP] [DOWN] [LEFT] [RIGHT] [HOME] [END] [PGUP] [PGDN] [DEL] "
        "[F1]..[F12] [C-UP] [M-x] [S-TAB]; with match, wait as well.",
        ("keys", *_WAITS),
    ),
    "pty_send": ("Type data exactly as it is, without Enter; with match, wait as well.", ("data", *_WAITS)),
    "pty_wait_for": (
        "Wait for what the running program prints or does; without from_cursor, on from the last wait.",
        (*_WAITS, "stop", "from_cursor"),
    ),
    "pty_read": (
        "Read recorded output: of a block, or from a cursor on.",
        ("from_cursor", "block_id", "max_bytes"),
    ),
    "pty_get_screen": ("See what the terminal shows now: for editors, menus and pagers.", ("scrollback",)),
    "pty_interrupt": ("Interrupt what is running, as Ctrl-C does; says how it ended.", ("up_to",)),
    "pty_status": ("Say what the shell and the program in front are doing.", ()),
    "pty_open": (
        "Open another terminal, which is the default from then on. None is needed for the first command.",
        ("conversation_id", "shell", "source", "cwd", "cols", "rows"),
    ),
}
"""Of each tool of the core its description, and the parameters that it is shown with."""


class ToolSet(Struct, frozen=True):
    """A choice of tools.

    Attributes:
        listed: the descriptions that a client gets.
        callable: the names that can be called; more than are listed in the core.
    """

    listed: tuple[Tool, ...]
    callable: frozenset[str]

    def find(self, name: str) -> PtyTool | None:
        """Return a tool that can be called."""
        return TOOLS[name] if name in self.callable else None

    def promises(self, name: str) -> bool:
        """Whether a tool is listed with a schema of its results, which they have to have as structured content then."""
        return any(tool.name == name and tool.output_schema is not None for tool in self.listed)


def tool_set(choice: str) -> ToolSet:
    """Return the set for `core`, `all` or names with commas between them; raises BadRequest.

    Names are those of tools or operations: `run` is `pty_run`. Only what is named can be called then.
    """
    if choice == "core":
        return ToolSet(tuple(_core(name) for name in _CORE), frozenset(TOOLS) - _ONLY_IN_ALL)
    if choice == "all":
        return ToolSet(tuple(tool.listed for tool in TOOLS.values()), frozenset(TOOLS))
    names = dict.fromkeys(
        name if name.startswith(PREFIX) else PREFIX + name for name in (one.strip() for one in choice.split(","))
    )
    if unknown := [name for name in names if name not in TOOLS]:
        raise BadRequest(
            f"tools: there is no tool {unknown[0][:60]!r}", hint=f"core, all, or some of {', '.join(TOOLS)}"
        )
    return ToolSet(tuple(TOOLS[name].listed for name in names), frozenset(names))


def _core(name: str) -> Tool:
    """Return the short description of a tool of the core."""
    description, shown = _CORE[name]
    whole = TOOLS[name].listed
    described: Mapping[str, Any] = whole.input_schema["properties"]
    fields = {field: _short(described[field]) for field in shown}
    if "conversation_id" in described and "conversation_id" not in fields:
        fields["conversation_id"] = {"type": "string"}
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    if required := [field for field in whole.input_schema.get("required", ()) if field in shown]:
        schema["required"] = required
    return Tool(name=name, description=description, input_schema=schema, annotations=whole.annotations)


def _short(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter's schema without the bounds, which the operation checks."""
    found = copy.deepcopy(dict(field))
    if "anyOf" in found:
        found = {**_CONDITION, **({"description": found["description"]} if "description" in found else {})}
    return {name: value for name, value in found.items() if name in ("type", "enum", "default", "description", "anyOf")}
