"""Python's client libraries against `fnop cluster`: each does all that clients do.

Create, get, list, watch, patch, status, finalizers, delete: on a custom kind, or on a
built-in one if the library knows it better.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.boats import BOAT, CRD
from tests.clients.conftest import FnopCluster
from tests.cluster.envtest import dying_with_us, end
from tests.patience import patience

GROUP, VERSION, PLURAL = "harbour.dev", "v1", "boats"
HOLD = "harbour.dev/hold"

crd: dict[str, Any] = yaml.safe_load(CRD)
boat: dict[str, Any] = yaml.safe_load(BOAT)


@pytest.fixture
def collected() -> Iterator[None]:
    """The warnings of the garbage collector about a test appear only there."""
    yield
    gc.collect()


# -------------------------------------------------------- kubernetes_asyncio


async def test_kubernetes_asyncio(fnop_server: FnopCluster) -> None:
    client = pytest.importorskip("kubernetes_asyncio.client")
    config = pytest.importorskip("kubernetes_asyncio.config")
    watch = pytest.importorskip("kubernetes_asyncio.watch")
    await config.load_kube_config(str(fnop_server.kubeconfig))
    async with client.ApiClient() as api:
        definitions = client.ApiextensionsV1Api(api)
        await definitions.create_custom_resource_definition(crd)
        custom = client.CustomObjectsApi(api)
        place = {"group": GROUP, "version": VERSION, "plural": PLURAL}
        here = {**place, "namespace": "default"}

        made = await custom.create_namespaced_custom_object(body=boat, **here)
        found = await custom.list_cluster_custom_object(**place)
        assert [each["metadata"]["name"] for each in found["items"]] == ["anna"]

        named = {**here, "name": "anna"}
        seen = asyncio.create_task(
            watched(watch.Watch(), custom, here, found["metadata"]["resourceVersion"])
        )
        changes: list[dict[str, Any]] = [
            {"spec": {"colour": "blue"}},
            {"metadata": {"finalizers": [HOLD]}},
        ]
        for change in changes:
            await custom.patch_namespaced_custom_object(
                body=change,
                _content_type="application/merge-patch+json",
                **named,
            )
        done = await custom.patch_namespaced_custom_object_status(
            body={"status": {"oars": 2}},
            _content_type="application/merge-patch+json",
            **named,
        )
        assert done["status"] == {"oars": 2}
        assert done["spec"]["colour"] == "blue"
        await custom.delete_namespaced_custom_object(**named)
        held = await custom.get_namespaced_custom_object(**named)
        assert held["metadata"]["deletionTimestamp"]
        held["metadata"]["finalizers"] = []
        await custom.replace_namespaced_custom_object(body=held, **named)
        with pytest.raises(client.ApiException) as caught:
            await custom.get_namespaced_custom_object(**named)
        assert caught.value.status == 404
        async with asyncio.timeout(patience(20)):
            events = await seen
        assert events == [*["MODIFIED"] * 4, "DELETED"]
        assert made["metadata"]["uid"] == held["metadata"]["uid"]

        core = client.CoreV1Api(api)
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name="typed"), data={"a": "b"}
        )
        await core.create_namespaced_config_map("default", body)
        typed = await core.read_namespaced_config_map("typed", "default")
        assert typed.data == {"a": "b"}
        assert typed.metadata.creation_timestamp is not None


async def test_kubernetes_asyncio_follows_a_log(fnop_server: FnopCluster) -> None:
    client = pytest.importorskip("kubernetes_asyncio.client")
    config = pytest.importorskip("kubernetes_asyncio.config")
    watch = pytest.importorskip("kubernetes_asyncio.watch")
    await config.load_kube_config(str(fnop_server.kubeconfig))
    note, place = "simulated.fnop.dev/log", ("web", "default")
    pod = {
        "metadata": {"name": "web", "annotations": {note: "one\n"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    async with client.ApiClient() as api, asyncio.timeout(patience(20)):
        core = client.CoreV1Api(api)
        await core.create_namespaced_pod("default", pod)
        async with watch.Watch().stream(
            core.list_namespaced_pod, namespace="default"
        ) as stream:
            async for event in stream:
                if event["object"].status.phase == "Running":
                    break
        assert await core.read_namespaced_pod_log(*place) == "one\n"
        log = await core.read_namespaced_pod_log(
            *place, follow=True, _preload_content=False
        )
        async with log:
            assert await log.content.readline() == b"one\n"
            more = {"metadata": {"annotations": {note: "one\ntwo \u00e9\n"}}}
            await core.patch_namespaced_pod(*place, more)
            assert await log.content.readline() == "two \u00e9\n".encode()
            await core.delete_namespaced_pod(*place)
            assert await log.content.read() == b""


async def watched(
    watch: Any, custom: Any, place: dict[str, str], version: str
) -> list[str]:
    """The types of events until a deletion."""
    types = []
    async with watch.stream(
        custom.list_namespaced_custom_object, resource_version=version, **place
    ) as stream:
        async for event in stream:
            types.append(event["type"])
            if event["type"] == "DELETED":
                break
    return types


# ------------------------------------------------------------------------- kr8s


# It says so of each version later than itself.
@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")
@pytest.mark.usefixtures("collected")
async def test_kr8s(fnop_server: FnopCluster) -> None:
    pytest.importorskip("kr8s")
    import kr8s.asyncio
    from kr8s.asyncio.objects import ConfigMap, CustomResourceDefinition, new_class

    api = await kr8s.asyncio.api(kubeconfig=str(fnop_server.kubeconfig))
    definition = await CustomResourceDefinition(crd, api=api)
    await definition.create()
    boats = new_class("Boat", f"{GROUP}/{VERSION}", asyncio=True, namespaced=True)
    one = await boats(boat, api=api)
    await one.create()
    assert await one.exists()
    found: Any = api.get(boats, namespace="default")
    names = [each.name async for each in found]
    assert names == ["anna"]

    types: list[str] = []

    async def watched() -> None:
        async for kind, _ in api.watch("boats.harbour.dev", namespace="default"):
            types.append(kind)
            if kind == "DELETED":
                return

    watching = asyncio.create_task(watched())
    while not types:
        await asyncio.sleep(0)
    await one.patch({"spec": {"colour": "blue"}})
    assert one.spec.colour == "blue"
    await one.patch({"status": {"oars": 2}}, subresource="status")
    assert one.status.oars == 2
    await one.label(tier="one")
    await one.patch({"metadata": {"finalizers": [HOLD]}})
    await one.delete()
    await one.refresh()
    assert one.metadata.deletionTimestamp
    await one.patch({"metadata": {"finalizers": None}})
    assert not await one.exists()
    async with asyncio.timeout(patience(20)):
        await watching
    assert types[0] == "ADDED"
    assert types[-1] == "DELETED"

    body = {"metadata": {"name": "typed", "namespace": "default"}, "data": {"a": "b"}}
    config_map = await ConfigMap(body, api=api)
    await config_map.create()
    assert (await ConfigMap.get("typed", namespace="default", api=api)).data.a == "b"
    version = await api.version()
    assert version["major"] == "1"
    # kr8s has no call that closes its connections: the garbage collector would report
    # them in another test.
    session = api._session
    assert session is not None
    await session.aclose()


# -------------------------------------------------------------------- lightkube


# lightkube leaves the connections of watches to the garbage collector.
LEFT_OPEN = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"
)


@LEFT_OPEN
@pytest.mark.usefixtures("collected")
def test_lightkube(fnop_server: FnopCluster) -> None:
    pytest.importorskip("lightkube")
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    config = KubeConfig.from_file(str(fnop_server.kubeconfig))
    client = Client(config=config, namespace="default", field_manager="lightkube")
    definition: Any = CustomResourceDefinition.from_dict(crd)
    client.create(definition)
    kind: Any = create_namespaced_resource(GROUP, VERSION, "Boat", PLURAL)
    made = client.create(kind(boat))
    version = made.metadata.resourceVersion
    assert [each.metadata.name for each in client.list(kind)] == ["anna"]
    client.patch(kind, "anna", {"spec": {"colour": "blue"}}, patch_type=PatchType.MERGE)
    client.patch(
        kind.Status, "anna", {"status": {"oars": 2}}, patch_type=PatchType.MERGE
    )
    held = client.get(kind, "anna")
    assert (held["spec"]["colour"], held["status"]["oars"]) == ("blue", 2)
    client.apply(kind({**boat, "spec": {"oars": 4}}), field_manager="other", force=True)
    hold = {"metadata": {"finalizers": [HOLD]}}
    client.patch(kind, "anna", hold, patch_type=PatchType.MERGE)
    client.delete(kind, "anna")
    held = client.get(kind, "anna")
    assert held["metadata"]["deletionTimestamp"]
    client.replace(kind({**held, "metadata": {**held["metadata"], "finalizers": []}}))
    with pytest.raises(ApiError) as caught:
        client.get(kind, "anna")
    assert caught.value.status.code == 404
    types = []
    for event, _ in client.watch(kind, resource_version=version):
        types.append(event)
        if event == "DELETED":
            break
    assert types == [*["MODIFIED"] * 5, "DELETED"]
    client.create(ConfigMap(metadata=ObjectMeta(name="typed"), data={"a": "b"}))
    assert client.get(ConfigMap, "typed").data == {"a": "b"}


# ------------------------------------------------------------------------- Kopf

OPERATOR = """
import kopf

