"""The command line: its output and streams, its exit statuses, and bad input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import fnop as fnop_api
from fnop.adapters.cli.main import main
from fnop.core.handlers.declare.registry import default_registry
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.commands import (
    MINIMAL,
    Done,
    begun,
    closed_port,
    fnop,
    heard,
    kubeconfig,
    manifest,
    write,
)
from tests.effort import calls_in
from tests.patience import patience
from tests.simulations import DEFINITION, ROOT, Scenario, example


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a good operator and a good manifest."""
    write(tmp_path, "operator.py", MINIMAL)
    manifest(tmp_path, "object.yaml", DEFINITION, example())
    return tmp_path


EXAMPLES = ROOT / "examples"


def refused(done: Done, status: int, *words: str) -> None:
    """One clear sentence, and nothing else that could be taken for a result."""
    assert done.status == status, done
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.complaint.startswith(("fnop: ", "Error: "))
    for word in words:
        assert word in done.complaint


# ---------------------------------------------------------------- good input


def test_objects_go_to_stdout_and_logs_to_stderr(folder: Path) -> None:
    done = fnop("run", "operator.py", "--simulate", "object.yaml", folder=folder)
    assert done.status == 0, done
    (found,) = done.documents
    assert found["kind"] == "FnopExample"
    assert found["status"]["created"] == {"seen": "example-1"}
    assert "created succeeded" in done.err


def test_several_manifests_follow_simulate(folder: Path) -> None:
    manifest(folder, "second.yaml", example("example-2"))
    done = fnop(
        *("run", "--simulate", "object.yaml", "second.yaml", "-q", "operator.py"),
        folder=folder,
    )
    assert done.status == 0, done
    names = [each["metadata"]["name"] for each in done.documents]
    assert (sorted(names), done.err) == (["example-1", "example-2"], "")


def test_a_manifest_can_come_from_stdin(folder: Path) -> None:
    text = (folder / "object.yaml").read_text()
    done = fnop("run", "operator.py", "--simulate", "-", folder=folder, stdin=text)
    assert (done.status, len(done.documents)) == (0, 1), done


def test_a_key_that_a_manifest_has_twice_is_told(folder: Path) -> None:
    text = (folder / "object.yaml").read_text()
    write(folder, "twice.yaml", f"{text}\nkind: FnopExample\n")
    done = fnop("run", "operator.py", "--simulate", "twice.yaml", folder=folder)
    assert done.status == 0, done
    assert "the key 'kind' comes twice; the last one counts" in done.err


def test_unknown_fields_of_a_manifest_are_told(folder: Path) -> None:
    known = example()
    meta = {**known["metadata"], "lables": {"a": "b"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "b", "imag": "c"}]},
    }
    odd = ({**known, "metadata": meta, "spek": {}}, {**secret, "dta": {}}, pod)
    manifest(folder, "odd.yaml", DEFINITION, *odd)
    done = fnop("run", "operator.py", "--simulate", "odd.yaml", "-q", folder=folder)
    assert done.status == 0, done
    assert done.err.splitlines() == [
        'fnop: FnopExample example-1: unknown field "metadata.lables"',
        'fnop: FnopExample example-1: unknown field "spek"',
        'fnop: Secret s: unknown field "dta"',
        'fnop: Pod p: unknown field "spec.containers[0].imag"',
    ]


def test_every_option_has_a_variable(folder: Path) -> None:
    variables = {
        "FNOP_RUN_SIMULATE": "object.yaml",
        "FNOP_RUN_NAME": "billing",
        "FNOP_RUN_LOG_FORMAT": "json",
    }
    done = fnop("run", "operator.py", folder=folder, variables=variables)
    assert done.status == 0, done
    assert "fnop.dev/billing" in done.documents[0]["status"]
    assert all(isinstance(json.loads(line), dict) for line in done.err.splitlines())


