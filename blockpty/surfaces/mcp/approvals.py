"""Approvals: the person at the client is asked while a call of the model waits for one.

Rules of this file: what is shown is what `approvals` shows, and the verdict names its digest. It is given on behalf of
the person, never of the model, and is asked for only where that person may give it. Without an answer the call goes on
waiting, and any other surface may answer.

A client either answers while the call waits (protocol versions up to 2025-11-25), or gets the question as the answer
and makes the call again (2026-07-28). Then what waited is withdrawn, and the new call is allowed when it asks for the
same digest; each question can be answered once. A refusal is recorded for what was withdrawn.
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct

from blockpty.errors import ApprovalDenied, BlockptyError, Stale
from blockpty.surfaces.access import Caller
from blockpty.surfaces.approvals import body, heading

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_KEY: Final = "approval"
_FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}
_MOST_QUESTIONS: Final = 1024
_NO_DIGEST: Final = "0" * 64


class Person(Struct, frozen=True):
    """The person at a client.

    Attributes:
        caller: gives verdicts on their behalf.
        agent: name of the principal that the model acts for; None where that is not known here.
    """

    caller: Caller
    agent: str | None = None


PersonOf = Callable[["ServerRequestContext[Any, Any]"], Person | None]
"""Finds the person at the client of a request; None where its token does not type as one."""


class Resumed(Struct, frozen=True):
    """A call that is made again with the answer to a question.

    Attributes:
        digest: of what was shown, if it was allowed.
        conversation_id: where it would happen.
    """

    digest: str | None
    conversation_id: str


class InputNeeded(Exception):
    """The client has to ask the person and make the call again; it never leaves this surface."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class ApprovalQuestions:
    """Questions to the persons at the clients of one server.

    Args:
        person_of: finds the person; None: no person is asked.
    """

    def __init__(self, person_of: PersonOf | None = None) -> None:
        self._person_of = person_of
        self._asking: set[tuple[str, str]] = set()
        # Those that were given to a client as an answer, by a name that is good for one call.
        self._given: OrderedDict[str, None] = OrderedDict()

    def person(self, context: ServerRequestContext[Any, Any]) -> Person | None:
        """Return the person who can be asked in the course of this request."""
        return self._person_of(context) if self._person_of is not None and can_elicit(context) else None

    async def ask(
        self, context: ServerRequestContext[Any, Any], person: Person, approval: Mapping[str, Any],
        resumed: Resumed | None,
    ) -> None:  # fmt: skip
        """Ask about something that waits, and give the verdict; raises InputNeeded where calls are made anew."""
        key = approval["conversation_id"], approval["approval_id"]
        if key in self._asking or not await _may_answer(person, approval):
            return
        if resumed is not None and resumed.digest == approval["digest"]:
            await _decide(person, approval, "approve")
            return
        message = "\n".join(
            [heading(approval), *body(approval), "", "Accept allows this once. Decline refuses it."]
        )  # fmt: skip
        if not context.session.can_send_request:
            if resumed is None or resumed.digest is not None:
                raise InputNeeded(self._question(message, approval))
            return
        self._asking.add(key)
        try:
            answer = await context.session.elicit_form(message, _FORM, related_request_id=context.request_id)
        except MCPError:
            return  # the client said that it can ask, but it cannot
        finally:
            self._asking.discard(key)
        if answer.action != "cancel":
            await _decide(person, approval, "approve" if answer.action == "accept" else "deny")

    def _question(self, message: str, approval: Mapping[str, Any]) -> InputRequiredResult:
        name = secrets.token_urlsafe(16)
        self._given[name] = None
        if len(self._given) > _MOST_QUESTIONS:
            self._given.popitem(last=False)
        state = {"name": name, "digest": approval["digest"], **_named(approval)}
        question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=_FORM))
        return InputRequiredResult(input_requests={_KEY: question}, request_state=json.dumps({_KEY: state}))

    async def resumed(
        self, context: ServerRequestContext[Any, Any], state: str | None, answers: Mapping[str, Any] | None
    ) -> Resumed | None:
        """Return what a call brings along that is made again; None for another call. Raises ApprovalDenied.

        `state`: as the SDK has unsealed it, so we wrote it for the same principal, tool and arguments.
        """
        question = None if state is None else json.loads(state).get(_KEY)
        if question is None:
            return None
        answer = (answers or {}).get(_KEY)
        action = answer.action if isinstance(answer, ElicitResult) else "cancel"
        fresh = question["name"] in self._given
        self._given.pop(question["name"], None)
        if action == "decline":
            person = self.person(context)
            if fresh and person is not None:
                await _decide(person, question, "deny")
            raise ApprovalDenied(
                "the person at the client does not allow this", hint="do it another way, or ask that person",
                details={"conversation_id": question["conversation_id"]},
            )  # fmt: skip
        # What was answered before is asked about again.
        digest = question["digest"] if fresh and action == "accept" else None if fresh else ""
        return Resumed(digest, question["conversation_id"])


def can_elicit(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can show a form to a person."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    # Neither mode named means forms: so it was before there were modes.
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return context.session.can_send_request or context.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _may_answer(person: Person, approval: Mapping[str, Any]) -> bool:
    """Return whether this still waits, and the token may answer it, which a verdict for nothing tells."""
    try:
        await person.caller.call("approve", {**_named(approval), "digest": _NO_DIGEST})
    except Stale:
        return True
    except BlockptyError:
        return False
    return False


async def _decide(person: Person, approval: Mapping[str, Any], verdict: str) -> None:
    # It may have been answered elsewhere, or withdrawn, meanwhile.
    with suppress(BlockptyError):
        await person.caller.call(verdict, {**_named(approval), "digest": approval["digest"]})


def _named(approval: Mapping[str, Any]) -> dict[str, Any]:
    return {name: approval[name] for name in ("conversation_id", "approval_id")}
