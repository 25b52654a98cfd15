"""S11: tokens on disk and in memory. Time is an argument, so nothing here waits."""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blockpty.control.principals import OWNER, Scope
from blockpty.errors import BadRequest, BlockptyError, NotFound, SpoolCorrupt, Unauthorized
from blockpty.surfaces.private_files import owner_token, renew_owner_token, server_directory, write_private
from blockpty.surfaces.tokens import TokenBook, add_token, list_tokens, remove_token
from tests.support.unsafe_files import mode


def test_files_are_private_and_a_token_has_256_bits(home: Path) -> None:
    before = os.umask(0)
    try:
        token = owner_token(home)
        made = add_token(home, "ci", "read", None, 5)
    finally:
        os.umask(before)
    assert len(token) == len(made) == 43, "32 bytes in base64url"
    directory = server_directory(home)
    assert mode(directory) == 0o700
    assert {path.name: mode(path) for path in directory.iterdir()} == {
        "token": 0o600, "tokens.json": 0o600, "tokens.lock": 0o600,
    }  # fmt: skip
    assert owner_token(home) == token
    assert made not in (directory / "tokens.json").read_text("utf-8"), "only its digest is kept"
    assert [(one.name, one.scope, one.conversations) for one in list_tokens(home)] == [("ci", "read", None)]


def test_tokens_that_are_made_at_once_are_all_kept(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: add_token(home, f"t{number}", "read", None, 0), range(24)))
    assert len(list_tokens(home)) == 24


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.chmod(0o644),
        lambda path: path.chmod(0o660),
        lambda path: (path.rename(path.with_name("elsewhere")), path.symlink_to("elsewhere")),
        lambda path: (path.unlink(), path.symlink_to("/etc/hostname")),
        lambda path: (path.unlink(), path.mkdir()),
        replace_by_fifo,
    ],
    ids=["0644", "0660", "link", "link outside", "directory", "fifo"],
)
@pytest.mark.parametrize("name", ["token", "tokens.json"])
def test_a_file_that_is_not_private_is_refused(home: Path, name: str, damage: Callable[[Path], object]) -> None:
    owner = owner_token(home)
    book = TokenBook(home)
    add_token(home, "ci", "admin", None, 0)
    damage(server_directory(home) / name)
    with pytest.raises(SpoolCorrupt):
        book.principal(owner, 0)
    with pytest.raises(SpoolCorrupt):
        owner_token(home) if name == "token" else list_tokens(home)


def test_the_directory_must_be_ours(home: Path, tmp_path: Path) -> None:
    (tmp_path / "prepared").mkdir(0o777)
    (home / "server").symlink_to(tmp_path / "prepared")
    for act in (owner_token, TokenBook, list_tokens, renew_owner_token):
        with pytest.raises(SpoolCorrupt):
            act(home)
    assert list((tmp_path / "prepared").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"x", b"a" * 31, b"\xff" * 43])
def test_an_emptied_file_is_no_token(home: Path, content: bytes) -> None:
    owner_token(home)
    book = TokenBook(home)
    write_private(server_directory(home) / "token", content)
    for guess in ("", "\n", content.decode("latin-1"), content.decode("ascii", "replace").strip()):
        if len(guess) < 43:
            with pytest.raises(Unauthorized):
                book.principal(guess, 0)


def record(**fields: object) -> bytes:
    sound = {"sha256": "00" * 32, "scope": "admin", "conversations": None, "created_ts": 0}
    return json.dumps({"tokens": {"a": {**sound, **fields}}}).encode()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"tokens": []}', b'{"tokens": {"a": {}}}', b'{"tokens": {"a": 1}}'),
        *(record(scope="root"), record(scope=3), record(sha256="zz"), record(sha256=""), record(sha256="00")),
        *(record(conversations=5), record(conversations="c1"), record(conversations=["../c1"]), record(created_ts="x")),
    ],
)
def test_a_damaged_list_admits_no_client(home: Path, content: bytes) -> None:
    owner = owner_token(home)
    book = TokenBook(home)
    write_private(server_directory(home) / "tokens.json", content)
    with pytest.raises(SpoolCorrupt):
        book.principal(owner, 0)
    with pytest.raises(SpoolCorrupt):
        list_tokens(home)


def test_rights_are_those_that_were_given(home: Path) -> None:
    owner = owner_token(home)
    book = TokenBook(home)
    assert book.principal(owner, 0) == OWNER
    for scope in ("read", "write", "admin", "READ"):
        token = add_token(home, f"t-{scope}", scope, ("c1", "c2"), 0)
        found = book.principal(token, 0)
        assert (found.name, found.scope) == (f"t-{scope}", Scope[scope.upper()])
        assert found.conversations == frozenset({"c1", "c2"})
    for token in ("", " ", owner[:-1], owner + "A", owner.swapcase(), "é", "\ud800", "x" * 100_000):
        with pytest.raises(Unauthorized):
            book.principal(token, 0)


@pytest.mark.parametrize(
    "name",
    ["", "owner", "local", "engine", "../x", "a/b", "a b", "a\n", ".a", "-a", "x" * 65, "a\0", "ａ"],
)
def test_names_of_tokens(home: Path, name: str) -> None:
    with pytest.raises(BadRequest):
        add_token(home, name, "read", None, 0)
    assert list_tokens(home) == []


@pytest.mark.parametrize(
    ("scope", "only"), [("root", None), ("", None), ("3", None), ("read", ("../c1",)), ("read", ("",))]
)
def test_what_a_token_may_not_be_for(home: Path, scope: str, only: tuple[str, ...] | None) -> None:
    with pytest.raises(BadRequest):
        add_token(home, "ci", scope, only, 0)
    assert list_tokens(home) == []


