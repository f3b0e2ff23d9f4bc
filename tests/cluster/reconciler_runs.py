"""The random user of the level-based examples, on a real API server.

    python -m tests.cluster.reconciler_runs --runs 50 --seed 1 [--away 90] [KIND...]

A kind is `databases`, `tenants`, `records`, `gardens`, or databases with an operator
that is written with Kopf (`pip install '.[bench]'`): `kopf-databases`, and
`kopf-databases-by-causes`.

With `--away` the API server is killed shortly before the end of each run, when all is
as desired, and comes back after this number of seconds. With `--answering 503`, a
process answers 503 in its place meanwhile, like a load balancer. Then the harness does
not restart the operator. But if the operator has ended by itself, it is started again,
as by a Deployment. All kinds are played in one row.

Each run has a namespace and an operator of its own; the kinds run in parallel. It ends
with 1 if any run has ended in another state than its owners desire.
"""

from __future__ import annotations

import argparse
import random
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from tests.cluster import crd_server
from tests.cluster.crd_front import in_front_of
from tests.cluster.envtest import ApiServer, missing, running
from tests.cluster.name_server import NameServer
from tests.cluster.operating import PROGRAMS, Operator, User, operating
from tests.cluster.real_world import RealWorld
from tests.cluster.servers import Servers
from tests.patience import eventually
from tests.reconciler_driver import ELSEWHERE, GARDENS, SUBJECTS, Driver, Subject
from tests.simulations import ROOT

__all__ = ["drive", "on_crds_alone"]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = {**SUBJECTS, GARDENS.kind: GARDENS, **ELSEWHERE}
ACTIONS = 25
AFTER_OUTAGE = 6
PAUSE_SECONDS = 0.5
# A failed handler is tried again after a minute at the latest.
HANDLED_SECONDS = 60.0


class RunWorld(RealWorld):
    """A namespace with the operator of a run, and its name server."""

    def __init__(
        self, api: ApiServer, namespace: str, operator: Operator, server: NameServer
    ) -> None:
        super().__init__(api, namespace, operator)
        self._server = server

    @property
    def outside(self) -> dict[str, Any]:
        return self._server.records

    def stop(self) -> None:
        self.operator.stop()  # maybe before it could listen to signals

    def revive(self, tell: Callable[[str], None]) -> None:
        """Start an operator again that has ended by itself, as a Deployment does."""
        if not self.operator.is_running:
            tell("the operator has ended by itself, and is begun again")
            print(self.namespace, "has lost its operator", flush=True)
            self.start()

    def pause(self, chance: random.Random) -> None:
        time.sleep(chance.uniform(0, PAUSE_SECONDS))  # the moment of the next action


def drive(
    subject: Subject,
    api: ApiServer,
    folder: Path,
    seed: int,
    outage: Callable[[], None] | None = None,
) -> list[str]:
    """Play one run; what is wrong in its end, with the story, or nothing."""
    if subject.definitions:  # on a server that has no namespaces: any will do
        namespace = f"run-{seed}"
        for each in subject.definitions:
            status, found = api.raw("POST", DEFINITIONS, each)
            assert status in (201, 409), found
        for each in subject.definitions:
            plural = each["spec"]["names"]["plural"]
            path = f"/apis/fnop.dev/v1/{plural}"
            eventually(lambda path=path: api.raw("GET", path)[0] == 200)  # type: ignore[misc]
    else:
        namespace = api.namespace()
        User(api, namespace).define(subject.example)
    example = ROOT / "examples" / subject.example / "example.py"
    file = ROOT / subject.operator if subject.operator else example
    options = ("--standalone", "-A") if subject.everywhere else ()
    program = PROGRAMS[subject.program]
    with (
        NameServer(random.Random(seed)) as server,
        operating(file, api, namespace, folder, *options, program=program) as operator,
    ):
        operator.variables["RECORDS_URL"] = server.url
        world = RunWorld(api, namespace, operator, server)
        driver = Driver(subject, world, seed)
        world.start()
        driver.begin()
        for number in range(ACTIONS):
            if outage and number == ACTIONS - AFTER_OUTAGE:
                eventually(lambda: driver.wrong() == [], HANDLED_SECONDS)
                outage()
                world.revive(driver.tell)
                driver.may_restart = False
            driver.act()
            world.pause(driver.chance)
        eventually(lambda: world.is_serving)
        for phase in ("desired", "deleted"):
            if phase == "deleted":
                driver.end()
            try:
                eventually(lambda: driver.wrong() == [], HANDLED_SECONDS)
                wrong: list[str] = []
            except AssertionError:
                wrong = driver.wrong()
            if not wrong and phase == "deleted":
                status = operator.stop()
                wrong = driver.wrong()
                if status:
                    wrong.append(f"the operator has ended with {status}")
            if wrong:
                return [phase, *wrong, *driver.story, *operator.lines[-40:]]
    return []


