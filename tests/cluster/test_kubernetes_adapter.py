"""The client of a real cluster, on a real API server."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fnop.adapters.kubernetes.client import KubernetesApi, connect
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    StreamRefused,
    StreamSilent,
    Unreachable,
    WatchLine,
)
from tests.cluster.envtest import ApiServer
from tests.patience import patience


@pytest_asyncio.fixture
async def api(apiserver: ApiServer) -> AsyncIterator[KubernetesApi]:
    api = await connect(kubeconfig=str(apiserver.kubeconfig), context=None)
    yield api
    await api.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**head, "metadata": {"name": name}, "data": data}


def maps(namespace: str, name: str = "") -> str:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return f"{path}/{name}" if name else path


def watch_from(version: str, path: str) -> ApiRequest:
    query = (
        ("watch", "true"),
        ("resourceVersion", version),
        ("timeoutSeconds", "30"),
        ("allowWatchBookmarks", "true"),
    )
    return ApiRequest("GET", path, query)


async def list_version(api: KubernetesApi, path: str) -> str:
    found = await api.send(ApiRequest("GET", path))
    return str(found.body["metadata"]["resourceVersion"])


async def first_lines(
    api: KubernetesApi, request: ApiRequest, count: int, name: str | None = None
) -> list[WatchLine]:
    """This number of lines of the watch; with a name, only lines of that object."""
    lines: list[WatchLine] = []
    async with asyncio.timeout(patience(20)):
        async with aclosing(api.watch(request, silence_seconds=patience(20))) as stream:
            async for line in stream:
                if name is None or line.object["metadata"]["name"] == name:
                    lines.append(line)
                if len(lines) == count:
                    break
    return lines


async def test_the_life_of_an_object(api: KubernetesApi, namespace: str) -> None:
    body = config_map("one", a="1")
    made = await api.send(ApiRequest("POST", maps(namespace), body=body))
    assert (made.status, made.body["data"]) == (201, {"a": "1"})

    again = await api.send(ApiRequest("POST", maps(namespace), body=body))
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")

    patch = ApiRequest(
        "PATCH",
        maps(namespace, "one"),
        (("fieldManager", "a b&c"),),
        {"data": {"b": "ü"}},
        MERGE_PATCH,
    )
    changed = await api.send(patch)
    assert (changed.status, changed.body["data"]) == (200, {"a": "1", "b": "ü"})
    managers = {each["manager"] for each in changed.body["metadata"]["managedFields"]}
    assert "a b&c" in managers

    gone = await api.send(ApiRequest("DELETE", maps(namespace, "one")))
    missing = await api.send(ApiRequest("GET", maps(namespace, "one")))
    assert (gone.status, missing.status) == (200, 404)


async def test_a_name_with_a_colon_is_addressed(api: KubernetesApi) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
    assert (await api.send(ApiRequest("GET", path))).status == 200


async def test_text_is_answered_as_a_status(api: KubernetesApi) -> None:
    answer = await api.send(ApiRequest("GET", "/readyz"))
    assert (answer.status, answer.body["message"]) == (200, "ok")


async def test_a_watch_shows_every_change(api: KubernetesApi, namespace: str) -> None:
    path, name = maps(namespace), maps(namespace, "one")
    watch = watch_from(await list_version(api, path), path)
    await api.send(ApiRequest("POST", path, (), config_map("one", a="1")))
    await api.send(ApiRequest("PATCH", name, (), {"data": {"a": "2"}}, MERGE_PATCH))
    await api.send(ApiRequest("DELETE", name))

    lines = await first_lines(api, watch, 3, "one")
    assert [line.type for line in lines] == ["ADDED", "MODIFIED", "DELETED"]
    assert [line.object["data"]["a"] for line in lines] == ["1", "2", "2"]
    assert [json.loads(line.raw or b"") for line in lines] == [
        line.object for line in lines
    ]


async def test_an_object_of_a_megabyte_is_one_line(
    api: KubernetesApi, namespace: str
) -> None:
    path = maps(namespace)
    watch = watch_from(await list_version(api, path), path)
    long = base64.b64encode(bytes(750_000)).decode()
    await api.send(ApiRequest("POST", path, body=config_map("big", long=long)))
    (line,) = await first_lines(api, watch, 1, "big")
    assert line.object["data"]["long"] == long
    assert json.loads(line.raw or b"") == line.object


async def test_an_unknown_kind_is_refused(api: KubernetesApi, namespace: str) -> None:
    path = f"/apis/nothing.example/v1/namespaces/{namespace}/things"
    with pytest.raises(StreamRefused) as refused:
        await first_lines(api, watch_from("1", path), 1)
    assert refused.value.status == 404


async def test_silence_is_noticed(api: KubernetesApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    request = watch_from(await list_version(api, path), path)
    with pytest.raises(StreamSilent):
        async for _ in api.watch(request, silence_seconds=0.2):
            pass


async def test_watches_take_no_request_slots(
    apiserver: ApiServer, namespace: str
) -> None:
    api = await connect(
        kubeconfig=str(apiserver.kubeconfig), context=None, concurrency=1
    )
    path = maps(namespace)
    request = watch_from(await list_version(api, path), path)
    streams = [api.watch(request, silence_seconds=patience(20)) for _ in range(5)]
    heads = [asyncio.ensure_future(anext(stream)) for stream in streams]
    async with asyncio.timeout(patience(20)):
        await api.send(ApiRequest("POST", path, body=config_map("one")))
        assert len(await asyncio.gather(*heads)) == 5
    for stream in streams:
        await stream.aclose()
    await api.close()


async def test_a_token_is_an_identity_too(apiserver: ApiServer) -> None:
    for file, status in (
        (apiserver.token_kubeconfig, 200),
        (apiserver.nobody_kubeconfig, 403),
    ):
        api = await connect(kubeconfig=str(file), context=None)
        answer = await api.send(ApiRequest("GET", "/api/v1/nodes"))
        await api.close()
        assert answer.status == status


async def test_rejected_credentials_are_renewed_once_for_all(
    apiserver: ApiServer, tmp_path: Path
) -> None:
    config = json.loads(apiserver.token_kubeconfig.read_text())
    good = config["users"][0]["user"].pop("token")
    (tmp_path / "token").write_text("expired")
    config["users"][0]["user"]["tokenFile"] = "token"
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))

    api = await connect(kubeconfig=str(file), context=None)
    (tmp_path / "token").write_text(good)
    request = ApiRequest("GET", "/api/v1/namespaces")
    answers = await asyncio.gather(*(api.send(request) for _ in range(8)))
    assert {answer.status for answer in answers} == {200}
    assert (await first_lines(api, watch_from("0", request.path), 1))[0].raw
    await api.close()


async def test_hopeless_credentials_end_as_401(
    apiserver: ApiServer, tmp_path: Path
) -> None:
    config = json.loads(apiserver.token_kubeconfig.read_text())
    config["users"][0]["user"]["token"] = "wrong"
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    api = await connect(kubeconfig=str(file), context=None)
    for _ in range(3):
        answer = await api.send(ApiRequest("GET", "/api/v1/nodes"))
        assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")
    with pytest.raises(StreamRefused) as refused:
        await first_lines(api, watch_from("0", "/api/v1/nodes"), 1)
    await api.close()
    assert refused.value.status == 401


async def test_an_unknown_authority_is_named(
    apiserver: ApiServer, tmp_path: Path
) -> None:
    config = json.loads(apiserver.kubeconfig.read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    api = await connect(kubeconfig=str(file), context=None)
    with pytest.raises(Unreachable, match="certificate") as problem:
        await api.send(ApiRequest("GET", "/version"))
    await api.close()
    assert not problem.value.sent


async def test_the_name_on_the_certificate_can_be_set(
    apiserver: ApiServer, tmp_path: Path
) -> None:
    config = json.loads(apiserver.kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    for name, works in (("kubernetes.default", True), ("elsewhere.example", False)):
        cluster["tls-server-name"] = name
        file = tmp_path / name
        file.write_text(json.dumps(config))
        api = await connect(kubeconfig=str(file), context=None)
        if works:
            assert (await api.send(ApiRequest("GET", "/version"))).status == 200
        else:
            with pytest.raises(Unreachable, match=r"elsewhere\.example"):
                await api.send(ApiRequest("GET", "/version"))
        await api.close()
