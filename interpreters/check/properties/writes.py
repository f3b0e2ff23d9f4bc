"""Properties of writes: others' work stays, and a status reports observed facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fnop.core.children.applying import is_immutable
from fnop.core.values.diff import diff
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    merges,
    tampers,
    told,
    value_at,
)
from fnop.interpreters.check.properties.status import boasts, misread, unobserved
from fnop.interpreters.check.state.kinds import RIVAL
from fnop.interpreters.cluster import StoredEvent

__all__ = [
    "PROPERTIES",
    "honest_status",
    "no_clobber",
    "no_refused_writes",
    "right_object",
    "unsteady",
]


def no_clobber(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Writes never revert changes by others that came after the handler's look."""
    if tampers(seen.trial):
        return  # repairing its own objects is its task
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or write.view is None or event.previous is None:
            continue
        if not write.path.endswith(f"/{event.object['metadata']['name']}"):
            continue
        for field in _foreign_fields(seen, event, write.view):
            was, now = value_at(event.previous, field), value_at(event.object, field)
            if was != now and _takes_back(field, was, now):
                where = seen.alias_of(event.resource, event.object)
                message = f"{write.site} takes back {'.'.join(field)} of {where}"
                yield Violation(
                    "no_clobber", f"{message}, which was changed after it had looked"
                )
                return


def right_object(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """An object with the name of an observed one, but not the same, stays untouched.

    A handler that never looked is not judged: it means any object of that name.
    """
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or write.uid is None or event.previous is None:
            continue
        meta = event.object["metadata"]
        where = f"{'/'.join(event.resource)}/{meta.get('namespace') or ''}"
        if write.path != f"{where}/{meta['name']}" or write.uid == meta["uid"]:
            continue
        if write.site.verb in ("patch", "delete"):
            alias = seen.alias_of(event.resource, event.object)
            message = f"{write.site} strikes another {alias} than the one it had seen"
            yield Violation("right_object", message)
            return


_NOT_THEIRS = frozenset(("resourceVersion", "managedFields", "generation"))


def _foreign_fields(seen: Seen, event: StoredEvent, view: int) -> set[tuple[str, ...]]:
    """The fields that others have changed between the view and the write.

    A late request of a dead process is the operator's own, and older.
    """
    uid = event.object["metadata"]["uid"]
    return {
        field
        for each in seen.events
        if view < each.version < event.version
        and each.version not in seen.writes
        and seen.trial.journal.maker_of(each.version) != "late"
        and each.previous is not None
        and each.object["metadata"]["uid"] == uid
        for item in diff(each.previous, each.object)
        for field in _leaves(item.field, item.old, item.new)
        if not (field[0] == "metadata" and field[1] in _NOT_THEIRS)
        and not (seen.trial.state.in_force.is_hooked and field[-1] == RIVAL)
        and field[0] != "status"
    }


def _leaves(field: tuple[str, ...], old: Any, new: Any) -> Iterator[tuple[str, ...]]:
    """The single fields within a change of a whole mapping."""
    whole = new if isinstance(new, Mapping) else old
    if isinstance(whole, Mapping) and whole:
        for key in whole:
            yield from _leaves((*field, key), None, whole[key])
    else:
        yield field


def _takes_back(field: tuple[str, ...], was: Any, now: Any) -> bool:
    """Whether it is lost: an element of a list of finalizers; else the value."""
    if field == ("metadata", "finalizers"):
        return RIVAL in (was or ()) and RIVAL not in (now or ())
    return True


def honest_status(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A status reports observed facts: it never invents generations or numbers."""
    yield from _invented_numbers(benign, seen)
    for judge in (unobserved, misread, boasts):
        yield from told("honest_status", [*dict.fromkeys(judge(benign, seen))])
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or event.previous is None:
            continue
        now = _observed_generation(event.object)
        was = _observed_generation(event.previous)
        if now is None or now == was:
            continue
        where = seen.alias_of(event.resource, event.object)
        generation = event.object["metadata"].get("generation")
        seen_up_to = write.generation if write.generation is not None else generation
        if seen_up_to is not None and now > seen_up_to:
            message = f"{where} says observedGeneration {now}; the handler saw"
            yield Violation("honest_status", f"{message} {seen_up_to}")
            return
        if was is not None and now < was:
            message = f"observedGeneration of {where} goes back from {was} to {now}"
            yield Violation("honest_status", message)
            return


def _invented_numbers(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A status number that no benign run shows was invented, not observed."""
    if seen is benign.seen or merges(seen.trial) or tampers(seen.trial):
        return
    usual = _numbers(benign.seen)
    for (alias, path), values in _numbers(seen).items():
        if (alias, path) not in usual or (alias, path) in benign.unsteady:
            continue
        if min(values) < min(usual[alias, path]):
            if min(values) and _is_shown(min(values), alias, path, usual):
                continue
            message = f"{alias} says {path} {min(values):g}, which no benign run shows"
            yield Violation("honest_status", message)
            return


def _is_shown(
    number: float, alias: str, path: str, usual: Mapping[tuple[str, str], set[float]]
) -> bool:
    """Whether another object of the kind has the number there: then it came first."""
    kind = alias.partition("/")[0]
    return any(
        number in values and place == path and each.partition("/")[0] == kind
        for (each, place), values in usual.items()
    )


def _numbers(seen: Seen) -> dict[tuple[str, str], set[float]]:
    """The numbers that the operator has written to each field of a status."""
    found: dict[tuple[str, str], set[float]] = {}
    for event in seen.events:
        status = event.object.get("status")
        if event.version not in seen.writes or not isinstance(status, dict):
            continue
        alias = seen.alias_of(event.resource, event.object)
        for key, value in status.items():
            if value == value_at(event.previous, ("status", key)):
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault((alias, f"status.{key}"), set()).add(value)
    return found


def unsteady(one: Seen, other: Seen) -> frozenset[tuple[str, str]]:
    """The numbers in status that two runs have written differently."""
    mine, yours = _numbers(one), _numbers(other)
    return frozenset(
        each for each in {*mine, *yours} if mine.get(each) != yours.get(each)
    )


def _observed_generation(found: Mapping[str, Any]) -> int | None:
    value = (found.get("status") or {}).get("observedGeneration")
    return value if isinstance(value, int) else None


def no_refused_writes(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Writes are never refused as invalid, unless a fault causes it.

    A handler learns from the refusal that a field cannot be changed, and replaces the
    object (`on_immutable=`) by deleting it. If fnop itself then repeats a request in
    another form, as for lists of a child, that does not count as refused
    (`Trial.rejections`).
    """
    if seen is not benign.seen:
        return
    deleted = {
        (each.site.handler, each.site.target)
        for each in seen.trial.journal.writes
        if each.site.verb == "delete"
    }
    for site, outcome, _ in seen.trial.journal.rejections:
        if outcome.status == 422:
            is_replaced = (site.handler, site.target) in deleted
            if is_replaced and is_immutable(outcome.message):
                continue
            yield Violation(
                "no_refused_writes", f"{site} is refused: {outcome.message}"
            )
            return


PROPERTIES = (
    Property(
        no_clobber,
        "no write takes back what others have changed meanwhile",
        60,
    ),
    Property(
        right_object,
        "nothing is changed that only has the name of what was looked at",
        70,
    ),
    Property(
        honest_status,
        "a status tells what was observed",
        100,
    ),
    Property(
        no_refused_writes,
        "no write is refused as invalid",
        140,
        Scope.FAULTLESS | Scope.MISTAKES,
    ),
)
