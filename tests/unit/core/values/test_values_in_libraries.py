"""Values given to handlers: libraries take them as plain dicts and lists."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import pickle
import pprint
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jinja2
import jsonpatch
import orjson
import pydantic
import pytest
import yaml
from kubernetes_asyncio.client import ApiClient, V1ConfigMap, V1ObjectMeta
from ruamel.yaml import YAML

import fnop
from fnop.adapters.common.yaml_values import teach_yaml
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import input_from_wire, input_to_wire
from fnop.core.values.body import Memo, Meta, View
from fnop.core.values.diff import diff
from fnop.core.values.now import Now
from fnop.effects.values import ReadOnlyDict, ReadOnlyList, canonical, thaw_json
from fnop.interpreters.runtime.machine import Machine
from tests.simulations import Scenario, example

KIND = "fnopexamples"

teach_yaml()  # as loading an operator does, after it has imported its libraries


# ----------------------------------------------------------------- values of a run


def subject(size: int) -> dict[str, Any]:
    found = example(size=size, hosts=["a", {"name": "b"}], empty={}, none=[])
    found["metadata"] |= {"labels": {"app": "db"}, "annotations": {"a": "b"}}
    return found


def echo(value: Any) -> Any:
    """A model of a called function."""
    return value


def operator(given: dict[str, Any]) -> Registry:
    """Handlers that keep everything that they are given."""
    registry = Registry()

    @fnop.index(KIND, registry=registry)
    def by_app(labels: Any, spec: Any, **_: Any) -> Any:
        return {labels["app"]: {"hosts": spec["hosts"]}}

    @fnop.on.startup(registry=registry)
    def begin(**_: Any) -> Any:
        return fnop.remember(things=[{"a": 1}])

    @fnop.on.event(KIND, registry=registry)
    def event(event: Any, **_: Any) -> None:
        given["event"] = event

    @fnop.on.create(KIND, registry=registry)
    async def create(
        body: Any,
        spec: Any,
        meta: Any,
        labels: Any,
        annotations: Any,
        memo: Any,
        new: Any,
        patch: Any,
        by_app: Any = fnop.INDEX,
        **_: Any,
    ) -> Any:
        given.update({"body": body, "spec": spec, "meta": meta, "labels": labels})
        given.update({"annotations": annotations, "memo": memo, "essence": new})
        given.update({"indexed": by_app["db"][0], "hosts": spec["hosts"]})
        given["get"] = await fnop.get(KIND, name="example-1")
        given["listed"] = (await fnop.list(KIND))[0]
        given["answer"] = await fnop.call(echo, value=[{"a": [1]}, "b"])
        given["slept"] = await fnop.sleep(1)
        patch.status["seen"]["hosts"] = [1]
        given["written"] = patch.status
        given["memo value"] = memo.things
        adopted = fnop.adopt({**config_map(spec), "metadata": {"labels": labels}})
        given["manifest"] = adopted.child
        return adopted

    @fnop.on.update(KIND, registry=registry)
    def update(old: Any, new: Any, diff: Any, status: Any, **_: Any) -> Any:
        given.update({"old": old, "new": new, "status": status})
        given.update({"diff old": diff[0].old, "diff new": diff[0].new})

    return registry


def config_map(spec: Any) -> dict[str, Any]:
    data = {"spec.yaml": yaml.safe_dump(spec)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": data}


class Kept:
    """The inputs of a run, as a recording would have them."""

    def __init__(self) -> None:
        self.inputs: list[tuple[Now, bytes]] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        self.inputs.append((now, canonical(input_to_wire(input))))


def lived() -> tuple[dict[str, Any], dict[str, Any]]:
    """All that handlers were given in a run, and in a replay of it."""
    given: dict[str, Any] = {}
    registry, kept = operator(given), Kept()
    calls = {f"{__name__}:echo": echo}
    run = Scenario(registry, [subject(1)], observers=[kept], calls=calls)
    assert run.settle()
    run.edit(KIND, spec={"hosts": [{"name": "c"}], "more": {"deep": [1]}})
    assert run.settle()
    assert not [say.message for say in run.said if say.level == "error"]
    alive = dict(given)
    given.clear()
    machine = Machine(Program(registry.handlers))
    for now, wire in kept.inputs:
        machine.feed(now, input_from_wire(orjson.loads(wire)))
    machine.close()
    return alive, dict(given)


ALIVE, REPLAYED = lived()
VALUES = {
    **ALIVE,
    **{f"{name}, replayed": value for name, value in REPLAYED.items()},
    "empty spec": View.of({}, 1.0).spec,
    "meta of a body": ALIVE["body"].meta,
    "spec of a body": ALIVE["body"].spec,
    "labels of a meta": ALIVE["meta"].labels,
}


def test_a_replay_gives_what_the_run_gave() -> None:
    assert ALIVE.keys() == REPLAYED.keys()
    assert len(ALIVE) >= 21
    for name, value in ALIVE.items():
        assert value == REPLAYED[name], name
        assert type(value) is type(REPLAYED[name]), name


# ------------------------------------------------------------------------ consumers


def plain(value: Any) -> Any:
    """The same in dicts and lists, with no help of the values themselves."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in dict.keys(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in list.__iter__(list(value))]
    return value


