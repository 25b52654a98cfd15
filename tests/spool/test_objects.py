"""The object store: files under keys, and one kind of error whatever is wrong."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from blockpty.errors import ArchiveUnreachable
from blockpty.spool.objects import ObjectStore, digest_of

pytest.importorskip("obstore", reason="obstore is not installed")


def test_what_was_stored_comes_back_in_pieces(tmp_path: Path) -> None:
    store = ObjectStore(f"file://{tmp_path}/archive")
    content = bytes(range(256)) * 20_000
    (tmp_path / "file").write_bytes(content)
    store.put("a/b", tmp_path / "file")
    assert b"".join(store.get("a/b")) == content
    store.delete("a/b")
    with pytest.raises(ArchiveUnreachable):
        b"".join(store.get("a/b"))
    store.delete("a/b")  # it is gone already


@pytest.mark.parametrize("url", ["", "nonsense", "unheard-of://x"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ArchiveUnreachable, match="no archive can be opened"):
        ObjectStore(url)


def test_the_message_has_no_query(tmp_path: Path) -> None:
    store = ObjectStore(f"file://{tmp_path}/archive?token=secret")
    with pytest.raises(ArchiveUnreachable) as problem:
        b"".join(store.get("missing"))
    assert "secret" not in str(problem.value)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ArchiveUnreachable, match="needs obstore"):
        ObjectStore("memory://")


def test_the_digest_does_not_depend_on_the_pieces() -> None:
    assert digest_of(iter([b"ab", b"", b"c"])) == (hashlib.sha256(b"abc").hexdigest(), 3)
