"""Play the stories of the replicas under Kopf, and write down the traces of each.

    KUBEBUILDER_ASSETS=... python -m tests.kopf.record_expected --python PYTHON

PYTHON is an interpreter with `kopf==1.45.2`, `kubernetes` and `pykube-ng`. Each replica
runs in a namespace of its own, next to a real API server. The traces are stored in
`expected.json` next to the operator; `--compare` prints their differences instead, and
`--keep FOLDER` stores the logs.

A story has these keys:

- `program`: `kopf` for `kopf run operator.py`, `own` for `python operator.py`
- `module`: what `kopf run -m` gets in place of `operator.py`; it is in the folder
- `clusterwide`: `kopf run` gets `--all-namespaces`
- `probed`: start the endpoint of probes, which the step `probe` asks
- `watches`: the plurals whose watch-streams an operator that is ready has
- `records`: the plurals whose objects are a part of the trace
- `loose`: handlers of watch events, and timers, see `Trace`
- `refusals`: requests may be refused
- `steps`: one verb each, such as `create: FILE`, `edit: {of: PLURAL/NAME, patch: ...}`
  (a merge patch), `wait: {of:, field:, is:}` (any value without `is`), `delete:`,
  `gone:`, `look: NAME` (wait until all is quiet, and record the objects),
  `restart: STEPS` (steps while no operator runs, or `{}`)

`PLURAL@NAMESPACE` is a plural in another namespace, and `PLURAL/NAME/status` the
subresource.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.envtest import ApiServer, dying_with_us, free_ports, running
from tests.patience import eventually, patience

REPLICAS = Path(__file__).parent / "replicas"
GROUP = "replicas.fnop.dev"

# Objects and logs that did not change for so long have settled.
QUIET_SECONDS = 2.0
# A step of a story takes less on a calm machine.
WAIT_SECONDS = 5.0
MERGE_PATCH = "application/merge-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APIS = (
    "/api/v1",
    "/apis/apps/v1",
    "/apis/batch/v1",
    "/apis/admissionregistration.k8s.io/v1",
    "/apis/networking.k8s.io/v1",
    f"/apis/{GROUP}/v1",
)

# ------------------------------------------------------------------- normal forms

_VOLATILE = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"\d+:\d\d:\d\d(\.\d+)?"), "<duration>"),
    (re.compile(r"\b\d+\.\d{3,}\b"), "<float>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"(?<=-token-)[a-z0-9]{5}\b"), "<random>"),
    (re.compile(r"(?<='resourceVersion': ')\d+"), "<version>"),
)
_FLEETING = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


def normal_text(text: str) -> str:
    """The text, with a placeholder for each value that differs between two runs."""
    for pattern, placeholder in _VOLATILE:
        text = pattern.sub(placeholder, text)
    return text


def normal_object(body: Mapping[str, Any]) -> dict[str, Any]:
    """The object, without fields that differ between two runs.

    The status of built-in kinds is their controllers' and is skipped.
    """
    is_ours = str(body["apiVersion"]).startswith(GROUP)
    meta = {k: v for k, v in body["metadata"].items() if k not in _FLEETING}
    # Kopf touches an object to see it again, and at times leaves the touch behind.
    notes = meta.pop("annotations", {})
    if left := {k: v for k, v in notes.items() if not k.endswith("/touch-dummy")}:
        meta["annotations"] = left
    kept = {k: v for k, v in body.items() if k != "status" or is_ours}
    normal: dict[str, Any] = _normal({**kept, "metadata": meta})
    return normal


def _normal(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: "<bundle>" if key == "caBundle" else _normal(each)
                for key, each in value.items()
            }
        case list():
            return [_normal(each) for each in value]
        case str():
            return normal_text(_with_sorted_keys(value))
        case _:
            return value


def _with_sorted_keys(text: str) -> str:
    """JSON in annotations may have any order of keys."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    if not isinstance(parsed, dict):
        return text
    return json.dumps(parsed, sort_keys=True, separators=(",", ":"))


# ------------------------------------------------------------------------ the log

