"""Keeping the configurations of webhooks in a cluster, as the core decides.

`fnop.core.admission.keeping` decides; here the configurations are read and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fnop.core.admission.configurations import CONFIGURATIONS, Group
from fnop.core.admission.keeping import Keeper, Move
from fnop.core.api.resources import Resource
from fnop.core.handlers.roles import Role
from fnop.core.seam.commands import Perform
from fnop.core.values.errors import text_of
from fnop.effects import Get, Target
from fnop.interpreters.answers import message_of
from fnop.interpreters.protocol import ApiRequest, ApiResponse, Asked, Unreachable
from fnop.interpreters.requests import request_for

__all__ = ["Configurations", "KeepingProblem", "Kept", "account_by", "version_by"]

# A conflict is resolved by another look; several writers may meet.
TRIES_MAX = 5
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch"}


class KeepingProblem(Exception):
    """Why a configuration cannot be read or written, in one sentence."""


class Kept(NamedTuple):
    """The result of a look: the names of those written, problems, and notes."""

    written: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Configurations:
    """The configurations that one process keeps, which have one name.

    Those of roles without webhooks are not created.
    """

    def __init__(
        self, api: Asked, name: str, *, operator: str, process: str, manager: str
    ) -> None:
        self._api, self.name, self._manager = api, name, manager
        self._keepers = {
            role: Keeper(operator, process, role) for role in CONFIGURATIONS
        }

    async def look(self, wanted: Mapping[Role, Mapping[str, Any]], now: float) -> Kept:
        """Make them as wanted.  Raises `KeepingProblem`."""
        written, problems, notes = [], [], []
        for role, manifest in wanted.items():
            move = await self._made(role, manifest, now)
            if move.writes:
                written.append(f"{manifest['kind']} {self.name}")
            problems += [move.problem] if move.problem else []
            notes += [move.note] if move.note else []
        return Kept(tuple(written), tuple(problems), tuple(dict.fromkeys(notes)))

    async def _made(self, role: Role, wanted: Mapping[str, Any], now: float) -> Move:
        """The move that was made."""
        for _ in range(TRIES_MAX):
            stored = await self._read(CONFIGURATIONS[role])
            move = self._keepers[role].look(wanted, stored, now)
            answer = await self._performed(role, move)
            if answer is None:
                continue
            keeper = move.keeper.wrote(wanted, answer) if move.writes else move.keeper
            self._keepers[role] = keeper
            return move
        raise KeepingProblem(self._restless(CONFIGURATIONS[role]))

    async def leave(self, groups: Sequence[Group], now: float) -> bool:
        """Make the next move of the end; whether nothing is left to do.

        Raises `KeepingProblem`.
        """
        done = True
        for role, keeper in self._keepers.items():
            stored = await self._read(CONFIGURATIONS[role])
            move = keeper.leave(groups, stored, now)
            if await self._performed(role, move) is None:
                done = False
            else:
                self._keepers[role] = move.keeper
                done = done and move.last
        return done

    async def _read(self, resource: Resource) -> dict[str, Any] | None:
        response = await self._sent(
            Perform(0, Get(self._target(resource)), resource, None, self.name),
            resource,
        )
        if response.status == 404:
            return None
        body: dict[str, Any] = response.body
        return body

    async def _performed(self, role: Role, move: Move) -> Mapping[str, Any] | None:
        """The stored object after a move; None if another write came before it."""
        if move.effect is None:
            return {}
        resource = CONFIGURATIONS[role]
        response = await self._sent(
            Perform(0, move.effect, resource, None, self.name), resource
        )
        found: Mapping[str, Any] = response.body
        # Created, changed or deleted meanwhile.
        return None if response.status in (404, 409) else found

    async def _sent(self, command: Perform, resource: Resource) -> ApiResponse:
        request = request_for(command, self._manager)
        try:
            response = await self._api.send(request)
        except Unreachable as problem:
            raise KeepingProblem(text_of(problem)) from None
        # Of a collection, 404 means that the kind is not served.
        is_gone = response.status == 404 and request.method != "POST"
        if response.status < 300 or response.status == 409 or is_gone:
            return response
        raise KeepingProblem(self._refused(request, response, resource))

    def _refused(
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

    def _restless(self, resource: Resource) -> str:
        return (
            f"{resource.kind} {self.name} is changed by others all the time; see its "
            "managedFields for who they are"
        )

    def _target(self, resource: Resource) -> Target:
        return Target(resource.plural, self.name)


# ------------------------------------------------------------------------ the account

# SelfSubjectReview is there from 1.26 on, and by default from 1.27 on.
_VERSIONS = ("v1", "v1beta1", "v1alpha1")


async def version_by(api: Asked) -> Any:
    """The version of the API server, as it tells it; None where it does not."""
    try:
        response = await api.send(ApiRequest("GET", "/version"))
    except Unreachable:
        return None
    return response.body if response.status == 200 else None


async def account_by(api: Asked) -> str:
    """The user as whom the API server knows us; "" if it does not tell."""
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
