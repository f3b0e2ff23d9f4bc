"""`fnop replay --why`: the authors of a field's changes, and its value's source."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.adapters.recordings.story_report import why_lines, written
from fnop.core.api.resources import Resource
from fnop.core.children.fields import managers_at
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.paths import find, parse_path
from fnop.interpreters.recording.model.sources import IndexEntry, Reply
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.provenance import Provenance, Why
from tests.histories import OURS, History, config, in_former_words
from tests.pages import timeline_of
from tests.simulations import example
from tests.thorough import examples

KIND = "fnopexamples"


def marking(value: str = "us") -> Registry:
    """An operator that patches a ConfigMap which others write, too."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="mark")
    @fnop.on.update(KIND, registry=registry, id="mark")
    async def mark(spec: Any, **_: Any) -> None:
        owner = spec.get("owner", value)
        target = fnop.target("configmaps", name="shared", namespace="default")
        await fnop.patch(target, data={"owner": owner})

    @fnop.on.event("configmaps", registry=registry)
    def look(**_: Any) -> None:
        """Shows the recording what others write."""

    return registry


def shared(**spec: Any) -> tuple[dict[str, Any], ...]:
    return config("shared", x="1"), example(n=1, **spec)


def text(why: Why | None, field: str, about: str = "shared") -> list[str]:
    assert why is not None
    return [*why_lines(about, field, why, {"mark": "op.py:7"})]  # type: ignore[arg-type]


# ---------------------------------------------------------------- who has written it


def test_a_patch_that_changes_nothing_has_written_nothing() -> None:
    history = History(marking(), config("shared", owner="us"), example(n=1))
    why = history.why("configmaps/shared", "data.owner")
    assert why is not None
    assert (why.write, why.author, why.is_own) == (None, "", False)
    (*_, written) = text(why, "data.owner")
    assert written.strip().startswith("written by somebody else; managers of the field")


@pytest.mark.parametrize("manager", [OURS, ""])
def test_a_patch_after_the_same_value_of_somebody_else_has_written_nothing(
    manager: str,
) -> None:
    """By the managed fields, even if these are not used."""
    history = History(marking(), config("shared", owner="them"), example(owner="us"))
    history.writes("alice", "configmaps", "shared", data={"owner": "them"})
    history.writes("alice", "configmaps", "shared", data={"owner": "us"})
    history.writes("bob", KIND, "example-1", spec={"n": 2})
    why = history.why("configmaps/shared", "data.owner", manager=manager)
    assert why is not None
    assert why.write is None
    assert why.managers == ("alice",)


def test_a_reply_that_comes_later_is_not_lost() -> None:
    history = History(marking(), *shared())
    why = history.why("configmaps/shared", "data.owner")
    assert why is not None
    assert why.write is not None
    # A server's watch may be faster than its reply.
    *before, reply = history.records()[: why.shown.step]
    body = reply["input"]["outcome"]["object"]
    event = {"in": "WatchEvent", "stream": 1, "type": "MODIFIED", "body": body}
    early = {**reply, "input": event, "commands": []}
    started = {**before[0], "wall": reply["wall"]}
    not_yet, lost = ", whose reply had not come yet", ", whose reply was lost"
    for later, words in (
        ([early], not_yet),
        ([early, reply], ""),
        # The next process hears no answers to requests of this one.
        ([early, started], lost),
    ):
        history.is_told(*before, *later)
        (_, _, written, *_) = text(
            history.why("configmaps/shared", "data.owner"), "data.owner"
        )
        assert written.endswith(f"{words}, for handler mark (op.py:7)")
        assert ("reply" in written) == bool(words)


values = st.sampled_from(["a", "b"])
writes = st.tuples(st.sampled_from(["alice", "operator"]), values)


@settings(max_examples=examples(20))
@given(values, st.lists(writes, max_size=6))
def test_whoever_manages_a_field_has_written_it(
    first: str, script: list[tuple[str, str]]
) -> None:
    """The API server keeps who was the last to change a value."""
    history = History(marking(), config("shared", owner=first), example(owner=first))
    for number, (who, value) in enumerate(script, 2):
        if who == "alice":
            history.writes(who, "configmaps", "shared", data={"owner": value})
        else:
            spec = {"n": number, "owner": value}
            history.writes("bob", KIND, "example-1", spec=spec)
    live = history.run.get("configmaps", "shared")
    assert live is not None
    path = parse_path("data.owner")
    why = history.why("configmaps/shared", "data.owner")
    assert why is not None
    assert why.value == find(live, path)
    is_ours = managers_at(live, path) == [OURS]
    assert (why.write is not None) == is_ours
    assert (why.author == "mark") == is_ours
    if why.write is not None:
        assert why.write.step < why.shown.step, "it is sent before it is shown"


