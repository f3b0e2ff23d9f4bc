"""Try the requests of a plan on the server itself: it answers, and stores nothing.

Unlike the rest of a plan, this needs the right to write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from fnop.interpreters.plan.facts import Place, Tried, Write
from fnop.interpreters.plan.masking import Masking
from fnop.interpreters.plan.trying import (
    compared,
    is_foreseen,
    stored_after_all,
    tries_of,
)
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, Asked

__all__ = ["Answers", "DryRunOnly", "asked", "tried", "untried", "updates"]

Answers = tuple[tuple[Write, ApiResponse], ...]

CONCURRENCY = 16
ALL = "All"


class DryRunOnly:
    """An API that is only asked in dry runs; `tries` counts the requests."""

    def __init__(self, api: Asked) -> None:
        self.__api = api
        self.tries = 0

    async def ask(self, write: Write) -> ApiResponse:
        """The answer to a write that is not performed.

        A deletion with a body has its options there, and the API server ignores those
        of the query (kube-apiserver: DeleteResource). So `dryRun` is in both.
        """
        body = write.body
        if write.method == "DELETE":
            kind = {"apiVersion": "v1", "kind": "DeleteOptions"}
            body = {**kind, **(body or {}), "dryRun": [ALL]}
        query = (*(each for each in write.query if each[0] != "dryRun"), _DRY)
        self.tries += 1
        return await self.__api.send(
            ApiRequest(write.method, write.path, query, body, write.content_type)
        )


_DRY = ("dryRun", ALL)


async def asked(api: DryRunOnly, writes: Iterable[Write]) -> Answers:
    """The server's answers to the writes that it can answer now.

    Raises `Unreachable`.
    """
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(write: Write) -> ApiResponse:
        async with slots:
            return await api.ask(write)

    wanted = tries_of(writes)
    return tuple(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))


def tried(
    answers: Answers, twins: Mapping[tuple[Any, ...], Write], masking: Masking
) -> tuple[Tried, ...]:
    """The refusals of the server, and the values that it would store differently."""

    def judged(write: Write, response: ApiResponse) -> Tried | None:
        if response.status >= 300:
            refused = Tried(write.place, masking.text(message_of(response)), ())
            return None if is_foreseen(write, response.status) else refused
        twin = twins.get(write.identity)
        after = None if twin is None else twin.after
        return compared(write, after, response.body, masking.shown)

    found = (judged(write, response) for write, response in answers)
    return tuple(each for each in found if each is not None)


def updates(answers: Answers) -> tuple[Write, ...]:
    """The writes that the server stores, but that the simulated server refused."""
    found = (
        stored_after_all(write, response.status, response.body)
        for write, response in answers
    )
    return tuple(each for each in found if each is not None)


def untried(writes: Iterable[Write]) -> tuple[Place, ...]:
    """The objects that could not be tried because their namespaces do not exist yet."""
    every = [each for each in writes if each.round == 1 and not each.is_event]
    done = {each.place for each in tries_of(every)}
    return tuple(dict.fromkeys(e.place for e in every if e.place not in done))
