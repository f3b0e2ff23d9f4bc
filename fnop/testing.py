"""Testing operators: one decision, a story, a law.

- `World` is an operator and the world around it, which several tests share;
- `load` makes a module of an operator's file with any name, and `near` finds a file
  from any place of a test;
- `plan_of` calls one handler and shows its decision, `matches` evaluates its filters;
- `Simulation` is an operator with a cluster and virtual time; `On`, `Off`, `Slow` and
  `Stuck` are the paces of the cluster's controllers;
- `review` calls admission handlers for one write, and returns a `Decision`;
- `External` is a model of a system outside of the cluster, which answers `fnop.call`;
  `PutService`, `PostService` and `JobService` are three ready-made ones. `Recorded`
  returns the answers of a recording, and `models` reads the models of a file;
- `apply`, `edit`, `delete`, `wait` and `pace` are the actions of a user, as values: the
  scripts of `fnop check` are lists of them;
- `explore` tries every fault on an operator, `checks` makes pytest items of that.
  `crash` and `fault` are faults for a `Simulation`. `expect` is an author's property,
  about an object and a `Picture` of its world, with each `Request` and `Change`;
- `manifests` and `values_of_schema` make Hypothesis draw objects from a definition's
  schema; only they need Hypothesis (`pip install 'fnop[testing]'`).
"""

from typing import TYPE_CHECKING, Any

from fnop.adapters.common.loading import module_of_file as load, near as near
from fnop.adapters.testing.exploring import (
    Check as Check,
    Exploration as Exploration,
    checks as checks,
    crash as crash,
    create as create,
    explore as explore,
    fault as fault,
)
from fnop.adapters.testing.laws import (
    keep_data as keep_data,
    leave_no_orphans as leave_no_orphans,
    never_create_twice as never_create_twice,
    stabilise as stabilise,
)
from fnop.adapters.testing.models import models as models
from fnop.adapters.testing.planning import (
    Plan as Plan,
    matches as matches,
    plan_of as plan_of,
)
from fnop.adapters.testing.reviewing import review as review
from fnop.adapters.testing.simulating import Simulation as Simulation
from fnop.adapters.testing.world import World as World
from fnop.core.admission.decisions import Decision as Decision
from fnop.interpreters.check.state.expectations import expect as expect
from fnop.interpreters.check.state.pictures import (
    Change as Change,
    Picture as Picture,
    Request as Request,
)
from fnop.interpreters.cluster import (
    Off as Off,
    On as On,
    Slow as Slow,
    Stuck as Stuck,
)
from fnop.interpreters.simulation.actions import (
    apply as apply,
    delete as delete,
    edit as edit,
    log_line as log_line,
    outage as outage,
    pace as pace,
    upgrade as upgrade,
    wait as wait,
)
from fnop.interpreters.simulation.externals import (
    External as External,
    JobService as JobService,
    PostService as PostService,
    PutService as PutService,
)
from fnop.interpreters.simulation.recorded import Recorded as Recorded

if TYPE_CHECKING:
    from fnop.adapters.testing.strategies import (
        manifests as manifests,
        values_of_schema as values_of_schema,
    )

__all__ = [
    "Change",
    "Check",
    "Decision",
    "Exploration",
    "External",
    "JobService",
    "Off",
    "On",
    "Picture",
    "Plan",
    "PostService",
    "PutService",
    "Recorded",
    "Request",
    "Simulation",
    "Slow",
    "Stuck",
    "World",
    "apply",
    "checks",
    "crash",
    "create",
    "delete",
    "edit",
    "expect",
    "explore",
    "fault",
    "keep_data",
    "leave_no_orphans",
    "load",
    "log_line",
    "manifests",
    "matches",
    "models",
    "near",
    "never_create_twice",
    "outage",
    "pace",
    "plan_of",
    "review",
    "stabilise",
    "upgrade",
    "values_of_schema",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name not in ("manifests", "values_of_schema"):
        raise AttributeError(f"fnop.testing has no {name!r}")
    try:
        from fnop.adapters.testing import strategies
    except ModuleNotFoundError as problem:
        if problem.name != "hypothesis":
            raise
        text = f"fnop.testing.{name} draws with Hypothesis, which is not installed: "
        advice = "pip install 'fnop[testing]'"
        raise ModuleNotFoundError(text + advice, name=problem.name) from None
    return getattr(strategies, name)
