"""Tokens of a server beside the owner's: who may call it, in private files of the home.

    <home>/server/tokens.json   further tokens, by name: what each may do, and the SHA-256 of it
    <home>/server/browsers.json tokens of browsers until they expire: the SHA-256 of each, and of what it goes back to

Rules of this file: a token is 256 random bits, shown once when it is made; it is compared in constant time and never
printed, logged or given as an argument. The files are 0600 in a 0700 directory. A change holds from the next request.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from blockpty.control.principals import OWNER, RESERVED, Principal, Scope, TypesAs
from blockpty.errors import BadRequest, NotFound, SpoolCorrupt, StorageFull, Unauthorized
from blockpty.spool.layout import check_conversation_id
from blockpty.surfaces.private_files import (
    TOKEN_BYTES,
    TOKEN_NAME,
    locked,
    owner_token,
    read_private,
    server_directory,
    write_private,
)

TOKENS_NAME: Final = "tokens.json"
BROWSERS_NAME: Final = "browsers.json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TYPES_AS: Final = ("agent", "user")


class Listed(Struct, frozen=True):
    """One further token, without the token."""

    name: str
    scope: str
    conversations: tuple[str, ...] | None
    created_ts: int
    types_as: str


def add_token(
    home: Path, name: str, scope: str, conversations: tuple[str, ...] | None, created_ts: int, types_as: str = "agent"
) -> str:
    """Make a token of this name and return it; it cannot be shown again. Raises BadRequest.

    `types_as`: `agent` or `user`, who the input is from that comes with it.
    """
    if not _NAME.fullmatch(name):
        raise BadRequest(f"not a token's name: {name[:40]!r}", hint="letters, digits, dots, underscores, hyphens")
    if name in RESERVED:
        raise BadRequest(f"{name} cannot name a token: the record means others by it", hint="choose another name")
    if scope.upper() not in Scope.__members__:
        raise BadRequest(f"no scope is called {scope[:40]!r}", hint="read, write or admin")
    if types_as not in _TYPES_AS:
        raise BadRequest(f"nothing types as {types_as[:40]!r}", hint="agent or user")
    directory = server_directory(home)
    with locked(directory):
        records = _load(directory)
        if name in records:
            raise BadRequest(f"there is a token called {name} already", hint="remove it first, or choose another name")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        records[name] = {
            "scope": scope.lower(),
            "conversations": None if conversations is None else [check_conversation_id(one) for one in conversations],
            "created_ts": created_ts,
            "sha256": _digest(token).hex(),
            "types_as": types_as,
        }
        _store(directory, records)
    return token


def remove_token(home: Path, name: str) -> None:
    """Delete a token: from now on it is unknown. Raises NotFound."""
    directory = server_directory(home)
    with locked(directory):
        records = _load(directory)
        if records.pop(name, None) is None:
            raise NotFound(f"no token is called {name[:40]}", hint="token list names them")
        _store(directory, records)


def list_tokens(home: Path) -> list[Listed]:
    """Return the further tokens by name."""
    return [
        Listed(
            name, one["scope"], None if (only := one["conversations"]) is None else tuple(only), one["created_ts"],
            one.get("types_as", "agent"),
        )
        for name, one in sorted(_load(server_directory(home)).items())
    ]


class _Given(Struct, frozen=True):
    """What a browser was given: until when, on the strength of which token (its digest), and whose rights it has."""

    until: float
    source: bytes
    principal: Principal


class TokenBook:
    """Tokens that a server knows: those of the files, and short-lived ones that it gave to browsers.

    Args:
        home: whose files are read; they are looked at again whenever they have changed. Raises SpoolCorrupt.
    """

    CODE_SECONDS: Final = 60
    BROWSER_SECONDS: Final = 12 * 3600

    def __init__(self, home: Path) -> None:
        self._directory = server_directory(home)
        # Looked at for each request and each frame.
        self._paths = [os.fspath(self._directory / name) for name in (TOKEN_NAME, TOKENS_NAME)]
        owner_token(home)
        self._seen: list[tuple[int, int, int] | None] = []
        self._principals: list[tuple[bytes, Principal]] = []
        self._codes: dict[bytes, _Given] = {}
        self._read()
        self._browsers = self._stored()

    def principal(self, token: str, now: float) -> Principal:
        """Return whose token this is; raises Unauthorized. `now` is in seconds since 1970.

        A browser's token is renewed by use, once half of its time is over.
        """
        self._read()
        self._browsers = {digest: one for digest, one in self._browsers.items() if self._holds(one, now)}
        given, found = _digest(token), None
        if (used := self._browsers.get(given)) is not None and used.until - now < self.BROWSER_SECONDS / 2:
            self._keep(given, replace(used, until=now + self.BROWSER_SECONDS))
        for known, principal in [*self._principals, *self._pages()]:
            # All of them, always: how long it takes says nothing about which one it was.
            if hmac.compare_digest(known, given):
                found = principal
        if found is None:
            raise Unauthorized("the token is not known to this server", hint="read it again from <home>/server/token")
        return found

    def make_code(self, principal: Principal, now: float) -> str:
        """Return a code that can be changed once, within `CODE_SECONDS`, into a token with the same rights.

        Code and token hold no longer than the token of a file that they go back to. Raises Unauthorized.
        """
        self._read()
        # A page's own token makes codes too: its principal is the same, as a person.
        same = (found for found in self._principals if replace(found[1], types_as=principal.types_as) == principal)
        source, known = next(same, (None, principal))
        if source is None or known.is_person != principal.is_person:
            raise Unauthorized(f"the token {principal.name} is not known any more", hint="use another one")
        self._codes = {digest: one for digest, one in self._codes.items() if self._holds(one, now)}
        code = secrets.token_urlsafe(TOKEN_BYTES)
        self._codes[_digest(code)] = _Given(now + self.CODE_SECONDS, source, known)
        return code

    def change_code(self, code: str, now: float) -> str:
        """Return a token of `BROWSER_SECONDS` for a code, which is used up by that; raises Unauthorized."""
        self._read()
        # Looked up by a digest of what was given: its timing tells nothing about a code.
        given = self._codes.pop(_digest(code), None)
        if given is None or not self._holds(given, now):
            raise Unauthorized("the code is not known, was used, or is too old", hint="ask for another one")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._keep(_digest(token), _Given(now + self.BROWSER_SECONDS, given.source, given.principal))
        return token

    def _keep(self, digest: bytes, given: _Given) -> None:
        """Keep a browser's token, also for the next server of this home; on a full disk only for this one."""
        self._browsers[digest] = given
        content = {
            one.hex(): {"until": kept.until, "source": kept.source.hex()} for one, kept in self._browsers.items()
        }
        with contextlib.suppress(StorageFull):
            write_private(self._directory / BROWSERS_NAME, json.dumps({"format": 1, "browsers": content}).encode())

    def _stored(self) -> dict[bytes, _Given]:
        """Return the tokens of browsers that an earlier server gave; none when their file is damaged."""
        sources = dict(self._principals)
        try:
            content = json.loads(read_private(self._directory / BROWSERS_NAME))["browsers"]
            found = [(bytes.fromhex(one), float(kept["until"]), bytes.fromhex(kept["source"]))
                     for one, kept in content.items()]  # fmt: skip
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        return {one: _Given(until, source, sources[source]) for one, until, source in found if source in sources}

    def _pages(self) -> Iterator[tuple[bytes, Principal]]:
        """Yield the tokens of browsers: in a page it is a person who types."""
        for digest, one in self._browsers.items():
            yield digest, one.principal.as_person() if one.principal.is_person else one.principal

    def _holds(self, given: _Given, now: float) -> bool:
        return given.until > now and (given.source, given.principal) in self._principals

    def _read(self) -> None:
        seen = [_state(path) for path in self._paths]
        if seen == self._seen:
            return
        principals = []
        try:
            owner = read_private(self._directory / TOKEN_NAME).strip()
        except FileNotFoundError:
            owner = b""
        # An emptied file is no empty token.
        if len(owner) >= TOKEN_BYTES:
            principals.append((_digest(owner.decode("ascii", "replace")), OWNER))
        for name, one in _load(self._directory).items():
            bound = None if one["conversations"] is None else frozenset(one["conversations"])
            # Tokens of earlier versions do not say it: they are for programs.
            types_as: TypesAs = "user" if one.get("types_as") == "user" else "agent"
            found = Principal(name, Scope[one["scope"].upper()], bound, types_as)
            principals.append((bytes.fromhex(one["sha256"]), found))
        self._principals, self._seen = principals, seen


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _load(directory: Path) -> dict[str, dict[str, Any]]:
    try:
        content = read_private(directory / TOKENS_NAME)
    except FileNotFoundError:
        return {}
    try:
        records: dict[str, dict[str, Any]] = json.loads(content)["tokens"]
        for one in records.values():
            Scope[one["scope"].upper()], int(one["created_ts"])
            only = one["conversations"]
            if len(bytes.fromhex(one["sha256"])) != TOKEN_BYTES or not (only is None or isinstance(only, list)):
                raise ValueError
            if one.get("types_as", "agent") not in _TYPES_AS:
                raise ValueError
            for conversation_id in only or ():
                check_conversation_id(conversation_id)
    except (ValueError, KeyError, TypeError, AttributeError, BadRequest):
        raise SpoolCorrupt(
            f"{directory / TOKENS_NAME} is damaged", hint="remove the file and make the tokens again"
        ) from None
    return records


def _store(directory: Path, records: dict[str, dict[str, Any]]) -> None:
    content = json.dumps({"format": 1, "tokens": records}, indent=1).encode()
    write_private(directory / TOKENS_NAME, content + b"\n")
