"""Faults in authors' tests: one found failure, or all faults of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fnop.adapters.check_report import Shown, as_lines
from fnop.adapters.laws import Law, names_of
from fnop.adapters.models import models_for
from fnop.core.handlers.program import Program
from fnop.core.handlers.settings import Settings
from fnop.interpreters.actions import Action, apply
from fnop.interpreters.check.campaign import Campaign, Options, Report
from fnop.interpreters.check.explore import Case
from fnop.interpreters.check.faults import BY_NAME, Fault, Place, Site

__all__ = [
    "Check",
    "Exploration",
    "checks",
    "crash",
    "create",
    "explore",
    "fault",
]

create = apply

_READS = frozenset(("get", "list"))


def fault(
    name: str,
    handler: str = "",
    *,
    nth: int = 1,
    event: str | None = None,
    after: int | None = None,
    run: str | None = None,
    detail: str = "",
    **asked: str,
) -> Fault:
    """A fault at one site, by its `name` in docs/checking.md, such as "F10:applied".

    The site is what a `handler` asks for ("" is the operator itself), its effect and
    target `asked` as in `create="configmaps/x-a"`, for the `nth` time; or an `event`,
    as in `event="ADDED xs/x"`; or the rest `after` so many actions of the user; or the
    whole `run`, of a controller for instance. `detail` chooses a child. Raises
    `ValueError` for names and sites that do not exist.

    >>> print(fault("F10:applied", "c", create="configmaps/x-a"))
    `create configmaps/x-a` (1st, handler c) is applied, and its reply is lost
    """
    if name not in BY_NAME:
        names = ", ".join(BY_NAME)
        raise ValueError(f"there is no fault {name!r}; choose from {names}")
    kind = BY_NAME[name]
    site = _site(handler, nth, event, after, run, asked)
    if site.place not in kind.places:
        places = " or ".join(sorted(each.value for each in kind.places))
        raise ValueError(f"{name} strikes a {places}, not a {site.place.value}")
    return Fault(kind, site, detail)


def _site(
    handler: str,
    nth: int,
    event: str | None,
    after: int | None,
    run: str | None,
    asked: Mapping[str, str],
) -> Site:
    if event is not None:
        type, _, target = event.partition(" ")
        return Site(Place.EVENT, "", type, target, nth)
    if after is not None:
        return Site(Place.REST, "", "", str(after))
    if run is not None:
        return Site(Place.RUN, "", "", run)
    if len(asked) != 1:
        raise ValueError(
            "name one effect, as in create='configmaps/x-a', or event=, after=, run="
        )
    ((verb, target),) = asked.items()
    place = Place.READ if verb in _READS else Place.WRITE
    return Site(Place.CALL if verb == "call" else place, handler, verb, target, nth)


class crash:
    """The operator crashes, before or after an effect of a handler.

    The `handler` is named by its id, "" is the operator itself; the effect as in
    `create="configmaps/x-a"`, for the `nth` time:

        crash.after("c", create="configmaps/x-a")
    """

    @staticmethod
    def before(handler: str = "", *, nth: int = 1, **asked: str) -> Fault:
        """Crash of the operator before the `nth` time that `handler` asks for it."""
        site = _site(handler, nth, None, None, None, asked)
        return Fault(BY_NAME["F1:before"], site)

    @staticmethod
    def after(handler: str = "", *, nth: int = 1, **asked: str) -> Fault:
        """Crash of the operator when the `nth` effect of the `handler` is applied."""
        site = _site(handler, nth, None, None, None, asked)
        return Fault(BY_NAME["F1:after"], site)

    @staticmethod
    def at_rest(after: int) -> Fault:
        """Crash of the operator at rest, after so many actions of the user."""
        return fault("F1:rest", after=after)


class Exploration:
    """The findings of all single faults of a script, as `explore` answers them.

    `case` is the operator with its world and the script, `report` has the failures.

        explore("operator.py", create(claim), crds="crd.yaml").must(stabilise)
    """

    def __init__(self, case: Case, report: Report) -> None:
        self.case, self.report = case, report

    def must(self, *properties: str | Law) -> Exploration:
        """Fail unless these properties hold; without any, all of them.

        Each is a name, or one of `stabilise`, `leave_no_orphans`, `never_create_twice`
        and `keep_data`. Raises `AssertionError` with the schedules that violate them,
        and `ValueError` for a name that is none.
        """
        names = names_of(properties)
        found = [
            Shown(self.case, each, number)
            for each, number in self.report.failures
            if each.violation.property in names and not each.special
        ]
        if found:
            raise AssertionError("\n".join(as_lines(self.report, found)))
        return self


def checks(
    operator: Any,
    *,
    crds: Any = (),
    objects: Any = (),
    calls: Mapping[Any, Callable[..., Any]] | None = None,
    settings: Settings | None = None,
) -> list[Check]:
    """Parameters for pytest: one check for each script and sort of fault.

    `operator`, `crds`, `objects`, `calls` and `settings` are those of `Simulation`; the
    scripts are those of `fnop check`. The items can be spread by pytest-xdist:

        @pytest.mark.parametrize("check", checks("operator.py", crds="crd.yaml"))
        def test_operator(check):
            check()
    """
    from fnop.adapters.checking import cases_of, subjects_of
    from fnop.adapters.simulating import handlers_of, manifests_in

    program = Program(handlers_of(operator), settings or Settings())
    manifests = [*manifests_in(crds), *manifests_in(objects)]
    cases = cases_of(program, subjects_of(program, manifests), calls=calls)
    codes = ["", *dict.fromkeys(each.code for each in BY_NAME.values())]
    return [Check(case, code) for case in cases for code in codes]


class Check:
    """One script with one sort of fault, an item for pytest: call it to check it.

    `checks` makes them. `case` is the operator with its world and the script, `code`
    the sort of fault, such as "F10"; "" is the benign run.

        for check in checks("operator.py", crds="crd.yaml"):
            check()
    """

    def __init__(self, case: Case, code: str) -> None:
        self.case, self.code = case, code
        # pytest names its items by this.
        self.__name__ = f"{case.name}-{code or 'benign'}".replace(" ", "-")

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self) -> None:
        """Try its schedules. Raises `AssertionError` where a property is violated."""
        campaign = Campaign([self.case])
        tasks = [
            each
            for each in campaign.tasks()
            if (each.schedule[0].kind.code if each.schedule else "") == self.code
        ]
        report = campaign.report(campaign.run(tasks), tasks)
        Exploration(self.case, report).must()


def explore(
    operator: Any,
    *script: Action,
    crds: Any = (),
    objects: Any = (),
    calls: Mapping[Any, Callable[..., Any]] | None = None,
    rivals: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    depth: int = 1,
    budget: int | None = None,
    namespace: str = "default",
) -> Exploration:
    """Try every single fault on an operator while a user follows a script.

    `operator`, `crds`, `objects`, `calls`, `settings` and `namespace` are those of
    `Simulation`; the `script` is a list of actions (`create`, `edit`, `delete`, `wait`,
    `pace`). `rivals` are other controllers, by kind. With `depth` 2 pairs of faults are
    tried, too; `budget` is the largest number of schedules.

        @given(manifests("crd.yaml"))
        def test_converges(claim):
            explore("operator.py", create(claim), crds="crd.yaml").must(stabilise)
    """
    from fnop.adapters.simulating import handlers_of, manifests_in

    program = Program(handlers_of(operator), settings or Settings())
    case = Case(
        program,
        manifests_in(crds),
        script,
        manifests_in(objects),
        models_for(calls),
        rivals or {},
        namespace=namespace,
    )
    campaign = Campaign([case], Options(depth=depth, budget=budget))
    tasks = campaign.tasks()
    return Exploration(case, campaign.report(campaign.run(tasks), tasks))
