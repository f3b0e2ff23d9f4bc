"""The part of a recording that begins at a step, for runs that go on from there.

The objects are those that the operator had been shown by then. If an account of the
cluster exists, they are the objects of the cluster instead. The later changes of other
clients are repeated in the run that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, Selector
from fnop.core.children.owned import owners_of
from fnop.core.values.body import Body
from fnop.core.values.errors import number_of
from fnop.effects.structs import replace
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.account import Account
from fnop.interpreters.recording.model.calls import Calls, Recorded, part_of
from fnop.interpreters.recording.model.history import History, Question, Step
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.model.truth import Truth
from fnop.interpreters.recording.model.world import Foreign, Own, World

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


class Excerpt(Struct, frozen=True):
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
    own, calls, truth, watched = _whole(read, account)
    part = _Part(World(own, manager), step)
    world, history = part.world, part.history
    for record in read():
        if until is not None and history.steps >= until:
            break
        part.add(record)
    if part.begun is None:
        raise ValueError(_words_for_absence(step, until, history.steps))
    excerpt = Excerpt(
        history.catalogue,
        *part.begun,
        [each for each in part.changes if not world.is_collected(each)],
        world.restorable(),
        history.wall,
        part_of(calls.answers, part.begun[0], until),
        watched,
        part.missing,
        drawn=calls.drawn,
    )
    return _with_truth(excerpt, truth, until) if account.changes else excerpt


def _with_truth(excerpt: Excerpt, truth: Truth, until: int | None) -> Excerpt:
    """The excerpt with the objects of the cluster, and the changes in the cluster."""
    return replace(
        excerpt,
        objects=truth.objects(excerpt.step),
        changes=truth.changes_of_others(excerpt.step, until),
        end=truth.objects(until),
        is_true=True,
    )


@dataclass
class _Part(Question):
    """The part of a recording from a step on, or from the one when all is seen.

    `begun` is the step at which it begins, with the objects and the time. `changes`
    are those by others since then. Steps were `missing` before it.
    """

    world: World
    step: int | None
    begun: tuple[int, dict[Place, dict[str, Any]], float] | None = None
    changes: list[Foreign] = field(default_factory=list)
    missing: int = 0

    def __post_init__(self) -> None:
        """Share the history of the world."""
        self.history = self.world.history

    def miss(self, gap: records.Gap) -> None:
        """Count missing steps; raise `Incomplete` if the part lacks them."""
        self.missing += gap.steps
        if self.begun is not None or (self.step is not None and gap.last >= self.step):
            raise Incomplete(_words_for_missing(gap))

    def see(self, step: Step) -> None:
        """Take one step in."""
        news = self.world.see(step)
        if self.begun is not None:
            self.changes += news
        elif _is_ready(step) if self.step is None else step.number >= self.step:
            self.begun = step.number, self.world.restorable(), step.wall


def _whole(
    read: Callable[[], Records], account: Account
) -> tuple[Own, Calls, Truth, frozenset[str]]:
    """The questions that need the whole recording, and the kinds that are watched."""
    history, watched = History(), set[str]()
    own, calls, truth = Own(history), Calls(history), Truth(account, history)
    for record in read():
        found = history.read(record)
        if isinstance(found, records.Gap):
            truth.miss(found)
            continue
        for question in (own, calls, truth):
            question.see(found)
        watched |= {
            each.resource
            for each in found.commands
            if isinstance(each, records.ListPage)
            or (isinstance(each, records.Watch) and each.begins_list)
        }
    return own, calls, truth, frozenset(watched)


def _words_for_missing(gap: records.Gap) -> str:
    """The sentence about missing steps."""
    return (
        f"the recording lacks {number_of(gap.steps, 'step')} after #{gap.first - 1}, "
        f"and with them what others have done: go on from #{gap.last + 1}, or later"
    )


def _is_ready(step: Step) -> bool:
    """Whether the operator has seen all objects by this step."""
    return any(isinstance(each, records.Ready) for each in step.commands)


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
    places = _with_dependents(found, [pair for pair in found if is_out(*pair)])
    return replace(
        excerpt,
        objects={k: v for k, v in excerpt.objects.items() if k not in places},
        changes=[each for each in excerpt.changes if each.place not in places],
        end={k: v for k, v in excerpt.end.items() if k not in places},
    )


def _with_dependents(
    found: Sequence[tuple[Place, dict[str, Any]]],
    owners: Sequence[tuple[Place, dict[str, Any]]],
) -> set[Place]:
    """The places of the owners, and of all objects that they own, however far below."""
    uids = {Body(each).uid for _, each in owners}
    places = {place for place, _ in owners}
    size = -1
    while len(uids) != size:
        size = len(uids)
        for place, each in found:
            if any(owner.uid in uids for owner in owners_of(Body(each))):
                uids.add(Body(each).uid)
                places.add(place)
    return places


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
