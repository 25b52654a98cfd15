"""Results in words: a file that was read."""

from __future__ import annotations

import base64

from blockpty.model.results import GetFileResult
from blockpty.surfaces.mcp.text import describe

DIGEST = "0a" * 32


def test_a_text_is_shown_and_other_bytes_are_in_base64() -> None:
    shown = describe("get_file", GetFileResult(4, DIGEST, "one\n", None, 20, "direct").to_dict(), {})
    assert shown.startswith(f"4 bytes, sha256 {DIGEST}\n") and "one\n" in f"{shown}\n" and "covered" not in shown
    exact = base64.b64encode(b"\0\xff").decode()
    shown = describe("get_file", GetFileResult(2, DIGEST, None, exact, 20, "terminal", True).to_dict(), {})
    assert exact in shown and "secrets were redacted" in shown
