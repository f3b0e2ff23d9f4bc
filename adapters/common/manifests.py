"""Manifests: reading them from files as kubectl does, and printing objects as YAML.

kubectl's YAML is not PyYAML's. Dates are text and so is `22:22`, `y` is a boolean,
`1e3` and `0o14` are numbers, and everything becomes JSON.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from msgspec import Struct
from returns.result import Failure, Success

from fnop.adapters.common.plain import acts, escaped
from fnop.adapters.common.streams import takes
from fnop.effects.names import check_namespace

__all__ = [
    "ManifestProblem",
    "Unparsed",
    "dump_yaml",
    "echo_yaml",
    "first_yaml",
    "namespace_for",
    "parse_yaml",
    "parsed_yaml",
    "read_manifests",
]

T = TypeVar("T")

_SUFFIXES = (".yaml", ".yml", ".json")
# Ten times the depth of any real manifest.
_DEPTH_MAX = 500


def namespace_for(name: str) -> dict[str, Any]:
    """The manifest of a namespace.

    >>> namespace_for("shop")
    {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'shop'}}
    """
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


class ManifestProblem(Exception):
    """A manifest cannot be used; the text is one sentence for its author."""


def read_manifests(
    paths: Sequence[str], warn: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """The objects in these files and directories, in order; `-` is standard input.

    Files hold YAML documents or JSON. Of a directory, the files directly in it are
    read, sorted. Lists are split into their items, and empty documents are skipped.
    Raises `ManifestProblem`.

    If a mapping has a key twice, the last one counts, as with kubectl. `warn` is called
    with the first such key of each file.
    """
    return [
        manifest
        for path in paths
        for source in _sources(path)
        for manifest in _manifests(source, warn)
    ]


def _sources(path: str) -> list[str]:
    if path == "-" or not Path(path).is_dir():
        return [path]
    found = [file for file in Path(path).iterdir() if file.suffix in _SUFFIXES]
    if not found:
        raise ManifestProblem(f"there is no .yaml, .yml or .json file in {path}")
    return sorted(map(str, found))


def _manifests(
    source: str, warn: Callable[[str], None] | None
) -> Iterator[dict[str, Any]]:
    text = _text(source)
    name = "standard input" if source == "-" else source
    documents = _documents(name, text)
    twice = None if warn is None else _key_twice(text)
    if warn is not None and twice is not None:
        key, line = twice
        warn(f"{name}:{line}: the key {key!r:.80} comes twice; the last one counts")
    for number, document in enumerate(documents, 1):
        where = name if len(documents) == 1 else f"document {number} of {name}"
        if document is not None:
            yield from _objects(_json(document, where), where)


def _text(source: str) -> str:
    try:
        if source == "-":
            return _standard_input()
        return Path(source).read_text(encoding="utf-8-sig")
    except FileNotFoundError as problem:
        raise ManifestProblem(f"there is no file {source}") from problem
    except UnicodeDecodeError as problem:
        raise ManifestProblem(f"{source} is not text in UTF-8") from problem
    except OSError as problem:
        why = problem.strerror
        raise ManifestProblem(f"{source} cannot be read: {why}") from problem


def _standard_input() -> str:
    """Read standard input in UTF-8, as files are, with any encoding of the terminal."""
    content = getattr(sys.stdin, "buffer", None)
    if content is None:
        return sys.stdin.read()
    return str(content.read().decode("utf-8-sig"))


def _objects(document: Any, where: str) -> Iterator[dict[str, Any]]:
    """The document itself or, if it is a list, its items."""
    if not isinstance(document, dict):
        raise ManifestProblem(f"{where} is not a manifest but {_brief_text(document)}")
    if str(document.get("kind")).endswith("List") and "items" in document:
        items = document["items"] or []
        if not isinstance(items, list):
            raise ManifestProblem(f"{where} has items that are not a list")
        for number, item in enumerate(items, 1):
            yield from _objects(item, f"item {number} of {where}")
    else:
        _check(document, where)
        yield document


def _check(document: dict[str, Any], where: str) -> None:
    for field in ("apiVersion", "kind"):
        if not document.get(field):
            raise ManifestProblem(f"{where} has no {field}")
        if not isinstance(document[field], str):
            raise ManifestProblem(f"{where} has a {field} that is not a text")
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ManifestProblem(f"{where} has metadata that is not a mapping")
    name = metadata.get("name") or metadata.get("generateName")
    if not name:
        raise ManifestProblem(f"{where} has no metadata.name")
    if not isinstance(name, str):
        raise ManifestProblem(
            f"{where} has the name {_brief_text(name)}; put it in quotes"
        )
    if metadata.get("namespace"):
        try:
            check_namespace(metadata["namespace"], "the namespace")
        except ValueError as problem:
            raise ManifestProblem(f"{where}: {problem}") from problem


def _brief_text(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# ------------------------------------------------------------------------ JSON


class Unparsed(Struct, frozen=True):
    """The fault of a text, and its line if that is known."""

    line: int | None
    form: str
    what: str


def parsed_yaml(text: str) -> Success[Any] | Failure[Unparsed]:
    r"""The one YAML document of a text, as kubectl reads it; None if it is empty.

    >>> parsed_yaml("a: [1, yes]").unwrap()
    {'a': [1, True]}
    >>> parsed_yaml("a: 1\nb: {").failure().line
    2
    """
    return _from_yaml(text, yaml.load)


def first_yaml(text: str) -> Success[Any] | Failure[Unparsed]:
    r"""The first YAML document of a text; the text after it is ignored.

    client-go reads kubeconfigs this way (yaml.Unmarshal).

    >>> first_yaml("a: 1\n---\nb: {").unwrap()
    {'a': 1}
    """
    return _from_yaml(text, _first_document, yaml.DocumentEndEvent)


def _first_document(text: str, loader: Any) -> Any:
    return next(iter(yaml.load_all(text, loader)), None)


def _documents(name: str, text: str) -> list[Any]:
    """The documents in a text, as JSON if it looks like JSON, else as YAML."""
    match _parse_documents(text, is_json=name.endswith(".json")):
        case Success(documents):
            return documents
        case Failure(Unparsed(line, form, what)):
            where = name if line is None else f"{name}:{line}"
            raise ManifestProblem(f"{where} is not {form}: {what}")


def _parse_documents(
    text: str, *, is_json: bool
) -> Success[list[Any]] | Failure[Unparsed]:
    if text.lstrip().startswith("{"):
        match _from_json(text):
            case Success() as documents:
                return documents
            case Failure() as problem if is_json:
                return problem
            case Failure():
                pass  # it may still be YAML in braces
    return _from_yaml(text, lambda text, loader: [*yaml.load_all(text, loader)])


def _from_json(text: str) -> Success[list[Any]] | Failure[Unparsed]:
    try:
        return Success([*_json_documents(text)])
    except json.JSONDecodeError as problem:
        return Failure(Unparsed(problem.lineno, "JSON", problem.msg))


def _from_yaml(
    text: str,
    load: Callable[[str, Any], T],
    until: type[yaml.Event] = yaml.StreamEndEvent,
) -> Success[T] | Failure[Unparsed]:
    try:
        _check_depth(text, until)
        return Success(load(text, _Loader))
    # A tag may stand at a value of another form: ValueError.
    except (yaml.YAMLError, ValueError) as problem:
        mark = getattr(problem, "problem_mark", None)
        lines = len(text.splitlines()) or 1  # libyaml may point after the last line
        line = None if mark is None else min(mark.line + 1, lines)
        what = getattr(problem, "problem", None) or " ".join(str(problem).split())
        return Failure(Unparsed(line, "YAML", what))


def _check_depth(text: str, until: type[yaml.Event]) -> None:
    """Refuse a text that is nested too deeply for the reader's stack, up to an event.

    The events of a text are read without recursion, but values are constructed with it.
    """
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, until):
            return
        if depth > _DEPTH_MAX:
            raise ValueError(f"it is nested more than {_DEPTH_MAX} levels deep")


def _key_twice(text: str) -> tuple[str, int] | None:
    """The first key that comes twice in its mapping, with its line; else None."""
    found = map(_twice_in, yaml.compose_all(text, _Loader))
    try:
        return next((each for each in found if each is not None), None)
    except yaml.YAMLError:
        return None  # JSON that is not YAML: it has tabs, for instance


def _twice_in(root: Any) -> tuple[str, int] | None:
    seen: set[int] = set()  # each alias's value is visited once
    left = [root]
    while left:
        node = left.pop()
        if node is None or id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += reversed(node.value)
            continue
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == f"{_TAG}merge":
                continue
            if (key.tag, key.value) in keys:
                return key.value, key.start_mark.line + 1
            keys.add((key.tag, key.value))
        left += reversed([value for _, value in node.value])
    return None


def parse_yaml(text: str) -> Any:
    """The one YAML document of a text, as JSON.  Raises `ManifestProblem`.

    >>> parse_yaml("a: [1, yes]")
    {'a': [1, True]}
    """
    match parsed_yaml(text):
        case Success(document):
            return _json(document, "the text")
        case Failure(Unparsed(line, _, what)):
            raise ManifestProblem(what if line is None else f"line {line}: {what}")


def _json_documents(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(parse_int=_json_int), 0
    while (start := len(text) - len(text[at:].lstrip())) < len(text):
        document, at = decoder.raw_decode(text, start)
        yield document


def _json_int(text: str) -> float:
    """An integer, as a float if it has more than 64 bits."""
    return int(text) if len(text) <= _DIGITS_MAX else float(text)


class _Room:
    """A limit on the values of a document, with its aliases written out."""

    def __init__(self, left: int = 1_000_000) -> None:
        self.left = left

    def take(self, where: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise ManifestProblem(f"{where} contains excessive aliasing")


def _json(
    value: Any, where: str, around: tuple[int, ...] = (), room: _Room | None = None
) -> Any:
    """The value with keys and numbers as JSON has them, without shared parts.

    Raises `ManifestProblem` for values that JSON does not have, and for aliases that
    would fill the memory.
    """
    room = room or _Room()
    room.take(where)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return _number(value, where)
    if not isinstance(value, dict | list):
        return value
    if id(value) in around:
        raise ManifestProblem(f"{where} has an anchor that contains itself")
    around = (*around, id(value))
    if isinstance(value, list):
        return [_json(item, where, around, room) for item in value]
    return {
        _key(key, where): _json(item, where, around, room)
        for key, item in value.items()
    }


def _number(value: float, where: str) -> float:
    """A number as Go writes it: 1.0 is 1, and an integer beyond 64 bits a float."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    if not math.isfinite(value):
        raise ManifestProblem(f"{where} holds {value}, which JSON cannot say")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _key(key: Any, where: str) -> str:
    if key is None:
        raise ManifestProblem(f"{where} has a mapping with an empty key")
    return key if isinstance(key, str) else json.dumps(_json(key, where))


