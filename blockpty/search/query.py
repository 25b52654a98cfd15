"""Queries: a text, how it is meant, and the blocks in which it is searched.

Rules of this file: data and its bounds. How text matches is the business of `matching`, how an index narrows it down
that of `plan`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple

import orjson
from msgspec import Struct, field

from blockpty.errors import BadRequest
from blockpty.model.block import BLOCK_KINDS, Block
from blockpty.runtime.reading import is_below

MODES: Final = ("words", "phrase", "substring", "regex")
PARTS: Final = ("any", "output", "command")
AUTHORS: Final = ("agent", "user", "engine")
MAX_TEXT: Final = 1024
MAX_PAGE: Final = 1000
MAX_TIMEOUT_MS: Final = 60_000

COMMAND: Final = 0
"""Number of the chunk that is a block's command; those of its output are counted from 1."""


class MatchKey(NamedTuple):
    """Place of a match in the order of all matches; results go from the greatest key, the newest, down.

    Attributes:
        ts: when its block began, in ms.
        conversation_id, seq: its block.
        number: its chunk, `COMMAND` for the command.
        offset: where it begins, in the stream, or for the command in its UTF-8 bytes.
    """

    ts: int
    conversation_id: str
    seq: int
    number: int
    offset: int

    def to_text(self) -> str:
        """Return the form that goes out as a page's cursor."""
        return base64.urlsafe_b64encode(orjson.dumps(tuple(self))).decode().rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> MatchKey:
        """Return the key of a page's cursor; raises BadRequest."""
        try:
            values = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, ValueError):
            values = None
        kinds = (int, str, int, int, int)
        if not isinstance(values, list) or [type(value) for value in values] != list(kinds):
            raise BadRequest("page is not a search cursor", hint="use `next` of an earlier result, unchanged")
        return cls(*values)


class Filters(Struct, frozen=True):
    """Which blocks are looked at; None leaves a field open.

    Attributes:
        conversation_id: only this conversation.
        cwd: blocks that began in this directory or below it.
        exit_status: with exactly this exit status.
        failed: True: with an exit status other than 0; False: with 0. Blocks of unknown status are neither.
        since, until: that began at or after, and before, these times in ms.
        min_duration_ms: that took at least so long; a running block has no duration yet.
        author, kind: as in a block's record.
        part: `output`, `command`, or `any` of the two.
    """

    conversation_id: str | None = None
    cwd: str | None = None
    exit_status: int | None = None
    failed: bool | None = None
    since: int | None = None
    until: int | None = None
    min_duration_ms: int | None = None
    author: str | None = None
    kind: str | None = None
    part: str = "any"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("author", self.author, AUTHORS), ("kind", self.kind, BLOCK_KINDS), ("part", self.part, PARTS),
        ):  # fmt: skip
            if value is not None and value not in known:
                raise BadRequest(f"{name} cannot be {value[:40]!r}", hint=f"one of {', '.join(known)}")

    def admits(self, conversation_id: str, block: Block) -> bool:
        """Whether a block is looked at; the meaning of every filter, which an index may only approximate from above."""
        return (
            (self.conversation_id is None or conversation_id == self.conversation_id)
            and (self.cwd is None or is_below(block.cwd, self.cwd))
            and (self.exit_status is None or block.exit_status == self.exit_status)
            and (self.failed is None or (block.exit_status is not None and (block.exit_status != 0) is self.failed))
            and (self.since is None or block.ts_begin >= self.since)
            and (self.until is None or block.ts_begin < self.until)
            and (
                self.min_duration_ms is None
                or (block.duration_ms is not None and block.duration_ms >= self.min_duration_ms)
            )
            and (self.author is None or block.author == self.author)
            and (self.kind is None or block.kind == self.kind)
        )


class Query(Struct, frozen=True):
    """One search.

    A line ends at LF or at a CR, and a match lies within one line. A line of more than a chunk's bytes is looked at in
    pieces, and a match that crosses from one to the next is found when it is no longer than `text.AHEAD`.

    Attributes:
        text: what is looked for, 1 to `MAX_TEXT` characters without a line end.
        mode: `words`: every line that holds all of the text's words, in any order; one match a line. `phrase`: the
            words one after another with blanks between them. `substring`: the text as it is. `regex`: a regular
            expression, as in Python; empty matches do not count. A word is found where no letter or digit
            touches its ends.
        ignore_case: None: words and phrases do, others do not.
        filters: which blocks.
        limit: matches on a page, 1 to `MAX_PAGE`.
        before: go on below this key.
        per_block: only the newest match of every block.
        timeout_ms: how long it may take, 1 to `MAX_TIMEOUT_MS`; then what was found is returned, flagged as partial.
    """

    text: str
    mode: str = "substring"
    ignore_case: bool | None = None
    filters: Filters = field(default_factory=Filters)
    limit: int = 100
    before: MatchKey | None = None
    per_block: bool = False
    timeout_ms: int = 2000

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise BadRequest(f"mode cannot be {self.mode[:40]!r}", hint=f"one of {', '.join(MODES)}")
        if not 0 < len(self.text) <= MAX_TEXT:
            raise BadRequest(f"the query has {len(self.text)} characters", hint=f"give 1 to {MAX_TEXT}")
        if "\n" in self.text or "\r" in self.text:
            raise BadRequest("the query holds a line end", hint="a match lies within one line; look for one line of it")
        if any("\ud800" <= character < "\ue000" for character in self.text):
            raise BadRequest("the query holds half a character", hint="give whole characters")
        if self.mode in ("words", "phrase") and not self.text.split():
            raise BadRequest("the query holds no word", hint="use mode substring to look for blanks")
        if not 1 <= self.limit <= MAX_PAGE:
            raise BadRequest(f"limit cannot be {self.limit}", hint=f"1 to {MAX_PAGE}")
        if not 1 <= self.timeout_ms <= MAX_TIMEOUT_MS:
            raise BadRequest(f"timeout_ms cannot be {self.timeout_ms}", hint=f"1 to {MAX_TIMEOUT_MS}")

    @property
    def folds(self) -> bool:
        """Whether upper and lower case are the same."""
        return self.mode in ("words", "phrase") if self.ignore_case is None else self.ignore_case