def is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(map(is_plain, value.values()))
    if isinstance(value, (list, tuple)):
        return type(value) is list and all(map(is_plain, value))
    return True


def through_ruamel(kind: str) -> Callable[[Any], Any]:
    def dumped(value: Any) -> Any:
        out = io.StringIO()
        YAML(typ=kind, pure=True).dump(value, out)
        return yaml.safe_load(out.getvalue())

    return dumped


class OwnDumper(yaml.SafeDumper):
    """A dumper of the author's own, with a table of its own."""


OwnDumper.add_multi_representer(
    complex, lambda dumper, value: dumper.represent_str(str(value))
)
teach_yaml()


@dataclasses.dataclass
class Holder:
    value: Any


class Free(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    value: Any


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    value: dict[str, Any] | list[Any]


def jinja(text: str, value: Any) -> str:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    return environment.from_string(text).render(value=value)


def to_lines(pprinted: str) -> Any:
    return eval(pprinted, {})


CLIENT: ApiClient = ApiClient.__new__(ApiClient)  # a client without connections

# What each makes of a value is what it makes of a plain one.
SAME: dict[str, Callable[[Any], Any]] = {
    "yaml.dump": lambda value: yaml.dump(value),
    "yaml.safe_dump": lambda value: yaml.safe_dump(value),
    "yaml.safe_dump unsorted": lambda value: yaml.safe_dump(value, sort_keys=False),
    "yaml.dump_all": lambda value: yaml.dump_all([value, {"a": value}]),
    "yaml own dumper": lambda value: yaml.dump(value, Dumper=OwnDumper),
    "ruamel safe": through_ruamel("safe"),
    "ruamel round-trip": through_ruamel("rt"),
    "json.dumps": json.dumps,
    "json.dumps sorted": lambda value: json.dumps(value, sort_keys=True),
    "json.dumps indented": lambda value: json.dumps(value, indent=2),
    "json.dump": lambda value: "".join(json.JSONEncoder().iterencode(value)),
    "orjson.dumps": orjson.dumps,
    "orjson.dumps sorted": lambda value: orjson.dumps(
        value, option=orjson.OPT_SORT_KEYS
    ),
    "copy.copy": lambda value: plain(copy.copy(value)),
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "pprint": lambda value: to_lines(pprint.pformat(value)),
    "str": lambda value: to_lines(str(value)),
    "f-string": lambda value: to_lines(f"{value}") == to_lines(f"{value!r}"),
    "len": len,
    "bool": bool,
    "isinstance": lambda value: (
        isinstance(value, Mapping) == isinstance(value, dict),
        isinstance(value, Sequence) == isinstance(value, list),
    ),
    "sanitize_for_serialization": lambda value: ApiClient.sanitize_for_serialization(
        CLIENT, value
    ),
    "a model in a model": lambda value: ApiClient.sanitize_for_serialization(
        CLIENT, V1ConfigMap(data=value, metadata=V1ObjectMeta(name="a"))
    ),
    "jsonpatch.make_patch": lambda value: list(
        jsonpatch.make_patch({"value": {}}, {"value": value})
    ),
    "jsonpatch.apply_patch": lambda value: jsonpatch.apply_patch(
        {"value": value}, [{"op": "add", "path": "/more", "value": value}]
    ),
    "dataclasses.asdict": lambda value: dataclasses.asdict(Holder(value)),
    "pydantic": lambda value: Free.model_validate({"value": value}).model_dump(),
    "pydantic strict": lambda value: Strict(value=value).model_dump(),
    "pydantic json": lambda value: Free(value=value).model_dump_json(),
    "pydantic adapter": lambda value: pydantic.TypeAdapter(Any).dump_json(value),
    "jinja2 tojson": lambda value: jinja("{{ value | tojson }}", value),
    "jinja2 loop": lambda value: jinja(
        "{% for e in value %}{{ e }};{% endfor %}", value
    ),
    "freeze": lambda value: fnop.result(value).value,
    "sizes": lambda value: (len(value), [*value] == list(value)),
}

OF_MAPPINGS: dict[str, Callable[[Any], Any]] = {
    "dict(x)": dict,
    "dict(**x)": lambda value: dict(**value),
    "{**x}": lambda value: {**value},
    "x | y": lambda value: value | {"more": 1},
    "y | x": lambda value: {"more": 1} | value,
    "x | x": lambda value: value | value,
    "update": lambda value: updated({"more": 1}, value),
    "copy": lambda value: value.copy(),
    "keys": lambda value: sorted(value.keys() | {"more"}),
    "items": lambda value: sorted(value.items(), key=str),
    "sorted": sorted,
    "format": lambda value: "{more} {rest}".format(**{"more": 1, **value}, rest=value),
    "%": lambda value: [f"%({key})s" % value for key in value],
    "Template": lambda value: string.Template("$kind").safe_substitute(value),
    "match": lambda value: matched(value),
    "jinja2 items": lambda value: jinja(
        "{% for k, v in value.items() %}{{ k }}={{ v }};{% endfor %}", value
    ),
    "jinja2 dictsort": lambda value: jinja("{{ value | dictsort }}", value),
    "pydantic validated": lambda value: Free.model_validate(
        {"value": 1, **value}
    ).model_dump(),
}

OF_LISTS: dict[str, Callable[[Any], Any]] = {
    "list(x)": list,
    "[*x]": lambda value: [*value],
    "x + y": lambda value: value + [1],  # noqa: RUF005 (it is what is tried)
    "y + x": lambda value: [1] + value,  # noqa: RUF005
    "x * 2": lambda value: value * 2,
    "slice": lambda value: value[:1],
    "reversed": lambda value: list(reversed(value)),
    "sorted": lambda value: sorted(value, key=str),
    "join": lambda value: ",".join(map(str, value)),
    "copy": lambda value: value.copy(),
    "jinja2 join": lambda value: jinja("{{ value | join(',') }}", value),
    "match": lambda value: matched(value),
}


def updated(mine: dict[str, Any], other: Any) -> dict[str, Any]:
    mine.update(other)
    return mine


def matched(value: Any) -> Any:
    match value:
        case {"kind": kind, **others}:
            return kind, others
        case {}:
            return "mapping"
        case [first, *rest]:
            return first, rest
        case _:
            return None


@pytest.mark.parametrize("consumer", SAME)
def test_a_consumer_takes_a_value_as_a_plain_one(consumer: str) -> None:
    for name, value in VALUES.items():
        assert SAME[consumer](value) == SAME[consumer](plain(value)), name


MAPPINGS = {name: value for name, value in VALUES.items() if isinstance(value, dict)}
LISTS = {name: value for name, value in VALUES.items() if isinstance(value, list)}


@pytest.mark.parametrize("consumer", OF_MAPPINGS)
def test_a_mapping_is_taken_as_a_plain_one(consumer: str) -> None:
    for name, value in MAPPINGS.items():
        assert OF_MAPPINGS[consumer](value) == OF_MAPPINGS[consumer](plain(value)), name


@pytest.mark.parametrize("consumer", OF_LISTS)
def test_a_list_is_taken_as_a_plain_one(consumer: str) -> None:
    for name, value in LISTS.items():
        found = plain(OF_LISTS[consumer](value))
        assert found == plain(OF_LISTS[consumer](plain(value))), name


# -------------------------------------------------------------------------- identities

READ_ONLY = [
    n for n, v in VALUES.items() if isinstance(v, (ReadOnlyDict, ReadOnlyList))
]


@pytest.mark.parametrize("name", VALUES)
def test_a_deep_copy_is_plain_and_may_be_changed(name: str) -> None:
    value = VALUES[name]
    before = plain(value)
    for mine in (copy.deepcopy(value), thaw_json(value)):
        assert is_plain(mine)
        if isinstance(mine, dict):
            mine["changed"] = True
        else:
            mine.append("changed")
    assert value == before


@pytest.mark.parametrize("name", READ_ONLY)
def test_a_pickled_value_comes_back_as_it_was(name: str) -> None:
    value = VALUES[name]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(value, protocol))
        assert found == value
        assert type(found) is type(value)
        assert hash(found) == hash(value)
        assert getattr(found, "now", None) == getattr(value, "now", None)
        with pytest.raises(TypeError, match="read-only"):
            found.clear()


