"""The OpenAPI documents of a cluster: `/openapi/v2`, and `/openapi/v3` in parts.

kubectl reads them for `explain`, and to learn whether a resource knows
`fieldValidation`. Old versions of kubectl also check objects with them before they send
them. Nothing is built before the first request. A group version whose kinds are
unchanged is not built again.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha512
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.cluster.kinds import types
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.cluster.values.status import failure
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = ["openapi"]

Source = dict[str, Any]

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
KINDS = "x-kubernetes-group-version-kind"
INFO = {"title": "Kubernetes", "version": "v1.36.0"}
PLAIN = ["application/json", "application/yaml"]
# kubectl asks for version 2 in this form when version 3 does not know a kind, and then
# says that the kind does not exist. So it gets a document without any kind: fields 1
# (swagger), 2 (info: title, version), 8 (paths) and 9 (definitions).
PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
EMPTY_V2 = b"\x0a\x032.0\x12\x13\x0a\x0aKubernetes\x12\x05v1.36\x42\x00\x4a\x00"
# The places of the definitions: in version 2 and in version 3.
PLACES = ("#/definitions/", "#/components/schemas/")


def openapi(
    registry: Registry, path: str, query: object, accept: str
) -> ApiResponse | None:
    """The answer to a GET of an address below `/openapi`; None if it is unknown."""
    del query  # the hash is for caches: any value is accepted
    path = path.rstrip("/")
    if path == "/openapi/v2":
        is_asked = "com.github.proto-openapi.spec.v2" in accept  # also as ...v2@v1.0
        if is_asked and "application/json" not in accept:
            return ApiResponse(200, EMPTY_V2)
        _check(accept)
        return ApiResponse(200, _version_2(registry))
    if path == "/openapi/v3":
        _check(accept)
        return ApiResponse(200, {"paths": _index(registry)})
    kinds = _groups(registry).get(path.removeprefix("/openapi/v3/"))
    if kinds is None:
        return None
    _check(accept)
    return ApiResponse(200, _document(kinds).body)


def _check(accept: str) -> None:
    """406 for clients that only accept protobuf."""
    wanted = [part.partition(";")[0].strip() for part in accept.split(",")]
    if not accept or {"application/json", "application/*", "*/*"} & {*wanted}:
        return
    message = (
        "only the following media types are accepted: application/json, "
        "application/yaml, application/vnd.kubernetes.protobuf"
    )
    raise failure(406, "NotAcceptable", message, {})


def _groups(registry: Registry) -> dict[str, tuple[Kind, ...]]:
    """The kinds by the addresses of their group versions."""
    found: dict[str, list[Kind]] = {}
    for place in sorted(registry.by_path):
        kind = registry.by_path[place]
        if kind.served:
            found.setdefault(_root(kind)[1:], []).append(kind)
    return {root: tuple(kinds) for root, kinds in found.items()}


def _root(kind: Kind) -> str:
    if kind.group:
        return f"/apis/{kind.group}/{kind.version}"
    return f"/api/{kind.version}"


# ---------------------------------------------------------------------- caches


class Document(Struct, frozen=True):
    """The document of a group version, and the kinds that it was built for."""

    kinds: tuple[Kind, ...]
    body: Source
    hash: str


# The last document of each group version. Only a cache: the same kinds give the same
# document.
MADE: dict[tuple[str, str], Document] = {}


def _document(kinds: tuple[Kind, ...]) -> Document:
    place = (kinds[0].group, kinds[0].version)
    made = MADE.get(place)
    if made is None or not _are_same_kinds(made.kinds, kinds):
        body = _version_3(kinds)
        digest = sha512(orjson.dumps(body)).hexdigest().upper()
        made = MADE[place] = Document(kinds, body, digest)
    return made


def _are_same_kinds(some: tuple[Kind, ...], others: tuple[Kind, ...]) -> bool:
    return len(some) == len(others) and all(map(_is_same_kind, some, others))


def _is_same_kind(one: Kind, other: Kind) -> bool:
    return one is other or (not one.custom and not other.custom and one == other)


def _index(registry: Registry) -> Source:
    return {
        root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={_document(kinds).hash}"}
        for root, kinds in sorted(_groups(registry).items())
    }


# ------------------------------------------------------------------ documents


def _version_3(kinds: tuple[Kind, ...]) -> Source:
    writer = Writer(3)
    paths = writer.paths(kinds)
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": paths,
        "components": {
            "schemas": writer.schemas(),
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey",
                    "description": "Bearer Token authentication",
                    "name": "authorization",
                    "in": "header",
                }
            },
        },
    }


def _version_2(registry: Registry) -> Source:
    writer = Writer(2)
    paths: Source = {}
    for kinds in _groups(registry).values():
        paths.update(writer.paths(kinds))
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": dict(sorted(paths.items())),
        "definitions": writer.schemas(),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            }
        },
        "security": [{"BearerToken": []}],
    }


# ------------------------------------------------------------------ operations

WRITING = ("dryRun", "fieldManager", "fieldValidation")
LISTING = (
    "allowWatchBookmarks:boolean",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit:integer",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents:boolean",
    "timeoutSeconds:integer",
    "watch:boolean",
)
DELETING = (
    "dryRun",
    "gracePeriodSeconds:integer",
    "ignoreStoreReadErrorWithClusterBreakingPotential:boolean",
    "orphanDependents:boolean",
    "propagationPolicy",
)
PATCHES = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
]
STRATEGIC = "application/strategic-merge-patch+json"


class Operation(Struct, frozen=True):
    """One operation at a path; the verb is the one in `x-kubernetes-action`."""

    method: str
    verb: str
    query: tuple[str, ...] = ()
    # The names of the definitions for the request and for the answer.
    sent: str = ""
    answered: str = ""
    codes: tuple[int, ...] = (200,)


def _camel_case(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in text.split("."))


def _group_name(group: str) -> str:
    return group.removesuffix(".k8s.io") or "core"


class Writer:
    """Writes the documents of one version of OpenAPI."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.place = PLACES[version - 2]
        self.found: dict[str, Source] = {}

    # -------------------------------------------------------------- schemas

    def schemas(self) -> Source:
        """All definitions that were referred to, by name."""
        return dict(sorted(self.found.items()))

    def need(self, name: str) -> Source:
        """A reference to a built-in definition, which is thereby included."""
        if name == META + "Patch":
            self.found.setdefault(name, {"type": "object"})
        elif name not in self.found:
            self.found[name] = {}  # types may be recursive
            self.found[name] = self._builtin(name)
        return {"$ref": self.place + name}

    def _builtin(self, name: str) -> Source:
        source = types.definition(name)
        if self.version == 3 and source.get("format") == "int-or-string":
            either = [{"type": "integer"}, {"type": "string"}]
            return {"format": "int-or-string", "oneOf": either}
        if self.version == 3 and name.endswith(".resource.Quantity"):
            return {"oneOf": [{"type": "string"}, {"type": "number"}]}
        written: Source = self._rewrite_references(source)
        return written

    def _rewrite_references(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._rewrite_references(item) for item in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            needed = self.need(reference.removeprefix(types.PREFIX))
            rest = {k: v for k, v in value.items() if k != "$ref"}
            return {**rest, "allOf": [needed]} if rest and self.version == 3 else needed
        return {name: self._rewrite_references(part) for name, part in value.items()}

    def kind(self, kind: Kind) -> str:
        """The name of a kind's definition, which is thereby included."""
        if not kind.custom:
            name = types.name_of(kind.group, kind.typed, kind.kind) or ""
            self.need(name)
            return name
        name = _custom_name(kind, kind.kind)
        if name not in self.found:
            self.found[name] = self._custom_schema(kind)
        return name

    def _custom_schema(self, kind: Kind) -> Source:
        named = [_group_version_kind(kind, kind.kind)]
        source = dict(kind.source or {})
        if self.version == 2:
            source = _without_logic(source)
        if not source or (self.version == 2 and "properties" not in source):
            return {"type": "object", KINDS: named}
        text = {"type": "string"}
        metadata = self.need(META + "ObjectMeta")
        if self.version == 3:
            metadata = {"allOf": [metadata]}
        properties = {**source.get("properties", {})}
        properties |= {"apiVersion": text, "kind": text, "metadata": metadata}
        return {**source, "type": "object", "properties": properties, KINDS: named}

    def list_of(self, kind: Kind) -> str:
        """The name of the definition of a list of a kind."""
        if not kind.custom:
            name = types.name_of(kind.group, kind.typed, kind.list_kind) or ""
            self.need(name)
            return name
        name = _custom_name(kind, kind.list_kind)
        if name not in self.found:
            text = {"type": "string"}
            items = {"$ref": self.place + self.kind(kind)}
            self.found[name] = {
                "type": "object",
                "required": ["items"],
                "properties": {
                    "apiVersion": text,
                    "kind": text,
                    "metadata": self.need(META + "ListMeta"),
                    "items": {"type": "array", "items": items},
                },
                KINDS: [_group_version_kind(kind, kind.list_kind)],
            }
        return name

    # ---------------------------------------------------------------- paths

    def paths(self, kinds: tuple[Kind, ...]) -> Source:
        """The addresses of the kinds of one group version."""
        found: Source = {}
        for kind in kinds:
            found.update(self._paths(kind))
        return dict(sorted(found.items()))

    def _paths(self, kind: Kind) -> Iterator[tuple[str, Source]]:
        name = self.kind(kind)
        root = _root(kind)
        every = f"{root}/{kind.plural}"
        spaced = "Namespaced" if kind.namespaced else ""
        if kind.namespaced:
            where = f"{root}/namespaces/{{namespace}}/{kind.plural}"
        else:
            where = every
        post = Operation("post", "post", WRITING, name, name, (200, 201, 202))
        if kind.create_only:
            yield where, self._item(kind, where, spaced + kind.kind, [post])
            return
        listing = Operation("get", "list", LISTING, "", self.list_of(kind))
        status = META + "Status"
        options = META + "DeleteOptions"
        both = (*DELETING, *LISTING[:-1])
        clear = Operation("delete", "deletecollection", both, options, status)
        if kind.namespaced:
            suffix = f"{kind.kind}ForAllNamespaces"
            yield every, self._item(kind, every, suffix, [listing])
        collection = [listing, post, clear]
        yield where, self._item(kind, where, spaced + kind.kind, collection)
        there = f"{where}/{{name}}"
        delete = Operation("delete", "delete", DELETING, options, status, (200, 202))
        single = [*_get_and_write_operations(name), delete]
        yield there, self._item(kind, there, spaced + kind.kind, single)
        if kind.status:
            path = f"{there}/status"
            suffix = f"{spaced}{kind.kind}Status"
            yield path, self._item(kind, path, suffix, _get_and_write_operations(name))
        if kind.scale is not None:
            path = f"{there}/scale"
            scale = types.name_of("autoscaling", "v1", "Scale") or ""
            suffix = f"{spaced}{kind.kind}Scale"
            asked = _get_and_write_operations(scale)
            yield path, self._item(kind, path, suffix, asked, SCALE)

    def _item(
        self,
        kind: Kind,
        path: str,
        suffix: str,
        operations: list[Operation],
        of: Source | None = None,
    ) -> Source:
        """The operations at one path."""
        item: Source = {
            each.method: self._operation(kind, suffix, each, of) for each in operations
        }
        item["parameters"] = [
            self._parameter(name, "path")
            for name in ("name", "namespace")
            if f"{{{name}}}" in path
        ]
        return item

    def _parameter(self, text: str, where: str) -> Source:
        name, _, kind = text.partition(":")
        schema = {"type": kind or "string", "uniqueItems": True}
        base: Source = {"name": name, "in": where}
        if where == "path":
            base["required"] = True
        return {**base, **schema} if self.version == 2 else {**base, "schema": schema}

    def _operation(
        self, kind: Kind, suffix: str, operation: Operation, of: Source | None
    ) -> Source:
        group = _group_name(kind.group)
        verb = VERBS[operation.verb]
        name = f"{verb}{_camel_case(group)}{_camel_case(kind.version)}{suffix}"
        tag = "".join(
            part if n == 0 else _camel_case(part) for n, part in _parts(group)
        )
        written = self._request_body(kind, operation)
        return {
            "tags": [f"{tag}_{kind.version}"],
            "operationId": name,
            **written,
            "responses": self._responses(operation),
            "x-kubernetes-action": operation.verb,
            KINDS: of or _group_version_kind(kind, kind.kind),
        }

    def _request_body(self, kind: Kind, operation: Operation) -> Source:
        query = [self._parameter(name, "query") for name in operation.query]
        if not operation.sent:
            found: Source = {"parameters": query}
            return found if self.version == 3 else {**found, "produces": PLAIN}
        self._include(operation.sent)
        schema = {"$ref": self.place + operation.sent}
        is_patch = operation.method == "patch"
        is_needed = operation.method != "delete"
        media = ["*/*"]
        if is_patch:
            media = PATCHES if kind.custom else [*PATCHES, STRATEGIC]
        if self.version == 3:
            content = {each: {"schema": schema} for each in media}
            body: Source = {"content": content}
            if is_needed:
                body["required"] = True
            return {"parameters": query, "requestBody": body}
        body = {"in": "body", "name": "body", "schema": schema}
        if is_needed:
            body["required"] = True
        return {"consumes": media, "produces": PLAIN, "parameters": [body, *query]}

    def _include(self, name: str) -> None:
        if name not in self.found:
            self.need(name)

    def _responses(self, operation: Operation) -> Source:
        self._include(operation.answered)
        schema = {"$ref": self.place + operation.answered}
        texts = {200: "OK", 201: "Created", 202: "Accepted"}
        if self.version == 2:
            done: Source = {
                str(code): {"description": texts[code], "schema": schema}
                for code in operation.codes
            }
        else:
            content = {each: {"schema": schema} for each in PLAIN}
            done = {
                str(code): {"description": texts[code], "content": content}
                for code in operation.codes
            }
        return {**done, "401": {"description": "Unauthorized"}}


SCALE = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
VERBS = {
    "get": "read",
    "list": "list",
    "post": "create",
    "put": "replace",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "deleteCollection",
}


def _get_and_write_operations(name: str) -> list[Operation]:
    return [
        Operation("get", "get", (), "", name),
        Operation("put", "put", WRITING, name, name, (200, 201)),
        Operation(
            "patch",
            "patch",
            (*WRITING, "force:boolean"),
            META + "Patch",
            name,
            (200, 201),
        ),
    ]


def _parts(group: str) -> Iterator[tuple[int, str]]:
    return enumerate(group.split("."))


def _group_version_kind(kind: Kind, name: str) -> Source:
    return {"group": kind.group, "version": kind.version, "kind": name}


def _custom_name(kind: Kind, name: str) -> str:
    """The definition's name of a custom kind: com.example.stable.v1.CronTab."""
    return ".".join((*reversed(kind.group.split(".")), kind.version, name))


LOGIC = frozenset(("allOf", "anyOf", "default", "not", "nullable", "oneOf"))
CHILDREN = frozenset(("additionalProperties", "items", "properties", "type"))


def _without_logic(schema: Any) -> Any:
    """A structural schema as version 2 can say it (ToStructuralOpenAPIV2).

    If version 2 would be too strict, the schema says nothing to clients that check.

    >>> _without_logic({"type": "string", "nullable": True, "maxLength": 3})
    {'maxLength': 3}
    """
    if not isinstance(schema, dict):
        return schema
    is_open = (
        schema.get("nullable")
        or schema.get("x-kubernetes-preserve-unknown-fields")
        or schema.get("x-kubernetes-int-or-string")
    )
    dropped = LOGIC | CHILDREN if is_open else LOGIC
    result = {name: value for name, value in schema.items() if name not in dropped}
    if "properties" in result:
        parts = result["properties"].items()
        result["properties"] = {name: _without_logic(part) for name, part in parts}
    for name in ("items", "additionalProperties"):
        if name in result:
            result[name] = _without_logic(result[name])
    return result
