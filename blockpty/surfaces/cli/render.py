"""Presentation of results: for a person, and as JSON.

Rules of this file: what a program wrote never reaches a terminal as it is; of its control sequences only colours do.
Where stdout is no terminal, output is passed on unchanged. Rich is loaded only to draw on a terminal.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

from blockpty.api.progress import Progress
from blockpty.errors import BlockptyError
from blockpty.surfaces.progress_text import REPORTING
from blockpty.surfaces.sanitize import RESET, one_line, sanitize

if TYPE_CHECKING:
    from blockpty.model.block import Block
    from blockpty.model.events import Event
    from blockpty.model.results import (
        ApprovalsResult,
        AuditResult,
        BlockResult,
        BlocksResult,
        ControlResult,
        ConversationInfo,
        DiffResult,
        ExportResult,
        HaltResult,
        ListResult,
        OverviewResult,
        ReadResult,
        RepairResult,
        Result,
        RunResult,
        ScreenResult,
        SearchHit,
        SearchResult,
        SendResult,
        UserInputResult,
        VerdictResult,
        VerifyResult,
        WaitResult,
    )

EXIT_TIMEOUT: Final = 3
_PROMPT: Final = '{"token": "PROMPT"}'
EXIT_EXITED: Final = 4
EXIT_INPUT: Final = 5
_ASKING: Final = ("input", "password", "incomplete_input")

_LONG_OPERATIONS: Final = frozenset(
    {
        "open",
        "run",
        "wait_for",
        "end_session",
        "reset",
        "export",
        "search",
        "overview",
        "stop_capture",
        "import_recording",
        "put_file",
        "get_file",
        "verify",
        "repair",
        "seal",
        "request_user_input",
    }
)
_OF_EVERY_ENTRY: Final = frozenset({"format", "seq", "ts", "type", "principal", "conversation_id"})
_WHY: Final[Mapping[str, str]] = {
    "password": "the program waits for a password; answer with `send`",
    "input": "the program waits for input; answer with `send` or `send-keys`",
    "incomplete_input": "the shell waits for the rest of the command (a quote or bracket is open); `ctrl-c` drops it",
    "hooks_lost": "the shell has lost its hooks; `status` says why, `reset` starts a new one",
    "eof": "the session or the shell has ended",
    "prompt": "the shell is at its prompt; nothing that runs could match any more",
    "stopped": "a stop condition came first",
    "max_bytes": "so many bytes came without a match",
    "cancelled": "the wait was cancelled",
}
_OUTCOMES: Final[Mapping[str, tuple[int, str]]] = {
    "done": (0, "done: a person has typed and handed control back"),
    "cancelled": (1, "cancelled: a person has refused, or left"),
    "timeout": (EXIT_TIMEOUT, "timed out: no person has taken control and handed it back"),
}
_GIVEN: Final[Mapping[str | None, str]] = {
    "once": "allowed once",
    "conversation": "allowed in this conversation, as long as its server runs",
    "always": "allowed always; the rule is in policy.toml",
}


def exit_status(operation: str, result: Result) -> int:
    """Return the exit status that a result stands for."""
    kind = type(result).__name__
    return _EXITS[kind](result) if kind in _EXITS else 0


def _exit_of_run(result: RunResult) -> int:
    if result.timed_out:
        return EXIT_TIMEOUT
    if result.exit_status is not None:
        return result.exit_status
    if result.block.state == "running" and result.reason in _ASKING:
        return EXIT_INPUT
    return EXIT_EXITED if result.block.state in ("shell_exited", "connection_lost") else 1


def _exit_of_wait(result: WaitResult | SendResult) -> int:
    if result.matched is not False:
        return 0
    return {"timeout": EXIT_TIMEOUT, "eof": EXIT_EXITED}.get(result.reason or "", 1)


# By the name of the class: only that of the result at hand is ever loaded.
_EXITS: Final[Mapping[str, Callable[[Any], int]]] = {
    "RunResult": _exit_of_run,
    "WaitResult": _exit_of_wait,
    "SendResult": _exit_of_wait,
    "VerifyResult": lambda result: 0 if result.clean else 1,
    "RepairResult": lambda result: 0 if result.clean else 1,
    "SearchResult": lambda result: 0 if result.hits else 1,
    "AuditResult": lambda result: 1 if result.findings else 0,
    "UserInputResult": lambda result: _OUTCOMES[result.outcome][0],
}


def colours_wanted() -> bool:
    """Return whether colours may be used on a terminal: not with NO_COLOR, nor where there are none."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def duration(ms: int | None) -> str:
    """Return how long something took, in the unit that fits; empty when that is not known."""
    if ms is None:
        return ""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"