def test_a_pickled_object_still_has_its_parts() -> None:
    found = pickle.loads(pickle.dumps(ALIVE["body"]))
    assert isinstance(found, View)
    assert found.spec["hosts"][1]["name"] == "b"
    assert isinstance(found.meta, Meta)
    assert found.meta.labels == {"app": "db"}
    memo = pickle.loads(pickle.dumps(ALIVE["memo"]))
    assert isinstance(memo, Memo)
    assert memo.things == [{"a": 1}]


def test_equal_values_are_one_key() -> None:
    assert len({ALIVE["spec"], REPLAYED["spec"], ALIVE["body"].spec}) == 1
    assert len({ALIVE["hosts"], REPLAYED["hosts"]}) == 1


def test_an_index_is_a_mapping_of_tuples() -> None:
    seen: list[Any] = []
    registry = Registry()

    @fnop.index(KIND, registry=registry)
    def by_app(labels: Any, spec: Any, **_: Any) -> Any:
        return {labels["app"]: spec}

    @fnop.on.create(KIND, registry=registry)
    def create(by_app: Any = fnop.INDEX, **_: Any) -> None:
        seen.append(by_app)

    assert Scenario(registry, [subject(1)]).settle()
    (index,) = seen
    spec = subject(1)["spec"]
    assert isinstance(index, Mapping)
    assert {**index} == dict(index) == {"db": (spec,)}
    assert yaml.safe_load(yaml.safe_dump(index)) == {"db": [spec]}
    assert dict(copy.deepcopy(index)) == dict(pickle.loads(pickle.dumps(index)))
    assert is_plain(copy.deepcopy(dict(index))["db"][0])


