"""Storages that write and read what Kopf's storages write and read."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from fnop import kopf
from fnop.adapters.kopf.arguments.bodies import Body
from fnop.adapters.kopf.arguments.patches import Patch
from fnop.adapters.kopf.declaring import storages
from fnop.core.values.merge import applied

theirs = pytest.importorskip("kopf")

FEW = settings(max_examples=25)
PREFIXES = ["kopf.zalando.org", "kopf.dev", "example.com", "my-op.example.com"]
# Ids of handlers, with fields, sub-handlers, lambdas, and of any length.
IDS = st.one_of(
    st.sampled_from(
        ["create_fn", "a/spec.field", "outer.<locals>.inner", "p/c1", "x" * 64]
    ),
    st.text("abcXYZ-_./<>", min_size=1, max_size=90),
)
TIMES = st.none() | st.just("2020-01-01T00:00:00.000000+00:00")
RECORDS = st.fixed_dictionaries(
    {
        "started": TIMES,
        "stopped": TIMES,
        "delayed": TIMES,
        "purpose": st.sampled_from([None, "create", "update"]),
        "retries": st.none() | st.integers(0, 9),
        "success": st.booleans(),
        "failure": st.booleans(),
        "message": st.none() | st.text(max_size=5),
        "subrefs": st.none() | st.just(["a/b"]),
    }
)
WORDS = st.text("ab/.", min_size=1, max_size=4)
ANNOTATIONS = st.dictionaries(
    st.one_of(
        st.sampled_from(
            [
                "kubectl.kubernetes.io/last-applied-configuration",
                "example.com/kopf-managed",
                "example.com/note",
                "other.org/kopf-managed",
                "other.org/state",
                "sub.kopf.zalando.org/x",
                "kopf.zalando.org/touch-dummy",
                "plain",
            ]
        ),
        st.builds(
            lambda prefix, name: f"{prefix}/{name}", st.sampled_from(PREFIXES), WORDS
        ),
    ),
    st.sampled_from(["", "yes"]),
    max_size=5,
)
VALUES = st.integers(0, 3) | st.lists(st.integers(0, 3), max_size=2)
NESTED = st.dictionaries(st.sampled_from(["x", "y"]), VALUES, max_size=2)
# Kopf itself fails if its own field of the status is not a mapping.
STANZAS = st.fixed_dictionaries(
    {}, optional={"a": VALUES | NESTED, "b": VALUES | NESTED, "kopf": NESTED}
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Objects of any kind, ReplicaSets of Deployments among them."""
    meta: dict[str, Any] = {"name": "a", "uid": "u", "generation": 1}
    if draw(st.booleans()):
        meta["annotations"] = draw(ANNOTATIONS)
    if draw(st.booleans()):
        meta["labels"] = draw(st.dictionaries(WORDS, st.just("1"), max_size=2))
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "Example", "metadata": meta}
    if draw(st.booleans()):
        found["kind"] = "ReplicaSet"
        owner = draw(st.sampled_from(["Deployment", "Rollout"]))
        meta["ownerReferences"] = [{"kind": owner}]
    for name in ("spec", "status", "data"):
        if draw(st.booleans()):
            found[name] = draw(STANZAS)
    return found


class Case(NamedTuple):
    """One storage, by its class and its arguments, in both frameworks."""

    name: str
    options: dict[str, Any]

    def of(self, module: Any) -> Any:
        return getattr(module, self.name)(**self.options)


def annotated(name: str) -> st.SearchStrategy[Case]:
    more: dict[str, Any] = {}
    if name == "AnnotationsProgressStorage":
        more = {
            "verbose": st.booleans(),
            "touch_key": st.sampled_from(["touch-dummy", "t"]),
        }
    options = st.fixed_dictionaries(
        {"prefix": st.sampled_from(PREFIXES), "v1": st.booleans(), **more}
    )
    return st.builds(Case, st.just(name), options)


