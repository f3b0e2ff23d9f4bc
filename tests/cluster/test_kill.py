"""Killed at any moment and started again, an operator reaches the same end."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, operating
from tests.example_scenarios import MARKER
from tests.patience import SLOWNESS, eventually
from tests.simulations import ROOT, manifests_of

EXAMPLE = ROOT / "examples" / "03-exceptions" / "example.py"
# `make faults` kills it more often.
KILLS = 50 if os.environ.get("FNOP_FAULTS") == "all" else 4
# A life as long as it takes to begin, and to handle an object.
WINDOW_SECONDS = 2.5 * SLOWNESS
SEED = 20260101

# What differs between two objects that were treated alike.
_INDIVIDUAL = frozenset(
    ("creationTimestamp", "managedFields", "name", "resourceVersion", "uid")
)


def create(user: User, name: str) -> None:
    manifest = manifests_of("03-exceptions")[-1]
    metadata = {**manifest["metadata"], "name": name}
    user.create({**manifest, "metadata": metadata})


def state(found: dict[str, Any]) -> dict[str, Any]:
    """The operator's stored state on the object, without its uid."""
    text = (found.get("status") or {}).get(MARKER)
    stored: dict[str, Any] = {} if text is None else json.loads(text)
    stored.pop("uid", None)
    return stored


def outcome(found: dict[str, Any]) -> dict[str, Any]:
    """The object without what is its own: identity, versions and times."""
    metadata = {
        key: value for key, value in found["metadata"].items() if key not in _INDIVIDUAL
    }
    status = {**(found.get("status") or {}), MARKER: state(found)}
    if isinstance(status.get("works_at_last"), dict):
        status["works_at_last"] = sorted(status["works_at_last"])
    status["conditions"] = [
        {key: each[key] for key in ("type", "status", "reason")}
        for each in status.get("conditions", ())
    ]
    return {**found, "metadata": metadata, "status": status}


def is_done(found: dict[str, Any]) -> bool:
    stored = state(found)
    return "seen" in stored and stored.keys().isdisjoint(("creating", "progress"))


def test_killed_anywhere_it_ends_in_the_same_object(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """Each life begins with one object more and the unfinished ones of lives before."""
    user, moments = User(apiserver, namespace), random.Random(SEED)
    user.define()
    with operating(EXAMPLE, apiserver, namespace, tmp_path) as operator:
        create(user, "undisturbed")
        operator.start()
        eventually(lambda: all(map(is_done, user.objects("fnopexamples"))))
        expected = outcome(user.objects("fnopexamples")[0])
        assert operator.stop() == 0
        for life in range(KILLS):
            create(user, f"example-{life:02}")
            operator.log.write_text("")
            operator.start()
            eventually(lambda: operator.lines)
            time.sleep(moments.uniform(0, WINDOW_SECONDS))  # the moment itself
            assert operator.is_running, operator.lines
            operator.kill()
        operator.log.write_text("")
        operator.start()
        # If everything was done before, the operator might get the signal before it can
        # handle it.
        eventually(lambda: any("serving " in each for each in operator.lines))
        eventually(lambda: all(map(is_done, user.objects("fnopexamples"))))
        assert operator.stop() == 0
    found = user.objects("fnopexamples")
    assert len(found) == 1 + KILLS
    assert [each for each in map(outcome, found) if each != expected] == []
