"""Prompts for a secret, by the last line that was printed."""

from __future__ import annotations

import pytest

from blockpty.redact.secret_prompts import asks_for_secret


@pytest.mark.parametrize(
    "text",
    [
        "Password: ", "[sudo] password for ann: ", "Enter passphrase for key '/home/me/.ssh/id':", "PIN: ",
        "me@host's password: ", "Verification code: ", "Token > ", "Passwort: ", "Пароль: ", "密码：", "API key: ",
        "hello\r\nPassword: ****", "****",
    ],
)  # fmt: skip
def test_a_question_for_a_secret(text: str) -> None:
    assert asks_for_secret(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "", "Password: \n", "Name: ", "$ ", "password changed", "spinning", "compass: north", "Password: \r\n$ ls",
        "Password: " + "x" * 400,
    ],
)  # fmt: skip
def test_anything_else(text: str) -> None:
    assert not asks_for_secret(text.encode())


def test_bytes_that_are_no_text_ask_for_nothing() -> None:
    assert not asks_for_secret(bytes(range(128, 256)))
