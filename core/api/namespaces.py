"""Selection of the namespaces to serve: by names, patterns, and exclusions.

`-n team-a` names one namespace. `-n 'team-*'` is a pattern; `-n 'team-*,!team-*-test'`
excludes some of them, and `-n '!kube-*'` is all others. Several `-n` add up. If one of
them is a pattern, fnop watches the namespaces of the cluster; plain names do not need
that right.
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.values.patterns import is_pattern, matches
from fnop.effects.regexes import regex

__all__ = ["check_namespace", "has_patterns", "served_namespaces", "steps_of"]

# Kubernetes: the name of a namespace is a DNS label (RFC 1123).
_NAME = regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PATTERN = regex(r"[-a-z0-9*?]{1,63}")


def check_namespace(given: str) -> None:
    """Raise `ValueError`, with the remedy, for a text that is not such a selection."""
    for part in _split_list(given):
        bare = part.removeprefix("!")
        valid = _PATTERN if is_pattern(bare) else _NAME
        if not valid.fullmatch(bare):
            raise ValueError(
                f"{part!r} is neither the name of a namespace nor a pattern such as "
                "'team-*' or '!kube-*'; serve the whole cluster with -A"
            )


def has_patterns(given: Iterable[str]) -> bool:
    """Whether the namespaces of the cluster are needed to resolve a selection.

    >>> has_patterns(["default"]), has_patterns(["team-*"]), has_patterns(["a,!b"])
    (False, True, True)
    """
    return any(
        "," in each or each.startswith("!") or is_pattern(each) for each in given
    )


def served_namespaces(given: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
    """The selected namespaces among the existing ones; plain names always count.

    >>> served_namespaces(["team-*,!*-test", "x"], ["team-a", "team-a-test", "default"])
    ('team-a', 'x')
    """
    given, present = tuple(given), tuple(present)
    found = {name for each in given for name in _namespaces_of_option(each, present)}
    return tuple(sorted(found))


def steps_of(given: str) -> tuple[tuple[bool, str], ...]:
    """The steps of one option, in order: each adds the names of a pattern, or removes.

    >>> steps_of("team-*,!team-*-test"), steps_of("!kube-*")
    (((True, 'team-*'), (False, 'team-*-test')), ((True, '*'), (False, 'kube-*')))
    """
    steps = tuple(
        (not part.startswith("!"), part.removeprefix("!"))
        for part in _split_list(given)
    )
    return steps if steps[0][0] else ((True, "*"), *steps)


def _namespaces_of_option(given: str, present: tuple[str, ...]) -> set[str]:
    """The namespaces of one option."""
    if not has_patterns([given]):
        return {given}
    found: set[str] = set()
    for adds, pattern in steps_of(given):
        some = {name for name in present if matches(pattern, name)}
        found = found | some if adds else found - some
    return found


def _split_list(given: str) -> list[str]:
    return [each.strip() for each in given.split(",")]
