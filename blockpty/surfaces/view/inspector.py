"""Facts of one block: exact times, bytes, the runs of its command, and how its output differs from the run before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from blockpty.errors import BlockptyError
from blockpty.model.block import Block
from blockpty.surfaces.view.strips import safe, visible
from blockpty.surfaces.view.words import SIGNS, duration, ending, sign, size

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from blockpty.surfaces.view.theme import Colours

RUNS: Final = 24
_DIFF_BYTES: Final = 16_384
_BARS: Final = "▁▂▃▄▅▆▇█"


class Inspector(ModalScreen[None]):
    """Facts of a block.

    Args:
        client: a client of the server.
        conversation_id, block: which block.
        blocks: those of the conversation that are here; the runs of its command are among them.
        diff: show the difference to the previous run at once.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,i,q", "dismiss", "close"),
        Binding("d", "diff", "difference to the previous run"),
    ]
    CSS = """
    Inspector { align: center middle; }
    Inspector > VerticalScroll {
        width: 90%; max-width: 110; height: auto; max-height: 90%; border: round $line2; background: $raised;
        padding: 0 2;
    }
    """

    def __init__(
        self, client: Any, conversation_id: str, block: Block, blocks: Sequence[Block], colours: Colours, *,
        diff: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self._client = client
        self._conversation = conversation_id
        self._block = block
        self._runs = [one for one in blocks if block.cmd and one.cmd == block.cmd][-RUNS:]
        self._colours = colours
        self._wants = diff

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with VerticalScroll():
            yield Static(facts(self._block, self._runs, self._colours), markup=False)
            yield Static("", id="difference", markup=False)

    def on_mount(self) -> None:
        """Read the difference where it was asked for."""
        if self._wants:
            self.action_diff()

    def action_diff(self) -> None:
        """Show how the output differs from that of the previous run."""
        self.run_worker(self._diff(), exclusive=True, exit_on_error=True)

    async def _diff(self) -> None:
        shown = self.query_one("#difference", Static)
        try:
            conversation = await self._client.conversation(self._conversation)
            found = await conversation.diff(self._block.block_id, context=1, max_bytes=_DIFF_BYTES)
        except BlockptyError as problem:
            shown.update(Text(safe(str(problem)), self._colours.muted))
            return
        if found.same:
            words = f"The output is the same as that of {found.against.block_id}."
            shown.update(Text(words, self._colours.muted))
            return
        shown.update(difference(found.diff, found.truncated or found.part, self._colours))


def facts(block: Block, runs: Sequence[Block], colours: Colours) -> Text:
    """Return the facts of a block."""
    state, text = sign(block), Text(end="")
    look = {"ok": colours.ok, "fail": colours.fail, "run": colours.run}.get(state, colours.muted)
    text.append(f"{SIGNS[state]} ", look)
    text.append(f"{block.block_id}  ", f"bold {colours.text}")
    text.append(visible(block.cmd) or block.kind, colours.text)
    text.append(f"  {ending(block)}\n\n", f"bold {look}")
    begin, end = block.span
    rows = (
        ("Began", _moment(block.ts_begin)),
        ("Ended", _moment(block.ts_end) if block.ts_end is not None else "runs"),
        ("Took", duration(block.duration_ms) or "runs"),
        ("Directory", safe(block.cwd or "not known")),
        ("Output", f"{size(block.out_bytes)} · [{begin:,}, {'…' if end is None else f'{end:,}'})"),
    )
    for name, value in rows:
        text.append(f"{name:<11}", colours.muted)
        text.append(f"{value}\n", colours.text)
    if len(runs) > 1:
        longest = max(1, *(run.duration_ms or 0 for run in runs))
        text.append(f"\n{'Runs':<11}", colours.muted)
        for run in runs:
            bar = _BARS[round((run.duration_ms or 0) / longest * (len(_BARS) - 1))]
            own = {"ok": colours.ok, "fail": colours.fail, "run": colours.run}.get(sign(run), colours.muted)
            text.append(bar, f"{own} underline" if run.block_id == block.block_id else own)
        text.append(f"  the last {len(runs)} of this command, by time taken\n", colours.muted)
        text.append("\nd shows the difference to the previous run\n", colours.muted)
    return text


def difference(diff: str, ends_early: bool, colours: Colours) -> Text:
    """Return a unified diff in colours."""
    text = Text("\n", end="")
    looks = {"+": colours.ok, "-": colours.fail, "@": colours.muted}
    for line in diff.removesuffix("\n").split("\n"):
        text.append(f"{safe(line)}\n", looks.get(line[:1], colours.text))
    if ends_early:
        text.append("and more\n", colours.muted)
    return text


def _moment(ts: int) -> str:
    return datetime.fromtimestamp(ts / 1000, UTC).astimezone().isoformat(" ", "milliseconds")
