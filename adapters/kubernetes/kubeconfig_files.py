"""Kubeconfigs as files: their places, and their merged content.

They are read as kubectl reads them (Kubernetes: organizing cluster access using
kubeconfig files). Of several files, the first that has a context, a cluster or a user
of some name counts for it. The first that selects a context counts, too. A path in a
file is relative to the folder of that file.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from returns.result import Failure, Success

from fnop.adapters.common.manifests import first_yaml
from fnop.adapters.kubernetes.kubeconfig_rules import (
    KINDS,
    Section,
    named,
    problems_in_file,
    problems_of_cluster,
    problems_of_user,
)
from fnop.core.handlers.declare.connection import (
    ConnectionInfo,
    Impersonation,
    with_plain_scheme,
)
from fnop.effects.structs import replace

__all__ = [
    "Absent",
    "Access",
    "Kubeconfig",
    "Pipes",
    "Section",
    "access",
    "access_in",
    "info_of",
    "located",
    "read",
    "text_in",
]

_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


# -------------------------------------------------------------------- the files


class Absent(Struct, frozen=True):
    """No kubeconfig exists; the source of its name, and a sentence about it."""

    named_by: Literal["caller", "environment", "nobody"]
    text: str


def located(given: str | None) -> Success[tuple[Path, ...]] | Failure[Absent]:
    """The files to read: the `given` files, those in $KUBECONFIG, or ~/.kube/config.

    Several are separated as in PATH. Like for kubectl, one existing file is enough.
    """
    variable = os.environ.get("KUBECONFIG")
    if named := given or variable:
        paths = tuple(map(_at_home, _split_paths(named)))
        if not paths:
            return Failure(Absent("environment", "KUBECONFIG names no file"))
        if any(map(_may_be_read, paths)):
            return Success(paths)
        return Failure(
            Absent("caller" if given else "environment", _missing_file_text(paths))
        )
    default = _home_folder() / ".kube" / "config"
    if _may_be_read(default):
        return Success((default,))
    return Failure(Absent("nobody", f"there is no {default}, KUBECONFIG is not set"))


def _home_folder() -> Path:
    """The user's home, if there is one.

    A pod may run with a user id that belongs to no user, and without $HOME.
    """
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")


def _at_home(path: str) -> Path:
    """The path with `~` expanded, if the home is known."""
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


def _split_paths(paths: str) -> Iterator[str]:
    return filter(None, paths.split(os.pathsep))


def _may_be_read(path: Path) -> bool:
    """Whether it is a file, or a pipe: `--kubeconfig <(...)`."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return True  # reading it raises the reason


def _missing_file_text(paths: Iterable[Path]) -> str:
    for path in paths:
        if path.is_dir():
            return f"the kubeconfig {path} is a directory"
    return f"the kubeconfig {_title(paths)} does not exist"