def test_the_end_of_an_object_is_asked_for_by_whoever_deletes_it() -> None:
    registry = Registry()

    @fnop.on.delete(KIND, registry=registry)
    async def gone(**_: Any) -> None:
        await fnop.sleep(5)

    history = History(registry).deletes(KIND)
    why = history.why("example-1", "metadata.deletionTimestamp")
    assert why is not None
    assert why.is_servers
    assert why.write is None, "not the patch that has removed the finalizer"
    assert why.gone is not None
    lines = text(why, "metadata.deletionTimestamp")
    assert lines[1].strip().startswith(f"the object is gone since #{why.gone.step}")
    assert lines[-1].strip() == (
        "set by the API server, and not with a request of this operator"
    )


def test_the_operator_asks_for_the_end_of_what_it_deletes() -> None:
    registry = Registry()

    @fnop.on.update(KIND, registry=registry, id="mark")
    async def remove(**_: Any) -> None:
        await fnop.delete("configmaps", name="shared", namespace="default")

    @fnop.on.event("configmaps", registry=registry)
    def look(**_: Any) -> None: ...

    held = config("shared", x="1")
    held["metadata"]["finalizers"] = ["example.com/held"]
    history = History(registry, held, example(n=1))
    history.writes("bob", KIND, "example-1", spec={"n": 2})
    why = history.why("configmaps/shared", "metadata.deletionTimestamp")
    assert why is not None
    assert why.write is not None
    assert why.write.effect["is"] == "Delete"
    (*_, last) = text(why, "metadata.deletionTimestamp")
    assert "set by the API server with the Delete sent at #" in last
    assert last.endswith("for handler mark (op.py:7)")


@pytest.mark.parametrize(
    "field", ["uid", "generation", "creationTimestamp", "resourceVersion"]
)
def test_the_api_server_sets_what_nobody_else_can(field: str) -> None:
    why = History(marking(), *shared()).why("example-1", f"metadata.{field}")
    assert why is not None
    assert why.is_servers
    assert not why.author
    assert not why.is_own


def test_the_text_data_of_a_secret_becomes_its_data() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="secret")
    async def secret(**_: Any) -> None:
        metadata = {"name": "key"}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await fnop.adopt({**body, "stringData": {"key": "correct horse"}})

    why = History(registry).why("secrets/key", "data.key")
    assert why is not None
    assert why.author == "secret"
    assert why.attempt is not None


# ---------------------------------------------------------------- who has removed it


def test_a_field_that_somebody_else_has_removed() -> None:
    history = History(marking(), *shared())
    history.writes("alice", "configmaps", "shared", data={"x": None})
    why = history.why("configmaps/shared", "data.x")
    assert why is not None
    assert (why.value, why.former, why.write) == (None, "1", None)
    first, removed, was, by = text(why, "data.x")
    assert first == "shared: data.x is not there any more"
    assert removed.strip().startswith("removed in version ")
    assert was.strip().startswith('it was "1" until version ')
    assert by.strip().startswith(
        "removed by somebody else; managers of the field until"
    )


def test_a_field_that_a_handler_has_removed() -> None:
    registry = Registry()

    @fnop.on.update(KIND, registry=registry, id="mark")
    def clear(patch: Any, **_: Any) -> None:
        patch.spec["extra"] = None

    history = History(registry, example(n=1, extra="x"))
    history.writes("bob", KIND, "example-1", spec={"n": 2})
    why = history.why("example-1", "spec.extra")
    assert why is not None
    assert (why.value, why.former, why.author) == (None, "x", "mark")
    assert "removed by the Patch sent at #" in text(why, "spec.extra")[3]


def test_a_field_that_is_applied_no_longer_is_removed_by_that() -> None:
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="mark")
    def keep(spec: Any, **_: Any) -> fnop.Desired:
        data = {"a": "1"} | ({"b": "2"} if spec["n"] == 1 else {})
        return fnop.desired(config("kept", **data))

    history = History(registry, example(n=1))
    history.writes("bob", KIND, "example-1", spec={"n": 2})
    why = history.why("configmaps/kept", "data.b")
    assert why is not None
    assert (why.value, why.former, why.author) == (None, "2", "mark")


def test_what_never_was_has_no_provenance() -> None:
    assert History(marking(), *shared()).why("configmaps/shared", "data.no") is None


