"""The page of the operations: all of them, nothing that runs, and a policy that its style keeps to."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.http.docs_page import DOCS_POLICY, docs_page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_every_operation_is_there_with_its_parameters_and_nothing_runs() -> None:
    page = docs_page()
    tags = Tags()
    tags.feed(page)
    assert {attributes["id"] for tag, attributes in tags.seen if tag == "h2"} == set(OPERATIONS)
    assert {attributes["href"] for tag, attributes in tags.seen if tag == "a"} == {f"#{name}" for name in OPERATIONS}
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in tags.seen}
    assert not [one for _, attributes in tags.seen for one in attributes if one.startswith("on") or one == "style"]
    for name in ("conversation_id", "timeout_ms", "max_bytes"):
        assert f"<code>{name}</code>" in page
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in DOCS_POLICY