FIELDS = st.sampled_from(
    [{}, {"name": "own"}, {"field": "status.deep.er"}, {"field": ("status", "a.b")}]
)
PROGRESS = st.one_of(
    st.just(Case("SmartProgressStorage", {})),
    st.builds(
        Case,
        st.just("SmartProgressStorage"),
        st.fixed_dictionaries(
            {"prefix": st.sampled_from(PREFIXES), "name": st.just("own")}
        ),
    ),
    annotated("AnnotationsProgressStorage"),
    st.builds(Case, st.just("StatusProgressStorage"), FIELDS),
)
IGNORED = st.sampled_from(
    [(), ("spec.a",), ("spec.a.x", ("data",)), ("metadata.labels",)]
)
DIFFBASE = st.one_of(
    st.just(Case("AnnotationsDiffBaseStorage", {})),
    st.builds(
        lambda case, ignored: case._replace(
            options={**case.options, "ignored_fields": ignored}
        ),
        st.one_of(
            annotated("AnnotationsDiffBaseStorage"),
            st.builds(Case, st.just("StatusDiffBaseStorage"), FIELDS),
        ),
        IGNORED,
    ),
)


def made(case: Any) -> tuple[Any, Any]:
    """Our storage and Kopf's."""
    return case.of(storages), case.of(theirs)


def patched(
    storage: Any, cls: Any, patch: Any, verb: str, body: Any, **given: Any
) -> Any:
    """The patch of one call of a storage."""
    getattr(storage, verb)(body=cls(copy.deepcopy(body)), patch=patch, **given)
    return json.loads(json.dumps(patch))


def both(case: Any, body: Any, verb: str, **given: Any) -> tuple[Any, Any]:
    ours, kopf = made(case)
    return (
        patched(ours, Body, Patch(), verb, body, **given),
        patched(kopf, theirs.Body, theirs.Patch(), verb, body, **given),
    )


class Several(NamedTuple):
    """Several storages in one."""

    name: str
    cases: tuple[Case, ...]

    def of(self, module: Any) -> Any:
        return getattr(module, self.name)([each.of(module) for each in self.cases])


ALL_PROGRESS = PROGRESS | st.builds(
    Several, st.just("MultiProgressStorage"), st.lists(PROGRESS, max_size=3).map(tuple)
)
ALL_DIFFBASE = DIFFBASE | st.builds(
    Several, st.just("MultiDiffBaseStorage"), st.lists(DIFFBASE, max_size=3).map(tuple)
)


# ------------------------------------------------------------------------- progress


@FEW
@given(ALL_PROGRESS, bodies(), IDS, RECORDS)
def test_records_are_written_as_by_kopf(
    case: Any, body: Any, id: str, record: Any
) -> None:
    ours, kopf = both(case, body, "store", key=id, record=record)
    assert ours == kopf


@FEW
@given(ALL_PROGRESS, bodies(), IDS, RECORDS)
def test_records_of_either_are_read_by_the_other(
    case: Any, body: Any, id: str, record: Any
) -> None:
    ours, kopf = made(case)
    for patch in both(case, body, "store", key=id, record=record):
        stored = applied(patch, body)
        found = ours.fetch(key=id, body=Body(stored))
        assert found == kopf.fetch(key=id, body=theirs.Body(stored))
        writes = not isinstance(case, Several) or bool(case.cases)
        assert (found is not None) is writes or case.name == "StatusProgressStorage"


@FEW
@given(ALL_PROGRESS, bodies(), IDS, RECORDS)
def test_records_are_purged_as_by_kopf(
    case: Any, body: Any, id: str, record: Any
) -> None:
    patch, _ = both(case, body, "store", key=id, record=record)
    for each in (body, applied(patch, body)):
        ours, kopf = both(case, each, "purge", key=id)
        assert ours == kopf
    purged = applied(ours, applied(patch, body))
    assert made(case)[0].fetch(key=id, body=Body(purged)) is None


@FEW
@given(ALL_PROGRESS, bodies(), IDS, RECORDS, st.booleans())
def test_a_record_that_the_patch_stores_is_purged_from_it(
    case: Any, body: Any, id: str, record: Any, twice: bool
) -> None:
    ours, kopf = Patch(), theirs.Patch()
    for verb in ("store", "purge", *(["purge"] if twice else [])):
        more = {"record": record} if verb == "store" else {}
        first, second = made(case)
        patched(first, Body, ours, verb, body, key=id, **more)
        patched(second, theirs.Body, kopf, verb, body, key=id, **more)
    assert json.dumps(ours, sort_keys=True) == json.dumps(kopf, sort_keys=True)


