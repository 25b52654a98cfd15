"""Masking of the nonce in everything derived: each occurrence becomes as many asterisks."""

from __future__ import annotations

from collections.abc import Iterable

from ahocorasick_rs import BytesAhoCorasick


class Mask:
    """The nonces of a conversation's shells; a fresh one is added when a shell starts."""

    def __init__(self, nonces: Iterable[str] = ()) -> None:
        self._nonces = [nonce.encode("ascii", "replace") for nonce in nonces if nonce]
        # Several times as fast as `in`.
        self._search = BytesAhoCorasick(self._nonces)

    @property
    def nonces(self) -> list[str]:
        """All of them, for a checkpoint."""
        return [nonce.decode("ascii", "replace") for nonce in self._nonces]

    def add(self, nonce: str) -> None:
        """Hide one more."""
        encoded = nonce.encode("ascii", "replace")
        if encoded and encoded not in self._nonces:
            self._nonces.append(encoded)
            self._search = BytesAhoCorasick(self._nonces)

    def hide(self, data: bytes) -> bytes:
        """Return the bytes with every nonce masked; the length stays."""
        if self._search.find_matches_as_indexes(data):
            for nonce in self._nonces:
                data = data.replace(nonce, b"*" * len(nonce))
        return data

    def partial(self, data: bytes) -> int:
        """Return how many bytes at the end may be the beginning of a nonce."""
        longest = 0
        for nonce in self._nonces:
            tail = data[-(len(nonce) - 1) :] if len(nonce) > 1 else b""
            at = tail.find(nonce[:1])
            while at >= 0 and len(tail) - at > longest:
                if nonce.startswith(tail[at:]):
                    longest = len(tail) - at
                    break
                at = tail.find(nonce[:1], at + 1)
        return longest
