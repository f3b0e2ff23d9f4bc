"""The purity gate: it finds each line that reads a clock, a file or the environment."""

# ruff: noqa: DTZ002, DTZ011, TID251 (the impurities themselves)

from __future__ import annotations

import base64
import binascii
import collections
import copy
import cProfile
import csv
import dataclasses
import datetime
import decimal
import doctest
import enum
import functools
import gc
import hashlib
import importlib
import io
import ipaddress
import itertools
import json
import logging
import math
import multiprocessing.util
import os
import pathlib
import platform
import random
import re
import secrets
import signal
import socket
import statistics
import string
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import types
import urllib.parse
import uuid
import warnings
import weakref
import zoneinfo
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from time import time as imported_before
from typing import Any

import jinja2
import pydantic
import pytest
import ruamel.yaml

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.inputs import purity as module
from fnop.interpreters.check.inputs.purity import Finding, Purity
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.effort import calls_in
from tests.simulations import DEFINITION, example

KIND = "fnopexamples"


def found_by(registry: Registry, *, guard: bool = True) -> list[Finding]:
    """The findings when an object is created, changed and deleted."""
    settings = fnop.Settings().replace(guard=guard)
    purity = Purity()
    run = SimulatedRun(
        Program(registry.handlers, settings), empty_cluster("0", EPOCH), eye=purity
    )
    apply_manifests(run, [DEFINITION, example()])
    assert run.settle()
    return purity.findings


def found_in(use: Callable[[], Any], *, guard: bool = True) -> list[Finding]:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        use()

    return found_by(registry, guard=guard)


def line_of(function: Callable[..., Any], offset: int = 1) -> int:
    return function.__code__.co_firstlineno + offset


def test_the_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


# ------------------------------------------------------------------ what is impure

HERE = Path(__file__)
PRIVATE = random.Random(7)
OPEN: list[socket.socket] = []


@pytest.fixture(autouse=True, scope="module")
def connection() -> Iterator[None]:
    """A connection that was made before any handler is called."""
    OPEN.extend((*socket.socketpair(), socket.socket()))
    yield
    for each in OPEN:
        each.close()


def sent() -> None:
    OPEN[0].send(b"x")


def connected() -> None:
    OPEN[2].settimeout(1)
    OPEN[2].connect(("127.0.0.1", 9))


def by_a_dataclass() -> Any:
    @dataclasses.dataclass
    class Stamped:
        at: float = dataclasses.field(default_factory=time.time)

    return Stamped()


class Stamp(pydantic.BaseModel):
    id: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4)


class Aware(datetime.datetime):
    """A class of an author's own."""


NOW, RANDOM, ENV = "the argument `now`", "await fnop.random(size)", "the top of"
FILE, ACT, SLEEP = "read the file at the top", "fnop.call(function", "fnop.sleep(sec"

