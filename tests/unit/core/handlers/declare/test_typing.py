"""Types of handlers and options: mypy accepts correct uses, and the types are true.

The snippets are checked by mypy in one run, as strictly as the project itself.  A line
that mypy must refuse ends with `# E:` and a part of the message.
"""

from __future__ import annotations

import doctest
import inspect
import re
import types
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import fnop
import fnop.core.handlers.declare.options
from fnop.adapters.kubernetes.login_and_probes import Surroundings, perform
from fnop.core.handlers.declare.decorators import On, OnCluster, subhandler
from fnop.core.handlers.declare.options import SubhandlerOptions, options_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.roles import (
    CLUSTER,
    LOGS,
    OUTSIDE,
    ROLES,
    Role,
    kwargs_of,
)
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.arguments import PROVIDERS
from fnop.testing import Simulation
from tests.documentation import ALONE, blocks, title
from tests.simulations import DEFINITION, ROOT, Scenario, example

KIND = "fnopexamples"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}

PROLOGUE = """\
from collections.abc import Generator, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import fnop

"""

ACCEPTED = {
    "a world of several tests": """
        from pathlib import Path

        from fnop.testing import Check, Simulation, World, create

        WORLD = World(
            [Path("a.py"), Path("b.py")],
            crds="crd.yaml",
            objects={"kind": "Claim"},
            settings=fnop.Settings(),
            calls={"charge": len},
            rivals={"pods": lambda body: {"metadata": {"labels": body}}},
        )
        simulation: Simulation = WORLD.simulate(seed="1").settle()
        checks: list[Check] = WORLD.checks(budget=5)
        allowed: bool = WORLD.review(None, {"kind": "Claim"}).allowed
        WORLD.explore(create({"kind": "Claim"}), depth=2).must("settles")
    """,
    "untyped, as in the documentation": """
        # mypy: allow-untyped-defs
        @fnop.on.create("pods", retries=3)
        def f(spec, name, **_):
            return {"a": name}
    """,
    "all that a change has": """
        @fnop.on.create("pods")
        def f(
            reason: fnop.Reason, old: int | None, new: int | None, diff: fnop.Diff,
            body: fnop.Body, spec: fnop.Spec, status: fnop.Status, meta: fnop.Meta,
            labels: fnop.Labels, annotations: fnop.Annotations, name: str, uid: str,
            namespace: str | None, owner: fnop.Target | None, resource: fnop.Resource,
            patch: fnop.Patch, logger: fnop.Logger, memo: fnop.Memo, now: datetime,
            param: int, retry: int, runtime: timedelta, started: datetime, **_: Any,
        ) -> None:
            logger.info("%s %s", name, [item.field for item in diff])
            patch.status["labels"] = dict(labels)
    """,
    "a namespace, as the kind has one or none": """
        @fnop.on.create("pods")
        def a(namespace: str, **_: Any) -> None: ...

        @fnop.reconcile("namespaces")
        def b(namespace: None, **_: Any) -> fnop.Desired:
            return fnop.desired([])

        @fnop.index(fnop.EVERYTHING)
        def c(namespace: str | None, **_: Any) -> str | None:
            return namespace
    """,
    "a class in the place of a kind's name": """
        from dataclasses import dataclass
        from typing import Annotated, TypedDict

        @fnop.definition("as.v1.example.com", columns=[fnop.column("A", ".spec.a")])
        @dataclass(frozen=True)
        class A:
            spec: Annotated[fnop.IntOrString, fnop.schema(pattern="^a")]
            memory: fnop.Quantity = "1Gi"

        @fnop.definition("bs.v1.example.com")
        class B(TypedDict):
            spec: A

        @fnop.on.create(A, owner=B)
        def f(**_: Any) -> None:
            A(spec=1, memory=5)
            B(spec=A("a"))
    """,
    "an object that is there has a name": """
        @fnop.on.create("pods")
        def f(body: fnop.Body, meta: fnop.Meta, **_: Any) -> list[fnop.Effect]:
            names = [body.name, body.metadata.name, meta.name]
            uids = [body.uid, body.meta.uid, meta.uid]
            return [fnop.get("pods", name="-".join(names + uids))]
    """,
    "wider types": """
        @fnop.on.update("pods")
        def f(
            spec: dict[str, Any], labels: dict[str, str], body: Mapping[str, Any],
            reason: str, name: object, **_: Any,
        ) -> None: ...
    """,
    "a bare handler, and arguments of its own": """
        @fnop.on.delete("pods", optional=True)
        def f(*, spec: fnop.Spec, mine: int = 5, **rest: Any) -> None: ...

        @fnop.on.delete("pods")
        def g(**_: Any) -> None: ...
    """,
    "every form, and what it returns": """
        @fnop.on.create("pods")
        def result(**_: Any) -> dict[str, list[int]]:
            return {"a": [1]}

        @fnop.on.create("pods")
        def plan(name: str, **_: Any) -> list[fnop.Effect]:
            return [fnop.event("Made", name), fnop.patch(status={"phase": "Ready"})]

        @fnop.on.create("pods")
        def either(name: str, **_: Any) -> fnop.Effect | str | None:
            return fnop.again(after=5) if name else None

        @fnop.on.create("pods")
        async def awaited(**_: Any) -> fnop.Result:
            return {"found": await fnop.get("secrets", name="s") is not None}

        @fnop.on.create("pods")
        def iterator(**_: Any) -> Iterator[fnop.Effect]:
            yield fnop.sleep(1)

        @fnop.on.create("pods")
        def generator(**_: Any) -> Generator[fnop.Effect, Any, dict[str, Any]]:
            gone = yield fnop.delete("pods", name="p")
            return {"gone": gone}
    """,
    "every kind of handler": """
        @fnop.on.startup()
        def start(settings: fnop.Settings, activity: str, **_: Any) -> fnop.Settings:
            return settings.replace(operator="a")

        @fnop.on.cleanup(errors=fnop.ErrorsMode.IGNORED)
        async def stop(logger: fnop.Logger, **_: Any) -> None: ...

        @fnop.on.login(retries=3)
        def login(settings: fnop.Settings, **_: Any) -> fnop.ConnectionInfo | None:
            return fnop.ConnectionInfo(server="https://a", token=settings.operator)

        @fnop.on.login()
        async def ask(logger: fnop.Logger, **_: Any) -> fnop.ConnectionInfo:
            return fnop.ConnectionInfo(server="http://a", username="b", password="c")

        @fnop.on.probe(timeout=1)
        def now(now: datetime, **_: Any) -> str:
            return now.isoformat()

        @fnop.on.probe()
        async def ping(memo: fnop.Memo, **_: Any) -> dict[str, int]:
            return {"pings": len(memo)}

        @fnop.on.resume("pods", deleted=True)
        @fnop.on.create("pods")
        @fnop.on.update("pods", field=["spec", "size"], old=1, new=fnop.PRESENT)
        @fnop.on.field("pods", field="spec.size")
        def change(old: Any, new: Any, **_: Any) -> None: ...

        @fnop.on.event(fnop.EVERYTHING)
        def spy(type: str | None, event: Mapping[str, Any], **_: Any) -> None: ...

        @fnop.daemon("pods", cancellation_timeout=5, finalizer=False)
        async def follow(stopped: fnop.Stopped, **_: Any) -> None:
            while not stopped:
                await stopped.wait(1)
            if stopped.reason == fnop.DaemonStoppingReason.OPERATOR_EXITING:
                await fnop.exception(exc=OSError())

        @fnop.timer("pods", interval=60, sharp=True, idle=0.5)
        def tick(spec: fnop.Spec, **_: Any) -> fnop.Effect:
            return fnop.patch(status={"spec": dict(spec)})

        @fnop.on.timer("pods", cron="* * * * *")
        @fnop.on.daemon("pods")
        def generating(stopped: fnop.Stopped, **_: Any) -> Iterator[fnop.Effect]:
            yield fnop.sleep(1)

        @fnop.index("pods", errors=fnop.ErrorsMode.PERMANENT)
        def pods_by_app(labels: fnop.Labels, **_: Any) -> dict[tuple[str, int], Any]:
            return {(labels["app"], 1): object()}
    """,
    "manifests, one and several": """
        class Model:
            def to_dict(self) -> dict[str, Any]:
                return {"kind": "Pod"}

        @fnop.on.create("pods")
        def f(body: fnop.Body, patch: fnop.Patch, **_: Any) -> list[fnop.Effect]:
            patch.fns.append(lambda body: body["spec"].pop("hosts"))
            one: fnop.Effect = fnop.adopt(Model(), role="main")
            named: dict[str, Any] = fnop.label(Model(), {"a": "b"})
            several: list[dict[str, Any]] = fnop.owned([Model(), named], body)
            return [one, fnop.patch(Model(), spec={}), *fnop.apply(several)]

        @fnop.on.update("pods")
        def g(**_: Any) -> list[fnop.Effect]:
            return fnop.adopt([{"kind": "Pod"}, Model()])
    """,
    "an index": """
        @fnop.on.create("pods")
        def f(name: str, by_app: fnop.Index[str, int] = fnop.INDEX, **_: Any) -> int:
            return sum(by_app.get(name, ()))

        f("a", by_app={"a": (1, 2)})
    """,
    "kinds in all forms": """
        @fnop.on.create("apps", "v1", "deployments")
        @fnop.on.create(kind="Pod", group="", version="v1")
        @fnop.on.create(category="all")
        @fnop.on.create(lambda resource: resource.namespaced)
        @fnop.on.create("*.example.com", owner=("apps/v1", "deployments"))
        def f(**_: Any) -> None: ...
    """,
    "filters": """
        def is_short(value: str | None) -> bool:
            return value is not None and len(value) < 3

        def fits(value: Any, spec: fnop.Spec, **_: Any) -> bool:
            return bool(spec["size"] == value)

        def is_first(name: str, **_: Any) -> bool:
            return name.endswith("-1")

        def is_known(
            reason: fnop.Reason,
            memo: fnop.Memo,
            pods: fnop.Index[str, int] = fnop.INDEX,
            **_: Any,
        ) -> bool:
            return reason == "create" and memo.get("name") in pods

        @fnop.on.create("pods", when=is_known, labels={"a": fnop.not_(is_known)})
        @fnop.on.update(
            "pods",
            labels={"a": "b", "c": fnop.PRESENT, "d": is_short, "e": lambda v: v != ""},
            annotations={"f": lambda value, name, **_: value == name},
            when=is_first,
            field="spec.size",
            old=fits,
            new=lambda value: value > 1,
        )
        @fnop.on.create("pods", when=fnop.all_([is_first, fnop.not_(is_first)]))
        @fnop.on.create("pods", field="spec.size", value={"nested": [1, None]})
        @fnop.daemon("pods", when=lambda spec, **_: spec.get("size") != 1)
        @fnop.timer("pods", initial_delay=lambda spec, **_: float(spec["delay"]))
        def f(**_: Any) -> Iterator[fnop.Effect]:
            yield fnop.sleep(1)
    """,
    "a decorated function is what it was": """
        @fnop.on.create("pods")
        @fnop.on.update("pods")
        def f(name: str, **_: Any) -> dict[str, str]:
            return {"a": name}

        answer: str = f("name")["a"]
    """,
    "parts": """
        def part(name: str, **_: Any) -> int:
            return len(name)

        def other(retry: int, **_: Any) -> None: ...

        @fnop.on.create("pods")
        async def f(spec: fnop.Spec, **_: Any) -> None:
            @fnop.subhandler(id="a", retries=3, field="spec.size", old=1)
            def one(item: str = "a", **_: Any) -> None: ...

            length: int = fnop.register(part, id="b")("name")
            await fnop.execute({"c": part, "d": other})
            await fnop.execute([part, other])
            await fnop.execute()
    """,
    "all of one kind of handler": """
        handlers: list[fnop.ChangeHandler] = []

        def one(name: str, **_: Any) -> None: ...

        async def other(spec: fnop.Spec, **_: Any) -> fnop.Result:
            return None

        handlers += [one, other]
        for number, each in enumerate(handlers):
            fnop.on.create("pods", id=str(number))(each)
    """,
    "settings": """
        settings = fnop.Settings(lifecycle=fnop.lifecycles.one_by_one)
    """,
}

