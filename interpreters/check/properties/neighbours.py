"""Properties of an object's surroundings: other objects, and the references of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.check.properties.belongings import (
    taken_from_living,
    taken_from_users,
)
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Followed,
    Property,
    Scope,
    Seen,
    Violation,
    told,
)
from fnop.interpreters.check.properties.mixing import mixed_selectors
from fnop.interpreters.check.properties.references import (
    labels_of_pods,
    missing_in,
    unfit_selector,
)
from fnop.interpreters.check.scripts.follow_ups import BYSTANDER, owned_in, trespasses
from fnop.interpreters.check.state.kinds import Site
from fnop.interpreters.check.state.records import Phase, Write
from fnop.interpreters.check.state.worlds import (
    World,
    objects_in,
    world_of,
)
from fnop.interpreters.check.trials.differences import Difference, differences, leaves
from fnop.interpreters.simulation.actions import Apply
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["PROPERTIES", "apart", "refers"]


def apart(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Objects share nothing: things of one, or a stranger, never concern another."""
    if seen is not benign.seen:
        return
    sentences = [*taken_from_users(seen)]
    for followed in benign.followed:
        found = [*_trespasses(benign, followed), *_changes(benign, followed)]
        if not followed.follow_up.ends:
            found += [*taken_from_living(followed), *_mixed_selectors(followed)]
            found += _gone_outside(benign, followed)
        sentences += [found[0], str(followed.follow_up), *found[1:]] if found else []
    yield from told("apart", sentences)


_NOBODYS = (
    ", and the operator has not made it: it has no label and no owner; let the handler "
    "name what it deletes, or list by labels that it gives to its objects alone"
)


def _trespasses(benign: Benign, followed: Followed) -> Iterator[str]:
    """The children of others that are deleted or taken over, and by which write."""
    end, trial = (
        benign.seen.trial.journal.ends[Phase.RESTARTED].cluster,
        followed.seen.trial,
    )
    if len(trial.journal.refused) > len(benign.seen.trial.journal.refused):
        return  # the cluster takes no other object like these
    for known, words in trespasses(
        followed.follow_up, followed.rests, end, followed.waited
    ):
        where = "/".join((*known.resource, *known.key))
        sites = [each.site for each in trial.journal.writes if each.path == where]
        by = f" by {sites[-1]}" if sites else ""
        if known.key[1] == BYSTANDER:
            if sites:
                yield f"{known.alias} {words}{by}{_NOBODYS}"
            continue
        yield (
            f"{known.alias} {words}{by}, and belongs to somebody else: the uid in its "
            "owner references tells whose it is"
        )


def _gone_outside(benign: Benign, followed: Followed) -> Iterator[str]:
    """The things outside that are removed together with another object of the kind."""
    trial = followed.seen.trial
    if benign.background or trial.is_endless:
        return  # timers may take some away by then
    systems = (each for each in benign.seen.healed if "/" not in each)
    for alias in sorted(systems):
        before, after = (
            orjson.loads(each.healed[alias])[""]
            for each in (benign.seen, followed.seen)
        )
        if isinstance(before, dict) and isinstance(after, dict):
            gone = [f"{alias} {key}" for key in before if key not in after]
        elif isinstance(before, list) and isinstance(after, list):
            was, now = (Counter(map(orjson.dumps, each)) for each in (before, after))
            gone = [f"one of {alias}"] if was - now else []
        else:
            continue
        for each in gone[:1]:
            yield (
                f"{each} is gone after `{followed.follow_up.actions[-1]}`, and was "
                "made for another object; let its name tell whose it is, with "
                "the namespace"
            )


def _mixed_selectors(followed: Followed) -> Iterator[str]:
    """The selectors of the last object that match its twin's pods, too."""
    actions, rests = followed.follow_up.actions, followed.rests
    twin = actions[-2]
    if not isinstance(twin, Apply) or len(rests) < len(actions):
        return
    both, meta = rests[len(actions) - 1], twin.manifest["metadata"]
    place = meta.get("namespace") or followed.seen.trial.scene.namespace
    resource = catalogue_of(followed.seen.trial.run).of_manifest(twin.manifest)
    shelf = resource and both.shelves.get((resource.group, resource.plural))
    found = shelf.get((place, meta["name"])) if shelf else None
    if found is not None:
        spec = twin.manifest.get("spec")
        chosen = frozenset(str(value) for _, value in leaves("", spec))
        uid, last = found["metadata"]["uid"], followed.follow_up.owners[-1]
        yield from mixed_selectors(both, last, uid, chosen)


