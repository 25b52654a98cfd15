"""Command `blockpty doctor`: all that blockpty needs from this machine, and how to repair what is not right.

It looks and changes nothing: a home that is not there is not made, a host that does not run is not started.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from blockpty.surfaces.cli.invocation import Invocation, anywhere

if TYPE_CHECKING:
    from pathlib import Path

    from blockpty.surfaces.cli.checks import Finding

_DOC = """Check what blockpty needs from this machine, and say how to repair what is not right.

Looks at Python and the libraries, the shells, the home and its permissions, limits, disk space, ports, at the host and
conversations that are there, and at what agents may do. Changes nothing. The exit status is 1 when a check failed."""

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


def examine(home: Path) -> Iterator[Finding]:
    """Yield what each check finds; one that itself goes wrong is a finding too."""
    from blockpty.surfaces.cli import checks, state

    made: list[tuple[str, Callable[[], Finding]]] = [
        ("python", checks.check_python),
        ("libraries", checks.check_libraries),
        ("extras", checks.check_extras),
        ("shells", checks.check_shells),
        ("shell", checks.check_default_shell),
        ("terminals", checks.check_terminals),
        ("sandbox", checks.check_sandbox),
        ("home", lambda: checks.check_home(home)),
        ("disk", lambda: checks.check_disk(home)),
        ("splice", lambda: checks.check_splice(home)),
        ("files", checks.check_open_files),
        ("processes", checks.check_processes),
        ("socket path", lambda: checks.check_socket_path(home)),
        ("host", lambda: state.check_host(home)),
        ("conversations", lambda: state.check_conversations(home)),
        ("port", lambda: state.check_port(home)),
        ("server", lambda: state.check_server(home)),
        ("policy", lambda: state.check_policy(home)),
        ("agents", lambda: state.check_agents(home)),
    ]
    for name, check in made:
        try:
            yield check()
        except Exception as error:  # noqa: BLE001  (whatever it is, the other checks are still worth making)
            yield checks.Finding(name, "failed", f"the check itself went wrong: {type(error).__name__}: {error}")


def _show(finding: Finding) -> None:
    from blockpty.surfaces.cli.render import colours_wanted
    from blockpty.surfaces.sanitize import one_line

    coloured = sys.stdout.isatty() and colours_wanted()
    status = f"{finding.status:<7}"
    shown = f"\x1b[{_COLOURS[finding.status]}m{status}\x1b[0m" if coloured else status
    sys.stdout.write(f"{shown}  {finding.name:<13}  {one_line(finding.message)}\n")
    if finding.remedy:
        sys.stdout.write(f"{'':<24}{one_line(finding.remedy)}\n")
    sys.stdout.flush()
