"""The rules by which fnop, like kubectl, refuses a kubeconfig.

They are client-go's rules (clientcmd): the types of all fields in a file, and the
combinations of fields in the chosen context.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fnop.adapters.kubernetes.exec_plugins import ill_typed, problems_in
from fnop.core.handlers.declare.connection import shown_address, with_plain_scheme

__all__ = [
    "KINDS",
    "Section",
    "named",
    "problems_in_file",
    "problems_of_cluster",
    "problems_of_user",
]

Section: TypeAlias = dict[str, Any]

# The lists of a kubeconfig, and the key of the fields in each entry.
KINDS = {"contexts": "context", "clusters": "cluster", "users": "user"}
# The types of the fields (client-go: clientcmd/api/v1); kubectl refuses a file if a
# field has another type. Data is base64.
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


def named(entries: Any, kind: str) -> Iterator[tuple[str, Section]]:
    """The entries of a list, by name; entries without a name are ignored."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") is not None:
            section = entry.get(kind)
            yield str(entry["name"]), section if isinstance(section, dict) else {}


def _all_names(entries: Any) -> list[Any]:
    """The names of all entries of a list; "" for an entry that is null, or unnamed."""
    found = [
        each.get("name") if isinstance(each, dict) else each
        for each in (entries if isinstance(entries, list) else ())
    ]
    return ["" if each is None else each for each in found]


def problems_in_file(document: Section) -> Iterator[str]:
    """A sentence for each field with a value that is not allowed."""
    current = document.get("current-context")
    if not isinstance(current, str | None):
        yield f"current-context is {_type_name(current)}; write a text in quotes"
    for plural, kind in KINDS.items():
        listed = document.get(plural)
        if listed is not None and not isinstance(listed, list):
            yield f"{plural} is {_type_name(listed)}; write a list"
        entries = [*named(listed, kind)]
        names = _all_names(listed)
        for name in names:
            if not isinstance(name, str):
                yield f"a name in {plural} is {_type_name(name)}; write it in quotes"
        for name, times in Counter(map(str, names)).items():
            if times > 1:
                yield f"it has two {plural} of the name {name!r}; leave one of them out"
        for name, section in entries:
            for field, value in section.items():
                if value is not None and field in _TYPES:
                    where = f"{field} of the {kind} {name!r}"
                    yield from _problems_of(where, field, value)


def _problems_of(where: str, field: str, value: Any) -> Iterator[str]:
    expected, wording = _TYPES[field]
    if not isinstance(value, expected) or not _has_texts(field, value):
        yield f"{where} is {_type_name(value)}; write {wording}"
    elif field == "extensions" and not all(
        isinstance(e, dict | None) for e in _list_or_placeholder(value)
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


def _has_texts(field: str, value: Any) -> bool:
    """Whether the lists of a user to impersonate have texts.

    As in Go, null among texts is an empty text, and in place of a list it is an empty
    list.
    """
    lists, names = [], []
    if field == "as-groups":
        lists = [value]
    elif field == "as-user-extra":
        lists, names = [*value.values()], [*value]
    texts = [
        e for each in lists if each is not None for e in _list_or_placeholder(each)
    ]
    are_names = all(isinstance(each, str) for each in names)
    return are_names and all(isinstance(each, str | None) for each in texts)


def _list_or_placeholder(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [{}]


def _type_name(value: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text"}
    names |= {list: "a list", dict: "a mapping"}
    return names.get(type(value), f"of the type {type(value).__name__}")


def problems_of_cluster(cluster: Section) -> Iterator[str]:
    """A sentence for each combination in a cluster that cannot work."""
    if "server" not in cluster:
        yield "its cluster has no server; write server: https://host:port"
        return
    server = with_plain_scheme(cluster["server"])
    if not server.startswith(("http://", "https://")):
        yield f"the server {shown_address(server)!r} is not an http or https address"
    yield from _file_problems(cluster, "certificate-authority")
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


def problems_of_user(user: Section, *, secure: bool) -> Iterator[str]:
    """A sentence for each combination in a user that cannot work.

    Some matter only if the server is `secure`: other servers do not get the user's
    credentials.
    """
    yield from _certificate_problems(user)
    yield from _token_problems(user, secure=secure)
    yield from _plugin_problems(user, secure=secure)
    others = [each for each in ("as-groups", "as-uid", "as-user-extra") if each in user]
    if others and "as" not in user:
        yield f"its user has {', '.join(others)}, but nobody to be: add as: NAME"


def _certificate_problems(user: Section) -> Iterator[str]:
    keys = ("client-certificate", "client-key")
    for each in keys:
        yield from _file_problems(user, each)
    has_certificate, has_key = (e in user or f"{e}-data" in user for e in keys)
    if has_certificate != has_key:
        yield "its user needs a client-certificate and a client-key, or neither"


def _token_problems(user: Section, *, secure: bool) -> Iterator[str]:
    if secure and not str(user.get("token", "")).isprintable():
        yield "its token has a line's end, or another character that no header takes"
    if secure and "password" in user and "username" not in user:
        yield "its user has a password, and no username"
    if "username" in user and ("token" in user or "tokenFile" in user):
        yield "its user has a token and a username; leave one of them out"


def _plugin_problems(user: Section, *, secure: bool) -> Iterator[str]:
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


def _file_problems(section: Section, key: str) -> Iterator[str]:
    if key in section and f"{key}-data" in section:
        yield f"it has both {key} and {key}-data; leave one of them out"
    elif key in section:
        try:
            with Path(section[key]).open("rb"):
                pass
        except OSError as problem:
            yield f"its {key} {section[key]} cannot be read: {problem.strerror}"