def _changes(benign: Benign, followed: Followed) -> Iterator[str]:
    """The changes to one object's children by another that comes and goes."""
    if followed.follow_up.ends:
        return
    changes = _changed_children(benign.seen.world, followed, benign)
    if changes and followed.waited:  # some may come with time
        trial = benign.seen.trial
        end, base = followed.waited[-1], trial.scene.bare
        usual = world_of(end, base, None, trial.drawn, trial.storage)
        others = {(e.alias, e.path) for e in _changed_children(usual, followed, benign)}
        changes = [each for each in changes if (each.alias, each.path) in others]
    for each in changes:
        if each.path and not f"{each.alias} {each.path}".startswith(
            benign.history or ("\0",)
        ):
            actions = " and ".join(f"`{e}`" for e in followed.follow_up.actions[-2:])
            yield f"after {actions} {each}"


def _changed_children(
    usual: World, followed: Followed, benign: Benign
) -> list[Difference]:
    """The differences of a follow-up from a run without it, in the former children."""
    end = benign.seen.trial.journal.ends[Phase.RESTARTED].cluster
    owned = owned_in(end, followed.follow_up.owners, benign.seen.trial.drawn)
    children = {each.alias for each in owned}
    expected, found = (
        {alias: text for alias, text in world.items() if alias in children}
        for world in (usual, followed.seen.world)
    )
    return differences(expected, found, benign.volatile)


def refers(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The operator's objects refer to existing things: pods do, and Services."""
    if seen is not benign.seen:
        return
    made = [*_made_objects(seen)]
    found = [
        f"{each.alias} needs {need}, which is not there: make it beside {each.site}, "
        "or let the script apply it"
        for each in made
        for need in missing_in(
            seen.trial.journal.ends[Phase.RESTARTED].cluster, each.found
        )
    ]
    found += [
        f"{each.alias} of {each.site} selects {_labels_in_words(selector)}, and pods "
        "of the same owner are labelled otherwise: "
        f"{'; '.join(map(_labels_in_words, labels))}"
        for each in made
        if each.found["kind"] in ("Service", "PodDisruptionBudget")
        if (labels := [*_labels_beside(each, made)])
        if (selector := unfit_selector(each.found, labels))
    ]
    yield from told("refers", found)


class _Made(Struct, frozen=True):
    """An object that the operator has made, by the write at `site`, at the end."""

    alias: str
    found: Mapping[str, Any]
    site: Site


def _made_objects(seen: Seen) -> Iterator[_Made]:
    trial = seen.trial
    sites = {
        w.body["metadata"].get("uid"): w.site
        for w in trial.journal.writes
        if _is_creation(w)
    }
    end = trial.journal.ends[Phase.RESTARTED].cluster
    for resource, each in objects_in(end, trial.scene.base.cluster):
        site = sites.get(each["metadata"]["uid"])
        if site is not None and "deletionTimestamp" not in each["metadata"]:
            yield _Made(seen.alias_of(resource, each), each, site)


def _labels_beside(one: _Made, made: Iterable[_Made]) -> Iterator[Mapping[str, str]]:
    """The labels of the pods that the same owner has in the namespace."""
    for each in made:
        if _place_of(each) == _place_of(one) and _owners_of(each) & _owners_of(one):
            yield from labels_of_pods(each.found)


def _place_of(one: _Made) -> str:
    return one.found["metadata"].get("namespace") or ""


def _owners_of(one: _Made) -> set[str]:
    return {e["uid"] for e in one.found["metadata"].get("ownerReferences") or ()}


def _labels_in_words(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _is_creation(write: Write) -> bool:
    """Whether a write creates an object, which the answer shows."""
    named = isinstance(write.body, Mapping) and "metadata" in write.body
    return named and write.site.verb in ("create", "adopt", "apply")


PROPERTIES = (
    Property(
        apart,
        "objects share nothing: another one changes nothing of what one has",
        210,
        Scope.FAULTLESS,
    ),
    Property(
        refers,
        "what the operator makes refers to what is there",
        220,
        Scope.FAULTLESS,
    ),
)
