"""Faults in authors' tests: one fault that was found, or all faults of an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from warnings import warn

from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.adapters.reports.check_report import Shown, as_lines
from fnop.adapters.testing.cases import (
    CheckProblem,
    actions_in,
    cases_of,
    denial_notes,
    given_in,
    has_scripts,
    heeded_in,
    manifests_of,
    sound,
    subjects_of,
)
from fnop.adapters.testing.laws import Law, names_of
from fnop.adapters.testing.setup import Manifests, Operator, Setup, manifests_in
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.campaign import (
    Campaign,
    Options,
    Report,
    Task,
    heeded_together,
)
from fnop.interpreters.check.campaign.explore import Case, is_special
from fnop.interpreters.check.campaign.walks import UNFOLLOWED
from fnop.interpreters.check.state.kinds import Fault, Place, Site
from fnop.interpreters.check.state.records import Rival
from fnop.interpreters.check.state.scripts import ScriptProblem
from fnop.interpreters.check.trials.catalogue import BY_NAME
from fnop.interpreters.simulation.actions import Action, ActionRefused, apply
from fnop.interpreters.simulation.scenario import ApplyProblem

__all__ = [
    "Check",
    "Exploration",
    "checks",
    "checks_of",
    "crash",
    "create",
    "exploration_of",
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
    log: str | None = None,
    after: int | None = None,
    run: str | None = None,
    detail: str = "",
    **asked: str,
) -> Fault:
    """A fault at one site, by its `name`, such as "F10:applied".

    docs/reference/faults.md lists the names.

    The site is one of:

    - what a `handler` asks for ("" is the operator itself), for the `nth` time; `asked`
      is the effect and its target, as in `create="configmaps/x-a"`
    - an `event`, as in `event="ADDED xs/x"`
    - lines of a `log`, as in `log="default/web-0/app"`
    - the rest `after` this number of user actions
    - the whole `run`, for example of a controller

    `detail` chooses a child. Raises `ValueError` for names and sites that do not exist.

    >>> print(fault("F10:applied", "c", create="configmaps/x-a"))
    `create configmaps/x-a` (1st, handler c) is applied, and its reply is lost
    """
    if name not in BY_NAME:
        names = ", ".join(BY_NAME)
        raise ValueError(f"there is no fault {name!r}; choose from {names}")
    kind = BY_NAME[name]
    site = _site(handler, nth, event, log, after, run, asked)
    if site.place not in kind.places:
        places = " or ".join(sorted(each.value for each in kind.places))
        raise ValueError(f"{name} strikes a {places}, not a {site.place.value}")
    return Fault(kind, site, detail)


def _site(
    handler: str,
    nth: int,
    event: str | None,
    log: str | None,
    after: int | None,
    run: str | None,
    asked: Mapping[str, str],
) -> Site:
    if event is not None:
        type, _, target = event.partition(" ")
        return Site(Place.EVENT, "", type, target, nth)
    if log is not None:
        return Site(Place.LOG, "", "lines", log, nth)
    if after is not None:
        return Site(Place.REST, "", "", str(after))
    if run is not None:
        return Site(Place.RUN, "", "", run)
    if len(asked) != 1:
        raise ValueError(
            "name one effect, as in create='configmaps/x-a', or event=, log=, "
            "after= or run="
        )
    ((verb, target),) = asked.items()
    place = Place.READ if verb in _READS else Place.WRITE
    return Site(Place.CALL if verb == "call" else place, handler, verb, target, nth)


class crash:
    """The operator crashes, before or after an effect of a handler.

    `handler` is the id of a handler, or "" for the operator itself. The effect is given
    as in `create="configmaps/x-a"`, for the `nth` time:

        crash.after("c", create="configmaps/x-a")
    """

    @staticmethod
    def before(handler: str = "", *, nth: int = 1, **asked: str) -> Fault:
        """Crash the operator before the `handler` asks for it the `nth` time."""
        site = _site(handler, nth, None, None, None, None, asked)
        return Fault(BY_NAME["F1:before"], site)

    @staticmethod
    def after(handler: str = "", *, nth: int = 1, **asked: str) -> Fault:
        """Crash the operator after the `nth` effect of the `handler` is applied."""
        site = _site(handler, nth, None, None, None, None, asked)
        return Fault(BY_NAME["F1:after"], site)

    @staticmethod
    def at_rest(after: int) -> Fault:
        """Crash the operator at rest, after this number of user actions."""
        return fault("F1:rest", after=after)


class Exploration:
    """The findings of all single faults of a script, as `explore` returns them.

    `case` is the operator with its world and the script, `report` has the failures.
    Special faults (docs/reference/faults.md) fail only if `special` asks for them. An
    exploration that `is_part` of several need not have a result for each property.

        explore("operator.py", create(claim), crds="crd.yaml").must(stabilise)
    """

    def __init__(
        self,
        case: Case,
        report: Report,
        *,
        special: bool = False,
        is_part: bool = False,
    ) -> None:
        self.case, self.report = case, report
        self._special, self._is_part = special, is_part

    def must(self, *properties: str | Law) -> Exploration:
        """Fail unless these properties hold; without any, all of them.

        Each is a name, or one of `stabilise`, `leave_no_orphans`, `never_create_twice`
        and `keep_data`. Raises `AssertionError` with the schedules that violate them,
        or if nothing is known about a property. Raises `ValueError` for an unknown
        name.
        """
        names = names_of(properties)
        found = [
            Shown(self.case, each, number)
            for each, number in self.report.failures
            if each.violation.property in names and (self._special or not each.special)
        ]
        if found:
            raise AssertionError("\n".join(as_lines(self.report, found)))
        report = self.report
        # Report a handler that this script never calls only if the user names it.
        known = names if properties else names - {*report.unshown}
        unsure = [
            each for each in report.properties if each in known & {*report.unsure}
        ]
        if unsure and not self._is_part:
            more = f" and of {len(unsure) - 1} more" if unsure[1:] else ""
            raise AssertionError(
                f"nothing is known of {unsure[0]}{more}: {report.unsure[unsure[0]]}"
            )
        if report.tried <= report.unknown:
            broken = f" ({report.broken[0]})" if report.broken else ""
            raise AssertionError(
                f"nothing is known: no fault occurred in {report.tried} schedules"
                f"{broken}"
            )
        return self


def checks(
    operator: Operator,
    *,
    crds: Manifests = (),
    objects: Manifests = (),
    calls: Mapping[Any, Callable[..., Any]] | None = None,
    rivals: Mapping[str, Rival] | None = None,
    settings: Settings | None = None,
    leader_elect: bool = False,
    script: str | Path | None = None,
    former: Operator = None,
    budget: int | None = None,
    special: bool = False,
) -> list[Check]:
    """Return parameters for pytest: one check for each script and sort of fault.

    The arguments up to `former` are those of a `World`, which describes them; SCRIPTS
    of the `script` replace those that `fnop check` generates. `budget` is the largest
    number of schedules of each script.

    A sort of fault without a schedule in a script has no check. The special sorts have
    one, which fails only if `special`. The runs without faults are done at once. Raises
    `AssertionError` for an operator or script that cannot be checked. Warns of parts
    that the scripts do not reach, for example if the operator denies their objects.
    pytest-xdist can distribute the items:

        @pytest.mark.parametrize("check", checks("operator.py", crds="crd.yaml"))
        def test_operator(check):
            check()
    """
    setup = Setup(
        operator,
        crds=crds,
        objects=objects,
        settings=settings,
        leader_elect=leader_elect,
        calls=calls,
        rivals=rivals,
        script=script,
        former=former,
    )
    return checks_of(setup, budget=budget, special=special)


def checks_of(
    setup: Setup, *, budget: int | None = None, special: bool = False
) -> list[Check]:
    """The checks of a `setup`, such as a `World`; see `checks`."""
    program = setup.program()
    notes: list[str] = []
    with _fail_with_sentence():
        cases = _scripted_cases(setup, program, notes.append)
        campaigns = [Campaign([each]) for each in cases]
        explorers = [each for one in campaigns for each in one.explorers]
        heeded_together(explorers)
        # Together: a note is about what no script shows.
        kept, more = sound(explorers)
        found = [
            check
            for campaign, explorer in zip(campaigns, explorers, strict=True)
            if explorer in kept
            for check in _check_each_sort(campaign, budget, special)
        ]
    _warn_of((*notes, *more))
    return found


def _warn_of(notes: Iterable[str]) -> None:
    """Warn with the notes that `fnop check` prints, at the line of the author's test.

    Without them, a test that checks little or nothing would just pass. An operator that
    ignores changes needs no warning.
    """
    for note in notes:
        if note != UNFOLLOWED:
            # The author's line calls a function that calls the caller of this one.
            warn(note, stacklevel=4)


def _scripted_cases(
    setup: Setup, program: Program, tell: Callable[[str], object]
) -> list[Case]:
    """A case for each script of the author, or for each generated one."""
    module = setup.script_module()
    manifests = [*manifests_in(setup.crds), *manifests_in(setup.objects)]
    stored: list[dict[str, Any]] = []
    if module is not None:
        manifests += manifests_of(module)
        stored = given_in(module)
    subjects = subjects_of(
        program,
        manifests,
        stored=stored,
        scripted=has_scripts(module),
        operator=setup.modules(),
    )
    cases = cases_of(
        program,
        subjects,
        calls=setup.models(module),
        module=module,
        namespace=setup.namespace,
        tell=tell,
    )
    return setup.add_others(cases)


def _check_each_sort(
    campaign: Campaign, budget: int | None, special: bool
) -> Iterator[Check]:
    """Yield a check for each sort of fault among the schedules of one case."""
    sorts: dict[str, list[Task]] = {}
    for task in campaign.tasks()[:budget]:
        if special or not is_special(task.schedule):
            code = task.schedule[0].kind.code if task.schedule else ""
            sorts.setdefault(code, []).append(task)
    codes = ["", *dict.fromkeys(each.code for each in BY_NAME.values())]
    for code in codes:
        if code in sorts:
            yield Check(campaign, code, sorts[code])


class Check:
    """One script with one sort of fault, an item for pytest: call it to check it.

    `checks` makes them from the `tasks` of a one-case `campaign`. `case` is the
    operator with its world and the script, `code` the sort of fault, such as "F10"; ""
    is the benign run.

        for check in checks("operator.py", crds="crd.yaml"):
            check()
    """

    def __init__(self, campaign: Campaign, code: str, tasks: Sequence[Task]) -> None:
        (explorer,) = campaign.explorers
        self.case, self.code = explorer.case, code
        self._campaign, self.tasks = campaign, tasks
        # pytest names its items by this attribute.
        self.__name__ = f"{self.case.name}-{code or 'benign'}".replace(" ", "-")

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self) -> None:
        """Try its schedules. Raises `AssertionError` if a property is violated."""
        with _fail_with_sentence():
            results = self._campaign.run(self.tasks)
        report = self._campaign.report(results, self.tasks)
        Exploration(self.case, report, special=True, is_part=True).must()


def explore(
    operator: Operator,
    *actions: Action,
    crds: Manifests = (),
    objects: Manifests = (),
    calls: Mapping[Any, Callable[..., Any]] | None = None,
    rivals: Mapping[str, Rival] | None = None,
    settings: Settings | None = None,
    leader_elect: bool = False,
    script: str | Path | None = None,
    former: Operator = None,
    depth: int = 1,
    budget: int | None = None,
    special: bool = False,
    namespace: str = "default",
) -> Exploration:
    """Try every single fault on an operator while a user does these `actions`.

    `actions` are made by `create`, `edit`, `delete`, `wait`, `pace`, `upgrade`,
    `outage` and `log_line`. The arguments up to `former`, and `namespace`, are those of
    a `World`, which describes them; SCRIPTS of the `script` do not count.

    With `depth` 2 fnop also tries pairs of faults. `budget` is the largest number of
    schedules. Special faults fail only if `special`. Raises `AssertionError` if the
    operator cannot be checked, for example if the cluster refuses an action without any
    fault. Raises `ValueError` without actions. Warns if the operator denies an action.

        @given(manifests("crd.yaml"))
        def test_converges(claim):
            explore("operator.py", create(claim), crds="crd.yaml").must(stabilise)
    """
    setup = Setup(
        operator,
        crds=crds,
        objects=objects,
        namespace=namespace,
        settings=settings,
        leader_elect=leader_elect,
        calls=calls,
        rivals=rivals,
        script=script,
        former=former,
    )
    return exploration_of(setup, actions, depth=depth, budget=budget, special=special)


def exploration_of(
    setup: Setup,
    actions: Sequence[Action],
    *,
    depth: int = 1,
    budget: int | None = None,
    special: bool = False,
) -> Exploration:
    """The exploration of a `setup`, such as a `World`; see `explore`."""
    if not actions:
        raise ValueError(
            "there is no action to explore: name what the user does, as in "
            "explore('operator.py', create(claim))"
        )
    with _fail_with_sentence():
        case = _explored_case(setup, actions)
        campaign = Campaign([case], Options(depth=depth, budget=budget))
        sound(campaign.explorers)
        tasks = campaign.tasks()
        results = campaign.run(tasks)
    _warn_of(denial_notes(campaign.explorers))
    return Exploration(case, campaign.report(results, tasks), special=special)


def _explored_case(setup: Setup, actions: Sequence[Action]) -> Case:
    """The case in which the user does these actions."""
    module = setup.script_module()
    given = [*manifests_in(setup.objects)]
    definitions = [*manifests_in(setup.crds)]
    for each in () if module is None else manifests_of(module):
        is_definition = each["kind"] == "CustomResourceDefinition"
        (definitions if is_definition else given).append(each)
    program = setup.program()
    definitions += setup.class_definitions(program, (*definitions, *given))
    case = Case(
        program,
        definitions,
        actions_in(actions, "the script"),
        given,
        setup.models(module),
        namespace=setup.namespace,
    )
    (case,) = setup.add_others([case._replace(**heeded_in(module))])
    return case


@contextmanager
def _fail_with_sentence() -> Iterator[None]:
    """Fail the test with the sentence alone if something cannot be checked."""
    try:
        yield
    except (
        *(ActionRefused, ApplyProblem, CheckProblem),
        *(DefinitionProblem, ScriptProblem),
    ) as problem:
        raise AssertionError(str(problem)) from None
