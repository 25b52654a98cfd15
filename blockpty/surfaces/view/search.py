"""Search over all conversations: what is typed is looked for, and a match opens its block."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from blockpty.errors import BlockptyError
from blockpty.model.search_results import SearchHit
from blockpty.surfaces.view.strips import safe
from blockpty.surfaces.view.words import SIGNS, clock, sign

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

    from blockpty.surfaces.view.theme import Colours

PAUSE_SECONDS: Final = 0.15
WORDS: Final = {
    "substring": "this text", "words": "all of these words", "phrase": "these words in a row",
    "regex": "this expression",
}  # fmt: skip
MODES: Final = tuple(WORDS)
_TIMEOUT_MS: Final = 5_000
_MOST_QUERY: Final = 1024


class ChosenMatch(Struct, frozen=True):
    """The match that was chosen.

    Attributes:
        query: text that is found at `cursor` of the stream; empty where only the block is known.
    """

    conversation_id: str
    block_id: str
    query: str
    cursor: int


class Search(ModalScreen["ChosenMatch | None"]):
    """Search; gives the match that was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "back"),
        Binding("down", "to_hits", "matches", show=False),
        Binding("ctrl+t", "mode", "text, words, phrase or expression", priority=True),
        Binding("ctrl+f", "failed", "failed blocks only", priority=True),
    ]
    CSS = """
    Search { align: center middle; }
    Search > Vertical { width: 90%; height: 90%; border: round $line2; background: $raised; }
    Search Input { border: none; height: 1; background: $sunken; padding: 0 1; }
    Search Static { height: 1; color: $muted; padding: 0 1; }
    Search OptionList { height: 1fr; border: none; background: $raised; padding: 0; }
    """

    def __init__(self, client: Any, colours: Colours) -> None:
        super().__init__()
        self.hits: list[SearchHit] = []
        self._client = client
        self._colours = colours
        self._timer: Timer | None = None
        self._mode = MODES[0]
        self._failed = False

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical():
            yield Input(placeholder="search every conversation", max_length=_MOST_QUERY)
            yield Static(self._how(), markup=False)
            yield OptionList(markup=False)

    def on_input_changed(self) -> None:
        """Search when no key was pressed for a moment."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PAUSE_SECONDS, self._begin)

    def _begin(self) -> None:
        # A search that still runs is cancelled by the next.
        self.run_worker(self._search(self.query_one(Input).value), exclusive=True, exit_on_error=True)

    async def _search(self, query: str) -> None:
        said, list_ = self.query_one(Static), self.query_one(OptionList)
        list_.clear_options()
        self.hits = []
        if not query:
            said.update(self._how())
            return
        said.update("searching …")
        try:
            found = await self._client.search(
                query, mode=self._mode, failed=True if self._failed else None, timeout_ms=_TIMEOUT_MS
            )
        except BlockptyError as problem:
            said.update(safe(str(problem)))
            return
        self.hits = found.hits
        list_.add_options([Option(self._line(hit), id=str(number)) for number, hit in enumerate(found.hits)])
        more = "; the newest of more" if found.next is not None else ""
        partly = ", not everything was looked at" if found.partial else ""
        said.update(f"{len(found.hits)} matches{more}{partly} · {self._how()}")

    def _how(self) -> str:
        which = "failed blocks" if self._failed else "all blocks"
        return f"^T: {WORDS[self._mode]} · ^F: {which}"

    def action_mode(self) -> None:
        """Look for it in the next way."""
        self._mode = MODES[(MODES.index(self._mode) + 1) % len(MODES)]
        self._begin()

    def action_failed(self) -> None:
        """Look only in failed blocks, or in all again."""
        self._failed = not self._failed
        self._begin()

    def _line(self, hit: SearchHit) -> Text:
        colours = self._colours
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        mark = SIGNS[sign(_HitEnding(hit.state, hit.exit_status))]
        text.append(f"{mark} ", colours.fail if hit.exit_status else colours.muted)
        text.append(safe(hit.conversation_id), f"bold {colours.text}")
        text.append(f" {hit.block_id} {clock(hit.ts_begin)} {safe(hit.cmd)}\n  ", colours.muted)
        begin, end = hit.snippet_span
        text.append(safe(hit.snippet[:begin]), colours.text)
        text.append(safe(hit.snippet[begin:end]), f"bold {colours.wait}")
        text.append(safe(hit.snippet[end:]), colours.text)
        return text

    def action_to_hits(self) -> None:
        """Go from the text to the matches."""
        self.query_one(OptionList).focus()

    def on_input_submitted(self) -> None:
        """Open the first match."""
        if self.hits:
            self._open(0)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        """Open the match that was chosen."""
        with contextlib.suppress(TypeError, ValueError):
            self._open(int(message.option.id or ""))
        message.stop()

    def _open(self, number: int) -> None:
        hit = self.hits[number]
        if hit.elsewhere is not None:
            self.query_one(Static).update(f"this conversation is at {safe(hit.elsewhere)}")
        else:
            exact = self._mode == "substring" and hit.part == "output"
            query = self.query_one(Input).value if exact else ""
            self.dismiss(ChosenMatch(hit.conversation_id, hit.block_id, query, hit.cursor))


class _HitEnding(Struct, frozen=True):
    """Ending of the block of a match; a match has no signal."""

    state: str
    exit_status: int | None
    signal: str | None = None