def test_an_operator_may_be_named_as_a_module(folder: Path) -> None:
    (folder / "operator.py").rename(folder / "billing_operator.py")
    done = fnop(
        *("run", "-m", "billing_operator", "--simulate", "object.yaml"), folder=folder
    )
    assert done.status == 0, done


@pytest.mark.parametrize("command", [(), ("run",), ("replay",)])
def test_help_reads_well(command: tuple[str, ...], tmp_path: Path) -> None:
    done = fnop(*command, "--help", folder=tmp_path)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(done.out.split())
    assert "Kubernetes operators" in text or "Exit status: 0" in text


@pytest.mark.parametrize("name", main.list_commands(click.Context(main)))
def test_the_line_of_a_command_begins_as_its_own_help(name: str) -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    line = re.search(rf"^  {name} {{2,}}(\w+) .*\.$", shown, re.MULTILINE)
    command = main.get_command(click.Context(main), name)
    assert line is not None
    assert command is not None
    assert (command.help or "").startswith(f"{line[1]} ")


def test_the_help_imports_no_command() -> None:
    """It is asked for often, and to import all commands takes three times as long."""
    code = """
import sys
from fnop.adapters.cli.main import main
main(["--help"], standalone_mode=False)
print(*[name for name in sys.modules if "fnop.adapters.cli." in name])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "fnop.adapters.cli.main"


# -------------------------------------------------------------- how it ended


def test_handlers_that_failed_for_good_are_exit_status_1(folder: Path) -> None:
    case = EXAMPLES / "03-exceptions"
    done = fnop(
        *("run", case / "example.py", "--simulate", case / "object.yaml"),
        folder=folder,
    )
    assert done.status == 1
    assert done.complaint == "fnop: 3 handlers failed for good; see the log above"
    assert done.documents[0]["status"]["works_at_last"] == {"attempts": 4}


FOR_EVER = """
import fnop

@fnop.on.create("fnopexamples")
def created():
    raise fnop.TemporaryError("not yet", delay=10)
"""


def test_what_does_not_settle_is_exit_status_3(folder: Path) -> None:
    write(folder, "for_ever.py", FOR_EVER)
    done = fnop(
        *("run", "for_ever.py", "--simulate", "object.yaml", "--for", "60s"),
        folder=folder,
    )
    assert done.status == 3
    assert "not settled after 60 s" in done.complaint
    assert len(done.documents) == 1
    assert re.search(r"again in 10 s: \S+ not yet \([67] times in all\)\n", done.err)


STARTUP = """
import fnop

@fnop.on.startup(errors=fnop.ErrorsMode.PERMANENT)
def started():
    raise RuntimeError("no licence")

@fnop.on.create("fnopexamples")
def created(): ...
"""


def test_a_failing_startup_is_exit_status_1(folder: Path) -> None:
    write(folder, "unlicensed.py", STARTUP)
    done = fnop("run", "unlicensed.py", "--simulate", "object.yaml", folder=folder)
    assert done.status == 1
    assert "startup handler started failed for good: RuntimeError: no lic" in done.err
    assert "a startup handler failed" in done.complaint


CALLING = """
import fnop

def price_of(item):
    return 42

@fnop.on.create("fnopexamples", retries=1)
async def created(name):
    return {"price": await fnop.call(price_of, item=name)}
