"""Find in one conversation: every match of the record, one after the other, while the blocks stay in view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from blockpty.errors import BlockptyError
from blockpty.model.search_results import SearchHit
from blockpty.surfaces.view.search import PAUSE_SECONDS
from blockpty.surfaces.view.strips import safe

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

_MOST: Final = 1000
_MOST_QUERY: Final = 1024


class Find(ModalScreen[None]):
    """A line below the blocks. Enter and Down go to the next match, Shift+Enter and Up to the one before.

    Args:
        client: a client of the server.
        conversation_id: where to look.
        mark: called with what is looked for, so that it is marked where it can be seen.
        go: called with the block of a match, and which match of that block it is, from 0.
        query: what to look for at first; cursor: the first match is the one that begins here in the stream.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("down", "step(1)", "next", priority=True),
        Binding("up,shift+enter", "step(-1)", "previous", priority=True),
    ]
    CSS = """
    Find { align: center bottom; background: $background 0%; }
    Find > Horizontal { width: 1fr; height: 1; margin: 0 0 1 0; background: $sunken; }
    Find Input { border: none; height: 1; width: 1fr; background: $sunken; padding: 0 1; }
    Find Static { width: 30; color: $muted; text-align: right; padding: 0 1; }
    """

    def __init__(
        self, client: Any, conversation_id: str, mark: Callable[[str], None], go: Callable[[str, int], None],
        query: str = "", cursor: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.hits: list[SearchHit] = []
        self.at = -1
        self._more = False
        # What the hits are of, and which way to go once what has been typed since is found.
        self._query = ""
        self._step = 0
        self._client = client
        self._conversation = conversation_id
        self._mark = mark
        self._go = go
        self._first, self._cursor = query, cursor
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Horizontal():
            yield Input(self._first, placeholder="find in this conversation", max_length=_MOST_QUERY)
            yield Static("", markup=False)

    def on_mount(self) -> None:
        """Look at once for what was given."""
        if self._first:
            self._begin()

    def on_unmount(self) -> None:
        """Mark nothing any more."""
        self._mark("")

    def on_input_changed(self) -> None:
        """Look when no key was pressed for a moment."""
        if self._first and self.query_one(Input).value == self._first:
            return  # that is looked for already
        self._step = 0
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE_SECONDS, self._begin)

    def on_input_submitted(self) -> None:
        """Go to the next match."""
        self.action_step(1)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self.run_worker(self._look(self.query_one(Input).value), exclusive=True, exit_on_error=True)

    async def _look(self, query: str) -> None:
        said = self.query_one(Static)
        self.hits, self.at, self._query = [], -1, ""
        self._mark(query)
        if not query:
            said.update("")
            return
        try:
            found = await self._client.search(
                query, conversation_id=self._conversation, part="output", ignore_case=True, page_size=_MOST
            )
        except BlockptyError as problem:
            said.update(safe(str(problem)))
            return
        self.hits, self._query = sorted(found.hits, key=lambda hit: hit.span), query
        self._more = found.next is not None or found.partial
        self._say()
        if self._step:
            self.action_step(self._step)
        elif query == self._first:
            self._first = ""
            self.at = next((number for number, hit in enumerate(self.hits) if hit.cursor == self._cursor), 0) - 1
            self.action_step(1)

    def _say(self) -> None:
        count = f"{'at least ' if self._more else ''}{len(self.hits):,}"
        if not self.hits:
            words = "no match"
        else:
            words = f"{count} matches" if self.at < 0 else f"{self.at + 1:,} of {count}"
        self.query_one(Static).update(words)

    def action_step(self, by: int) -> None:
        """Go to the next match, or to the one before; after the last comes the first."""
        if self.query_one(Input).value != self._query:
            self._step = by
            self._begin()
            return
        self._step = 0
        if not self.hits:
            return
        self.at = (self.at + by) % len(self.hits) if self.at >= 0 else (0 if by > 0 else len(self.hits) - 1)
        hit = self.hits[self.at]
        before = [one for one in self.hits[: self.at] if one.block_id == hit.block_id]
        self._say()
        self._go(hit.block_id, len(before))
