"""Reading the documentation's pages: code blocks, headings and links. Only as much Markdown as our own pages use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[a-z]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Code:
    """One fenced block; `output` is the text block right behind it, if there is one."""

    language: str
    text: str
    line: int
    output: str | None = None


def pages() -> list[Path]:
    """Return every page, by name."""
    return [TOP / "README.md", TOP / "CHANGELOG.md", *sorted((TOP / "docs").rglob("*.md"))]


def named(path: Path) -> str:
    """Return how a page is called in a test's name."""
    return str(path.relative_to(TOP))


def code_blocks(path: Path) -> list[Code]:
    """Return the code blocks of a page, in order."""
    text = path.read_text("utf-8")
    found = list(_FENCE.finditer(text))
    blocks = []
    for index, fence in enumerate(found):
        output = None
        if index + 1 < len(found):
            following = found[index + 1]
            if following["language"] == "text" and not text[fence.end() : following.start()].strip():
                output = _dedented(following)
        line = text.count("\n", 0, fence.start()) + 2
        blocks.append(Code(fence["language"], _dedented(fence), line, output))
    return blocks


def _dedented(fence: re.Match[str]) -> str:
    indent = len(fence["indent"])
    return "".join(line[indent:] for line in fence["text"].splitlines(keepends=True))


def prose(path: Path) -> str:
    """Return a page without its code blocks."""
    return _FENCE.sub("", path.read_text("utf-8"))


def links(path: Path) -> list[str]:
    """Return the targets of a page's links and pictures."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(path)))


def anchors(path: Path) -> set[str]:
    """Return what can follow the `#` in a link to this page, as GitHub makes it of the headings."""
    slugs = set()
    for heading in _HEADING.findall(prose(path)):
        kept = re.sub(r"[^\w\- ]", "", heading.lower())
        slugs.add(kept.replace(" ", "-"))
    return slugs
