"""The sync hook for Metacontroller, called as Metacontroller's documentation says.

There is no Metacontroller here: `Controller` does with the answers what the reference
of CompositeController describes. It deletes objects that are no longer named, merges
named ones in the way of `kubectl apply`, and replaces the whole status.
"""

from __future__ import annotations

import json
import threading
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from http.server import HTTPServer
from typing import Any
from urllib.request import Request, urlopen

import yaml

from bench.elsewhere.metacontroller_database import Hook, sync
from tests.patience import patience
from tests.simulations import ROOT, Scenario, example_handlers, manifests_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MONTH = timedelta(seconds=2592000)
DECLARED = ROOT / "bench" / "elsewhere" / "metacontroller.yaml"
FULL_NAMES = {
    ("v1", "configmaps"): "ConfigMap.v1",
    ("v1", "secrets"): "Secret.v1",
    ("v1", "services"): "Service.v1",
    ("apps/v1", "statefulsets"): "StatefulSet.apps/v1",
}


class Controller:
    """Metacontroller's part around the hook, for one database."""

    def __init__(self) -> None:
        self.declared = yaml.safe_load(DECLARED.read_text())
        parent = deepcopy(manifests_of("19-database")[1])
        parent["metadata"] |= {"namespace": "default", "uid": "1", "generation": 1}
        self.parent: Any = parent
        kinds = self.declared["spec"]["childResources"]
        self.children: dict[str, dict[str, Any]] = {
            FULL_NAMES[each["apiVersion"], each["resource"]]: {} for each in kinds
        }
        self.last: dict[tuple[str, str], Any] = {}
        self.passwords = 0

    def request(self) -> Any:
        return {
            "controller": self.declared,
            "parent": self.parent,
            "children": self.children,
            "related": {},
            "finalizing": False,
        }

    def sync(self, now: datetime = NOON) -> Any:
        """One call, and what becomes of its answer."""
        self.passwords += 1
        given = json.loads(json.dumps(self.request()))
        answer = json.loads(json.dumps(sync(given, now, f"{self.passwords:032}")))
        named: dict[str, Any] = {kind: {} for kind in self.children}
        for each in answer["children"]:
            kind = f"{each['kind']}.{each['apiVersion']}"  # one that is declared
            named[kind][each["metadata"]["name"]] = each
        for kind, found in self.children.items():
            self.children[kind] = {
                name: applied(found.get(name), self.last.get((kind, name)), each)
                for name, each in named[kind].items()
            }
            self.last |= {(kind, name): each for name, each in named[kind].items()}
        generation = self.parent["metadata"]["generation"]
        self.parent["status"] = {**answer["status"], "observedGeneration": generation}
        return answer

    def edit(self, **spec: Any) -> None:
        self.parent["spec"] |= spec
        self.parent["metadata"]["generation"] += 1

    def one(self, kind: str) -> Any:
        return self.children[kind]["example-1"]

    def follow(self, replicas: int, ready: int) -> None:
        """The StatefulSet's controller has seen what is asked."""
        found = self.one("StatefulSet.apps/v1")
        found["metadata"]["generation"] = 1
        found["status"] = {
            "observedGeneration": 1,
            "replicas": replicas,
            "readyReplicas": ready,
        }


def applied(found: Any, last: Any, desired: Any) -> Any:
    """Fields that are no longer named are removed; others' fields stay."""
    if not isinstance(found, dict) or not isinstance(desired, dict):
        return deepcopy(desired)
    known = last if isinstance(last, dict) else {}
    kept = {k: v for k, v in found.items() if k in desired or k not in known}
    merged = {k: applied(kept.get(k), known.get(k), v) for k, v in desired.items()}
    return kept | merged


def has(wanted: Any, found: Any) -> bool:
    """Whether all of it is there; the API server fills in more."""
    if isinstance(wanted, dict):
        return all(key in found and has(v, found[key]) for key, v in wanted.items())
    if isinstance(wanted, list):
        return len(wanted) == len(found) and all(map(has, wanted, found))
    return bool(wanted == found)