"""


@pytest.mark.parametrize(
    ("options", "status", "price"),
    [
        pytest.param((), 1, None, id="refused"),
        pytest.param(("--real-calls",), 0, 42, id="for real"),
        pytest.param(("--calls", "models.py"), 0, 9, id="answered by a model"),
        pytest.param(("--calls", "exact.py"), 0, 9, id="by its whole name"),
        pytest.param(("--calls", "stem.py"), 0, 9, id="by the name of its file"),
        pytest.param(("--calls", "bare.py"), 0, 9, id="by its own name"),
        pytest.param(("--calls", "both.py"), 0, 9, id="CALLS before functions"),
        pytest.param(
            ("--real-calls", "--calls", "models.py"), 0, 9, id="for real but a model"
        ),
        pytest.param(
            ("--real-calls", "--calls", "stem.py"), 0, 9, id="for real but by its file"
        ),
    ],
)
def test_calls_are_answered_as_asked_for(
    options: tuple[str, ...], status: int, price: int | None, folder: Path
) -> None:
    write(folder, "calling.py", CALLING)
    write(folder, "models.py", "def price_of(item): return len(item)")
    exact = "CALLS = {'fnop_script_calling:price_of': lambda item: len(item)}"
    write(folder, "exact.py", exact)
    write(folder, "stem.py", "CALLS = {'calling:price_of': lambda item: len(item)}")
    bare = "CALLS = {'price_of': lambda item: len(item)}"
    write(folder, "bare.py", bare)
    write(folder, "both.py", f"def price_of(item): return 0\n{bare}")
    done = fnop(
        *("run", "calling.py", "--simulate", "object.yaml", *options), folder=folder
    )
    assert done.status == status, done
    assert "no call was answered" not in done.err
    found = done.documents[0].get("status", {}).get("created")
    assert found == (None if price is None else {"price": price})
    assert ("is not simulated" in done.err) is (price is None)


@pytest.mark.parametrize(
    ("models", "words"),
    [
        pytest.param(
            "CALLS = {'caling:price_of': lambda item: 1}",
            "the model caling:price_of (did you mean calling:price_of?)",
            id="the file",
        ),
        pytest.param(
            "CALLS = {'calling:prise_of': lambda item: 1}",
            "the model calling:prise_of (did you mean calling:price_of?)",
            id="the function",
        ),
        pytest.param(
            "CALLS = {'prise_of': lambda item: 1}",
            "the model prise_of (did you mean price_of?)",
            id="a function's bare name",
        ),
        pytest.param(
            "def prise_of(item): return 1",
            "the model prise_of (did you mean price_of?)",
            id="a function of another name",
        ),
        pytest.param(
            "def price_of(item): return 1\ndef weigh(item): return 2",
            "the model weigh",
            id="one beside another",
        ),
        pytest.param(
            "from json import loads\n"
            "def half(number): return number / 2\n"
            "def price_of(item): return half(8)",
            "",
            id="what a model uses is none",
        ),
        pytest.param(
            "def nine(item): return 9\nCALLS = {'calling:price_of': nine}",
            "",
            id="a function of another name that is mapped",
        ),
    ],
)
def test_models_that_answer_nothing_are_told_in_a_line(
    models: str, words: str, folder: Path
) -> None:
    write(folder, "calling.py", CALLING)
    (folder / "models.py").write_text(models)
    command = ("run", "calling.py", "--simulate", "object.yaml", "--calls", "models.py")
    done = fnop(*command, folder=folder)
    told = [each for each in done.err.splitlines() if "no call was answered" in each]
    assert told == ([f"fnop: no call was answered by {words}"] if words else [])
    assert done.status == ("did you mean" in words), done


def test_calls_that_are_no_mapping_are_refused(folder: Path) -> None:
    write(folder, "calling.py", CALLING)
    write(folder, "models.py", "CALLS = ['calling:price_of']")
    command = ("run", "calling.py", "--simulate", "object.yaml", "--calls", "models.py")
    refused(
        fnop(*command, folder=folder),
        1,
        "is not a mapping from functions, 'module:name'",
    )


WAITING = """
import fnop

@fnop.on.create("fnopexamples")
async def created():
    for _ in range(60):
        await fnop.sleep({seconds})
"""


def cost(folder: Path, name: str, source: str) -> int:
    """The calls of functions in a simulated run, the second one of its kind."""
    costs = []
    for number in range(2):
        file = write(folder, f"{name}_{number}.py", source)
        given = ["run", str(file), "--simulate", str(folder / "object.yaml")]
        with default_registry.set_aside():
            costs.append(calls_in(partial(_invoked, given)))
    return costs[1]


def _invoked(given: list[str]) -> None:
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0, done.output


def test_waiting_costs_nothing(folder: Path) -> None:
    """An hour in sixty naps against the same naps of no length."""
    hour = cost(folder, "hour", WAITING.format(seconds=60))
    assert hour <= 1.5 * cost(folder, "naps", WAITING.format(seconds=0))


RETRYING = """
import fnop

