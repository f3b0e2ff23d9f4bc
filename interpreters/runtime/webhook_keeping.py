"""Keep the configurations of webhooks in a cluster, as the core decides.

`fnop.core.admission.keeping` decides; this module reads and writes the configurations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.admission.configurations import CONFIGURATIONS, Group
from fnop.core.admission.keeping import Keeper, Move
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.roles import Role
from fnop.core.seam.commands import Perform
from fnop.core.values.errors import text_of
from fnop.effects import Get, Target
from fnop.effects.structs import replace
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import (
    ApiRequest,
    ApiResponse,
    Asked,
    Unreachable,
)
from fnop.interpreters.runtime.requests import request_for

__all__ = [
    "Configurations",
    "KeepingProblem",
    "Kept",
    "Left",
    "account_by",
    "configurations_by",
    "version_by",
]

# A request without an answer by then is made again, by the next look.
ANSWER_SECONDS = 10.0
# A conflict is resolved by another look; several writers may collide.
TRIES_MAX = 5
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch"}


class KeepingProblem(Exception):
    """The reason why a configuration cannot be read or written, in one sentence."""


class Kept(Struct, frozen=True):
    """The result of a look, with all configurations together.

    `written` are those that were written. `mended` says what another client had done to
    them, if fnop undid it. `problems` say why no webhook leads to this operator,
    `notes` why the configurations are not as it wants them. They are as wanted if they
    `agree`. It has `failed` if one could not be read or written.
    """

    written: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    agree: bool = True
    failed: bool = False

    def with_move(self, label: str, move: Move) -> Kept:
        """The result with the move about one more configuration."""
        return replace(
            self,
            written=_texts_with(self.written, label if _is_new(move) else ""),
            mended=_texts_with(self.mended, move.mended),
            problems=_texts_with(self.problems, move.problem),
            notes=_texts_with(self.notes, move.note),
            agree=self.agree and move.agrees,
        )

    def with_failure(self, problem: KeepingProblem) -> Kept:
        """The result with one more configuration that could not be read or written."""
        problems = _texts_with(self.problems, str(problem))
        return replace(self, problems=problems, agree=False, failed=True)


def _is_new(move: Move) -> bool:
    return move.writes and not move.mended


class Left(Struct, frozen=True):
    """The result of the moves of a process that ends.

    `unregistered` are configurations, and `stays` webhooks. If it is `done`, nothing is
    left to do. The `notes` say why the webhooks stay, or what the process waits for.
    """

    done: bool = True
    notes: tuple[str, ...] = ()
    unregistered: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()

    def with_move(self, stored: Mapping[str, Any] | None, move: Move) -> Left:
        """The result with a move about one more configuration."""
        left = replace(
            self, done=self.done and move.last, notes=_texts_with(self.notes, move.note)
        )
        found = (stored or {}).get("webhooks") or ()
        if stored is None or not move.writes:
            return left
        label = f"{stored['kind']} {stored['metadata']['name']}"
        is_less = len(move.stays) < len(found)
        return replace(
            left,
            unregistered=_texts_with(left.unregistered, label if is_less else ""),
            stays=(*left.stays, *move.stays),
        )


def _texts_with(texts: tuple[str, ...], text: str) -> tuple[str, ...]:
    return (*texts, text) if text and text not in texts else texts


class Configurations:
    """The configurations that one process keeps, all under one name.

    Configurations of roles without webhooks are not created. `answers` says whether the
    webhooks at the address of a client configuration are served. It `adopts` those that
    Kopf has left.
    """

    def __init__(
        self,
        api: Asked,
        name: str,
        *,
        operator: str,
        process: str,
        namespace: str = "",
        manager: str,
        answers: Callable[[Mapping[str, Any]], Awaitable[bool]],
        adopts: bool = False,
    ) -> None:
        self._api, self.name, self._manager = api, name, manager
        self._answers = answers
        self._keepers = {
            role: Keeper(operator, process, role, namespace, adopts=adopts)
            for role in CONFIGURATIONS
        }

    async def look(self, wanted: Mapping[Role, Mapping[str, Any]], now: float) -> Kept:
        """Make the configurations as wanted: at first both, or neither.

        A process that is not ready gets no requests behind a Service. The failure
        policy of a half that is registered would therefore refuse every write.
        """
        kept = Kept() if self.has_written else await self._try_writes(wanted, now)
        if kept.problems:
            return replace(kept, agree=False)
        for role, manifest in wanted.items():
            try:
                move = await self._make_move(role, manifest, now)
            except KeepingProblem as problem:
                kept = kept.with_failure(problem)
            else:
                kept = kept.with_move(f"{manifest['kind']} {self.name}", move)
        return kept

    @property
    def has_written(self) -> bool:
        """Whether there is something to unregister."""
        return any(each.written is not None for each in self._keepers.values())

    async def _try_writes(
        self, wanted: Mapping[Role, Mapping[str, Any]], now: float
    ) -> Kept:
        """The problems of a look, whose writes are dry runs."""
        kept = Kept()
        for role, manifest in wanted.items():
            try:
                stored = await self._read(CONFIGURATIONS[role])
                move = self._keepers[role].look(manifest, stored, now)
                if move.problem:
                    kept = kept.with_move("", move)
                    if await self._perform_move(role, move) is not None:
                        self._keepers[role] = move.keeper
                elif move.writes:
                    await self._perform_move(role, move, dry_run=True)
            except KeepingProblem as problem:
                kept = kept.with_failure(problem)
        return kept

    async def _make_move(
        self, role: Role, wanted: Mapping[str, Any], now: float
    ) -> Move:
        """Make a move, and return it."""
        for _ in range(TRIES_MAX):
            stored = await self._read(CONFIGURATIONS[role])
            keeper = self._keepers[role]
            rival = keeper.rival(wanted, stored, now)
            answers = rival is None or await self._answers(rival)
            move = keeper.look(wanted, stored, now, answers=answers)
            answer = await self._perform_move(role, move)
            if answer is None:
                continue
            keeper = move.keeper.wrote(wanted, answer) if move.writes else move.keeper
            self._keepers[role] = keeper
            return move
        raise KeepingProblem(self._words_for_conflicts(CONFIGURATIONS[role]))

    async def leave(self, groups: Sequence[Group], now: float) -> Left:
        """Make the next move of the end.

        Raises `KeepingProblem`.
        """
        return await self._move_all(
            lambda keeper, stored: keeper.leave(groups, stored, now)
        )

    async def clear(self, now: float) -> Left:
        """Make the next move to remove webhooks of former handlers.

        Raises `KeepingProblem`.
        """
        return await self._move_all(lambda keeper, stored: keeper.clear(stored, now))

    async def _move_all(self, move_of: Callable[[Keeper, Any], Move]) -> Left:
        """Make a move about each configuration."""
        left, problem = Left(), None
        for role, keeper in self._keepers.items():
            try:
                stored = await self._read(CONFIGURATIONS[role])
                move = move_of(keeper, stored)
                answer = await self._perform_move(role, move)
            except KeepingProblem as found:
                problem = found
                continue
            if answer is None:
                left = replace(left, done=False)
                continue
            self._keepers[role] = move.keeper
            left = left.with_move(stored, move)
        if problem is not None:
            raise problem
        return left

    async def _read(self, resource: Resource) -> dict[str, Any] | None:
        response = await self._send_request(
            Perform(0, Get(self._target(resource)), resource, None, self.name),
            resource,
        )
        if response.status == 404:
            return None
        body: dict[str, Any] = response.body
        return body

    async def _perform_move(
        self, role: Role, move: Move, *, dry_run: bool = False
    ) -> Mapping[str, Any] | None:
        """The stored object after a move; None if another write came before it."""
        if move.effect is None:
            return {}
        resource = CONFIGURATIONS[role]
        response = await self._send_request(
            Perform(0, move.effect, resource, None, self.name),
            resource,
            dry_run=dry_run,
        )
        found: Mapping[str, Any] = response.body
        # Another client has created, changed or deleted it meanwhile.
        return None if response.status in (404, 409) else found

    async def _send_request(
        self, command: Perform, resource: Resource, *, dry_run: bool = False
    ) -> ApiResponse:
        request = request_for(command, self._manager)
        query = (*request.query, *((("dryRun", "All"),) if dry_run else ()))
        request = replace(request, query=query, seconds=ANSWER_SECONDS)
        try:
            response = await self._api.send(request)
        except Unreachable as problem:
            raise KeepingProblem(text_of(problem)) from None
        # For a collection, 404 means that the kind is not served.
        is_gone = response.status == 404 and request.method != "POST"
        if response.status < 300 or response.status == 409 or is_gone:
            return response
        raise KeepingProblem(self._words_for_refusal(request, response, resource))

    def _words_for_refusal(
        self, request: ApiRequest, response: ApiResponse, resource: Resource
    ) -> str:
        label, why = f"{resource.kind} {self.name}", message_of(response)
        if response.status == 403:
            verb = _VERBS[request.method]
            return (
                f"{label} cannot be kept, as the operator may not {verb} "
                f"{resource.label}: {why}; grant it the rights that fnop rbac prints"
            )
        if response.status == 404:
            return (
                f"{label} cannot be created: the API server does not serve "
                f"{resource.api_version}, which is there from Kubernetes 1.16 on"
            )
        return f"the API server refuses {label}: {why}"

    def _words_for_conflicts(self, resource: Resource) -> str:
        return (
            f"{resource.kind} {self.name} is changed by others all the time; see its "
            "managedFields for who they are"
        )

    def _target(self, resource: Resource) -> Target:
        return Target(resource.plural, self.name)


# -------------------------------------------------------------- facts of the cluster


async def version_by(api: Asked) -> Any:
    """The version of the API server, as it reports it; None if it does not."""
    try:
        response = await api.send(ApiRequest("GET", "/version"))
    except Unreachable:
        return None
    return response.body if response.status == 200 else None


async def configurations_by(api: Asked, name: str) -> list[Mapping[str, Any]]:
    """The configurations of a name that exist and may be read."""
    found: list[Mapping[str, Any]] = []
    for resource in CONFIGURATIONS.values():
        effect = Get(Target(resource.plural, name))
        request = request_for(Perform(0, effect, resource, None, name), "")
        try:
            response = await api.send(replace(request, seconds=ANSWER_SECONDS))
        except Unreachable:
            continue
        if response.status == 200:
            found.append(response.body)
    return found


# SelfSubjectReview exists from 1.26 on, and by default from 1.27 on.
_VERSIONS = ("v1", "v1beta1", "v1alpha1")


async def account_by(api: Asked) -> str:
    """The user that the API server takes the operator for; "" if it does not say."""
    for version in _VERSIONS:
        api_version = f"authentication.k8s.io/{version}"
        request = ApiRequest(
            "POST",
            f"/apis/{api_version}/selfsubjectreviews",
            body={"apiVersion": api_version, "kind": "SelfSubjectReview"},
        )
        try:
            response = await api.send(request)
        except Unreachable:
            return ""
        if response.status < 300:
            info = (response.body.get("status") or {}).get("userInfo") or {}
            return str(info.get("username") or "")
        if response.status != 404:
            return ""
    return ""