def test_removing_and_renewing_hold_at_once(home: Path) -> None:
    owner = owner_token(home)
    ci = add_token(home, "ci", "admin", None, 0)
    book = TokenBook(home)
    assert book.principal(ci, 0).name == "ci"
    with pytest.raises(BadRequest, match="already"):
        add_token(home, "ci", "read", None, 0)
    remove_token(home, "ci")
    with pytest.raises(Unauthorized):
        book.principal(ci, 0)
    with pytest.raises(NotFound):
        remove_token(home, "ci")
    renew_owner_token(home)
    with pytest.raises(Unauthorized):
        book.principal(owner, 0)
    assert book.principal(owner_token(home), 0) == OWNER
    (server_directory(home) / "token").unlink()
    with pytest.raises(Unauthorized):
        book.principal(owner, 0)


def test_every_known_token_is_compared_whichever_was_meant(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant time: always compare_digest, always with all of them, always digests of one length."""
    owner = owner_token(home)
    known = [owner, *(add_token(home, f"t{number}", "read", None, 0) for number in range(4))]
    book = TokenBook(home)
    known.append(book.change_code(book.make_code(OWNER, 0), 0))
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for token in known:
        compared.clear()
        book.principal(token, 0)
        assert compared == [(32, 32)] * len(known)
    for token in ("", "x", owner[:-1], "x" * 10_000):
        compared.clear()
        with pytest.raises(Unauthorized):
            book.principal(token, 0)
        assert compared == [(32, 32)] * len(known)


def test_a_code_works_once_and_expires(home: Path) -> None:
    book = TokenBook(home)
    ci = book.principal(add_token(home, "ci", "read", ("c1",), 0), 0)
    code = book.make_code(ci, 100)
    token = book.change_code(code, 100 + book.CODE_SECONDS - 1)
    assert book.principal(token, 200) == ci, "no more rights than the one that asked for it"
    for again in (code, "", "x", token):
        with pytest.raises(Unauthorized):
            book.change_code(again, 160)
    late = book.make_code(ci, 1000)
    with pytest.raises(Unauthorized):
        book.change_code(late, 1000 + book.CODE_SECONDS)
    with pytest.raises(Unauthorized):
        book.change_code(late, 1000)  # used up by that
    with pytest.raises(Unauthorized):
        book.principal(code, 150)
    used = 200
    with pytest.raises(Unauthorized):
        book.principal(token, used + 2 * book.BROWSER_SECONDS)


def test_a_browsers_token_is_renewed_by_use_and_survives_a_restart(home: Path) -> None:
    book = TokenBook(home)
    token = book.change_code(book.make_code(OWNER, 0), 0)
    late = book.BROWSER_SECONDS - 1
    assert book.principal(token, late) == OWNER.as_person()
    again = TokenBook(home)
    assert again.principal(token, book.BROWSER_SECONDS + 1) == OWNER.as_person(), "used shortly before its end"
    with pytest.raises(Unauthorized):
        again.principal(token, late + 2 * book.BROWSER_SECONDS)
    file = home / "server" / "browsers.json"
    assert token not in file.read_text() and file.stat().st_mode & 0o777 == 0o600


def test_a_renewed_owner_token_ends_the_browsers_of_an_earlier_server(home: Path) -> None:
    book = TokenBook(home)
    token = book.change_code(book.make_code(OWNER, 0), 0)
    renew_owner_token(home)
    with pytest.raises(Unauthorized):
        TokenBook(home).principal(token, 1)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"browsers": {"zz": {}}}', '{"browsers": {"00": {"until": "x"}}}']
)
def test_a_damaged_file_of_browsers_signs_them_out(home: Path, content: str) -> None:
    book = TokenBook(home)
    token = book.change_code(book.make_code(OWNER, 0), 0)
    (home / "server" / "browsers.json").write_text(content)
    with pytest.raises(Unauthorized):
        TokenBook(home).principal(token, 1)


def test_what_a_browser_got_goes_with_the_token_that_it_got_it_from(home: Path) -> None:
    book = TokenBook(home)

    def browser(token: str) -> tuple[str, str]:
        principal = book.principal(token, 0)
        return book.change_code(book.make_code(principal, 0), 0), book.make_code(principal, 0)

    of_owner, owner_code = browser(owner_token(home))
    of_ci, ci_code = browser(add_token(home, "ci", "admin", None, 0))
    of_other, other_code = browser(add_token(home, "other", "admin", None, 0))
    remove_token(home, "ci")
    add_token(home, "ci", "read", None, 0)  # the same name again, with fewer rights
    with pytest.raises(Unauthorized):
        book.principal(of_ci, 1)
    with pytest.raises(Unauthorized):
        book.change_code(ci_code, 1)
    assert book.principal(of_owner, 1) == OWNER.as_person()
    renew_owner_token(home)
    with pytest.raises(Unauthorized):
        book.change_code(owner_code, 1)
    with pytest.raises(Unauthorized):
        book.principal(of_owner, 1)
    assert book.principal(of_other, 1).name == "other"
    assert book.principal(book.change_code(other_code, 1), 1).name == "other"


def test_no_error_tells_a_token(home: Path) -> None:
    owner = owner_token(home)
    book = TokenBook(home)
    for act in (lambda: book.principal(owner + "x", 0), lambda: book.change_code(owner, 0)):
        with pytest.raises(BlockptyError) as caught:
            act()
        assert owner not in json.dumps(caught.value.to_dict())