@fnop.on.create("fnopexamples")
def created(retry):
    if retry < 60:
        raise fnop.TemporaryError("not yet", delay=60)
"""


def test_an_hour_of_retries_costs_next_to_nothing(folder: Path) -> None:
    retries = cost(folder, "retrying", RETRYING) - cost(folder, "plain", MINIMAL)
    assert retries <= 60 * 3_500


def test_a_simulation_never_loads_a_client(folder: Path) -> None:
    done = fnop(
        *("run", "operator.py", "--simulate", "object.yaml"),
        folder=folder,
        python=("-X", "importtime"),
    )
    assert done.status == 0
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in done.err.splitlines()
        if line.startswith("import time:")
    }
    assert "fnop" in loaded
    assert loaded.isdisjoint(("aiohttp", "kubernetes_asyncio", "uvloop"))


# ------------------------------------------------------- bad input: operators


OPERATORS = {
    "no handlers": ("import fnop", 2, ("declares no handlers", "@fnop.on.create")),
    "Kopf's handlers": (
        "import sys\nsys.modules['kopf'] = sys",
        2,
        (
            "declares no handlers",
            "check, plan and replay take it with --kopf",
        ),
    ),
    "unknown argument": (
        "import fnop\n@fnop.on.create('pods')\ndef f(specs): ...",
        1,
        ("unknown argument 'specs'", "did you mean 'spec'?"),
    ),
    "unknown option": (
        "import fnop\n@fnop.on.create('pods', retry=3)\ndef f(): ...",
        1,
        ("no option retry=", "did you mean retries=?"),
    ),
    "unknown decorator": (
        "import fnop\n@fnop.on.creation('pods')\ndef f(): ...",
        1,
        ("fnop.on has no decorator 'creation'",),
    ),
    "syntax error": ("def f(:", 1, ("operator.py:1", "invalid syntax")),
    "error at import": ("import fnop\n1 / 0", 1, ("operator.py:2", "division by zero")),
    "a decorator as a module": (
        "from fnop.on import create",
        1,
        ("'fnop.on'", "fnop.on is not a module: write import fnop, and fnop.on.NAME"),
    ),
    "a part that there is not": (
        "import fnop.handlers",
        1,
        ("'fnop.handlers'", "fnop has no such part; write import fnop"),
    ),
    "Kopf, which is not installed": (
        "import sys\nsys.modules['kopf'] = None\nimport kopf",
        1,
        ("operator.py:3", "take it with --kopf"),
    ),
    "missing library": ("import nowhere_to_be_found", 1, ("nowhere_to_be_found",)),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_a_bad_operator(case: str, folder: Path) -> None:
    text, status, words = OPERATORS[case]
    write(folder, "operator.py", text)
    done = fnop("run", "operator.py", "--simulate", "object.yaml", folder=folder)
    refused(done, status, *words)


def test_a_module_that_does_not_exist(folder: Path) -> None:
    done = fnop("run", "-m", "nowhere", "--simulate", "object.yaml", folder=folder)
    refused(done, 1, "nowhere")


INVALID_EFFECT = """
import fnop

@fnop.on.create("fnopexamples", retries=2, backoff=1)
def created():
    return fnop.event("", "an Event needs a reason")