# ------------------------------------------------------------------------ YAML

_TAG = "tag:yaml.org,2002:"
_TRUE = ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"]
_FALSE = ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"]
# The plain scalars: tag, form, and the possible first characters.
_FORMS = (
    ("bool", "|".join((*_TRUE, *_FALSE)), "yYnNtTfFoO"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
    (
        "int",
        r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        "float",
        r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
)
_UNLIMITED = 2**31 - 1
_Reader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Writer: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(_Reader):  # type: ignore[misc]  # in C where PyYAML was built with it
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (filled below)


class _Dumper(_Writer):  # type: ignore[misc]  # in C where PyYAML was built with it
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _bool(loader: Any, node: Any) -> bool:
    return loader.construct_scalar(node) in _TRUE


def _int(loader: Any, node: Any) -> float | str:
    text = loader.construct_scalar(node).replace("_", "")
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits.isdecimal() and digits[0] == "0"
    if len(digits) > _DIGITS_MAX:
        return _large_integer(text, digits)
    return int(text, 8 if octal else 0)


# The length of the binary form of a 64-bit number, with its prefix.
_DIGITS_MAX = 66


def _large_integer(text: str, digits: str) -> float | str:
    """An integer of more than 64 bits: a float if it fits into one, else a text.

    >>> parse_yaml("[" + "9" * 100 + ", " + "9" * 5_000 + "]")[0]
    1e+100
    """
    value = float(text) if digits.isdecimal() else math.inf
    return value if math.isfinite(value) else text


def _float(loader: Any, node: Any) -> float | str:
    text = str(loader.construct_scalar(node))
    if "." in text and text.lstrip("+-.").lower() in ("inf", "nan"):
        return float(text.replace(".", ""))
    value = float(text.replace("_", ""))
    return value if math.isfinite(value) else text  # too large: not a number to Go


def _decode_binary(loader: Any, node: Any) -> str:
    return base64.b64decode(loader.construct_scalar(node)).decode()


def _construct_by_shape(loader: Any, node: Any) -> Any:
    """Unknown tags are ignored."""
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Loader.yaml_constructors = {
    f"{_TAG}bool": _bool,
    f"{_TAG}int": _int,
    f"{_TAG}float": _float,
    f"{_TAG}binary": _decode_binary,
    **{
        f"{_TAG}{tag}": _Reader.yaml_constructors[f"{_TAG}{tag}"]
        for tag in ("null", "str", "seq", "map")
    },
    None: _construct_by_shape,
}


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    if acts(text):
        style = '"'  # the only style that can escape characters
    return dumper.represent_scalar(f"{_TAG}str", text, style)


_Dumper.add_representer(str, _represent_text)
for _tag, _form, _first in _FORMS:
    # what would be read back differently goes in quotes
    for _side in (_Loader, _Dumper):
        _whole = re.compile(rf"(?:{_form})\Z")
        _side.add_implicit_resolver(f"{_TAG}{_tag}", _whole, list(_first))


def dump_yaml(objects: Iterable[Mapping[str, Any]]) -> str:
    """The objects as YAML documents, their fields in the order that people expect.

    Texts of several lines are shown as such. Characters that would act on a terminal or
    be invisible there are escaped.
    """
    return "---\n".join(
        escaped(
            yaml.dump(
                _order_keys(
                    each, ("apiVersion", "kind", "metadata", "spec"), ("status",)
                ),
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=True,
                default_flow_style=False,
                width=_UNLIMITED,
            )
        )
        for each in objects
    )


def echo_yaml(text: str) -> None:
    """Print YAML made by `dump_yaml`, so that it is read back unchanged.

    If the encoding of standard output lacks a character, all are escaped.
    """
    if not takes(sys.stdout, text):
        events = map(_quote_escapes, yaml.parse(text, _Loader))
        text = yaml.emit(events, Dumper=_Writer, width=_UNLIMITED)
    print(text, end="", flush=True)


def _quote_escapes(event: yaml.Event) -> yaml.Event:
    """Write a text in quotes, too, if its escapes need quotes."""
    if isinstance(event, yaml.ScalarEvent) and not event.value.isascii():
        event.implicit = (True, True)
    return event


def _order_keys(
    value: Any, first: Sequence[str] = ("name", "namespace"), last: Sequence[str] = ()
) -> Any:
    """Mappings with these keys first and last, and the others by name."""
    if isinstance(value, list | tuple):
        return [_order_keys(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    others = sorted(key for key in value if key not in first and key not in last)
    keys = [*(key for key in first if key in value), *others]
    keys += [key for key in last if key in value]
    return {key: _order_keys(value[key]) for key in keys}
