"""The part of a recording that begins at a step, for runs that go on from there.

The objects are those that the operator had been shown by then. If an account of the
cluster exists, they are the objects of the cluster instead. The later changes of other
clients are repeated in the run that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, Selector
from fnop.core.children.owned import owners_of
from fnop.core.values.body import Body
from fnop.core.values.errors import number_of
from fnop.interpreters.recording.model.account import Account
from fnop.interpreters.recording.model.calls import Calls, Recorded, part_of
from fnop.interpreters.recording.model.truth import Truth
from fnop.interpreters.recording.model.world import Foreign, Own, Place, World

__all__ = [
    "Excerpt",
    "Incomplete",
    "about",
    "excerpt_of",
    "resource_of",
    "runs_pods",
    "without_others",
]

Records = Iterable[dict[str, Any]]
Objects = Mapping[Place, dict[str, Any]]


class Incomplete(ValueError):
    """The recording lacks steps that an excerpt needs; the message is one sentence."""


class Excerpt(NamedTuple):
    """The part of a recording that a closed loop needs.

    - `objects` are the objects at the `step`, and `wall` is its time.
    - `changes` are the changes by other clients after it.
    - `end` are the objects at the end of the part, at the time `until`.
    - `answers` are the answers of calls (`part_of`).
    - `watched` are the keys of the kinds that the operator has watched.
    - `missing` is the number of earlier steps that are not recorded.
    - `is_true` says that the objects come from the cluster. Else they are the objects
      that the operator had been shown.
    - `drawn` are random bytes that were a secret, in hexadecimal.
    """

    catalogue: Catalogue
    step: int
    objects: Objects
    wall: float
    changes: Sequence[Foreign]
    end: Objects
    until: float
    answers: Sequence[Recorded]
    watched: frozenset[str]
    missing: int = 0
    is_true: bool = False
    drawn: Sequence[str] = ()

    @property
    def places(self) -> Sequence[Place]:
        """All objects about which anything is known."""
        changed = (each.place for each in self.changes)
        return [*dict.fromkeys((*self.objects, *self.end, *changed))]


_NO_ACCOUNT = Account()


def excerpt_of(
    read: Callable[[], Records],
    step: int | None = None,
    until: int | None = None,
    manager: str = "",
    account: Account = _NO_ACCOUNT,
) -> Excerpt:
    """Read a recording, twice, from one step on, up to another.

    By default the part begins at the step by which the operator has seen all objects,
    and ends with the recording. `manager` is the operator's name in managed fields. If
    there is an `account` of the cluster, the objects and the changes by other clients
    come from it.

    Raises `ValueError` if the recording has too few steps, or if the part would end
    before it begins. Raises `Incomplete` if the recording lacks some of the part.
    """
    own, calls, watched, truth = Own(), Calls(), set[str](), Truth(account)
    for record in read():
        own.add(record)
        truth.add(record)
        calls.add(record)
        watched |= _watched_kinds(record)
    world, changes = World(own, manager), list[Foreign]()
    begun: tuple[int, dict[Place, dict[str, Any]], float] | None = None
    missing = 0
    for record in read():
        if until is not None and world.steps >= until:
            break
        found = world.add(record)
        if "gap" in record:
            missing += record["gap"]
            if begun is not None or (step is not None and world.steps >= step):
                raise Incomplete(_words_for_missing(world.steps, record["gap"]))
        if begun is not None:
            changes += found
        elif _is_ready(record) if step is None else world.steps >= step:
            begun = world.steps, world.restorable(), world.wall
    if begun is None:
        raise ValueError(_words_for_absence(step, until, world.steps))
    changes = [each for each in changes if not world.is_collected(each)]
    end, catalogue = world.restorable(), world.served.catalogue
    answers = part_of(calls.answers, begun[0], until)
    told = world.wall, answers, frozenset(watched)
    excerpt = Excerpt(
        catalogue, *begun, changes, end, *told, missing, drawn=calls.drawn
    )
    if not account.changes:
        return excerpt
    return excerpt._replace(
        objects=truth.objects(excerpt.step),
        changes=truth.changes_of_others(excerpt.step, until),
        end=truth.objects(until),
        is_true=True,
    )


def _words_for_missing(last: int, missing: int) -> str:
    """The sentence about missing steps; `last` is the last of them."""
    return (
        f"the recording lacks {number_of(missing, 'step')} after #{last - missing}, "
        f"and with them what others have done: go on from #{last + 1}, or later"
    )


def _is_ready(record: Mapping[str, Any]) -> bool:
    """Whether the operator has seen all objects by this record."""
    return any(each["do"] == "Ready" for each in record.get("commands", ()))


def _words_for_absence(step: int | None, until: int | None, steps: int) -> str:
    """The sentence about a part without a beginning, after `steps` were read."""
    read = number_of(steps, "step")
    match step, until:
        case int(), int() if until < step:
            return (
                f"#{until} comes before #{step}, at which the part begins: give a "
                "later --until"
            )
        case int(), _:
            return f"the recording has {read}, and no step {step}"
        case None, int() if until <= steps:
            return (
                f"the operator is not ready by #{until}: give a later --until, or "
                f"{_NAME}"
            )
        case _:
            return (
                f"the recording has {read}, and the operator becomes ready in none: "
                f"{_NAME}"
            )


_NAME = "name the step at which the part begins (--from, and --at with --as-test)"


def _watched_kinds(record: Mapping[str, Any]) -> set[str]:
    commands = record.get("commands", ())
    return {str(each["resource"]) for each in commands if _begins_list(each)}


def _begins_list(command: Mapping[str, Any]) -> bool:
    match command:
        case {"do": "ListPage"}:
            return True
        case {"do": "Watch", "version": version}:
            return not version
        case _:
            return False


# ------------------------------------------------------------------ a part of the world


def about(excerpt: Excerpt, place: Place) -> Excerpt:
    """The excerpt without other objects of its kind, and the objects they own."""
    kind = place.api_version, place.kind
    return _without(
        excerpt,
        lambda each, _: (each.api_version, each.kind) == kind and each != place,
    )


def without_others(
    excerpt: Excerpt,
    owned: Sequence[Selector],
    others: Sequence[Selector],
    manager: str,
) -> Excerpt:
    """The same excerpt without objects that only belong to an `owned` kind.

    Such a kind is watched for the sake of its owned objects. Objects of kinds that
    `others` select stay. So do objects that have an owner, or that the operator's
    `manager` has written to.
    """

    def is_strange(place: Place, found: dict[str, Any]) -> bool:
        resource = resource_of(excerpt.catalogue, place)
        if resource is None or any(each.matches(resource) for each in others):
            return False
        body = Body(found)
        fields = body.meta.get("managedFields")
        managers = fields if isinstance(fields, list) else []
        is_own = any(
            isinstance(each, dict) and each.get("manager") == manager
            for each in managers
        )
        is_owned = any(each.matches(resource) for each in owned)
        return is_owned and not is_own and not owners_of(body)

    return _without(excerpt, is_strange)


def _without(
    excerpt: Excerpt, is_out: Callable[[Place, dict[str, Any]], bool]
) -> Excerpt:
    """The same excerpt without some objects, and the objects that these own."""
    found = [
        *excerpt.objects.items(),
        *((each.place, each.before or each.after or {}) for each in excerpt.changes),
        *excerpt.end.items(),
    ]
    uids = {Body(each).uid for place, each in found if is_out(place, each)}
    places = {place for place, each in found if is_out(place, each)}
    size = -1
    while len(uids) != size:
        size = len(uids)
        for place, each in found:
            if any(owner.uid in uids for owner in owners_of(Body(each))):
                uids.add(Body(each).uid)
                places.add(place)
    return excerpt._replace(
        objects={k: v for k, v in excerpt.objects.items() if k not in places},
        changes=[each for each in excerpt.changes if each.place not in places],
        end={k: v for k, v in excerpt.end.items() if k not in places},
    )


def runs_pods(excerpt: Excerpt) -> bool:
    """Whether pods ran in the recorded cluster, as far as the recording shows.

    An API server without a kubelet does not run pods.
    """
    last = [*excerpt.end.items(), *excerpt.objects.items()]
    wanted = ran = False
    for place, found in last:
        status = found.get("status")
        shown = status if isinstance(status, Mapping) else {}
        if place.kind == "Pod":
            wanted, ran = True, ran or bool(shown.get("startTime"))
        elif place.kind in _WORKLOADS:
            wanted, ran = True, ran or bool(shown.get("readyReplicas"))
    return ran or not wanted


_WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet")


def resource_of(catalogue: Catalogue, place: Place) -> Resource | None:
    """The resource of an object; None if its kind was not served."""
    found = (
        each
        for each in catalogue.resources
        if (each.api_version, each.kind) == (place.api_version, place.kind)
    )
    return next(found, None)