"""


def test_an_invalid_effect_fails_its_handler(folder: Path) -> None:
    write(folder, "invalid.py", INVALID_EFFECT)
    done = fnop("run", "invalid.py", "--simulate", "object.yaml", folder=folder)
    assert done.status == 1
    assert "failed for good after 2 attempts: ValueError: " in done.err
    assert done.complaint == "fnop: 1 handler failed for good; see the log above"


# ---------------------------------------------------- bad input: command line


USAGE = {
    "no file": (("run",), "name the operator's file"),
    "missing operator": (("run", "missing.py"), "'missing.py' does not exist"),
    "missing manifest": (
        ("run", "operator.py", "--simulate", "missing.yaml"),
        "'missing.yaml' does not exist",
    ),
    "simulate of nothing": (
        ("run", "operator.py", "--simulate"),
        "--simulate needs a manifest",
    ),
    "simulate before an option": (
        ("run", "operator.py", "--simulate", "--for", "60s"),
        "--simulate needs a manifest",
    ),
    "no duration": (
        ("run", "operator.py", "--simulate", "object.yaml", "--for", "soon"),
        "write 90, 90s, 15m or 1h30m",
    ),
    "a time on a cluster": (
        ("run", "operator.py", "--for", "60s"),
        "--for needs --simulate",
    ),
    "models on a cluster": (
        ("run", "operator.py", "--calls", "operator.py"),
        "--calls needs --simulate",
    ),
    "real calls on a cluster": (
        ("run", "operator.py", "--real-calls"),
        "--real-calls needs --simulate",
    ),
    "the operator after the manifests": (
        ("run", "--simulate", "object.yaml", "operator.py"),
        "--simulate takes all the files that follow it, and operator.py is not a "
        "manifest; write: fnop run operator.py --simulate object.yaml",
    ),
    "the operator in place of manifests": (
        ("run", "-m", "operator", "--simulate", "operator.py"),
        "write: fnop run -m operator operator.py --simulate ...",
    ),
    **{
        f"{option} of a simulation": (
            ("run", "operator.py", "--simulate", "object.yaml", option, "value"),
            f"{option} cannot be used with --simulate",
        )
        for option in ("--liveness", "--metrics", "--context", "--kubeconfig")
    },
    "traces of a simulation": (
        ("run", "operator.py", "--otel", "--simulate", "object.yaml"),
        "--otel cannot be used with --simulate",
    ),
    "both scopes": (("run", "operator.py", "-A", "-n", "x"), "use either"),
    "no selector": (("run", "operator.py", "-l", "app in db"), "not a label selector"),
    "a lease's place without a lease": (
        ("run", "operator.py", "--lease-namespace", "x"),
        "--lease-namespace needs --leader-elect",
    ),
    "bad name": (("run", "operator.py", "--name", "A B"), "such as 'billing'"),
    "unknown option": (("run", "operator.py", "--simulat"), "No such option"),
    "missing recording": (("replay", "missing.fnop"), "'missing.fnop' does not exist"),
    "recording to nowhere": (
        ("run", "operator.py", "--simulate", "object.yaml", "--record", "no/where"),
        "cannot write the recording",
    ),
}


def test_a_manifest_is_no_operator(folder: Path) -> None:
    done = fnop("run", "object.yaml", "--simulate", "object.yaml", folder=folder)
    refused(done, 1, "object.yaml is, by its name, a manifest", "after --simulate")


def test_a_mistyped_variable_is_refused(folder: Path) -> None:
    run = ("run", "operator.py", "--simulate", "object.yaml")
    done = fnop(*run, folder=folder, variables={"FNOP_RUN_NAMESPACES": "a"})
    refused(done, 2, "FNOP_RUN_NAMESPACES", "did you mean FNOP_RUN_NAMESPACE?")
    done = fnop(*run, folder=folder, variables={"FNOP_RUN_XYZ": "a"})
    refused(done, 2, "the variable FNOP_RUN_XYZ belongs to no option of fnop run")


def test_variables_that_are_not_meant_for_it_do_no_harm(folder: Path) -> None:
    variables = {
        # As Kubernetes sets them for a Service that is called fnop-run.
        "FNOP_RUN_SERVICE_HOST": "10.0.0.1",
        "FNOP_RUN_SERVICE_PORT": "80",
        "FNOP_RUN_SERVICE_PORT_HTTP": "80",
        "FNOP_RUN_PORT": "tcp://10.0.0.1:80",
        "FNOP_RUN_PORT_80_TCP": "tcp://10.0.0.1:80",
        "FNOP_RUN_PORT_80_TCP_ADDR": "10.0.0.1",
        # Of another command, and what a simulation does not need.
        "FNOP_REPLAY_TRUSTED": "1",
        "FNOP_RUN_LIVENESS": "http://0.0.0.0:8080/healthz",
    }
    run = ("run", "operator.py", "--simulate", "object.yaml")
    assert fnop(*run, folder=folder, variables=variables).status == 0


@pytest.mark.parametrize("case", USAGE)
def test_a_wrong_call(case: str, folder: Path) -> None:
    args, words = USAGE[case]
    refused(fnop(*args, folder=folder), 2, words)


# ------------------------------------------------------- bad input: manifests


MANIFESTS = {
    "not YAML": ("a: [", ("object.yaml", "YAML")),
    "no mapping": ("just a text", ("object.yaml",)),
    "no kind": ("apiVersion: v1\nmetadata: {name: x}", ("object.yaml", "kind")),
    "no name": ("apiVersion: v1\nkind: Pod\nmetadata: {}", ("name",)),
    "unknown kind": (
        "apiVersion: x.dev/v1\nkind: Thing\nmetadata: {name: x}",
        ("serves no Thing of x.dev/v1", "add its CustomResourceDefinition"),
    ),
    "invalid object": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: NOT_A_NAME}",
        ("Pod NOT_A_NAME is refused",),
    ),
    "no namespace": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: prod}",
        ('namespaces "prod" not found', "add its Namespace to the manifests"),
    ),
    "nothing": ("", ("object.yaml",)),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_bad_manifest(case: str, folder: Path) -> None:
    text, words = MANIFESTS[case]
    write(folder, "object.yaml", text)
    done = fnop("run", "operator.py", "--simulate", "object.yaml", folder=folder)
    refused(done, 1, *words)


def test_a_folder_without_manifests(folder: Path) -> None:
    (folder / "manifests").mkdir()
    done = fnop("run", "operator.py", "--simulate", "manifests", folder=folder)
    refused(done, 1, "no .yaml, .yml or .json file in manifests")


def test_a_folder_of_manifests(folder: Path) -> None:
    (folder / "manifests").mkdir()
    (folder / "object.yaml").rename(folder / "manifests" / "object.yaml")
    done = fnop("run", "operator.py", "--simulate", "manifests", folder=folder)
    assert (done.status, len(done.documents)) == (0, 1), done


def test_unreadable_state_is_left_alone(folder: Path) -> None:
    strange = example("strange")
    strange["metadata"]["annotations"] = {"fnop.dev/default": "{no state"}
    manifest(folder, "object.yaml", DEFINITION, strange, example())
    done = fnop("run", "operator.py", "--simulate", "object.yaml", folder=folder)
    assert done.status == 0, done
    assert "its stored state cannot be read and is left as it is" in done.err
    found = {each["metadata"]["name"]: each for each in done.documents}
    assert "status" not in found["strange"]
    assert found["strange"]["metadata"]["annotations"] == {
        "fnop.dev/default": "{no state"
    }
    assert found["example-1"]["status"]["created"] == {"seen": "example-1"}


def test_unreadable_state_in_the_status_is_left_alone() -> None:
    registry = fnop_api.Registry()

    @fnop_api.on.create("fnopexamples", registry=registry, id="created")
    def created(name: str, **_: Any) -> dict[str, str]:
        return {"seen": name}

    sim = Scenario(registry, [example("strange"), example()])
    strange = {"status": {"fnop.dev/default": '{"v": 99}'}}
    path = sim.path("fnopexamples", "strange") + "/status"
    sim.request(ApiRequest("PATCH", path, (), strange, MERGE_PATCH))
    assert sim.settle()
    assert sum("cannot be read and is left as it is" in line for line in sim.lines) == 1
    assert (sim.get("fnopexamples", "strange") or {})["status"] == strange["status"]
    assert (sim.get("fnopexamples") or {})["status"]["created"] == {"seen": "example-1"}


WAITS_FOR_PODS = """
import fnop

