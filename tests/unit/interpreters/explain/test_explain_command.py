"""`fnop explain` on simulated clusters: what it reads and prints."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner, Result

from fnop.adapters.cli.main import main
from fnop.adapters.common import operator_settings
from fnop.adapters.reports import explain_report
from fnop.adapters.reports.explain_report import as_lines
from fnop.adapters.reports.explaining import explained
from fnop.adapters.serving.live_cluster import Served
from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.seals import seal_of
from fnop.core.memory.stored_state import Stored, write_stored
from fnop.interpreters.explain import (
    advice,
    facts,
    fitting,
    recorded,
    state,
    surroundings,
    telling,
)
from fnop.interpreters.explain.reading import CHILDREN_MAX
from fnop.interpreters.explain.telling import explain
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest, ApiResponse
from fnop.interpreters.runtime.reading import ReadProblem
from tests.damage import damaged, whole
from tests.explain_scenarios import play
from tests.live import SpoiledCluster
from tests.simulations import DEFINITION, ROOT, example

ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "default", "namespace": "default"},
}
PATHS = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"
RECORDING = ROOT / "tests/replays/format-2/real-03-exceptions-1.fnop"


@pytest.mark.parametrize(
    "module",
    [
        *(advice, facts, fitting, recorded, state, surroundings, telling),
        *(explain_report, operator_settings),
    ],
)
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# ----------------------------------------------------------------- the scenario


class User:
    """A user in the namespace `default` of a served simulated cluster."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def create(self, manifest: dict[str, Any]) -> None:
        self._cluster.apply(manifest)

    def edit(self, kind: str, name: str, change: dict[str, Any]) -> None:
        kind_of = "application/merge-patch+json"
        path = f"{PATHS}/{name}"
        response = self._cluster.request("PATCH", path, change, content_type=kind_of)
        assert response.status == 200, response

    def delete(self, kind: str, name: str) -> None:
        self._cluster.delete(kind, name)


def test_an_operator_s_objects_are_explained(tmp_path: Path) -> None:
    cluster = SimulatedCluster()
    cluster.apply(DEFINITION)
    with cluster.serve() as served:
        play(User(cluster), served.kubeconfig, "default", tmp_path)


# ------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def served() -> Any:
    cluster = SimulatedCluster()
    cluster.apply([DEFINITION, example("one", size=1)])
    with cluster.serve() as found:
        yield found


def run(served: Served, *words: str) -> Result:
    options = ["--kubeconfig", str(served.kubeconfig)]
    return CliRunner().invoke(main, ["explain", *words, *options])