IMPURE: dict[str, tuple[Callable[[], Any], str, str]] = {
    "time": (lambda: time.time(), "calls time.time", NOW),
    "time_ns": (lambda: time.time_ns(), "calls time.time_ns", NOW),
    "by its own name": (lambda: imported_before(), "calls time.time", NOW),
    "monotonic": (lambda: time.monotonic(), "calls time.monotonic", "`runtime`"),
    "perf": (lambda: time.perf_counter(), "calls time.perf_counter", "`runtime`"),
    "gmtime": (lambda: time.gmtime(), "calls time.gmtime", NOW),
    "strftime": (lambda: time.strftime("%Y"), "calls time.strftime", NOW),
    "sleep": (lambda: time.sleep(0.001), "calls time.sleep", SLEEP),
    "now": (lambda: datetime.datetime.now(datetime.UTC), "calls datetime.now", NOW),
    "utcnow": (lambda: legacy("utcnow"), "calls datetime.utcnow", NOW),
    "today": (lambda: datetime.datetime.today(), "calls datetime.today", NOW),
    "date": (lambda: datetime.date.today(), "calls datetime.today", NOW),
    "subclass": (lambda: Aware.now(datetime.UTC), "calls datetime.now", NOW),
    "dataclass": (by_a_dataclass, "calls time.time", NOW),
    "sort key": (lambda: sorted("ab", key=lambda _: time.time()), "time.time", NOW),
    "random": (lambda: random.random(), "calls random.random", RANDOM),
    "randint": (lambda: random.randint(1, 6), "calls random.randint", RANDOM),
    "choice": (lambda: random.choice("ab"), "calls random.choice", RANDOM),
    "shuffle": (lambda: random.shuffle([1, 2]), "calls random.shuffle", RANDOM),
    "gauss": (lambda: random.gauss(0, 1), "calls random.gauss", RANDOM),
    "seed": (lambda: random.seed(4), "calls random.seed", RANDOM),
    "unseeded": (lambda: random.Random(), "without a seed", RANDOM),
    "token": (lambda: secrets.token_hex(4), "calls secrets.token_hex", RANDOM),
    "below": (lambda: secrets.randbelow(9), "calls secrets.randbelow", RANDOM),
    "secret choice": (lambda: secrets.choice("ab"), "choice", RANDOM),
    "uuid1": (lambda: uuid.uuid1(), "calls uuid.uuid1", RANDOM),
    "uuid4": (lambda: uuid.uuid4(), "calls uuid.uuid4", RANDOM),
    "by pydantic": (lambda: Stamp(), "calls uuid.uuid4", RANDOM),
    "urandom": (lambda: os.urandom(4), "calls os.urandom", RANDOM),
    "environ": (lambda: os.environ["PATH"], "uses os.environ", ENV),
    "environ get": (lambda: os.environ.get("PATH"), "uses os.environ", ENV),
    "environ in": (lambda: "PATH" in os.environ, "uses os.environ", ENV),
    "environ all": (lambda: dict(os.environ), "uses os.environ", ENV),
    "getenv": (lambda: os.getenv("PATH"), "calls os.getenv", ENV),
    "home": (lambda: Path.home(), "uses os.environ", ENV),
    "cwd": (lambda: os.getcwd(), "calls os.getcwd", ENV),
    "pid": (lambda: os.getpid(), "calls os.getpid", ENV),
    "host": (lambda: socket.gethostname(), "calls socket.gethostname", ENV),
    "open": (lambda: HERE.open().close(), f"reads the file {HERE}", FILE),
    "read_text": (lambda: HERE.read_text(), f"reads the file {HERE}", FILE),
    "descriptor": (lambda: os.close(os.open(HERE, 0)), "reads the file", FILE),
    "template": (
        lambda: jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE.parent)
        ).get_template(HERE.name),
        "file",
        FILE,
    ),
    "exists": (lambda: HERE.exists(), "calls Path.", FILE),
    "isfile": (lambda: os.path.isfile(HERE), "calls os.path.isfile", FILE),
    "mtime": (lambda: os.path.getmtime(HERE), "calls os.path.getmtime", FILE),
    "stat": (lambda: os.stat(HERE), "calls os.stat", FILE),
    "listdir": (lambda: os.listdir(HERE.parent), "lists the folder", FILE),
    "glob": (lambda: list(HERE.parent.glob("*.none")), "", FILE),
    "socket": (lambda: socket.socket().close(), "makes a socket", ACT),
    "connect": (connected, "calls connect of a socket", ACT),
    "lookup": (lambda: socket.gethostbyname("localhost"), "looks up the host", ACT),
    "send": (sent, "calls send of a socket", ACT),
    "program": (lambda: subprocess.run(["true"], check=True), "starts the pro", ACT),
    "thread": (lambda: threading.Thread(target=len).start(), "starts a thread", ACT),
    "write": (lambda: (HERE / "no").write_text("x"), "for writing", ACT),
}


