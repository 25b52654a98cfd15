"""The conversations of a home, followed over its socket, and the list of them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, cast

from msgspec import Struct, field
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from blockpty.model.results import ConversationInfo
from blockpty.surfaces.live_socket import ConnectionChange, Frame, LiveSocket
from blockpty.surfaces.view.strips import fitted, safe, visible
from blockpty.surfaces.view.theme import Colours
from blockpty.surfaces.view.words import SIGNS, age, sign

GROUPS: Final = ("Needs you", "Running", "Idle", "Ended")
# What a conversation needs a person for, in words. A program that only reads a line needs none.
_NEEDS: Final = {
    "approval": "approval wanted", "user_input": "you are asked", "password": "password prompt",
    "storage": "the disk is full",
}  # fmt: skip
_TARGET: Final = "/v1/ws"
# Room for the longest age, such as "365 d".
_AGE_CELLS: Final = 5


class ListedConversation(Struct, frozen=True):
    """One conversation of the list, and what waits in it for a person to allow it."""

    info: ConversationInfo
    approvals: list[dict[str, Any]] = field(default_factory=list)

    @property
    def needs(self) -> list[str]:
        """What it needs a person for, in words."""
        asked = ["approval"] if self.approvals else []
        return [_NEEDS[one] for one in dict.fromkeys([*asked, *self.info.needs]) if one in _NEEDS]

    @property
    def group(self) -> str:
        """Which group of the list it stands in."""
        if self.info.live and self.needs:
            return "Needs you"
        if not self.info.live:
            return "Ended"
        return "Idle" if self.info.running is None and self.info.mode in ("idle", "starting") else "Running"

    @property
    def since(self) -> int:
        """When that began, in ms since 1970."""
        info = self.info
        if self.approvals:
            return int(self.approvals[0]["requested_ts"])
        if self.info.live and info.running is not None:
            return info.running.ts_begin
        return (info.last.ts_end if info.last is not None else None) or info.used_ts or info.created_ts

    @property
    def line(self) -> str:
        """What it is about: the command, or else the directory; safe to show."""
        info = self.info
        if self.approvals:
            text = self.approvals[0].get("text")
            return "(a secret)" if text is None else visible(text)
        command = info.running or info.last
        origin = info.shell if info.source == "shell" else info.source
        return safe((command.cmd if command is not None else None) or info.cwd or origin)


class HomeFollower:
    """All conversations of a home, by name; `changed` is called when one differs from before.

    Attributes:
        live: there is a connection.
    """

    def __init__(self, client: Any, changed: Callable[[], None]) -> None:
        self.conversations: dict[str, ListedConversation] = {}
        self.live = False
        self._changed = changed
        self._named: set[str] | None = None
        self.socket = LiveSocket(client, lambda: _TARGET)

    async def follow(self) -> None:
        """Follow the home until this is cancelled; raises BlockptyError when no server answers at first."""
        await self.socket.open()
        self.live = True
        try:
            frames = cast("AsyncGenerator[Frame, None]", self.socket.frames())
            async with contextlib.aclosing(frames):
                async for frame in frames:
                    self._take(frame)
        finally:
            await self.socket.close()

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, bytes):
            return
        if isinstance(frame, ConnectionChange):
            self.live = frame.live
        elif frame["type"] == "hello":
            self._named = set()
        elif frame["type"] == "conversation":
            info = ConversationInfo.from_dict(frame["conversation"])
            self.conversations[info.conversation_id] = ListedConversation(info, list(frame.get("approvals") or ()))
            if self._named is not None:
                self._named.add(info.conversation_id)
        elif frame["type"] == "listed" and self._named is not None:
            # What was deleted while there was no connection is named no more.
            self.conversations = {name: one for name, one in self.conversations.items() if name in self._named}
            self._named = None
        elif frame["type"] == "gone":
            self.conversations.pop(frame["conversation_id"], None)
        if self._named is None:
            self._changed()

    def groups(self) -> dict[str, list[ListedConversation]]:
        """Return the conversations by group, in each those first in which something happened last."""
        made: dict[str, list[ListedConversation]] = {name: [] for name in GROUPS}
        for one in sorted(self.conversations.values(), key=lambda one: -one.since):
            made[one.group].append(one)
        return made

    def ordered(self) -> list[str]:
        """Return the names as the list has them."""
        return [one.info.conversation_id for group in self.groups().values() for one in group]


class ConversationList(OptionList):
    """The list of conversations.

    The ages are drawn over the entries: they change all the time, and Textual draws the whole list with each change of
    an entry.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._drawn_lines: list[tuple[str | None, Text]] = []
        # By line of the list, from 0, and how they look.
        self._ages: dict[int, str] = {}
        self._age_style = Style()

    def show(
        self, groups: dict[str, list[ListedConversation]], here: str | None, now_ms: int, colours: Colours
    ) -> None:  # fmt: skip
        """Show the conversations; `here` is the one that is open."""
        width = max(10, self.size.width or 28)
        lines: list[tuple[str | None, Text]] = []
        ages: dict[int, str] = {}
        line = 0
        for group, members in groups.items():
            if members:
                lines.append((None, Text(group.upper(), colours.muted)))
                line += 1
            for one in members:
                lines.append((_option_id(one), entry := _entry(one, colours, width)))
                ages[line] = age(now_ms - one.since)
                line += entry.plain.count("\n") + 1
        names = [name for name, _ in lines]
        wanted = f"c-{here}"
        if self.has_focus and self.highlighted is not None:
            # The person is on the way to another one.
            wanted = self.get_option_at_index(self.highlighted).id or wanted
        if lines != self._drawn_lines:
            self._drawn_lines = lines
            y = self.scroll_offset.y
            self.set_options([Option(text, id=name, disabled=name is None) for name, text in lines])
            self.scroll_to(y=y, animate=False, immediate=True)
        before, self._ages, self._age_style = self._ages, ages, Style(color=colours.muted)
        for line in ages:
            if ages[line] != before.get(line):
                self.refresh_line(line)
        at = names.index(wanted) if wanted in names else None
        if self.highlighted != at:
            self.highlighted = at

    def render_line(self, y: int) -> Strip:
        """Draw a line, with the age at its end."""
        strip = super().render_line(y)
        since = self._ages.get(self.scroll_offset.y + y)
        if since is None or strip.cell_length <= len(since):
            return strip
        end = strip.cell_length - 1
        begin = end - len(since)
        # The blanks that it covers know the entry, for the mouse, and its background.
        blank = next((segment.style for segment in strip.crop(begin, end) if segment.style), Style())
        drawn = Strip([Segment(since, blank + self._age_style)], len(since))
        return Strip.join([strip.crop(0, begin), drawn, strip.crop(end)])


def _option_id(one: ListedConversation) -> str:
    return f"c-{one.info.conversation_id}"


def _entry(one: ListedConversation, colours: Colours, width: int) -> Text:
    mark, colour = _mark(one, colours)
    name = fitted(one.info.conversation_id, width - 4 - _AGE_CELLS)
    text = Text(no_wrap=True, overflow="crop", end="")
    text.append(f"{mark} ", colour)
    text.append(name, f"bold {colours.text}")
    if one.group == "Needs you":
        text.append(f"\n  {fitted(one.needs[0], width - 3)}", colours.wait)
    text.append(f"\n  {fitted(one.line, width - 3)}", colours.muted)
    return text


def _mark(one: ListedConversation, colours: Colours) -> tuple[str, str]:
    if one.group == "Needs you":
        return ("▲" if one.approvals else "●"), colours.wait
    if one.group == "Ended":
        return "–", colours.muted
    if one.group == "Running":
        return SIGNS["run"], colours.run
    if one.info.last is None:
        return "·", colours.muted
    state = sign(one.info.last)
    return SIGNS[state], {"ok": colours.ok, "fail": colours.fail}.get(state, colours.muted)