@FEW
@given(ALL_PROGRESS, bodies(), st.none() | st.just("now"))
def test_objects_are_touched_as_by_kopf(
    case: Any, body: Any, value: str | None
) -> None:
    ours, kopf = both(case, body, "touch", value=value)
    assert ours == kopf


@FEW
@given(ALL_PROGRESS, ALL_DIFFBASE, bodies(), IDS, RECORDS)
def test_essences_are_cleared_as_by_kopf(
    case: Any, diffbase: Any, body: Any, id: str, record: Any
) -> None:
    patch, _ = both(case, body, "store", key=id, record=record)
    given = applied(patch, body)
    ours, kopf = made(case)
    essence, theirs_built = built(diffbase, given)
    assert essence == theirs_built
    before = copy.deepcopy(essence)
    assert ours.clear(essence=essence) == kopf.clear(essence=copy.deepcopy(before))
    assert essence == before


# --------------------------------------------------------------- last-handled object

EXTRA = st.sampled_from(
    [
        None,
        [("status", "a")],
        [("status", "kopf", "x"), ("metadata", "name")],
        ["spec.a"],
    ]
)


def built(case: Any, body: Any, extra: Any = None) -> tuple[Any, Any]:
    ours, kopf = made(case)
    return (
        ours.build(body=Body(copy.deepcopy(body)), extra_fields=extra),
        kopf.build(body=theirs.Body(copy.deepcopy(body)), extra_fields=extra),
    )


@FEW
@given(ALL_DIFFBASE, bodies(), EXTRA)
def test_essences_are_built_as_by_kopf(case: Any, body: Any, extra: Any) -> None:
    ours, kopf = built(case, body, extra)
    assert ours == kopf


@FEW
@given(ALL_DIFFBASE, bodies())
def test_essences_are_stored_as_by_kopf(case: Any, body: Any) -> None:
    essence, _ = built(case, body)
    patch, wanted = both(case, body, "store", essence=essence)
    assert patch == wanted
    stored = applied(patch, body)
    ours, kopf = made(case)
    found = ours.fetch(body=Body(stored))
    assert found == kopf.fetch(body=theirs.Body(stored))
    writes = not isinstance(case, Several) or bool(case.cases)
    assert found == (essence if writes else None)


@FEW
@given(ALL_DIFFBASE, bodies())
def test_what_a_storage_writes_is_no_change_of_the_essence(
    case: Any, body: Any
) -> None:
    essence, _ = built(case, body)
    patch, _ = both(case, body, "store", essence=essence)
    ours, kopf = built(case, applied(patch, body))
    assert ours == kopf


def test_a_build_leaves_the_object_as_it_is() -> None:
    body = Body({"metadata": {"labels": {"a": "b"}}, "spec": {"a": {"b": 1}}})
    found = storages.AnnotationsDiffBaseStorage().build(body=body)
    found["spec"]["a"]["b"] = 2
    found["metadata"]["labels"]["a"] = "c"
    assert body.spec["a"]["b"] == 1
    assert body.meta.labels == {"a": "b"}


# ------------------------------------------------------------------------- prefixes


@FEW
@given(st.sampled_from(PREFIXES), st.booleans(), IDS, bodies())
def test_keys_of_annotations_are_those_of_kopf(
    prefix: str, v1: bool, id: str, body: Any
) -> None:
    case = Case("AnnotationsProgressStorage", {"prefix": prefix, "v1": v1})
    ours, kopf = made(case)
    assert [*ours.make_keys(id)] == [*kopf.make_keys(id)]
    wanted = [*kopf.make_keys(id, body=theirs.Body(body))]
    assert [*ours.make_keys(id, body=Body(body))] == wanted


@pytest.mark.parametrize(
    "name", ["AnnotationsProgressStorage", "AnnotationsDiffBaseStorage"]
)
def test_a_prefix_is_needed_and_a_long_one_warns(name: str) -> None:
    for module in (storages, theirs):
        with pytest.raises(ValueError, match="prefix"):
            getattr(module, name)(prefix="")
        with pytest.warns(UserWarning, match="prefix"):
            getattr(module, name)(prefix="x" * 190)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert getattr(module, name)(prefix="x" * 189).prefix == "x" * 189


