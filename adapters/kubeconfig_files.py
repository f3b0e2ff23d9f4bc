"""Kubeconfigs as files: where they are, and what they say together.

They are read as kubectl reads them (Kubernetes: organizing cluster access using
kubeconfig files).  Of several files, the first that has a context, a cluster or a user
of some name counts for it, and so does the first that selects a context.  A path in a
file is relative to the folder of that file.
"""

from __future__ import annotations

import os
from base64 import b64decode
from binascii import Error as NoBase64
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from returns.result import Failure, Success

from fnop.adapters.exec_plugins import ill_typed, problems_in
from fnop.adapters.manifests import parsed_yaml
from fnop.core.handlers.connection import (
    ConnectionInfo,
    Impersonation,
    shown_address,
    with_plain_scheme,
)

__all__ = [
    "Absent",
    "Access",
    "Kubeconfig",
    "Section",
    "access",
    "access_in",
    "files_of",
    "info_of",
    "located",
    "read",
    "text_in",
]

Section: TypeAlias = dict[str, Any]

# The lists of a kubeconfig, and where in an entry of each its fields are.
_KINDS = {"contexts": "context", "clusters": "cluster", "users": "user"}
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
# The types of the fields (client-go: clientcmd/api/v1); kubectl refuses a file in which
# one has another type. Data is base64.
_TEXTS = (
    *("server", "tls-server-name", "certificate-authority", "proxy-url", "namespace"),
    *("cluster", "user", "client-certificate", "client-key", "token", "tokenFile"),
    *("username", "password", "as", "as-uid"),
)
_DATA = ("certificate-authority-data", "client-certificate-data", "client-key-data")
_TYPES: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys((*_TEXTS, *_DATA), (str, "a text in quotes")),
    "insecure-skip-tls-verify": (bool, "true or false"),
    "disable-compression": (bool, "true or false"),
    "extensions": (list, "a list of mappings"),
    "as-groups": (list, "a list of texts"),
    "as-user-extra": (dict, "a mapping from names to lists of texts"),
    "auth-provider": (dict, "a mapping"),
    "exec": (dict, "a mapping"),
}
_PROXIES = ("http://", "https://", "socks5://")


# -------------------------------------------------------------------- where they are


class Absent(NamedTuple):
    """No kubeconfig is there; who has named one, and a sentence about it."""

    named_by: Literal["caller", "environment", "nobody"]
    text: str


def located(given: str | None) -> Success[tuple[Path, ...]] | Failure[Absent]:
    """The files to read: those `given`, those of $KUBECONFIG, or ~/.kube/config.

    Several are separated as in PATH.  Like kubectl it is content with one of them.
    """
    variable = os.environ.get("KUBECONFIG")
    if named := given or variable:
        paths = tuple(map(_at_home, _split(named)))
        if not paths:
            return Failure(Absent("environment", "KUBECONFIG names no file"))
        if any(map(_may_be_read, paths)):
            return Success(paths)
        return Failure(Absent("caller" if given else "environment", _missing(paths)))
    default = _home() / ".kube" / "config"
    if _may_be_read(default):
        return Success((default,))
    return Failure(Absent("nobody", f"there is no {default}, KUBECONFIG is not set"))


def _home() -> Path:
    """The user's home, if there is one.

    A pod may run under a number that is no user's, and without $HOME.
    """
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")


def _at_home(path: str) -> Path:
    """The path with `~` expanded, where that is known."""
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


def _split(paths: str) -> Iterator[str]:
    return filter(None, paths.split(os.pathsep))


def _may_be_read(path: Path) -> bool:
    """Whether it is a file, or a pipe: `--kubeconfig <(...)`."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return True  # it cannot be looked at: to read it tells why


def _missing(paths: Iterable[Path]) -> str:
    for path in paths:
        if path.is_dir():
            return f"the kubeconfig {path} is a directory"
    return f"the kubeconfig {_title(paths)} does not exist"


def _title(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


# --------------------------------------------------------------------- what they say


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Several kubeconfigs merged into one: sections by name, their paths absolute.

    `title` names the files, `current` is the context that they select, or "";
    `user_files` tells in which file each user stands.
    """

    title: str
    current: str
    contexts: Mapping[str, Section]
    clusters: Mapping[str, Section]
    users: Mapping[str, Section]
    user_files: Mapping[str, Path]


def read(paths: Iterable[Path]) -> Success[Kubeconfig] | Failure[str]:
    """The files as one; those that are missing are left out.

    A failure is a sentence that names the file.
    """
    given = tuple(paths)
    files = [path for path in given if _may_be_read(path)]
    if not files:
        return Failure(_missing(given))
    documents = []
    for file in files:
        match _document(file):
            case Success(document):
                documents.append((file, document))
            case Failure(problem):
                return Failure(problem)
        for problem in _problems_in(document):
            return Failure(f"the kubeconfig {file}: {problem}")
    return Success(_merged(documents))


