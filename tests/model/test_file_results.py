"""Results of copying files: the exact bytes, however they came."""

from __future__ import annotations

import base64

import pytest

from blockpty.model.file_results import GetFileResult


@pytest.mark.parametrize(
    ("data", "data_b64", "content"),
    [
        ("é\n", None, "é\n".encode()),
        ("", None, b""),
        (None, base64.b64encode(b"\xff\0").decode(), b"\xff\0"),
        (None, "", b""),
        (None, None, b""),
    ],
)
def test_the_content(data: str | None, data_b64: str | None, content: bytes) -> None:
    result = GetFileResult(len(content), "0" * 64, data, data_b64, 7, "direct")
    assert result.content == content
    assert GetFileResult.from_dict(result.to_dict()) == result