HANDLER = 'Value of type variable "ChangeFn"'
REFUSED = {
    "a mistyped part of a world": """
        from fnop.testing import World

        World("operator.py", crd="crd.yaml")  # E: Unexpected keyword argument "crd"
        World("operator.py", settings={"a": 1})  # E: Argument "settings"
        world = World(rivals={"pods": len})  # E: Dict entry 0 has incompatible type
        world.simulate().settel()  # E: "Simulation" has no attribute "settel"
        world.explore("create")  # E: Argument 1 to "explore"
        world.checks(depth=2)  # E: Unexpected keyword argument "depth"
    """,
    "a mistyped argument": f"""
        @fnop.on.create("pods")  # E: {HANDLER}
        def f(spec: fnop.Spec, nmae: str, **_: Any) -> None: ...
    """,
    "a mistyped argument without types": f"""
        # mypy: allow-untyped-defs
        @fnop.on.create("pods")  # E: {HANDLER}
        def f(spec, nmae, **_): ...
    """,
    "an argument of another type": f"""
        @fnop.on.create("pods")  # E: {HANDLER}
        def a(name: int, **_: Any) -> None: ...

        @fnop.on.create("pods")  # E: {HANDLER}
        def c(patch: fnop.Settings, **_: Any) -> None: ...

        @fnop.on.create("pods")  # E: {HANDLER}
        def d(labels: list[str], **_: Any) -> None: ...
    """,
    "an argument of another kind of handler": f"""
        @fnop.on.create("pods")  # E: {HANDLER}
        def a(type: str | None, **_: Any) -> None: ...

        @fnop.on.event("pods")  # E: Value of type variable "EventFn"
        def b(diff: fnop.Diff, **_: Any) -> None: ...

        @fnop.daemon("pods")  # E: Value of type variable "DaemonFn"
        async def c(reason: str, **_: Any) -> None: ...

        @fnop.timer("pods")  # E: Value of type variable "TimerFn"
        def d(settings: fnop.Settings, **_: Any) -> None: ...

        @fnop.index("pods")  # E: Value of type variable "IndexFn"
        def e(patch: fnop.Patch, **_: Any) -> None: ...

        @fnop.on.startup()  # E: Value of type variable "StartupFn"
        def g(spec: fnop.Spec, **_: Any) -> None: ...

        @fnop.on.login()  # E: Value of type variable "LoginFn"
        def i(**_: Any) -> str:
            return ""

        @fnop.on.probe()  # E: Value of type variable "ProbeFn"
        def j(spec: fnop.Spec, **_: Any) -> None: ...

        @fnop.on.cleanup()  # E: Value of type variable "CleanupFn"
        def h(stopped: fnop.Stopped, **_: Any) -> None: ...
    """,
    "a handler that does not let the rest pass": f"""
        @fnop.on.create("pods")  # E: {HANDLER}
        def f(spec: fnop.Spec) -> None: ...
    """,
    "an index without its default": f"""
        @fnop.on.create("pods")  # E: {HANDLER}
        def f(pods_by_app: fnop.Index[str, str], **_: Any) -> None: ...
    """,
    "what no handler can answer": f"""
        # mypy: disable-error-code=empty-body
        @fnop.on.create("pods")  # E: {HANDLER}
        def a(**_: Any) -> datetime: ...

        @fnop.on.create("pods")  # E: {HANDLER}
        async def b(**_: Any) -> set[str]: ...

        @fnop.on.create("pods")  # E: {HANDLER}
        def c(**_: Any) -> dict[str, datetime]: ...

        @fnop.on.create("pods")  # E: {HANDLER}
        def d(**_: Any) -> list[str]: ...

        @fnop.on.create("pods")  # E: {HANDLER}
        def e(**_: Any) -> Iterator[int]: ...
    """,
    "settings are no result": f"""
        @fnop.on.create("pods")  # E: {HANDLER}
        def f(**_: Any) -> fnop.Settings:
            return fnop.Settings()

        fnop.Settings().request_concurency  # E: has no attribute "request_concurency"
        fnop.Settings(storage="example.com")  # E: Argument "storage"
    """,
    "no manifests": """
        fnop.adopt("pods")  # E: Argument 1 to "adopt"
        fnop.label(["pods"], {})  # E: List item 0
        fnop.create(5)  # E: No overload variant
    """,
    "mistyped options": """
        @fnop.on.create("pods", retires=3)  # E: did you mean "retries"?
        @fnop.on.event("pods", retries=3)  # E: Unexpected keyword argument "retries"
        @fnop.on.create("pods", old=1)  # E: Unexpected keyword argument "old"
        @fnop.timer("pods", intervall=3)  # E: did you mean "interval"?
        def f(**_: Any) -> None: ...

        @fnop.on.craete("pods")  # E: "On" has no attribute "craete"
        def g(**_: Any) -> None: ...

        @fnop.index("pods", impure=True)  # E: Unexpected keyword argument "impure"
        def h(**_: Any) -> None: ...

        @fnop.on.startup("pods")  # E: Argument 1 to "startup"
        def i(**_: Any) -> None: ...

        @fnop.on.field("pods")  # E: Missing named argument "field"
        def j(**_: Any) -> None: ...
    """,
    "options of another type": """
        @fnop.on.create("pods", retries="3")  # E: Argument "retries"
        @fnop.on.create("pods", errors="IGNORED")  # E: Argument "errors"
        @fnop.on.create("pods", labels={"a": None})  # E: Dict entry 0
        @fnop.on.create("pods", labels=["a"])  # E: Argument "labels"
        @fnop.on.create(3)  # E: Argument 1
        @fnop.on.create("pods", field="a", value=fnop.Settings)  # E: Argument "value"
        def f(**_: Any) -> None: ...
    """,
    "mistyped arguments of functions in options": """
        def size(sepc: fnop.Spec, **_: Any) -> bool:
            return True

        def fits(value: Any, sepc: fnop.Spec, **_: Any) -> bool:
            return True

        def text(spec: fnop.Spec, **_: Any) -> str:
            return ""

        @fnop.on.create("pods", when=size)  # E: Argument "when"
        @fnop.on.create("pods", when=text)  # E: Argument "when"
        @fnop.on.create("pods", when=lambda retry, **_: True)  # E: Argument "when"
        @fnop.on.create("pods", when=lambda logger, **_: True)  # E: Argument "when"
        @fnop.on.create("pods", labels={"a": fits})  # E: Dict entry 0
        @fnop.on.create("pods", field="spec.a", value=fits)  # E: Argument "value"
        @fnop.daemon("pods", initial_delay=text)  # E: Argument "initial_delay"
        def f(**_: Any) -> Iterator[fnop.Effect]:
            yield fnop.sleep(1)
    """,
    "what is read-only": """
        @fnop.on.create("pods")
        def f(spec: fnop.Spec, labels: fnop.Labels, **_: Any) -> None:
            spec["a"] = 1  # E: Unsupported target for indexed assignment
            labels["a"] = "b"  # E: Unsupported target for indexed assignment
    """,
    "mistakes with typed objects, as docs/reference/typed-objects.md lists them": f"""
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class DatabaseSpec:
            size: fnop.Quantity
            replicas: int = 1
            hosts: tuple[str, ...] = ()

        @dataclass(frozen=True)
        class DatabaseStatus:
            ready: int = 0

        @fnop.definition("databases.v1.example.com")
        @dataclass(frozen=True)
        class Database:
            spec: DatabaseSpec
            status: DatabaseStatus = DatabaseStatus()

        @fnop.on.create(Database)
        def fields(spec: DatabaseSpec, obj: Database, **_: Any) -> None:
            print(spec.replica)  # E: has no attribute "replica"; maybe "replicas"?
            print(spec["replicas"])  # E: is not indexable
            spec.replicas = 3  # E: is read-only
            text: str = spec.replicas  # E: Incompatible types in assignment
            obj.spec.hosts.append("x")  # E: has no attribute "append"

        @fnop.on.update(Database)
        def nothing(old: Database | None, **_: Any) -> None:
            print(old.spec)  # E: Item "None" of "Database | None"

        @fnop.on.create(Database)  # E: {HANDLER}
        def argument(specs: DatabaseSpec, **_: Any) -> None: ...

        @fnop.on.create(Database)  # E: {HANDLER}
        def rest(spec: DatabaseSpec) -> None: ...

        @fnop.on.create(Database)  # E: {HANDLER}
        def name(name: int, **_: Any) -> None: ...

        @fnop.timer(Database, interval=60)  # E: Value of type variable "TimerFn"
        def kind(old: Database, **_: Any) -> None: ...

        @fnop.reconcile(Database, owns=[Database])
        def parts(
            spec: DatabaseSpec, children: fnop.Children, **_: Any
        ) -> list[fnop.Desired]:
            print(children[Database]["x"].spec.replica)  # E: has no attribute "replica"
            return [
                fnop.desired(status=DatabaseStatus(redy=1)),  # E: did you mean "ready"?
                fnop.desired(status=DatabaseStatus(spec.hosts)),  # E: expected "int"
                fnop.desired(status=3),  # E: Argument "status" to "desired"
                fnop.desired(
                    conditions=fnop.condition("Ready", "yes")  # E: to "condition"
                ),
            ]

        @fnop.reconcile(Database)  # E: Value of type variable "ReconcileFn"
        def answer(spec: DatabaseSpec, **_: Any) -> list[str]:
            return [spec.hosts[0]]

        @fnop.on.create(Database)  # E: {HANDLER}
        def effect(**_: Any) -> type[fnop.Patch]:
            return fnop.Patch

        @fnop.on.create(Database, retrys=3)  # E: did you mean "retries"?
        def option(**_: Any) -> None: ...

        @fnop.on.create(Database, retries="3")  # E: Argument "retries"
        def number(**_: Any) -> None: ...

        @fnop.on.create(Database, labels=["a"])  # E: Argument "labels"
        def filter(**_: Any) -> None: ...
    """,
    "mistyped parts": f"""
        def part(nmae: str, **_: Any) -> None: ...

        @fnop.on.create("pods")
        async def f(**_: Any) -> None:
            @fnop.subhandler(retires=3)  # E: did you mean "retries"?
            def one(**_: Any) -> None: ...

            @fnop.subhandler()  # E: {HANDLER}
            def other(nmae: str, **_: Any) -> None: ...

            fnop.register(part)  # E: {HANDLER} of "register"
            await fnop.execute({{"a": part}})  # E: Dict entry 0
    """,
}
SNIPPETS = ACCEPTED | REFUSED
DOCUMENTED = {
    f"{title(page)} {number}": block
    for page in ALONE
    for number, block in enumerate(blocks(page.read_text()))
}
# The documentation shows handlers without types, or with only their objects' types, and
# objects that surely exist.
RELAXED = (
    "# mypy: allow-untyped-defs, allow-incomplete-defs, disable-error-code=union-attr\n"
)

