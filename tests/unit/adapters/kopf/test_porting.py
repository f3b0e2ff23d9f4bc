"""The report about porting: verdicts, lines and advice, from an operator's source."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from textwrap import dedent
from types import ModuleType

import pytest

from fnop.adapters.kopf.commands import names as kopf_names
from fnop.adapters.kopf.declaring import on
from fnop.adapters.kopf.porting import names, rules, sources, values, walking
from fnop.adapters.kopf.porting.findings import Ported, Porting, Verdict
from fnop.adapters.kopf.porting.judging import LABELS, ported
from fnop.adapters.kopf.porting.sources import SourceProblem, projects_of
from fnop.core.handlers.declare.registry import Registry, default_registry
from tests.commands import Done, fnop, write
from tests.simulations import ROOT

PURE, CHANGES, IMPURE = Verdict
HERE = PurePosixPath("/work")
REPLICAS = sorted((ROOT / "tests/kopf/replicas").iterdir())


def report(source: str, **others: str) -> Porting:
    """The report about `operator.py`, with other files by their dotted names."""
    files = {HERE / "operator.py": dedent(source).encode()}
    for name, text in others.items():
        path = HERE.joinpath(*name.split("__"))
        files[path.with_name(f"{path.name}.py")] = dedent(text).encode()
    return ported(projects_of([HERE / "operator.py"], files.get, HERE))  # type: ignore[arg-type]


def only(source: str, **others: str) -> Ported:
    """The report about the only handler."""
    [found] = report(source, **others).handlers
    return found


def advice(found: Ported) -> str:
    return "\n".join(
        f"{each.place} {each.code}: {each.advice}" for each in found.findings
    )


@pytest.mark.parametrize("module", [names, rules, sources, values, walking])
def test_the_examples_in_the_docstrings_hold(module: object) -> None:
    import doctest

    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


# Handlers that need another import alone.
PURE_ALREADY = {
    "it returns a result": """
        @kopf.on.create("kex")
        def created(spec, **_):
            return {"size": spec.get("size", 1)}
        """,
    "it patches": """
        @kopf.on.update("kex")
        async def updated(old, new, diff, patch, meta, **_):
            for operation, field, before, after in diff:
                patch.status[".".join(field)] = after
            patch.metadata.labels["seen"] = meta.name.lower()
            patch.status.setdefault("list", []).append(1)
        """,
    "it patches by a function": """
        @kopf.on.update("kex")
        def updated(patch, **_):
            def sort(body):
                body["spec"].setdefault("names", []).sort()
            patch.fns.append(sort)
            patch.fns.append(lambda body: body["spec"].pop("old", None))
        """,
    "it raises and logs": """
        import logging

        log = logging.getLogger(__name__)

        class Broken(Exception):
            pass

        @kopf.on.create("kex", retries=3, errors=kopf.ErrorsMode.PERMANENT)
        def created(retry, logger, spec, **_):
            logger.info("attempt %s", retry)
            log.warning("again")
            if retry < 2:
                raise kopf.TemporaryError("later", delay=5)
            try:
                int(spec["size"])
            except ValueError as error:
                raise kopf.PermanentError(f"no number: {error}") from error
            raise Broken("never")
        """,
    "it computes with pure libraries": """
        import base64, copy, datetime, hashlib, json, re
        from pathlib import PurePath
        from urllib.parse import urlsplit

        @kopf.on.create("kex")
        def created(body, spec, started, patch, **_):
            essence = copy.deepcopy(dict(spec))
            essence["a"] = {"b": 1}
            essence["a"]["b"] = 2
            text = json.dumps(essence, sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            match = re.match(r"(\\w+)", text)
            patch.status["digest"] = base64.b64encode(digest.encode()).decode()
            patch.status["host"] = urlsplit(spec["url"]).hostname
            patch.status["word"] = match.group(1) if match else None
            patch.status["until"] = (started + datetime.timedelta(days=1)).isoformat()
            patch.status["path"] = str(PurePath("/srv") / spec["name"])
        """,
    "filters are plain functions": """
        def is_odd(spec, **_):
            return "x" in spec

        def is_large(value, spec, **_):
            return value == "yes" and spec.get("size", 0) > 3

        @kopf.on.create(
            "kex",
            labels={"big": is_large, "app": kopf.PRESENT},
            annotations={"skip": kopf.ABSENT},
            when=kopf.all_([kopf.not_(is_odd), lambda **_: True]),
        )
        def created(logger, **_):
            logger.info("seen")
        """,
    "an index and the handler that asks it": """
        @kopf.index("pods")
        def phases(namespace, name, status, **_):
            return {(namespace, name): status.get("phase")}

        @kopf.timer("kex", interval=5)
        def count(phases, patch, **_):
            running = [key for key, values in phases.items() if "Running" in values]
            patch.status["running"] = len(running)
        """,
    "a sub-handler": """
        @kopf.on.create("kex")
        def created(spec, **_):
            for item in spec.get("items", []):
                @kopf.subhandler(id=item)
                async def create_item(item=item, **_):
                    print(item)
        """,
    "an async daemon that waits for its end": """
        @kopf.daemon("kex")
        async def watch(stopped, patch, **_):
            while not stopped:
                patch.status["alive"] = True
                await stopped.wait(10)
        """,
    "admission": """
        @kopf.on.validate("kex", operation="CREATE")
        def valid(spec, warnings, **_):
            if spec.get("size") == 0:
                raise kopf.AdmissionError("too small", code=422)
            warnings.append("fine")

        @kopf.on.mutate("kex")
        def sized(patch, **_):
            patch.spec["size"] = 1
        """,
    "helpers of its own": """
        import functools

        class Plan:
            def __init__(self, size):
                self.size = size

            @property
            def double(self):
                return self.size * 2

            def total(self, *more):
                return self.double + sum(more)

        @functools.lru_cache
        def cached(size):
            return size + 1

        @kopf.on.create("kex")
        def created(spec, **kwargs):
            named = dict(name=kwargs["name"], uid=kwargs.get("uid"))
            by_name = functools.partial(cached, 3)
            sizes = sorted(spec["sizes"], key=lambda each: -each)
            return {"size": Plan(sizes[0]).total(by_name(), 1), **named}
        """,
    "a decorator of its own": """
        import functools

        def logged(fn):
            @functools.wraps(fn)
            def wrapper(*args, logger, **kwargs):
                logger.info(fn.__name__)
                return fn(*args, logger=logger, **kwargs)
            return wrapper

        @kopf.on.create("kex")
        @logged
        def created(logger, name, **_):
            return {"name": name}
        """,
    "a handler that a loop makes": """
        def handler_of(site):
            def roll_out(spec, patch, **_):
                patch.status[site] = spec.get("image")
            return roll_out

        for site in ("oslo", "rome"):
            kopf.on.create("kex", id=site)(handler_of(site))
        """,
    "constants of the module": """
        import datetime, os, pathlib, uuid
        from dataclasses import dataclass

        NAMESPACE = os.environ["HOME"].lower()
        KINDS = os.environ.get("KINDS", "a,b")
        LEVEL = os.getenv("LEVEL") or "x"
        BEGAN, RUN = datetime.datetime.now(), uuid.uuid4()
        TEXT = pathlib.Path(os.devnull).read_text()

        @dataclass
        class Config:
            namespace: str
            size: int = 3

            @classmethod
            def from_env(cls):
                return cls(namespace=os.environ["HOME"])

        CONFIG = Config.from_env()

        @kopf.on.create("kex")
        def created(spec, **_):
            kinds = [each for each in KINDS.split(",") if each != LEVEL.lower()]
            where = f"{NAMESPACE}/{CONFIG.namespace.strip()}/{TEXT.strip()}"
            text = BEGAN.isoformat() + RUN.hex
            return {"kinds": kinds, "where": where, "size": CONFIG.size, "text": text}
        """,
    "a lambda": """
        kopf.on.create("kex", id="count")(lambda spec, **_: len(spec))
        """,
}


@pytest.mark.parametrize("name", PURE_ALREADY)
def test_only_the_import_changes(name: str) -> None:
    found = report("import kopf\n" + dedent(PURE_ALREADY[name]))
    assert found.handlers
    assert [advice(each) for each in found.handlers if each.findings] == []
    assert {each.label for each in found.handlers} == {"pure already"}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with default_registry.set_aside():
        yield default_registry


@pytest.mark.parametrize("name", PURE_ALREADY)
def test_what_is_pure_already_loads_with_fnop(
    name: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = report("import kopf\n" + dedent(PURE_ALREADY[name]))
    source = "import fnop as kopf\n" + dedent(PURE_ALREADY[name])
    module = ModuleType("fnop_script_operator")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "operator.py", "exec"), vars(module))
    parts = [each for each in found.handlers if each.decorators == ("subhandler",)]
    registered = {each.definition[1] for each in registry.handlers}
    assert len(registered) == len(found.handlers) - len(parts)


IMPORTS = {
    "import kopf": "kopf",
    "import kopf as k": "k",
    "from fnop import kopf": "kopf",
    "from fnop import kopf as k": "k",
    "import fnop as kopf": "kopf",
    "import fnop.kopf as k": "k",
    "import fnop.kopf": "fnop.kopf",
}


@pytest.mark.parametrize("statement", IMPORTS)
def test_kopf_may_have_any_name(statement: str) -> None:
    name = IMPORTS[statement]
    found = only(
        f"""
        {statement}

        @{name}.on.create("kex")
        def created(body, **_):
            {name}.info(body, reason="Made")
        """
    )
    assert found.verdict is CHANGES
    assert "operator.py:6" in advice(found)


@pytest.mark.parametrize(
    ("statement", "decorator"),
    [
        ("from kopf import on", "on.create"),
        ("from kopf import on as when", "when.create"),
        ("from kopf.on import create", "create"),
        ("import kopf\non = kopf.on", "on.create"),
        ("from fnop.kopf import on", "on.create"),
        ("from kopf import timer", "timer"),
    ],
)
def test_decorators_may_be_imported(statement: str, decorator: str) -> None:
    found = only(f"{statement}\n@{decorator}('kex')\ndef handled(**_): pass\n")
    assert found.verdict is PURE


def test_handlers_of_fnop_itself_are_not_reported() -> None:
    found = report(
        """
        import fnop
        from fnop import kopf

        @fnop.on.create("kex")
        def ours(name, **_): pass

        @kopf.on.create("kex")
        def theirs(name, **_):
            return fnop.info("Made", name)
        """
    )
    assert [each.name for each in found.handlers] == ["theirs"]


# A handler's lines, its decorator's name and verdict, and a part of the advice.
RULES = [
    ('kopf.info(body, reason="Made")', CHANGES, "return fnop.info(reason, message)"),
    ("kopf.exception(body)", CHANGES, "return fnop.exception(reason, message)"),
    ("kopf.adopt(dict(spec))", CHANGES, "return fnop.adopt(child)"),
    ("kopf.label({}, {})", CHANGES, "child = fnop.label(child, labels)"),
    ("kopf.append_owner_reference({})", CHANGES, "needs the owner"),
    ("time.sleep(5)", CHANGES, "await fnop.sleep(seconds)"),
    ("await asyncio.sleep(5)", CHANGES, "await fnop.sleep(seconds)"),
    ("memo.x = 1", CHANGES, "fnop.remember(key=value)"),
    ("memo['x'] = 1", CHANGES, "fnop.remember(key=value)"),
    ("memo.setdefault('x', []).append(1)", CHANGES, "fnop.remember(key=value)"),
    ("memo.x.append(1)", CHANGES, "fnop.remember(key=value)"),
    ("setattr(memo, 'x', 1)", CHANGES, "fnop.remember(key=value)"),
    ("memo.shop.till", CHANGES, "the memo holds JSON"),
    ("spec['x'] = 1", CHANGES, "arguments are read-only"),
    ("body['spec'].update(x=1)", CHANGES, "arguments are read-only"),
    ("dict(spec)['a']['b'] = 1", CHANGES, "arguments are read-only"),
    ("type(spec) == dict", CHANGES, "write isinstance"),
    ("return [1]", CHANGES, "fnop.result([...])"),
    ("return spec['names']", CHANGES, "fnop.result([...])"),
    ("await kopf.execute(lifecycle=print)", CHANGES, "fnop.execute takes functions"),
    ("kopf.login_via_pykube", CHANGES, "write no login handler"),
    ("requests.get('http://x')", IMPURE, "it sends HTTP requests"),
    ("requests.Session().get('http://x').json()", IMPURE, "it sends HTTP requests"),
    ("client.CoreV1Api().list_pod_for_all_namespaces()", IMPURE, "await fnop.list"),
    ("client.CoreV1Api().create_namespaced_pod('a', {})", IMPURE, "fnop.adopt(child)"),
    ("client.CoreV1Api().delete_namespaced_pod('a', 'b')", IMPURE, "fnop.delete"),
    ("client.CoreV1Api().patch_namespaced_pod('a', 'b', {})", IMPURE, "fnop.patch"),
    (
        "client.CoreV1Api().connect_get_node_proxy('a')",
        IMPURE,
        "a client of Kubernetes",
    ),
    ("subprocess.run(['ls'])", IMPURE, "it starts a program"),
    ("os.system('ls')", IMPURE, "it starts a program"),
    ("open('x').read()", IMPURE, "it uses files"),
    ("pathlib.Path('x').read_text()", IMPURE, "it uses files"),
    ("(pathlib.Path('x') / 'y').parent.mkdir()", IMPURE, "it uses files"),
    ("os.path.exists('x')", IMPURE, "it uses files"),
    ("socket.create_connection(('a', 1))", IMPURE, "it uses the network"),
    ("threading.Thread(target=print).start()", IMPURE, "it uses threads"),
    ("sqlite3.connect('x')", IMPURE, "it uses a database"),
    ("boto3.client('s3')", IMPURE, "a system outside of the cluster"),
    ("random.randint(1, 6)", IMPURE, "it draws random numbers"),
    ("uuid.uuid4()", IMPURE, "it draws random numbers"),
    ("time.time()", IMPURE, "it reads the clock"),
    ("datetime.datetime.now().isoformat()", IMPURE, "it reads the clock"),
    ("f'{datetime.date.today()}'", IMPURE, "it reads the clock"),
    ("os.environ['X']", IMPURE, "it asks the environment"),
    ("os.environ.get('X')", IMPURE, "it asks the environment"),
    ("os.getenv('X')", IMPURE, "it asks the environment"),
    ("hash(str(spec))", IMPURE, "from process to process"),
    ("eval('1')", IMPURE, "it runs code that was not found"),
    ("asyncio.create_task(x())", IMPURE, "without an event loop"),
    ("await asyncio.gather(x(), x())", IMPURE, "without an event loop"),
    ("asyncio.Lock()", IMPURE, "needs no lock"),
    ("await future", IMPURE, "awaits effects alone"),
    ("STATE['x'] = 1", IMPURE, "it is kept in the process"),
    ("STATE.update(x=1)", IMPURE, "it is kept in the process"),
    ("return {'n': STATE.get('x')}", IMPURE, "functions change it"),
    ("global COUNT; COUNT = 1", IMPURE, "it changes a global variable"),
    ("memo.session.get('x')", IMPURE, "its source was not found"),
    ("memo.client.send('x')", IMPURE, "its source was not found"),
    ("acme.connect()", IMPURE, "its source was not found"),
    ("acme.Session().x.get('y')", IMPURE, "its source was not found"),
    ("missing()", IMPURE, "its source was not found"),
    ("param.work()", IMPURE, "its source was not found"),
    ("list(map(requests.get, spec['urls']))", IMPURE, "it sends HTTP requests"),
    ("sorted(spec['x'], key=acme.key)", IMPURE, "its source was not found"),
    ("[requests.get(each) for each in spec['x']]", IMPURE, "it sends HTTP requests"),
    ("(lambda: requests.get('x'))()", IMPURE, "it sends HTTP requests"),
    ("getattr(requests, 'get')('x')", IMPURE, "it sends HTTP requests"),
    ("{'a': requests.get}[spec['a']]('x')", IMPURE, "it sends HTTP requests"),
    ("[each for each in (requests.get,)][0]('x')", IMPURE, "it sends HTTP requests"),
    ("itertools.cycle([requests.get])('x')", IMPURE, "it sends HTTP requests"),
    ("next(COUNTER)", IMPURE, "it is kept in the process"),
]
PREAMBLE = """
import asyncio, datetime, itertools, os, pathlib, random, socket, sqlite3, subprocess
import threading, time, uuid
import acme, boto3, kopf, requests
from kubernetes import client

STATE, COUNT, COUNTER = {}, 0, itertools.count()
future = acme.future

async def x(): pass
def change(): STATE["y"] = 1

@kopf.on.create("kex")
async def created(body, spec, memo, param, **_):
    LINE
"""


@pytest.mark.parametrize(("line", "verdict", "part"), RULES, ids=lambda each: str(each))
def test_each_rule(line: str, verdict: Verdict, part: str) -> None:
    found = only(PREAMBLE.replace("LINE", line.replace("; ", "\n    ")))
    assert part in advice(found)
    assert found.verdict is verdict
    assert found.label == LABELS[verdict]
    places = {each.place.line for each in found.findings}
    assert places <= {15, 16}


OF_DECLARATIONS = [
    ("@kopf.on.create('kex')", "def h(*args, **kwargs): pass", "remove this parameter"),
    ("@kopf.on.create('kex')", "def h(name, /, **_): pass", "remove this parameter"),
    ("@kopf.on.create('kex')", "def h(strange, **_): pass", "no index of this name"),
    ("@kopf.on.create('kex')", "def h(**_): print(_['name'])", "rename it"),
    ("@kopf.on.update('kex')", "def h(**kw): print(kw['old'])", "name it in the sign"),
    ("@kopf.on.create('kex')", "def h(spec: str, **_): pass", "annotate fnop.Body"),
    ("@kopf.on.create('kex')", "def h(spec: Own, **_): pass", "annotate fnop.Body"),
    ("@kopf.on.event('kex')", "def h(event: kopf.RawEvent, **_): pass", "Mapping[str"),
    ("@kopf.on.event('kex')", "def h(**_): return {'a': 1}", "return None"),
    ("@kopf.on.validate('kex')", "def h(**_): return {'a': 1}", "return None"),
    (
        "@kopf.on.validate('kex')",
        "def h(patch, **_): patch.spec['a'] = 1",
        "fnop.on.mut",
    ),
    ("@kopf.index('kex')", "async def h(name, **_): return name", "write def"),
    ("@kopf.index('kex', retries=3)", "def h(name, **_): return name", "leave it out"),
    ("@kopf.daemon('kex')", "def h(**_): pass", "a daemon is an async def"),
    (
        "@kopf.daemon('kex')",
        "def h(stopped, **_): stopped.wait(5)",
        "await stopped.wait",
    ),
    (
        "@kopf.daemon('kex')",
        "async def h(stopped, **_): stopped.reason",
        "first reason",
    ),
    (
        "@kopf.daemon('kex', cancellation_polling=5)",
        "async def h(**_): pass",
        "leave it out",
    ),
    ("@kopf.on.create(**acme.KIND)", "def h(**_): pass", "were not found"),
    ("@kopf.on.create('kex', registry=R)", "def h(**_): pass", "fnop.Registry()"),
    ("@kopf.on.timer('kex', interval=1)", "def h(**_): pass", "fnop.timer"),
    ("kopf.on.create('kex')(lambda **_: None)", "", "give id="),
    ("@kopf.on.create('kex', when=maybe)", "def h(**_): pass", "write bool(...)"),
    ("@kopf.on.create('kex', when=later)", "def h(**_): pass", "write def"),
    (
        "@kopf.on.create('kex', when=lambda logger, **_: True)",
        "def h(**_): 1",
        "filter",
    ),
    (
        "@kopf.on.startup()",
        "def h(settings, **_): settings.execution.default_backoff = 5",
        "return settings.replace(default_backoff=...)",
    ),
    (
        "@kopf.on.startup()",
        "def h(settings: kopf.OperatorSettings, **_): pass",
        "fnop.Settings",
    ),
    (
        "@kopf.daemon('kex')",
        "async def h(**_):\n    try: pass\n    except asyncio.CancelledError: raise",
        "fnop.Cancelled",
    ),
]


@pytest.mark.parametrize(("decorator", "function", "part"), OF_DECLARATIONS)
def test_what_fnop_refuses_or_means_otherwise(
    decorator: str, function: str, part: str
) -> None:
    head = """
        import asyncio, acme, kopf

        class Own: ...
        R = kopf.OperatorRegistry()
        def maybe(spec, **_): return spec.get("x")
        async def later(**_): return True
        """
    found = only(f"{dedent(head)}\n{decorator}\n{function}\n")
    assert part in advice(found)
    assert found.verdict is CHANGES


def test_two_handlers_of_one_id_are_named() -> None:
    found = report(
        """
        import kopf

        @kopf.on.create("kex")
        def same(**_): pass

        @kopf.on.update("kex")
        def same(**_): pass

        @kopf.on.update("pods")
        def same(**_): pass
        """
    )
    verdicts = {each.place.line: each.verdict for each in found.handlers}
    assert verdicts == {5: CHANGES, 8: CHANGES, 11: PURE}


def test_an_index_is_declared_above_the_handlers_that_ask_for_it() -> None:
    handler, index = report(
        """
        import kopf

        @kopf.timer("kex", interval=1)
        def count(phases, patch, **_):
            patch.status["n"] = len(phases)

        @kopf.index("pods")
        def phases(name, status, **_):
            return {name: status.get("phase")}
        """
    ).handlers
    assert index.verdict is PURE
    assert advice(handler) == (
        "operator.py:5 phases: declare this index above the handler"
    )


def test_data_is_followed_into_its_items() -> None:
    found = report(
        """
        import kopf, requests

        CLIENTS = {"http": requests.Session(), "size": 3}

        @kopf.on.create("kex")
        def own(spec, **_):
            manifest = {"metadata": {"labels": {}}, "spec": {"size": spec["size"]}}
            manifest["metadata"]["labels"]["x"] = "1"
            manifest["spec"].update(more=1)
            for name, value in manifest.items():
                value["name"] = name
            first = next(filter(lambda each: each["x"], spec["list"]))
            return {"x": first.get("name"), "n": len(manifest)}

        @kopf.on.create("kex")
        def theirs(spec, **_):
            manifest = {"metadata": {"labels": spec["labels"]}}
            manifest["metadata"]["labels"]["x"] = "1"

        @kopf.on.create("kex")
        def client(spec, **_):
            for name, value in CLIENTS.items():
                value.get(name)
        """
    )
    assert [each.verdict for each in found.handlers] == [PURE, CHANGES, IMPURE]


def test_a_created_child_that_is_adopted_has_a_replacement() -> None:
    source = """
        import kopf, pykube

        @kopf.on.create("kex")
        def created(spec, **_):
            doc = {"kind": "Pod", "spec": dict(spec)}
            kopf.adopt(doc)
            api = pykube.HTTPClient(pykube.KubeConfig.from_env())
            pod = pykube.Pod(api, doc)
            pod.create()
            MORE
            return {"uid": pod.metadata["uid"]}
        """
    assert only(source.replace("MORE", "api.session.close()")).verdict is CHANGES
    assert only(source.replace("MORE", "pod.reload()")).verdict is IMPURE


# -------------------------------------------------------------- from call to call

HANDLER = """
import kopf
from helpers import work

@kopf.on.create("kex")
def created(spec, name, **kwargs):
    return {"x": work(spec, name=name)}
"""


def test_a_helper_in_another_file_is_followed() -> None:
    pure = only(HANDLER, helpers="def work(spec, name): return len(name)")
    assert pure.verdict is PURE
    impure = only(
        HANDLER,
        helpers="""
        import requests
        from deeper.more import inner
        def work(spec, name): return inner(name)
        """,
        deeper__more="""
        import requests
        def inner(name):
            return requests.get(name).text
        """,
    )
    [finding] = impure.findings
    assert impure.verdict is IMPURE
    assert str(finding.place) == "deeper/more.py:4"
    assert finding.via == ("work", "inner")


def test_a_helper_that_is_not_found_is_never_pure() -> None:
    found = only(HANDLER)
    assert (found.verdict, found.findings[0].code) == (IMPURE, "work(...)")
    assert "its source was not found" in advice(found)
    assert only(HANDLER, helpers="other = 1").verdict is IMPURE


def test_a_helper_changes_what_it_is_given() -> None:
    found = only(HANDLER, helpers="def work(spec, name):\n    spec['x'] = 1")
    assert "helpers.py:2 spec['x']: arguments are read-only" in advice(found)


def test_a_package_and_its_relative_imports_are_followed() -> None:
    files = {
        "/work/ops/__init__.py": b"",
        "/work/ops/main.py": b"import kopf\n"
        b"from . import tools\nfrom .tools import go\n"
        b"@kopf.on.create('a')\ndef one(**_): tools.go()\n"
        b"@kopf.on.create('b')\ndef two(**_): go()\n"
        b"@kopf.on.create('c')\ndef three(**_): tools.gone()\n",
        "/work/ops/tools.py": b"import os\ndef go(): os.getenv('X')\n",
    }
    found = ported(
        projects_of([HERE / "ops/main.py"], lambda path: files.get(str(path)), HERE)
    )
    assert [each.verdict for each in found.handlers] == [IMPURE] * 3
    places = [str(each.findings[0].place) for each in found.handlers]
    assert places == ["ops/tools.py:2", "ops/tools.py:2", "ops/main.py:9"]


def test_modules_of_python_are_not_files_of_the_operator() -> None:
    found = only(
        """
        import kopf, operator
        @kopf.on.create("kex")
        def created(spec, **_):
            return {"x": str(operator.itemgetter("x")(spec))}
        """
    )
    assert found.verdict is PURE


SURROUNDINGS = {
    "a closure": """
        def factory(url):
            @kopf.on.create("kex")
            def created(**_):
                return {"x": requests.get(url).text}
        factory("x")
        """,
    "a closure that keeps a state": """
        def factory():
            seen = set()
            @kopf.on.create("kex")
            def created(name, **_):
                seen.add(name)
        factory()
        """,
    "a factory that no module calls": """
        def factory(url):
            @kopf.on.create("kex")
            def created(**_):
                return {"x": requests.get(url).text}
        """,
    "a method": """
        class Shop:
            def __init__(self):
                self.session = requests.Session()
                kopf.on.create("kex")(self.created)
            def created(self, name, **_):
                self.session.get(name)
        Shop()
        """,
    "a method that keeps a state": """
        class Shop:
            def __init__(self, registry):
                self.count = 0
                kopf.on.create("kex")(self.created)
            def created(self, name, **_):
                self.count += 1
        """,
    "a partial": """
        import functools
        def created(client, name, **_):
            client.get(name)
        kopf.on.create("kex", id="x")(functools.partial(created, requests.Session()))
        """,
    "a decorator of its own": """
        def sending(fn):
            def wrapper(**kwargs):
                requests.get("x")
                return fn(**kwargs)
            return wrapper
        @kopf.on.create("kex", id="x")
        @sending
        def created(name, **_): pass
        """,
    "a decorator of a library": """
        import acme
        @kopf.on.create("kex")
        @acme.retried
        def created(name, **_): pass
        """,
    "a dataclass that holds a client": """
        from dataclasses import dataclass

        @dataclass
        class Context:
            session: requests.Session

        CONTEXT = Context(requests.Session())

        @kopf.on.create("kex")
        def created(name, **_):
            CONTEXT.session.get(name)
        """,
    "a named tuple that holds a client": """
        from typing import NamedTuple

        class Context(NamedTuple):
            session: requests.Session

        CONTEXT = Context(requests.Session())

        @kopf.on.create("kex")
        def created(name, **_):
            CONTEXT.session.get(name)
        """,
    "a class of its own": """
        class Session:
            def __enter__(self):
                return requests.get("x")
            def __exit__(self, *args): pass
        @kopf.on.create("kex")
        def created(name, **_):
            with Session(): pass
        """,
    "a class of a library": """
        import acme
        class Pod(acme.Pod): pass
        @kopf.on.create("kex")
        def created(name, **_):
            Pod(name).create()
        """,
    "a function of a patch": """
        @kopf.on.create("kex")
        def created(patch, **_):
            patch.fns.append(lambda body: requests.get("x"))
        """,
    "an argument's default that keeps a state": """
        @kopf.on.create("kex")
        def created(name, cache={}, **_):
            cache[name] = 1
        """,
    "an object at the top of the module": """
        class Box:
            def __getitem__(self, key):
                return requests.get(key)
        BOX = Box()
        @kopf.on.create("kex")
        def created(name, **_):
            return {"x": str(BOX[name])}
        """,
    "a lock at the top of the module": """
        import threading
        LOCK = threading.Lock()
        @kopf.on.create("kex")
        def created(name, **_):
            with LOCK: pass
        """,
    "a counter at the top of the module": """
        import collections
        COUNTS = collections.Counter()
        @kopf.on.create("kex")
        def created(name, **_):
            COUNTS[name] += 1
        """,
    "a name of a library's star import": """
        from acme import *
        @kopf.on.create("kex")
        def created(name, **_):
            connect()
        """,
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_surrounds_a_handler_is_judged(name: str) -> None:
    found = only("import kopf, requests\n" + dedent(SURROUNDINGS[name]))
    assert found.verdict is IMPURE, advice(found)


def test_an_impure_handler_is_at_the_top_of_a_module() -> None:
    closure = only("import kopf, requests\n" + dedent(SURROUNDINGS["a closure"]))
    assert "at the top level of a module: move it" in advice(closure)
    plain = only(
        "import kopf, requests\n@kopf.on.create('a')\ndef h(**_): requests.get()"
    )
    assert "top level" not in advice(plain)


def test_an_impure_handler_may_sleep_as_it_does() -> None:
    source = """
        import asyncio, kopf, requests
        @kopf.on.create("kex")
        async def created(**_):
            await asyncio.sleep(1)
            requests.get("x")
        """
    assert "fnop.sleep" not in advice(only(source))
    assert "fnop.sleep" in advice(only(source.replace("requests.get", "print")))


def test_an_impure_handler_has_no_settings_and_no_sub_handlers() -> None:
    startup = only(
        """
        import kopf, requests
        @kopf.on.startup()
        def started(settings, **_):
            requests.get("x")
        """
    )
    assert "gets no settings" in advice(startup)
    parent, part = report(
        """
        import kopf, requests
        @kopf.on.create("kex")
        def parent(**_):
            requests.get("x")
            @kopf.subhandler(id="part")
            def part(**_): pass
        """
    ).handlers
    assert "declares no sub-handlers" in advice(parent)
    assert part.verdict is PURE


def test_sub_handlers_are_judged_by_themselves() -> None:
    found = report(
        """
        import functools, kopf, requests

        def work(name, url, **_):
            requests.get(url)

        @kopf.on.create("kex")
        async def parent(spec, **_):
            for url in spec["urls"]:
                kopf.register(functools.partial(work, url=url), id=url)
            await kopf.execute(fns={"x": part})

        async def part(patch, **_):
            patch.status["x"] = 1
        """
    )
    verdicts = {each.name: each.verdict for each in found.handlers}
    assert verdicts == {"work": IMPURE, "parent": PURE, "part": PURE}


@pytest.mark.parametrize(
    "call",
    [
        "kopf.register(fn=make(), id='x')",
        "kopf.register(id='x', fn=functools.partial(work, url='x'))",
        "await kopf.execute(fns=memo.parts)",
        "await kopf.execute(memo['parts'])",
        "await kopf.execute(fns={'x': PARTS[spec['kind']]})",
        "await kopf.execute(fns=[work])",
    ],
)
def test_sub_handlers_that_may_act_are_never_left_out(call: str) -> None:
    found = report(
        f"""
        import functools, kopf, requests
        from elsewhere import PARTS, make

        def work(url="x", **_):
            requests.get(url)

        @kopf.on.create("kex")
        async def parent(spec, memo, **_):
            {call}
        """
    )
    parts = [each for each in found.handlers if "on.create" not in each.decorators]
    assert [each.verdict for each in parts] == [IMPURE]


@pytest.mark.parametrize("where", ["index", "filter"])
def test_an_index_and_a_filter_cannot_wait(where: str) -> None:
    options = {"index": ("@kopf.index('kex')", ""), "filter": ("", ", when=slow")}
    decorator, option = options[where]
    found = report(
        f"""
        import kopf, time
        {decorator}
        def slow(name, **_):
            time.sleep(1)
            return True
        @kopf.on.create("kex"{option})
        def created(**_): pass
        """
    ).handlers[0]
    assert found.label == "impure, but cannot have impure=True"
    assert "cannot wait" in advice(found)
    assert "await" not in advice(found)


def test_decorators_that_only_a_run_chooses_are_listed(tmp_path: Path) -> None:
    chosen = """
    import kopf
    HOOKS = []
    for hook in HOOKS:
        getattr(kopf.on, hook.event)(*hook.args)(hook.fn)
    """
    write(tmp_path, "operator.py", dedent(chosen))
    done = port(tmp_path, "operator.py")
    assert done.status == 1
    assert "operator.py:5 chooses a decorator of Kopf" in done.err
    write(tmp_path, "operator.py", OPERATOR + dedent(chosen).replace("import kopf", ""))
    done = port(tmp_path, "operator.py")
    title = "Decorators that only a run chooses; this report lacks their handlers:"
    assert f"{title}\n  operator.py:" in done.out


def test_handlers_that_run_outside_may_act() -> None:
    login, probe, clean, changed = report(
        """
        import kopf, requests, time
        @kopf.on.login()
        def login(**_):
            return kopf.ConnectionInfo(server="x", token=requests.get("x").text)
        @kopf.on.probe()
        def probe(**_):
            time.sleep(1)
            return time.time()
        @kopf.on.probe()
        def clean(**_):
            return [1]
        @kopf.on.probe(retries=3)
        def changed(**_):
            return 1
        """
    ).handlers
    outside = login, probe, clean
    assert {each.label for each in outside} == {"impure, and stays as it is"}
    assert [each.findings for each in outside] == [(), (), ()]
    assert changed.label == "impure, and stays so after changes"
    assert "leave it out" in advice(changed)
    assert {each.verdict for each in (*outside, changed)} == {IMPURE}


STARTUPS = {
    "it sets both": (
        "global CLIENT; CLIENT = 1; settings.posting.enabled = False",
        "split it: the settings are pure, the rest has impure=True",
        "let another startup handler return them",
    ),
    "it does not use its settings": (
        "global CLIENT; CLIENT = 1",
        "keep impure=True",
        "leave out the argument",
    ),
    "its settings alone": (
        "settings.posting.enabled = False",
        "pure after changes",
        "fnop has no such setting",
    ),
    "a client in the memo": (
        "memo.client = requests.Session()",
        "keep impure=True",
        "the memo holds JSON, and not such an object: make it at the top of a module",
    ),
    "a number in the memo": (
        "memo.size = 1",
        "pure after changes",
        "return fnop.remember(key=value)",
    ),
}


@pytest.mark.parametrize("name", STARTUPS)
def test_the_advice_about_a_startup_handler_agrees_with_its_label(name: str) -> None:
    body, label, part = STARTUPS[name]
    found = only(
        f"""
        import kopf, requests
        CLIENT = None
        @kopf.on.startup()
        def h(settings, memo, **_):
            {body}
        """
    )
    assert (found.label, part in advice(found)) == (label, True), advice(found)
    if "impure" not in label:
        assert "impure" not in advice(found)


def test_the_settings_of_another_impure_handler_come_from_a_pure_one() -> None:
    found = only(
        """
        import kopf, requests
        @kopf.on.cleanup()
        def h(settings, **_):
            requests.get(settings.x)
        """
    )
    assert "let a pure one pass them to fnop.call" in advice(found)
    assert found.label == "keep impure=True"


def test_filters_and_indices_cannot_be_impure() -> None:
    index, handler = report(
        """
        import kopf, requests
        @kopf.index("kex")
        def known(name, **_):
            return requests.get(name).text
        @kopf.on.create("kex", when=lambda name, **_: bool(requests.get(name)))
        def created(**_): pass
        """
    ).handlers
    assert index.label == handler.label == "impure, but cannot have impure=True"
    assert "an index cannot be impure" in advice(index)
    assert "a filter cannot be impure" in advice(handler)


def test_several_decorators_are_one_handler() -> None:
    found = only(
        """
        import kopf
        @kopf.on.create("kex")
        @kopf.on.resume("kex")
        def handled(**_): pass
        """
    )
    assert found.decorators == ("on.create", "on.resume")


def test_a_recursion_ends() -> None:
    found = only(
        """
        import kopf
        def even(n): return n == 0 or odd(n - 1)
        def odd(n): return n != 0 and even(n - 1)
        @kopf.on.create("kex")
        def created(spec, **_):
            return {"even": bool(even(spec["n"]))}
        """
    )
    assert found.verdict is PURE


def test_code_that_is_nested_too_deeply_is_not_pure() -> None:
    terms = " + ".join(["1"] * 600)
    found = only(
        f"import kopf\n@kopf.on.create('kex')\ndef created(**_):\n    x = {terms}\n"
    )
    assert found.verdict is IMPURE
    assert "nested too deeply" in advice(found)


# ------------------------------------------------------------------------- names


def test_names_without_an_equivalent_have_their_lines() -> None:
    found = report(
        """
        import kopf
        import kopf._cogs.structs.bodies
        from kopf import DaemonStopped as Ended, LogFormat, TemporaryError
        from kopf._core.actions.execution import Retry

        kopf.configure(verbose=True)
        kopf.configure(debug=LogFormat.FULL)

        @kopf.on.create("kex")
        def created(body: kopf.Body, **_):
            kopf.info(body, reason="x")
        """
    )
    assert [(e.name, e.sort, [p.line for p in e.places]) for e in found.names] == [
        ("DaemonStopped", "missing", [4]),
        ("LogFormat", "missing", [4]),
        ("configure", "missing", [7, 8]),
        ("info", "other", [12]),
        ("_cogs.structs.bodies", "private", [3]),
        ("_core.actions.execution.Retry", "private", [5]),
    ]


@pytest.mark.parametrize("name", sorted({*kopf_names.__all__, *on.__all__}))
def test_each_name_of_kopf_exists_or_has_advice(name: str) -> None:
    path = name if name in kopf_names.__all__ else f"on.{name}"
    assert names.advice_for(path) != "fnop has no such name"


def test_each_setting_has_a_replacement() -> None:
    page = (ROOT / "docs/reference/kopf-settings.md").read_text("utf-8")
    settings = {e for e in names.SETTINGS if "." not in e}
    for each in settings - {"batching"}:
        assert f"`{each}." in page
    assert names.advice_for_setting("unknown.x").startswith("settings are one flat")


@pytest.mark.parametrize(
    "line",
    [
        "from parts import changes",
        "from parts import changes as others",
        "import parts.changes",
        "from parts.changes import made",
    ],
)
@pytest.mark.parametrize("is_package", [True, False])
def test_an_imported_module_has_handlers_too(line: str, is_package: bool) -> None:
    inner = """
        import kopf

        @kopf.on.create("kex")
        def made(**_): pass
    """
    others = {"parts____init__": ""} if is_package else {}
    found = report(line, parts__changes=inner, **others)
    assert [each.name for each in found.handlers] == ["made"]


MADE = """
    import kopf

    @kopf.on.create("kex")
    def made(**_): pass
    """


@pytest.mark.parametrize(
    "line",
    [
        "importlib.import_module('parts.changes')",
        "importlib.import_module(name='parts.changes')",
        "importlib.import_module('.changes', 'parts')",
        "importlib.import_module('.parts.changes', __package__)",
        "from importlib import import_module as load; load('parts.changes')",
        "import importlib as lib; lib.import_module('parts.changes')",
        "__import__('parts.changes')",
        "def begin(): importlib.import_module('parts.changes')",
    ],
)
def test_a_module_that_a_call_imports_by_its_name_is_read(line: str) -> None:
    files = {
        HERE / "all/__init__.py": b"",
        HERE / "all/main.py": f"import importlib\n{line}".encode(),
        HERE / "all/parts/changes.py": dedent(MADE).encode(),
        HERE / "parts/changes.py": dedent(MADE).encode(),
    }
    found = ported(projects_of([HERE / "all/main.py"], files.get, HERE))  # type: ignore[arg-type]
    assert [each.name for each in found.handlers] == ["made"]
    assert found.loads == ()


def test_a_handler_may_use_a_module_that_a_call_imports() -> None:
    source = """
        import importlib, kopf

        parts = importlib.import_module("parts")

        @kopf.on.create("kex")
        def made(spec, **_):
            return {"size": parts.size_of(spec)}
        """
    pure = only(source, parts="def size_of(spec): return str(spec['size'])")
    assert pure.verdict is PURE, advice(pure)
    acts = only(source, parts="import requests\ndef size_of(_): requests.get('x')")
    assert acts.verdict is IMPURE
    assert "parts.py:2" in advice(acts)


@pytest.mark.parametrize(
    "line",
    [
        "for each in pkgutil.iter_modules(['x']): importlib.import_module(each.name)",
        "importlib.import_module(f'parts.{name}')",
        "importlib.import_module('.changes', package)",
        "importlib.util.spec_from_file_location('x', 'y.py')",
        "runpy.run_path('parts/changes.py')",
        "finder.find_module(name).load_module(name)",
        "__import__(name)",
    ],
)
def test_the_lines_that_load_other_modules_are_listed(line: str) -> None:
    found = report(f"import importlib, pkgutil, runpy\n{line}", parts__changes=MADE)
    assert found.handlers == ()
    assert [str(each.place) for each in found.loads] == ["operator.py:2"]


def test_a_library_that_a_call_imports_is_no_module_of_the_operator() -> None:
    found = report("import importlib\nimportlib.import_module('requests')")
    assert (found.handlers, found.loads) == ((), ())


def test_a_module_of_the_same_package_has_handlers_too() -> None:
    files = {
        HERE / "parts/__init__.py": b"",
        HERE / "parts/main.py": b"from . import changes",
        HERE / "parts/changes.py": b"import kopf\nkopf.on.create('k')(lambda **_: 1)",
    }
    found = ported(projects_of([HERE / "parts/main.py"], files.get, HERE))  # type: ignore[arg-type]
    assert len(found.handlers) == 1


# ---------------------------------------------------------------------- operators

# By hand: what each of these handlers does, line by line.
PURE_IN_REPLICAS = {
    "01-pages": {"retitled"},
    "02-tenants": {"provision", "paused", "welcome", "<lambda>"},
    "03-channels": set[str](),
    "04-backups": {"rest", "checked", "on_copy"},
    "05-shelves": {"by_colour", "crimes", "signed", "on_shelf", "pulped"},
    "06-accounts": set[str](),
    "07-gates": {
        *("with_defaults", "keys_in_order", "is_wide", "may_go", "no_trolls"),
        "built",
    },
    "08-rollouts": {"pause", "conditions", "deployed", "image_changed"},
    "13-records": {
        *("services_by_name", "hosts", "watched"),
        *("zone_added", "zone_changed", "serial_changed"),
    },
    "14-certificates": {"audited", "renewal_seen"},
    "15-servers": set[str](),
    "16-mailboxes": {"broken"},
    "09-mirrors": {"relabelled", "copy_event"},
    "10-databases": {"upgrade"},
    "11-workflows": {
        *("check_version", "cleanup_fn", "broken_cleanup", "audit_fn"),
        *("expire", "once_broken"),
    },
    "12-feeds": {"busy"},
    # Its handlers are in modules that it finds in a folder when it starts.
    "17-fleets": {"report"},
    "18-realms": {
        *("edict", "bury", "workload", "shifted", "idle", "town_seen", "broken_seal"),
    },
    "19-vaults": {"emptied", "never"},
    "20-sensors": {
        *("modes", "unlimited", "impatient", "count", "quiet", "lonely", "probe_all"),
    },
    "21-relays": {"Station.tune"},
    "22-orchards": {
        *("trees_of", "fence", "gate", "dig", "soil", "repaint", "over", "red", "off"),
        *("clip", "saw", "stumps"),
    },
    "23-estates": {"deeds_lost"},
    "24-hubs": set(),
    "25-harbours": {
        *("old_version", "gauge", "close", "dredged", "cast_off", "piloted"),
        *("berths_of", "chart", "lit", "leave"),
    },
    "26-kitchens": {
        *("throw", "warm", "back", "cook_course", "late", "bin_it", "changed"),
        *("Cook.wash", "plate"),
    },
    "27-observatories": {"repoint", "turn", "expose", "dome", "close_dome"},
}


def read(path: PurePosixPath) -> bytes | None:
    file = Path(path)
    return file.read_bytes() if file.is_file() else None


@pytest.mark.parametrize("folder", REPLICAS, ids=lambda folder: folder.name)
def test_what_is_pure_in_the_replicas(folder: Path) -> None:
    file = next(folder.glob("*/main.py"), folder / "operator.py")
    path = PurePosixPath(file)
    found = ported(projects_of([path], read, PurePosixPath(folder)))  # type: ignore[arg-type]
    pure = {each.name for each in found.handlers if each.verdict is PURE}
    assert pure == PURE_IN_REPLICAS[folder.name]


# ------------------------------------------------------------------------ command

OPERATOR = """
import kopf

@kopf.on.create("kex")
def created(body, **_):
    kopf.info(body, reason="Made")

@kopf.on.delete("kex")
def deleted(**_): pass
"""


def port(folder: Path, *args: str) -> Done:
    return fnop("port", *args, folder=folder)


def test_the_command_prints_each_handler_with_its_lines(tmp_path: Path) -> None:
    write(tmp_path, "operator.py", OPERATOR)
    done = port(tmp_path, "operator.py")
    assert (done.status, done.err) == (0, "")
    first, second, *_ = done.out.splitlines()
    assert first == "operator.py:5: created (on.create): pure after changes"
    assert second.startswith("  operator.py:6: kopf.info(...): it returns an effect")
    assert "operator.py:9: deleted (on.delete): pure already" in done.out
    assert (
        "Names with another meaning in fnop:\n  kopf.info (operator.py:6)" in done.out
    )
    summary = "2 handlers: 1 pure already, 1 pure after changes, 0 impure"
    assert done.out.splitlines()[-1] == summary


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/port-a-kopf-operator.md").read_text("utf-8")
    source, shown = re.findall(r"```(?:py|text)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "operator.py").write_text(source)
    assert port(tmp_path, "operator.py").out == shown


def test_the_command_prints_the_lines_that_load_modules(tmp_path: Path) -> None:
    load = "import importlib\nfor e in ['x']: importlib.import_module(e)\n"
    write(tmp_path, "operator.py", load + OPERATOR)
    write(tmp_path, "empty.py", load)
    (tmp_path / "x.py").write_text(OPERATOR)
    shown = (
        "Modules that only a run finds; name their files, too, if they have handlers:\n"
        "  operator.py:2: importlib.import_module(...)"
    )
    assert shown in port(tmp_path, "operator.py").out
    found = json.loads(port(tmp_path, "operator.py", "-o", "json").out)
    call = {"place": "operator.py:2", "code": "importlib.import_module(...)"}
    assert found["loads"] == [call]
    assert "x.py:5: created" in port(tmp_path, "empty.py", "x.py").out
    refused = port(tmp_path, "empty.py")
    assert refused.status == 1
    assert "empty.py:2 loads modules that only a run finds: name" in refused.err


def test_the_command_prints_json(tmp_path: Path) -> None:
    write(tmp_path, "operator.py", OPERATOR)
    done = port(tmp_path, "operator.py", "-o", "json")
    found = json.loads(done.out)
    assert found["counts"] == {"pure": 1, "changes": 1, "impure": 0}
    created, deleted = found["handlers"]
    assert (created["verdict"], created["line"]) == ("changes", 5)
    assert created["findings"][0]["code"] == "kopf.info(...)"
    assert deleted["findings"] == []
    assert found["names"][0]["places"] == ["operator.py:6"]


def test_the_command_takes_several_files_and_runs_none(tmp_path: Path) -> None:
    write(tmp_path, "one.py", "raise SystemExit(5)\n" + OPERATOR)
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", "one.py", OPERATOR)
    done = port(tmp_path, "one.py", "sub/one.py")
    assert done.status == 0
    assert "sub/one.py:5: created" in done.out
    assert "4 handlers" in done.out


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import kopf\n)\n", "fnop: operator.py:2: this is not Python: unmatched ')'"),
        ("import kopf\n", "fnop: no handlers of Kopf in operator.py"),
        ("import helper\n", "fnop: helper.py:1: this is not Python"),
    ],
)
def test_without_a_report_the_status_is_1(
    tmp_path: Path, source: str, complaint: str
) -> None:
    write(tmp_path, "helper.py", "def (")
    write(tmp_path, "operator.py", source)
    done = port(tmp_path, "operator.py")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(complaint)


@pytest.mark.parametrize("args", [(), ("missing.py",), ("operator.py", "-o", "yaml")])
def test_a_wrong_call_has_the_status_2(tmp_path: Path, args: tuple[str, ...]) -> None:
    write(tmp_path, "operator.py", OPERATOR)
    assert port(tmp_path, *args).status == 2


def test_a_file_that_cannot_be_parsed_is_named() -> None:
    with pytest.raises(SourceProblem, match=r"^operator\.py:1: "):
        report("x = '\0'")


def test_labels_are_for_all_verdicts() -> None:
    assert {*LABELS} == {*Verdict}
