"""`blockpty view --web`: an address that signs a browser in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blockpty.surfaces.cli.main import main
from tests.support.async_tests import async_test
from tests.support.http_client import serving

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_the_address_has_a_code_that_becomes_a_token(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    from blockpty.surfaces.client import Client

    async with serving(home) as url:
        assert await asyncio.to_thread(main, ["--home", str(home), "view", "--web", "--json"]) == 0
        address = json.loads(capsys.readouterr().out)["page"]
        assert address.startswith(f"{url}/#code=")
        async with Client(home, start=False) as client:
            granted = await client.post("/auth/token", {"code": address.partition("#code=")[2]})
    assert (granted["scope"], granted["name"], granted["person"]) == ("admin", "owner", True)
    assert granted["token"] not in address


def test_without_web_it_says_what_there_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home), "view"]) != 0
    assert "--web" in capsys.readouterr().err