@pytest.mark.parametrize(
    "words",
    [
        ["fnopexamples/one"],
        ["fnopexample/one"],
        ["fex/one"],
        ["FnopExample/one"],
        ["FNOPEXAMPLES/one"],
        ["fnopexamples.fnop.dev/one"],
        ["fnopexamples.v1.fnop.dev/one"],
        ["fex", "one"],
    ],
)
def test_the_kind_is_named_as_for_kubectl(served: Served, words: list[str]) -> None:
    done = run(served, *words)
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert done.stdout.startswith("FnopExample one in default (fnopexamples.fnop.dev)")


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["fexx/one"], 1, "serves no kind 'fexx' (did you mean"),
        (["fex/two"], 1, "no fnopexamples.fnop.dev 'two' in the namespace default"),
        (
            ["fex/two", "-n", "other"],
            1,
            "in the namespace other; is it in another one (-n)?",
        ),
        (["fex"], 2, "name one object as KIND/NAME"),
        (["fex/one/two"], 2, "name one object as KIND/NAME"),
        (["fex/.."], 1, "'..' cannot stand in a path"),
        (["fex/one", "-n", "No"], 2, "--namespace"),
        (["fex/one", "--name", "No name"], 2, "must be a short lower-case name"),
        (["fex/one", "--state", "Up.per"], 2, "must be a domain in lower case"),
        (["fex/one", "--state-key-file", __file__], 2, "a state key has at least 32"),
        (["fex/one", "--record", str(ROOT / "README.md")], 1, "not a recording"),
        (["fex/one", "--operator", str(ROOT / "README.md")], 1, "README.md"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    served: Served, words: list[str], status: int, sentence: str
) -> None:
    done = run(served, *words)
    assert done.exit_code == status, done.output
    assert sentence in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_without_a_cluster_that_is_told(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    done = CliRunner().invoke(main, ["explain", "fex/x", "--kubeconfig", missing])
    assert done.exit_code == 1
    assert done.stderr == f"fnop: the kubeconfig {missing} does not exist\n"


def test_the_json_form_and_a_recording(served: Served) -> None:
    done = run(served, "fex/one", "-o", "json", "--record", str(RECORDING))
    assert done.exit_code == 0, done.output
    story = json.loads(done.stdout)
    assert story["version"] == 1
    # Another object's recording can only show the operator itself.
    assert {each["who"] for each in story["recorded"]} == {"fnop"}


def test_of_a_damaged_recording_is_told_what_is_before_the_damage(
    served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "run.fnop"
    file.write_bytes(damaged(0.7))
    done = run(served, "fex/one", "-o", "json", "--record", str(file))
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["recorded"]
    assert f"{file}: " in done.stderr
    assert "damage" in done.stderr


def test_that_a_recording_is_cut_off_is_told(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "run.fnop"
    file.write_bytes(whole()[: int(0.7 * len(whole()))])
    done = run(served, "fex/one", "--record", str(file))
    assert done.exit_code == 0, done.output
    assert f"{file}: the recording is cut off" in done.stderr


def test_the_filters_of_the_operator_s_file_are_asked(
    served: Served, tmp_path: Path
) -> None:
    file = tmp_path / "asked.py"
    file.write_text(
        "import fnop\n"
        "@fnop.on.create('fnopexamples')\n"
        "def made(**_): ...\n"
        "@fnop.on.event('fnopexamples', labels={'a': 'b'})\n"
        "def seen(**_): ...\n"
        "@fnop.timer('fnopexamples', interval=5, when=lambda spec, **_: spec['no'])\n"
        "def beat(**_): ...\n"
        "@fnop.on.create('configmaps')\n"
        "def other(**_): ...\n"
    )
    from tests.commands import fnop

    done = fnop(
        *("explain", "fex/one", "--operator", file),
        *("--kubeconfig", served.kubeconfig),
        folder=tmp_path,
    )
    assert (done.status, done.err) == (0, ""), done
    lines = [" ".join(each.split()) for each in done.out.splitlines()]
    assert "made create fits" in lines
    assert "seen event its filters do not fit" in lines
    assert "beat timer cannot be told" in lines
    assert not any(each.startswith("other") for each in lines)


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ("name", "asked of the API server: labels a=b, metadata only"),
        ("spec", "asked of the API server: labels a=b"),
    ],
)
def test_the_story_tells_what_the_api_server_is_asked_for(
    served: Served, tmp_path: Path, asks: str, told: str
) -> None:
    file = tmp_path / "asked.py"
    file.write_text(
        "import fnop\n"
        "@fnop.index('fnopexamples', labels={'a': 'b'})\n"
        f"def seen({asks}, **_): ...\n"
    )
    done = run(served, "fex/one", "--operator", str(file))
    assert done.exit_code == 0, done.output
    assert told in [each.strip() for each in done.stdout.splitlines()]
    done = run(served, "fex/one", "--operator", str(file), "-o", "json")
    requested = json.loads(done.stdout)["requested"]
    assert requested["selectors"] == {"labels": "a=b", "fields": ""}
    assert requested["metadata_only"] is (asks == "name")


def test_the_signature_is_checked_with_the_keys_of_a_file(
    served: Served, tmp_path: Path
) -> None:
    seal = seal_of(("k" * 32,), "default")
    assert seal is not None
    signed = example("signed")
    uid = send(served, "POST", PATHS, signed)["metadata"]["uid"]
    text = seal.sealed(write_stored(Stored(), uid))
    change = {"metadata": {"annotations": {"fnop.dev/default": text}}}
    send(served, "PATCH", f"{PATHS}/signed", change)
    for key, signature in (("k", "good"), ("x", "bad")):
        file = tmp_path / key
        file.write_text(key * 32)
        done = run(served, "fex/signed", "-o", "json", "--state-key-file", str(file))
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["state"]["signature"] == signature


def send(
    served: Served, method: str, path: str, body: dict[str, Any]
) -> dict[str, Any]:
    """A request over HTTP to a served cluster."""
    kind = MERGE_PATCH if method == "PATCH" else "application/json"
    request = Request(served.url + path, json.dumps(body).encode(), method=method)
    request.add_header("Content-Type", kind)
    with urlopen(request) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


# ------------------------------------------------------------ what may be read


@pytest.fixture
def world() -> SpoiledCluster:
    found = SpoiledCluster()
    found.define()
    return found


def refuses(request: ApiRequest) -> ApiResponse:
    message = f"{request.path} is forbidden: no right"
    return ApiResponse(403, {"kind": "Status", "message": message})


def owned(owner: dict[str, Any], name: str, kind: str, **more: Any) -> dict[str, Any]:
    meta = owner["metadata"]
    reference = {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "name": meta["name"],
        "uid": meta["uid"],
    }
    found = {"name": name, "namespace": "default", "ownerReferences": [reference]}
    return {"apiVersion": "v1", "kind": kind, "metadata": found, **more}


async def told(world: SpoiledCluster, name: str = "example-1") -> str:
    evidence = await explained(world, "fex", name, "default", Settings())
    return "\n".join(as_lines(explain(evidence)))


async def test_nothing_is_written_and_no_secret_is_read(world: SpoiledCluster) -> None:
    owner = world.post(PATHS, example())
    secret = owned(owner, "key", "Secret", data={"key": "SGVsbG8="})
    world.post("/api/v1/namespaces/default/secrets", secret)
    page = owned(owner, "page", "ConfigMap", data={"a": "b"})
    world.post("/api/v1/namespaces/default/configmaps", page)
    evidence = await explained(world, "fex", "example-1", "default", Settings())
    text = "\n".join(as_lines(explain(evidence)))
    assert "secret/key" in text
    assert "configmap/page" in text
    found = {each.resource.plural: each.body for each in evidence.children}
    assert [*found["secrets"]] == ["metadata"]
    assert found["configmaps"]["data"] == {"a": "b"}
    assert {each.method for each in world.sent} == {"GET"}
    of_secrets = [each for each in world.sent if "/secrets" in each.path]
    assert of_secrets
    assert all("PartialObjectMetadataList" in each.accept for each in of_secrets)
    # It would answer an unknown form with whole objects.
    for each in of_secrets:
        answer = await world.send(each)
        assert answer.body["kind"] == "PartialObjectMetadataList"
        assert not any("data" in item for item in answer.body["items"])


@pytest.mark.parametrize(
    ("part", "told_so"),
    [
        ("/secrets", "children of the kinds secrets: secrets cannot be listed:"),
        ("/events", "Events: "),
        ("/leases", "leases: "),
    ],
)
async def test_what_may_not_be_read_is_told_and_stops_nothing(
    part: str, told_so: str, world: SpoiledCluster
) -> None:
    owner = world.post(PATHS, example())
    page = owned(owner, "page", "ConfigMap")
    world.post("/api/v1/namespaces/default/configmaps", page)
    world.spoils = lambda request: (
        refuses(request) if request.path.endswith(part) else None
    )
    text = await told(world)
    assert "Not looked at" in text
    assert told_so in text
    assert "no right" in text
    assert "configmap/page" in text
    assert "What now" in text


async def test_who_may_look_into_one_namespace_alone_is_told_so_once(
    world: SpoiledCluster,
) -> None:
    held = example()
    held["metadata"]["finalizers"] = ["fnop.dev/default"]
    owner = world.post(PATHS, held)
    page = owned(owner, "page", "ConfigMap")
    world.post("/api/v1/namespaces/default/configmaps", page)
    world.spoils = lambda request: (
        refuses(request)
        if any(key in ("limit", "fieldSelector") for key, _ in request.query)
        and "/namespaces/default/" not in request.path
        else None
    )
    evidence = await explained(world, "fex", "example-1", "default", Settings())
    far = "children in other namespaces of the kinds "
    assert [each.startswith(far) for each in evidence.unread] == [True], evidence.unread
    assert " more: " in evidence.unread[0]
    assert [each.resource.plural for each in evidence.children] == ["configmaps"]


async def test_an_object_that_may_not_be_read_is_an_error(
    world: SpoiledCluster,
) -> None:
    world.post(PATHS, example())
    world.spoils = lambda request: (
        refuses(request) if request.path.startswith(PATHS) else None
    )
    with pytest.raises(ReadProblem, match=r"cannot be read: .* is forbidden"):
        await told(world)


async def test_pods_below_a_child_are_told_of(world: SpoiledCluster) -> None:
    world.post("/api/v1/namespaces/default/serviceaccounts", ACCOUNT)
    owner = world.post(PATHS, example())
    page = world.post(
        "/api/v1/namespaces/default/configmaps", owned(owner, "page", "ConfigMap")
    )
    page = {**page, "kind": "ConfigMap", "apiVersion": "v1"}
    pods = "/api/v1/namespaces/default/pods"
    containers = {"containers": [{"name": "a", "image": "a"}]}
    pod = owned(page, "below", "Pod", spec=containers)
    pod["metadata"]["ownerReferences"][0].update(kind="ConfigMap", apiVersion="v1")
    made = world.post(pods, pod)
    world.post(pods, {**pod, "metadata": {"name": "alone", "namespace": "default"}})
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    one = {"name": "a", "state": waiting, "restartCount": 2, "ready": False}
    one |= {"image": "a", "imageID": ""}
    status = {"phase": "Pending", "containerStatuses": [one]}
    change = {"status": status}
    path = f"{pods}/{made['metadata']['name']}/status"
    answer = world.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
    assert answer.status == 200, answer
    lines = [" ".join(each.split()) for each in (await told(world)).splitlines()]
    at = next(n for n, each in enumerate(lines) if each.startswith("configmap/page"))
    assert lines[at + 1].startswith("pod/below ")
    assert lines[at + 1].endswith("Pending, ImagePullBackOff, 2 restarts")
    assert not any(each.startswith("pod/alone") for each in lines)


async def test_many_children_are_cut_and_that_is_told(world: SpoiledCluster) -> None:
    owner = world.post(PATHS, example())
    for number in range(CHILDREN_MAX + 3):
        page = owned(owner, f"page-{number}", "ConfigMap")
        world.post("/api/v1/namespaces/default/configmaps", page)
    evidence = await explained(world, "fex", "example-1", "default", Settings())
    assert len(evidence.children) == CHILDREN_MAX
    assert f"3 more of {CHILDREN_MAX + 3} children" in evidence.unread


async def test_the_operator_is_the_one_whose_marks_are_there(
    world: SpoiledCluster,
) -> None:
    marked = example()
    marked["metadata"]["finalizers"] = ["fnop.dev/billing"]
    world.post(PATHS, marked)
    found = await explained(world, "fex", "example-1", "default", Settings())
    assert found.settings.operator == "billing"
    named = await explained(
        world, "fex", "example-1", "default", Settings(), is_named=True
    )
    assert named.settings.operator == "default"
