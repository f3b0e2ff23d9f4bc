"""The certificate that a webhook serves, and the authorities its clients trust.

The API server verifies a webhook with a bundle of authorities, which is in the
webhook's configuration. It may use an older bundle for a while after a newer one was
published. So fnop publishes an authority first. The authority signs served certificates
only after an overlap. Then no call fails while certificates are renewed.

All times are in Unix seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf

from msgspec import Struct

from fnop.effects.structs import replace

__all__ = [
    "Authority",
    "Due",
    "Leaf",
    "Lifetimes",
    "due",
    "published",
    "signer_of",
    "trusted",
]

DAY_SECONDS = 86_400.0
# The remaining part of a certificate's life when it is renewed (cert-manager's).
RENEWED_AT = 1 / 3


class Authority(Struct, frozen=True):
    """An authority, by the fingerprint of its certificate.

    It has been in each bundle since this process first `published` it; None if it was
    in no bundle yet.
    """

    id: str
    begins: float
    ends: float
    published: float | None = None


class Leaf(Struct, frozen=True):
    """A certificate to serve, and the names that it covers."""

    authority: str
    begins: float
    ends: float
    names: frozenset[str] = frozenset()


class Lifetimes(Struct, frozen=True):
    """The lives of own certificates, and the wait of a new authority, in seconds.

    The overlap must be longer than the time until each API server uses a new bundle,
    and until each replica knows a new authority.
    """

    authority: float = 365 * DAY_SECONDS
    leaf: float = 30 * DAY_SECONDS
    overlap: float = 3_600.0


class Due(Struct, frozen=True):
    """The certificates to make now; without a `signer`, the leaf is kept."""

    new_authority: bool = False
    # The authority that signs a new leaf.
    signer: str | None = None


def due(
    authorities: Collection[Authority],
    leaf: Leaf | None,
    names: frozenset[str],
    now: float,
    lifetimes: Lifetimes,
) -> Due:
    """Decide which certificates to make; call it again with a new authority.

    >>> due((), None, frozenset(), 0.0, Lifetimes())
    Due(new_authority=True, signer=None)
    """
    signer = signer_of(authorities, now, lifetimes.overlap)
    if signer is None:
        return Due(new_authority=True)
    newest = trusted(authorities, now)[-1]
    is_kept = (
        leaf is not None
        and leaf.authority == signer.id
        and names <= leaf.names
        and now < leaf.ends
        and not _is_renewed(leaf, signer, now, lifetimes)
    )
    return Due(
        new_authority=_is_old(newest, now, lifetimes.authority),
        signer=None if is_kept else signer.id,
    )


def trusted(authorities: Iterable[Authority], now: float) -> tuple[Authority, ...]:
    """The authorities of the bundle, the oldest first: all that are valid."""
    valid = (each for each in authorities if each.begins <= now < each.ends)
    return tuple(sorted(valid, key=_age_order))


def signer_of(
    authorities: Iterable[Authority], now: float, overlap: float
) -> Authority | None:
    """The authority that every client trusts by now; None if none is valid.

    It is the newest of the authorities that were published at least an overlap ago.
    Without such an authority, it is the one that was published first. Of several it is
    the oldest, which bundles of other processes have had for the longest time.
    """
    valid = trusted(authorities, now)
    ripe = [
        each
        for each in valid
        if each.published is not None and each.published + overlap <= now
    ]
    if ripe:
        return ripe[-1]
    return min(valid, key=_publication_order, default=None)


def published(
    authorities: Iterable[Authority], bundle: Collection[str], now: float
) -> tuple[Authority, ...]:
    """Return the authorities after a bundle of these ids was published.

    >>> [known] = published([Authority("a", 0, 9)], ["a"], 2.0)
    >>> known.published
    2.0
    """
    return tuple(
        replace(each, published=now)
        if each.published is None and each.id in bundle
        else each
        for each in authorities
    )


def _publication_order(authority: Authority) -> tuple[float, float, str]:
    known = inf if authority.published is None else authority.published
    return known, *_age_order(authority)


def _age_order(authority: Authority) -> tuple[float, str]:
    return authority.begins, authority.id


def _is_old(given: Authority | Leaf, now: float, life: float) -> bool:
    """Whether it is time for another one; a certificate begins before it was made."""
    span = min(life, given.ends - given.begins)
    return given.ends - now <= span * RENEWED_AT


def _is_renewed(
    leaf: Leaf, signer: Authority, now: float, lifetimes: Lifetimes
) -> bool:
    """Whether a leaf is old, and a new one would last longer."""
    is_old = _is_old(leaf, now, lifetimes.leaf)
    return is_old and min(now + lifetimes.leaf, signer.ends) > leaf.ends
