"""The cluster and the user of a connection: kubeconfigs and service accounts.

Every source yields a `ConnectionInfo`, which login handlers return as well; every
failure becomes one sentence.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from returns.result import Failure, Success

from fnop.adapters.kubernetes import service_account
from fnop.adapters.kubernetes.credentials import login_with_service_account
from fnop.adapters.kubernetes.exec_plugins import PluginProblem, answered
from fnop.adapters.kubernetes.kubeconfig_files import (
    Absent,
    Access,
    Pipes,
    access_in,
    info_of,
    located,
)
from fnop.adapters.kubernetes.oidc import Home, OidcProblem, refreshed
from fnop.core.handlers.declare.connection import ConnectionInfo, Impersonation
from fnop.core.values.errors import text_of
from fnop.effects.structs import replace
from fnop.effects.values import without_userinfo

__all__ = [
    "ConfigurationProblem",
    "Impersonating",
    "Logins",
    "Source",
    "find_source",
]


class ConfigurationProblem(Exception):
    """The cluster cannot be addressed; the text is one sentence for the user."""

    def __init__(self, text: str) -> None:
        super().__init__(without_userinfo(text))


class Logins(Protocol):
    """A source that can log in, again and again."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the last login: if one changes, so may the credentials."""
        ...

    async def login(self) -> ConnectionInfo:
        """The present credentials. Raises `ConfigurationProblem`."""
        ...


class Source:
    """The source of a login: kubeconfigs, or (None) the pod that fnop runs in.

    The context is always the one of the first login, even if another is selected later:
    an operator stays at its cluster.
    """

    def __init__(self, paths: tuple[Path, ...] | None, context: str | None) -> None:
        self._paths, self._context = paths, context
        self._beside: tuple[Path, ...] = ()
        self._pipes: Pipes = {}

    @property
    def files(self) -> tuple[Path, ...]:
        """The kubeconfigs, and the files that they name; or the account's token."""
        if self._paths is None:
            return (service_account.token_file(),)
        return (*filter(Path.is_file, self._paths), *self._beside)

    async def login(self) -> ConnectionInfo:
        """Read it, and run the authentication plugin it may name.

        Raises `ConfigurationProblem`.
        """
        if self._paths is None:
            return _login_in_cluster()
        match access_in(self._paths, self._context, self._pipes):
            case Success(access):
                self._context, self._beside = access.name, access.files
                return await _login_with_kubeconfig(access)
            case Failure(text):
                raise ConfigurationProblem(text)


class Impersonating:
    """Another source of a login, as a further user: `--as` and related options.

    Unset fields of that user are taken from the login, as in kubectl.
    """

    def __init__(self, source: Logins, who: Impersonation) -> None:
        self._source, self._who = source, who

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the other source."""
        return self._source.files

    async def login(self) -> ConnectionInfo:
        """The login of the other source, with the user. See there."""
        info, who = await self._source.login(), self._who
        own = info.impersonate or Impersonation("")
        found = Impersonation(
            who.user or own.user,
            who.groups or own.groups,
            who.uid or own.uid,
            who.extra or own.extra,
        )
        if not found.user:
            raise ConfigurationProblem(
                "a group or a uid to impersonate needs a user; add --as NAME"
            )
        try:
            return replace(info, impersonate=found)
        except ValueError as problem:
            raise ConfigurationProblem(text_of(problem)) from None


def find_source(kubeconfig: str | None, context: str | None) -> Source:
    """Choose as kubectl does: the file given, $KUBECONFIG, ~/.kube/config, the pod.

    Files may be several, separated as in PATH.  Raises `ConfigurationProblem`.
    """
    match located(kubeconfig):
        case Success(files):
            return Source(files, context)
        case Failure(Absent("caller", text)):
            raise ConfigurationProblem(text)
        case Failure(absent):
            return _pod(absent.text, context)


def _pod(otherwise: str, context: str | None) -> Source:
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise ConfigurationProblem(
            f"no cluster is configured: {otherwise}, and this is not a pod; "
            "name a file with --kubeconfig, or try --simulate"
        )
    if context is not None:
        raise ConfigurationProblem(
            f"there is no kubeconfig to take the context {context!r} from"
        )
    return Source(None, None)


def _login_in_cluster() -> ConnectionInfo:
    folder = service_account.FOLDER
    try:
        found = login_with_service_account()
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationProblem(
            f"the service account of this pod cannot be used: {text_of(problem)}"
        ) from problem
    if found is None:
        raise ConfigurationProblem(
            f"the service account of this pod cannot be used: there is no token in "
            f"{folder}; leave automountServiceAccountToken out of the pod, or mount one"
        )
    return found


async def _login_with_kubeconfig(access: Access) -> ConnectionInfo:
    credentials: dict[str, Any] = {}
    try:
        if access.plugin is not None:
            credentials = await answered(access.plugin, access.cluster)
        elif access.provider is not None:
            home = Home(access.user_file, str(access.context["user"]))
            credentials = await refreshed(access.provider, home)
        return info_of(access, **credentials)
    except (PluginProblem, OidcProblem, ValueError) as problem:
        text = f"{access.title}: {text_of(problem)}"
        raise ConfigurationProblem(text) from problem
