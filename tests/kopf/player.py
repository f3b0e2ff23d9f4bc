"""A story: an operator in a cluster, what its user does, and the trace that it leaves.

A story has these keys:

- `program`: `kopf` for `kopf run operator.py`, `own` for `python operator.py`
- `file`: the operator's file, `operator.py` by default
- `module`: what `kopf run -m` gets in place of the file; it is in the folder
- `beside`: files of the story's folder that `kopf run` loads after the operator's
- `clusterwide`: `kopf run` gets `--all-namespaces`
- `peering`: `kopf run` gets this `--peering` in place of `--standalone`
- `probed`: start the endpoint of probes, which the step `probe` asks
- `ends`: the program ends by itself, before the steps
- `buffered`: what the program prints is written at its end
- `namespace`: an existing one; by default the story has one of its own
- `watches`: the plurals whose watch-streams an operator that is ready has
- `records`: the plurals whose objects are a part of the trace
- `loose`, `loose_lines`, `apart`, `lucky_lines`: see `Trace`
- `restless`: the log never stops, so nothing waits until it is quiet
- `refusals`: requests may be refused
- `seconds`: how long a step may take on a calm machine
- `before`: steps before the operator begins
- `steps`: one verb each:

  - `create: FILE`, or the object itself, and `delete: PLURAL/NAME`
  - `edit: {of: PLURAL/NAME, patch: ...}`, a merge patch
  - `wait: {of:, field:, is:}` (any value without `is`), `wait: {log:, times: 1}` (until
    so many lines of the log match), and `gone: PLURAL/NAME`
  - `look: NAME`: wait until all is quiet, and record the objects
  - `define: FILE` and `undefine: FILE`: definitions that come, or go with all objects
  - `probe: {}`, or with values that the answer will have
  - `restart: STEPS`: steps while no operator runs, or `{}`
  - `stop: STEPS` and `kill: STEPS`: the same, but SIGTERM or SIGKILL ends the operator
    at once, also amid its work
  - `rival: {options:, steps:}`: steps while a second `kopf run` runs, too
  - `command: ARGUMENTS`: another command of Kopf, such as `freeze`
  - `pytest: FILE`: run the operator's own tests

`PLURAL@NAMESPACE` is a plural in another namespace, and `PLURAL/NAME/status` the
subresource.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.envtest import ApiServer, dying_with_us, free_ports
from tests.kopf.trace import Trace, named, normal_object, normal_text
from tests.patience import eventually, patience

__all__ = ["Player"]

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
)


class Player:
    """An operator in its namespace: it performs the steps of the story.

    The story is in `folder`, and the operator's file in `source`. Either may have
    definitions, which are `definitions`.
    """

    def __init__(
        self,
        server: ApiServer,
        folder: Path,
        python: Path,
        scratch: Path,
        *,
        by_fnop: bool = False,
        source: Path | None = None,
        definitions: Sequence[Path] = (),
    ) -> None:
        self._by_fnop = by_fnop
        self.folder, self._source = folder, source or folder
        self.story = yaml.safe_load((folder / "story.yaml").read_text())
        self.namespace = self.story.get("namespace") or f"replica-{folder.name}"
        self._definitions = [
            each
            for file in (*definitions, folder / "crd.yaml")
            if file.exists()
            for each in yaml.safe_load_all(file.read_text())
        ]
        self._groups = {each["spec"]["group"] for each in self._definitions}
        self.looks: dict[str, dict[str, Any]] = {}
        self.answers: list[Any] = []
        self._server, self._python, self._scratch = server, python, scratch
        self._child: subprocess.Popen[bytes] | None = None
        # By what each operator is in the story; None for other commands.
        self._logs: list[tuple[str | None, Path]] = []
        self._exits: list[int] = []
        self._port, webhook_port = free_ports(2)
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig),
            "REPLICA_NAMESPACE": self.namespace,
            "REPLICA_PORT": str(webhook_port),
            "REPLICA_CERTIFICATES": str(server.pki),
            "PYTHONUNBUFFERED": "" if self.story.get("buffered") else "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if "module" in self.story:
            self._environment["PYTHONPATH"] = str(self._source)
        # The objects with generated names, by what they are in every run.
        self._generated: dict[str, str] = {}
        self._paths: dict[str, tuple[str, bool]] = {}
        self.plurals: dict[str, str] = {"Namespace": "namespaces"}

    # ------------------------------------------------------------ the cluster

    def install(self) -> None:
        """Create the namespace and the definitions; wait until they are served."""
        if "namespace" in self.story:
            self._request("DELETE", f"/api/v1/namespaces/{self.namespace}/events")
        else:
            name = {"metadata": {"name": self.namespace}}
            self._request("POST", "/api/v1/namespaces", name)
        self._add_kinds(self._definitions)

    def _add_kinds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        for each in definitions:
            self._request("POST", DEFINITIONS, each)
            eventually(partial(self._is_served, each))
            self._groups.add(each["spec"]["group"])
        for api in (*APIS, *(f"/apis/{group}/v1" for group in sorted(self._groups))):
            status, found = self._server.raw("GET", api)
            for kind in found["resources"] if status == 200 else ():
                if "/" not in kind["name"]:
                    self._paths[kind["name"]] = api, kind["namespaced"]
                    self.plurals[kind["kind"]] = kind["name"]

    def _is_served(self, definition: Mapping[str, Any]) -> bool:
        path = f"{DEFINITIONS}/{definition['metadata']['name']}"
        _, body = self._server.raw("GET", path)
        stated = (body.get("status") or {}).get("conditions") or ()
        conditions = {each["type"]: each["status"] for each in stated}
        group, names = body["spec"]["group"], body["spec"]["names"]["plural"]
        status, _ = self._server.raw("GET", f"/apis/{group}/v1/{names}")
        return conditions.get("Established") == "True" and status == 200

    def uninstall(self) -> None:
        """End the operator, and leave nothing that another story would see."""
        self.end(signal.SIGKILL)
        self._remove_kinds(self._definitions)

    def _remove_kinds(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        for each in definitions:
            self._release(each["spec"]["group"], each["spec"]["names"]["plural"])
            path = f"{DEFINITIONS}/{each['metadata']['name']}"
            self._server.raw("DELETE", path)
            eventually(partial(self._is_gone, path))

    def _release(self, group: str, plural: str) -> None:
        """Remove the finalizers of all objects: no operator is there any more."""
        status, found = self._server.raw("GET", f"/apis/{group}/v1/{plural}")
        for each in found["items"] if status == 200 else ():
            meta = each["metadata"]
            place = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
            path = f"/apis/{group}/v1{place}/{plural}/{meta['name']}"
            patch = {"metadata": {"finalizers": None}}
            self._server.raw("PATCH", path, patch, MERGE_PATCH)

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
        found: dict[str, Any] = {}
        for key, body in self._objects():
            meta = body["metadata"]
            if prefix := meta.get("generateName"):
                stem = f"{key.partition('/')[0]}/{prefix}"
                alike = sum(each.startswith(stem) for each in found)
                meta["name"] = f"{prefix}<random {alike + 1}>"
                self._generated[key] = key = f"{stem}<random {alike + 1}>"
            found[key] = normal_object(body, ours=self._is_ours(body["apiVersion"]))
        return found

    def _is_ours(self, version: str) -> bool:
        return version.partition("/")[0] in self._groups

    def events(self) -> list[dict[str, Any]]:
        """The Events, each once; `count` says one or many."""
        found: dict[str, dict[str, Any]] = {}
        places = {plural.partition("@")[2] for plural in self.story["records"]}
        if self.story.get("clusterwide"):
            places.add("default")  # Events of objects that are in no namespace
        paths = [self._path(f"events@{each}") for each in sorted(places | {""})]
        for each in chain(*(self._request("GET", path)["items"] for path in paths)):
            ref = each["involvedObject"]
            # Events about objects in no namespace are together, also those of others.
            is_ours = ref["kind"] in self.plurals
            if each.get("reportingComponent") != "kopf" or not is_ours:
                continue
            entry = {
                "object": named(ref, self.plurals, self.namespace),
                "type": each["type"],
                "reason": each["reason"],
                "message": normal_text(each.get("message", "")),
            }
            key = json.dumps(entry)
            found[key] = {**entry, "count": "many" if key in found else "one"}
        return [found[key] for key in sorted(found)]

    # ----------------------------------------------------------- the operator

    def begin(self) -> None:
        """Start the operator, and wait until it watches all kinds of the story."""
        self._child = self._started("", self._command())
        if self.story.get("ends"):
            self._exits.append(self._child.wait(patience(60)))
            self._child = None
        else:
            self._wait_for_watches(self._child)
            self.settle()

    def _started(self, role: str | None, command: list[str]) -> subprocess.Popen[bytes]:
        side = "fnop" if self._by_fnop else "kopf"
        log = self._scratch / f"{self.folder.name}-{side}-{len(self._logs)}.log"
        self._logs.append((role, log))
        with log.open("wb") as output:
            return subprocess.Popen(
                [*dying_with_us(), *command],
                cwd=self._source,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _wait_for_watches(self, child: subprocess.Popen[bytes]) -> None:
        _, log = self._logs[-1]

        def watches(plural: str) -> bool:
            line = f"Starting the watch-stream for {plural}."
            return line in log.read_text() or child.poll() is not None

        for each in self.story["watches"]:
            eventually(partial(watches, each), otherwise=log.read_text)
        if child.poll() is not None:
            raise RuntimeError(f"the operator ended:\n{log.read_text()}")

    def _command(self) -> list[str]:
        if self.story["program"] == "kopf":
            return self._kopf("run", *self._options())
        # Its folder stays off the path: `operator` is a module of Python's, too.
        program = [str(self._python), "-P"]
        runner = ["-m", "fnop.kopf"] if self._by_fnop else []
        return [*program, *runner, self._file]

    def _kopf(self, *arguments: str) -> list[str]:
        module = "fnop.kopf" if self._by_fnop else "kopf"
        return [str(self._python), "-P", "-m", module, *arguments]

    @property
    def _file(self) -> str:
        return str(self.story.get("file", "operator.py"))

    def _options(self) -> list[str]:
        """The options of `kopf run`, and what it loads."""
        peering = self.story.get("peering")
        options = [f"--peering={peering}"] if peering else ["--standalone"]
        options += ["--verbose", "--log-format=json", *self._place()]
        if self.story.get("probed"):
            options.append(f"--liveness=http://127.0.0.1:{self._port}/healthz")
        loaded = self.story.get("module")
        options += ["-m", loaded] if loaded else [self._file]
        return [*options, *(str(self.folder / x) for x in self.story.get("beside", ()))]

    def _place(self) -> list[str]:
        is_wide = self.story.get("clusterwide")
        return ["--all-namespaces"] if is_wide else ["-n", self.namespace]

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End the operator, and remember its exit status."""
        if self._child is not None:
            self._child.send_signal(by)
            self._exits.append(self._child.wait(patience(20)))
            self._child = None

    def settle(self) -> None:
        """Wait until neither the objects nor the log have changed for a while."""
        if self.story.get("restless"):
            time.sleep(QUIET_SECONDS)
            return
        seen, since = self._sight(), time.perf_counter()

        def is_quiet() -> bool:
            nonlocal seen, since
            if (now := self._sight()) != seen:
                seen, since = now, time.perf_counter()
            return time.perf_counter() - since > QUIET_SECONDS

        eventually(is_quiet, 60, every=0.1)

    def _sight(self) -> tuple[int, list[str]]:
        written = sum(log.stat().st_size for _, log in self._logs)
        versions = [
            body["metadata"]["resourceVersion"] + key for key, body in self._objects()
        ]
        return written, versions

    # -------------------------------------------------------------- the steps

    def play(self) -> None:
        """Perform all steps. The operator runs from the beginning to the end."""
        self._perform(self.story.get("before", ()))
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
            "define": lambda file: self._add_kinds(self._read(file)),
            "undefine": lambda file: self._remove_kinds(self._read(file)),
            "probe": self._probe,
            "restart": self._restart,
            "stop": partial(self._interrupt, signal.SIGTERM),
            "kill": partial(self._interrupt, signal.SIGKILL),
            "rival": self._rival,
            "command": self._run_command,
            "pytest": self._pytest,
        }
        for step in steps:
            ((verb, argument),) = step.items()
            verbs[verb](argument)

    def _restart(self, steps: Any) -> None:
        self.settle()
        self._interrupt(signal.SIGTERM, steps)

    def _interrupt(self, by: signal.Signals, steps: Any) -> None:
        self.end(by)
        self._perform(steps)
        self.begin()

    def _rival(self, step: Mapping[str, Any]) -> None:
        command = self._kopf("run", *step.get("options", ()), *self._options())
        child = self._started("rival ", command)
        try:
            self._wait_for_watches(child)
            self.settle()
            self._perform(step["steps"])
            self.settle()
        finally:
            child.terminate()
            self._exits.append(child.wait(patience(20)))

    def _run_command(self, arguments: str) -> None:
        """fnop has the commands for peers among its own."""
        verb, *others = arguments.split()
        module = "fnop" if self._by_fnop else "kopf"
        command = [str(self._python), "-P", "-m", module, verb, *self._place(), *others]
        self._exits.append(self._started(None, command).wait(patience(20)))

    def _pytest(self, file: str) -> None:
        runner = ["fnop.kopf", "-m"] if self._by_fnop else []
        # Configurations of pytest further up are not for users.
        options = ["-c", os.devnull, "--rootdir=.", "--confcutdir=.", file]
        options += ["-p", "no:cacheprovider"]
        command = [str(self._python), "-P", "-m", *runner, "pytest", *options]
        child = self._started(None, command)
        self._exits.append(child.wait(patience(60)))

    def _read(self, file: str) -> list[Any]:
        return list(yaml.safe_load_all((self.folder / file).read_text()))

    def _create(self, given: str | Mapping[str, Any]) -> None:
        bodies: Iterable[Any] = [given]
        if isinstance(given, str):
            bodies = self._read(given)
        for body in bodies:
            meta, version = body["metadata"], body["apiVersion"].split("/")[-1]
            plural = self.plurals[body["kind"]]
            path = self._path(f"{plural}@{meta.get('namespace', '')}")
            api = self._paths[plural][0]  # of the version v1
            path = path.replace(api, f"{api.rpartition('/')[0]}/{version}", 1)
            status, answer = self._server.raw("POST", path, body)
            label = given if isinstance(given, str) else f"{plural}/{meta['name']}"
            self._answered("create", label, status, answer)

    def _edit(self, step: Mapping[str, Any]) -> None:
        path = self._path(*step["of"].split("/"))
        status, answer = self._server.raw("PATCH", path, step["patch"], MERGE_PATCH)
        self._answered("edit", step["of"], status, answer)

    def _answered(self, verb: str, of: str, status: int, answer: Any) -> None:
        """Refusals and warnings of webhooks are a part of the trace."""
        warnings = sorted(self._server.warnings)  # of webhooks in any order
        if status >= 400 or warnings:
            entry = {"step": f"{verb} {of}", "status": status, "warnings": warnings}
            if status >= 400:
                entry["message"] = normal_text(answer["message"])
            self.answers.append(entry)
            if not self.story.get("refusals"):
                raise RuntimeError(str(entry))

    def _wait(self, step: Mapping[str, Any]) -> None:
        if "log" in step:
            self._wait_for_lines(step["log"], step.get("times", 1))
            return
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

        self._await(holds, lambda: f"{step}: {value()!r}")

    def _wait_for_lines(self, pattern: str, times: int) -> None:
        def holds() -> bool:
            text = "\n".join(log.read_text() for _, log in self._logs)
            return len(re.findall(pattern, text)) >= times

        self._await(holds, lambda: f"{pattern}: not {times} times in the log")

    def _await(self, holds: Callable[[], bool], problem: Callable[[], str]) -> None:
        eventually(
            holds,
            self.story.get("seconds", WAIT_SECONDS),
            otherwise=lambda: f"{problem()}\n{self._logs[-1][1].read_text()[-8000:]}",
            every=0.05,
        )

    def _delete(self, of: str) -> None:
        status, answer = self._server.raw("DELETE", self._path(*of.split("/")))
        self._answered("delete", of, status, answer)

    def _gone(self, of: str) -> None:
        path = self._path(*of.split("/"))
        self._await(partial(self._is_gone, path), lambda: f"{of} stays")

    def _is_gone(self, path: str) -> bool:
        return bool(self._server.raw("GET", path)[0] == 404)

    def _look(self, name: str) -> None:
        self.settle()
        self.looks[name] = self.objects()

    def _probe(self, expected: Mapping[str, Any]) -> None:
        """Ask the probe, until its answer has the expected values."""
        url = f"http://127.0.0.1:{self._port}/healthz"
        status, body = 0, None

        def is_expected() -> bool:
            nonlocal status, body
            try:
                with urllib.request.urlopen(url) as answer:
                    status, body = answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                status, body = error.code, None
            return expected.items() <= (body or {}).items()

        self._await(is_expected, lambda: f"probe: {status} {body}")
        self.answers.append({"step": "probe", "status": status, "body": body})

    # -------------------------------------------------------------- the trace

    def trace(self) -> dict[str, Any]:
        """All that the operator has left, in a normal form."""
        trace = Trace(
            self.story.get("loose", ()),
            self.story.get("loose_lines", ()),
            self.story.get("apart", ()),
            self.story.get("lucky_lines", ()),
            self.namespace,
        )
        for role, log in self._logs:
            if role is not None:
                for line in log.read_text().splitlines():
                    trace.add(line, self.plurals, role)
        often = {
            about: {
                name: "many" if count > 1 else "one"
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
            "calls": self._named_again(trace.calls),
            "background": self._named_again(often),
            "log": self._named_again(trace.log),
        }

    def _named_again(self, own: Mapping[str, Any]) -> dict[str, Any]:
        return {self._generated.get(about, about): each for about, each in own.items()}
