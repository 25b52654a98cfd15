"""HTML and SVG: every word is shown, colours are drawn, and nothing of the stream gets out of the markup."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from blockpty.screen import LazyScreen, Snapshot, snapshot
from tests.support.emulators import fed, random_output


def taken(data: str, cols: int) -> Snapshot:
    raw = data.encode()
    screen = LazyScreen(lambda begin, end: raw[begin:end], cols, 4)
    screen.advance(len(raw))
    return screen.snapshot()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


EVIL = (
    "</pre><script>alert(1)</script>\r\n\x1b[31m\"'&<b onclick=x>\x1b[m"
    '\r\n\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07 \x1b]8;;https://h/"><script>\x07ok\x1b]8;;\x07'
    "\x1b]2;</title><script>\x07"
)


def test_html_shows_text_and_runs_nothing() -> None:
    page = Tags()
    page.feed(str(snapshot.render(taken(EVIL, 60), "html")))
    assert {tag for tag, _ in page.tags} <= {"html", "head", "meta", "title", "body", "pre", "span", "a"}
    assert [attributes["href"] for tag, attributes in page.tags if tag == "a"] == ['https://h/"><script>']
    assert {name for _, attributes in page.tags for name in attributes} <= {"style", "charset", "href", "rel"}
    assert "</pre><script>alert(1)</script>" in page.text


def test_svg_is_well_formed_and_holds_every_word() -> None:
    picture = ElementTree.fromstring(str(snapshot.render(taken(EVIL, 60), "svg")))
    tags = {element.tag.partition("}")[2] for element in picture.iter()}
    assert tags <= {"svg", "title", "rect", "text"}
    shown = "".join(element.text or "" for element in picture.iter() if element.tag.endswith("text"))
    assert "</pre><script>alert(1)</script>" in shown
    assert "onclick=x" in shown


@pytest.mark.parametrize("seed", range(40))
def test_markup_of_anything_is_well_formed(seed: int) -> None:
    rng = random.Random(seed)
    frame = fed(random_output(rng, 80), 30, 8).frame()
    ElementTree.fromstring(snapshot.svg(frame))
    page = Tags()
    page.feed(snapshot.html(frame))
    body = re.sub(r" *\n", "\n", page.text).rstrip("\n")
    assert body.endswith(re.sub(r" *\n", "\n", snapshot.text(frame)))


def test_colours_and_reverse_are_drawn() -> None:
    frame = fed("\x1b[38;2;1;2;3;7mx", 5, 1).frame()
    assert "background:#010203" in snapshot.html(frame)
    assert 'fill="#010203"' in snapshot.svg(frame)
    hidden = fed("\x1b[8msecret", 9, 1).frame()
    assert re.search(r"color:(#\w+);background:\1", snapshot.html(hidden))
