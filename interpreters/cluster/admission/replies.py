"""The replies that a caller has collected, one question after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from fnop.interpreters.cluster.admission.questions import Question, Reply, Reviewed

__all__ = ["Replies", "Unanswered"]


class Unanswered(Exception):
    """Leaves `answer` if a webhook has to be called first."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.webhook)
        self.question = question


@dataclass(slots=True)
class Replies:
    """An `ask` that knows the replies so far, and raises `Unanswered` for others.

    Meanwhile other clients may have written to the cluster. A question counts as the
    same if it only differs in what the cluster generates: the uids of the review and of
    a new object, and a generated name.
    """

    known: dict[bytes, tuple[str, Reply]] = field(default_factory=dict)

    def learn(self, question: Question, reply: Reply) -> None:
        """Keep the reply to a question."""
        self.known[_question_key(question)] = question.review["request"]["uid"], reply

    def __call__(self, question: Question) -> Reply:
        """The reply to a question, with the question's own uid."""
        found = self.known.get(_question_key(question))
        if found is None:
            raise Unanswered(question)
        uid, reply = found
        return _reply_for_uid(question.review["request"]["uid"], uid, reply)


def _question_key(question: Question) -> bytes:
    request = {**question.review["request"], "uid": ""}
    if request["operation"] == "CREATE":
        metadata = {**request["object"]["metadata"], "uid": ""}
        if "generateName" in metadata:
            request["name"] = metadata["name"] = ""
        request["object"] = {**request["object"], "metadata": metadata}
    asked = (
        *question.configuration,
        question.webhook,
        {**question.client},
        {**question.review, "request": request},
        question.seconds,
    )
    return orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)


def _reply_for_uid(uid: str, asked: str, reply: Reply) -> Reply:
    """A reply to the asked uid, rewritten for another uid."""
    body: Any = reply.body if isinstance(reply, Reviewed) else None
    response = body.get("response") if isinstance(body, dict) else None
    if not isinstance(response, dict) or response.get("uid") != asked:
        return reply
    return Reviewed({**body, "response": {**response, "uid": uid}})