def _problems_in(document: Section) -> Iterator[str]:
    """A sentence for each field with a value that it cannot have."""
    for plural, kind in _KINDS.items():
        listed = document.get(plural)
        if listed is not None and not isinstance(listed, list):
            yield f"{plural} is {_type_name(listed)}; write a list"
        names = [name for name, _ in _named(listed, kind)]
        for twice in {each for each in names if names.count(each) > 1}:
            yield f"it has two {plural} of the name {twice!r}; leave one of them out"
        for name, section in _named(document.get(plural), kind):
            for field, value in section.items():
                if value is not None and field in _TYPES:
                    where = f"{field} of the {kind} {name!r}"
                    yield from _problems_of(where, field, value)


def _problems_of(where: str, field: str, value: Any) -> Iterator[str]:
    expected, wording = _TYPES[field]
    groups = value if field == "as-groups" and isinstance(value, list) else ()
    if field == "as-user-extra" and isinstance(value, dict):
        groups = [*value, *(e for each in value.values() for e in _listed(each))]
    if not isinstance(value, expected) or not all(isinstance(e, str) for e in groups):
        yield f"{where} is {_type_name(value)}; write {wording}"
    elif field == "extensions" and not all(
        isinstance(e, dict | None) for e in _listed(value)
    ):
        yield f"{where} has an entry of another type; write mappings"
    elif isinstance(value, dict) and field == "exec":
        for each in ill_typed(value):
            yield f"{each} of the plugin in {where} has another type; write texts"
    elif field in _DATA:
        text = str(value).replace("\r", "").replace("\n", "")
        try:
            b64decode(text, validate=True)
        except (NoBase64, ValueError):
            yield f"{where} is not base64"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value, None]


