"""The blocks of a conversation as one document of lines, of which only those that can be seen are drawn.

Rules of this file: an output never scrolls inside the document. It follows its end only while it is at the end;
otherwise what is looked at stays where it is, whatever is added above or below.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from blockpty.model.block import Block
from blockpty.surfaces.view.blocks import FILTERS
from blockpty.surfaces.view.output import SHORT, BlockOutput, shown
from blockpty.surfaces.view.strips import fitted, marked, segments, strip, visible
from blockpty.surfaces.view.theme import DARK, Colours
from blockpty.surfaces.view.words import SIGNS, author, clock, duration, ending, lines, sign, size

if TYPE_CHECKING:
    from textual import events

_MARGIN: Final = 4
_KEPT_STRIPS: Final = 2000


class _ShownPart(Struct, frozen=True):
    """How much of a block is shown: a header, a line that says what is not, and the last lines of its output."""

    note: str
    count: int

    @property
    def height(self) -> int:
        return 1 + bool(self.note) + self.count


class BlockList(ScrollView, can_focus=True):
    """The blocks of one conversation.

    Args:
        wanted: called when the output of a block that can be seen is not there, or has grown, and with whether all of
            it is wanted. It is no message: while Textual draws, those do not reach the program.

    Attributes:
        blocks: those that the filter lets through, in their order.
        selected: name of one of them; None when there is none.
        filter: one of `FILTERS`.
    """

    BINDINGS = [  # noqa: RUF012  (Textual's form)
        Binding("space,pagedown", "page_down", "Page down", show=False),
        Binding("b,pageup", "page_up", "Page up", show=False),
        Binding("home", "scroll_home", "Oldest", show=False),
    ]
    DEFAULT_CSS = "BlockList { overflow-x: hidden; overflow-y: auto; }"

    class Selected(Message):
        """Another block was selected, by a click."""

    class Oldest(Message):
        """The oldest block that is there is looked at."""

    def __init__(self, wanted: Callable[[Block, bool], None], **options: Any) -> None:
        super().__init__(**options)
        self._wanted = wanted
        self.blocks: list[Block] = []
        self.selected: str | None = None
        self.filter = "all"
        self.colours: Colours = DARK
        self.note = ""
        self._all: Sequence[Block] = ()
        self._outputs: dict[str, BlockOutput] = {}
        # Up to which byte an output was read, or is being read now, and whether all of it.
        self._read: dict[str, tuple[int, bool]] = {}
        self._modes: dict[str, str] = {}
        # Of the blocks that have a place: their names, how much of each is shown, and where it begins.
        self._arranged: list[str] = []
        self._parts: list[_ShownPart] = []
        self._tops: list[int] = [0]
        self._strips: dict[tuple[Any, ...], Strip] = {}
        self._follows = True
        # A block to go to as soon as it is there.
        self._sought: str | None = None
        # Whether lines have numbers; what is marked in them; a match to go to as soon as its output is there.
        self._numbered = False
        self._marked = ""
        self._sought_match: tuple[str, int] | None = None

    # What there is

    def clear(self) -> None:
        """Show nothing, for another conversation."""
        self._outputs.clear()
        self._read.clear()
        self._modes.clear()
        self.selected, self.filter, self._follows, self._sought = None, "all", True, None
        self._sought_match = None
        self.show(())

    def show(self, blocks: Sequence[Block]) -> None:
        """Show these blocks, as far as the filter lets them through."""
        before, selected = self.blocks, self.selected
        self._all = blocks
        self.blocks = [block for block in blocks if FILTERS[self.filter](block)]
        names = {block.block_id for block in self.blocks}
        if self.selected not in names or self._follows:
            self.selected = self.blocks[-1].block_id if self.blocks else None
        if self._arrange() or selected != self.selected or not self.blocks:
            self.refresh()
        else:
            for number, (old, new) in enumerate(zip(before, self.blocks, strict=True)):
                if old is new:
                    continue
                if old.state == new.state == "running" and new.block_id in self._outputs:
                    # It has grown, and is drawn when that has been read.
                    if self._visible(number):
                        self._ask(new, whole=self._modes.get(new.block_id) == "all")
                else:
                    self._refresh_block(number)
        if self._sought is not None and (at := self._index(self._sought)) is not None:
            self._sought = None
            self.select(at, top=True)

    def seek(self, block_id: str) -> None:
        """Go to a block, now or when it is there."""
        self.filter, self._sought = "all", block_id
        self.show(self._all)

    def seek_match(self, block_id: str, number: int) -> None:
        """Go to a match of what is marked in a block, from 0, and open its output."""
        self._sought_match = (block_id, number)
        self._modes[block_id] = "all"
        self.seek(block_id)
        self._to_match()

    def _to_match(self) -> None:
        if self._sought_match is None or not self._marked:
            return
        block_id, number = self._sought_match
        at, output = self._index(block_id), self._outputs.get(block_id)
        if at is None or output is None or output.partial:
            return
        self._sought_match = None
        wanted, seen = self._marked.casefold(), 0
        for line in range(len(output.raw)):
            seen += "".join(run.text for run in output.line(line)).casefold().count(wanted)
            if seen > number:
                y = self._tops[at] + 1 + bool(self._parts[at].note) + line - self.size.height // 2
                self._follows = False
                # By force: Textual does not know yet that it has become so high that it scrolls.
                self.scroll_to(y=max(0, y), animate=False, immediate=True, force=True)
                self._follows = False
                break
        self.refresh()

    def mark(self, text: str) -> None:
        """Mark a text where it stands in outputs, in upper and lower case."""
        self._marked = text
        self._strips.clear()
        self.refresh()

    def number_lines(self) -> None:
        """Show the numbers of lines, or hide them again."""
        self._numbered = not self._numbered
        self._strips.clear()
        self.refresh()

    def choose(self, name: str) -> None:
        """Let only those blocks through that this filter does."""
        self.filter, self._follows = name, True
        self.show(self._all)

    def give(self, block_id: str, output: BlockOutput) -> None:
        """Take the output of a block."""
        self._outputs[block_id] = output
        self._strips = {key: made for key, made in self._strips.items() if key[0] != block_id}
        at = self._index(block_id)
        if self._arrange() or at is None:
            self.refresh()
        else:
            self._refresh_block(at)
        self._to_match()

    def not_read(self, block_id: str) -> None:
        """Take note that an output could not be read; it is asked for again when it is looked at again."""
        self._read.pop(block_id, None)

    def output(self, block_id: str) -> BlockOutput | None:
        """Return the output of a block, if it was read."""
        return self._outputs.get(block_id)

    def recolour(self, colours: Colours) -> None:
        """Take other colours."""
        self.colours = colours
        self._strips.clear()
        self.refresh()

    @property
    def selected_block(self) -> Block | None:
        """The selected block."""
        return next((block for block in reversed(self.blocks) if block.block_id == self.selected), None)

    # Where it stands

    def _arrange(self) -> bool:
        """Give each block its place, and keep in place what is looked at; return whether one has another place now."""
        anchor, before = self._anchor(), (self._arranged, self._tops)
        self._arranged = [block.block_id for block in self.blocks]
        self._parts = [self._part(block) for block in self.blocks]
        tops = [0]
        for part in self._parts:
            tops.append(tops[-1] + part.height)
        self._tops = tops
        self.virtual_size = Size(self.size.width, tops[-1])
        if self._follows:
            self.scroll_end(animate=False, immediate=True, force=True)
        elif anchor is not None:
            block_id, below = anchor
            at = self._index(block_id)
            if at is not None:
                self.scroll_to(y=tops[at] + min(below, self._parts[at].height - 1), animate=False, immediate=True)
        return before != (self._arranged, self._tops)

    def _visible(self, at: int) -> range:
        """Return in which rows of this widget a block is."""
        y = int(self.scroll_offset.y)
        return range(max(0, self._tops[at] - y), min(self.size.height, self._tops[at + 1] - y))

    def _refresh_block(self, at: int) -> None:
        """Redraw the visible rows of a block."""
        if rows := self._visible(at):
            self.refresh(Region(0, rows.start, self.size.width, len(rows)))

    def _anchor(self) -> tuple[str, int] | None:
        """Return the block in the first row, and which row of it that is."""
        y = int(self.scroll_offset.y)
        at = bisect_right(self._tops, y) - 1
        return (self._arranged[at], y - self._tops[at]) if 0 <= at < len(self._arranged) else None

    def _part(self, block: Block) -> _ShownPart:
        output, mode = self._outputs.get(block.block_id), self._modes.get(block.block_id, "")
        if output is None or mode == "none":
            return _ShownPart("", 0)
        if output.whole_screen:
            return _ShownPart("draws on the whole screen", 0)
        count, state = len(output.raw), sign(block)
        wanted = count if mode == "all" else shown(count, state)
        if output.left:
            whole = _length(block)
            read = size(max(0, whole - output.left))
            return _ShownPart(f"the first {read} of {size(whole)}; blockpty read shows the rest", wanted)
        if output.partial and mode != "all":
            wanted = min(wanted, shown(SHORT + 1, state))
            note = f"{size(block.out_bytes)} in all, folded (z shows them)"
        else:
            note = f"{count - wanted:,} lines folded (z shows them)"
        noted = (wanted < count or output.partial) and state != "ok" and mode != "all"
        return _ShownPart(note if noted else "", wanted)

    def _index(self, block_id: str) -> int | None:
        return next((at for at, block in enumerate(self.blocks) if block.block_id == block_id), None)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end while it is looked at."""
        super().watch_scroll_y(old_value, new_value)
        if old_value != new_value:
            self._follows = new_value >= self.max_scroll_y
            if new_value <= 0 < old_value:
                self.post_message(self.Oldest())

    def on_resize(self) -> None:
        """Draw for another width."""
        self._strips.clear()
        self._arrange()
        self.refresh()

    # Moving and folding

    def step(self, by: int) -> None:
        """Select the next block, or the previous one."""
        if self.blocks:
            at = self._index(self.selected or "")
            self.select(len(self.blocks) - 1 if at is None else max(0, min(len(self.blocks) - 1, at + by)))

    def select(self, at: int, *, top: bool = False) -> None:
        """Select a block by its place, and have it seen; `top`: with its header in the first row."""
        self.selected = self.blocks[at].block_id
        begin, end, height = self._tops[at], self._tops[at + 1], self.size.height
        y = int(self.scroll_offset.y)
        if top or begin < y or end - begin > height:
            y = begin
        elif end > y + height:
            y = end - height
        self._follows = False
        self.scroll_to(y=y, animate=False, immediate=True)
        self._follows = self.scroll_offset.y >= self.max_scroll_y
        self.refresh()

    def to_begin(self, *, following: bool = False) -> None:
        """Go to the beginning of the selected block, or of the one after it."""
        at = self._index(self.selected or "")
        if at is not None:
            self.select(min(len(self.blocks) - 1, at + following), top=True)

    def to_end(self) -> None:
        """Go to the newest block, and follow it."""
        self._follows = True
        self.selected = self.blocks[-1].block_id if self.blocks else None
        self._arrange()
        self.refresh()

    def fold(self, mode: str = "") -> None:
        """Show all lines of the selected block, or, if they are shown, as many as it has without being opened."""
        block = self.selected_block
        if block is None:
            return
        output = self._outputs.get(block.block_id)
        if mode == "":
            mode = "" if self._modes.get(block.block_id) == "all" else "all"
        self._modes[block.block_id] = mode
        self._follows = False
        if mode == "all" and output is not None and output.partial:
            self._ask(block, whole=True)
        self._arrange()
        self.refresh()

    def action_scroll_home(self) -> None:
        """Go to the oldest block that is there."""
        if self.blocks:
            self.select(0, top=True)
            self.post_message(self.Oldest())

    def on_click(self, event: events.Click) -> None:
        """Select the block that was clicked."""
        at = bisect_right(self._tops, int(self.scroll_offset.y) + event.y) - 1
        if 0 <= at < len(self.blocks):
            self.selected = self.blocks[at].block_id
            self.refresh()
            self.post_message(self.Selected())

    # Drawing

    def _ask(self, block: Block, *, whole: bool = False) -> None:
        """Have an output read, once for each length that it has."""
        length = _length(block)
        if self._read.get(block.block_id, (-1, False)) not in ((length, whole), (length, True)):
            self._read[block.block_id] = (length, whole)
            self._wanted(block, whole)

    def render_line(self, y: int) -> Strip:
        """Return one row of what can be seen."""
        width = self.size.width
        row = int(self.scroll_offset.y) + y
        at = bisect_right(self._tops, row) - 1
        if at >= len(self.blocks):
            words = self.note if y == 0 and not self.blocks else ""
            return strip([(f"  {words}", self.colours.muted)], width, self.colours.surface)
        block, part = self.blocks[at], self._parts[at]
        self._ask(block, whole=self._modes.get(block.block_id) == "all")
        line = row - self._tops[at]
        is_selected = block.block_id == self.selected
        key = (block.block_id, block.state, block.out_bytes, line, part, is_selected, width, self.has_focus)
        made = self._strips.get(key)
        if made is None:
            if len(self._strips) > _KEPT_STRIPS:
                self._strips.clear()
            made = self._strips[key] = self._draw(block, part, line, is_selected, width)
        return made

    def _draw(self, block: Block, part: _ShownPart, line: int, is_selected: bool, width: int) -> Strip:
        colours, state = self.colours, sign(block)
        ground = colours.selected if is_selected else colours.surface
        edge = {"fail": colours.fail, "run": colours.run}.get(state, colours.accent if is_selected else ground)
        margin = strip([("▌ ", edge)], 2, ground)
        room = width - 2
        if line == 0:
            rest = self._header(block, room, ground)
        elif part.note and line == 1:
            rest = strip([(f"  ── {part.note} ──", colours.muted)], room, ground)
        else:
            output = self._outputs[block.block_id]
            number = len(output.raw) - part.count + line - 1 - bool(part.note)
            runs = marked(segments(output.line(number), colours, ground, exact=False), self._marked, colours)
            gutter = Segment("  ", Style(bgcolor=ground))
            if self._numbered and not output.partial:
                gutter = Segment(f"{number + 1:>6}  ", Style(bgcolor=ground, color=colours.muted))
            rest = Strip([gutter, *runs]).adjust_cell_length(room, Style(bgcolor=ground))
        return Strip([*margin, *rest], width)

    def _header(self, block: Block, width: int, ground: str) -> Strip:
        colours, state = self.colours, sign(block)
        look = {"ok": colours.ok, "fail": colours.fail, "run": colours.run}.get(state, colours.muted)
        ended = ending(block)
        meta = f"  {clock(block.ts_begin)}{duration(block.duration_ms):>10}"
        if width >= 60:
            meta += f"{self._amount(block):>13}"
        meta += f"  {author(block.author)} "
        command = visible(block.cmd) or ("output of no command" if block.kind == "background" else "typed by hand")
        right = (f"  {ended}" if ended else "") + meta
        first, space, rest = fitted(command, max(4, width - 2 - cell_len(right))).partition(" ")
        gap = max(0, width - 2 - cell_len(first + space + rest) - cell_len(right))
        return strip(
            [
                (f"{SIGNS[state]} ", look), (first, f"bold {colours.text}" if block.cmd else colours.muted),
                (space + rest + " " * gap, colours.text if block.cmd else colours.muted),
                (f"  {ended}" if ended else "", f"bold {look}"),
                (meta, colours.muted),
            ],
            width,
            ground,
        )  # fmt: skip

    def _amount(self, block: Block) -> str:
        output = self._outputs.get(block.block_id)
        if block.out_bytes == 0:
            return ""
        if output is None or output.partial or output.left or output.whole_screen:
            return size(block.out_bytes)
        return lines(len(output.raw))


def _length(block: Block) -> int:
    """Return how many bytes of the stream the output of a block takes, so far if it runs."""
    return block.out_bytes if block.span[1] is None else block.span[1] - block.span[0]
