"""Listings and watches of the real and of the simulated cluster: one reader."""

import copy
import doctest
from typing import Any

import orjson
from hypothesis import given, settings, strategies as st

from fnop.core.api.resources import Resource
from fnop.core.seam.commands import ListPage
from fnop.core.seam.inputs import (
    Bookmark,
    ListDone,
    ListItem,
    StreamEnded,
    WatchEvent,
)
from fnop.interpreters.runtime import answers
from fnop.interpreters.runtime.answers import page_inputs, watch_input
from fnop.interpreters.runtime.protocol import ApiResponse
from tests.thorough import examples

KIND = Resource("fnop.dev", "v1", "fnopexamples", "FnopExample")
PAGE = ListPage(3, KIND, None, 500)
HEAD = {"apiVersion": "fnop.dev/v1", "kind": "FnopExample"}
names = st.text("abc", min_size=1, max_size=3)
versions = st.integers(1, 99).map(str)
objects = st.builds(
    lambda name, version, spec, head: {
        **head,
        "metadata": {"name": name, "resourceVersion": version},
        "spec": spec,
    },
    names,
    versions,
    st.dictionaries(names, st.integers(-(2**63), 2**63 - 1) | names, max_size=3).map(
        lambda found: {key: found[key] for key in sorted(found)}
    ),
    st.sampled_from(({}, HEAD)),
)
# What may come instead of a listing, an object, a Status.
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            names | st.sampled_from(("metadata", "items", "kind", "code", "message")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


def listing(items: Any, version: str, token: str | None) -> ApiResponse:
    meta = {"resourceVersion": version, "continue": token}
    return ApiResponse(200, {"kind": "List", "metadata": meta, "items": items})


@settings(max_examples=examples(50))
@given(st.lists(objects, max_size=4), versions, st.none() | names)
def test_a_page_is_each_object_with_its_kind_and_where_to_go_on(
    items: list[dict[str, Any]], version: str, token: str | None
) -> None:
    """The same as bytes and parsed; what the server holds is not touched."""
    held = copy.deepcopy(items)
    parsed = [*page_inputs(PAGE, listing(items, version, token))]
    kept = [*page_inputs(PAGE, listing(items, version, token), as_bytes=True)]
    assert items == held
    for found in (parsed, kept):
        assert found[-1] == ListDone(3, version, token)
        seen = [each.body.data for each in found if isinstance(each, ListItem)]
        assert seen == [{**HEAD, **each} for each in items]
    for each in kept[:-1]:
        assert isinstance(each, ListItem)
        assert orjson.loads(each.body.raw) == each.body.data
        each.body.forget()
        assert each.body.data["kind"] == "FnopExample"


@settings(max_examples=examples(50))
@given(odd)
def test_what_is_no_page_ends_the_listing(body: Any) -> None:
    found = [*page_inputs(PAGE, ApiResponse(200, body))]
    match found[-1]:
        case StreamEnded(3, "undecodable", None, message):
            assert len(found) == 1
            assert message.startswith("no ")
        case ListDone():
            assert body["metadata"]["resourceVersion"]
        case end:
            raise AssertionError(end)


@settings(max_examples=examples(50))
@given(st.sampled_from((400, 403, 410, 429, 503)), odd, st.none() | st.just(7.0))
def test_a_refusal_keeps_its_status_and_the_advice(
    status: int, body: Any, advice: float | None
) -> None:
    (end,) = page_inputs(PAGE, ApiResponse(status, body, advice))
    assert isinstance(end, StreamEnded)
    assert (end.reason, end.status, end.retry_after_seconds) == (
        "refused",
        status,
        advice,
    )
    assert end.message


@given(
    st.sampled_from(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "SYNCED")),
    objects | odd,
)
def test_each_line_of_a_watch_is_one_input(type: str, found: Any) -> None:
    """With any content, it is taken in or ends the watch; nothing raises."""
    match watch_input(3, type, found):
        case WatchEvent(3, changed, body):
            assert changed == type in ("ADDED", "MODIFIED", "DELETED")
            assert body.data is found
            assert body.name
            assert body.version
        case Bookmark(3, version):
            assert type == "BOOKMARK"
            assert found["metadata"]["resourceVersion"] == version
        case StreamEnded(3, "refused", status):
            assert type == "ERROR"
            assert status is None or status == found["code"]
        case StreamEnded(3, "undecodable", None, message):
            assert type != "ERROR"
            assert message.startswith(f"no watch event: {type} of ")
        case end:
            raise AssertionError(end)


def test_the_examples_hold() -> None:
    assert doctest.testmod(answers).failed == 0