def legacy(name: str) -> Any:
    """A function that newer Pythons warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(datetime.datetime, name)()


@pytest.mark.parametrize("name", IMPURE)
def test_an_impurity_is_found(name: str) -> None:
    use, what, alternative = IMPURE[name]
    findings = found_in(use)
    assert findings
    finding = findings[0]
    assert finding.handler == "created"
    assert what in finding.what
    assert alternative in finding.alternative
    assert finding.file == __file__
    assert finding.place.startswith("test_purity.py, line ")


def test_there_are_enough_of_them() -> None:
    assert len(IMPURE) >= 24


def test_the_line_is_that_of_the_author_who_is_nearest() -> None:
    def helper() -> str:
        return str(uuid.uuid4())

    def use() -> None:
        helper()

    (finding,) = found_in(use)
    assert finding.line == line_of(helper)


def test_a_library_is_answered_for_by_the_line_that_calls_it() -> None:
    def use() -> None:
        "the first line"
        tempfile.gettempprefix()
        random.sample(range(10), 3)

    (finding,) = found_in(use)
    assert (finding.what, finding.line) == ("calls random.sample", line_of(use, 3))


def test_a_line_is_told_once_and_each_line_is_told() -> None:
    def use() -> None:
        for _ in range(3):
            time.time()
        time.time()

    assert [each.line - line_of(use) for each in found_in(use)] == [1, 2]


def test_what_numpy_shares_is_found_at_its_line() -> None:
    numpy = installed("numpy")
    numbers = installed("numpy.random")

    def helper() -> float:
        text = "the first line"
        return float(numbers.normal()) if text else 0.0

    def use() -> None:
        helper()

    for state in (1, 2):
        numpy.random.seed(state)
        (finding,) = found_in(use)
        assert finding.what == "draws numbers of numpy.random"
        assert finding.line == line_of(helper, 2)
    (finding,) = found_in(lambda: numpy.random.default_rng())
    assert finding.alternative.startswith("use `await fnop.random(size)`")
    assert found_in(lambda: numpy.random.default_rng(4).normal()) == []


def test_a_profiler_in_c_goes_on_when_the_gate_is_shut() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        (found,) = found_in(lambda: time.time())
        binascii.hexlify(b"after")
    finally:
        profiler.disable()
    assert found.handler
    assert any("hexlify" in str(each.code) for each in profiler.getstats())


def test_two_sorts_on_a_line_are_both_told() -> None:
    found = found_in(lambda: (time.time(), random.random(), os.getenv("A")))
    assert [each.what for each in found] == [
        "calls time.time",
        "calls random.random",
        "calls os.getenv",
    ]


def test_without_a_guard_acts_are_found_as_well(tmp_path: Path) -> None:
    def use() -> None:
        (tmp_path / "new").write_text("x")

    (finding,) = found_in(use, guard=False)
    assert "opens" in finding.what
    assert "for writing" in finding.what
    assert (tmp_path / "new").exists()


@pytest.mark.parametrize("form", ["plain", "conversation", "generator", "filter"])
def test_it_is_found_in_each_form(form: str) -> None:
    registry = Registry()
    effect = fnop.patch(status={"reached": "yes"})

    def plain(**_: Any) -> Any:
        time.time()

    async def conversation(**_: Any) -> Any:
        await effect
        time.time()

    def generator(**_: Any) -> Any:
        yield effect
        time.time()

    def is_wanted(**_: Any) -> bool:
        return time.time() > 0

    forms: dict[str, Any] = {
        "plain": plain,
        "conversation": conversation,
        "generator": generator,
        "filter": lambda **_: None,
    }
    when = is_wanted if form == "filter" else None
    fnop.on.create(KIND, registry=registry, id="h", when=when)(forms[form])
    (finding,) = found_by(registry)
    assert finding.handler == ("is_wanted" if form == "filter" else "h")
    function = is_wanted if form == "filter" else forms[form]
    assert finding.line in (line_of(function), line_of(function, 2))


def test_an_index_and_a_function_of_a_patch_are_watched() -> None:
    registry = Registry()

    @fnop.index(KIND, registry=registry, id="indexed")
    def indexed(name: str, **_: Any) -> Any:
        return {name: random.random()}

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(patch: fnop.Patch, **_: Any) -> None:
        patch.fns.append(lambda body: body.update(at=os.getpid()))

    found = {each.what: each.handler for each in found_by(registry)}
    assert found["calls random.random"] == "indexed"
    assert "calls os.getpid" in found


# -------------------------------------------------------------------- what is pure


class Colour(enum.Enum):
    RED = enum.auto()


class Spec(pydantic.BaseModel):
    size: int = pydantic.Field(ge=1)
    names: list[str] = []


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: list[int] = dataclasses.field(default_factory=list)


MOMENT = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
TEMPLATE = jinja2.Environment().from_string("{% for i in x %}{{ i|upper }}{% endfor %}")


def made_within() -> Any:
    """A model whose class is made in the handler."""
    made = pydantic.create_model("Made", a=(int, ...), at=(datetime.datetime, ...))
    return made.model_validate_json('{"a": 1, "at": "2026-01-01T00:00:00Z"}')


def with_jinja2() -> Any:
    return (
        jinja2.Environment()
        .from_string("{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1) }}")
        .render()
    )


def with_ruamel() -> Any:
    for typ in ("rt", "safe"):
        yaml, out = ruamel.yaml.YAML(typ=typ), io.StringIO()
        yaml.dump(yaml.load("a: 1\nb: [1, 2]\nat: 2026-01-01T00:00:00Z\n"), out)
    return out.getvalue()


def with_attrs() -> Any:
    attrs = installed("attrs")
    made = attrs.make_class("Made", {"a": attrs.field(factory=list)})
    return attrs.asdict(attrs.evolve(made(), a=[1]))


def with_loguru() -> None:
    installed("loguru").logger.info("seen")


def with_numpy() -> Any:
    numpy = installed("numpy")
    numbers = numpy.random.default_rng(7).random(3)
    return float(numpy.linalg.norm(numpy.arange(6).reshape(2, 3) @ numbers))


def with_csv() -> str:
    out = io.StringIO()
    csv.writer(out).writerows([[1, 2]])
    return str(list(csv.DictReader(io.StringIO(out.getvalue()))))


def with_logging() -> None:
    logging.getLogger("operators.pure").warning("seen %s", 1, exc_info=True)


def with_warnings() -> None:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        warnings.warn("seen", stacklevel=1)
        warnings.formatwarning("text", UserWarning, __file__, 1)


def with_a_traceback() -> str:
    try:
        return str(1 / 0)
    except ZeroDivisionError:
        return traceback.format_exc()


def with_datetime() -> Any:
    return (
        (MOMENT + datetime.timedelta(days=1)).isoformat(),
        datetime.datetime.fromtimestamp(0, datetime.UTC).strftime("%Y"),
        datetime.date(2026, 1, 1).isocalendar(),
        datetime.datetime.strptime("2026", "%Y").replace(tzinfo=datetime.UTC),
        time.gmtime(0),
        time.strftime("%Y", time.gmtime(0)),
        MOMENT.time(),
    )


def with_seeded_numbers() -> Any:
    """Random numbers of a seed are the same again."""
    mine = random.Random("uid")
    copied = copy.deepcopy(PRIVATE)
    return mine.random(), mine.randint(1, 6), mine.sample("abc", 2), copied.random()


class Weather:
    """An object whose methods have the names of others."""

    def now(self) -> int:
        return 1

    time = random = today = connect = send = read = now


def with_methods_of_these_names() -> None:
    weather, text = Weather(), io.StringIO("x")
    weather.now(), weather.random(), weather.connect(), text.read()
    datetime.datetime.combine(MOMENT.date(), MOMENT.time())


def with_zones() -> Any:
    zoneinfo.ZoneInfo.clear_cache()
    return MOMENT.astimezone(zoneinfo.ZoneInfo("Europe/Berlin")).isoformat()


def imports() -> Any:
    sys.modules.pop("this_asks_the_world", None)
    return importlib.import_module("this_asks_the_world").AT


def with_yaml() -> Any:
    yaml = installed("yaml")
    return yaml.safe_load(yaml.safe_dump({"at": MOMENT, "b": [1, {"c": None}]}))


def with_orjson() -> Any:
    orjson = installed("orjson")
    return orjson.loads(orjson.dumps({"at": MOMENT}))


def with_kubernetes_asyncio() -> Any:
    client = installed("kubernetes_asyncio.client")
    pod = client.V1Pod(
        metadata=client.V1ObjectMeta(name="a"),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")]),
    )
    return pod.to_dict()


def with_lightkube() -> Any:
    models = installed("lightkube.models.meta_v1")
    return models.ObjectMeta(name="a", labels={"b": "c"}).to_dict()


def with_box() -> Any:
    return installed("box").Box({"a": {"b": 1}}).a.b


def with_dateutil() -> Any:
    parser = installed("dateutil.parser")
    relative = installed("dateutil.relativedelta").relativedelta(months=1)
    return parser.isoparse("2026-01-01T00:00:00Z") + relative


def with_packaging() -> Any:
    version = installed("packaging.version").Version
    return sorted(["1.10", "1.9"], key=version)


def with_yarl() -> Any:
    return str(installed("yarl").URL("http://a/b") / "c" % {"d": "e"})


def with_cronsim() -> Any:
    return next(installed("cronsim").CronSim("0 * * * *", MOMENT))


def with_pyrsistent() -> Any:
    return installed("pyrsistent").freeze({"a": [1]}).transform(["a", 0], 2)


def with_immutables() -> Any:
    return installed("immutables").Map(a=1).set("b", 2)


def with_msgspec() -> Any:
    msgspec = installed("msgspec")
    return msgspec.json.decode(msgspec.json.encode({"a": MOMENT}))


def with_jsonpatch() -> Any:
    return installed("jsonpatch").make_patch({"a": 1}, {"a": 2}).to_string()


def with_sortedcontainers() -> Any:
    return installed("sortedcontainers").SortedDict(b=1, a=2).peekitem(0)


def with_cachetools() -> Any:
    return installed("cachetools").LRUCache(2).get("a")


def with_protobuf() -> Any:
    made = installed("google.protobuf.struct_pb2").Struct()
    made.update({"a": 1})
    return made.SerializeToString()


def with_returns() -> Any:
    return installed("returns.result").Success(1).map(str).unwrap()


def with_prometheus() -> Any:
    prometheus = installed("prometheus_client")
    registry = prometheus.CollectorRegistry()
    prometheus.Gauge("seen", "Things seen.", registry=registry).set(1)


def with_markupsafe() -> Any:
    return installed("markupsafe").escape("<a>")


def with_annotated_pydantic() -> Any:
    """The heaviest parts of pydantic: JSON schema, unions, validators."""
    adapter = pydantic.TypeAdapter(dict[str, int | Spec])
    return adapter.json_schema(), adapter.validate_python({"a": {"size": 3}})


PURE: dict[str, Callable[[], Any]] = {
    "yaml": with_yaml,
    "orjson": with_orjson,
    "kubernetes_asyncio": with_kubernetes_asyncio,
    "lightkube": with_lightkube,
    "box": with_box,
    "dateutil": with_dateutil,
    "packaging": with_packaging,
    "yarl": with_yarl,
    "cronsim": with_cronsim,
    "pyrsistent": with_pyrsistent,
    "immutables": with_immutables,
    "msgspec": with_msgspec,
    "jsonpatch": with_jsonpatch,
    "sortedcontainers": with_sortedcontainers,
    "cachetools": with_cachetools,
    "protobuf": with_protobuf,
    "returns": with_returns,
    "prometheus": with_prometheus,
    "markupsafe": with_markupsafe,
    "pydantic adapter": with_annotated_pydantic,
    "pydantic": lambda: Spec.model_validate({"size": 1}).model_dump_json(),
    "pydantic class": made_within,
    "jinja2": lambda: TEMPLATE.render(x="abc"),
    "jinja2 environment": with_jinja2,
    "ruamel.yaml": with_ruamel,
    "attrs": with_attrs,
    "loguru": with_loguru,
    "numpy": with_numpy,
    "json": lambda: json.loads(json.dumps({"a": [1.5, None]})),
    "re": lambda: re.compile(r"(\w+)-\d").sub(lambda found: found[1], "ab-1"),
    "copy": lambda: copy.deepcopy({"a": [1, {2}]}),
    "dataclasses": lambda: dataclasses.asdict(dataclasses.replace(Point(1), x=2)),
    "functools": lambda: functools.lru_cache(partial(max, 1))(2),
    "itertools": lambda: list(itertools.groupby(sorted("aabb"))),
    "decimal": lambda: decimal.Decimal("1.1").quantize(decimal.Decimal(1)),
    "ipaddress": lambda: list(ipaddress.ip_network("10.0.0.0/30").hosts()),
    "base64": lambda: base64.b64encode(b"x"),
    "hashlib": lambda: hashlib.sha256(b"x").hexdigest(),
    "Template": lambda: string.Template("$a").substitute(a=1),
    "textwrap": lambda: textwrap.dedent("  a\n  b"),
    "collections": lambda: collections.Counter("ab").most_common(1),
    "enum": lambda: (Colour["RED"], enum.Enum("Made", "A B")),
    "datetime": with_datetime,
    "zoneinfo": with_zones,
    "urllib.parse": lambda: urllib.parse.urlsplit("http://a/b?c=d"),
    "statistics": lambda: statistics.quantiles([1, 2, 3]),
    "logging": with_logging,
    "csv": with_csv,
    "io": lambda: io.TextIOWrapper(io.BytesIO(b"x")).read(),
    "math": lambda: math.sqrt(2),
    "uuid5": lambda: uuid.uuid5(uuid.NAMESPACE_DNS, "a"),
    "compare": lambda: secrets.compare_digest("a", "b"),
    "paths": lambda: pathlib.PurePosixPath("/a/../b").parts,
    "print": lambda: print("seen"),
    "warnings": with_warnings,
    "traceback": with_a_traceback,
    "seeded": with_seeded_numbers,
    "names": with_methods_of_these_names,
    "types": lambda: types.SimpleNamespace(a=1),
    "import": imports,
    "version": lambda: platform.python_version(),
}


def installed(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


@pytest.mark.parametrize("name", PURE)
def test_what_is_pure_is_not_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import os, random, time\nAT = time.time(), random.random(), os.getcwd()\n"
    (tmp_path / "this_asks_the_world.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    warm = name not in ("import", "zoneinfo")
    if warm:
        PURE[name]()  # it skips if something is not installed
    done = []
    assert found_in(lambda: done.append(PURE[name]())) == []
    assert done


def test_what_python_calls_by_itself_is_free() -> None:
    seen: list[float] = []

    def collected(phase: str, info: Any) -> None:
        seen.append(time.time())

    def heard(number: int, frame: Any) -> None:
        seen.append(time.time())

    def use() -> None:
        gc.collect()
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, heard)
    gc.callbacks.append(collected)
    try:
        assert found_in(use) == []
    finally:
        gc.callbacks.remove(collected)
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) >= 3


def asks_when_closed(asked: list[float]) -> Generator[None, None, None]:
    try:
        yield
    finally:
        asked.append(time.time())


def test_what_the_garbage_collector_calls_is_free() -> None:
    """Objects of somebody else may be collected while a handler runs."""

    class Cycle:
        def __init__(self) -> None:
            self.other = self

    asked: list[float] = []

    def notes(*_: Any) -> None:
        asked.append(time.time())

    def leave_rubbish() -> list[Any]:
        open_generator = asks_when_closed(asked)
        next(open_generator)
        one, two, three, four = Cycle(), Cycle(), Cycle(), Cycle()
        one.generator = open_generator  # type: ignore[attr-defined]
        weakref.finalize(two, notes)
        multiprocessing.util.Finalize(three, notes)
        return [weakref.ref(four, notes)]

    gc.disable()  # or the rubbish may be collected before the handler runs
    try:
        kept = leave_rubbish()
        assert found_in(lambda: [gc.collect(), None][1]) == []
    finally:
        gc.enable()
    assert len(asked) == 4
    assert kept


def test_a_process_object_that_is_dropped_is_free() -> None:
    class Pool:
        pass

    pools = [Pool()]
    asked: list[float] = []
    multiprocessing.util.Finalize(pools[0], lambda: asked.append(time.time()))
    assert found_in(pools.clear) == []
    assert asked


def test_what_fnop_gives_is_free() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="created")
    async def created(
        body: fnop.Body,
        now: datetime.datetime,
        logger: fnop.Logger,
        patch: fnop.Patch,
        **_: Any,
    ) -> Any:
        logger.info("at %s of %s", now, body.metadata.creation_timestamp)
        patch.status["labels"] = dict(body.labels)
        name = await fnop.random(4)
        await fnop.sleep(1)
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": name.hex()}}
        await fnop.adopt(manifest)
        return {"at": now.isoformat()}

    assert found_by(registry) == []


def asked(**_: Any) -> Any:
    ASKED.append(time.time())


def also_asked() -> float:
    return time.time()


ASKED: list[float] = []


def test_an_impure_handler_and_a_called_function_are_free() -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, impure=True)(asked)

    @fnop.on.create(KIND, registry=registry)
    async def asks(**_: Any) -> Any:
        ASKED.append(await fnop.call(also_asked))

    purity = Purity()
    program = Program(registry.handlers, fnop.Settings())
    calls = {f"{__name__}:{each.__name__}": each for each in (asked, also_asked)}
    run = SimulatedRun(program, empty_cluster("0", EPOCH), eye=purity, calls=calls)
    apply_manifests(run, [DEFINITION, example()])
    assert run.settle()
    assert len(ASKED) == 2
    assert purity.findings == []


# ------------------------------------------------------------ that it does no harm


def test_outside_of_a_step_nothing_is_watched() -> None:
    seen: list[str] = []

    def other(frame: Any, event: str, arg: Any) -> None:
        seen.append(event)

    purity = Purity()
    sys.setprofile(other)
    try:
        purity.open()
        inside = sys.getprofile()
        purity.shut()
        outside = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert inside is not other
    assert outside is other
    time.time()
    assert purity.findings == []
    assert module._WATCHED == {}


def test_one_within_another_gives_the_thread_back() -> None:
    outer, inner = Purity(), Purity()
    outer.open()
    inner.open()
    inner.shut()
    watched = dict(module._WATCHED)
    outer.shut()
    assert list(watched.values()) == [outer]


def test_a_path_that_is_none_does_no_harm() -> None:
    found: list[bool] = []
    (finding,) = found_in(lambda: found.append(Path("a\0b").exists()))
    assert found[0] is False
    assert finding.what.startswith("calls Path.")


def test_a_fork_is_watched_where_it_gets_an_eye_of_its_own(tmp_path: Path) -> None:
    """The guard's refusals are reported all the same."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        (tmp_path / "new").touch()

    purity, other = Purity(), Purity()
    program = Program(registry.handlers, fnop.Settings())
    run = SimulatedRun(program, empty_cluster("0", EPOCH), eye=purity)
    assert run.settle()
    fork = run.fork()
    fork.machine.eye = other
    apply_manifests(fork, [DEFINITION, example()])
    fork.settle()
    assert "new" in other.findings[0].what
    assert purity.findings == []
    assert not (tmp_path / "new").exists()


