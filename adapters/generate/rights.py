"""The rights that an operator's files need, found by running its scripts.

Unknown parts are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.adapters.common.loading import handlers_of_file, load, module_of_file
from fnop.adapters.common.manifests import namespace_for
from fnop.adapters.testing.cases import (
    Subjects,
    cases_of,
    subjects_for,
)
from fnop.adapters.testing.models import models_of
from fnop.core.admission.configurations import groups_of
from fnop.core.admission.keeping import needs_of_webhooks
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INDICES, OUTSIDE
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.program.rights import (
    Need,
    least,
    needs_of_broad,
    needs_of_children,
    needs_of_election,
    needs_of_handler,
    needs_of_peering,
    role_namespaces,
)
from fnop.core.peers.lease import Candidate
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.explore import Case, prepared
from fnop.interpreters.check.campaign.observed_requests import Heard, Hearing, heard
from fnop.interpreters.check.campaign.recorded_requests import commands_in
from fnop.interpreters.recording.format.reader import RecordingProblem
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["Account", "RightsProblem", "Study", "Wishes", "account_of", "studied"]


class RightsProblem(Exception):
    """The rights cannot be determined; the text is one sentence with the remedy."""


class Account(NamedTuple):
    """A service account: its namespace and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def account_of(text: str | None, operator: str) -> Account:
    """The account that a text names, or else the one of an operator's name.

    >>> print(account_of("prod/db", "default"), account_of("db", "default"))
    prod/db db/db
    >>> print(account_of(None, "default"))
    fnop-operator/fnop-operator
    """
    if not text:
        text = "fnop-operator" if operator == "default" else operator
    namespace, slash, name = text.partition("/")
    return Account(namespace, name if slash else namespace)


class Wishes(Struct, frozen=True):
    """The operator's files, and the way in which it is going to run.

    `paths` are its files; `crds`, `objects`, `script` and `calls` are as for `fnop
    check`. `namespaces` are those that it serves; None is the whole cluster. With
    `elects` it runs as one of several replicas, whose lease is in `lease_namespace`.
    With `peers` it meets others in peering objects. `seen` are recordings of real runs.
    `webhook_name` is the name of its webhook configurations, if not the usual one. With
    `webhook_events` denials are Kubernetes Events. At most `budget` schedules of faults
    are tried.
    """

    paths: tuple[str, ...]
    account: Account
    operator: str = "default"
    namespaces: tuple[str, ...] | None = None
    elects: bool = False
    lease_namespace: str | None = None
    peers: bool = False
    crds: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    script: str | None = None
    calls: tuple[str, ...] = ()
    budget: int | None = None
    seen: tuple[str, ...] = ()
    webhook_name: str | None = None
    webhook_events: bool = False


class Study(Struct, frozen=True):
    """The findings about an operator: the rights, their users, and unknown parts.

    `notes` are sentences for its author; `unknown` are sentences about what was not
    seen.
    """

    program: Program
    subjects: Subjects
    kinds: tuple[Resource, ...]
    needs: tuple[Need, ...]
    notes: tuple[str, ...]
    unknown: tuple[str, ...]


def studied(
    wishes: Wishes, progress: Callable[[int, int], Any] = lambda done, all: None
) -> Study:
    """Run an operator's scripts, with and without faults, and return the rights.

    Raises `RightsProblem`, and the errors of `subjects_for`, `cases_of`, `load` and
    `read_manifests`.
    """
    handlers = tuple(each for path in wishes.paths for each in handlers_of_file(path))
    if not handlers:
        raise RightsProblem(f"{', '.join(wishes.paths)} declares no handlers")
    place = _sample_namespace(wishes.namespaces)
    served = wishes.namespaces
    if served is not None and not has_patterns(served):
        served = (place,)
    program = Program(handlers, Settings(wishes.operator, served))
    modules = load([wishes.script]) if wishes.script else []
    paths = [*wishes.crds, *wishes.objects]
    own = [*map(module_of_file, wishes.paths)]
    given = subjects_for(program, wishes.paths[0], paths, modules, own)
    subjects = _place_subjects(given, wishes, place)
    hearing = Hearing(program)
    cases = cases_of(
        program,
        subjects,
        calls=models_of(load(wishes.calls), modules),
        module=modules[0] if modules else None,
        namespace=place,
    )
    found = heard(hearing, cases, budget=wishes.budget, each=progress)
    recorded = _recorded_requests(wishes, program)
    found = replace(found, called=found.called | recorded.called)
    kinds = _kinds(cases[0])
    needs = {*found.needs, *_without_having_seen(program, found, kinds, place)}
    elsewhere = _outside_sentences(needs, wishes, place)
    spread = {
        *_needs_per_namespace(needs, wishes.namespaces, place),
        *_needs_of_options(wishes, program),
    }
    spread |= {*_needs_per_namespace(recorded.needs, wishes.namespaces, "")}
    unknown = tuple(_unseen_sentences(program, found, kinds, wishes))
    notes = (*subjects.notes, *elsewhere)
    return Study(program, subjects, kinds, least(spread), notes, unknown)