def _type_name(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    names |= {list: "a list", dict: "a mapping"}
    return names.get(type(value), f"of the type {type(value).__name__}")


def _document(file: Path) -> Success[Section] | Failure[str]:
    try:
        text = text_in(_content_of(file))
    except UnicodeDecodeError:
        return Failure(f"the kubeconfig {file} is not YAML: not text")
    except OSError as error:
        return Failure(f"the kubeconfig {file} cannot be read: {error.strerror}")
    match parsed_yaml(text):
        case Failure(problem):
            line = "" if problem.line is None else f":{problem.line}"
            return Failure(f"the kubeconfig {file}{line} is not YAML: {problem.what}")
        case Success(None):  # an empty file says nothing, as with kubectl
            return Success({})
        case Success(dict() as document):
            return Success(document)
        case Success(_):
            return Failure(f"the kubeconfig {file} holds no mapping")


# The contents of pipes, which can be read once, while logins come again.
_PIPED: dict[Path, bytes] = {}


def _content_of(file: Path) -> bytes:
    if file.is_file():
        return file.read_bytes()
    if file not in _PIPED:
        _PIPED[file] = file.read_bytes()
    return _PIPED[file]


def text_in(content: bytes) -> str:
    """The text of a kubeconfig; PowerShell writes UTF-16.  Raises `UnicodeDecodeError`.

    >>> text_in("a: ü".encode("utf-16")), text_in(b"a: 5")
    ('a: ü', 'a: 5')
    """
    is_wide = content.startswith((BOM_UTF16_BE, BOM_UTF16_LE))
    return content.decode("utf-16" if is_wide else "utf-8-sig")


def _merged(documents: Iterable[tuple[Path, Section]]) -> Kubeconfig:
    files, current, user_files = [], "", dict[str, Path]()
    found: dict[str, dict[str, Section]] = {plural: {} for plural in _KINDS}
    for file, document in documents:
        files.append(file)
        current = current or str(document.get("current-context") or "")
        for plural, kind in _KINDS.items():
            for name, section in _named(document.get(plural), kind):
                found[plural].setdefault(name, _beside(file, section))
        for name, _ in _named(document.get("users"), "user"):
            user_files.setdefault(name, file)
    return Kubeconfig(_title(files), current, **found, user_files=user_files)


def _named(entries: Any, kind: str) -> Iterator[tuple[str, Section]]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") is not None:
            section = entry.get(kind)
            yield str(entry["name"]), section if isinstance(section, dict) else {}


def _beside(file: Path, section: Section) -> Section:
    """The section with the paths in it made absolute; empty fields are left out."""
    folder = file.absolute().parent
    filled = {key: each for key, each in section.items() if each not in (None, "")}
    paths: Section = {
        key: str(folder / str(filled[key])) for key in _PATHS if key in filled
    }
    plugin = filled.get("exec")
    command = plugin.get("command") if isinstance(plugin, dict) else None
    if isinstance(plugin, dict) and isinstance(command, str) and os.sep in command:
        paths["exec"] = {**plugin, "command": str(folder / command)}
    return filled | paths


# ----------------------------------------------------------------- what is meant of it


class Access(NamedTuple):
    """One context: the cluster, and who one is there; `title` names the files.

    The user stands in `user_file`.
    """

    title: str
    name: str
    context: Section
    cluster: Section
    user: Section
    user_file: Path

    @property
    def is_secure(self) -> bool:
        """Whether the server is one of https, which alone is told who one is."""
        return _address_of(self.cluster).startswith("https://")

    @property
    def plugin(self) -> Section | None:
        """The plugin to ask who one is; None where the file itself tells."""
        told = {"token", "username", "client-certificate", "client-certificate-data"}
        is_asked = self.is_secure and told.isdisjoint(self.user)
        return self.user.get("exec") if is_asked else None

    @property
    def provider(self) -> Section | None:
        """The provider to ask for a token; None where the file itself tells."""
        named = "@" in _address_of(self.cluster)
        told = named or not {"token", "username"}.isdisjoint(self.user)
        is_asked = self.is_secure and not told
        return self.user.get("auth-provider") if is_asked else None


def access_in(
    paths: Iterable[Path], context: str | None
) -> Success[Access] | Failure[str]:
    """The access that a context in the files gives, or the selected context."""
    match read(paths):
        case Success(kubeconfig):
            return access(kubeconfig, context)
        case Failure(problem):
            return Failure(problem)


def access(kubeconfig: Kubeconfig, name: str | None) -> Success[Access] | Failure[str]:
    """The access that a context, or the selected one, gives.

    A failure is a sentence: there is no such context, it leads nowhere, or its token
    cannot be read.  A context may have no user, but none that is missing.
    """
    match _chosen(kubeconfig, name):
        case Success(chosen):
            return _followed(kubeconfig, chosen)
        case Failure(problem):
            return Failure(problem)


def _chosen(kubeconfig: Kubeconfig, name: str | None) -> Success[str] | Failure[str]:
    title, names = kubeconfig.title, ", ".join(sorted(kubeconfig.contexts))
    chosen = name or kubeconfig.current
    if not names:
        return Failure(f"{title} has no contexts; is it the kubeconfig that you mean?")
    if not chosen:
        return Failure(
            f"{title} selects no context; choose one with --context, or context= in "
            f"Python: {names}"
        )
    if chosen not in kubeconfig.contexts:
        return Failure(f"there is no context {chosen!r} in {title}; available: {names}")
    return Success(chosen)


def _followed(kubeconfig: Kubeconfig, name: str) -> Success[Access] | Failure[str]:
    title, context = kubeconfig.title, kubeconfig.contexts[name]
    if "cluster" not in context:
        return Failure(f"the context {name!r} in {title} names no cluster")
    cluster = kubeconfig.clusters.get(str(context["cluster"]))
    if cluster is None:
        return Failure(_unknown(title, name, "cluster", context))
    secure = "server" in cluster and _address_of(cluster).startswith("https")
    user = kubeconfig.users.get(str(context["user"])) if "user" in context else {}
    if user is None and secure:
        return Failure(_unknown(title, name, "user", context))
    user = user or {}
    problems = (*_cluster_problems(cluster), *_user_problems(user, secure=secure))
    for problem in problems:
        return Failure(f"the context {name!r} in {title}: {problem}")
    file = kubeconfig.user_files.get(str(context.get("user")), Path())
    found = Access(title, name, context, cluster, user, file)
    match _with_token(user) if found.is_secure else Success(user):
        case Success(user):
            return Success(found._replace(user=user))
        case Failure(problem):
            return Failure(f"{title}: {problem}")


def _unknown(title: str, name: str, kind: str, context: Section) -> str:
    return (
        f"the context {name!r} in {title} names the {kind} {context[kind]!r}, which is "
        f"not among its {kind}s"
    )


def _cluster_problems(cluster: Section) -> Iterator[str]:
    """The combinations that kubectl refuses as well (client-go: clientcmd)."""
    if "server" not in cluster:
        yield "its cluster has no server; write server: https://host:port"
        return
    server = _address_of(cluster)
    if not server.startswith(("http://", "https://")):
        yield f"the server {shown_address(server)!r} is not an http or https address"
    yield from _unreadable(cluster, "certificate-authority")
    has_authority = any(each.startswith("certificate-authority") for each in cluster)
    is_insecure = server.startswith("https") and cluster.get("insecure-skip-tls-verify")
    if is_insecure and has_authority:
        yield (
            "its cluster has insecure-skip-tls-verify and a certificate-authority; "
            "leave one of them out"
        )
    proxy = cluster.get("proxy-url")
    if proxy and not with_plain_scheme(proxy).startswith(_PROXIES):
        yield (
            f"the proxy-url {shown_address(proxy)!r} begins with none of "
            f"{', '.join(_PROXIES)}"
        )


def _user_problems(user: Section, *, secure: bool) -> Iterator[str]:
    for key in ("client-certificate", "client-key"):
        yield from _unreadable(user, key)
    has = {key: key in user or f"{key}-data" in user for key in _PATHS}
    if has["client-certificate"] != has["client-key"]:
        yield "its user needs a client-certificate and a client-key, or neither"
    if secure and not str(user.get("token", "")).isprintable():
        yield "its token has a line's end, or another character that no header takes"
    if secure and "password" in user and "username" not in user:
        yield "its user has a password, and no username"
    if "username" in user and ("token" in user or "tokenFile" in user):
        yield "its user has a token and a username; leave one of them out"
    if "exec" in user:
        yield from problems_in(user["exec"])
    provider = user.get("auth-provider", {"name": "oidc"}).get("name")
    if secure and provider != "oidc":
        yield (
            f"its user has the auth-provider {provider!r}, which kubectl does not have "
            "any more; use the provider's credential plugin (exec)"
        )
    if "exec" in user and "auth-provider" in user:
        yield "its user has exec and auth-provider; leave one of them out"
    others = [each for each in ("as-groups", "as-uid", "as-user-extra") if each in user]
    if others and "as" not in user:
        yield f"its user has {', '.join(others)}, but nobody to be: add as: NAME"


def _unreadable(section: Section, key: str) -> Iterator[str]:
    if key in section and f"{key}-data" in section:
        yield f"it has both {key} and {key}-data; leave one of them out"
    elif key in section:
        try:
            with Path(section[key]).open("rb"):
                pass
        except OSError as problem:
            yield f"its {key} {section[key]} cannot be read: {problem.strerror}"


def _address_of(cluster: Section) -> str:
    """The server's address; one without a scheme is of plain http, as for kubectl.

    >>> _address_of({"server": "h:8080"}), _address_of({"server": "HTTPS://h"})
    ('http://h:8080', 'https://h')
    """
    return with_plain_scheme(str(cluster["server"]))


def _with_token(user: Section) -> Success[Section] | Failure[str]:
    """The user with the token of its `tokenFile`.

    The file counts before a `token`, as long as it can be read (Kubernetes: AuthInfo).
    """
    if "tokenFile" not in user:
        return Success(user)
    try:
        token = Path(user["tokenFile"]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        token, why = "", getattr(problem, "strerror", None) or "it is not text"
    else:
        why = "it is empty"
    if token:
        return Success({**user, "token": token})
    if "token" in user:
        return Success(user)
    return Failure(f"the token file {user['tokenFile']} cannot be used: {why}")


def info_of(access: Access, **credentials: Any) -> ConnectionInfo:
    """The connection that an access gives; a plugin has answered the `credentials`.

    What the file itself says of the user counts before them, and nothing of it goes to
    a server without TLS, as in kubectl. Raises `ValueError` for a combination that
    cannot work.
    """
    cluster, user = access.cluster, access.user
    info = ConnectionInfo(
        server=_address_of(cluster),
        default_namespace=access.context.get("namespace"),
        proxy_url=cluster.get("proxy-url"),
        impersonate=_impersonation(user),
    )
    if not access.is_secure:
        return info
    own: dict[str, Any] = {
        **_either(cluster, "ca", "certificate-authority"),
        "insecure": bool(cluster.get("insecure-skip-tls-verify")),
        "tls_server_name": cluster.get("tls-server-name"),
        **_either(user, "certificate", "client-certificate"),
        **_either(user, "private_key", "client-key"),
    }
    if "token" in user:
        own["token"] = user["token"]
    elif "username" in user:
        own["username"], own["password"] = user["username"], user.get("password", "")
    return replace(info, **{**credentials, **own})


def _either(section: Section, field: str, key: str) -> dict[str, Any]:
    """The data of a file, or the path to it; nothing where there is neither."""
    if data := section.get(f"{key}-data"):
        return {f"{field}_data": data}
    return {f"{field}_path": section[key]} if key in section else {}


def _impersonation(user: Section) -> Impersonation | None:
    if "as" not in user:
        return None
    extra = user.get("as-user-extra") or {}
    return Impersonation(
        user["as"],
        tuple(user.get("as-groups") or ()),
        user.get("as-uid"),
        tuple((name, tuple(values or ())) for name, values in extra.items()),
    )


def files_of(access: Access) -> tuple[Path, ...]:
    """The files beside the kubeconfig that a login reads itself."""
    token = access.user.get("tokenFile")
    return (Path(token),) if token else ()