def test_the_marker_of_kopf_is_written_once() -> None:
    storage = storages.AnnotationsProgressStorage(prefix="example.com")
    marked = {"metadata": {"annotations": {"example.com/kopf-managed": "yes"}}}
    first, again = Patch(), Patch()
    storage.store(key="a", record={}, body=Body({}), patch=first)
    storage.store(key="a", record={}, body=Body(marked), patch=again)
    assert first.meta.annotations["example.com/kopf-managed"] == "yes"
    assert [*again.meta.annotations] == ["example.com/a"]


def test_replicasets_of_deployments_have_keys_of_their_own() -> None:
    storage = storages.AnnotationsProgressStorage()
    copied = Body(
        {
            "kind": "ReplicaSet",
            "metadata": {"ownerReferences": [{"kind": "Deployment"}]},
        }
    )
    assert storage.make_keys("a", body=copied) == ("kopf.zalando.org/a-ofDRS",)
    assert storage.make_keys("a", body=Body({"kind": "ReplicaSet"})) == (
        "kopf.zalando.org/a",
    )


# ------------------------------------------------------------------- own storages


def test_a_storage_of_the_author_is_one_of_several() -> None:
    class Shelf(storages.ProgressStorage):
        """Keeps records in its process."""

        def __init__(self) -> None:
            self.records: dict[str, Any] = {}

        def fetch(self, *, key: str, body: Any) -> Any:
            return self.records.get(key)

        def store(self, *, key: str, record: Any, body: Any, patch: Any) -> None:
            self.records[key] = record

        def purge(self, *, key: str, body: Any, patch: Any) -> None:
            self.records.pop(key, None)

        def touch(self, *, body: Any, patch: Any, value: str | None) -> None: ...

        def clear(self, *, essence: Any) -> Any:
            return super().clear(essence=essence)

    shelf, body, patch = Shelf(), Body({}), Patch()
    storage = storages.MultiProgressStorage([shelf, storages.StatusProgressStorage()])
    storage.store(key="a", record={"retries": 1}, body=body, patch=patch)
    assert shelf.records == {"a": {"retries": 1}}
    assert patch == {"status": {"kopf": {"progress": {"a": {"retries": 1}}}}}
    assert storage.fetch(key="a", body=body) == {"retries": 1}
    storage.purge(key="a", body=body, patch=patch)
    assert storage.fetch(key="a", body=body) is None
    essence = {"spec": {"a": 1}}
    cleared = storage.clear(essence=essence)
    assert cleared == essence
    assert cleared is not essence
    storage.flush()


def test_fields_can_be_set_later_as_in_kopf() -> None:
    for module in (storages, theirs):
        progress = module.StatusProgressStorage(name="own")
        progress.field = "status.x.{name}"
        progress.touch_field = ["status", "y"]
        assert tuple(progress.field) == ("status", "x", "own")
        assert tuple(progress.touch_field) == ("status", "y")
        diffbase = module.StatusDiffBaseStorage()
        diffbase.field = "status.z"
        assert tuple(diffbase.field) == ("status", "z")


def test_subclasses_form_names_and_clean_essences_by_the_methods_of_kopf() -> None:
    class Hidden(kopf.AnnotationsProgressStorage):
        def make_v2_key(self, key: str) -> str:
            return f"{self.prefix}/hidden-{key}"

    class Bare(kopf.AnnotationsDiffBaseStorage):
        def mark_key(self, key: str, *, body: Any) -> str:
            return f"{key}-{body['kind'].lower()}"

        def build(self, *, body: Any, extra_fields: Any = None) -> Any:
            found = super().build(body=body, extra_fields=extra_fields)
            self.remove_annotations(found, {"secret"})
            self.remove_empty_stanzas(found)
            return found

    body = kopf.Body({"kind": "K", "metadata": {"annotations": {"secret": "1"}}})
    patch = kopf.Patch()
    storage = Hidden(prefix="own.example.com", v1=False)
    storage.store(key="a", record=kopf.ProgressRecord(), body=body, patch=patch)
    assert "own.example.com/hidden-a" in patch["metadata"]["annotations"]

    base = Bare(prefix="own.example.com", v1=False)
    assert base.build(body=body) == {}
    base.store(body=body, patch=patch, essence=base.build(body=body))
    last = "own.example.com/last-handled-configuration-k"
    assert last in patch["metadata"]["annotations"]
