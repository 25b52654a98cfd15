"""The program itself: layout, keys, and what is passed between the parts.

Rules of this file: it shows and asks; every rule is the server's. Clocks are arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import OptionList, Static

from blockpty.errors import BlockptyError, NotFound
from blockpty.model.block import Block
from blockpty.surfaces.live_socket import ConnectionChange, Frame
from blockpty.surfaces.view.approvals import ApprovalBar
from blockpty.surfaces.view.block_list import BlockList
from blockpty.surfaces.view.blocks import ASKED
from blockpty.surfaces.view.conversation import ViewedConversation
from blockpty.surfaces.view.dialogs import Always, Help, Reason
from blockpty.surfaces.view.finding import Find
from blockpty.surfaces.view.home import ConversationList, HomeFollower
from blockpty.surfaces.view.inspector import Inspector
from blockpty.surfaces.view.key_line import KeyLine
from blockpty.surfaces.view.keys import bindings
from blockpty.surfaces.view.output import read_output
from blockpty.surfaces.view.replaying import ReplayView
from blockpty.surfaces.view.search import ChosenMatch, Search
from blockpty.surfaces.view.strips import safe
from blockpty.surfaces.view.terminal import MOST_PER_SECOND, TerminalView
from blockpty.surfaces.view.theme import NAMES, Colours, themes
from blockpty.surfaces.view.words import sign, size

if TYPE_CHECKING:
    from textual.binding import BindingType
    from textual.timer import Timer

# Under so many columns the screen is a tab, and the list of conversations as well.
WIDE, MEDIUM = 140, 80
RUNNING_SECONDS: Final = 0.3
AGE_SECONDS: Final = 1.0


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_ms() -> float:
    return time.monotonic() * 1000


class _WholeScreen(Screen[None]):
    """Screen that the program draws on. Its widgets cover it, so nothing of it is drawn with each of their changes."""

    BLANK = True


class _Columns(Horizontal):
    """Holds widgets that cover it.

    Textual looks at all of a widget for each change in the container that the widget is in, so each column is one, and
    each line above and below them.
    """

    BLANK = True


class ViewProgram(App[None], inherit_bindings=False):
    """The program `blockpty view`.

    Args:
        client: a client of the server.
        conversation_id: the one that is open first; None: the first of the list.
        read_only: nothing is typed and nothing is answered.
        only_screen: only this conversation's screen is shown, and nothing is typed, as `blockpty watch` does.
        page_url: address of the server's page, for links; "" where that is not known.
        wall_ms: the time of day, in ms since 1970.
        steady_ms: a clock that never goes back, in ms.
    """

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    CSS = """
    Screen { layout: vertical; background: $background; color: $text; }
    .bar { height: 1; }
    #header { height: 1; background: $surface; color: $muted; }
    #banner { height: auto; max-height: 3; padding: 0 1; background: $wait-ground; color: $wait; display: none; }
    #parts { height: 1fr; }
    #left { width: auto; }
    #middle { width: 1fr; }
    #list { width: 28; height: 1fr; background: $background; border: none; padding: 0; scrollbar-size: 1 1; }
    #list > .option-list--option { padding: 0; }
    #list > .option-list--option-disabled { color: $muted; }
    #work { border-left: solid $line; background: $surface; }
    #blocks { background: $surface; height: 1fr; scrollbar-size: 1 1; }
    #screen { width: 1fr; border-left: solid $line; background: $term; padding: 0 1; }
    #screen.typing { border-left: thick $user; }
    #approval { height: auto; border: round $wait-line; background: $wait-ground; padding: 0 1; margin: 0 1; }
    ViewProgram.medium #screen, ViewProgram.narrow #screen { border-left: none; }
    * { scrollbar-color: $line2; scrollbar-color-hover: $muted; scrollbar-color-active: $muted;
        scrollbar-background: $sunken; scrollbar-background-hover: $sunken; scrollbar-background-active: $sunken;
        scrollbar-corner-color: $sunken; scrollbar-size: 1 1; }
    """

    def __init__(
        self,
        client: Any,
        conversation_id: str | None = None,
        *,
        read_only: bool = False,
        only_screen: bool = False,
        page_url: str = "",
        wall_ms: Callable[[], int] = _wall_ms,
        steady_ms: Callable[[], float] = _steady_ms,
    ) -> None:
        self.ready = False
        super().__init__()
        self.client = client
        self.read_only = read_only or only_screen
        self.only_screen = only_screen
        self.page_url = page_url
        self.failure: BaseException | None = None
        self.here = conversation_id
        self.conversation: ViewedConversation | None = None
        self.home = HomeFollower(client, self._home_changed)
        self.tab = "screen" if only_screen else "blocks"
        self._wall_ms = wall_ms
        self._steady_ms = steady_ms
        self._wanted: dict[str, tuple[Block, bool]] = {}
        # The number of a block to go to, until as much was read.
        self._sought: int | None = None
        self._reading: set[str] = set()
        self._drawing_home: Timer | None = None
        self._drawing: Timer | None = None
        self._asked = False
        self._following: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        # In the order in which it was typed.
        self._typed: asyncio.Queue[bytes | Mapping[str, Any]] = asyncio.Queue()
        for theme in themes():
            self.register_theme(theme)
        self.theme = "blockpty-dark"
        # Nothing moves that did not change.
        self.animation_level = "none"

    # Layout

    def compose(self) -> ComposeResult:
        """Make the parts."""
        self.list = ConversationList(id="list", markup=False)
        self.blocks = BlockList(self._want, id="blocks")
        self.approval = ApprovalBar(self._steady_ms, id="approval")
        self.terminal = TerminalView(self._acknowledge, id="screen")
        self.keys = KeyLine()
        self._header_shown, self._banner_shown = Text(), ""
        # Which keys apply, as the last line shows it.
        self._actions = {one.action for one in bindings()}
        self._applying: dict[str, bool | None] = {}
        self.header = Static("", id="header", markup=False)
        self.banner = Static("", id="banner", markup=False)
        with _Columns(classes="bar"):
            yield self.header
        yield self.banner
        with _Columns(id="parts"):
            with _Columns(id="left"):
                yield self.list
            with _Columns(id="middle"), Vertical(id="work"):
                yield self.blocks
                yield self.approval
            yield self.terminal
        with _Columns(classes="bar"):
            yield self.keys

    def get_default_screen(self) -> Screen[None]:
        """Return what the program draws on."""
        return _WholeScreen(id="_default")

    @property
    def colours(self) -> Colours:
        """The colours of the theme."""
        return NAMES[self.theme]

    def on_mount(self) -> None:
        """Begin to follow."""
        self.ready = True
        self.theme_changed_signal.subscribe(self, lambda theme: self._recolour())
        self._recolour()
        self._arrange()
        if not self.only_screen:
            self.set_interval(AGE_SECONDS, self._show_ages)
            self._start(self._follow_home())
        self._start(self._send_typed())
        if self.here is not None:
            self.enter(self.here)
        (self.terminal if self.only_screen else self.blocks).focus()

    async def on_unmount(self) -> None:
        """Stop all that runs."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            # A defect ends the program, and is shown when the terminal is as before.
            self._leave(problem)

    def on_resize(self) -> None:
        """Show as many parts as fit."""
        self.call_later(self._arrange)

    def _arrange(self) -> None:
        width = self.size.width
        self.set_class(width < MEDIUM or self.only_screen, "narrow")
        self.set_class(MEDIUM <= width < WIDE, "medium")
        wide, medium = width >= WIDE, width >= MEDIUM
        self.list.display = not self.only_screen and (medium or self.tab == "list")
        shows_blocks = wide or self.tab == "blocks" or (medium and self.tab == "list")
        self.query_one("#middle").display = shows_blocks and not self.only_screen
        self.terminal.display = self.only_screen or wide or self.tab == "screen"
        # Shares of the picture: the screen has room for 80 columns where there is room.
        # While the person types, they see all columns, if they can.
        cols = self.conversation.status.cols if self.conversation and self.conversation.status else 80
        share = width - 28 - (50 if self.terminal.typing else 78)
        self.terminal.styles.width = max(60, min(cols + 4, share)) if wide and not self.only_screen else "1fr"

    def _recolour(self) -> None:
        self.blocks.recolour(self.colours)
        self.terminal.recolour(self.colours)
        self.keys.recolour(self.colours)
        self._show_all()

    # What is followed

    async def _follow_home(self) -> None:
        try:
            await self.home.follow()
            self._leave(NotFound("the server has closed the connection", hint="blockpty view opens it again"))
        except BlockptyError as problem:
            self._leave(problem)

    def _leave(self, problem: BaseException) -> None:
        self.failure = problem
        self.exit()

    def enter(self, conversation_id: str) -> None:
        """Open a conversation in place of the one that is open."""
        if self._following is not None:
            self._following.cancel()
        self.here = conversation_id
        self._wanted.clear()
        self._sought = None
        self.blocks.clear()
        self.blocks.note = "reading …"
        self.terminal.clear()
        self.terminal.typing = False
        self.conversation = ViewedConversation(self.client, conversation_id, _Notified(self, conversation_id))
        self._following = self._start(self._follow(self.conversation))
        self._show_all()

    async def _follow(self, conversation: ViewedConversation) -> None:
        try:
            await conversation.follow()
        except BlockptyError as problem:
            if self.only_screen:
                self._leave(problem)
                return
            self.say(str(problem))

    def loaded(self) -> None:
        """Show a conversation that was read."""
        self.blocks.note = "no command has run here yet"
        self._show_changed()
        self._read_back()

    def changed(self, block_ids: set[str]) -> None:
        """Show what has changed in the open conversation, together with what changes in the same moment."""
        if self._drawing is None and self.is_running:  # Textual stops no timer that is set while the program leaves
            self._drawing = self.set_timer(1 / MOST_PER_SECOND, self._show_changed)

    def _show_changed(self) -> None:
        self._drawing = None
        if self.conversation is None or not self.screen_stack:  # a timer may come when the program is leaving
            return
        self.blocks.show(self.conversation.listed(self.blocks.filter))
        self._measure()
        self._show_control()
        self._show_header()
        # Each time, Textual asks of every key whether it applies.
        applying = {action: self.check_action(action, ()) for action in self._actions}
        if applying != self._applying:
            self._applying = applying
            self.refresh_bindings()

    async def frame(self, frame: Frame) -> None:
        """Take a frame of the open conversation."""
        if isinstance(frame, ConnectionChange):
            return
        if isinstance(frame, Mapping) and frame.get("type") == "error":
            self.say(f"{frame['error']['message']} ({frame['error']['code']})")
        elif isinstance(frame, Mapping) and frame.get("type") == "asking":
            words = {
                "waits": f"{frame['who']} has control, and is asked for it: t stops that",
                "kept": f"{frame['who']} keeps control",
                "ended": "You do not ask for control any more",
            }
            self.say(words[frame["state"]])
        elif isinstance(frame, Mapping) and frame.get("type") == "end":
            self._show_control()
        else:
            self.terminal.take(frame)
            self._show_caption()

    async def _acknowledge(self, cursor: int) -> None:
        if self.conversation is not None:
            await self.conversation.socket.acknowledge(cursor)

    # Outputs

    def _want(self, block: Block, whole: bool) -> None:
        block_id = block.block_id
        self._wanted[block_id] = (block, whole)
        if block_id not in self._reading and self.conversation is not None:
            self._reading.add(block_id)
            self._start(self._read(block_id, self.conversation))

    async def _read(self, block_id: str, viewed: ViewedConversation) -> None:
        try:
            conversation = await self.client.conversation(viewed.id)
            while viewed is self.conversation and (found := self._wanted.pop(block_id, None)) is not None:
                block, whole = found
                try:
                    output = await read_output(conversation, block, whole=whole)
                except BlockptyError as problem:
                    if viewed.live:
                        self.say(f"{block_id} cannot be read: {problem}")
                    self.blocks.not_read(block_id)
                    return
                if viewed is self.conversation:
                    self.blocks.give(block_id, output)
                if block.state == "running":
                    await asyncio.sleep(RUNNING_SECONDS)
        finally:
            self._reading.discard(block_id)

    @on(BlockList.Oldest)
    def _read_earlier(self) -> None:
        # What passes a filter the server knows was asked for when it was chosen.
        if self.conversation is not None and self.conversation.earlier and self.blocks.filter not in ASKED:
            self._start(self._ask(self.conversation.read_earlier()))

    async def _ask(self, asked: Coroutine[Any, Any, Any], done: str = "") -> None:
        """Ask the server for something, and say what it answers."""
        try:
            await asked
        except BlockptyError as problem:
            self.say(str(problem))
        else:
            if done:
                self.say(done)

    # What is shown

    def say(self, text: str) -> None:
        """Say something for a while."""
        self.notify(safe(text), markup=False)

    def _home_changed(self) -> None:
        if self._drawing_home is None and self.is_running:
            self._drawing_home = self.set_timer(0.05, self._show_home)

    def _show_home(self) -> None:
        self._drawing_home = None
        if not self.screen_stack:  # a timer may come when the program is leaving
            return
        if self.here is None and self.home.conversations:
            self.enter(self.home.ordered()[0])
        elif self.here is None:
            self.blocks.note = "no conversation yet: blockpty open demo starts one"
            self.blocks.refresh()
        self._show_ages()

    def _show_ages(self) -> None:
        if not self.screen_stack:  # as above
            return
        if self.list.display:
            self.list.show(self.home.groups(), self.here, self._wall_ms(), self.colours)
        self._show_approval()
        self._show_banner()
        self._show_header()

    def _show_all(self) -> None:
        self._show_ages()
        self._show_control()

    def _show_approval(self) -> None:
        listed = self.home.conversations.get(self.here or "")
        waiting = listed.approvals if listed is not None else []
        refused = "read-only: it is answered elsewhere" if self.read_only else ""
        if self.terminal.typing:
            refused = "your keys go to the program; ^] hands back"
        question = waiting[0] if waiting else None
        self.approval.show(question, self._wall_ms(), self.colours, refused=refused)
        if self.approval.display != self._asked:
            self._asked = self.approval.display
            self.refresh_bindings()

    def _show_header(self) -> None:
        colours, text = self.colours, Text(no_wrap=True, overflow="ellipsis", end="")
        text.append(" blockpty", f"bold {colours.text}")
        viewed = self.conversation
        if viewed is not None:
            text.append(f"  {viewed.id}", colours.text)
            words, colour = self._control()
            text.append(f"  {words}", colour)
            status = viewed.status
            if status is not None:
                if status.cwd:
                    text.append(f"  {safe(status.cwd)}")
                text.append(f"  {status.cols}×{status.rows}")
            blocks = viewed.blocks.list
            more = "+" if viewed.earlier else ""
            text.append(f"  {len(blocks)}{more} blocks")
            failed = sum(sign(block) == "fail" for block in blocks)
            if failed:
                text.append(f"  {failed}{more} failed", colours.fail)
            chosen = self.blocks.filter
            if chosen != "all":
                more = "+" if viewed.has_more(chosen) else ""
                text.append(f"  only {chosen}: {len(self.blocks.blocks)}{more} (0 shows all)", colours.wait)
        right = Text()
        needed = sum(one.group == "Needs you" for one in self.home.conversations.values())
        if needed:
            right.append(f"▲ {needed} need you  ", colours.wait)
        live = (viewed is None or viewed.live) and (self.home.live or self.only_screen)
        lost = "○ reconnecting " if self.home.conversations or viewed is not None else "○ connecting "
        right.append("● live " if live else lost, colours.ok if live else colours.wait)
        room = max(0, self.size.width - right.cell_len)
        text.truncate(room, overflow="ellipsis", pad=True)
        if (shown := text + right) != self._header_shown:
            self._header_shown = shown
            self.header.update(shown, layout=False)

    def _control(self) -> tuple[str, str]:
        """Return who types, in words, and the colour for it."""
        colours, viewed = self.colours, self.conversation
        status = viewed.status if viewed is not None else None
        if viewed is None or status is None:
            return "", colours.muted
        if status.mode == "exited":
            return "ended", colours.muted
        if status.halted is not None:
            return f"halted by {safe(status.halted)}", colours.fail
        if viewed.mine:
            return "you type", colours.user
        if status.control == "agent":
            return "agent types", colours.agent
        return f"{safe(status.control_by or 'a person')} types", colours.user

    def _show_control(self) -> None:
        viewed = self.conversation
        typing = viewed is not None and viewed.mine and not self.read_only
        if typing != self.terminal.typing:
            self.terminal.typing = typing
            self.terminal.set_class(typing, "typing")
            if typing:
                self.tab = "screen"
                self._arrange()
                self.terminal.focus()
                self.refresh_bindings()
            else:
                self._arrange()
                self.approval.shown.rearm()
                if not self.only_screen:
                    self.blocks.focus()
            self._show_approval()
        self._show_banner()
        self._show_caption()

    def _show_banner(self) -> None:
        banner = self._banner()
        if banner != self._banner_shown:
            self._banner_shown = banner
            self.banner.display = bool(banner)
            self.banner.update(Text(banner))

    def _banner(self) -> str:
        viewed = self.conversation
        status = viewed.status if viewed is not None else None
        if viewed is None or status is None:
            return ""
        if not viewed.live and status.mode != "exited":
            return "The connection is lost; trying again. What you type is not sent."
        if viewed.askers:
            return f"{safe(viewed.askers[0])} asks for control. ^] hands it over."
        if status.halted is not None:
            return f"{safe(status.halted)} has halted agents: they may type nothing. blockpty release allows it again."
        listed = self.home.conversations.get(viewed.id)
        needs = listed.info.needs if listed is not None else []
        if "storage" in needs:
            return "The disk is full. Programs that print wait, and nothing is lost: make room."
        if "password" in needs:
            typing = "" if viewed.mine or self.read_only else " t takes over."
            return f"A program asks for a password: what you type is not recorded, not even its length.{typing}"
        if "user_input" in needs and not self.read_only:
            asked = f"You are asked: {safe(viewed.message)}" if viewed.message else "You are asked to do something here"
            done = "^] says that it is done" if viewed.mine else "t takes over, X says that it was not done"
            return f"{asked.rstrip('.')}. {done}."
        if "line" in needs and not viewed.mine and not self.read_only:
            return "A program waits for a line. t takes over, to answer it."
        if status.integrity != "ok":
            return f"The record is {status.integrity}: {safe(status.integrity_reason or 'no reason is known')}."
        return ""

    def _show_caption(self) -> None:
        viewed = self.conversation
        if viewed is None or viewed.status is None:
            return
        status = viewed.status
        words = [f"Screen {status.cols}×{status.rows}"]
        words.append("live" if viewed.live else "reconnecting")
        words.append("you type, ^] hands back" if viewed.mine else self._control()[0])
        self.terminal.set_caption(" · ".join(word for word in words if word))

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Say whether a key applies now; those that do not are left out of the last line."""
        if not self.ready:
            return True
        viewed = self.conversation
        if action == "hand_back":
            return viewed is not None and viewed.mine
        if self.terminal.typing and self.focused is self.terminal:
            # Every other key goes to the program.
            return False
        if action in ("take_over", "stop", "stop_plain"):
            runs = viewed is not None and viewed.status is not None and viewed.status.mode != "exited"
            return runs and not self.read_only and not (action == "take_over" and viewed is not None and viewed.mine)
        if action.startswith(("approve", "refuse")):
            return self.approval.display and not self.read_only and not self.terminal.typing
        if action == "cancel_request":
            listed = self.home.conversations.get(self.here or "")
            return not self.read_only and listed is not None and "user_input" in listed.info.needs
        if action == "show_screen":
            return self.size.width < WIDE and not self.only_screen
        if action == "show_list":
            return not self.only_screen
        if self.only_screen:
            return action in ("help", "theme", "quit", "back")
        return True

    def action_next(self) -> None:
        self.blocks.step(1)

    def action_previous(self) -> None:
        self.blocks.step(-1)

    def action_begin(self) -> None:
        self.blocks.to_begin()

    def action_following(self) -> None:
        self.blocks.to_begin(following=True)

    def action_end(self) -> None:
        self.blocks.to_end()

    def action_open(self) -> None:
        self.blocks.fold()

    def action_fold(self) -> None:
        self.blocks.fold()

    def action_failed(self) -> None:
        self._choose("failed")

    def action_slow(self) -> None:
        self._choose("slow")

    def action_by_agent(self) -> None:
        self._choose("agent")

    def action_by_user(self) -> None:
        self._choose("you")

    def action_on_screen(self) -> None:
        self._choose("screen")

    def action_all(self) -> None:
        self._choose("all")

    def _choose(self, name: str) -> None:
        self.blocks.note = f"no block passes the filter {name!r}; 0 shows all"
        self.blocks.choose(name)
        if self.conversation is not None:
            self.blocks.show(self.conversation.listed(name))
            self._start(self._ask(self.conversation.read_matching(name)))
        self._show_header()
        self._measure()

    def _measure(self) -> None:
        """Have it known which blocks used the screen, when only those are wanted: their outputs are read for that."""
        if self.blocks.filter == "screen" and self.conversation is not None:
            self._start(self._ask(self.conversation.measure()))

    def action_copy_output(self) -> None:
        block = self.blocks.selected_block
        output = self.blocks.output(block.block_id) if block is not None else None
        if block is not None and output is not None and self.conversation is not None:
            self._start(self._copy_output(block, self.conversation.id))

    async def _copy_output(self, block: Block, conversation_id: str) -> None:
        async def read() -> None:
            conversation = await self.client.conversation(conversation_id)
            output = await read_output(conversation, block, whole=True)
            self.copy_to_clipboard(output.plain())
            self.say(f"copied; the last {size(output.left)} are left out" if output.left else "output copied")

        await self._ask(read())

    def action_copy_command(self) -> None:
        block = self.blocks.selected_block
        if block is not None:
            self.copy_to_clipboard(block.cmd)
            self.say("command copied")

    def action_copy_link(self) -> None:
        block = self.blocks.selected_block
        if block is None or self.here is None:
            return
        if not self.page_url:
            self.say("the address of the page is not known")
            return
        self.copy_to_clipboard(f"{self.page_url}/c/{self.here}/{block.block_id}")
        self.say("link to this block copied")

    def action_line_numbers(self) -> None:
        self.blocks.number_lines()

    def action_inspect(self) -> None:
        self._inspect(diff=False)

    def action_diff(self) -> None:
        self._inspect(diff=True)

    def _inspect(self, *, diff: bool) -> None:
        block, viewed = self.blocks.selected_block, self.conversation
        if block is not None and viewed is not None:
            all_blocks = viewed.blocks.list
            self.push_screen(Inspector(self.client, viewed.id, block, all_blocks, self.colours, diff=diff))

    def action_find(self) -> None:
        if self.here is not None:
            self._go("blocks")
            self._find()

    def _find(self, query: str = "", cursor: int = 0) -> None:
        def go(block_id: str, number: int) -> None:
            self.blocks.seek_match(block_id, number)
            self._have_read(block_id)

        if self.here is not None:
            self.push_screen(Find(self.client, self.here, self.blocks.mark, go, query, cursor))

    def action_replay(self) -> None:
        if self.here is not None:
            block = self.blocks.selected_block
            cursor = block.span[0] if block is not None else 0
            self.push_screen(ReplayView(self.client, self.here, cursor, self.colours))

    def action_cancel_request(self) -> None:
        viewed = self.conversation
        if viewed is not None:

            async def cancel() -> None:
                await (await self.client.conversation(viewed.id)).release_control(cancelled=True)

            self._start(self._ask(cancel(), "the agent gets that it was not done"))

    def action_take_over(self) -> None:
        asks = self.conversation is not None and self.conversation.asks
        self._send({"type": "stop_asking" if asks else "ask_control"})

    def action_hand_back(self) -> None:
        self._send({"type": "release_control"})

    def _send(self, frame: bytes | Mapping[str, Any]) -> None:
        if not self.read_only:
            self._typed.put_nowait(frame)

    async def _send_typed(self) -> None:
        while True:
            frame = await self._typed.get()
            if self.conversation is None or not await self.conversation.socket.send(frame):
                self.say("there is no connection: it was not sent")

    def action_stop(self) -> None:
        viewed = self.conversation
        if viewed is not None:

            async def interrupt() -> None:
                await (await self.client.conversation(viewed.id)).interrupt()

            self._start(self._ask(interrupt(), "interrupted (SIGINT)"))

    def action_stop_plain(self) -> None:
        self.action_stop()

    def action_show_screen(self) -> None:
        self._go("blocks" if self.tab == "screen" else "screen")

    def action_show_list(self) -> None:
        self._go("list" if self.focused is not self.list else "blocks")

    def _go(self, tab: str) -> None:
        self.tab = tab
        self._arrange()
        self._show_ages()
        {"list": self.list, "screen": self.terminal}.get(tab, self.blocks).focus()
        self.refresh_bindings()

    def action_next_conversation(self) -> None:
        self._step(1)

    def action_previous_conversation(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        names = self.home.ordered()
        if names:
            at = names.index(self.here) + by if self.here in names else 0
            self.enter(names[max(0, min(len(names) - 1, at))])

    def action_theme(self) -> None:
        self.theme = "blockpty-light" if self.theme == "blockpty-dark" else "blockpty-dark"

    def action_search(self) -> None:
        def found(match: ChosenMatch | None) -> None:
            if match is not None:
                if match.conversation_id != self.here:
                    self.enter(match.conversation_id)
                self.blocks.seek(match.block_id)
                self._have_read(match.block_id)
                self._go("blocks")
                if match.query:
                    self._find(match.query, match.cursor)

        self.push_screen(Search(self.client, self.colours), found)

    def _have_read(self, block_id: str) -> None:
        """Have a block read that may be older than those that were."""
        self._sought = int(block_id.removeprefix("b"))
        self._read_back()

    def _read_back(self) -> None:
        viewed = self.conversation
        if viewed is not None and self._sought is not None and viewed.blocks.list:
            sought, self._sought = self._sought, None
            self._start(self._ask(viewed.read_back_to(sought)))

    def action_help(self) -> None:
        self.push_screen(Help(self.colours))

    async def action_back(self) -> None:
        if self.only_screen:
            return
        if self.blocks.filter != "all":
            self._choose("all")
        self._go("blocks")

    async def action_quit(self) -> None:
        self.exit()

    # What is typed, and what is answered

    @on(TerminalView.Typed)
    def _type(self, message: TerminalView.Typed) -> None:
        self._send(message.data)

    @on(TerminalView.HandBack)
    def _give_back(self) -> None:
        self.action_hand_back()

    @on(TerminalView.Watching)
    def _watching(self) -> None:
        self.say("you are watching" if self.read_only else "you are watching; t takes over")

    @on(OptionList.OptionSelected)
    def _chosen(self, message: OptionList.OptionSelected) -> None:
        if message.option.id is not None:
            self.enter(message.option.id.removeprefix("c-"))
            self._go("blocks")

    def action_approve(self) -> None:
        self._approve("once")

    def action_approve_conversation(self) -> None:
        self._approve("conversation")

    def action_approve_always(self) -> None:
        question = self._approved()
        if question is not None and question["always"] is None:
            self.say("no rule would allow just this: approve it once or for this conversation")
        elif question is not None:
            rule = Always(question["always"], self.colours)
            self.push_screen(rule, lambda agreed: self._say_approved(question, "always") if agreed else None)

    def _approve(self, scope: str) -> None:
        question = self._approved()
        if question is not None:
            self._say_approved(question, scope)

    def _approved(self) -> Mapping[str, Any] | None:
        """Return the question that a key approves now; None where it may not be."""
        question = self.approval.shown.answered()
        if question is not None and not self.approval.is_whole:
            self.say("it is longer than what is shown: blockpty answer shows all of it")
            return None
        return question

    def _say_approved(self, question: Mapping[str, Any], scope: str) -> None:
        async def approve() -> None:
            conversation = await self.client.conversation(question["conversation_id"])
            await conversation.approve(question["approval_id"], question["digest"], scope=scope)

        done = {"once": "approved", "conversation": "approved for this conversation", "always": "approved, always"}
        self._start(self._ask(approve(), done[scope]))

    def action_refuse(self) -> None:
        question = self.approval.shown.answered()
        if question is not None:
            self._refuse(question, None)

    def _refuse(self, question: Mapping[str, Any], reason: str | None) -> None:
        async def refuse() -> None:
            conversation = await self.client.conversation(question["conversation_id"])
            await conversation.deny(question["approval_id"], question["digest"], reason=reason or None)

        self._start(self._ask(refuse(), "refused"))

    def action_refuse_why(self) -> None:
        question = self.approval.shown.answered()
        if question is not None:
            self.push_screen(
                Reason(self.colours), lambda reason: None if reason is None else self._refuse(question, reason)
            )


class _Notified:
    """Notifies the program of one conversation, while that is the open one."""

    def __init__(self, program: ViewProgram, conversation_id: str) -> None:
        self._program = program
        self._id = conversation_id

    @property
    def _is_open(self) -> bool:
        return self._program.here == self._id

    def loaded(self) -> None:
        if self._is_open:
            self._program.loaded()

    def changed(self, block_ids: set[str]) -> None:
        if self._is_open:
            self._program.changed(block_ids)

    async def frame(self, frame: Frame) -> None:
        if self._is_open:
            await self._program.frame(frame)


async def run(
    client: Any, conversation_id: str | None, *, read_only: bool = False, only_screen: bool = False,
    page_url: str = "",
) -> None:  # fmt: skip
    """Run the program on this terminal until the person leaves; raises what the server answered at first."""
    program = ViewProgram(client, conversation_id, read_only=read_only, only_screen=only_screen, page_url=page_url)
    with contextlib.suppress(asyncio.CancelledError):
        await program.run_async()
    if program.failure is not None:
        raise program.failure