def ending(exit_status: int | None, signal: str | None, state: str) -> str:
    """Return in a few words how a block ended."""
    if exit_status is None:
        return state
    return f"exit {exit_status} ({signal})" if signal else f"exit {exit_status}"


class ResultPrinter:
    """Printer of results: a terminal, or a file or pipe that gets plain text."""

    def __init__(self, out: TextIO, err: TextIO, *, as_json: bool = False, progress: bool | None = None) -> None:
        self._progress = progress
        self._out = out
        self._err = err
        self._json = as_json
        self._terminal = out.isatty()
        self._plain = not colours_wanted()

    # What the command line shows

    def result(self, operation: str, result: Result, params: Mapping[str, Any]) -> None:
        """Show a result."""
        shown: Mapping[str, Callable[[Any], None]] = {
            "ReadResult": self._read, "ListResult": self._conversations, "BlocksResult": self._blocks,
            "DiffResult": self._diff, "AuditResult": self._audit, "OverviewResult": self._overview,
            "VerifyResult": self._verify, "RepairResult": self._repair, "ApprovalsResult": self._approvals,
            "ControlResult": self._control, "UserInputResult": self._user_input, "VerdictResult": self._verdict,
            "ScreenResult": self._screen, "BlockResult": self._block, "ExportResult": self._export,
            "RunResult": lambda result: self._run(result, params),
            "WaitResult": lambda result: self._wait(result, params),
            "SendResult": lambda result: self._sent(result, params),
            "SearchResult": lambda result: self._search(result, params),
            "HaltResult": lambda result: self._halt(operation, result, params),
        }  # fmt: skip
        if self._json:
            self.record(result.to_dict())
        else:
            shown.get(type(result).__name__, self._plain_fields)(result)

    def event(self, event: Event, conversation_id: str) -> None:
        """Show one event of a stream, at once."""
        if self._json:
            self.record(event.to_dict(conversation_id))
        else:
            # What is itself a record (the block that ended) would hide the rest; --json has it.
            plain = {name: value for name, value in event.fields.items() if not isinstance(value, Mapping)}
            facts = " ".join(f"{name}={_compact(value)}" for name, value in plain.items())
            self._line(f"{event.seq:>6}  {clock(event.ts)}  {event.cursor:>10}  {event.type:<20} {facts}".rstrip())
        self._out.flush()

    def error(self, error: BlockptyError) -> None:
        """Show an error."""
        if self._json:
            self.record(error.to_dict())
            return
        self.note(f"blockpty: {_in_commands(error.message)} ({error.code})", style="31")
        if error.hint:
            self.note(f"  {_in_commands(error.hint)}")

    @property
    def live(self) -> bool:
        """Whether output is shown to a person as it comes."""
        return self._terminal and not self._json

    def runs_on(self, params: Mapping[str, Any]) -> None:
        """Say that the command that `run` has started keeps running."""
        name = shlex.quote(str(params["conversation_id"]))
        self.note(f"blockpty: the command keeps running in {name}", style="33")
        self.note(f"  stop it: blockpty interrupt {name}")
        self.note(f"  wait for its end: blockpty wait-for {name} {shlex.quote(_PROMPT)}")

    def shows_output(self, operation: str, params: Mapping[str, Any]) -> bool:
        """Return whether what a command prints is shown while it runs."""
        return self.live and operation == "run" and "max_bytes" not in params

    def watched(self, operation: str, params: Mapping[str, Any]) -> bool:
        """Return whether a person sees something of a call before it has ended."""
        return self.shows_output(operation, params) or self._shows_progress(operation)

    def looks(self, operation: str) -> AbstractContextManager[Progress | None]:
        """Have an operation that is called inside say how far it is, where that is shown."""
        if operation not in REPORTING or not self._shows_progress(operation):
            return nullcontext()
        return Progress()

    def progress(self, operation: str, *, passed_seconds: float = 0.0) -> AbstractAsyncContextManager[None]:
        """Show on a terminal that something lasts, and how far it is; it has taken so many seconds before."""
        if not self._shows_progress(operation):
            return nullcontext()
        from blockpty.surfaces.cli.progress import shown_progress

        return shown_progress(self._err, operation, Progress.wanted(), passed_seconds=passed_seconds)

    def interrupted(self, operation: str, params: Mapping[str, Any]) -> None:
        """Say what a call has done that is interrupted, and what goes on."""
        if operation == "run":
            self.runs_on(params)
            return
        from blockpty.surfaces.cli.progress import stopped

        if text := stopped(operation, Progress.wanted()):
            self.note(f"blockpty: {text}", style="33")

    def _shows_progress(self, operation: str) -> bool:
        if operation not in _LONG_OPERATIONS or self._progress is False:
            return False
        return self._progress is True or (not self._json and self._err.isatty())

    # One kind of result each

    def _run(self, result: RunResult, params: Mapping[str, Any]) -> None:
        self._printed(result.output, result.tty, params)
        block = result.block
        name = shlex.quote(str(params["conversation_id"]))
        if result.truncated:
            shown = len(result.output.encode("utf-8", "replace"))
            self.note(
                f"blockpty: {shown} of {result.output_bytes} bytes are shown. "
                f"All of it: blockpty read {name} --block-id {block.block_id} --max-bytes {result.output_bytes}"
            )
        if result.timed_out:
            self.note(f"blockpty: {_timed_out(params)}; {block.block_id} keeps running", style="33")
            self._go_on(name, _PROMPT, result.cursor)
        elif block.exit_status is None:
            why = _WHY.get(result.reason) if block.state == "running" else None
            self.note(f"blockpty: {block.block_id} has no exit status ({why or block.state})", style="33")
        self._advise(result.hint)

    def _plain_fields(self, result: Result) -> None:
        self._fields({name: value for name, value in result.to_dict().items() if name != "ok"})

    def _screen(self, result: ScreenResult) -> None:
        self._output(result.content if result.content.endswith("\n") else f"{result.content}\n")

    def _block(self, result: BlockResult) -> None:
        self._fields(result.block.to_dict())

    def _export(self, result: ExportResult) -> None:
        if result.data is not None:
            self._output(result.data)
        else:
            self._plain_fields(result)

    def _sent(self, result: SendResult, params: Mapping[str, Any]) -> None:
        if result.matched is not None:
            self._wait(result, params)
        else:
            self._plain_fields(result)

    def _wait(self, result: WaitResult | SendResult, params: Mapping[str, Any]) -> None:
        self._printed(result.text or "", result.tty, params)
        if result.matched:
            self.note(f"blockpty: matched ({result.reason}); cursor {result.cursor}, {result.mode}, {result.tty}")
            self._advise(result.hint)
            return
        name = shlex.quote(str(params["conversation_id"]))
        if result.reason == "timeout":
            self.note(f"blockpty: no match, {_timed_out(params)}", style="33")
            match = params["match"]
            self._go_on(name, match if isinstance(match, str) else json.dumps(match), result.cursor)
        else:
            reason = result.reason or ""
            self.note(f"blockpty: no match: {_WHY.get(reason, reason)}", style="33")
        self._advise(result.hint)

    def _printed(self, text: str, tty: str | None, params: Mapping[str, Any]) -> None:
        """Write what a program printed, unless it draws a screen: that is no text."""
        if tty != "alt_screen":
            self._output(text)
        elif text:
            self.note(f"blockpty: a program draws; blockpty screen {shlex.quote(str(params['conversation_id']))}")

    def _advise(self, hint: str | None) -> None:
        if hint is not None:
            self.note(f"  {one_line(_in_commands(hint))}")

    def _go_on(self, name: str, match: str, cursor: int) -> None:
        self.note(f"  continue with: blockpty wait-for {name} {shlex.quote(match)} --from-cursor {cursor}")

    def _read(self, result: ReadResult) -> None:
        if result.data_b64 is not None and not self._terminal:
            self._out.flush()
            self._out.buffer.write(base64.b64decode(result.data_b64))
        else:
            self._output(result.data)
        if result.truncated_before is not None:
            self.note(f"blockpty: output before {result.truncated_before} is no longer kept")
        if not result.eof:
            self.note(f"blockpty: continue with --from-cursor {result.cursor}")

    def _conversations(self, result: ListResult) -> None:
        rows = [_conversation_row(conversation) for conversation in result.conversations]
        self._table(("conversation", "mode", "shell", "pid", "blocks", "cursor", "created", "cwd"), rows)

    def _blocks(self, result: BlocksResult) -> None:
        rows = [_block_row(block) for block in result.blocks]
        self._table(("block", "began", "ms", "status", "bytes", "command"), rows)
        if result.next_page is not None:
            self.note(f"blockpty: more with --page {result.next_page}")

    def _diff(self, result: DiffResult) -> None:
        self._output(result.diff)
        if result.same:
            self.note(f"blockpty: {result.block.block_id} printed what {result.against.block_id} did")
        if result.part:
            self.note("blockpty: the outputs are long, and only their beginnings were compared", style="33")
        if result.truncated:
            self.note("blockpty: the diff continues; more with --max-bytes", style="33")

    def _overview(self, result: OverviewResult) -> None:
        rows = [
            (
                one.conversation_id, "live" if one.live else one.elsewhere or "", one.blocks, one.failed,
                moment(one.last_ts), one.last_block.cmd,
            )
            for one in result.conversations
        ]  # fmt: skip
        self._table(("conversation", "", "blocks", "failed", "last began", "command"), rows)
        self._line("")
        self._table(
            ("conversation", "block", "began", "ms", "status", "bytes", "command"),
            [(one.conversation_id, *_block_row(one.block)) for one in result.blocks],
        )
        self._line("")
        counts = " ".join(f"{status}:{count}" for status, count in result.statuses.items())
        self._line(f"{result.total_blocks} blocks in {result.total_conversations} conversations; statuses {counts}")
        if result.partial:
            self.note("blockpty: not all of the index is there yet; --timeout-ms waits longer", style="33")

    def _audit(self, result: AuditResult) -> None:
        for entry in reversed(result.entries):
            own = " ".join(
                f"{name}={_compact(value)}" for name, value in entry.items() if name not in _OF_EVERY_ENTRY
            )
            where = entry.get("conversation_id") or "-"
            head = f"{entry['seq']:>6}  {moment(entry['ts'])}  {entry['principal']:<12} {entry['type']:<12} {where}"
            self._line(one_line(f"{head}  {own}".rstrip()))
        if result.next is not None:
            self.note(f"blockpty: older entries with --page {result.next}")
        if result.unwritten or result.dropped:
            self.note(
                f"blockpty: {result.unwritten} entries could not be written yet, {result.dropped} were dropped",
                style="33",
            )
        for finding in result.findings or ():
            self._line(one_line(f"line {finding['line']} {finding['message']}"))
        if result.findings is not None:
            found = len(result.findings)
            self._line(one_line(f"{found or 'no'} finding{'' if found == 1 else 's'}; digest {result.head}"))

    def _search(self, result: SearchResult, params: Mapping[str, Any]) -> None:
        self._out.writelines(found_lines(result, terminal=self._terminal, colours=not self._plain))
        if not result.hits:
            self.note("blockpty: nothing was found")
        if result.missing:
            self.note(f"blockpty: did not answer: {', '.join(map(one_line, result.missing))}", style="33")
        elif result.partial:
            self.note(f"blockpty: {_timed_out(params)} before everything was searched", style="33")
        if result.next is not None:
            self.note(f"blockpty: more with --page {result.next}")

    def _verify(self, result: VerifyResult) -> None:
        derived = f"{result.events} events, {result.blocks} blocks and {result.waits} waits"
        compared = f"{derived} of {result.stream_bytes} bytes compared"
        if result.clean:
            self._line(f"clean: {compared}")
            self._completeness(result)
            return
        found = len(result.differences)
        self._line(f"{found} difference{'' if found == 1 else 's'}: {compared}")
        for difference in result.differences[:1]:
            self._fields(difference)

    def _completeness(self, result: VerifyResult) -> None:
        """Say what is known beyond the comparison."""
        for one in result.behind:
            self._line(one_line(f"behind: {one['where']}: {one['message']}"))
        if result.vouched is None:
            self._line("complete: cannot be shown, the record is of an older version")
        else:
            begin, end = result.vouched
            self._line(f"complete: bytes {begin} to {end}, digest {result.head}")
        if result.sealed_to is not None:
            self._line(f"sealed: up to {result.sealed_to}")

    def _repair(self, result: RepairResult) -> None:
        for one in result.changed:
            self._line(one_line(f"repaired: {one['where']}: {one['message']}"))
        if not result.changed:
            self._line("nothing was to be repaired")
        for one in result.differences:
            self._line(one_line(f"left: {one['where']}: {one['message']}"))

    def _approvals(self, result: ApprovalsResult) -> None:
        from blockpty.surfaces import approvals

        now_ms = time.time_ns() // 1_000_000
        for number, one in enumerate(result.approvals):
            if number:
                self._line("")
            self._line(approvals.heading(one))
            for line in approvals.body(one, width=self.width):
                self._line(line)
            self._line(f"  time left  {duration(1000 * approvals.seconds_left(one, now_ms))}")
            self._line(f"  digest     {one_line(one['digest'])}")
            if one.get("always") is not None:
                self._line("  To allow it always, `approve --scope always` adds this rule to policy.toml:")
                for line in approvals.quoted(one["always"].rstrip("\n"), width=self.width):
                    self._line(line)
            allow, refuse = approvals.commands(one)
            self._line(f"  allow      {one_line(allow)}")
            self._line(f"  refuse     {one_line(refuse)}")
        if not result.approvals:
            self.note("blockpty: no approvals are pending")
        elif self._terminal:
            self.note("blockpty: `blockpty answer` asks you about each of them")

    def _control(self, result: ControlResult) -> None:
        since = f" since {moment(result.since)}" if result.since is not None else ""
        who = result.who or "a person"
        said = {
            "agent": "agents may type",
            "user": f"{who} has control{since}; agents are refused",
            "shared": f"{who} has control{since}, and agents may type",
        }[result.control]
        if result.control == "user" and result.who is None:
            said = f"a person was asked to type{since}; agents are refused"
        if result.halted is not None:
            said = f"{said}; {result.halted} has halted agents here"
        self._line(one_line(f"{result.conversation_id}: {said}"))

    def _halt(self, operation: str, result: HaltResult, params: Mapping[str, Any]) -> None:
        name = params.get("conversation_id")
        where = "in all conversations" if result.everywhere else f"in {name}"
        if operation == "halt":
            again = "blockpty release" if result.everywhere else f"blockpty release {shlex.quote(str(name))}"
            self._line(one_line(f"agents are halted {where}; `{again}` lets them type again"))
            for one in result.conversations:
                self._line(one_line(f"  {one['conversation_id']}  {str(one['how']).replace('_', ' ')}"))
        else:
            rest = ", except where one conversation is halted by itself" if result.everywhere else ""
            self._line(one_line(f"agents may type again {where}{rest}"))

    def _user_input(self, result: UserInputResult) -> None:
        self._line(_OUTCOMES[result.outcome][1])

    def _verdict(self, result: VerdictResult) -> None:
        said = _GIVEN.get(result.scope, "allowed") if result.verdict == "approved" else result.verdict
        self._line(one_line(f"{result.approval_id}: {said}"))

    # Ways to draw

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where lines have no width."""
        if not self._terminal:
            return None
        import shutil

        return shutil.get_terminal_size().columns

    def _output(self, text: str) -> None:
        """Write what a program wrote: as it is to a file, safely to a terminal, which also gets the last line's end."""
        if not self._terminal:
            self._out.flush()
            self._out.buffer.write(text.encode("utf-8", "replace"))
        elif text:
            safe = sanitize(text, colour=not self._plain)
            self._out.write(safe if text.endswith("\n") else f"{safe}\n")

    def _fields(self, fields: Mapping[str, Any]) -> None:
        known = {name: value for name, value in fields.items() if value is not None}
        width = max(map(len, known), default=0)
        for name, value in known.items():
            self._line(f"{name:<{width}}  {_compact(value)}")

    def _table(self, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        cells = [["" if value is None else one_line(str(value)) for value in row] for row in rows]
        if not self._terminal:
            for row in cells:
                self._line("\t".join(row))
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="" if self._plain else "bold")
        for head in heads:
            table.add_column(head, overflow="fold" if head in ("command", "cwd") else "ellipsis")
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        Console(file=self._out, no_color=self._plain, highlight=False).print(table)

    def _line(self, text: str) -> None:
        self._out.write(sanitize(text, colour=False) + "\n")

    def note(self, text: str, *, style: str | None = None) -> None:
        """Write a line of our own to stderr."""
        self._out.flush()
        safe = sanitize(text, colour=False)
        coloured = style is not None and self._err.isatty() and not self._plain
        self._err.write(f"\x1b[{style}m{safe}{RESET}\n" if coloured else f"{safe}\n")

    def record(self, value: Mapping[str, Any]) -> None:
        """Write one line of JSON, at once."""
        # ASCII only: safe on any terminal and in any locale.
        self._out.write(json.dumps(value, separators=(",", ":")) + "\n")
        self._out.flush()