def _title(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


# --------------------------------------------------------------------- what they say


class Kubeconfig(Struct, frozen=True):
    """Several kubeconfigs merged into one: sections by name, their paths absolute.

    `title` names the files, `current` is the context that they select, or "".
    `user_files` has the file of each user.
    """

    title: str
    current: str
    contexts: Mapping[str, Section]
    clusters: Mapping[str, Section]
    users: Mapping[str, Section]
    user_files: Mapping[str, Path]


# The contents of pipes: they can be read only once, but logins repeat.
Pipes: TypeAlias = dict[Path, bytes]


def read(
    paths: Iterable[Path], pipes: Pipes | None = None
) -> Success[Kubeconfig] | Failure[str]:
    """The files as one; missing files are skipped.

    The contents of pipes are kept in `pipes`, for further logins by the same one.  A
    failure is a sentence that names the file.
    """
    given, pipes = tuple(paths), {} if pipes is None else pipes
    files = [path for path in given if path in pipes or _may_be_read(path)]
    if not files:
        return Failure(_missing_file_text(given))
    documents = []
    for file in files:
        match _document(file, pipes):
            case Success(document):
                documents.append((file, document))
            case Failure(problem):
                return Failure(problem)
        for problem in problems_in_file(document):
            return Failure(f"the kubeconfig {file}: {problem}")
    return Success(_merge_documents(documents))


def _document(file: Path, pipes: Pipes) -> Success[Section] | Failure[str]:
    try:
        text = text_in(_content_of(file, pipes))
    except UnicodeDecodeError:
        return Failure(f"the kubeconfig {file} is not YAML: not text")
    except OSError as error:
        return Failure(f"the kubeconfig {file} cannot be read: {error.strerror}")
    match first_yaml(text):
        case Failure(problem):
            line = "" if problem.line is None else f":{problem.line}"
            return Failure(f"the kubeconfig {file}{line} is not YAML: {problem.what}")
        case Success(None):  # an empty file has no effect, as with kubectl
            return Success({})
        case Success(dict() as document):
            return Success(document)
        case Success(_):
            return Failure(f"the kubeconfig {file} holds no mapping")


def _content_of(file: Path, pipes: Pipes) -> bytes:
    if file in pipes:
        return pipes[file]
    content = file.read_bytes()
    if not file.is_file():
        pipes[file] = content
    return content


def text_in(content: bytes) -> str:
    """The text of a kubeconfig; PowerShell writes UTF-16.  Raises `UnicodeDecodeError`.

    >>> text_in("a: ü".encode("utf-16")), text_in(b"a: 5")
    ('a: ü', 'a: 5')
    """
    is_wide = content.startswith((BOM_UTF16_BE, BOM_UTF16_LE))
    return content.decode("utf-16" if is_wide else "utf-8-sig")


def _merge_documents(documents: Iterable[tuple[Path, Section]]) -> Kubeconfig:
    files, current, user_files = [], "", dict[str, Path]()
    found: dict[str, dict[str, Section]] = {plural: {} for plural in KINDS}
    for file, document in documents:
        files.append(file)
        current = current or str(document.get("current-context") or "")
        for plural, kind in KINDS.items():
            for name, section in named(document.get(plural), kind):
                found[plural].setdefault(name, _with_absolute_paths(file, section))
        for name, _ in named(document.get("users"), "user"):
            user_files.setdefault(name, file)
    return Kubeconfig(_title(files), current, **found, user_files=user_files)


def _with_absolute_paths(file: Path, section: Section) -> Section:
    """The section with absolute paths, without empty fields."""
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


class Access(Struct, frozen=True):
    """One context: the cluster, and its user; `title` names the files.

    `user_file` is the file with the user.
    """

    title: str
    name: str
    context: Section
    cluster: Section
    user: Section
    user_file: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, other than the kubeconfig, that a login reads itself."""
        return (Path(self.user["tokenFile"]),) if "tokenFile" in self.user else ()

    @property
    def is_secure(self) -> bool:
        """Whether the server uses https: only then it gets the user's credentials."""
        return _address_of(self.cluster).startswith("https://")

    @property
    def plugin(self) -> Section | None:
        """The plugin that returns the user; None if the file itself has it."""
        told = {"token", "username", "client-certificate", "client-certificate-data"}
        is_asked = self.is_secure and told.isdisjoint(self.user)
        return self.user.get("exec") if is_asked else None

    @property
    def provider(self) -> Section | None:
        """The provider that returns a token; None if the file itself has it."""
        named = "@" in _address_of(self.cluster)
        told = named or not {"token", "username"}.isdisjoint(self.user)
        is_asked = self.is_secure and not told
        return self.user.get("auth-provider") if is_asked else None


def access_in(
    paths: Iterable[Path], context: str | None, pipes: Pipes | None = None
) -> Success[Access] | Failure[str]:
    """The access that a context in the files gives, or the selected context.

    See `read` for `pipes`.
    """
    match read(paths, pipes):
        case Success(kubeconfig):
            return access(kubeconfig, context)
        case Failure(problem):
            return Failure(problem)


def access(kubeconfig: Kubeconfig, name: str | None) -> Success[Access] | Failure[str]:
    """The access that a context, or the selected one, gives.

    A failure is a sentence: there is no such context, it has a dangling reference, or
    its token cannot be read. A context may have no user, but not a missing one.
    """
    match _chosen(kubeconfig, name):
        case Success(chosen):
            return _resolve_context(kubeconfig, chosen)
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


def _resolve_context(
    kubeconfig: Kubeconfig, name: str
) -> Success[Access] | Failure[str]:
    title, context = kubeconfig.title, kubeconfig.contexts[name]
    if "cluster" not in context:
        return Failure(f"the context {name!r} in {title} names no cluster")
    cluster = kubeconfig.clusters.get(str(context["cluster"]))
    if cluster is None:
        return Failure(_unknown_name_text(title, name, "cluster", context))
    for problem in problems_of_cluster(cluster):
        return Failure(f"the context {name!r} in {title}: {problem}")
    user = kubeconfig.users.get(str(context["user"])) if "user" in context else {}
    file = kubeconfig.user_files.get(str(context.get("user")), Path())
    found = Access(title, name, context, cluster, user or {}, file)
    if user is None and found.is_secure:
        return Failure(_unknown_name_text(title, name, "user", context))
    for problem in problems_of_user(found.user, secure=found.is_secure):
        return Failure(f"the context {name!r} in {title}: {problem}")
    match _with_token(found.user) if found.is_secure else Success(found.user):
        case Success(user):
            return Success(replace(found, user=user))
        case Failure(problem):
            return Failure(f"{title}: {problem}")


def _unknown_name_text(title: str, name: str, kind: str, context: Section) -> str:
    return (
        f"the context {name!r} in {title} names the {kind} {context[kind]!r}, which is "
        f"not among its {kind}s"
    )


def _address_of(cluster: Section) -> str:
    """The server's address; without a scheme it is plain http, as for kubectl.

    >>> _address_of({"server": "h:8080"}), _address_of({"server": "HTTPS://h"})
    ('http://h:8080', 'https://h')
    """
    return with_plain_scheme(str(cluster["server"]))


def _with_token(user: Section) -> Success[Section] | Failure[str]:
    """The user with the token of its `tokenFile`.

    The file has priority over a `token`, as long as it can be read (Kubernetes:
    AuthInfo).
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
    """The connection of an access; `credentials` come from a plugin.

    The file's own fields of the user have priority over them. As in kubectl, none of
    these is sent to a server without TLS. Raises `ValueError` for a combination that
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
        **_data_or_path(cluster, "ca", "certificate-authority"),
        "insecure": bool(cluster.get("insecure-skip-tls-verify")),
        "tls_server_name": cluster.get("tls-server-name"),
        **_data_or_path(user, "certificate", "client-certificate"),
        **_data_or_path(user, "private_key", "client-key"),
    }
    if "token" in user:
        own["token"] = user["token"]
    elif "username" in user:
        own["username"], own["password"] = user["username"], user.get("password", "")
    return replace(info, **{**credentials, **own})


def _data_or_path(section: Section, field: str, key: str) -> dict[str, Any]:
    """The data of a file, or the path to it; empty without either."""
    if data := section.get(f"{key}-data"):
        return {f"{field}_data": data}
    return {f"{field}_path": section[key]} if key in section else {}


def _impersonation(user: Section) -> Impersonation | None:
    if "as" not in user:
        return None
    extra = user.get("as-user-extra") or {}
    return Impersonation(
        user["as"],
        _texts(user.get("as-groups")),
        user.get("as-uid"),
        tuple((name, _texts(values)) for name, values in extra.items()),
    )


def _texts(values: Iterable[str | None] | None) -> tuple[str, ...]:
    """The texts of a list; null stands for an empty text, as in Go."""
    return tuple(each or "" for each in values or ())
