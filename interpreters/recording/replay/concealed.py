"""Texts that are derived from a secret: they differ if the tokens differ.

A recording has tokens in the place of secrets, and a run that goes on from it draws
passwords again. Texts that handlers derive from either, such as a checksum, cannot be
compared with the recorded ones. So the run is repeated with other tokens, as a replay
does.
"""

from __future__ import annotations

from typing import Any

from fnop.core.handlers.program.program import Program
from fnop.effects.structs import replace
from fnop.effects.wire import from_wire, to_wire
from fnop.interpreters.recording.identities.tokens import another_token
from fnop.interpreters.recording.identities.volatile import has_token
from fnop.interpreters.recording.model.calls import Recorded
from fnop.interpreters.recording.model.excerpt import Excerpt
from fnop.interpreters.recording.model.world import Foreign
from fnop.interpreters.recording.redaction import TOKEN_LENGTH, rewritten
from fnop.interpreters.recording.redaction.likeness import Retold

__all__ = ["has_secrets", "with_other_tokens"]

Json = dict[str, Any]


def has_secrets(excerpt: Excerpt) -> bool:
    """Whether the operator is shown a secret, or answered one."""
    changed = [each.after for each in excerpt.changes]
    answers = [to_wire(each.outcome) for each in excerpt.answers]
    return bool(excerpt.drawn) or has_token(
        [[*excerpt.objects.values()], changed, answers]
    )


def with_other_tokens(excerpt: Excerpt, program: Program) -> Excerpt:
    """The same part of a recording, with another token in the place of each.

    The digests in the operator's state are computed from the objects as they are then.
    """
    retold = Retold(program, another_token, drawing={0})
    for each in excerpt.drawn:
        # In the place of these secrets the recording has random bytes, not tokens.
        drawn = {"is": "Answer", "value": each}
        retold.input({"in": "Answered", "id": 0, "outcome": drawn})

    def told(found: Json) -> Json:
        body: Json = retold.input({"in": "ListItem", "body": found})["body"]
        return body

    def told_change(each: Foreign) -> Foreign:
        before, after = (
            None if body is None else told(body) for body in (each.before, each.after)
        )
        return replace(each, before=before, after=after)

    def told_answer(each: Recorded) -> Recorded:
        call, outcome = (
            from_wire(
                retold.command(rewritten(to_wire(one), retold.text, TOKEN_LENGTH))
            )
            for one in (each.call, each.outcome)
        )
        return each._replace(call=call, outcome=outcome)

    answers = [told_answer(each) for each in excerpt.answers]
    # A secret that is drawn again is not a token: it fits the call as it was recorded.
    answers += [
        told._replace(call=each.call)
        for told, each in zip(answers, excerpt.answers, strict=True)
        if has_token(each.call.arguments)
    ]
    return replace(
        excerpt,
        objects={place: told(each) for place, each in excerpt.objects.items()},
        changes=[told_change(each) for each in excerpt.changes],
        answers=answers,
    )
