"""Commands made from the table of operations: parameters become arguments and options, the call and its exit status.

This file adds no parameter and no rule. What it adds is presentation: `open` keeps its shell, because the command line
itself goes away, and conditions may be given as plain text. Commands that are written by hand are only named here;
each has a file of its own, which is loaded when it is used.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import aclosing
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import click

from blockpty import __version__
from blockpty.surfaces.cli.completion import COMPLETED
from blockpty.surfaces.cli.confirming import CONFIRMED, confirm, confirm_option
from blockpty.surfaces.cli.groups import GroupedCommands
from blockpty.surfaces.cli.inputs import KEYED, LOCAL, STDIN, options_of, take
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished, unless_unread
from blockpty.surfaces.cli.values import Conditions, Duration, ParamType, PointInTime, Variables
from blockpty.surfaces.progress_text import REPORTING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from blockpty.ops.manifest import ManifestEntry
    from blockpty.surfaces.plain_call import PlainCall

# A call that ends sooner is shown from its result, also to a person who watches.
SOON_SECONDS: Final = 0.4

# Each is a module of this package with a function `command`; what it needs to run, it imports when it runs.
HAND_WRITTEN: Final = (
    "attach", "serve", "mcp", "token", "policy", "answer", "peers", "tail", "log", "doctor", "completion", "man",
    "import", "view", "watch", "record", "shell-init", "proxy",
)  # fmt: skip

# The one difference to the table: the engine of a command lives only as long as the command.
_CLI_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {"open": {"persist": True}}
_NOTES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("run", "exec_block", "exec_interactive"),
        "One argument is shell text. Several are one command with exactly these arguments: run c1 -- ls -la.",
    ),
    "open": "On the command line the shell always outlives the command, unless --no-persist is given, and programs in "
    "it may use pagers where the command was given at a terminal.",
    "put_file": "LOCAL is a file of this machine, or - for standard input; --data is the content itself.",
    "get_file": "LOCAL is a file of this machine, or - for standard output, as without it; --local-path is one of the "
    "server's machine.",
    **dict.fromkeys(KEYED, "On the command line the key is the name of a file that holds it."),
}


def program() -> click.Group:
    """Return the command line."""

    def show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(f"blockpty {__version__}")
            ctx.exit()

    version = click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show the version."
    )
    return _Operations(
        name="blockpty",
        help="Runs a real shell for your program: exact output and exit status of each command, and waits for prompts "
        "and text.",
        params=[*anywhere(), version],
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


class _Operations(GroupedCommands):
    """Looks up the table only when a command is asked for, and makes only that command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from blockpty.ops.manifest import operation_names

        return [*(_dashed(name) for name in operation_names()), "replay", *HAND_WRITTEN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from blockpty.ops.manifest import manifest_entry, operation_names

        if cmd_name in ("replay", *HAND_WRITTEN):
            if cmd_name == "import":
                # Its own name, import_recording, is that of a method; a person would not look for it here.
                return _command(manifest_entry("import_recording"), cmd_name)
            made: click.Command = import_module(f"blockpty.surfaces.cli.{cmd_name.replace('-', '_')}").command()
            return made
        name = cmd_name.replace("-", "_")
        # Only kebab-case, so that there is one name for one thing.
        return _command(manifest_entry(name)) if name in operation_names() and "_" not in cmd_name else None


class OperationCommand(click.Command):
    """The command of an operation, whose help explains its arguments as well.

    Attributes:
        explained: what each argument is, by its name in the usage; a conversation needs no words.
    """

    def __init__(self, operation: ManifestEntry, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.explained = {
            one.upper(): operation.parameters[one].get("description", "")
            for one in operation.positional
            if one in operation.required and one != "conversation_id"
        }

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, and then the options."""
        if self.explained:
            with formatter.section("Arguments"):
                formatter.write_dl(list(self.explained.items()))
        super().format_options(ctx, formatter)


def _command(operation: ManifestEntry, name: str | None = None) -> OperationCommand:
    parameters: list[click.Parameter] = []
    for field, schema in operation.parameters.items():
        if field in operation.positional:
            parameters.append(_argument(operation, field, schema))
        if field not in operation.required:
            parameters.append(_option(operation, field, schema))
    parameters += options_of(operation.name)
    if operation.name in CONFIRMED:
        parameters.append(confirm_option())
    if operation.name in REPORTING:
        parameters.append(_progress_option())
    note = _NOTES.get(operation.name)
    return OperationCommand(
        operation,
        name or _dashed(operation.name),
        params=[*parameters, *anywhere()],
        help=f"{operation.doc}\n\n{note}" if note else operation.doc,
        short_help=operation.doc.partition("\n")[0],
        callback=_callback(operation),
    )


def _progress_option() -> click.Option:
    text = "Show percent, bytes and rate on stderr. [default: where that is a terminal]"
    return click.Option(["--progress/--no-progress"], default=None, help=text)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


# From fields to parameters


def _argument(operation: ManifestEntry, name: str, schema: Mapping[str, Any]) -> click.Argument:
    # An optional one is an option as well; click must not give both the same value, so it has a name of its own.
    target = name if name in operation.required else f"{name}_argument"
    required = name in operation.required and STDIN.get(operation.name) != name
    # On the command line it is the name of a file here.
    word = "LOCAL" if LOCAL.get(operation.name) == name else name.upper()
    metavar = word if required else f"[{word}]"
    return click.Argument(
        [target],
        # Several words are the arguments of one command, such as `run c1 -- ls -la`.
        nargs=-1 if name == "command" else 1,
        type=_type(name, schema),
        required=required,
        metavar=metavar,
        shell_complete=COMPLETED.get(name) if operation.name != "open" else None,
    )


def _option(operation: ManifestEntry, name: str, schema: Mapping[str, Any]) -> click.Option:
    kind = _type(name, schema)
    default = _CLI_DEFAULTS.get(operation.name, {}).get(name, schema.get("default"))
    explained = schema.get("description", "")
    dashed = _dashed(name)
    if kind is click.BOOL:
        shown = f"--{dashed}" if default else f"--no-{dashed}"
        # One that may be left open has no default of its own.
        help_text = f"{explained} [default: {shown}]" if default is not None else explained
        return click.Option([f"--{dashed}/--no-{dashed}", name], default=None, help=help_text)
    if default is not None:
        explained = f"{explained} [default: {default}]"
    return click.Option(
        [f"--{dashed}", name],
        type=kind,
        multiple=isinstance(kind, Variables),
        help=explained,
        shell_complete=COMPLETED.get(name) if operation.name != "open" else None,
    )


def _type(name: str, schema: Mapping[str, Any]) -> ParamType:
    """Return how a value of this kind is written on a command line."""
    if name in _MOMENTS and "ms since 1970" in schema.get("description", ""):
        return PointInTime()
    for ending, unit_ms in _DURATIONS.items():
        if name.endswith(ending):
            return Duration(unit_ms)
    kinds = [kind for kind in schema.get("anyOf", (schema,)) if kind != {"type": "null"}]
    if len(kinds) > 1:
        return Conditions()
    (kind,) = kinds
    if "enum" in kind:
        return click.Choice(kind["enum"])
    if kind["type"] == "object":
        return Variables()
    return _PLAIN_TYPES[kind["type"]]


_MOMENTS: Final = frozenset({"since", "until", "before"})
_DURATIONS: Final[Mapping[str, int]] = {"_ms": 1, "_seconds": 1000, "keep_days": 86_400_000}
_PLAIN_TYPES: Final[Mapping[str, ParamType]] = {
    "string": click.STRING, "integer": click.INT, "boolean": click.BOOL
}  # fmt: skip


# The call


def _callback(operation: ManifestEntry) -> Callable[..., int]:
    @click.pass_obj
    def callback(invocation: Invocation, /, **values: Any) -> int:
        invocation.check(operation)
        output = None
        if operation.name in REPORTING:
            invocation.progress = values.pop("progress")
        if isinstance(words := values.get("command"), tuple):
            values["command"] = (words[0] if len(words) == 1 else shlex.join(words)) if words else None
        if operation.name in CONFIRMED:
            values = confirm(operation.name, values)
        if operation.name == "export":
            from blockpty.surfaces.cli.export import taken_output

            values, output = taken_output(values)
        if operation.name in LOCAL:
            from blockpty.surfaces.cli.local_files import taken_local

            values, output = taken_local(operation.name, values)
        params = _params(operation, take(operation.name, values))
        return called(invocation, operation, params, output)

    return cast("Callable[..., int]", callback)


def _params(operation: ManifestEntry, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given, and the few defaults of the command line."""
    params = dict(_CLI_DEFAULTS.get(operation.name, {}))
    for name, value in values.items():
        if value is None or value == ():
            continue
        field = name.removesuffix("_argument")
        if field != name and values.get(field) is not None:
            raise click.UsageError(f"give {field} as an argument or as --{_dashed(field)}, not both")
        params[field] = _merged(value) if isinstance(value, tuple) else value
    if operation.name == "open" and sys.stdin.isatty() and sys.stdout.isatty():
        # Who opens a shell at a terminal is a person; a program would wait for a pager for ever.
        params.setdefault("pagers", True)
    return params


def _merged(variables: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    return {name: content for mapping in variables for name, content in mapping.items()}


def called(
    invocation: Invocation, operation: ManifestEntry, params: Mapping[str, Any], output: str | None = None
) -> int:
    """Call an operation, show its result, and return the exit status; an export or a file goes to `output`.

    A call without a person who watches needs no event loop, nor does one that ends at once.
    """
    screen = invocation.screen()
    # What is called here says to this screen how far it is.
    with screen.looks(operation.name):
        call = invocation.begin(operation, params)
        if call is None:
            return finished(run_operation(invocation, operation, params, output))
        try:
            if not screen.watched(operation.name, params) or call.wait(SOON_SECONDS):
                result = call.result()
                return unless_unread(lambda: _shown(invocation, operation, params, result, output))
        except KeyboardInterrupt:
            screen.interrupted(operation.name, params)
            raise
        return finished(run_operation(invocation, operation, params, output, call))


async def run_operation(
    invocation: Invocation,
    operation: ManifestEntry,
    params: Mapping[str, Any],
    output: str | None = None,
    begun: PlainCall | None = None,
) -> int:
    """Call an operation, or take the answer of a call that was begun; the rest as in `called`."""
    import asyncio

    from blockpty.ops.manifest import Shape

    screen = invocation.screen()
    async with invocation.open_engine(invocation.home) as engine:
        if operation.shape is Shape.STREAM:
            from blockpty.ops.dispatch import stream

            events = stream(engine, operation.name, params)
            async with aclosing(cast("AsyncGenerator[Any, None]", events)):
                async for event in events:
                    screen.event(event, params["conversation_id"])
            return 0
        try:
            call = begun.rest() if begun is not None else _call(engine, operation.name, params)
            if screen.shows_output(operation.name, params):
                from blockpty.surfaces.cli.running import run_shown

                result: Any = await run_shown(screen, engine, params, cast("Any", call))
            else:
                async with screen.progress(operation.name, passed_seconds=SOON_SECONDS if begun is not None else 0.0):
                    result = await call
        except asyncio.CancelledError:
            screen.interrupted(operation.name, params)
            raise
    return _shown(invocation, operation, params, result, output)


def _shown(
    invocation: Invocation, operation: ManifestEntry, params: Mapping[str, Any], result: Any, output: str | None
) -> int:
    from blockpty.surfaces.cli.render import exit_status

    if operation.name == "export":
        from blockpty.surfaces.cli.export import delivered

        result = delivered(result, output, as_json=invocation.as_json)
        if result is None:
            return 0
    if operation.name == "get_file":
        from blockpty.surfaces.cli.local_files import delivered_file

        result = delivered_file(result, output, as_json=invocation.as_json)
        if result is None:
            return 0
    invocation.screen().result(operation.name, result, params)
    return exit_status(operation.name, result)


async def _call(engine: Any, name: str, params: Mapping[str, Any]) -> Any:
    from blockpty.surfaces.client import Client

    if isinstance(engine, Client):
        # The server checks the parameters; the models that do would take longer to load than all the rest.
        return await engine.call(name, params)
    from blockpty.ops.dispatch import call

    return await call(engine, name, params)
