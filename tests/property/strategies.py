"""Strategies for JSON, effects and outcomes."""

import random
from typing import Any

from hypothesis import strategies as st

from fnop import effects

names = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)

json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)

json_objects = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "spec", "status"]), json_values, max_size=4
)

targets = st.builds(
    effects.Target,
    names,
    names,
    st.none() | names,
    st.none() | names,
)

manifests = st.builds(
    lambda name, body: {
        **body,
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
    },
    names,
    json_objects,
)

operations = st.builds(
    lambda path, value: {"op": "add", "path": f"/{path}", "value": value},
    names,
    json_values,
)

seconds = st.floats(0, 1e6)

all_effects: st.SearchStrategy[Any] = st.one_of(
    st.builds(effects.Patch, st.none() | targets, json_objects),
    st.builds(
        effects.Patch,
        st.none() | targets,
        st.none(),
        st.lists(operations, min_size=1, max_size=3).map(tuple),
        st.none() | st.just("status"),
    ),
    st.builds(effects.Apply, manifests, st.booleans()),
    st.builds(effects.Create, manifests),
    st.builds(
        effects.Delete,
        targets,
        st.none() | names,
        st.none() | names,
        st.sampled_from([None, "Background", "Foreground", "Orphan"]),
    ),
    st.builds(effects.Get, targets),
    st.builds(effects.List, names, st.none() | names, st.none() | names),
    st.builds(effects.Adopt, manifests, st.none() | names),
    st.builds(
        effects.Event,
        names,
        st.text(max_size=2000),
        st.sampled_from(["Normal", "Warning"]),
        st.none() | targets,
    ),
    st.builds(effects.Sleep, seconds),
    st.builds(effects.Wait, st.none() | seconds),
    st.builds(effects.Again, seconds, st.text(max_size=10)),
    st.builds(effects.Return, json_values),
    st.builds(effects.Freeze, names),
    st.just(effects.Resume()),
    st.builds(effects.Call, names.map(lambda name: f"m:{name}"), json_objects),
    st.builds(effects.Random, st.integers(1, 1024)),
    st.builds(
        effects.Log,
        st.sampled_from(["debug", "info", "warning", "error"]),
        st.text(max_size=10),
        json_objects,
    ),
    st.builds(effects.Remember, json_objects),
)

all_outcomes: st.SearchStrategy[Any] = st.one_of(
    st.builds(effects.Applied, st.none() | json_objects),
    st.builds(effects.Answer, json_values),
    st.builds(effects.Conflict, st.text(max_size=8), names),
    st.builds(effects.Missing, st.text(max_size=8)),
    st.builds(effects.Refused, st.integers(400, 599), st.text(max_size=8), names),
    st.builds(effects.Unreachable, st.text(max_size=8), st.none() | seconds),
    st.builds(effects.Unknown, st.text(max_size=8)),
    st.builds(
        effects.Raised, names, st.text(max_size=8), st.none() | seconds, st.booleans()
    ),
)


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(item, chance)) for key, item in value.items()]
        chance.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(item, chance) for item in value]
    return value