def test_after_a_restart_it_still_watches() -> None:
    registry = Registry()

    @fnop.on.resume(KIND, registry=registry, id="resumed")
    def resumed(**_: Any) -> None:
        time.time()

    purity = Purity()
    program = Program(registry.handlers, fnop.Settings())
    run = SimulatedRun(program, empty_cluster("0", EPOCH), eye=purity)
    assert run.settle()
    apply_manifests(run, [DEFINITION, example()])
    assert run.settle()
    assert purity.findings == []
    run.crash()
    assert run.settle()
    assert [each.handler for each in purity.findings] == ["resumed"]


def test_without_an_eye_there_is_no_profile_and_no_hook() -> None:
    """Production: not even the module is needed, and its hook is not there."""
    script = (
        "import sys, fnop, fnop.interpreters.runtime.run\n"
        "assert 'fnop.interpreters.check.inputs.purity' not in sys.modules\n"
        "import fnop.interpreters.check.inputs.purity as purity\n"
        "assert not purity._installed\n"
        "purity.Purity()\n"
        "assert purity._installed\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    registry, seen = Registry(), []

    @fnop.on.create(KIND, registry=registry, id="created")
    def created(**_: Any) -> None:
        seen.append(sys.getprofile())

    program = Program(registry.handlers, fnop.Settings())
    run = SimulatedRun(program, empty_cluster("0", EPOCH))
    apply_manifests(run, [DEFINITION, example()])
    assert run.settle()
    assert seen == [None]


def test_what_is_decided_is_the_same_under_the_eye() -> None:
    def settled(eye: Purity | None) -> Any:
        registry = Registry()

        @fnop.on.create(KIND, registry=registry, id="created")
        async def created(uid: str, **_: Any) -> Any:
            await fnop.sleep(3)
            return {"number": random.Random(uid).random()}

        program = Program(registry.handlers, fnop.Settings())
        run = SimulatedRun(program, empty_cluster("0", EPOCH), eye=eye)
        apply_manifests(run, [DEFINITION, example()])
        assert run.settle()
        return run.requests, run.steps

    assert settled(None) == settled(Purity())


def test_the_cost_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call that a handler makes costs one or two: to look at it."""
    monkeypatch.delitem(sys.modules, "numpy.random", raising=False)
    purity, events = Purity(), list[Any]()
    purity.open()
    try:
        watch: Any = sys.getprofile()
        sys.setprofile(lambda *event: events.append(event))
        for _ in range(20):
            json.loads(json.dumps({"a": list(range(50))}))
        sys.setprofile(None)
        cost = calls_in(lambda: [watch(*event) for event in events])
    finally:
        purity.shut()
    assert len(events) < cost <= 2 * len(events)
