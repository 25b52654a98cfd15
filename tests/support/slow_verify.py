"""A verification that stands still, so that its progress can be seen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from blockpty.api.progress import Progress
from blockpty.model.results import VerifyResult
from blockpty.runtime import record_checks

if TYPE_CHECKING:
    import pytest


@contextmanager
def slow_verify(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Have `verify` stand at 5 of 8 bytes until the event is set."""
    going = threading.Event()

    def verify(*_given: Any, **_named: Any) -> VerifyResult:
        progress = Progress.of_caller()
        progress.begin("verify", 8)
        progress.reach(5)
        assert going.wait(60)
        progress.reach(8)
        return VerifyResult(True, 8, 0, 0, 0, [], [])

    with monkeypatch.context() as patched:
        patched.setattr(record_checks, "verify", verify)
        try:
            yield going
        finally:
            going.set()
