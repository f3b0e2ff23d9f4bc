"""Kubeconfigs as files: where they are, and what they say together.

They are read as kubectl reads them (Kubernetes: organizing cluster access using
kubeconfig files).  Of several files, the first that has a context, a cluster or a user
of some name counts for it, and so does the first that selects a context.  A path in a
file is relative to the folder of that file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from returns.result import Failure, Success

from fnop.adapters.manifests import parsed_yaml
from fnop.core.handlers.connection import shown_address

__all__ = [
    "Absent",
    "Access",
    "Kubeconfig",
    "Section",
    "access",
    "access_in",
    "located",
    "read",
    "single",
]

Section: TypeAlias = dict[str, Any]

# The lists of a kubeconfig, and where in an entry of each its fields are.
_KINDS = {"contexts": "context", "clusters": "cluster", "users": "user"}
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


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
    try:
        return path.is_file()
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

    `title` names the files, `current` is the context that they select, or "".
    """

    title: str
    current: str
    contexts: Mapping[str, Section]
    clusters: Mapping[str, Section]
    users: Mapping[str, Section]


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
    return Success(_merged(documents))


def _document(file: Path) -> Success[Section] | Failure[str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
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


def _merged(documents: Iterable[tuple[Path, Section]]) -> Kubeconfig:
    files, current = [], ""
    found: dict[str, dict[str, Section]] = {plural: {} for plural in _KINDS}
    for file, document in documents:
        files.append(file)
        current = current or str(document.get("current-context") or "")
        for plural, kind in _KINDS.items():
            for name, section in _named(document.get(plural), kind):
                found[plural].setdefault(name, _beside(file, section))
    return Kubeconfig(_title(files), current, **found)


def _named(entries: Any, kind: str) -> Iterator[tuple[str, Section]]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") is not None:
            section = entry.get(kind)
            yield str(entry["name"]), section if isinstance(section, dict) else {}


def _beside(file: Path, section: Section) -> Section:
    """The section with the paths in it made absolute; empty fields are left out."""
    folder = file.absolute().parent
    filled = {key: each for key, each in section.items() if each not in (None, "")}
    paths = {
        key: str(folder / _at_home(str(filled[key]))) for key in _PATHS if key in filled
    }
    return filled | paths


# ----------------------------------------------------------------- what is meant of it


class Access(NamedTuple):
    """One context: the cluster, and who one is there; `title` names the files."""

    title: str
    name: str
    context: Section
    cluster: Section
    user: Section


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
    for kind, known in (("cluster", kubeconfig.clusters), ("user", kubeconfig.users)):
        if kind in context and str(context[kind]) not in known:
            return Failure(
                f"the context {name!r} in {title} names the {kind} {context[kind]!r}, "
                f"which is not among its {kind}s"
            )
    if "cluster" not in context:
        return Failure(f"the context {name!r} in {title} names no cluster")
    cluster = kubeconfig.clusters[str(context["cluster"])]
    server = str(cluster.get("server", ""))
    if not server.startswith(("http://", "https://")):
        return Failure(
            f"the server {shown_address(server)!r} in {title} is not an http or https "
            "address"
        )
    user = kubeconfig.users[str(context["user"])] if "user" in context else {}
    match _with_token(user):
        case Success(user):
            return Success(Access(title, name, context, cluster, user))
        case Failure(problem):
            return Failure(f"{title}: {problem}")


def _with_token(user: Section) -> Success[Section] | Failure[str]:
    """The user with the token of its `tokenFile`.

    The file counts before a `token`, as long as it can be read (Kubernetes: AuthInfo).
    """
    if "tokenFile" not in user:
        return Success(user)
    try:
        token = Path(user["tokenFile"]).read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        token, why = "", getattr(problem, "strerror", None) or "it is not text"
    else:
        why = "it is empty"
    if token:
        return Success({**user, "token": token})
    if "token" in user:
        return Success(user)
    return Failure(f"the token file {user['tokenFile']} cannot be used: {why}")


def single(name: str, context: Section, cluster: Section, user: Section) -> Section:
    """A kubeconfig of one context, of one cluster and one user.

    >>> single("a", {}, {"server": "https://h"}, {})["contexts"]
    [{'name': 'a', 'context': {'cluster': 'a', 'user': 'a'}}]
    """
    return {
        "current-context": name,
        "contexts": [
            {"name": name, "context": {**context, "cluster": name, "user": name}}
        ],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }
