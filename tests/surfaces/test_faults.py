"""The HTTP status of each error."""

from __future__ import annotations

import pytest

from blockpty import errors
from blockpty.surfaces.faults import STATUS, status_of


def test_every_error_that_a_call_answers_has_a_status() -> None:
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert set(STATUS) == {kind.code for kind in classes if issubclass(kind, errors.BlockptyError)}


@pytest.mark.parametrize(
    ("exact", "status"), [(413, 413), (405, 405), (500, 400), (200, 400), ("413", 400), (None, 400)]
)
def test_details_may_only_be_more_exact(exact: object, status: int) -> None:
    problem = errors.BadRequest("no", details={} if exact is None else {"http_status": exact})
    assert status_of(problem) == status