def _in_commands(text: str) -> str:
    """Return a message with the operations named as commands: the table's names have underscores."""
    from blockpty.ops.manifest import operation_names

    names = [name for name in operation_names() if "_" in name]
    return re.sub(rf"\b(?:{'|'.join(names)})\b", lambda found: found[0].replace("_", "-"), text)


def _conversation_row(one: ConversationInfo) -> tuple[Any, ...]:
    # The shell behind a source is the same in most of them; the way to it is what tells them apart.
    shown = one.shell if one.source == "shell" else one.source
    return (one.conversation_id, one.mode, shown, one.pid, one.blocks, one.cursor, moment(one.created_ts), one.cwd)


def _block_row(block: Block) -> tuple[Any, ...]:
    status = block.state if block.exit_status is None else block.exit_status
    command = "(background)" if block.kind == "background" else block.cmd
    return (block.block_id, moment(block.ts_begin), block.duration_ms, status, block.out_bytes, command)


def _timed_out(params: Mapping[str, Any]) -> str:
    given = params.get("timeout_ms")
    return "timed out" if given is None else f"timed out after {given} ms"


def _compact(value: Any) -> str:
    return one_line(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def clock(ts: int) -> str:
    """Return the time of day of something, to the millisecond."""
    return datetime.fromtimestamp(ts / 1000).astimezone().strftime("%H:%M:%S.%f")[:-3]


def moment(ts: int) -> str:
    """Return when something was, in local time, to the second."""
    return datetime.fromtimestamp(ts / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


# Searches


def found_lines(result: SearchResult, *, terminal: bool, colours: bool) -> Iterator[str]:
    """Yield lines, with their ends.

    In a file or pipe a line is: conversation, block, cursor, part, text, and the address of another host, with tabs.
    """
    if not terminal:
        for hit in result.hits:
            fields = [hit.conversation_id, hit.block_id, hit.cursor, hit.part, hit.snippet]
            fields += [hit.elsewhere] if hit.elsewhere else []
            yield "\t".join(one_line(str(field)) for field in fields) + "\n"
        return
    block: tuple[str, str] | None = None
    for hit in result.hits:
        if block != (hit.conversation_id, hit.block_id):
            yield "\n" if block is not None else ""
            block = (hit.conversation_id, hit.block_id)
            yield _head(hit, colours) + "\n"
        yield f"  {hit.cursor:>10}  {_marked(hit, colours)}\n"
        if hit.context is not None:
            yield from (f"{'':>14}{one_line(line)}\n" for line in hit.context.split("\n"))


def _head(hit: SearchHit, colours: bool) -> str:
    name = f"{hit.conversation_id} {hit.block_id}"
    shown = f"\x1b[1m{one_line(name)}{RESET}" if colours else one_line(name)
    facts = [moment(hit.ts_begin), ending(hit.exit_status, None, hit.state), one_line(hit.cmd)]
    where = [f"on {one_line(hit.elsewhere)}"] if hit.elsewhere else []
    return "  ".join([shown, *where, *facts])


def _marked(hit: SearchHit, colours: bool) -> str:
    begin, end = hit.snippet_span
    if not colours:
        return one_line(hit.snippet)
    before, found, after = (one_line(text) for text in (hit.snippet[:begin], hit.snippet[begin:end], hit.snippet[end:]))
    return f"{before}\x1b[1;31m{found}{RESET}{after}"
