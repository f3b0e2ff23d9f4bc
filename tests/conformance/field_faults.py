"""One fault in one field of a built-in object, on the simulated and the real server.

A trial takes a valid object (`samples.yaml`), spoils one field of it as a person
might, and sends it as a creation, an update, a merge patch or an apply.  Which fields
there are and of what types is read in the OpenAPI of the real server; fields that a
current server has no longer, or that the old one has not, are left out.

Compared are the code and reason of the answer, the fields and reasons of its causes,
and what is stored: of that, what the old server knows.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fnop.interpreters.cluster.kinds import types
from fnop.interpreters.runtime.protocol import APPLY_PATCH, JSON, MERGE_PATCH
from tests.cluster.envtest import ApiServer
from tests.conformance.renaming import Renaming, differences
from tests.conformance.samples import Sample, samples
from tests.conformance.servers import fork
from tests.conformance.suite import Simulated

__all__ = ["Difference", "Duel", "Fault", "Trial", "report", "trials"]

Json = dict[str, Any]
Path_ = tuple[str | int, ...]
Answer = tuple[int, Any]
ABSENT: Any = object()

VERBS = ("create", "update", "merge", "apply")


# ---------------------------------------------------------------------- fields


class Schemas:
    """The types of both servers."""

    def __init__(self, old: Mapping[str, Json]) -> None:
        self.old = old
        self.names = {
            (one["group"], one["version"], one["kind"]): name
            for name, schema in old.items()
            for one in schema.get("x-kubernetes-group-version-kind", ())
        }

    def old_of(self, sample: Sample) -> Json:
        return self.resolved({"$ref": self.names[sample.old_type]}, old=True)

    def new_of(self, sample: Sample) -> Json:
        source = types.source_of(*sample.type)
        assert source is not None, sample.type
        return source

    def resolved(self, schema: Json, *, old: bool) -> Json:
        name = schema.get("$ref")
        if name is None:
            return schema
        if old:
            return self.old[name.removeprefix(types.PREFIX)]
        if "ObjectMeta" in name:  # the types do not describe it
            return self.old["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
        return types.definition(name)


@dataclass(frozen=True)
class Place:
    """A field of an object, or an item of a list."""

    path: Path_
    schema: Json
    value: Any = ABSENT


# What the server says, or what makes the object another one.
GIVEN = frozenset(
    (
        *("clusterName", "creationTimestamp", "deletionGracePeriodSeconds"),
        *("deletionTimestamp", "generateName", "generation", "managedFields"),
        *("namespace", "resourceVersion", "selfLink", "uid"),
    )
)


# Values that 1.20 accepted only with features switched on, or that were dropped since.
GATED = frozenset(
    (
        *("allocateLoadBalancerNodePorts", "clusterName", "dataSource", "ephemeral"),
        *("ipFamilies", "ipFamilyPolicy", "serving", "setHostnameAsFQDN"),
        *("terminating", "topologyKeys", "containerResource"),
    )
)


class Fields:
    """The fields of a sample that both servers know."""

    def __init__(self, schemas: Schemas, sample: Sample) -> None:
        self.schemas = schemas
        self.present: list[Place] = []
        self.absent: list[Place] = []
        old, new = schemas.old_of(sample), schemas.new_of(sample)
        metadata = {**sample.object["metadata"], "name": "name"}
        obj = {**sample.object, "metadata": metadata}
        for name in old["properties"]:
            if name not in ("apiVersion", "kind", "status"):
                self._struct_field((), name, obj, old, new)

    def _walk(self, path: Path_, value: Any, old: Json, new: Json) -> None:
        old = self.schemas.resolved(old, old=True)
        new = self.schemas.resolved(new, old=False)
        self.present.append(Place(path, old, value))
        if isinstance(value, list) and "items" in old and "items" in new:
            for index, item in enumerate(value):
                self._walk((*path, index), item, old["items"], new["items"])
        elif isinstance(value, dict) and "properties" in old:
            for name in old["properties"]:
                self._struct_field(path, name, value, old, new)
        elif isinstance(value, dict) and "additionalProperties" in old:
            inner = old["additionalProperties"]
            for name, item in value.items():
                self._walk((*path, name), item, inner, new["additionalProperties"])

    def _struct_field(
        self, path: Path_, name: str, owner: Json, old: Json, new: Json
    ) -> None:
        if name in GATED or (path == ("metadata",) and name in GIVEN):
            return
        if path[:1] == ("endpoints",) and name == "nodeName":
            return  # a feature of slices
        known = new.get("properties", {})
        if path and path[-1] == "metadata":
            known = old["properties"]
        if name not in known:
            return
        if name in owner:
            self._walk((*path, name), owner[name], old["properties"][name], known[name])
        else:
            schema = self.schemas.resolved(old["properties"][name], old=True)
            self.absent.append(Place((*path, name), schema))


# ---------------------------------------------------------------------- faults


@dataclass(frozen=True)
class Fault:
    """A change of one field: `value` replaces it, or it is removed."""

    name: str
    path: Path_
    value: Any = ABSENT

    def applied(self, obj: Json) -> Json | None:
        """The object with the fault; None if it has no such place."""
        result = deepcopy(obj)
        owner: Any = result
        for name in self.path[:-1]:
            try:
                owner = owner[name]
            except (KeyError, IndexError, TypeError):
                return None
        last = self.path[-1]
        if isinstance(owner, dict):
            if self.value is ABSENT:
                owner.pop(last, None)
            else:
                owner[last] = deepcopy(self.value)
        elif isinstance(owner, list) and isinstance(last, int) and last < len(owner):
            if self.value is ABSENT:
                del owner[last]
            else:
                owner[last] = deepcopy(self.value)
        else:
            return None
        return result

    def patch(self, spoiled: Json) -> Json:
        """The merge patch that says as much: a list is always sent whole."""
        keys = list(self.path)
        for index, key in enumerate(keys):
            if isinstance(key, int):
                keys = keys[:index]
                break
        value: Any = spoiled
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        for key in reversed(keys):
            value = {key: value}
        return value  # type: ignore[no-any-return]

    def __str__(self) -> str:
        shown = "-" if self.value is ABSENT else json.dumps(self.value)
        return f"{self.name} {'.'.join(map(str, self.path))} = {shown[:100]}"


TEXTS = (
    *("Nonsense", "Bad_Name", "a b", "-x", "a/b", "a/b/c", "x" * 64, "x" * 254, "é"),
    *("UPPER", "a.", "..", "1", "0", "*", "10.0.0.256", "a--b"),
)
NUMBERS = (-1, 0, 1, 101, 65536, 2**31 - 1, 2**31, 2**63)
QUANTITIES = ("-1", "0", "1.5", "abc", "1Ki", "")
OTHERS: dict[str, tuple[Any, ...]] = {
    "string": (1, True, [], {"a": "b"}),
    "integer": ("1", True, 1.5, [], {}),
    "number": ("1", True, []),
    "boolean": ("true", 1, []),
    "array": ("x", 1, {"a": "b"}, True),
    "object": ("x", 1, ["a"], True),
}
EMPTY: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def type_of(schema: Json) -> str:
    if "properties" in schema or "type" not in schema:
        return "object"
    return str(schema["type"])


def is_quantity(schema: Json) -> bool:
    return type_of(schema) == "string" and "fixed-point" in schema.get(
        "description", ""
    )


def faults_of(dice: random.Random, fields: Fields) -> Fault:
    """One fault in one of the fields."""
    if fields.absent and dice.random() < 0.2:
        return added(dice, dice.choice(fields.absent))
    return spoiled(dice, dice.choice(fields.present))


def added(dice: random.Random, place: Place) -> Fault:
    """A field that was not there, with something more or less likely in it."""
    kind = type_of(place.schema)
    likely = {
        "string": ("x", "", "Nonsense"),
        "integer": (1, 0, -1),
        "number": (1,),
        "boolean": (True, False),
        "array": ([], ["x"], [{}]),
        "object": ({}, {"a": "b"}),
    }[kind]
    if place.schema.get("format") == "int-or-string":
        likely = (1, "x")
    choices = (("plausible", likely), ("wrong type", OTHERS[kind]), ("null", (None,)))
    name, values = dice.choice((*choices, choices[0]))
    return Fault(name, place.path, dice.choice(values))


EVERYWHERE = ("wrong type", "null", "dropped", "empty")
OF_TYPES: dict[str, tuple[str, ...]] = {
    "string": ("bad text",) * 3,
    "integer": ("out of range",) * 2,
    "array": ("twice", "null item", "strange item"),
    "object": ("unknown field",) * 2,
}


def spoiled(dice: random.Random, place: Place) -> Fault:
    """A field that was there, with something else in it, or in its place."""
    kind = type_of(place.schema)
    further = OF_TYPES.get(kind, ())
    if kind == "array" and not place.value:
        further = ()
    name = dice.choice((*EVERYWHERE, *further))
    if name == "unknown field":
        key = dice.choice(("zzUnknown", "bad key!"))
        return Fault(name, (*place.path, key), dice.choice(("x", 1, {"a": 1}, "")))
    return Fault(name, place.path, instead(dice, name, kind, place))


def instead(dice: random.Random, name: str, kind: str, place: Place) -> Any:
    match name:
        case "wrong type":
            return dice.choice(OTHERS[kind])
        case "empty":
            return EMPTY[kind]
        case "bad text":
            return dice.choice(QUANTITIES if is_quantity(place.schema) else TEXTS)
        case "out of range":
            return dice.choice(NUMBERS)
        case "twice":
            return [*place.value, place.value[0]]
        case "null item":
            return [*place.value, None]
        case "strange item":
            return [*place.value, dice.choice((1, "x", {}, []))]
        case "dropped":
            return ABSENT
        case _:
            return None


# ---------------------------------------------------------------------- trials


@dataclass(frozen=True)
class Trial:
    """One request with one fault."""

    number: int
    sample: Sample
    verb: str
    fault: Fault
    # An apply to what is there already.
    is_present: bool = False

    def __str__(self) -> str:
        return f"{self.number}: {self.verb} {self.sample.object['kind']}: {self.fault}"


def trials(schemas: Schemas, count: int, seed: int) -> Iterator[Trial]:
    """This number of random trials."""
    dice = random.Random(seed)
    fields = {sample: Fields(schemas, sample) for sample in samples()}
    for number in range(count):
        sample = dice.choice(samples())
        verb = dice.choice(VERBS)
        fault = faults_of(dice, fields[sample])
        if not is_comparable(verb, fault):
            verb = "create"
        yield Trial(number, sample, verb, fault, dice.random() < 0.5)


def is_comparable(verb: str, fault: Fault) -> bool:
    """Whether the old server takes such a request as a current one does.

    The name is in the path of all but a creation.  Its server-side apply, a beta,
    merged owners and finalizers otherwise, and cut numbers off; its merge patches took
    nulls out of lists.
    """
    value, path = fault.value, fault.path
    if verb == "apply":
        is_large = type(value) is int and value >= 2**31
        return not is_large and path[:2] not in OTHERWISE_APPLIED
    if verb == "merge":
        in_list = any(isinstance(name, int) for name in path)
        return not (fault.name == "null item" or (value is None and in_list))
    return verb == "create" or path != ("metadata", "name")


OTHERWISE_APPLIED = (
    *(("metadata", "ownerReferences"), ("metadata", "finalizers")),
    ("metadata", "name"),
)


@dataclass(frozen=True)
class Difference:
    """The two servers' answers to one trial."""

    trial: Trial
    what: str
    ours: Answer
    theirs: Answer

    @property
    def family(self) -> str:
        """The same for differences that are likely to have one cause."""
        fault, sample = self.trial.fault, self.trial.sample
        path = ".".join("*" if type(p) is int else str(p) for p in fault.path)
        group, _, kind = sample.type
        named = f"{kind}.{group}" if group else kind
        return f"{self.trial.verb} {named} {path} ({fault.name}): {self.what}"

    @property
    def known(self) -> str:
        """The known deviation of the old server from a current one; "" without any."""
        words = str(self.ours[1].get("message")) + str(self.theirs[1].get("message"))
        text = f"{self.family} {words}"
        return next((why for why, form in OLD if form.search(text)), "")