def runs(
    kind: str,
    api: ApiServer,
    folder: Path,
    seeds: range,
    outage: Callable[[], None] | None = None,
) -> list[int]:
    """Play the runs of a kind in a row; the seeds of those that ended wrong."""
    wrong: list[int] = []
    for seed in seeds:
        place, began = folder / f"{kind}-{seed}", time.monotonic()
        place.mkdir()
        found = drive(KINDS[kind], api, place, seed, outage)
        took = f"{time.monotonic() - began:.0f} s"
        print(kind, seed, "wrong" if found else "right", took, flush=True)
        if found:
            wrong.append(seed)
            print(*found, sep="\n  ", flush=True)
    return wrong


@contextmanager
def answering(status: int, url: str, pki: Path) -> Iterator[None]:
    """Answer each request to an address with this status, as a load balancer does."""

    class Refusal(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pki / "server.crt", pki / "server.key")
    with ThreadingHTTPServer((address.hostname, address.port), Refusal) as server:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def with_outages(
    kinds: list[str], folder: Path, seeds: range, away: float, status: int
) -> dict[str, list[int]]:
    """The runs of all kinds in a row; the API server is away for a while in each."""
    (folder / "servers").mkdir()
    servers = Servers(folder / "servers", managed=True)
    pki = folder / "servers" / "pki"

    def outage() -> None:
        servers.end("kube-apiserver")
        servers.api.close()
        with answering(status, servers.api.url, pki) if status else nullcontext():
            time.sleep(away)  # the outage itself
        servers.start("kube-apiserver")

    try:
        servers.start(*servers.names)
        return {kind: runs(kind, servers.api, folder, seeds, outage) for kind in kinds}
    finally:
        servers.close()


def on_crds_alone(folder: Path, seeds: range) -> list[int]:
    """The runs of gardens on a current API server, which has custom kinds alone."""
    (folder / "servers").mkdir()
    with (
        crd_server.running(folder / "servers") as api,
        in_front_of(api.url, folder) as kubeconfig,
    ):
        api.kubeconfig = kubeconfig
        wrong = runs(GARDENS.kind, api, folder, seeds)
    print(f"gardens: {len(seeds)} runs, {len(wrong)} wrong ends {wrong or ''}")
    return wrong


def beside_each_other(
    kinds: list[str], folder: Path, seeds: range
) -> dict[str, list[int]]:
    (folder / "servers").mkdir()
    with (
        running(folder / "servers") as api,
        ThreadPoolExecutor(len(kinds)) as pool,
    ):
        begun = {kind: pool.submit(runs, kind, api, folder, seeds) for kind in kinds}
        return {kind: each.result() for kind, each in begun.items()}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--away", type=float, default=0.0)
    parser.add_argument("--answering", type=int, default=0)
    parser.add_argument("kinds", nargs="*")
    given = parser.parse_args(arguments)
    if unknown := {*given.kinds} - {*KINDS}:
        parser.error(f"there are no runs of {', '.join(sorted(unknown))}")
    given.kinds = given.kinds or [*SUBJECTS]
    if (reason := missing()) is not None:
        print(reason, file=sys.stderr)
        return 2
    seeds = range(given.seed, given.seed + given.runs)
    if given.kinds == [GARDENS.kind]:
        with tempfile.TemporaryDirectory(prefix="levels-") as name:
            return 1 if on_crds_alone(Path(name), seeds) else 0
    with tempfile.TemporaryDirectory(prefix="levels-") as name:
        folder = Path(name)
        if given.away:
            wrong = with_outages(
                given.kinds, folder, seeds, given.away, given.answering
            )
        else:
            wrong = beside_each_other(given.kinds, folder, seeds)
    for kind, found in wrong.items():
        print(f"{kind}: {given.runs} runs, {len(found)} wrong ends {found or ''}")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
