"""What other shell integrations print: reported in the output of a block and nowhere else, and never a border."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.engine.hints import LEAD, MAX_HINTS
from blockpty.runtime.status import nested_of
from blockpty.testing import FakePty, derive, events_of, every_split, state_of
from tests.support.machines import NONCE, at_prompt, blocks_of, running, through_json

A = b"\x1b]133;A\x07"
WRAPPER = "wrapper"


def hints(pty: FakePty) -> list[tuple[str, str, bytes]]:
    """Return source, kind and bytes of every reported hint, the same for every cut."""
    expected = derive(pty.recording)
    for cuts in every_split(pty.recording.stream):
        assert derive(pty.recording, cuts) == expected, cuts
    found = [event for event in events_of(pty.recording) if event.type == "hint"]
    assert all(event.cursor == event.fields["span"][0] and "more" not in event.fields for event in found)
    stream = pty.recording.stream
    return [(event.fields["source"], event.fields["kind"], stream[slice(*event.fields["span"])]) for event in found]


def nested(pty: FakePty, foreground: str | None = WRAPPER, kind: str = "child") -> dict[str, Any] | None:
    state = state_of(pty.recording)
    found = nested_of(state, foreground, kind)
    assert nested_of(through_json(state), foreground, kind) == found
    return found


def test_hints_in_the_output_are_reported_and_left_in_it() -> None:
    pty, _ = running()
    output = b"a\x1b]133;D;1\x1b\\b\x1b]633;P;Cwd=/\x07\x1b]7;file://h/\x07\x1b]3008;end=1\x07"
    pty.output(output)
    pty.end(3)
    pty.prompt(3)
    assert hints(pty) == [
        ("133", "D", b"\x1b]133;D;1\x1b\\"),
        ("633", "P", b"\x1b]633;P;Cwd=/\x07"),
        ("7", "cwd", b"\x1b]7;file://h/\x07"),
        ("3008", "end", b"\x1b]3008;end=1\x07"),
    ]
    (block,) = blocks_of(pty.recording)
    assert (block["exit_status"], block["state"]) == (3, "ended")
    assert list(derive(pty.recording).outputs.values()) == [output]


def test_hints_outside_of_output_are_not_reported() -> None:
    pty = at_prompt()
    pty.output(A)
    pty.silence(icanon=False, echo=False, foreground="shell")
    pty.output(A + b"background\r\n" + A)
    pty.submit("x")
    pty.output(A)
    pty.begin()
    pty.output(b"x" + pty.mark("OUT_END") + A)
    pty.end()
    pty.output(A)
    pty.prompt()
    assert hints(pty) == []


def test_after_64_one_more_and_again_in_the_next_block() -> None:
    pty, begin = running()
    pty.output(A * (MAX_HINTS + 6))
    pty.end()
    pty.prompt()
    pty.run("y", A)
    reported = [event.fields for event in events_of(pty.recording) if event.type == "hint"]
    assert len(reported) == MAX_HINTS + 2
    assert [number for number, fields in enumerate(reported) if fields.get("more") is True] == [MAX_HINTS]
    assert reported[MAX_HINTS]["span"] == [begin + 8 * MAX_HINTS, begin + 8 * MAX_HINTS + 8]
    assert derive(pty.recording) == derive(pty.recording, range(len(pty.recording.stream)))


@pytest.mark.parametrize("text", [b"one\r\n", b""])
def test_our_own_is_part_of_begin_and_in_no_output(text: bytes) -> None:
    pty, begin = running()
    pty.output(text)
    parts = len(pty.recording.stream)
    pty.output(LEAD)
    pty.begin()
    pty.output(b"two\r\n" + LEAD)
    pty.end()
    pty.prompt()
    end = len(pty.recording.stream)
    assert hints(pty) == [("133", "C", LEAD)]
    (output,) = derive(pty.recording).outputs.values()
    assert output == (text + b"two\r\n").replace(b"\r\n", b"\n") + LEAD
    deltas = [event.fields["span"] for event in events_of(pty.recording) if event.type == "agent_block_delta"]
    assert [span for span in deltas if span[1] <= parts] == ([[begin, parts]] if text else [])
    assert deltas[-1][0] > parts + len(LEAD) and deltas[-1][1] < end
    (block,) = blocks_of(pty.recording)
    assert block["parts"] == 2


def test_held_back_only_until_nothing_can_follow() -> None:
    pty, _ = running()
    pty.output(b"x" + LEAD)
    pty.entry("exit", status=1, signal=None)
    assert hints(pty) == [("133", "C", LEAD)]
    assert list(derive(pty.recording).outputs.values()) == [b"x" + LEAD]


def test_in_front_of_a_begin_that_is_not_accepted() -> None:
    pty, _ = running()
    forged = LEAD + pty.mark("BEGIN").replace(NONCE.encode(), b"B" * 22)
    pty.output(forged + b"x")
    pty.end()
    pty.prompt()
    assert hints(pty) == []
    (spoofed,) = [event.fields["span"] for event in events_of(pty.recording) if event.type == "spoofed_mark"]
    assert spoofed[1] - spoofed[0] == len(forged)
    assert list(derive(pty.recording).outputs.values()) == [forged + b"x"]


EVIDENCE = {
    "nothing": (b"text \x1b]133;D\x07\x1b]633;A\x07", None),
    "a prompt": (A, "hints"),
    "more hints than are reported": (b"\x1b]7;/\x07" * 99 + A, None),
    "another process": (b"\x1b]7717;__PROMPT__;n=%s;i=9;s=1;c=0;p=1\x07" % NONCE.encode(), "marks"),
    "no nonce": (b"\x1b]7717;__BEGIN__;n=;i=9;s=1;c=1\x07", "marks"),
    "both": (b"\x1b]7717;__BEGIN__;n=;i=9;s=1;c=1\x07" + A, "marks"),
    "both, the other way round": (A + b"\x1b]7717;__BEGIN__;n=;i=9;s=1;c=1\x07", "marks"),
    "another shell's nonce": (b"\x1b]7717;__PROMPT__;n=%s;i=9;s=1;c=0;p=1\x07" % (b"B" * 22), None),
    "no form": (b"\x1b]7717;__PROMPT__;n=;i=9\x07\x1b]7717;__WHAT__;n=;i=9;s=1;c=1\x07\x1b]7717;;n=;", None),
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_of_another_shell(name: str) -> None:
    output, evidence = EVIDENCE[name]
    pty, _ = running()
    pty.output(output)
    expected = {"program": WRAPPER, "evidence": evidence} if evidence else None
    assert nested(pty) == expected
    assert nested(pty, "-ssh") == {"program": "ssh", "evidence": "foreground"}
    assert nested(pty, "bash", "shell") is None
    assert nested(pty, None) is None
    pty.end()
    assert nested(pty) is None
    pty.prompt()
    assert nested(pty) is None
    pty.submit("y")
    pty.begin()
    assert nested(pty) is None


@pytest.mark.parametrize("name", EVIDENCE)
def test_evidence_outside_of_output_counts_for_nothing(name: str) -> None:
    pty = at_prompt()
    pty.output(EVIDENCE[name][0])
    pty.submit("x")
    pty.output(EVIDENCE[name][0])
    pty.begin()
    assert nested(pty) is None
