"""The list of threats in docs/topics/security.md names tests that exist, for S1 to S14 at least."""

from __future__ import annotations

import re

from tests.support.markdown import TOP

PAGE = TOP / "docs" / "topics" / "security.md"


def test_every_threat_has_tests_that_exist() -> None:
    text = PAGE.read_text("utf-8").partition("## What is tested")[2]
    threats = re.findall(r"^\* \*\*(S\d+)\*\*: .+\n((?:  .+\n)+)", text, re.MULTILINE)
    assert {f"S{number}" for number in range(1, 15)} <= {number for number, _ in threats}
    assert len(threats) == text.count("\n* ")
    for number, named in threats:
        tests = re.findall(r"^  \* `(tests/[a-z_/]+\.py)::(test_\w+)`$", named, re.MULTILINE)
        assert len(tests) == named.count("\n"), f"{number} names something that is no test"
        for path, test in tests:
            found = re.search(rf"^(async )?def {test}\(", (TOP / path).read_text("utf-8"), re.MULTILINE)
            assert found, f"{number}: {path}::{test}"