# What 1.20 did otherwise than a current server, by the family of the difference.
OLD = tuple(
    (why, re.compile(form, re.DOTALL))
    for why, form in (
        (
            "it compared events of events.k8s.io with themselves when they changed",
            r"^(update|merge|apply) Event\.events",
        ),
        (
            "it did not look at the values of selectors",
            r"matchExpressions\S*\.values\S* .*(422, not 20.|FieldValueInvalid)",
        ),
        (
            "it did not look at the selectors of spread constraints",
            r"topologySpreadConstraints\S*\.labelSelector\S* .*422, not 20.",
        ),
        (
            "in an apply it merged lists without keys, and protocols had no default",
            r"^apply .*(omits all key fields|omits key field .protocol)",
        ),
        (
            "in an apply it took apart what is one thing today",
            r"^apply (ResourceQuota spec.scopeSelector|ClusterRoleBinding\S* roleRef"
            r"|RoleBinding\S* roleRef|ControllerRevision\S* data|Event \w+(\.| )"
            r"|\S+ \S*(requests|limits|capacity|hard)\b)",
        ),
        (
            "it stored autoscalers in version 1, which knows fewer metrics",
            r"HorizontalPodAutoscaler.* spec.metrics.*: stored spec.metrics",
        ),
        (
            "what init containers may not have was invalid, not forbidden",
            r"initContainers.*(Probe|lifecycle)",
        ),
        (
            "services with addresses outside had no traffic policy",
            r"Service spec.type .*20., not 422.*ExternalTrafficPolicy can only be set",
        ),
        (
            "the history of a stateful set was not to be changed",
            r"StatefulSet.* spec.revisionHistoryLimit .*200, not 422",
        ),
        (
            "namespaces had no label with their name",
            r"^create Namespace metadata.name .*metadata.labels",
        ),
        (
            "the parameters of classes were another type",
            r"IngressClass.* spec.parameters.apiGroup .*not null",
        ),
    )
)


