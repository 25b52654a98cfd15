"""blockpty token: it is shown once, when it is made, and the list says what each is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from blockpty.surfaces.cli.main import main
from blockpty.surfaces.private_files import owner_token

if TYPE_CHECKING:
    import pytest


def test_tokens_are_made_listed_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str, status: int = 0) -> str:
        assert main(["token", *words]) == status
        return capsys.readouterr().out

    first = said("add", "helper").strip()
    second = json.loads(said("add", "ann", "--scope", "read", "--types-as", "user", "--conversation", "c1", "--json"))
    assert len(first) >= 43 and second["name"] == "ann" and second["token"] not in ("", first)
    listed = said("list")
    assert listed == "ann\tread\tuser\tc1\nhelper\twrite\tagent\tall\n"
    (ann, helper) = json.loads(said("list", "--json"))["tokens"]
    assert (ann["name"], ann["conversations"], helper["conversations"]) == ("ann", ["c1"], None)
    assert helper["created_ts"] > 1_700_000_000_000
    assert said("remove", "helper") == "" and json.loads(said("remove", "ann", "--json")) == {"ok": True}
    assert said("list") == ""
    said("remove", "ann", status=1)


def test_the_owners_is_replaced_and_not_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = owner_token(home)
    assert main(["token", "renew"]) == main(["token", "renew", "--json"]) == 0
    assert capsys.readouterr().out == '{"ok": true}\n'
    assert owner_token(home) != before
