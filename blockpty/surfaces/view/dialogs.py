"""Dialogs over the program: the keys, the rule of an approval, the reason of a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from blockpty.surfaces.view.keys import replay_table, table
from blockpty.surfaces.view.strips import visible
from blockpty.surfaces.view.theme import Colours

if TYPE_CHECKING:
    from textual.app import ComposeResult

_MOST_REASON: Final = 2000
_PLACES: Final = {
    "conversation": "Blocks", "screen": "While you type", "approval": "An approval", "everywhere": "Everywhere"
}  # fmt: skip


class Help(ModalScreen[None]):
    """The keys, from the table."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss", "close")]
    CSS = """
    Help { align: center middle; }
    Help > VerticalScroll {
        width: 60; height: auto; max-height: 90%; border: round $line2; background: $raised; padding: 0 2;
    }
    """

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._colours = colours

    def compose(self) -> ComposeResult:
        text = Text(end="")
        for place, title in _PLACES.items():
            text.append(f"\n{title}\n", f"bold {self._colours.text}")
            for key in table():
                if key.where == place:
                    text.append(f"  {' '.join(key.keys):<14}", f"bold {self._colours.wait}")
                    text.append(f"{key.words}\n", self._colours.text)
        text.append("\nReplay\n", f"bold {self._colours.text}")
        for key in replay_table():
            text.append(f"  {' '.join(one if one != ' ' else 'Space' for one in key.keys):<14}", self._colours.wait)
            text.append(f"{key.words}\n", self._colours.text)
        with VerticalScroll():
            yield Static(text, markup=False)


class Always(ModalScreen[bool]):
    """Whether to add a rule to the policy; it is shown as it will stand there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "add it"), Binding("escape,n", "dismiss(False)", "back"),
    ]  # fmt: skip
    CSS = """
    Always { align: center bottom; }
    Always > Static {
        width: 80%; height: auto; max-height: 80%; margin: 0 0 3 0; padding: 0 1;
        border: round $wait-line; background: $wait-ground;
    }
    """

    def __init__(self, rule: str, colours: Colours) -> None:
        super().__init__()
        self._rule = rule
        self._colours = colours

    def compose(self) -> ComposeResult:
        text = Text("This adds a rule to the policy, for every conversation and agent:\n\n", self._colours.text, end="")
        text.append(visible(self._rule.strip()), f"bold {self._colours.text}")
        text.append("\n\n  y", f"bold {self._colours.accent}")
        text.append(" add it and approve   Escape goes back", self._colours.text)
        yield Static(text, markup=False)


class Reason(ModalScreen[str | None]):
    """Why something is refused; None when the person changes their mind."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back")]
    CSS = """
    Reason { align: center bottom; }
    Reason > Input { width: 80%; margin: 0 0 3 0; border: round $wait-line; background: $wait-ground; }
    """

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._colours = colours

    def compose(self) -> ComposeResult:
        yield Input(placeholder="Why? The agent gets it. Enter refuses, Escape goes back.", max_length=_MOST_REASON)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Give the reason."""
        self.dismiss(message.value)
