"""Whatever the OpenAPI document allows is answered as it says, and what it does not allow is refused.

schemathesis makes the requests and has all its default checks on. What it makes is kept harmless here: commands that
do nothing, one shell, text without a newline, short waits; only sound values are exchanged for others that are sound
as well, so that a request that was meant to be wrong stays wrong.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.meta import TestPhase

from blockpty.errors import BlockptyError
from blockpty.model.conditions import parse_conditions
from blockpty.ops.operation import Effect, Operation
from blockpty.ops.table import OPERATIONS
from blockpty.search.query import MatchKey
from blockpty.surfaces import launching
from blockpty.surfaces.http.openapi import openapi
from blockpty.surfaces.launching import STATE_NAME
from blockpty.surfaces.private_files import owner_token
from tests.support.profile import LONG, some_of

pytestmark = [pytest.mark.needs("bash")]

# An ordinary run goes through every keyword of the schema for a third of the operations: to make those requests takes
# a second for each operation, in each of the processes that run tests.
EVERY_KEYWORD: Final = some_of(OPERATIONS)
schema = schemathesis.openapi.from_dict(
    openapi(),
    config=SchemathesisConfig.from_dict({
        "operations": [
            {"include-operation-id": name, "phases": {"coverage": {"enabled": False}}}
            for name in OPERATIONS if name not in EVERY_KEYWORD
        ],
    }),
)  # fmt: skip

OPEN: Final = {"conversation_id": "c1", "shell": "bash", "persist": True}


class Served:
    """A server in a process of its own, with one conversation that is there before each request."""

    def __init__(self, home: Path) -> None:
        launching.start(home)
        state = json.loads((home / "server" / STATE_NAME).read_text())
        self.url = str(state["url"])
        self.session = requests.Session()
        self.headers = {"Authorization": f"Bearer {owner_token(home)}"}
        self.changed = True

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        """Ask for something that goes well, or has been done already."""
        answer = self.session.request(method, self.url + path, json=content or {}, headers=self.headers, timeout=30)
        return answer.json()

    def prepare(self) -> None:
        """Have `c1` open, and nothing else."""
        if self.changed:
            self.ask("POST", "/v1/release")
            live = self.live()
            self.close(live - {"c1"})
            if "c1" not in live:
                assert self.ask("POST", "/v1/conversations", OPEN)["ok"]
            self.ask("POST", "/v1/release", {"conversation_id": "c1"})
            self.ask("POST", "/v1/conversations/c1/release_control")
            self.changed = False

    def live(self) -> set[str]:
        """What is open now."""
        found = self.ask("GET", "/v1/conversations")["conversations"]
        return {one["conversation_id"] for one in found if one["live"]}

    def close(self, names: set[str]) -> None:
        """Close these; returns when they are gone."""
        for name in names:
            while name in self.live():  # it may be about to end by itself
                self.ask("POST", f"/v1/conversations/{name}/close")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, homes: dict[Path, str]) -> Iterator[Served]:
    top = tmp_path_factory.mktemp("h")
    homes[top] = __name__
    with pytest.MonkeyPatch.context() as patched:
        # The server's alone: it is in its environment when it starts.
        patched.setenv("BLOCKPTY_ARCHIVE_URL", (top / "store").as_uri())
        one = Served(top / "home")
    yield one
    one.close(one.live())
    one.ask("POST", "/admin/stop")
    one.session.close()


# What is done in place of a sound value: a command that does nothing, text without an Enter, a shell that is there.
INSTEAD: Final = {
    "conversation_id": "c1",
    "command": "true",
    "cwd": "/",
    "shell": "bash",
    "data": "x",
    "data_b64": "eA==",
    "keys": "x",
    "text": "x",
    "match": "x",
    "stop": "x",
    "from_cursor": 0,
    "to_cursor": 1,  # of the first conversation nothing more may be there
    "timeout_ms": 20,
    "grace_ms": 20,
    "timeout_seconds": 1,
    "follow": False,
    "env": {"A": "x"},
    "source": "shell",  # others start programs
    "resume": None,  # is for ssh alone
    "sandbox": None,  # which profiles there are stands in policy.toml
}
# Written and read in place of any other file of this machine.
FILE: Final = f"{tempfile.gettempdir()}/blockpty-openapi-{os.getpid()}"
# What the schema cannot say of these: a cursor that a search has given, a pattern that is one.
WHEN_SEARCHING: Final = {"page": MatchKey(0, "c1", 1, 0, 0).to_text(), "query": "x"}
WHEN_OPENING: Final = {"conversation_id": "c2", "timeout_ms": 20_000}
ENDING: Final = {"ctrl_d", "interrupt", "kill"}
MOVING: Final = {"halt", "take_control"} | ENDING | {
    name for name, operation in OPERATIONS.items() if operation.effect is Effect.LIFECYCLE
}
# What is given where nothing is: no call here waits for half a minute.
BESIDES: Final = {
    "wait_for": {"timeout_ms": 20},
    "interrupt": {"grace_ms": 20},
    "enter_shell": {"timeout_ms": 20},
    "events": {"follow": False},
    "request_user_input": {"timeout_seconds": 1},
}


def tame(case: schemathesis.Case, operation: Operation) -> None:
    """Exchange what the request would do for something harmless; what is wrong with it stays."""
    for part in (case.path_parameters, case.query, case.body):
        if isinstance(part, dict):
            for name, value in part.items():
                if isinstance(value, float) and value.is_integer():
                    # To JSON Schema 80.0 is an integer; to us it is none, as in every other client's language.
                    part[name] = int(value)
                if operation.name == "search" and name in WHEN_SEARCHING and is_sound(operation, name, value):
                    part[name] = WHEN_SEARCHING[name]
                elif name in INSTEAD and is_sound(operation, name, value):
                    part[name] = WHEN_OPENING.get(name, INSTEAD[name]) if operation.name == "open" else INSTEAD[name]
    params = case.query if case.method == "GET" else case.body
    if isinstance(params, dict):
        params.update({name: value for name, value in BESIDES.get(operation.name, {}).items() if name not in params})
        if operation.name == "read" and params.get("view") != "rendered":
            # These two are for one view, which the schema does not say.
            params.pop("style", None)
            params.pop("from_line", None)
        if operation.name != "wait_for" and params.get("match") is None and params.get("stop") == INSTEAD["stop"]:
            del params["stop"]  # it ends a wait, and without match there is none
        if operation.name == "search" and params.get("mode") in ("words", "phrase"):
            params.pop("regex", None)  # they contradict each other, which the schema does not say
        if operation.name == "screen":
            tame_lines(params, operation)
        if operation.name in ("put_file", "get_file"):
            tame_file(params, operation)
        if operation.name == "send":
            tame_send(params)


def tame_send(params: dict[str, Any]) -> None:
    """Give one of the two forms of the data, which the schema does not say."""
    params.pop("secret_name", None)  # none is stored here
    if params.get("data") is None and params.get("data_b64") is None:
        params["data"] = "x"
    if params.get("data") == "x" and params.get("data_b64") == "eA==":
        del params["data_b64"]


def tame_lines(params: dict[str, Any], operation: Operation) -> None:
    """Leave out a range of lines where it has no format or no lines, which the schema does not say."""
    if params.get("format") not in ("text", "agent") or is_sound(operation, "last_line", params.get("last_line")):
        params.pop("first_line", None)
        params.pop("last_line", None)


def tame_file(params: dict[str, Any], operation: Operation) -> None:
    """Have a file of the test's own written and read."""
    for name in ("local_path", "mode"):
        if is_sound(operation, name, params.get(name)):
            del params[name]
    if is_sound(operation, "path", params.get("path")):
        params["path"] = FILE
    if operation.name == "put_file":
        # One of the two must be there, which the schema does not say.
        if is_sound(operation, "data_b64", params.get("data_b64")):
            del params["data_b64"]
        if params.get("data") is None and params.get("data_b64") is None:
            params["data"] = "x"


