"""Certificates of webhooks: made, renewed, shared, and read from files."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.serving.certificates import Authority, Pair
from fnop.adapters.webhooks.certificates import Files, Own, Served, Stored
from fnop.core.admission.certificates import Lifetimes

x509 = pytest.importorskip("cryptography.x509")

NOW = 1_700_000_000.0
# Compressed: a life of a day.
LIVES = Lifetimes(authority=86_400.0, leaf=20_000.0, overlap=3_000.0)
LOOK_SECONDS, LAG_SECONDS = 1_200.0, 1_500.0  # together less than the overlap


@cache
def loaded(pem: bytes) -> list[Any]:
    found: list[Any] = x509.load_pem_x509_certificates(pem)
    return found


def is_verified(served: Served, bundle: bytes, now: float) -> bool:
    """Whether a client with this bundle accepts the certificate."""
    [leaf] = loaded(served.pair.certificate)

    def is_valid(one: Any) -> bool:
        begins, ends = one.not_valid_before_utc, one.not_valid_after_utc
        return bool(begins.timestamp() <= now < ends.timestamp())

    for each in loaded(bundle):
        if each.subject == leaf.issuer and is_valid(each) and is_valid(leaf):
            try:
                leaf.verify_directly_issued_by(each)
            except Exception:
                continue
            return True
    return False


@dataclass
class Shelf:
    """A store in memory, with versions like an API server's."""

    stored: Stored = field(default_factory=Stored)
    writes: int = 0
    fails: bool = False

    async def read(self) -> Stored:
        if self.fails:
            raise ConnectionError("the shelf is not to be reached")
        found = self.stored
        await asyncio.sleep(0)  # others may read the same
        return found

    async def write(self, pairs: Sequence[Pair], before: Stored) -> bool:
        if self.fails:
            raise ConnectionError("the shelf is not to be reached")
        if before.version != self.stored.version:
            return False
        self.writes += 1
        self.stored = Stored(tuple(pairs), str(self.writes))
        return True


@dataclass
class World:
    """The bundles that were published, and replicas that serve; no real time passes."""

    shelf: Shelf | None
    now: float = NOW
    bundles: list[tuple[float, bytes]] = field(default_factory=list)
    replicas: dict[int, Own] = field(default_factory=dict)

    async def look(self, number: int) -> Served:
        """A replica looks for what is due, and publishes a bundle that is new."""
        own = self.replicas.setdefault(number, Own(["h"], LIVES, self.shelf))
        served = await own.at(self.now)
        if not self.bundles or self.bundles[-1][1] != served.bundle:
            self.bundles.append((self.now, served.bundle))
        own.publish(served.authorities, self.now)
        return served

    def in_use(self, lag: float) -> bytes | None:
        """The bundle of a client that hears of it so late."""
        found = [each for at, each in self.bundles if at <= self.now - lag]
        return found[-1] if found else None


@given(st.integers(0, 2**32), st.integers(1, 3))
@settings(max_examples=8, deadline=None)
def test_every_bundle_in_use_verifies_what_is_served(seed: int, replicas: int) -> None:
    """Three lives of an authority, with restarts, and a store that fails at times."""
    chance = random.Random(seed)

    async def live() -> None:
        world = World(Shelf())
        assert world.shelf is not None
        while world.now < NOW + 3 * LIVES.authority:
            world.shelf.fails = bool(world.replicas) and chance.random() < 0.2
            for number in range(replicas):
                if chance.random() < 0.01 and not world.shelf.fails:
                    world.replicas.pop(number, None)
                if world.shelf.fails and number not in world.replicas:
                    continue
                served = await world.look(number)
                for lag in (0.0, LAG_SECONDS):
                    bundle = world.in_use(lag)
                    if bundle is not None:
                        assert is_verified(served, bundle, world.now)
            world.now += chance.uniform(0.5, 1.0) * LOOK_SECONDS

    asyncio.run(live())


async def test_replicas_that_start_at_once_have_one_authority() -> None:
    world = World(Shelf())
    found = await asyncio.gather(*(world.look(number) for number in range(5)))
    assert len({each.bundle for each in found}) == 1
    assert world.shelf is not None
    assert (world.shelf.writes, len(world.shelf.stored.pairs)) == (1, 1)
    assert all(is_verified(each, found[0].bundle, NOW) for each in found)
    # Each has a key of its own, and an authority that is known to all.
    assert len({each.pair.key for each in found}) == 5


