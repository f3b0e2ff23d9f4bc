"""The rivals of a scene: other controllers, which answer changes with patches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.interpreters.check.state.expectations import error_in
from fnop.interpreters.check.state.records import Rival
from fnop.interpreters.check.state.scripts import ScriptProblem
from fnop.interpreters.check.state.sites import object_path
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["Rivals"]


class Rivals:
    """The rivals of one trial, and the versions of objects that each has seen."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Any], str] = {}
        # The kinds of rivals, as a catalogue has them.
        self._kinds: tuple[Any, Mapping[str, tuple[str, str]]] = (None, {})

    def fork(self) -> Rivals:
        """Copy the rivals: from then on they act apart."""
        fork = Rivals()
        fork._seen, fork._kinds = self._seen.copy(), self._kinds
        return fork

    def act(self, state: TrialState) -> bool:
        """Let one rival answer what has changed; whether one did.

        Raises `ScriptProblem` for one that fails, or answers anything but a patch.
        """
        for kind, rival in state.scene.rivals.items():
            shelf = state.run.cluster.shelves.get(self._kind_of(kind, state))
            for key, found in sorted(shelf.items()) if shelf else ():
                version = found["metadata"]["resourceVersion"]
                if self._seen.get((kind, key)) == version:
                    continue
                self._seen[kind, key] = version
                patch = patch_of(kind, rival, found)
                path = object_path(state.run, found, key[0])
                if patch and path is not None:
                    query = (("fieldManager", "rival"),)
                    request = ApiRequest("PATCH", path, query, patch, MERGE_PATCH)
                    state.request("rival", request)
                    return True
        return False

    def _kind_of(self, kind: str, state: TrialState) -> tuple[str, str]:
        """The group and the plural of a rival's kind, if it is served by now."""
        catalogue = catalogue_of(state.run)
        if self._kinds[0] is not catalogue:
            found = {each: catalogue.lookup(each) for each in state.scene.rivals}
            kinds = {name: (e.group, e.plural) for name, e in found.items() if e}
            self._kinds = catalogue, kinds
        return self._kinds[1].get(kind, ("", ""))


def patch_of(
    kind: str, rival: Rival, found: dict[str, Any]
) -> Mapping[str, Any] | None:
    """The answer of a rival to an object. Raises `ScriptProblem` for anything else."""
    try:
        patch = rival(found)
    except Exception as problem:
        name = found["metadata"].get("name")
        raise ScriptProblem(
            f"RIVALS[{kind!r}] raises {error_in(rival, problem)} for {kind}/{name}; "
            "let it answer None where it has nothing to change"
        ) from problem
    if patch is None or isinstance(patch, Mapping):
        return patch
    raise ScriptProblem(
        f"RIVALS[{kind!r}] answers {patch!r}; let it answer a merge patch, which is a "
        "dict, or None"
    )