def test_an_earlier_step_is_asked_about() -> None:
    history = History(marking("first"), *shared())
    history.writes("alice", "configmaps", "shared", data={"owner": "later"})
    now = history.why("configmaps/shared", "data.owner")
    assert now is not None
    assert (now.value, now.author) == ("later", "")
    found = history.why("configmaps/shared", "data.owner", at=now.shown.step - 1)
    assert found is not None
    assert (found.value, found.author) == ("first", "mark")


# ------------------------------------------------- several handlers, one write


def several() -> Registry:
    """One patches, one returns, one changes by a function."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id="announce")
    def announce(**_: Any) -> Any:
        return fnop.patch(status={"phase": "New"})

    @fnop.on.create(KIND, registry=registry, id="computed")
    def computed(patch: Any, **_: Any) -> None:
        def change(body: Any) -> None:
            body["status"]["sum"] = 7

        patch.fns.append(change)

    @fnop.on.field(KIND, field="spec.n", registry=registry, id="limited")
    def limited(new: Any, **_: Any) -> Any:
        return {"limit": new}

    return registry


@pytest.mark.parametrize(
    ("field", "author"),
    [
        ("status.phase", "announce"),
        ("status.sum", "computed"),
        ("status[limited/spec.n].limit", "limited/spec.n"),
        ("status[limited/spec.n]", "limited/spec.n"),
        ("status[fnop.dev/default]", ""),
    ],
)
def test_a_fused_write_has_several_authors(field: str, author: str) -> None:
    why = History(several()).why("example-1", field)
    assert why is not None
    assert (why.author, why.is_own) == (author, not author)
    assert (why.attempt is None) == (not author)


@pytest.mark.parametrize("form", [dict, in_former_words])
def test_the_page_names_the_fields_of_each_author(form: Any) -> None:
    """Also of a recording of an earlier release."""
    records = [*map(form, History(several()).records())]
    timeline = timeline_of({}, records)
    behind = Behind(timeline.events, timeline.revisions)
    links = {
        link.text
        for each in timeline.events
        if each.request is not None and each.request.is_write
        for link in behind.links(each)
    }
    assert "status.phase: decided by announce, called for create" in links
    fields = "status[limited/spec.n]"
    assert any(each.startswith(fields) for each in links), links


def test_a_condition_of_the_operator_itself_is_no_handlers() -> None:
    registry = several()

    @fnop.on.create(KIND, registry=registry, id="conditions")
    def conditions(**_: Any) -> Any:
        ready = {"type": "Ready", "status": "True"}
        return fnop.patch(status={"conditions": [ready]})

    @fnop.on.create(KIND, registry=registry)
    def never(**_: Any) -> None:
        raise fnop.PermanentError("no")

    history = History(registry)
    authors = [
        (each is not None and each.author, each is not None and each.is_own)
        for each in (
            history.why("example-1", f"status.conditions[type={type}].status")
            for type in (OURS, "Ready")
        )
    ]
    assert authors == [("", True), ("conditions", False)]


# ---------------------------------------------------------------- within lists


def conditioned() -> Registry:
    registry = Registry()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="mark")
    def keep(spec: Any, **_: Any) -> fnop.Desired:
        return fnop.desired(
            conditions=[
                fnop.condition("Ready", spec["n"] > 1, "Counted"),
                fnop.condition("Calm", True),
            ]
        )

    return registry


def test_an_element_has_a_provenance_of_its_own() -> None:
    history = History(conditioned())
    history.writes("bob", KIND, "example-1", spec={"n": 2})
    ready, calm = (
        history.why("example-1", f"status.conditions[type={each}].status")
        for each in ("Ready", "Calm")
    )
    assert ready is not None
    assert calm is not None
    assert (ready.value, ready.former, ready.author) == ("True", "False", "mark")
    assert (calm.value, calm.former, calm.author) == ("True", None, "mark")
    assert calm.shown.step < ready.shown.step


def test_of_a_long_list_that_is_told_which_differs() -> None:
    history = History(conditioned())
    history.writes("bob", KIND, "example-1", spec={"n": 2})
    why = history.why("example-1", "status.conditions")
    lines = text(why, "status.conditions")
    assert any(
        each.strip() == '[type=Ready].status: "False" -> "True"' for each in lines
    ), lines


# ---------------------------------------------------------------- the origin


def price_of(item: str) -> dict[str, Any]:
    """The price of a thing."""
    return {"EUR": {"price": 35 if item == "lamp" else 7}}


def test_an_equal_answer_is_named() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def quote(patch: Any, **_: Any) -> None:
        found = await fnop.call(price_of, item="lamp")
        patch.status["price"] = found["EUR"]["price"]

    why = History(registry, calls=(price_of,)).why("example-1", "status.price")
    assert why is not None
    ((source, step),) = why.sources
    assert isinstance(source.of, Reply)
    assert step == source.of.step
    assert why.attempt is not None
    assert why.write is not None
    assert why.attempt.step < step <= why.write.step
    assert any(
        each.strip() == f"the value is equal to EUR.price of what Call price_of "
        f"answered at #{step}"
        for each in text(why, "status.price")
    )


def test_an_equal_entry_of_an_index_is_named_with_its_object() -> None:
    registry = Registry()

    @fnop.index("configmaps", labels={"role": "template"}, registry=registry)
    def templates(name: str, body: Any, **_: Any) -> Any:
        return {name: dict(body["data"])}

    @fnop.on.create(KIND, registry=registry)
    def colour(patch: Any, templates: Any = fnop.INDEX, **_: Any) -> None:
        (found,) = templates["gold"]
        patch.status["colour"] = found["colour"]

    gold = config("gold", colour="golden")
    gold["metadata"]["labels"] = {"role": "template"}
    why = History(registry, gold, example(n=1)).why("example-1", "status.colour")
    assert why is not None
    assert why.indices == (("templates", 1),)
    ((source, step),) = why.sources
    assert isinstance(source.of, IndexEntry)
    assert (source.of.name, source.of.key, source.path) == (
        *("templates", "gold"),
        ("colour",),
    )
    lines = [each.strip() for each in text(why, "status.colour")]
    assert (
        "there were the indices templates (1 key), for handlers that take them" in lines
    )
    assert (
        'the value is equal to what the index templates holds for "gold", in colour: '
        f"it is of configmaps/default/gold, since #{step}"
    ) in lines


def test_values_that_are_everywhere_are_no_source() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def quote(patch: Any, **_: Any) -> None:
        await fnop.call(nothing)
        patch.status["ready"] = True

    why = History(registry, calls=(nothing,)).why("example-1", "status.ready")
    assert why is not None
    assert why.sources == ()
    assert len(why.answers) == 1


def nothing() -> dict[str, Any]:
    """Any argument."""
    return {"ready": True}


RESOURCE = Resource("", "v1", "configmaps", "ConfigMap")


PATH = parse_path("data.size")


def step(
    uid: str, version: str, size: str, manager: str, type: str = "MODIFIED"
) -> dict[str, Any]:
    """The step in which a version is shown, of an object in one of its lives."""
    fields: dict[str, Any] = {"f:data": {"f:size": {}}}
    entry = {"manager": manager, "operation": "Update", "fieldsV1": fields}
    meta = {"name": "x", "namespace": "n", "uid": uid, "resourceVersion": version}
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**meta, "managedFields": [entry]},
        "data": {"size": size},
    }
    input = {"in": "WatchEvent", "stream": 1, "type": type, "body": body}
    return {"input": input, "commands": [], "wall": 0.0, "mono": 0.0}


def told(*steps: dict[str, Any], manager: str = "me") -> Provenance:
    found = Provenance(RESOURCE, "n", "x", manager)
    for each in steps:
        found.add(each)
    return found


def test_each_life_of_an_object_has_its_writers() -> None:
    provenance = told(
        step("u-1", "5", "1", "alice", "ADDED"),
        step("u-1", "6", "2", "bob"),
        step("u-1", "7", "2", "bob", "DELETED"),
        step("u-2", "8", "2", "carol", "ADDED"),
        step("u-2", "9", "3", "carol"),
    )
    changes = provenance.changes(PATH)
    assert [(e.value, e.shown.body.uid, *e.managers) for e in changes] == [
        ("1", "u-1", "alice"),
        ("2", "u-1", "bob"),
        ("2", "u-2", "carol"),
        ("3", "u-2", "carol"),
    ]
    # The question of now is about the last life.
    why = provenance.why(PATH)
    assert why is not None
    assert (why.value, why.former) == ("3", "2")


def test_a_write_without_an_answer_is_the_operators_own_by_its_name() -> None:
    own = told(step("u-1", "5", "1", "me", "ADDED")).why(PATH)
    assert own is not None
    assert "by this operator, with a request that is not recorded" in written(own, {})
    other = told(step("u-1", "5", "1", "alice", "ADDED")).why(PATH)
    assert other is not None
    assert "by somebody else; managers of the field: alice" in written(other, {})
    # The operator's name is unknown.
    nameless = told(step("u-1", "5", "1", "me", "ADDED"), manager="").why(PATH)
    assert nameless is not None
    assert "by somebody else" in written(nameless, {})