async def test_authorities_that_the_store_has_lost_are_put_back() -> None:
    world = World(Shelf())
    before = await world.look(0)
    assert world.shelf is not None
    world.shelf.stored = Stored()
    after = await world.look(0)
    assert after == before
    assert len(world.shelf.stored.pairs) == 1


async def test_a_restart_keeps_what_is_stored() -> None:
    world = World(Shelf())
    before = await world.look(0)
    world.replicas.clear()
    after = await world.look(0)
    assert after.bundle == before.bundle
    assert after.pair != before.pair


async def test_a_store_out_of_reach_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(Shelf())
    assert world.shelf is not None
    world.shelf.fails = True
    with pytest.raises(ConnectionError):
        await world.look(0)
    world.shelf.fails = False
    before = await world.look(0)
    world.shelf.fails = True
    assert await world.look(0) == before
    world.now += LIVES.leaf
    assert is_verified(await world.look(0), before.bundle, world.now)
    assert [each.getMessage() for each in caplog.records] == [
        "the shelf is not to be reached; the certificates stay as they are"
    ]


async def test_certificates_are_for_names_and_addresses() -> None:
    own = Own(["127.0.0.1", "hooks.ns.svc", "::1"], LIVES)
    served = await own.at(NOW)
    [leaf] = loaded(served.pair.certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hooks.ns.svc"]
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    assert addresses == ["127.0.0.1", "::1"]
    assert leaf.subject.rfc4514_string() == "CN=hooks.ns.svc"
    assert leaf.public_key().curve.name == "secp256r1"
    long = await Own([f"{'a' * 60}.{'b' * 60}.svc"], LIVES).at(NOW)
    assert long.names == {f"{'a' * 60}.{'b' * 60}.svc"}


# ------------------------------------------------------------------------- files


class Folder:
    """Certificates in files, as a mounted Secret has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(NOW)
        self.put()

    def put(self, authority: Authority | None = None, ends: float = 10_000.0) -> None:
        self.authority = authority or self.authority
        pair = self.authority.for_server(("h",), "h", (NOW - 60, NOW + ends))
        self.write(tls=pair.certificate, key=pair.key, ca=self.authority.certificate)

    def write(self, **contents: bytes) -> None:
        for name, content in contents.items():
            (self.folder / name).write_bytes(content)

    def files(self, **options: Any) -> Files:
        paths = {name: self.folder / name for name in ("tls", "key", "ca")}
        rest: dict[str, Any] = {"bundle": paths["ca"], "password": None}
        return Files(paths["tls"], paths["key"], overlap=100.0, **(rest | options))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


async def test_a_renewed_leaf_is_served_at_once(folder: Folder) -> None:
    files = folder.files()
    before = await files.at(NOW)
    files.publish(before.authorities, NOW)
    folder.put()
    after = await files.at(NOW + 1)
    assert after.pair != before.pair
    assert after.bundle == before.bundle
    assert is_verified(after, before.bundle, NOW + 1)


async def test_a_new_authority_is_published_before_it_is_used(folder: Folder) -> None:
    files = folder.files()
    before = await files.at(NOW)
    files.publish(before.authorities, NOW)
    folder.put(Authority(NOW))
    during = await files.at(NOW + 10)
    assert during.pair == before.pair
    assert before.bundle in during.bundle
    assert folder.authority.certificate in during.bundle
    files.publish(during.authorities, NOW + 10)
    assert (await files.at(NOW + 109)).pair == before.pair
    after = await files.at(NOW + 110)
    assert after.pair.certificate == (folder.folder / "tls").read_bytes()
    assert is_verified(after, during.bundle, NOW + 110)
    # The old bundle stays as long as a replica may serve the old certificate.
    assert (await files.at(NOW + 9_999)).bundle == during.bundle
    folder.put(ends=20_000)
    assert (await files.at(NOW + 10_001)).bundle == folder.authority.certificate


async def test_files_are_served_without_the_library(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    served = await folder.files().at(NOW)
    assert served.pair.certificate == (folder.folder / "tls").read_bytes()
    assert served.names == frozenset()


async def test_files_that_are_put_back_are_served_again(folder: Folder) -> None:
    files = folder.files()
    first = folder.authority
    files.publish((await files.at(NOW)).authorities, NOW)
    folder.put(Authority(NOW))
    files.publish((await files.at(NOW + 1)).authorities, NOW + 1)
    folder.put(first)
    for now in (NOW + 2, NOW + 500):
        found = await files.at(now)
        assert found.pair.certificate == (folder.folder / "tls").read_bytes()


async def test_an_expired_certificate_gives_way_at_once(folder: Folder) -> None:
    files = folder.files()
    files.publish((await files.at(NOW)).authorities, NOW)
    folder.put(Authority(NOW), ends=50_000)
    found = await files.at(NOW + 10_000)
    assert found.pair.certificate == (folder.folder / "tls").read_bytes()


async def test_without_a_bundle_the_certificate_is_trusted(folder: Folder) -> None:
    served = await folder.files(bundle=None).at(NOW)
    assert served.bundle == (folder.folder / "tls").read_bytes()
    given = await folder.files(bundle=b"of mine").at(NOW)
    assert given.bundle == b"of mine"


BROKEN: dict[str, Any] = {
    "a certificate that is none": ({"tls": b"none"}, ["tls", "key"]),
    "an empty certificate": ({"tls": b""}, ["tls", "key"]),
    "a half of a certificate": ({"tls": b"-----BEGIN CERTIFICATE-----\nMI"}, ["tls"]),
    "the key of another one": ({"key": Authority(NOW).pair.key}, ["tls", "key"]),
    "a key that is none": ({"key": b"\xff\x00"}, ["tls", "key"]),
    "a bundle that is none": ({"ca": b"# soon"}, ["ca"]),
    "a file that is gone": ({"key": None}, ["key"]),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_broken_files_are_one_warning(
    folder: Folder, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    contents, names = BROKEN[what]
    files = folder.files()
    before = await files.at(NOW)
    for name, content in contents.items():
        if content is None:
            (folder.folder / name).unlink()
        else:
            folder.write(**{name: content})
    for later in range(1, 4):
        assert await files.at(NOW + later) == before
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert all(str(folder.folder / name) in record.getMessage() for name in names)
    assert "stays in use" in record.getMessage()
    folder.put()
    assert (await files.at(NOW + 9)).pair != before.pair
    assert len(caplog.records) == 1


@pytest.mark.parametrize("what", BROKEN)
async def test_broken_files_at_the_start_are_a_sentence(
    folder: Folder, what: str
) -> None:
    contents, names = BROKEN[what]
    for name, content in contents.items():
        (folder.folder / name).write_bytes(content or b"")
    with pytest.raises((OSError, ValueError), match=names[0]):
        await folder.files().at(NOW)


@pytest.mark.parametrize(
    ("bundle", "text"),
    [
        (Authority(NOW), "no authority in {ca} has signed the certificate in {tls}: "),
        (None, "the authority in {ca} has expired; renew it"),
    ],
    ids=["another authority", "an expired authority"],
)
async def test_a_bundle_that_verifies_nothing_is_a_warning(
    folder: Folder, caplog: pytest.LogCaptureFixture, bundle: Any, text: str
) -> None:
    if bundle is None:
        folder.put(Authority(NOW - 100, 50.0))
    else:
        folder.write(ca=bundle.certificate)
    files = folder.files()
    await files.at(NOW)
    await files.at(NOW + 1)
    [record] = caplog.records
    paths = {name: folder.folder / name for name in ("ca", "tls")}
    assert record.getMessage().startswith(text.format(**paths))


async def test_a_chain_is_verified_by_its_root(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    chain = (folder.folder / "tls").read_bytes() + folder.authority.certificate
    others = Authority(NOW).certificate + folder.authority.certificate
    folder.write(tls=chain, ca=others)
    await folder.files().at(NOW)
    assert caplog.records == []


async def test_an_expired_file_is_a_warning(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    files = folder.files()
    await files.at(NOW + 20_000)
    await files.at(NOW + 20_060)
    assert [each.getMessage() for each in caplog.records] == [
        f"the certificate in {folder.folder / 'tls'} has expired; renew it"
    ]
