"""The result of a login: an API server's address, and credentials for it.

It is a value that can be compared. So fnop can distinguish new credentials from
rejected ones. The names come from Kopf's `ConnectionInfo`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from fnop.core.values.errors import PermanentError
from fnop.effects.regexes import regex
from fnop.effects.structs import as_dataclass
from fnop.effects.values import without_userinfo

__all__ = [
    "ConnectionInfo",
    "Impersonation",
    "LoginError",
    "chosen",
    "shown_address",
    "with_plain_scheme",
]


class LoginError(PermanentError):
    """Raised if there are no usable credentials; the text says what is missing.

    For example:

        @fnop.on.login()
        def login(**_):
            if not TOKEN.exists():
                raise fnop.LoginError(f"there is no {TOKEN}")
    """


class Impersonation(Struct, frozen=True):
    """The user whom requests impersonate; the credentials must permit it.

    `user`, `groups` and `uid` are the ones that the API server sees. `extra` has
    further facts about the user, several values to a name (Kubernetes: user
    impersonation).

    >>> Impersonation("system:serviceaccount:shop:deployer", groups=("dev",)).user
    'system:serviceaccount:shop:deployer'
    """

    user: str
    groups: tuple[str, ...] = ()
    uid: str | None = None
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of requests, one for each value.

        >>> Impersonation("jane", ("dev",), extra=(("a/b", ("1",)),)).headers
        [('Impersonate-User', 'jane'), ('Impersonate-Group', 'dev'), \
('Impersonate-Extra-a%2Fb', '1')]
        """
        found = [("Impersonate-User", self.user)]
        found += [] if self.uid is None else [("Impersonate-Uid", self.uid)]
        found += [("Impersonate-Group", each) for each in self.groups]
        for name, values in self.extra:
            key = f"Impersonate-Extra-{_escape_name(name)}"
            found += [(key, each) for each in values]
        return found


# Characters that no header value may contain (RFC 9110: field values); tabs may.
_CONTROL = regex("[\x00-\x08\x0a-\x1f\x7f]")
# All but the characters of a header's name (RFC 9110: tokens) and the percent sign.
_NOT_IN_HEADERS = regex(rb"[^A-Za-z0-9!#$&'*+\-.^_`|~]")


def _escape_name(name: str) -> str:
    escaped = _NOT_IN_HEADERS.sub(lambda e: b"%%%02X" % e[0][0], name.encode())
    return escaped.decode()


@as_dataclass
class ConnectionInfo(Struct, frozen=True, kw_only=True):
    """The address of an API server, with credentials of one kind.

    `server` is its URL. `token` is sent as `Bearer`, or as `scheme`. `username` and
    `password` are sent as `Basic`. `certificate` needs its `private_key`. `ca`,
    `certificate` and `private_key` are each a `_path` or `_data`. Data is PEM, or
    base64 of PEM as in a kubeconfig. The arguments are `ca_path`, `ca_data`,
    `certificate_path`, `certificate_data`, `private_key_path` and `private_key_data`.
    With `insecure`, fnop does not verify the server's certificate. Otherwise the name
    in it must be `tls_server_name`, by default the name in `server`. `proxy_url` is a
    proxy's address (http, https or socks5). `default_namespace` is the namespace of
    objects without one. Requests are made as the user of `impersonate`.

    fnop renews the credentials after their `expiration`, and when the server rejects
    them. An `expiration` without a zone is in UTC. Of several credentials fnop uses
    those with the highest `priority`. Their repr shows no secrets. Raises `ValueError`
    for a combination that cannot work.

    >>> ConnectionInfo(server="https://10.0.0.1:6443", token="t").server
    'https://10.0.0.1:6443'
    """

    server: str
    priority: int = 0
    default_namespace: str | None = None
    expiration: datetime | None = None
    ca_path: str | None = None
    ca_data: str | bytes | None = None
    insecure: bool = False
    username: str | None = None
    password: str | None = None
    scheme: str | None = None
    token: str | None = None
    certificate_path: str | None = None
    certificate_data: str | bytes | None = None
    private_key_path: str | None = None
    private_key_data: str | bytes | None = None
    proxy_url: str | None = None
    tls_server_name: str | None = None
    impersonate: Impersonation | None = None

    def __post_init__(self) -> None:
        if not self.server.startswith(("https://", "http://")):
            raise ValueError(
                f"the server {shown_address(self.server)!r} is not an address; write "
                "https://host:port"
            )
        for name in ("ca", "certificate", "private_key"):
            if self._is_given(f"{name}_path") and self._is_given(f"{name}_data"):
                raise ValueError(f"give either {name}_path= or {name}_data=, not both")
        if self.has_certificate != self._has_key:
            raise ValueError("a client certificate and a private key go together")
        if (self.username is None) != (self.password is None):
            raise ValueError("a username and a password go together")
        if self.token is not None and self.username is not None:
            raise ValueError("give either a token or a username, not both")
        if self.impersonate is not None:
            for name, value in self.impersonate.headers:
                if _CONTROL.search(value):
                    raise ValueError(
                        f"{name}: {value!r} has a line's end, or another character "
                        "that no header takes"
                    )

    def __repr__(self) -> str:
        names = (each for each in self.__struct_fields__ if each not in _SECRET)
        shown = (f"{name}={getattr(self, name)!r}" for name in names)
        return without_userinfo(f"ConnectionInfo({', '.join(shown)})")

    def _is_given(self, name: str) -> bool:
        return getattr(self, name) is not None

    @property
    def has_certificate(self) -> bool:
        """Whether it has a client certificate."""
        return self._is_given("certificate_path") or self._is_given("certificate_data")

    @property
    def _has_key(self) -> bool:
        return self._is_given("private_key_path") or self._is_given("private_key_data")

    def has_expired(self, wall: float) -> bool:
        """Whether its `expiration` has passed at this Unix time.

        >>> dated = ConnectionInfo(server="http://a", expiration=datetime(1970, 1, 2))
        >>> dated.has_expired(86_399.0), dated.has_expired(86_400.0)
        (False, True)
        """
        if self.expiration is None:
            return False
        moment = self.expiration
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment.timestamp() <= wall


_SECRET = frozenset(("password", "token", "certificate_data", "private_key_data"))


def shown_address(address: str) -> str:
    """An address as errors show it, even if it has no scheme: without userinfo.

    >>> shown_address("me:pass@10.0.0.1:6443"), shown_address("ftp://me:pass@h")
    ('***@10.0.0.1:6443', 'ftp://***@h')
    """
    return without_userinfo(f"//{address}").removeprefix("//")


def with_plain_scheme(address: str) -> str:
    """An address with its scheme in small letters, as Go reads it, or with http.

    >>> with_plain_scheme("HTTPS://H"), with_plain_scheme("H:80")
    ('https://H', 'http://H:80')
    """
    scheme, found, rest = address.partition("://")
    return f"{scheme.lower()}://{rest}" if found else f"http://{address}"


def chosen(
    found: Iterable[ConnectionInfo], rejected: ConnectionInfo | None, wall: float
) -> ConnectionInfo | None:
    """Choose the credentials of the highest priority, the first among equals.

    Credentials that the server has rejected are tried again only if no others exist.

    >>> one = ConnectionInfo(server="http://a")
    >>> other = ConnectionInfo(server="http://b", priority=1)
    >>> chosen([one, other], None, 0.0) is other
    True
    >>> chosen([one, other], other, 0.0) is one
    True
    """
    usable = [each for each in found if not each.has_expired(wall)]
    fresh = [each for each in usable if each != rejected]
    return max(fresh or usable, key=lambda each: each.priority, default=None)
