"""`blockpty doctor`: look at everything blockpty needs from this machine, and say how to mend what is not right.

It looks and changes nothing: a home that is not there is not made, a host that does not run is not started.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from blockpty.surfaces.cli.invocation import Invocation, anywhere

if TYPE_CHECKING:
    from blockpty.surfaces.cli.checks import Finding

_DOC = """Check what blockpty needs from this machine, and say how to mend what is not right.

Looks at Python and the libraries, the shells, the home and its permissions, limits, disk space, ports, and at the host
and conversations that are there. Changes nothing. The exit status is 1 when a check failed."""

_COLOURS = {"ok": "32", "warning": "33", "failed": "31"}


def command() -> click.Command:
    """Return the command."""
    return click.Command(
        "doctor",
        params=[*anywhere()],
        help=_DOC,
        short_help="Check what blockpty needs from this machine.",
        callback=_doctor,
    )


@click.pass_obj
def _doctor(invocation: Invocation, /) -> int:
    from blockpty.surfaces.cli.checks import examine

    screen = invocation.screen()
    counts = dict.fromkeys(_COLOURS, 0)
    findings = []
    for finding in examine(invocation.directory()):
        counts[finding.status] += 1
        findings.append(finding)
        if not invocation.as_json:
            _show(finding)
    if invocation.as_json:
        made = {"ok": True, "failed": counts["failed"], "warnings": counts["warning"]}
        screen.record({**made, "checks": [finding.to_dict() for finding in findings]})
    else:
        warnings = f"{counts['warning']} warning{'' if counts['warning'] == 1 else 's'}"
        sys.stdout.write(f"{len(findings)} checks: {counts['failed']} failed, {warnings}\n")
    return 1 if counts["failed"] else 0


def _show(finding: Finding) -> None:
    from blockpty.surfaces.cli.render import colours_wanted
    from blockpty.surfaces.sanitize import one_line

    coloured = sys.stdout.isatty() and colours_wanted()
    status = f"{finding.status:<7}"
    shown = f"\x1b[{_COLOURS[finding.status]}m{status}\x1b[0m" if coloured else status
    sys.stdout.write(f"{shown}  {finding.name:<13}  {one_line(finding.message)}\n")
    if finding.mend:
        sys.stdout.write(f"{'':<24}{one_line(finding.mend)}\n")
    sys.stdout.flush()