class Duel:
    """Both servers, and the trials that they have been put to."""

    def __init__(self, real: ApiServer, simulated: Simulated) -> None:
        self.real, self.simulated = real, simulated
        status, found = real.raw("GET", "/openapi/v2")
        assert status == 200
        self.schemas = Schemas(found["definitions"])
        self.present: dict[Sample, tuple[str, Json, Json, Simulated]] = {}
        self.count = 0
        self.counts: Counter[str] = Counter()
        for sample in samples():
            body = {"metadata": {"name": self.space(sample)}}
            for server in (real, simulated):
                status, found = server.raw("POST", "/api/v1/namespaces", body)
                assert status in (201, 409), found

    def space(self, sample: Sample) -> str:
        """Every kind has its own: quotas and limits are for their namespace."""
        return f"fault-{sample.number}"

    def told(self) -> str:
        """The number of comparisons, in words."""
        each = ", ".join(f"{count} {verb}" for verb, count in self.counts.items())
        return f"{self.counts.total()} requests ({each})"

    def run(self, trial: Trial) -> Difference | None:
        """Send a trial to both; how they differ."""
        match trial.verb:
            case "create":
                return self._created(trial)
            case "apply" if not trial.is_present:
                return self._created(trial)
            case _:
                return self._changed(trial)

    # ------------------------------------------------------------- requests

    def _path(self, sample: Sample, *, old: bool) -> str:
        path = sample.at if old else sample.now
        return path.replace("{ns}", self.space(sample))

    def _body(self, sample: Sample, name: str) -> Json:
        return sample.named(name, self.space(sample))

    def _typed(self, sample: Sample, body: Json, *, old: bool) -> Json:
        if old or "apiVersion" not in body:
            return body
        return {**body, "apiVersion": sample.api_version}

    def _fresh(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def _created(self, trial: Trial) -> Difference | None:
        sample, name = trial.sample, self._fresh()
        spoiled = trial.fault.applied(self._body(sample, name))
        if spoiled is None:
            return None
        name = (
            str(spoiled["metadata"].get("name", name))
            if (trial.verb == "create" and isinstance(spoiled.get("metadata"), dict))
            else name
        )
        theirs = self._send(self.real, trial, name, spoiled, old=True)
        ours = self._send(fork(self.simulated.cluster), trial, name, spoiled, old=False)
        if theirs[0] in (200, 201):
            self._removed(sample, theirs[1], always="name" in trial.fault.path)
        return self._compared(trial, ours, theirs)

    def _send(
        self, server: Any, trial: Trial, name: str, body: Any, *, old: bool
    ) -> Answer:
        path = self._path(trial.sample, old=old)
        body = self._typed(trial.sample, body, old=old)
        answer: Answer
        match trial.verb:
            case "create":
                answer = server.raw("POST", path, body, JSON)
            case "update":
                answer = server.raw("PUT", f"{path}/{name}", body, JSON)
            case "merge":
                answer = server.raw("PATCH", f"{path}/{name}", body, MERGE_PATCH)
            case _:
                query = {"fieldManager": "me", "force": "true"}
                answer = server.raw("PATCH", f"{path}/{name}", body, APPLY_PATCH, query)
        return answer

    def _changed(self, trial: Trial) -> Difference | None:
        sample, verb = trial.sample, trial.verb
        name, ours_live, theirs_live, simulated = self._live(sample)
        bodies: list[Json] = []
        for live in (theirs_live, ours_live):
            base = self._body(sample, name) if verb == "apply" else live
            spoiled = trial.fault.applied(base)
            if spoiled is None:
                return None
            body = trial.fault.patch(spoiled) if verb == "merge" else spoiled
            if verb == "merge" and trial.fault.value is ABSENT:
                body = trial.fault.patch(spoiled)
            bodies.append(body)
        theirs = self._send(self.real, trial, name, bodies[0], old=True)
        ours = self._send(fork(simulated.cluster), trial, name, bodies[1], old=False)
        if theirs[0] in (200, 201):
            self._removed(sample, theirs[1])
            del self.present[sample]
        return self._compared(trial, ours, theirs)

    def _live(self, sample: Sample) -> tuple[str, Json, Json, Simulated]:
        """An untouched object on both servers."""
        found = self.present.get(sample)
        if found is None:
            name = self._fresh()
            body = self._body(sample, name)
            status, theirs = self.real.raw("POST", self._path(sample, old=True), body)
            assert status == 201, (sample.at, theirs)
            simulated = fork(self.simulated.cluster)
            path = self._path(sample, old=False)
            mine = self._typed(sample, body, old=False)
            status, ours = simulated.raw("POST", path, mine)
            assert status == 201, (sample.now, ours)
            found = self.present[sample] = (name, ours, theirs, simulated)
        return found

    def _removed(self, sample: Sample, found: Any, *, always: bool = False) -> None:
        """Cluster-wide objects must not affect other trials, and addresses are few."""
        if "{ns}" in sample.at and sample.object["kind"] != "Service" and not always:
            return
        name = quote(found["metadata"]["name"])  # some kinds take any letters
        path = f"{self._path(sample, old=True)}/{name}"
        if found["metadata"].get("finalizers"):
            self.real.raw(
                "PATCH", path, {"metadata": {"finalizers": None}}, MERGE_PATCH
            )
        self.real.raw("DELETE", path)

    # ------------------------------------------------------------ comparison

    def _compared(
        self, trial: Trial, ours: Answer, theirs: Answer
    ) -> Difference | None:
        self.counts[trial.verb] += 1
        if ours[0] != theirs[0]:
            what = f"code {ours[0]}, not {theirs[0]}"
            return Difference(trial, what, ours, theirs)
        if ours[0] >= 400:
            mine, other = refusal_of(ours[1]), refusal_of(theirs[1])
            if mine == other:
                return None
            what = f"{mine}, not {other}"
            return Difference(trial, f"causes {what}", ours, theirs)
        old = self.schemas.old_of(trial.sample)
        mine = self._stored(trial.sample, ours[1], old)
        other = self._stored(trial.sample, theirs[1], old)
        if found := differences(mine, other):
            return Difference(trial, f"stored {found}", ours, theirs)
        return None

    def _stored(self, sample: Sample, obj: Json, schema: Json) -> Any:
        known = self._known(obj, schema)
        if isinstance(known, dict):
            known.pop("apiVersion", None)
        return Renaming("", "1.20").of(without_admission(sample, known))

    def _known(self, value: Any, schema: Json) -> Any:
        """The value without what the old server's types do not have."""
        schema = self.schemas.resolved(schema, old=True)
        if isinstance(value, list) and "items" in schema:
            return [self._known(item, schema["items"]) for item in value]
        if not isinstance(value, dict):
            return value
        if "properties" in schema:
            parts = schema["properties"]
            return {k: self._known(v, parts[k]) for k, v in value.items() if k in parts}
        if "additionalProperties" in schema:
            inner = schema["additionalProperties"]
            return {k: self._known(v, inner) for k, v in value.items()}
        return value


def refusal_of(body: Any) -> Any:
    """The compared part of a refusal: its reason, the fields and reasons of causes."""
    if not isinstance(body, dict):
        return body
    causes = (body.get("details") or {}).get("causes") or ()
    if body.get("code") == 500:
        causes = ()  # words alone
    found = {(one.get("field", ""), one.get("reason", "")) for one in causes}
    return body.get("reason"), sorted(
        {
            (RENAMED.sub(lambda word: NEW_NAMES[word[0]], name), reason)
            for name, reason in found
            if "[batch.kubernetes.io/" not in name
        }
    )


# What 1.20 called otherwise.
NEW_NAMES = {
    "Value": "value",
    "downwarAPI": "downwardAPI",
    "matchExpressions.match": "labelSelector.match",
}
RENAMED = re.compile(r"^Value$|downwarAPI|matchExpressions\.match")


PROTECTION = frozenset(("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"))
# The parts that every object has, that managed fields show, and that came after 1.20:
# jobs count their generations, and have labels and a selector with other names.
NEVER = ("managedFields", "resourceVersion", "selfLink", "uid")
UNCOUNTED = frozenset(("CronJob", "HorizontalPodAutoscaler", "Job"))
JOB_LABELS = frozenset(
    (
        *("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"),
        *("controller-uid", "job-name"),
    )
)


def without_admission(sample: Sample, obj: Any) -> Any:
    """Without what only admission of a whole cluster adds, and what is never equal."""
    kind = sample.object["kind"]
    metadata = {k: v for k, v in obj["metadata"].items() if k not in NEVER}
    if kind in UNCOUNTED:
        metadata.pop("generation", None)
    if "finalizers" in metadata:
        rest = [one for one in metadata["finalizers"] if one not in PROTECTION]
        metadata["finalizers"] = rest
    if not metadata.get("finalizers"):
        metadata.pop("finalizers", None)
    if kind == "Namespace":
        labels = {**metadata.get("labels", {})}
        labels.pop("kubernetes.io/metadata.name", None)
        metadata["labels"] = labels
    result = {**obj, "metadata": metadata}
    if kind == "HorizontalPodAutoscaler":
        # 1.20 wrote the null.
        status = {**obj.get("status", {})}
        result["status"] = {k: v for k, v in status.items() if v is not None}
    if kind == "Pod" and obj["spec"].get("serviceAccountName") == "default":
        accounts = ("serviceAccount", "serviceAccountName")
        spec = {k: v for k, v in obj["spec"].items() if k not in accounts}
        result["spec"] = spec
    return without_job_labels(result) if kind == "Job" else result


def without_job_labels(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: without_job_labels(part)
        for name, part in value.items()
        if name not in JOB_LABELS
    }


def report(found: list[Difference]) -> str:
    """The unknown and the known differences, in words."""
    known = Counter(one.known for one in found if one.known)
    lines = [f"{count} known: {why}" for why, count in known.most_common()]
    lines += [f"{one.trial}: {one.what}" for one in found if not one.known]
    return "\n".join(lines)
