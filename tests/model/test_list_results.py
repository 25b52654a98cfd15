"""Result of `list` comes back from JSON as it was, with what it says of blocks."""

from __future__ import annotations

import json

from blockpty.model.list_results import BlockSummary, ConversationInfo, ListResult
from tests.support.blocks import BLOCK


def test_a_summary_says_what_the_block_says() -> None:
    summary = BlockSummary.of(BLOCK)
    assert (summary.block_id, summary.cmd, summary.ts_end) == (BLOCK.block_id, BLOCK.cmd, BLOCK.ts_end)
    assert summary.to_dict().items() < {**BLOCK.to_dict(), "ok": True}.items()


def test_a_list_comes_back() -> None:
    one = ConversationInfo("c", True, "running", "bash", "/", 7, 100, 2, 5, running=BlockSummary.of(BLOCK))
    listed = ListResult([one, ConversationInfo("d", False, "exited", "zsh", None, None, 0, 0, 5)])
    back = ListResult.from_dict(json.loads(json.dumps(listed.to_dict())))
    assert back == listed
    assert isinstance(back.conversations[0].running, BlockSummary) and back.conversations[1].running is None
