"""fnop and kubectl mean the same kinds by the same names, on a real API server.

The definitions are generated: groups whose names begin alike, kinds in several
versions, served or not, and names that other groups have as short ones.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fnop.adapters.kubernetes.client import connect
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, Selector, path_of
from fnop.interpreters.plan.source import Cluster
from tests.cluster.envtest import ApiServer, assets
from tests.patience import eventually, patience

KUBECTL = shutil.which("kubectl", path=f"{assets()}{os.pathsep}{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(
    KUBECTL is None, reason="needs kubectl on the PATH or in KUBEBUILDER_ASSETS"
)

Json = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUPS = ("named.dev", "v1.named.dev", "more.named.dev")
VERSIONS = ("v1", "v1beta1", "v1alpha1", "v2", "stable")
# Plural, singular and kind, which need not be alike, and short names.
NAMES = (
    ("nmboats", "nmboat", "NmBoat", ["nmb"]),
    ("nmships", "nmvessel", "NmShip", ["nms", "nmboat"]),
    ("nmcrafts", "nmcraft", "NmWaterCraft", ["nmb", "nmships"]),
)
# kubectl takes 0.1 s for each name that it does not find.
ABSENT_MOST = 6


def definitions() -> Iterator[Json]:
    chance = random.Random(20)
    for group in GROUPS:
        # Names that a kind of the same group has already are not accepted.
        taken: set[str] = set()
        for plural, singular, kind, shorts in NAMES:
            taken |= {plural, singular}
            names = {
                "plural": plural,
                "singular": singular,
                "kind": kind,
                "shortNames": [each for each in shorts if each not in taken],
            }
            taken.update(shorts)
            versions = chance.sample(VERSIONS, chance.randint(1, 3))
            yield {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {
                    "group": group,
                    "scope": chance.choice(["Namespaced", "Cluster"]),
                    "names": names,
                    "versions": [
                        {
                            "name": version,
                            "served": chance.random() < 0.7,
                            "storage": version == versions[0],
                            "schema": {"openAPIV3Schema": {"type": "object"}},
                        }
                        for version in versions
                    ],
                },
            }


def names_of(definition: Json) -> Iterator[str]:
    """The names of a kind in all forms, some of them meaningless."""
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    plural, kind = names["plural"], names["kind"]
    first = group.partition(".")[0]
    # kubectl drops the version of a short name, and the first part of a group may be
    # one; fnop looks at it.
    is_inner = group.partition(".")[2] in GROUPS
    shorts = [] if is_inner else names["shortNames"]
    every = [plural, names["singular"], kind, kind.lower(), *shorts]
    for each in [*every, plural.upper(), kind.upper(), *map(str.upper, shorts)]:
        yield each
        yield f"{each}.{group}"
    for version in VERSIONS:
        for each in (plural, kind):
            yield f"{each}.{version}.{group}"
    if first not in VERSIONS:  # fnop takes `pods.v1` for a version
        yield f"{plural}.{first}"
    yield f"{plural}.other.dev"
    yield f"{plural}."


@dataclass(frozen=True)
class Named:
    """A server with the definitions: what fnop found there, and its kubectl."""

    catalogue: Catalogue
    environment: dict[str, str]
    definitions: tuple[Json, ...]

    def kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(KUBECTL), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=patience(20),
            check=False,
        )

    @property
    def names(self) -> list[str]:
        found = [name for each in self.definitions for name in names_of(each)]
        return [*dict.fromkeys(found)]

    def meant(self, name: str) -> tuple[Resource, ...]:
        return self.catalogue.find(Selector.of(name))


def is_found_by_kind_alone(name: str, found: tuple[Resource, ...]) -> bool:
    """Whether kubectl wants a group with it: the kind is not like the other names."""
    shown = {each for one in found for each in (one.plural, one.singular)}
    shorts = {each for one in found for each in one.shortcuts}
    return "." not in name and name.lower() not in shown and name not in shorts


@pytest.fixture(scope="module")
def named(
    apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Named]:
    made = tuple(definitions())
    for each in made:
        status, answer = apiserver.raw("POST", CRDS, each)
        assert status == 201, answer
    served = {
        (each["spec"]["group"], version["name"], each["spec"]["names"]["plural"])
        for each in made
        for version in each["spec"]["versions"]
        if version["served"]
    }
    found = asyncio.run(catalogue_of(apiserver))
    try:

        def is_known() -> bool:
            nonlocal found
            found = asyncio.run(catalogue_of(apiserver))
            return served <= {tuple(each) for each in found.resources}

        eventually(is_known, every=0.3)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path_factory.mktemp("kubectl")),
            "KUBECONFIG": str(apiserver.kubeconfig),
        }
        yield Named(found, environment, made)
    finally:
        for each in made:
            apiserver.raw("DELETE", f"{CRDS}/{each['metadata']['name']}")


async def looked_at(api: ApiServer) -> tuple[Catalogue, str | None]:
    connected = await connect(kubeconfig=str(api.kubeconfig), context=None)
    try:
        return await Cluster(connected).catalogue()
    finally:
        await connected.close()


async def catalogue_of(api: ApiServer) -> Catalogue:
    catalogue, problem = await looked_at(api)
    assert problem is None
    return catalogue


def test_what_fnop_finds_kubectl_finds_in_the_same_version(named: Named) -> None:
    every = ((name, named.meant(name)) for name in named.names)
    found = {
        name: kinds
        for name, kinds in every
        if kinds and not is_found_by_kind_alone(name, kinds)
    }
    assert len(found) > 60
    assert any(len(kinds) > 1 for kinds in found.values()), "none is ambiguous"
    objects = [f"{name}/n{number}" for number, name in enumerate(found)]
    done = named.kubectl("get", *objects, "-n", "default", "-v=6")
    asked = {
        int(number): path
        for path, number in re.findall(
            r"GET https?://[^/\s]+(\S+)/n(\d+)(?=[ \"])", done.stderr
        )
    }
    assert len(asked) == len(found), done.stderr[-2000:]
    for number, (name, kinds) in enumerate(found.items()):
        # If several groups have the name, kubectl takes the first one; fnop reports the
        # ambiguity.
        assert asked[number] in [path_of(each, "default") for each in kinds], name


def test_what_fnop_does_not_find_kubectl_does_not_find(named: Named) -> None:
    absent = [name for name in named.names if not named.meant(name)]
    assert absent
    for name in random.Random(1).sample(absent, min(ABSENT_MOST, len(absent))):
        done = named.kubectl("get", name)
        assert "the server doesn't have a resource type" in done.stderr, name


def test_each_kind_has_the_version_that_kubectl_lists(named: Named) -> None:
    done = named.kubectl("api-resources", "--no-headers", "-o", "wide")
    lines = done.stdout.splitlines()
    # Name, short names (or none), version, and whether it is in namespaces.
    rows = (re.match(r"(\S+)\s.*?(\S+)\s+(?:true|false)\s", each) for each in lines)
    listed = {row.groups() for row in rows if row}
    ours = {
        (each.plural, each.api_version)
        for each in named.catalogue.resources
        if each.preferred
    }
    # kubectl omits kinds that cannot be listed; verbs do not depend on versions.
    assert listed <= ours
    groups = {each["spec"]["group"] for each in named.definitions}
    own = {(plural, at) for plural, at in ours if at.partition("/")[0] in groups}
    assert own <= listed


def test_a_version_that_is_down_hides_no_other(
    named: Named, apiserver: ApiServer
) -> None:
    """An aggregated API is the group's preferred version, and answers 503."""
    group = GROUPS[0]
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    service = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v9.{group}"},
        "spec": {
            "group": group,
            "version": "v9",
            "service": {"name": "absent", "namespace": "default"},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 1000,
            "versionPriority": 1000,
        },
    }
    status, answer = apiserver.raw("POST", path, service)
    assert status == 201, answer
    try:
        place = f"/apis/{group}"
        eventually(lambda: apiserver.raw("GET", f"{place}/v9")[0] == 503, every=0.1)
        first = apiserver.raw("GET", place)[1]["preferredVersion"]["version"]
        assert first == "v9"
        found, problem = asyncio.run(looked_at(apiserver))
        assert problem is not None
        name = f"nmboats.{group}"
        boats, before = found.lookup(name), named.catalogue.lookup(name)
        assert boats is not None
        assert boats == before
        done = named.kubectl("get", f"{name}/x", "-n", "default", "-v=6")
        assert f"{path_of(boats, 'default')}/x" in done.stderr
    finally:
        apiserver.raw("DELETE", f"{path}/v9.{group}")
