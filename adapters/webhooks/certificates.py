"""The certificates that a webhook server serves, and the bundle that verifies them.

They are files, or fnop's own. `fnop.core.admission.certificates` decides what is due at
a time. The library `cryptography` (`fnop[tls]`) makes certificates; files can be served
without it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import ssl
from collections.abc import Iterable, Sequence
from logging import getLogger
from math import inf
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from fnop.adapters.kubernetes.memory_files import file_with
from fnop.adapters.serving.certificates import SKEW_SECONDS, Authority as Signer, Pair
from fnop.core.admission.certificates import (
    Authority,
    Due,
    Leaf,
    Lifetimes,
    due,
    published,
    signer_of,
    trusted,
)
from fnop.core.values.errors import text_of
from fnop.effects.structs import replace

__all__ = [
    "Certificates",
    "Complaints",
    "Files",
    "Own",
    "Served",
    "Store",
    "Stored",
    "StrPath",
    "common_name",
    "content_of",
    "context_with",
    "named_hosts",
]

log = getLogger("fnop.webhooks")

StrPath: TypeAlias = "str | PathLike[str]"
# Replicas may store an authority at the same time: then fnop tries again.
TRIES = 10
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)


class Served(NamedTuple):
    """The certificate to serve, with its chain and key, and the bundle to publish.

    `authorities` are the ids of the authorities in the bundle. `names` are the
    certificate's names, if they are known.
    """

    pair: Pair
    bundle: bytes
    authorities: tuple[str, ...]
    names: frozenset[str] = frozenset()
    password: str | None = None

    @classmethod
    def nothing(cls) -> Served:
        """The value before there is a certificate, or if there is no TLS."""
        return cls(Pair(b"", b""), b"", ())


class Certificates(Protocol):
    """A source of certificates; times are in Unix seconds.

    An authority signs served certificates after the `overlap`, in seconds, since its
    publication.
    """

    @property
    def overlap(self) -> float: ...

    async def at(self, now: float) -> Served:
        """The certificate to serve; raises `OSError` or `ValueError` without one."""
        ...

    def publish(self, authorities: Sequence[str], now: float) -> None:
        """Note that a bundle with these authorities was published."""
        ...


class Store(Protocol):
    """A place in which the replicas of an operator share their authorities."""

    async def read(self) -> Stored:
        """The stored authorities. Raises `OSError` if they cannot be read."""
        ...

    async def write(self, pairs: Sequence[Pair], before: Stored) -> bool:
        """Store others; return False if another client has stored some meanwhile."""
        ...


class Stored(Struct, frozen=True):
    """Authorities in a store, and the stored version; "" for nothing."""

    pairs: tuple[Pair, ...] = ()
    version: str = ""
    type: str = "Opaque"


# ------------------------------------------------------------------------- files


class Generation(Struct, frozen=True):
    """The content of all files at a moment, and its bundle as an authority.

    The authority begins when the content was first seen.
    """

    served: Served
    authority: Authority


class Files:
    """Certificates in files, which another program renews.

    fnop compares their content, since mounted Secrets are switched by symbolic links.
    If the bundle has changed, too, the new certificate is served after the `overlap`,
    during which both bundles are published. Without the file of a `bundle` the
    certificates themselves are trusted.
    """

    def __init__(
        self,
        certificate: StrPath,
        key: StrPath,
        bundle: StrPath | bytes | None,
        password: str | None,
        overlap: float,
    ) -> None:
        self._certificate, self._key = certificate, key
        self._bundle = certificate if bundle is None else bundle
        self._password = password
        self.overlap = overlap
        # By the digest of the bundle; the newest is the last one.
        self._known: dict[str, Generation] = {}
        self._complaints = Complaints()

    async def at(self, now: float) -> Served:
        try:
            self._learn(self._read_twice(now))
        except (OSError, ValueError) as problem:
            if not self._known:
                raise
            self._complaints.say(f"{problem}; the previous certificate stays in use")
        else:
            self._complaints.say(self._refusal_reason(now))
        self._forget(now)
        return self._served_pair(now)

    def publish(self, authorities: Sequence[str], now: float) -> None:
        for id, each in self._known.items():
            [authority] = published((each.authority,), authorities, now)
            self._known[id] = replace(each, authority=authority)

    def _refusal_reason(self, now: float) -> str:
        """The reason why an API server will refuse the newest certificate; or ""."""
        file, bundle = fspath(self._certificate), self._bundle
        if self._newest_generation.authority.ends <= now:
            return f"the certificate in {file} has expired; renew it"
        where = "cadata=" if isinstance(bundle, bytes) else fspath(bundle)
        ends = end_of_trust(self._newest_generation.served)
        if ends is None:
            return (
                f"no authority in {where} has signed the certificate in {file}: the "
                "API server will refuse it; give the authority as cafile="
            )
        if ends <= now:
            return f"the authority in {where} has expired; renew it"
        return ""

    @property
    def _newest_generation(self) -> Generation:
        return self._known[next(reversed(self._known))]

    def _read_twice(self, now: float) -> Generation:
        """The content, read twice, as files may be switched between two reads."""
        try:
            return self._read(now)
        except (OSError, ValueError):
            return self._read(now)

    def _read(self, now: float) -> Generation:
        pair = Pair(content_of(self._certificate), content_of(self._key))
        bundle = self._bundle
        if not isinstance(bundle, bytes):
            path, bundle = bundle, content_of(bundle)
            if not _BLOCK.search(bundle):
                raise ValueError(f"{fspath(path)} has no certificate in PEM")
        if self._known and self._newest_generation.served[:2] == (pair, bundle):
            return self._newest_generation
        id = hashlib.sha256(bundle).hexdigest()
        served = Served(pair, bundle, (id,), password=self._password)
        try:
            context_with(served, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
            facts = facts_of(pair.certificate)
        except ValueError as problem:
            files = f"{fspath(self._certificate)} and {fspath(self._key)}"
            raise ValueError(f"{files} cannot be served: {problem}") from None
        served = served._replace(names=facts.names)
        return Generation(served, Authority(id, now, facts.ends))

    def _learn(self, found: Generation) -> None:
        """Make a generation the newest; a published bundle is remembered."""
        if self._known and self._newest_generation == found:
            return
        before = self._known.pop(found.authority.id, None)
        if before is not None:
            known = replace(found.authority, published=before.authority.published)
            found = replace(found, authority=known)
        self._known[found.authority.id] = found

    def _forget(self, now: float) -> None:
        """Drop expired ones, except for the newest: there is nothing else to serve."""
        *others, _ = self._known
        for id in others:
            if self._known[id].authority.ends <= now:
                del self._known[id]

    def _served_pair(self, now: float) -> Served:
        known = self._known.values()
        chosen = signer_of((each.authority for each in known), now, self.overlap)
        found = self._newest_generation if chosen is None else self._known[chosen.id]
        bundle = b"\n".join(each.served.bundle for each in known)
        return found.served._replace(bundle=bundle, authorities=tuple(self._known))


class Complaints:
    """Warnings, each once while it holds; "" means no warning."""

    def __init__(self) -> None:
        self._last = ""

    def say(self, text: str) -> None:
        """Warn, if the last warning was different."""
        if text and text != self._last:
            log.warning("%s", text)
        self._last = text


def content_of(path: StrPath) -> bytes:
    """The content of a file.  Raises `OSError` with a sentence."""
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        why = problem.strerror or text_of(problem)
        raise OSError(f"{fspath(path)} cannot be read: {why}") from None


class Facts(Struct, frozen=True):
    """The facts about a certificate; without the library it never ends."""

    ends: float = inf
    names: frozenset[str] = frozenset()


def facts_of(certificate: bytes) -> Facts:
    """The end and the names of the first certificate in a PEM file."""
    try:
        from cryptography import x509
    except ImportError:
        return Facts()
    found = x509.load_pem_x509_certificate(certificate)
    names: list[str] = []
    try:
        extension = found.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except x509.ExtensionNotFound:
        pass
    else:
        names += extension.value.get_values_for_type(x509.DNSName)
        names += map(str, extension.value.get_values_for_type(x509.IPAddress))
    return Facts(
        found.not_valid_after_utc.timestamp(),
        frozenset(names),
    )


def end_of_trust(served: Served) -> float | None:
    """The end of the authority that has signed a certificate, or its chain.

    None if the bundle has no such authority; without the library it never ends.
    """
    try:
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature
    except ImportError:
        return inf
    try:
        chain = x509.load_pem_x509_certificates(served.pair.certificate)
        roots = x509.load_pem_x509_certificates(served.bundle)
    except ValueError:
        # the API server may understand a certificate that this library does not
        return inf
    ends: list[float] = []
    for root in roots:
        for each in chain:
            try:
                if each != root:
                    each.verify_directly_issued_by(root)
            except (InvalidSignature, TypeError, ValueError):
                continue
            ends.append(root.not_valid_after_utc.timestamp())
    return max(ends, default=None)


# --------------------------------------------------------------------- fnop's own


class Own:
    """Certificates that fnop makes: an authority, and a leaf for the server's names.

    With a `store`, all replicas share the authority. Raises `TlsMissing` if the library
    is not installed.
    """

    def __init__(
        self, names: Iterable[str], lifetimes: Lifetimes, store: Store | None = None
    ) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._lifetimes = lifetimes
        self._store = store
        self._signers: dict[str, Signer] = {}
        self._authorities: tuple[Authority, ...] = ()
        self._leaf: tuple[Leaf, Pair] | None = None
        self._stored = Stored()
        self._complaints = Complaints()

    @property
    def overlap(self) -> float:
        return self._lifetimes.overlap

    async def at(self, now: float) -> Served:
        await self._share(now)
        for _ in range(TRIES):
            if self._due_steps(now).new_authority:
                await self._found(now)
            if trusted(self._authorities, now):
                break
        else:
            raise ConnectionError("other replicas store authorities all the time")
        signer = self._due_steps(now).signer
        if signer is not None:
            self._issue(signer, now)
        return self._served_pair(now)

    def publish(self, authorities: Sequence[str], now: float) -> None:
        self._authorities = published(self._authorities, authorities, now)

    def _due_steps(self, now: float) -> Due:
        leaf = None if self._leaf is None else self._leaf[0]
        names = frozenset(self._names)
        return due(self._authorities, leaf, names, now, self._lifetimes)

    async def _share(self, now: float) -> None:
        """Take the authorities of the store, and put back those that it has lost.

        If the store does not answer, the known ones stay.
        """
        if self._store is None:
            return
        known = self._valid_pairs(now)
        try:
            self._stored = await self._store.read()
            self._take([*self._stored.pairs, *known])
            if not {*known} <= {*self._stored.pairs}:
                await self._store.write(self._valid_pairs(now), self._stored)
        except (OSError, ValueError) as problem:
            if not known:
                raise
            self._complaints.say(f"{problem}; the certificates stay as they are")
        else:
            self._complaints.say("")

    async def _found(self, now: float) -> None:
        """Make an authority, and store it; if others were faster, take theirs."""
        signer = Signer(now, self._lifetimes.authority, "fnop webhooks")
        pairs = [*self._valid_pairs(now), signer.pair]
        if self._store is None:
            self._take(pairs)
            return
        try:
            await self._store.write(pairs, self._stored)
        except OSError as problem:
            if len(pairs) == 1:
                raise
            self._complaints.say(f"{problem}; the certificates stay as they are")
        else:
            await self._share(now)

    def _valid_pairs(self, now: float) -> list[Pair]:
        return [self._signers[each.id].pair for each in trusted(self._authorities, now)]

    def _take(self, pairs: Iterable[Pair]) -> None:
        """Take these authorities from now on, with their times of publication."""
        known = {each.id: each for each in self._authorities}
        signers = {fingerprint(each.certificate): each for each in pairs}
        self._signers = {
            id: self._signers.get(id) or Signer(0.0, given=pair)
            for id, pair in signers.items()
        }
        self._authorities = tuple(
            known.get(id, Authority(id, each.begins, each.ends))
            for id, each in self._signers.items()
        )

    def _issue(self, authority: str, now: float) -> None:
        ends = next(each.ends for each in self._authorities if each.id == authority)
        valid = now - SKEW_SECONDS, min(now + self._lifetimes.leaf, ends)
        # RFC 5280: a common name has 64 characters at most; only the names matter.
        pair = self._signers[authority].for_server(
            self._names, common_name(self._names)[:64], valid
        )
        self._leaf = Leaf(authority, *valid, frozenset(self._names)), pair

    def _served_pair(self, now: float) -> Served:
        assert self._leaf is not None, "there is an authority to sign one"
        ids = tuple(each.id for each in trusted(self._authorities, now))
        bundle = b"".join(self._signers[id].certificate for id in ids)
        leaf, pair = self._leaf
        return Served(pair, bundle, ids, leaf.names)


def fingerprint(certificate: bytes) -> str:
    """The digest of a certificate in PEM."""
    der = ssl.PEM_cert_to_DER_cert(certificate.decode("ascii", "replace").strip())
    return hashlib.sha256(der).hexdigest()


def named_hosts(hosts: Iterable[str | None]) -> tuple[str, ...]:
    """The names and addresses for a certificate, each once, in one form.

    Wildcard addresses are dropped: they identify no host.

    >>> named_hosts(["Hooks.ns.svc", "[::1]", "0.0.0.0", None, "hooks.ns.svc."])
    ('hooks.ns.svc', '::1')
    """
    found: dict[str, None] = {}
    for each in hosts:
        text = (each or "").strip().strip("[]").rstrip(".").lower()
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            if text:
                found[text] = None
        else:
            if not address.is_unspecified:
                found[str(address)] = None
    return tuple(found)


def common_name(names: Sequence[str]) -> str:
    """The first name that is not an address, else the first address, as in Kopf."""
    for each in names:
        try:
            ipaddress.ip_address(each)
        except ValueError:
            return each
    return names[0] if names else "fnop webhooks"


# ------------------------------------------------------------------ TLS settings


def context_with(served: Served, context: ssl.SSLContext) -> ssl.SSLContext:
    """The settings with this certificate.  Raises `ValueError` with a sentence."""
    pair = served.pair
    try:
        with file_with(pair.certificate + b"\n" + pair.key) as path:
            context.load_cert_chain(path, password=served.password or _refuse_password)
    except ssl.SSLError as problem:
        raise ValueError((problem.reason or text_of(problem)).lower()) from None
    return context


def _refuse_password() -> str:
    raise ValueError("the key has a password: give password=")
