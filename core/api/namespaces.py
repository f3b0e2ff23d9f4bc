"""Which namespaces are served: names, patterns, and what they leave out.

`-n team-a` names one.  `-n 'team-*'` is a pattern; `-n 'team-*,!team-*-test'` leaves
some of them out, and `-n '!kube-*'` is all others.  Several `-n` add up.  Where one is
a pattern the namespaces of the cluster are followed; names need no such right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fnop.core.values.patterns import is_pattern, matches

__all__ = ["check_namespace", "has_patterns", "served_namespaces"]

# Kubernetes: the name of a namespace is a DNS label (RFC 1123).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PATTERN = re.compile(r"[-a-z0-9*?]{1,63}")


def check_namespace(given: str) -> None:
    """Raises `ValueError`, with the remedy, for what means no namespace."""
    for part in _parts(given):
        bare = part.removeprefix("!")
        valid = _PATTERN if is_pattern(bare) else _NAME
        if not valid.fullmatch(bare):
            raise ValueError(
                f"{part!r} is neither the name of a namespace nor a pattern such as "
                "'team-*' or '!kube-*'; serve the whole cluster with -A"
            )


def has_patterns(given: Iterable[str]) -> bool:
    """Whether only the cluster can tell which namespaces are meant.

    >>> has_patterns(["default"]), has_patterns(["team-*"]), has_patterns(["a,!b"])
    (False, True, True)
    """
    return any(
        "," in each or each.startswith("!") or is_pattern(each) for each in given
    )


def served_namespaces(given: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
    """Those that are meant, of those that there are.  Plain names are always meant.

    >>> served_namespaces(["team-*,!*-test", "x"], ["team-a", "team-a-test", "default"])
    ('team-a', 'x')
    """
    given, present = tuple(given), tuple(present)
    found = {name for each in given for name in _meant(each, present)}
    return tuple(sorted(found))


def _meant(given: str, present: tuple[str, ...]) -> set[str]:
    """One option: parts in their order, each adds to or takes from those before it."""
    if not has_patterns([given]):
        return {given}
    parts = _parts(given)
    found = set(present) if parts[0].startswith("!") else set()
    for part in parts:
        bare = part.removeprefix("!")
        some = {name for name in present if matches(bare, name)}
        found = found - some if part.startswith("!") else found | some
    return found


def _parts(given: str) -> list[str]:
    return [each.strip() for each in given.split(",")]
