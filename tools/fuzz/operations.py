"""Requests that make no sense: parameters of any kind, and operations in any order on a real shell."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import BadRequest, BlockptyError
from blockpty.model.results import VerifyResult
from blockpty.ops.dispatch import call, stream
from blockpty.ops.operation import Shape
from blockpty.ops.table import OPERATIONS
from tests.support.operations import PARAMS
from tests.support.processes import directory_of_homes
from tools.fuzz.material import output

PERSON = Principal("a person", Scope.ADMIN, types_as="user")
CALLS = 25
CALL_SECONDS = 30
# What ends the shell, or needs one that has ended.
_ENDING = {"close", "kill", "reset", "open"}
_WAIT_MS = 300


def requests(chance: random.Random) -> None:
    """A request is taken or refused as `bad_request`; the message never holds a value."""
    operation = OPERATIONS[chance.choice(sorted(OPERATIONS))]
    params = {name: value for name, value in PARAMS[operation.name].items() if chance.random() < 0.8}
    for _ in range(chance.randrange(4)):
        name = chance.choice([*params, *operation.request.model_fields, "more", "conversation-id", ""])
        params[name] = value(chance, 3)
    try:
        operation.parse(params)
    except BadRequest as problem:
        _check(bool(problem.hint), "no hint")
        _check("s3cr3t-value" not in f"{problem.message}{problem.hint}{problem.details}", "a value in an error")
    text = {name: str(one) for name, one in params.items()}
    try:
        operation.parse_text(text)
    except BadRequest:
        pass


def _check(right: bool, message: str) -> None:
    if not right:
        raise AssertionError(message)


def value(chance: random.Random, depth: int) -> Any:
    """Return a value that JSON has."""
    kind = chance.randrange(10 if depth else 8)
    if kind == 8:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 9:
        names = ["regex", "token", "idle_ms", "screen", "changed", "x"]
        return {chance.choice(names): value(chance, depth - 1) for _ in range(chance.randrange(3))}
    texts = ["", "x", "s3cr3t-value", "(a+)+$", "(", "[", "PROMPT", "EOF", "../x", "\0", "\ud800", "é" * 40, "b1"]
    return [
        None, chance.random() < 0.5, chance.choice([0, 1, -1, 7, 2**31, 2**63, 10**30]), chance.choice([0.5, 1e300]),
        chance.choice(texts), output(chance, 4).decode("latin-1"), output(chance, 4).decode("utf-8", "replace"),
        chance.choice(["c1", "raw", "text", "^C[UP]", "echo x", "true", "html", "cast3", "INT"]),
    ][kind]  # fmt: skip


def operations(chance: random.Random) -> None:
    """Operations in any order: results or errors of ours, nothing else; and the record is clean afterwards."""
    with directory_of_homes("fuzz") as place:
        asyncio.run(asyncio.wait_for(_converse(chance, place / "home"), CALLS * CALL_SECONDS))


async def _converse(chance: random.Random, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        await engine.open("c1", shell="bash")
        for _ in range(CALLS):
            await _one(chance, engine)
        if not (home / "conversations" / "c1").exists():
            return  # ended, and deleted
        # Agents may have been halted, or a person may have control.
        with acting(PERSON):
            await call(engine, "release", {})
            await call(engine, "release", {"conversation_id": "c1"})
            await call(engine, "release_control", {"conversation_id": "c1"})
            await call(engine, "close", {"conversation_id": "c1"})
        found = await call(engine, "verify", {"conversation_id": "c1"})
        assert isinstance(found, VerifyResult)
        assert found.clean, found.differences


async def _one(chance: random.Random, engine: blockpty.Engine) -> None:
    name = chance.choice(sorted(OPERATIONS.keys() - _ENDING) if chance.random() < 0.95 else sorted(_ENDING - {"open"}))
    params = {key: one for key, one in PARAMS[name].items() if chance.random() < 0.6}
    if "conversation_id" in OPERATIONS[name].request.model_fields:
        params["conversation_id"] = "c1"
    _tame(chance, name, params)
    if chance.random() < 0.3 and params:
        params[chance.choice([*params])] = value(chance, 2)
    if isinstance(params.get("timeout_ms", 0), int):
        params["timeout_ms"] = min(params.get("timeout_ms", _WAIT_MS), _WAIT_MS) if "timeout_ms" in _fields(name) else 0
    params = {key: one for key, one in params.items() if key != "timeout_ms" or "timeout_ms" in _fields(name)}
    try:
        async with asyncio.timeout(CALL_SECONDS):
            if OPERATIONS[name].shape is Shape.STREAM:
                params["follow"] = False
                async for _ in stream(engine, name, params):
                    pass
            else:
                (await call(engine, name, params)).to_dict()
    except TimeoutError:
        # A queued command waits for the end of what runs, however long that takes.
        _check(params.get("queue") is True, f"{name} took over {CALL_SECONDS} s")
    except BlockptyError as problem:
        _check(problem.code != "internal", str(problem))


def _fields(name: str) -> Any:
    return OPERATIONS[name].request.model_fields


def _tame(chance: random.Random, name: str, params: dict[str, Any]) -> None:
    """Have the parameters make sense more often."""
    if params.get("queue"):
        params["queue"] = chance.random() < 0.1
    commands = ["echo x", "cat", "seq 3000", "printf 'a\\033[31mb'; sleep .05", "(", "false", "read x", "sleep 9"]
    chosen = {
        "command": chance.choice(commands), "data": chance.choice(["x\r", "\x03", "\x04", "q", "echo y\r"]),
        "keys": chance.choice(["^C", "^D", "[ENTER]", "x[UP]", "q"]), "text": chance.choice(["x", "a\nb\n"]),
        "match": chance.choice(["x", {"regex": "[0-9]+"}, {"token": "PROMPT"}, {"idle_ms": 20}, {"screen": r"\$"}]),
        "block_id": chance.choice(["b1", "b2", "b99"]), "cwd": chance.choice(["/", "/tmp", "/nowhere"]),
        "grace_ms": 100, "at": chance.choice([0, 5, 10**6]), "from_cursor": chance.choice([0, 3, 10**9]),
    }  # fmt: skip
    for key in _fields(name):
        if key in chosen and (key in params or _fields(name)[key].is_required()):
            params[key] = chosen[key]
    if "session_id" in params:
        params["session_id"] = chance.choice(["s1", "s2", None])
    if "timeout_seconds" in _fields(name):
        params["timeout_seconds"] = 1
    if name == "interrupt":
        params["up_to"] = "INT"