def _recorded_requests(wishes: Wishes, program: Program) -> Hearing:
    """The requests in recordings of real runs."""
    hearing = Hearing(program)
    for path in wishes.seen:
        with open(path, "rb") as file:
            try:
                for command in commands_in(file):
                    hearing(command)
            except RecordingProblem as problem:
                raise RightsProblem(f"{path}: {problem}") from problem
    return hearing


# ---------------------------------------------------------------------- namespaces


def _sample_namespace(namespaces: tuple[str, ...] | None) -> str:
    """A served namespace, which holds the objects of the scripts."""
    if namespaces is None:
        return "default"
    if not has_patterns(namespaces):
        return namespaces[0]
    samples = ["default", *(_sample_of(each) for each in namespaces)]
    found = served_namespaces(namespaces, samples)
    if not found:
        raise RightsProblem(
            f"no namespace is meant by {', '.join(namespaces)}; name one with -n"
        )
    return found[0]


def _sample_of(pattern: str) -> str:
    """A name that a pattern matches.

    >>> _sample_of("team-*,!team-?-test")
    'team-x'
    """
    return (
        pattern.partition(",")[0].removeprefix("!").replace("*", "x").replace("?", "x")
    )


def _place_subjects(subjects: Subjects, wishes: Wishes, place: str) -> Subjects:
    """The subjects, in an existing namespace that is served."""
    if wishes.namespaces is None:
        return subjects
    moved = []
    for each in subjects.subjects:
        meta = {**each.get("metadata", {})}
        if "namespace" in meta:
            meta["namespace"] = place
        moved.append({**each, "metadata": meta})
    present = [
        each
        for each in subjects.given
        if (each["kind"], each["metadata"].get("name")) != ("Namespace", place)
    ]
    given = present if place == "default" else [namespace_for(place), *present]
    return replace(subjects, subjects=tuple(moved), given=tuple(given))


def _needs_per_namespace(
    needs: Iterable[Need], namespaces: tuple[str, ...] | None, place: str
) -> Iterator[Need]:
    """The needs of one object's life, for all served namespaces."""
    for each in needs:
        if namespaces is None or has_patterns(namespaces):
            yield each._replace(namespace=None)
        elif each.namespace == place:
            for name in namespaces:
                yield each._replace(namespace=name)
        else:
            yield each


def _outside_sentences(
    needs: Iterable[Need], wishes: Wishes, place: str
) -> Iterator[str]:
    """A sentence for each right outside the served namespaces."""
    if wishes.namespaces is None:
        return
    if has_patterns(wishes.namespaces):
        yield (
            f"which namespaces {', '.join(wishes.namespaces)} means is not known here: "
            "the rights are for the whole cluster"
        )
        return
    for each in sorted({e for e in needs if e.namespace not in (None, place)}):
        yield (
            f"{each.who} asks to {each.right} in namespace {each.namespace}, which is "
            "not served: there is a Role for that, too"
        )


# ------------------------------------------------------------------- what was not seen


def _kinds(case: Case) -> tuple[Resource, ...]:
    return tuple(catalogue_of(prepared(case).base).resources)


