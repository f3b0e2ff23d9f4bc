"""Properties of what is beside an object: other objects, and what pods refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fnop.interpreters.check.differences import Difference, differences
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Followed,
    Seen,
    Violation,
    told,
)
from fnop.interpreters.check.records import Phase, Write
from fnop.interpreters.check.references import missing_in
from fnop.interpreters.check.sequels import owned_in, trespasses
from fnop.interpreters.check.worlds import World, alias_of, objects_in, world_of

__all__ = ["apart", "refers"]


def apart(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Objects share nothing: what one has, or a stranger, is no affair of another."""
    if seen is not benign.seen:
        return
    sentences: list[str] = []
    for followed in benign.followed:
        found = [*_trespasses(benign, followed), *_changes(benign, followed)]
        sentences += [found[0], str(followed.sequel), *found[1:]] if found else []
    yield from told("apart", sentences)


def _trespasses(benign: Benign, followed: Followed) -> Iterator[str]:
    """The children of others that are gone or taken, and by which write."""
    end, trial = benign.seen.trial.ends[Phase.RESTARTED], followed.seen.trial
    if len(trial.refused) > len(benign.seen.trial.refused):
        return  # the cluster takes no other object like these
    for known, words in trespasses(
        followed.sequel, followed.rests, end, followed.waited
    ):
        where = "/".join((*known.resource, *known.key))
        sites = [each.site for each in trial.writes if each.path == where]
        by = f" by {sites[-1]}" if sites else ""
        yield (
            f"{known.alias} {words}{by}, and belongs to somebody else: the uid in its "
            "owner references tells whose it is"
        )


def _changes(benign: Benign, followed: Followed) -> Iterator[str]:
    """The changes of one object's children by another that comes and goes."""
    if followed.sequel.ends:
        return
    changes = _changed(benign.seen.world, followed, benign)
    if changes and followed.waited:  # some may come with time
        usual = world_of(followed.waited[-1], benign.seen.trial.scene.bare)
        others = {(e.alias, e.path) for e in _changed(usual, followed, benign)}
        changes = [each for each in changes if (each.alias, each.path) in others]
    for each in changes:
        if each.path and not f"{each.alias} {each.path}".startswith(
            benign.history or ("\0",)
        ):
            actions = " and ".join(f"`{e}`" for e in followed.sequel.actions[-2:])
            yield f"after {actions} {each}"


def _changed(usual: World, followed: Followed, benign: Benign) -> list[Difference]:
    """The differences of a sequel from a run without it, in the children of before."""
    end = benign.seen.trial.ends[Phase.RESTARTED]
    children = {each.alias for each in owned_in(end, followed.sequel.owners)}
    expected, found = (
        {alias: text for alias, text in world.items() if alias in children}
        for world in (usual, followed.seen.world)
    )
    return differences(expected, found, benign.volatile)


def refers(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Each pod that the operator makes, or describes, finds what it refers to."""
    if seen is not benign.seen:
        return
    trial = seen.trial
    end = trial.ends[Phase.RESTARTED]
    made = {w.body["metadata"].get("uid"): w.site for w in trial.writes if _makes(w)}
    found = [
        f"{alias_of(resource, each)} needs {need}, which is not there: make it beside "
        f"{site}, or let the script apply it"
        for resource, each in objects_in(end, trial.scene.base.cluster)
        if (site := made.get(each["metadata"]["uid"])) is not None
        if "deletionTimestamp" not in each["metadata"]
        for need in missing_in(end, each)
    ]
    yield from told("refers", found)


def _makes(write: Write) -> bool:
    """Whether a write is one that makes an object, which it tells."""
    named = isinstance(write.body, Mapping) and "metadata" in write.body
    return named and write.site.verb in ("create", "adopt", "apply")