def test_a_difference_is_a_list_in_yaml_and_json() -> None:
    found = diff(ALIVE["old"], ALIVE["new"])
    assert len(found) == 2
    expected = [[e.operation, [*e.field], plain(e.old), plain(e.new)] for e in found]
    assert yaml.safe_load(yaml.safe_dump(found)) == expected
    assert yaml.safe_load(yaml.dump([*found])) == expected
    assert json.loads(json.dumps(found)) == expected
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found


def test_why_a_daemon_is_to_stop_is_a_text_in_yaml() -> None:
    reason = DaemonStoppingReason.RESOURCE_DELETED
    assert yaml.safe_load(yaml.safe_dump({"why": reason})) == {"why": str(reason)}
    assert yaml.dump(reason) == yaml.dump(str(reason))


def test_templates_reach_the_parts_of_an_object() -> None:
    text = (
        "{{ value.spec.hosts[1].name }} of {{ value.metadata.name }} {{ value.name }}"
    )
    assert jinja(text, ALIVE["body"]) == "b of example-1 example-1"


# ---------------------------------------------------------------------------- slips


@pytest.mark.parametrize("name", READ_ONLY)
def test_nothing_can_be_set(name: str) -> None:
    value = VALUES[name]
    with pytest.raises(TypeError, match=r"read-only.*fnop\.(patch|remember)"):
        value.size = 5
    with pytest.raises(TypeError, match="read-only"):
        del value.size


@pytest.mark.parametrize("value", [ALIVE["spec"], ALIVE["body"], ALIVE["meta"]])
def test_a_field_that_is_read_as_an_attribute_is_named(value: Any) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'replicas'; .*\['replicas"):
        _ = value.replicas
    assert not hasattr(value, "to_dict")
    assert not hasattr(value, "__dataclass_fields__")


def test_an_operator_that_dumps_its_spec(tmp_path: Any) -> None:
    """A file that only the loader has prepared."""
    from fnop.testing import load, plan_of

    file = tmp_path / "dumping.py"
    file.write_text(
        "import fnop, yaml\n"
        "@fnop.on.create('fnopexamples')\n"
        "def create(spec):\n"
        "    return fnop.result([yaml.safe_dump(spec), yaml.dump(spec)])\n"
    )
    plan = plan_of(load(file).create, subject(1))
    for text in plan.result:
        assert yaml.safe_load(text) == subject(1)["spec"]
