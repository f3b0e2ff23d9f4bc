"""Where the cluster is and who we are: kubeconfigs and service accounts.

kubernetes_asyncio speaks to the authentication plugins and makes the configuration of
what `kubeconfig_files` has read; every failure becomes one sentence.
"""

from __future__ import annotations

import logging
import os
import sys
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from returns.result import Failure, Success

from fnop.adapters import service_account
from fnop.adapters.kubeconfig_files import (
    Absent,
    Access,
    Section,
    access_in,
    located,
    single,
)
from fnop.adapters.memory_files import with_files
from fnop.core.handlers.connection import ConnectionInfo
from fnop.core.values.errors import text_of
from fnop.effects.values import without_userinfo

__all__ = [
    "ConfigurationProblem",
    "Login",
    "Logins",
    "Source",
    "find_source",
    "login_with",
    "rest",
]

_PACKAGE = "kubernetes_asyncio"
_PARTS = (
    "client.configuration",
    "client.rest",
    "config.kube_config",
    "config.incluster_config",
)


class ConfigurationProblem(Exception):
    """The cluster cannot be addressed; the text is one sentence for the user."""

    def __init__(self, text: str) -> None:
        super().__init__(without_userinfo(text))


@dataclass(frozen=True, slots=True)
class Login:
    """The settings of a connection: a `Configuration`, and its namespace.

    `namespace` is the one of the context or of the service account, if they have one.
    """

    configuration: Any
    namespace: str | None


class Logins(Protocol):
    """Something that can log in, again and again."""

    async def login(self) -> Login:
        """The credentials as they are now.  Raises `ConfigurationProblem`."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a login: kubeconfigs, or (None) the pod that fnop runs in."""

    files: tuple[Path, ...] | None
    context: str | None

    async def login(self) -> Login:
        """Read it, and run the authentication plugin it may name.

        Raises `ConfigurationProblem`.
        """
        if self.files is None:
            return _login_in_cluster()
        match access_in(self.files, self.context):
            case Success(access):
                return await _login_with_kubeconfig(access)
            case Failure(text):
                raise ConfigurationProblem(text)


def find_source(kubeconfig: str | None, context: str | None) -> Source:
    """Choose as kubectl does: the file given, $KUBECONFIG, ~/.kube/config, the pod.

    Files may be several, separated as in PATH.  Raises `ConfigurationProblem`.
    """
    match located(kubeconfig):
        case Success(files):
            return Source(files, context)
        case Failure(Absent("nobody", text)):
            return _pod(text, context)
        case Failure(absent):
            raise ConfigurationProblem(absent.text)


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


def _login_in_cluster() -> Login:
    configuration = _new_configuration()
    try:
        _parts["config.incluster_config"].load_incluster_config(
            configuration,
            token_filename=str(service_account.token_file()),
            cert_filename=str(service_account.authority_file()),
        )
        namespace = service_account.namespace()
    except Exception as problem:
        raise ConfigurationProblem(
            f"the service account of this pod cannot be used: {_text(problem)}"
        ) from problem
    return Login(configuration, namespace)


async def _login_with_kubeconfig(access: Access) -> Login:
    _, name, context, cluster, user = access
    configuration = _new_configuration()
    try:
        files = with_files(cluster), with_files(user)
        await _configure(configuration, single(name, context, *files))
    # Broken files end in exceptions of any type there.
    except Exception as problem:
        text = f"{access.title}: {_text(problem)}"
        raise ConfigurationProblem(text) from problem
    return Login(configuration, context.get("namespace"))


async def _configure(configuration: Any, kubeconfig: Section) -> None:
    await _parts["config.kube_config"].load_kube_config_from_dict(
        kubeconfig, client_configuration=configuration
    )


async def login_with(info: ConnectionInfo) -> Login:
    """Use what a login handler has answered.  Raises `ConfigurationProblem`."""
    configuration = _new_configuration()
    try:
        await _configure(configuration, _kubeconfig_of(info))
    except Exception as problem:
        raise ConfigurationProblem(
            f"the credentials for {info.server} cannot be used: {_text(problem)}"
        ) from problem
    if info.token is not None:
        scheme = info.scheme or "Bearer"
        configuration.api_key["BearerToken"] = f"{scheme} {info.token}"
    return Login(configuration, info.default_namespace)


def _kubeconfig_of(info: ConnectionInfo) -> dict[str, Any]:
    """The same as a kubeconfig."""
    cluster = {
        "server": info.server,
        "certificate-authority": info.ca_path,
        "certificate-authority-data": _encoded(info.ca_data),
        "insecure-skip-tls-verify": info.insecure or None,
        "proxy-url": info.proxy_url,
    }
    user = {
        "token": info.token,
        "username": info.username,
        "password": info.password,
        "client-certificate": info.certificate_path,
        "client-certificate-data": _encoded(info.certificate_data),
        "client-key": info.private_key_path,
        "client-key-data": _encoded(info.private_key_data),
    }
    files = with_files(_given(cluster)), with_files(_given(user))
    return single("login", {}, *files)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _encoded(data: str | bytes | None) -> str | None:
    """PEM as base64; what is base64 already stays so."""
    if data is None:
        return None
    raw = data.encode() if isinstance(data, str) else data
    return b64encode(raw).decode() if b"-----BEGIN" in raw else raw.decode()


def _new_configuration() -> Any:
    configuration = _parts["client.configuration"].Configuration()
    # Python 3.13 refuses authorities without key usage; kubectl accepts them.
    configuration.disable_strict_ssl_verification = True
    return configuration


def _text(problem: BaseException) -> str:
    return " ".join(text_of(problem).split()) or type(problem).__name__


# ------------------------------------------------------ kubernetes_asyncio, in part


def _import_parts() -> dict[str, ModuleType]:
    """The few modules that are needed of kubernetes_asyncio.

    Its packages import all their generated models, of which we use none: 0.3 s of CPU
    and 37 MB, nearly half of a small operator.  So the parts are imported on their own,
    as a private copy; whoever imports the package later gets all of it.
    """
    if _PACKAGE not in sys.modules:
        # Another release may be laid out otherwise: then as everybody does.
        with suppress(Exception):
            return _import_parts_alone()
    return {part: import_module(f"{_PACKAGE}.{part}") for part in _PARTS}


def _import_parts_alone() -> dict[str, ModuleType]:
    try:
        _shell(_PACKAGE)
        client = _shell(f"{_PACKAGE}.client")
        _shell(f"{_PACKAGE}.config")
        configuration = import_module(f"{_PACKAGE}.client.configuration")
        vars(client)["Configuration"] = configuration.Configuration
        vars(client)["ApiClient"] = None  # named by functions that we do not call
        return {part: import_module(f"{_PACKAGE}.{part}") for part in _PARTS}
    finally:
        for name in [*sys.modules]:
            if name == _PACKAGE or name.startswith(f"{_PACKAGE}."):
                del sys.modules[name]


def _shell(package: str) -> ModuleType:
    """The package as a place to import from, without having run it."""
    spec = find_spec(package)
    assert spec is not None
    module = sys.modules[package] = module_from_spec(spec)
    return module


_parts = _import_parts()
# Its complaints reach the user as our sentences.
logging.getLogger(_PACKAGE).addHandler(logging.NullHandler())


def rest(configuration: Any) -> Any:
    """kubernetes_asyncio's transport (`RESTClientObject`), with no limit of its own.

    To be made inside the event loop that it will serve.  Raises `OSError` and
    `ssl.SSLError` for unusable certificates.
    """
    return _parts["client.rest"].RESTClientObject(configuration, maxsize=0)