def is_sound(operation: Operation, name: str, value: Any) -> bool:
    """Whether the operation would take this value of the parameter."""
    if value is None or name not in operation.request.model_fields:
        return False
    fields = operation.request.model_fields.items()
    others = {other: INSTEAD.get(other, "x") for other, field in fields if field.is_required() and other != name}
    try:
        if operation.route[0] == "GET":
            operation.parse_text({**others, name: str(value)})
        else:
            operation.parse({**others, name: value})
        if name in ("match", "stop"):
            parse_conditions(value)
    except BlockptyError:
        return False
    return True


def is_left_out(case: schemathesis.Case) -> bool:
    """Whether only a long run has it: of the thousands of requests that go through every keyword of the schema."""
    if LONG or case.meta is None or case.meta.phase.name is not TestPhase.COVERAGE:
        return False
    text = repr((case.method, case.path, case.path_parameters, case.query, case.headers, case.body))
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % 2 != 0


@schema.parametrize()
@settings(max_examples=3, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_operation_is_as_described(served: Served, case: schemathesis.Case) -> None:
    if is_left_out(case):
        return
    operation = OPERATIONS[case.operation.definition.raw["operationId"]]
    served.prepare()
    tame(case, operation)
    served.changed = True  # until it has gone as it should
    response = case.call_and_validate(
        base_url=served.url, session=served.session, headers=served.headers, timeout=30
    )
    served.changed = response.status_code == 200 and operation.name in MOVING
    if served.changed and operation.name in ENDING:
        served.close(served.live())  # it may be about to end