# ------------------------------------------------------------------ what mypy says


class Verdicts:
    """The errors of one run of mypy over all files."""

    def __init__(self, folder: Path, texts: dict[str, str]) -> None:
        api = pytest.importorskip("mypy.api")
        self.files = {name: f"snippet_{n}.py" for n, name in enumerate(texts)}
        for name, file in self.files.items():
            (folder / file).write_text(texts[name])
        files = [str(folder / file) for file in self.files.values()]
        config = ["--config-file", str(ROOT / "pyproject.toml"), "--hide-error-context"]
        cache = ["--cache-dir", str(folder / "cache"), "--no-error-summary"]
        said, trouble, _ = api.run([*config, *cache, *files])
        assert trouble == ""
        self.errors: defaultdict[str, defaultdict[int, str]] = defaultdict(
            lambda: defaultdict(str)
        )
        for line in said.splitlines():
            if found := re.match(r"(.*):(\d+): error: (.*)", line):
                self.errors[Path(found[1]).name][int(found[2])] += found[3]

    def of(self, name: str) -> dict[int, str]:
        """Its messages about a file, by line."""
        return dict(self.errors[self.files[name]])


def text_of(snippet: str) -> str:
    return PROLOGUE + inspect.cleandoc(snippet) + "\n"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    texts = {name: text_of(snippet) for name, snippet in SNIPPETS.items()}
    texts |= {name: RELAXED + block for name, block in DOCUMENTED.items()}
    return Verdicts(tmp_path_factory.mktemp("typing"), texts)


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_type_checker_refuses_what_is_marked_and_nothing_else(
    verdicts: Verdicts, name: str
) -> None:
    lines = text_of(SNIPPETS[name]).splitlines()
    marks = [line.partition("# E: ")[2] for line in lines]
    expected = {number: mark for number, mark in enumerate(marks, 1) if mark}
    found = verdicts.of(name)
    assert found.keys() == expected.keys(), found
    for number, mark in expected.items():
        assert mark in found[number]
    assert bool(expected) is (name in REFUSED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_the_documentation_shows_is_accepted(
    verdicts: Verdicts, name: str
) -> None:
    assert verdicts.of(name) == {}


# ------------------------------------------------------- the types are true


def decorator_of(role: Role) -> Callable[..., Any]:
    place = OnCluster if role in CLUSTER else On
    found: Callable[..., Any] = getattr(place, role.value)
    return found


def declared_by(decorator: Callable[..., Any]) -> tuple[Any, Any]:
    """The protocol of its handlers and its options, as its annotations say."""
    hints = inspect.get_annotations(decorator)
    scope = inspect.getmodule(decorator).__dict__
    (options,) = re.findall(r"Unpack\[(\w+)\]", hints["options"])
    (fn,) = set(re.findall(r"\w+Fn", hints["return"]))
    return scope[fn].__bound__, scope[options]


@pytest.mark.parametrize("role", Role)
def test_decorators_are_typed_as_registration_checks(role: Role) -> None:
    rule = ROLES[role]
    assert declared_by(decorator_of(role)) == (rule.protocol, rule.options)


def test_parts_are_typed_as_their_registration_checks() -> None:
    protocol, options = declared_by(subhandler)
    assert options is SubhandlerOptions
    assert protocol is fnop.ChangeHandler
    assert options_of(options) <= options_of(ROLES[Role.UPDATE].options)


def test_the_examples_in_the_docstrings_hold() -> None:
    outcome = doctest.testmod(fnop.core.handlers.declare.options)
    assert (outcome.failed, outcome.attempted) == (0, 1)


def test_all_arguments_that_there_are_have_types() -> None:
    assert frozenset().union(*map(kwargs_of, Role)) == PROVIDERS.keys()


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type, as far as this can be seen from outside."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, each) for each in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    return hint is Any or isinstance(value, get_origin(hint) or hint)


def hints_of(role: Role) -> dict[str, Any]:
    hints = get_type_hints(ROLES[role].protocol.__call__, localns=vars(fnop))
    return {name: hint for name, hint in hints.items() if name != "return"}


def asking(names: Iterable[str], seen: list[dict[str, Any]], role: Role) -> Any:
    """A handler that names all these arguments, and keeps what it gets."""
    begin = "async def" if role is Role.DAEMON else "def"
    scope: dict[str, Any] = {"seen": seen}
    arguments = ", ".join(names)
    exec(f"{begin} handler({arguments}): seen.append(locals())", scope)
    return scope["handler"]


@pytest.mark.parametrize("role", sorted(CLUSTER, key=str))
def test_arguments_about_the_cluster_are_of_these_types_too(role: Role) -> None:
    registry = Registry()
    seen: list[dict[str, Any]] = []
    handler = asking(sorted(kwargs_of(role)), seen, role)
    getattr(fnop.on.cluster, role.value)(registry=registry)(handler)
    simulation = Simulation(registry).settle()
    simulation.apply(DEFINITION).wait(10)
    version, *_ = DEFINITION["spec"]["versions"]
    two = [version, {**version, "name": "v2", "storage": False}]
    simulation.edit("crds/fnopexamples.fnop.dev", spec={"versions": two}).wait(10)
    simulation.delete("crds/fnopexamples.fnop.dev").wait(40)
    simulation.upgrade("1.37").wait(30).outage(60).wait(90)
    assert_typed(role, seen)


@pytest.mark.parametrize("role", sorted(LOGS, key=str))
def test_arguments_about_logs_are_of_these_types_too(role: Role) -> None:
    registry = Registry()
    seen: list[dict[str, Any]] = []
    handler = asking(sorted(kwargs_of(role)), seen, role)
    getattr(fnop.on, role.value)("pods", regex="a(.)", registry=registry)(handler)
    Simulation(registry, objects=[POD]).settle().log_line("pods/p", "ab").settle()
    assert_typed(role, seen)


@pytest.mark.parametrize(
    "role", [role for role in Role if role not in OUTSIDE | CLUSTER | LOGS]
)
def test_arguments_are_of_the_types_that_they_are_said_to_be(role: Role) -> None:
    registry = Registry()
    seen: list[dict[str, Any]] = []
    words = () if role in (Role.STARTUP, Role.CLEANUP) else (KIND,)
    needed = {Role.FIELD: {"field": "spec.size"}, Role.MAP: {"to": KIND}}
    options = needed.get(role, {})
    handler = asking(sorted(kwargs_of(role)), seen, role)
    decorator = getattr(fnop.on, role.value)
    decorator(*words, registry=registry, **options)(handler)
    run = Scenario(registry, [example(size=1)])
    run.settle(seconds=5)
    if role is Role.RESUME:
        run.crash()
        run.settle(seconds=5)
    run.edit(KIND, spec={"size": 2}).settle(seconds=5)
    run.delete(KIND).settle(seconds=5)
    run.stop()
    run.settle()
    assert_typed(role, seen)


@pytest.mark.parametrize("role", sorted(OUTSIDE, key=str))
async def test_arguments_outside_are_of_these_types_too(role: Role) -> None:
    registry = Registry()
    seen: list[dict[str, Any]] = []
    handler = asking(sorted(kwargs_of(role)), seen, role)
    getattr(fnop.on, role.value)(registry=registry)(handler)
    with ThreadPoolExecutor() as threads:
        around = Surroundings(Program(registry.handlers), threads, lambda say: None)
        await perform(registry.handlers[0], around, timeout=None)
    assert_typed(role, seen)


def assert_typed(role: Role, seen: list[dict[str, Any]]) -> None:
    assert seen
    hints = hints_of(role)
    assert hints.keys() == kwargs_of(role)
    for given in seen:
        wrong = {name for name in hints if not fits(given[name], hints[name])}
        assert wrong == set(), {name: given[name] for name in wrong}


# ------------------------------------------------------------- the documentation


def test_the_documentation_lists_all_arguments_with_their_types() -> None:
    page = (ROOT / "docs/reference/arguments.md").read_text()
    rows = re.findall(r"^\| (`.*`) \| .* \| (.*) \|$", page, re.MULTILINE)
    listed = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == PROVIDERS.keys()
    named = {name for _, kinds in rows for name in re.findall(r"fnop\.(\w+)", kinds)}
    assert named == {name for name in named if hasattr(fnop, name)}
