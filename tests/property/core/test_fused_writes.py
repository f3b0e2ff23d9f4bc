"""`fnop replay --why` for one write that carries changes of several handlers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.paths import path_text
from fnop.interpreters.recording.model.refs import Named
from fnop.interpreters.recording.questions.provenance import Provenance
from tests.histories import OURS, History, in_former_words, leaves
from tests.simulations import example as manifest
from tests.thorough import examples

KIND = "fnopexamples"
# How a handler is called, what it does there, and the field that it patches.
Spec = tuple[str, tuple[str, ...], str]

CALLED = ("create", "event", "field")
DOES = ("patches", "returns a mapping", "returns a text", "sets patch", "sleeps")
FIELDS = ("status/shared", "status/a", "metadata/labels", "status/deep")

specs = st.lists(
    st.tuples(
        st.sampled_from(CALLED),
        st.lists(st.sampled_from(DOES), unique=True, max_size=4).map(tuple),
        st.sampled_from(FIELDS),
    ),
    min_size=2,
    max_size=4,
)


def change_of(field: str, author: str) -> dict[str, Any]:
    """A change of a field whose value names the author."""
    match field:
        case "metadata/labels":
            return {"metadata": {"labels": {"by": author, f"of-{author}": author}}}
        case "status/deep":
            return {"status": {"deep": {"all": author, author: {"x": author}}}}
        case _:
            return {"status": {field.rpartition("/")[2]: author}}


def signing(specs: list[Spec]) -> Registry:
    """Handlers that sign whatever they write."""
    registry = Registry()
    for number, spec in enumerate(specs):
        _declare(registry, f"h{number}", spec)
    return registry


def _declare(registry: Registry, author: str, spec: Spec) -> None:
    called, does, field = spec

    async def handler(patch: Any, **of: Any) -> Any:
        if called == "event" and of["type"] == "MODIFIED":
            return None  # two of them would never settle
        if "sleeps" in does and called != "event":
            await fnop.sleep(1)
        if "sets patch" in does:
            patch.status[f"set-{author}"] = author
            patch.status["shared"] = author
        if "patches" in does:
            await fnop.patch(**change_of(field, author))
        if "returns a mapping" in does:
            return {"value": author, "deep": {"value": author}}
        return author if "returns a text" in does else None

    options: dict[str, Any] = {"registry": registry, "id": author}
    if called == "field":
        fnop.on.field(KIND, field="spec.n", **options)(handler)
    elif called == "event":
        fnop.on.event(KIND, **options)(handler)
    else:
        fnop.on.create(KIND, **options)(handler)


def signed(body: dict[str, Any], authors: int) -> Iterator[tuple[Any, str]]:
    """The fields that handlers have signed, with the signature."""
    names = {f"h{number}" for number in range(authors)}
    for path in leaves({"metadata": {"labels": body["metadata"].get("labels", {})}}):
        yield from _signed(body, path, names)
    for path in leaves({"status": body.get("status", {})}):
        yield from _signed(body, path, names)


def _signed(body: Any, path: Any, names: set[str]) -> Iterator[tuple[Any, str]]:
    value = body
    for part in path:
        value = value[part] if isinstance(value, dict) and part in value else None
    if value in names:
        yield path, value


def asserted(records: list[dict[str, Any]], named: Named, authors: int) -> int:
    """Assert that each signed field is attributed to who has signed it."""
    provenance, found = Provenance(*named, OURS), 0
    for record in records:
        provenance.add(record)
    for path, author in signed(provenance.shown[-1].body.data, authors):
        why = provenance.why(path)
        assert why is not None
        by = why.author.partition("/")[0]  # `h1/spec.n` watches a field
        assert (path_text(path), by) == (path_text(path), author)
        found += 1
    return found


@settings(max_examples=examples(20))
@given(specs, st.booleans())
@example([("create", ("patches",), "status/a"), ("create", DOES[1:2], "")], False)
@example([("create", ("patches",), "status/a"), ("field", DOES[1:2], "")], True)
@example([("event", ("patches",), "status/a"), ("create", DOES[2:3], "")], True)
def test_each_field_was_written_by_the_handler_that_asked_for_it(
    specs: list[Spec], former: bool
) -> None:
    history = History(signing(specs), manifest(n=1))
    records = history.records()
    if former:
        records = [*map(in_former_words, records)]
    named = history.named(f"{KIND}/example-1")
    found = asserted(records, named, len(specs))
    assert found or not any(set(does) - {"sleeps"} for _, does, _ in specs)