@kopf.on.create('harbour.dev', 'v1', 'boats')
def launch(body, spec, **_):
    kopf.info(body, reason='Launched', message='It swims.')
    return {'colour': spec['colour']}

@kopf.on.field('harbour.dev', 'v1', 'boats', field='spec.oars')
def rowed(new, patch, **_):
    patch.status['oars'] = new

@kopf.on.delete('harbour.dev', 'v1', 'boats')
def sink(logger, **_):
    logger.info('glug')
"""


@LEFT_OPEN
@pytest.mark.usefixtures("collected")
def test_kopf(fnop_server: FnopCluster, tmp_path: Path) -> None:
    pytest.importorskip("kopf")
    pytest.importorskip("lightkube")
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
    from lightkube.resources.core_v1 import Event
    from lightkube.types import PatchType

    config = KubeConfig.from_file(str(fnop_server.kubeconfig))
    client = Client(config=config, namespace="default")
    definition: Any = CustomResourceDefinition.from_dict(crd)
    client.create(definition)
    kind: Any = create_namespaced_resource(GROUP, VERSION, "Boat", PLURAL)
    (tmp_path / "operator.py").write_text(OPERATOR)
    command = [sys.executable, "-m", "kopf", "run", "operator.py", "--standalone"]
    with (tmp_path / "kopf.log").open("wb") as log:
        operator = subprocess.Popen(
            [*dying_with_us(), *command, "-n", "default", "--verbose"],
            cwd=tmp_path,
            env={"KUBECONFIG": str(fnop_server.kubeconfig), "HOME": str(tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        made = client.create(kind(boat))
        version = made.metadata.resourceVersion
        oars = {"spec": {"oars": 6}}
        state = "created"
        for event, seen in client.watch(kind, resource_version=version):
            status = seen.get("status") or {}
            if state == "created" and status.get("launch") == {"colour": "red"}:
                state = "patched"
                client.patch(kind, "anna", oars, patch_type=PatchType.MERGE)
            elif state == "patched" and status.get("oars") == 6:
                state = "deleted"
                assert seen.metadata.finalizers
                client.delete(kind, "anna")
            elif event == "DELETED":
                break
        assert state == "deleted", (tmp_path / "kopf.log").read_text()
        with pytest.raises(ApiError):
            client.get(kind, "anna")
    finally:
        end(operator)
    assert "glug" in (tmp_path / "kopf.log").read_text()
    assert any(each.reason == "Launched" for each in client.list(Event))
