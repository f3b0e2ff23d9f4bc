"""The value that an author's tests share: `fnop.testing.World`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from fnop.adapters.testing.exploring import (
    Check,
    Exploration,
    checks_of,
    exploration_of,
)
from fnop.adapters.testing.reviewing import Operation, Write, decision_on
from fnop.adapters.testing.setup import Manifests, Setup
from fnop.adapters.testing.simulating import Simulation
from fnop.core.admission.decisions import Decision
from fnop.core.values.table import NOTHING
from fnop.interpreters.check.state.kinds import Fault
from fnop.interpreters.simulation.actions import Action

__all__ = ["World"]

# pytest shows the author's line, and skips the lines of this module.
__tracebackhide__ = True


@dataclass(frozen=True)
class World(Setup):
    """An operator and the world around it, for several tests.

    `operator` is a file or several, a loaded module, a `Registry` or handlers; None
    takes all handlers that have been declared without a registry. The world is:

    - `crds`, `objects`: manifests, or files or folders of them; a kind that handlers
      name and no manifest defines has the definition of its class, if there is one
    - `namespace`: the namespace of objects without one
    - `settings`: the operator's; with `leader_elect` it is one of several replicas, as
      with `fnop run --leader-elect`
    - `guard`: whether a handler that is not impure fails if it acts on the world
    - `calls`: models that answer in place of functions that `fnop.call` runs, and of
      impure handlers
    - `rivals`: other controllers, by kind, for `explore` and `checks`
    - `script`: a file as for `fnop check --script`, whose rivals, expectations, models,
      manifests and HISTORY count when there are faults; `checks` tries its SCRIPTS
    - `former`: the code that this operator replaces; it is an operator, too

    Files are read by each call. No call changes the world:

        WORLD = World("operator.py", crds="crd.yaml", objects="claim.yaml")

        def test_a_claim_gets_its_phase():
            sim = WORLD.simulate().settle()
            assert sim["claims/c"].status["phase"] == "Bound"

        @pytest.mark.parametrize("check", WORLD.checks())
        def test_every_fault(check):
            check()
    """

    def simulate(
        self,
        *,
        seed: str = "0",
        faults: Iterable[Fault] | None = None,
        restored: Manifests = (),
        start: datetime | None = None,
    ) -> Simulation:
        """Begin a simulation; for the arguments see `Simulation`."""
        # A script and former code count for faults alone.
        setup = self if faults is not None else replace(self, script=None, former=None)
        return Simulation.of(
            setup, seed=seed, faults=faults, restored=restored, start=start
        )

    def explore(
        self,
        *actions: Action,
        depth: int = 1,
        budget: int | None = None,
        special: bool = False,
    ) -> Exploration:
        """Try every single fault while a user does these `actions`; see `explore`."""
        return exploration_of(
            self, actions, depth=depth, budget=budget, special=special
        )

    def checks(
        self, *, budget: int | None = None, special: bool = False
    ) -> list[Check]:
        """Return a check for each script and sort of fault; see `checks`."""
        return checks_of(self, budget=budget, special=special)

    def review(
        self,
        old: Mapping[str, Any] | None = None,
        new: Mapping[str, Any] | None = None,
        *,
        operation: Operation | None = None,
        resource: str = "",
        subresource: str = "",
        user: str | Mapping[str, Any] = "kubernetes-admin",
        dry_run: bool = False,
        headers: Mapping[str, str] = NOTHING,
    ) -> Decision:
        """Call the operator's admission handlers for one write; see `review`."""
        write = Write(
            old, new, operation, resource, subresource, user, dry_run, headers
        )
        return decision_on(self, write)