_CALL = re.compile(
    r"(Handler|Timer|Daemon|Activity|Indexer|Webhook) '(.+)' is invoked\.$"
)

_REQUEST_DONE = re.compile(
    r"^(Indexer|Webhook) '.+' succeeded\.$|^127\.0\.0\.1 \["
    r"|^(Reconfiguring|Cleaning up) the .*webhook "
)
_UNWANTED = re.compile(r"(finished with inconsistencies): .*")
# All of a traceback but the errors: the rest names files.
_TRACEBACK = re.compile(r"^\s|^$|^Traceback |^The above exception ")
_BACKGROUND = frozenset({"Timer", "Daemon", "Indexer", "Webhook"})


def named(ref: Mapping[str, Any], plurals: Mapping[str, str], namespace: str) -> str:
    """The object as in a story: its plural, another namespace, its name."""
    place = ref.get("namespace") or namespace
    elsewhere = "" if place == namespace else f"@{place}"
    return f"{plurals[ref['kind']]}{elsewhere}/{ref['name']}"


@dataclass
class Trace:
    """The lines that an operator has logged, sorted by the object they are about.

    Handlers of watch events are `loose`: how often they are called depends on the
    number of writes, and on events that Kopf takes together. A timer is `loose` if its
    end is not ordered with handlers of the change that it makes.
    """

    loose: Collection[str] = ()
    namespace: str = ""
    calls: dict[str, list[str]] = field(default_factory=dict)
    background: dict[str, dict[str, int | str]] = field(default_factory=dict)
    log: dict[str, list[str]] = field(default_factory=dict)

    def add(self, line: str, plurals: Mapping[str, str]) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            if not _TRACEBACK.search(line):
                self.log.setdefault("stderr", []).append(normal_text(line))
            return
        ref = entry.get("object") or {}
        about = named(ref, plurals, self.namespace) if ref else "operator"
        message = normal_text(str(entry["message"]))
        if found := _CALL.search(message):
            self._add_call(about, *found.groups())
        elif entry["severity"] != "debug" and not self._is_loose(message):
            raised = str(entry.get("exc_info", "")).strip().splitlines()
            cause = f" <- {normal_text(raised[-1])}" if raised else ""
            # The rest names the whole object, with the writes of other controllers.
            message = _UNWANTED.sub(r"\1", message)
            line, lines = f"{entry['severity']}: {message}{cause}", self.log
            if lines.setdefault(about, [])[-1:] != [line]:
                lines[about].append(line)

    def _is_loose(self, message: str) -> bool:
        """Does this line come as often as there are watch events or requests?"""
        done = {
            f"{form} {handler!r} succeeded."
            for form in ("Handler", "Timer", "Daemon")
            for handler in self.loose
        }
        return message in done or _REQUEST_DONE.search(message) is not None

    def _add_call(self, about: str, form: str, handler: str) -> None:
        if form in _BACKGROUND or handler in self.loose:
            # They are not ordered with the calls of other handlers.
            own = self.background.setdefault(about, {})
            name = f"{form} {handler}"
            count = own.get(name, 0)
            own[name] = count + 1 if isinstance(count, int) else count
        else:
            self.calls.setdefault(about, []).append(handler)


# --------------------------------------------------------------------- the player


