"""What a search found, as lines: for a person the matches below the block they are in, else one line each."""

from __future__ import annotations

from collections.abc import Iterator

from blockpty.model.results import SearchHit, SearchResult
from blockpty.surfaces.sanitize import RESET, one_line


def found_lines(result: SearchResult, *, terminal: bool, colours: bool) -> Iterator[str]:
    """Yield lines, with their ends.

    In a file or pipe a line is: conversation, block, cursor, part, text, and the address of another host, with tabs.
    """
    if not terminal:
        for hit in result.hits:
            fields = [hit.conversation_id, hit.block_id, hit.cursor, hit.part, hit.snippet]
            fields += [hit.elsewhere] if hit.elsewhere else []
            yield "\t".join(one_line(str(field)) for field in fields) + "\n"
        return
    block: tuple[str, str] | None = None
    for hit in result.hits:
        if block != (hit.conversation_id, hit.block_id):
            yield "\n" if block is not None else ""
            block = (hit.conversation_id, hit.block_id)
            yield _head(hit, colours) + "\n"
        yield f"  {hit.cursor:>10}  {_marked(hit, colours)}\n"


def _head(hit: SearchHit, colours: bool) -> str:
    from blockpty.surfaces.cli.render import ending, moment

    name = f"{hit.conversation_id} {hit.block_id}"
    shown = f"\x1b[1m{one_line(name)}{RESET}" if colours else one_line(name)
    facts = [moment(hit.ts_begin), ending(hit.exit_status, None, hit.state), one_line(hit.cmd)]
    where = [f"on {one_line(hit.elsewhere)}"] if hit.elsewhere else []
    return "  ".join([shown, *where, *facts])


def _marked(hit: SearchHit, colours: bool) -> str:
    begin, end = hit.snippet_span
    if not colours:
        return one_line(hit.snippet)
    before, found, after = (one_line(text) for text in (hit.snippet[:begin], hit.snippet[begin:end], hit.snippet[end:]))
    return f"{before}\x1b[1;31m{found}{RESET}{after}"