def test_the_children_are_those_of_the_example() -> None:
    definition, example = manifests_of("19-database")
    run = Scenario(example_handlers("19-database"), [definition])
    run.apply(example)
    assert run.settle(), run.unsettled
    controller = Controller()
    controller.sync()
    for plural, kind in (
        ("configmaps", "ConfigMap.v1"),
        ("services", "Service.v1"),
        ("statefulsets", "StatefulSet.apps/v1"),
    ):
        found, ours = run.get(plural, "example-1", "default"), controller.one(kind)
        assert found is not None
        assert has({**ours, "metadata": {}}, found)
    assert controller.parent["status"]["endpoint"] == "example-1.default.svc:5432"


def test_at_rest_the_answer_stays_and_the_password_is_kept() -> None:
    controller = Controller()
    before = controller.sync()
    later = controller.sync(NOON + timedelta(hours=1))
    assert later["children"] == before["children"]
    assert later["status"]["conditions"] == before["status"]["conditions"]
    assert before["resyncAfterSeconds"] == MONTH.total_seconds()
    assert later["resyncAfterSeconds"] == (MONTH - timedelta(hours=1)).total_seconds()


def test_a_password_is_made_anew_when_it_is_old_or_lost() -> None:
    controller = Controller()
    controller.sync()
    seen = [controller.one("Secret.v1")["data"]["password"]]
    controller.sync(NOON + MONTH)
    seen.append(controller.one("Secret.v1")["data"]["password"])
    controller.one("Secret.v1")["data"] = {"others": "MQ=="}
    controller.sync(NOON + MONTH)
    seen.append(controller.one("Secret.v1")["data"]["password"])
    assert len({*seen}) == 3
    assert controller.one("Secret.v1")["data"]["others"] == "MQ=="


def test_fewer_replicas_come_one_by_one() -> None:
    controller = Controller()
    controller.sync()
    controller.follow(replicas=3, ready=3)
    controller.sync()
    (ready,) = controller.parent["status"]["conditions"]
    assert (ready["status"], ready["message"]) == ("True", "3/3")
    controller.edit(size=1)
    asked = []
    for there in (3, 3, 2, 2, 1, 1):
        controller.follow(replicas=there, ready=there)
        controller.sync()
        asked.append(controller.one("StatefulSet.apps/v1")["spec"]["replicas"])
    assert asked == [2, 2, 1, 1, 1, 1]


def test_another_disk_deletes_the_stateful_set_and_names_it_again() -> None:
    controller = Controller()
    controller.sync()
    controller.edit(disk="2Gi")
    controller.sync()
    assert controller.children["StatefulSet.apps/v1"] == {}
    controller.sync()
    claim = controller.one("StatefulSet.apps/v1")["spec"]["volumeClaimTemplates"][0]
    assert claim["spec"]["resources"]["requests"]["storage"] == "2Gi"


def test_conditions_of_others_survive_the_replacement_of_the_status() -> None:
    controller = Controller()
    controller.sync()
    other = {"type": "BackedUp", "status": "True"}
    controller.parent["status"]["conditions"].append(other)
    controller.follow(replicas=3, ready=3)
    later = NOON + timedelta(minutes=1)
    controller.sync(later)
    ready, kept = controller.parent["status"]["conditions"]
    assert kept == other
    assert ready["lastTransitionTime"] == "2030-01-01T12:01:00Z"
    controller.sync(later + timedelta(minutes=1))
    assert controller.parent["status"]["conditions"] == [ready, kept]


class Silent(Hook):
    def log_message(self, format: str, *args: Any) -> None:
        """Tests are quiet."""


def test_it_is_served_over_http() -> None:
    controller = Controller()
    server = HTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/sync"
        data = json.dumps(controller.request()).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(url, data, headers), timeout=patience(20)) as response:
            answer = json.load(response)
    finally:
        thread.join()
        server.server_close()
    assert [each["kind"] for each in answer["children"]] == [
        "ConfigMap",
        "Secret",
        "Service",
        "StatefulSet",
    ]
    assert controller.declared["spec"]["hooks"]["sync"]["webhook"]["url"].endswith(
        "/sync"
    )