class Player:
    """A replica in its namespace: it performs the steps of the story."""

    def __init__(
        self,
        server: ApiServer,
        folder: Path,
        python: Path,
        scratch: Path,
        *,
        by_fnop: bool = False,
    ) -> None:
        self._by_fnop = by_fnop
        self.folder = folder
        self.story = yaml.safe_load((folder / "story.yaml").read_text())
        self.namespace = f"replica-{folder.name}"
        self.looks: dict[str, dict[str, Any]] = {}
        self.answers: list[Any] = []
        self._server, self._python, self._scratch = server, python, scratch
        self._child: subprocess.Popen[bytes] | None = None
        self._logs: list[Path] = []
        self._exits: list[int] = []
        self._port, webhook_port = free_ports(2)
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig),
            "REPLICA_NAMESPACE": self.namespace,
            "REPLICA_PORT": str(webhook_port),
            "REPLICA_CERTIFICATES": str(server.pki),
            "PYTHONUNBUFFERED": "1",
        }
        if "module" in self.story:
            self._environment["PYTHONPATH"] = str(folder)
        self._paths: dict[str, tuple[str, bool]] = {}
        self.plurals: dict[str, str] = {"Namespace": "namespaces"}

    # ------------------------------------------------------------ the cluster

    def install(self) -> None:
        """Create the namespace and the definitions; wait until they are served."""
        name = {"metadata": {"name": self.namespace}}
        self._request("POST", "/api/v1/namespaces", name)
        for each in yaml.safe_load_all((self.folder / "crd.yaml").read_text()):
            path = f"{DEFINITIONS}/{each['metadata']['name']}"
            self._request("POST", DEFINITIONS, each)
            eventually(partial(self._is_served, path))
        for api in APIS:
            status, found = self._server.raw("GET", api)
            for kind in found["resources"] if status == 200 else ():
                if "/" not in kind["name"]:
                    self._paths[kind["name"]] = api, kind["namespaced"]
                    self.plurals[kind["kind"]] = kind["name"]

    def _is_served(self, path: str) -> bool:
        _, body = self._server.raw("GET", path)
        stated = (body.get("status") or {}).get("conditions") or ()
        conditions = {each["type"]: each["status"] for each in stated}
        names = body["spec"]["names"]["plural"]
        status, _ = self._server.raw("GET", f"/apis/{GROUP}/v1/{names}")
        return conditions.get("Established") == "True" and status == 200

    def uninstall(self) -> None:
        self.end(signal.SIGKILL)
        for each in yaml.safe_load_all((self.folder / "crd.yaml").read_text()):
            self._server.raw("DELETE", f"{DEFINITIONS}/{each['metadata']['name']}")

    def _request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        status, answer = self._server.raw(method, path, body, **more)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def _path(self, plural: str, *names: str) -> str:
        """The address of a plural, of its object, or of a subresource of that."""
        plural, _, elsewhere = plural.partition("@")
        api, namespaced = self._paths[plural]
        place = f"/namespaces/{elsewhere or self.namespace}" if namespaced else ""
        return "/".join((f"{api}{place}/{plural}", *names))

    def _objects(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All objects of the kinds that the story records, but the cluster's own."""
        for plural in self.story["records"]:
            listed = self._request("GET", self._path(plural))
            head = {"apiVersion": listed["apiVersion"]}
            head["kind"] = listed["kind"].removesuffix("List")
            for each in listed["items"]:
                name = each["metadata"]["name"]
                if name not in ("default", "kube-root-ca.crt") and not (
                    name.startswith("default-token-")
                ):
                    yield f"{plural}/{name}", {**head, **each}

    def objects(self) -> dict[str, Any]:
        return {key: normal_object(body) for key, body in self._objects()}

    def events(self) -> list[dict[str, Any]]:
        """The Events, each once; `count` says one or many."""
        found: dict[str, dict[str, Any]] = {}
        places = {plural.partition("@")[2] for plural in self.story["records"]}
        if self.story.get("clusterwide"):
            places.add("default")  # Events of objects that are in no namespace
        paths = [self._path(f"events@{each}") for each in sorted(places | {""})]
        for each in chain(*(self._request("GET", path)["items"] for path in paths)):
            ref = each["involvedObject"]
            if each.get("reportingComponent") != "kopf":
                continue
            entry = {
                "object": named(ref, self.plurals, self.namespace),
                "type": each["type"],
                "reason": each["reason"],
                "message": normal_text(each["message"]),
            }
            key = json.dumps(entry)
            found[key] = {**entry, "count": "many" if key in found else "one"}
        return [found[key] for key in sorted(found)]

    # ----------------------------------------------------------- the operator

    def begin(self) -> None:
        """Start the operator, and wait until it watches all kinds of the story."""
        log = self._scratch / f"{self.folder.name}-{len(self._logs)}.log"
        self._logs.append(log)
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                [*dying_with_us(), *self._command()],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        for each in self.story["watches"]:
            eventually(partial(self._watches, log, each), otherwise=log.read_text)
        if self._has_ended():
            raise RuntimeError(f"the operator ended:\n{log.read_text()}")
        self.settle()

    def _command(self) -> list[str]:
        if self._by_fnop:
            return self._command_of_fnop()
        if self.story["program"] == "own":
            # Its folder stays off the path: `operator` is a module of Python's, too.
            return [str(self._python), "-P", "operator.py"]
        return [str(self._python), "-P", "-m", "kopf", "run", *self._options()]

    def _command_of_fnop(self) -> list[str]:
        module = [str(self._python), "-P", "-m", "fnop.kopf"]
        if self.story["program"] == "own":
            return [*module, "operator.py"]
        return [*module, "run", *self._options()]

    def _options(self) -> list[str]:
        """The options of `kopf run`, and what it loads."""
        options = ["--standalone", "--verbose", "--log-format=json"]
        is_wide = self.story.get("clusterwide")
        options += ["--all-namespaces"] if is_wide else ["-n", self.namespace]
        if self.story.get("probed"):
            options.append(f"--liveness=http://127.0.0.1:{self._port}/healthz")
        loaded = self.story.get("module")
        return [*options, "-m", loaded] if loaded else [*options, "operator.py"]

    def _watches(self, log: Path, plural: str) -> bool:
        line = f"Starting the watch-stream for {plural}."
        return line in log.read_text() or self._has_ended()

    def _has_ended(self) -> bool:
        return self._child is None or self._child.poll() is not None

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End the operator, and remember its exit status."""
        if self._child is not None:
            self._child.send_signal(by)
            self._exits.append(self._child.wait(patience(20)))
            self._child = None

    def settle(self) -> None:
        """Wait until neither the objects nor the log have changed for a while."""
        seen, since = self._sight(), time.perf_counter()

        def is_quiet() -> bool:
            nonlocal seen, since
            if (now := self._sight()) != seen:
                seen, since = now, time.perf_counter()
            return time.perf_counter() - since > QUIET_SECONDS

        eventually(is_quiet, 60, every=0.1)

    def _sight(self) -> tuple[int, list[str]]:
        written = sum(each.stat().st_size for each in self._logs)
        versions = [
            body["metadata"]["resourceVersion"] + key for key, body in self._objects()
        ]
        return written, versions

    # -------------------------------------------------------------- the steps

    def play(self) -> None:
        """Perform all steps. The operator runs from the beginning to the end."""
        self.begin()
        self._perform(self.story["steps"])
        self._look("end")
        self.end()

    def _perform(self, steps: Iterable[Mapping[str, Any]]) -> None:
        verbs: dict[str, Callable[[Any], None]] = {
            "create": self._create,
            "edit": self._edit,
            "wait": self._wait,
            "delete": self._delete,
            "gone": self._gone,
            "look": self._look,
            "probe": self._probe,
            "restart": self._restart,
        }
        for step in steps:
            ((verb, argument),) = step.items()
            verbs[verb](argument)

    def _restart(self, steps: Any) -> None:
        self.settle()
        self.end()
        self._perform(steps)
        self.begin()

    def _create(self, file: str) -> None:
        for body in yaml.safe_load_all((self.folder / file).read_text()):
            place = body["metadata"].get("namespace", "")
            path = self._path(f"{self.plurals[body['kind']]}@{place}")
            status, answer = self._server.raw("POST", path, body)
            self._answered("create", file, status, answer)

    def _edit(self, step: Mapping[str, Any]) -> None:
        path = self._path(*step["of"].split("/"))
        status, answer = self._server.raw("PATCH", path, step["patch"], MERGE_PATCH)
        self._answered("edit", step["of"], status, answer)

    def _answered(self, verb: str, of: str, status: int, answer: Any) -> None:
        """Refusals and warnings of webhooks are a part of the trace."""
        warnings = list(self._server.warnings)
        if status >= 400 or warnings:
            entry = {"step": f"{verb} {of}", "status": status, "warnings": warnings}
            if status >= 400:
                entry["message"] = normal_text(answer["message"])
            self.answers.append(entry)
            if not self.story.get("refusals"):
                raise RuntimeError(str(entry))

    def _wait(self, step: Mapping[str, Any]) -> None:
        path_of = self._path(*step["of"].split("/"))
        missing, path = object(), step["field"]
        # A name of a handler in the status may have dots.
        keys = path.split(".") if isinstance(path, str) else path

        def value() -> Any:
            status, found = self._server.raw("GET", path_of)
            if status != 200:
                return missing
            for key in keys:
                if not isinstance(found, dict) or key not in found:
                    return missing
                found = found[key]
            return found

        def holds() -> bool:
            now = value()
            return now == step["is"] if "is" in step else now is not missing

        log = self._logs[-1]
        eventually(
            holds,
            WAIT_SECONDS,
            otherwise=lambda: f"{step}: {value()!r}\n{log.read_text()[-8000:]}",
            every=0.05,
        )

    def _delete(self, of: str) -> None:
        status, answer = self._server.raw("DELETE", self._path(*of.split("/")))
        self._answered("delete", of, status, answer)

    def _gone(self, of: str) -> None:
        path = self._path(*of.split("/"))
        eventually(
            lambda: self._server.raw("GET", path)[0] == 404,
            WAIT_SECONDS,
            otherwise=lambda: f"{of} stays\n{self._logs[-1].read_text()[-8000:]}",
            every=0.05,
        )

    def _look(self, name: str) -> None:
        self.settle()
        self.looks[name] = self.objects()

    def _probe(self, _: Any) -> None:
        url = f"http://127.0.0.1:{self._port}/healthz"
        try:
            with urllib.request.urlopen(url) as answer:
                status, body = answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            status, body = error.code, None
        self.answers.append({"step": "probe", "status": status, "body": body})

    # -------------------------------------------------------------- the trace

    def trace(self) -> dict[str, Any]:
        """All that the replica has left, in a normal form."""
        trace = Trace(self.story.get("loose", ()), self.namespace)
        for log in self._logs:
            for line in log.read_text().splitlines():
                trace.add(line, self.plurals)
        often = {
            about: {
                name: "many" if isinstance(count, int) and count > 1 else "one"
                for name, count in sorted(own.items())
            }
            for about, own in trace.background.items()
        }
        return {
            "kopf": "1.45.2",
            "exits": self._exits,
            "answers": self.answers,
            "objects": self.looks,
            "events": self.events(),
            "calls": trace.calls,
            "background": often,
            "log": trace.log,
        }


# ----------------------------------------------------------------------- the script


@contextmanager
def _scratch(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def record(
    server: ApiServer,
    folders: Iterable[Path],
    python: Path,
    keep: Path | None,
    *,
    by_fnop: bool = False,
) -> Iterator[tuple[Path, str]]:
    """Play each replica; its folder, and its trace as JSON."""
    with _scratch(keep) as scratch:
        for folder in folders:
            player = Player(server, folder, python, scratch, by_fnop=by_fnop)
            try:
                player.install()
                player.play()
                text = json.dumps(player.trace(), indent=1, sort_keys=True)
            finally:
                player.uninstall()
            yield folder, text + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="the first letters of replicas")
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--fnop", action="store_true", help="run fnop, and compare")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the logs")
    options = parser.parse_args()
    folders = [
        folder
        for folder in sorted(each.parent for each in REPLICAS.glob("*/story.yaml"))
        if not options.names or folder.name.startswith(tuple(options.names))
    ]
    differing = 0
    with tempfile.TemporaryDirectory() as home, running(Path(home)) as server:
        for folder, text in record(
            server, folders, options.python, options.keep, by_fnop=options.fnop
        ):
            file = folder / "expected.json"
            former = file.read_text() if file.exists() else ""
            differing += text != former
            print(folder.name, "as before" if text == former else "differs")
            if options.compare or options.fnop:
                lines = former.splitlines(), text.splitlines()
                print(*difflib.unified_diff(*lines, lineterm="", n=2), sep="\n")
            else:
                file.write_text(text)
    return min(differing, 1) if options.compare else 0


if __name__ == "__main__":
    sys.exit(main())