@fnop.on.create("fnopexamples")
async def work(name, **_):
    labels = {"app": name}
    pods = {"containers": [{"name": "main", "image": "main"}]}
    web = await fnop.adopt({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": pods}}})
    while not web.status.get("readyReplicas"):
        await fnop.sleep(10)
        web = await fnop.get("deployments.apps", name=name)
    return {"ready": True}
"""


def test_a_simulated_run_ends_what_waits_for_pods(folder: Path) -> None:
    write(folder, "pods.py", WAITS_FOR_PODS)
    done = fnop("run", "pods.py", "--simulate", "object.yaml", folder=folder)
    assert done.status == 0, done
    (found,) = [each for each in done.documents if each["kind"] == "FnopExample"]
    assert found["status"]["work"] == {"ready": True}


# --------------------------------------------------------- bad input: cluster


def test_no_cluster_is_configured(folder: Path) -> None:
    done = fnop("run", "operator.py", "-n", "default", folder=folder)
    refused(done, 1, "--kubeconfig", "--simulate")


def test_a_kubeconfig_that_is_missing(folder: Path) -> None:
    done = fnop("run", "operator.py", "-A", "--kubeconfig", "none", folder=folder)
    refused(done, 1, "none does not exist")


def test_a_context_that_is_missing(folder: Path) -> None:
    kubeconfig(folder, "http://127.0.0.1:1")
    done = fnop(
        *("run", "operator.py", "-A", "--kubeconfig", "kubeconfig"),
        *("--context", "other"),
        folder=folder,
    )
    refused(done, 1, "no context 'other'", "available: test")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_api_server_that_cannot_be_reached_is_waited_for(
    scheme: str, folder: Path
) -> None:
    server = f"{scheme}://127.0.0.1:{closed_port()}"
    kubeconfig(folder, server)
    run = ("run", "operator.py", "-A", "--kubeconfig", "kubeconfig")
    with begun(folder, *run) as operator:
        for _ in range(3):
            line = heard(operator, "WARNING")
            # Both documents are asked for at once.
            assert re.search("server cannot be reached: /apis?: cannot connect", line)
            assert server in line
            assert "it is asked again in" in line
        operator.send_signal(signal.SIGTERM)
        assert operator.wait(patience(20)) == 0


def test_an_api_server_that_comes_later_is_served(folder: Path) -> None:
    port = closed_port()
    kubeconfig(folder, f"http://127.0.0.1:{port}")
    run = ("run", "operator.py", "-A", "--kubeconfig", "kubeconfig")
    with begun(folder, *run) as operator:
        heard(operator, "cannot be reached")
        with begun(folder, "cluster", "--port", str(port), "-f", "object.yaml"):
            heard(operator, "created succeeded")
            operator.send_signal(signal.SIGTERM)
            assert operator.wait(patience(20)) == 0


# ------------------------------------------------------------- simulated logs

LOGGING = """
import logging
import fnop

log = logging.getLogger(__name__)
log.warning("at its import")

@fnop.on.create("fnopexamples")
async def created(logger):
    log.info("in the beginning")
    logger.info("by its own logger")
    await fnop.sleep(90)
    log.info("later")
"""


@pytest.mark.parametrize("format", ["text", "json"])
def test_python_s_own_log_shows_the_time_of_the_simulation(
    format: str, folder: Path
) -> None:
    write(folder, "logging_operator.py", LOGGING)
    command = ("run", "logging_operator.py", "--simulate", "object.yaml")
    done = fnop(*command, "--log-format", format, folder=folder)
    assert done.status == 0, done
    lines = done.err.splitlines()
    for line in lines:
        assert "2026-01-01" in line
    (later,) = [line for line in lines if "later" in line]
    assert re.search(r"2026-01-01[ T]00:01:30[.,]000", later)


COUNTING = """
import fnop

@fnop.on.create("fnopexamples", id="count")
@fnop.on.update("fnopexamples", id="count")
def count(spec, patch, logger, **_):
    logger.info(f"this is number {spec.get('count', 0)}")
    patch.spec["count"] = spec.get("count", 0) + 1
"""


def test_what_goes_well_again_and_again_is_folded(folder: Path) -> None:
    write(folder, "counting.py", COUNTING)
    command = ("run", "counting.py", "--simulate", "object.yaml")
    done = fnop(*command, folder=folder)
    assert done.status == 3, done
    lines = done.err.splitlines()
    assert len(lines) < 40
    folded = [line for line in lines if "times in all" in line]
    assert any("update handler count succeeded" in each for each in folded)
    assert any("this is number" in each for each in folded)
    times = [line[1:24] for line in lines if line.startswith("[")]
    assert times == sorted(times)
    in_full = fnop(*command, "-v", folder=folder)
    assert in_full.err.count("update handler count succeeded") > 100


def test_what_goes_well_for_many_objects_is_shown_for_each(folder: Path) -> None:
    objects = [example(f"e{number}") for number in range(25)]
    manifest(folder, "object.yaml", DEFINITION, *objects)
    done = fnop("run", "operator.py", "--simulate", "object.yaml", folder=folder)
    assert done.err.count("create handler created succeeded") == 25
    assert "times in all" not in done.err


FAILING = """
import fnop

@fnop.on.create("fnopexamples", id="late", backoff=50, retries=3)
def late(**_):
    raise ValueError("never")

@fnop.on.create("fnopexamples", id="early", backoff=1, retries=5)
def early(**_):
    raise ValueError("no")
"""


def test_counts_come_in_the_order_of_time(folder: Path) -> None:
    write(folder, "failing.py", FAILING)
    command = ("run", "failing.py", "--simulate", "object.yaml")
    done = fnop(*command, "--log-format", "plain", folder=folder)
    assert done.status == 1, done
    stamped = fnop(*command, folder=folder).err.splitlines()
    times = [line[1:24] for line in stamped if line.startswith("[")]
    assert times == sorted(times)
    lines = [line for line in done.err.splitlines() if "times in all" in line]
    assert [line.split()[3] for line in lines] == ["early", "late"]


# ------------------------------------------------------ what does not come to an end

# It waits at each turn, so that it does not hold a core until it is named.
CIRCLING = """
import os, threading
import fnop

@fnop.on.create("fnopexamples")
def circling(**_):
    if "CIRCLE" in os.environ:
        print("begins", flush=True)
        while True:
            threading.Event().wait(0.05)
"""
# What it prints may be heard before it goes on.
ITS_LOOP = tuple(f"at circling.py:{line}" for line in (8, 9, 10))


def test_a_handler_that_goes_in_a_circle_is_named_in_a_simulation(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "circling.py", CIRCLING)
    monkeypatch.setenv("CIRCLE", "1")
    with begun(folder, "run", "circling.py", "--simulate", "object.yaml") as run:
        line = heard(run, "the operator has been blocked for")
        assert "circling.py:" in line
        assert " in circling;" in line
        run.send_signal(signal.SIGINT)
        line = heard(run, "fnop: interrupted after 0 s of virtual time, ")
        assert line.rstrip().endswith(ITS_LOOP)
        assert run.wait(patience(20)) == 130


def test_who_interrupts_a_replay_is_told_where_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "circling.py", CIRCLING)
    command = ("run", "circling.py", "--simulate", "object.yaml", "--record", "r.fnop")
    done = fnop(*command, folder=folder)
    assert done.status == 0, done
    monkeypatch.setenv("CIRCLE", "1")
    with begun(folder, "replay", "r.fnop", "circling.py") as replay:
        heard(replay, "begins")
        replay.send_signal(signal.SIGINT)
        line = heard(replay, "fnop: interrupted, ")
        assert line.rstrip().endswith(ITS_LOOP)
        assert replay.wait(patience(20)) == 130
