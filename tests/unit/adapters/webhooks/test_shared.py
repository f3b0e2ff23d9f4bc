"""The authorities of webhooks in a Secret of a cluster, shared by replicas."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from fnop.adapters.serving.certificates import Authority, Pair
from fnop.adapters.webhooks.certificates import Own, Stored
from fnop.adapters.webhooks.shared import SharedSecret
from fnop.core.admission.certificates import Lifetimes
from fnop.effects.structs import replace
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, Unreachable
from tests.live import SpoiledCluster

pytest.importorskip("cryptography")
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = 1_700_000_000.0
PATH = "/api/v1/namespaces/default/secrets"
DAY = 86_400.0


class Cluster(SpoiledCluster):
    """A cluster in memory whose answers let others go on meanwhile."""

    async def send(self, request: ApiRequest) -> ApiResponse:
        await asyncio.sleep(0)
        found = await super().send(request)
        await asyncio.sleep(0)
        return found

    @property
    def secret(self) -> Any:
        return self.request(ApiRequest("GET", f"{PATH}/hooks")).body

    def put(self, type: str = "Opaque", **data: bytes) -> None:
        """Create the Secret beforehand."""
        encoded = {
            key.replace("_", "."): base64.b64encode(value).decode()
            for key, value in data.items()
        }
        metadata = {"name": "hooks", "labels": {"mine": "yes"}}
        body = {"apiVersion": "v1", "kind": "Secret", "type": type, "data": encoded}
        self.post(PATH, {**body, "metadata": metadata})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def shared(cluster: Cluster) -> SharedSecret:
    return SharedSecret(cluster, "default", "hooks")


def authority(now: float = NOW) -> Pair:
    return Authority(now).pair


async def test_replicas_that_start_at_once_end_with_one_authority(
    cluster: Cluster,
) -> None:
    replicas = [Own(["h"], Lifetimes(), shared(cluster)) for _ in range(4)]
    found = await asyncio.gather(*(each.at(NOW) for each in replicas))
    [bundle] = {each.bundle for each in found}
    assert base64.b64decode(cluster.secret["data"]["ca.crt"]) == bundle
    assert cluster.secret["type"] == "Opaque"
    later = NOW + 300 * DAY
    renewed = await asyncio.gather(*(each.at(later) for each in replicas))
    again = await asyncio.gather(*(each.at(later) for each in replicas))
    [bundle] = {each.bundle for each in again}
    assert bundle.count(b"BEGIN CERTIFICATE") == 2
    assert {len(each.authorities) for each in renewed} <= {1, 2}


async def test_what_is_written_is_read(cluster: Cluster) -> None:
    store, pairs = shared(cluster), (authority(), authority())
    assert await store.read() == Stored()
    assert await store.write(pairs, Stored())
    found = await store.read()
    assert found.pairs == pairs
    # A write for another version than the present one changes nothing.
    assert not await store.write(pairs[:1], Stored())
    assert not await store.write(pairs[:1], replace(found, version="1"))
    assert (await store.read()).pairs == pairs
    assert await store.write(pairs[1:], found)
    assert (await store.read()).pairs == pairs[1:]


async def test_a_secret_that_is_there_keeps_what_is_its_own(cluster: Cluster) -> None:
    cluster.put()
    served = await Own(["h"], Lifetimes(), shared(cluster)).at(NOW)
    assert cluster.secret["metadata"]["labels"] == {"mine": "yes"}
    assert base64.b64decode(cluster.secret["data"]["ca.crt"]) == served.bundle


async def test_the_authority_of_a_tls_secret_is_taken(cluster: Cluster) -> None:
    pair = authority()
    cluster.put("kubernetes.io/tls", tls_crt=pair.certificate, tls_key=pair.key)
    own = Own(["h"], Lifetimes(), shared(cluster))
    assert (await own.at(NOW)).bundle == pair.certificate
    await own.at(NOW + 3600 * DAY)
    assert cluster.secret["type"] == "kubernetes.io/tls"
    kept = base64.b64decode(cluster.secret["data"]["tls.crt"])
    assert kept.count(b"BEGIN CERTIFICATE") == 2


def bare() -> Pair:
    """A certificate without any extension."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "h")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(datetime.fromtimestamp(NOW, UTC))
        .not_valid_after(datetime.fromtimestamp(NOW + DAY, UTC))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    return Pair(made.public_bytes(pem), secret)


LEAF, BARE = Authority(NOW).for_server(("h",)), bare()
FOREIGN: dict[str, tuple[dict[str, bytes], str]] = {
    "a server's certificate": (
        {"tls_crt": LEAF.certificate, "tls_key": LEAF.key},
        "has no authority: the certificate is not that of an authority",
    ),
    "a certificate of old": (
        {"tls_crt": BARE.certificate, "tls_key": BARE.key},
        "has no authority: the certificate is not that of an authority",
    ),
    "another's key": (
        {"tls_crt": authority().certificate, "tls_key": LEAF.key},
        "has no authority: the key is not that of the certificate",
    ),
    "no key": (
        {"tls_crt": authority().certificate, "tls_key": b"none"},
        "has 1 certificates in tls.crt, and 0 keys in tls.key",
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
async def test_what_is_no_authority_is_a_sentence(cluster: Cluster, what: str) -> None:
    data, text = FOREIGN[what]
    cluster.put("kubernetes.io/tls", **data)
    with pytest.raises(ValueError, match=f"the Secret default/hooks {text}") as caught:
        await Own(["h"], Lifetimes(), shared(cluster)).at(NOW)
    assert "delete it, and fnop makes another one" in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (ApiResponse(403, {"message": "no"}), PermissionError, "cannot be read: no; "),
        (ApiResponse(500, None), ConnectionError, "cannot be read: HTTP status 500"),
        (ApiResponse(422, {"message": "odd"}), OSError, "cannot be read: odd"),
    ],
    ids=["forbidden", "failing", "odd"],
)
async def test_what_the_api_server_refuses_is_a_sentence(
    cluster: Cluster, answer: ApiResponse, kind: type[OSError], text: str
) -> None:
    cluster.spoils = lambda request: answer
    with pytest.raises(kind, match=f"the Secret default/hooks {text}"):
        await shared(cluster).read()


async def test_an_api_server_out_of_reach_is_a_sentence(cluster: Cluster) -> None:
    def spoils(request: ApiRequest) -> None:
        raise Unreachable("no route", sent=False)

    cluster.spoils = spoils
    with pytest.raises(ConnectionError, match="default/hooks is not to be reached: no"):
        await shared(cluster).read()
