"""Values as a prompt, a message or a notebook shows them: short, and without anything that a page would run."""

from __future__ import annotations

from typing import Any, Final

SHORT: Final = 100


def shortened(value: Any, length: int = SHORT) -> str:
    """Return the repr of a value, with its end left out where it is long."""
    text = repr(value)
    return text if len(text) <= length else f"{text[: length - 3]}..."


def preformatted(text: str, *, summary: str = "") -> str:
    """Return HTML that shows a text as it is, and a line below it; none of it is markup of its own."""
    from html import escape

    below = f"<small>{escape(summary)}</small>" if summary else ""
    return f'<pre style="margin: 0">{escape(text)}</pre>{below}'


def framed(page: str, rows: int) -> str:
    """Return HTML that shows a page of so many rows of text in a frame in which no script runs."""
    from html import escape

    height = 17 * rows + 24
    return f'<iframe sandbox srcdoc="{escape(page)}" style="border: 0; width: 100%; height: {height}px"></iframe>'