def _resources_of(handler: Handler, kinds: Iterable[Resource]) -> list[Resource]:
    if handler.selector is None:
        return []
    return [*Catalogue(tuple(kinds)).find(handler.selector)]


def _without_having_seen(
    program: Program, found: Heard, kinds: Sequence[Resource], place: str
) -> Iterator[Need]:
    everywhere = program.settings.namespaces is None
    for handler in program.handlers:
        if everywhere:
            yield from needs_of_broad(handler)
        where = None if everywhere else place
        for _, owned in handler.owns:
            meant = Catalogue(tuple(kinds)).find(owned)
            yield from needs_of_children(handler, meant, where)
        if handler.id in found.called:
            continue
        for kind in _resources_of(handler, kinds):
            yield from needs_of_handler(handler, kind, where)


def _needs_of_options(wishes: Wishes, program: Program) -> Iterator[Need]:
    """The rights that the way of running the operator needs, but no handler."""
    name = wishes.webhook_name or program.settings.domain
    reports = wishes.webhook_events or program.settings.admission_events
    yield from needs_of_webhooks(
        groups_of(program.handlers),
        name,
        wishes.operator,
        wishes.account.namespace,
        reports=role_namespaces(wishes.namespaces) if reports else (),
    )
    if wishes.elects:
        where = wishes.lease_namespace or wishes.account.namespace
        lease = Candidate("any", where, f"fnop-{wishes.operator}")
        yield from needs_of_election(lease)
    if wishes.peers:
        yield from needs_of_peering(wishes.namespaces)


def _unknown_children(program: Program, kinds: Sequence[Resource]) -> Iterator[str]:
    """A sentence for each kind of `owns=` without a definition."""
    catalogue = Catalogue(tuple(kinds))
    told = {
        f"{handler.label} owns {name}, a kind that is not known here, so the rights to "
        "it are missing; give its definition with --crd": None
        for handler in program.handlers
        for name, owned in handler.owns
        if not catalogue.find(owned)
    }
    yield from told


_REMEDY = "give --object or --script with which it"


def _uncalled_handlers(program: Program, found: Heard) -> Iterator[str]:
    """A sentence for each handler that was never called, or has never succeeded."""
    for handler in {each.id: each for each in program.handlers}.values():
        if handler.role in INDICES or handler.role in OUTSIDE:
            continue  # they make no requests
        if handler.id not in found.called:
            yield (
                f"{handler.label} was never called, so what it asks for is not known; "
                f"{_REMEDY} is called"
            )
        elif handler.id in found.unfinished and not handler.rule.lasts:
            yield (
                f"{handler.label} was called and has never succeeded, so what it asks "
                f"for afterwards is not known; {_REMEDY} succeeds"
            )


def _broad_handlers(
    program: Program, kinds: Sequence[Resource], wishes: Wishes
) -> Iterator[str]:
    """A sentence for each handler whose kinds may include unknown ones."""
    for handler in program.handlers:
        selector = handler.selector
        if selector is None or not selector.is_broad:
            continue
        if selector.everything and wishes.namespaces is None:
            continue  # that has a right of its own
        names = (
            ", ".join(each.label for each in _resources_of(handler, kinds)) or "none"
        )
        yield (
            f"{handler.label} is for all kinds that {str(selector)!r} means, and the "
            f"rights are for those that are known here ({names}); give the "
            "definitions of others with --crd"
        )


def _unseen_sentences(
    program: Program, found: Heard, kinds: Sequence[Resource], wishes: Wishes
) -> Iterator[str]:
    """A sentence for each thing that could not be seen."""
    yield from _uncalled_handlers(program, found)
    yield from _unknown_children(program, kinds)
    yield from _broad_handlers(program, kinds, wishes)
    yield from found.unmodelled
    if found.functions:
        names = ", ".join(each.partition(":")[2] for each in found.functions)
        yield (
            f"what functions outside ({names}) ask of the API server with clients of "
            "their own is not seen; add those rights by hand"
        )
    if found.left:
        yield (
            f"{found.left} schedules of faults were not tried, which may have asked "
            "for more; raise --budget"
        )
