"""The rules for bundles of the Operator Lifecycle Manager, as pure functions.

They are the rules of operator-sdk's validators, in fnop's own words. A rule that OLM
and its registry enforce is an error. A further rule of a catalogue such as
OperatorHub.io is a warning. The API server's own validation of definitions and examples
comes on top.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
import yaml

from fnop.adapters.generate.images import is_image
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.simulation.scenario import ApplyProblem, apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = [
    "ANNOTATIONS",
    "MEDIA_TYPES",
    "PREFIX",
    "RULES",
    "Bundle",
    "Finding",
    "OlmRule",
    "bundle_of",
    "judged",
]

Json = Mapping[str, Any]

PREFIX = "operators.operatorframework.io.bundle."
ANNOTATIONS = {
    f"{PREFIX}mediatype.v1": "registry+v1",
    f"{PREFIX}manifests.v1": "manifests/",
    f"{PREFIX}metadata.v1": "metadata/",
}
_PACKAGE, _CHANNELS = f"{PREFIX}package.v1", f"{PREFIX}channels.v1"
_DEFAULT_CHANNEL = f"{PREFIX}channel.default.v1"
MEDIA_TYPES = frozenset(("image/gif", "image/jpeg", "image/png", "image/svg+xml"))
CSV, CRD = "ClusterServiceVersion", "CustomResourceDefinition"
_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
# The kinds that a bundle of the type registry+v1 may contain.
_SUPPORTED = frozenset(
    (
        *(CSV, CRD, "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ConsoleLink"),
        *("ConsoleCLIDownload", "ConsolePlugin", "ConsoleQuickStart"),
        *("ConsoleYAMLSample", "NetworkPolicy", "PodDisruptionBudget"),
        *("PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret"),
        *("Service", "ServiceAccount", "ServiceMonitor", "VerticalPodAutoscaler"),
    )
)
_CAPABILITIES = (
    *("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights"),
    "Auto Pilot",
)
_CATEGORIES = frozenset(
    (
        *("AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider"),
        *("Database", "Developer Tools", "Development Tools", "Drivers and plugins"),
        *("Integration & Delivery", "Logging & Tracing", "Modernization & Migration"),
        *("Monitoring", "Networking", "OpenShift Optional", "Observability"),
        *("Security", "Storage", "Streaming & Messaging"),
    )
)
# https://semver.org: the suggested expression.
_NUMBER = r"(0|[1-9]\d*)"
_PRE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE}(\.{_PRE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_EMAIL = re.compile(r"[^@\s<>]+@[^@\s<>]+")


class Bundle(NamedTuple):
    """A bundle as it was read.

    `manifests` are the objects by file, `problems` the parts that could not be read.
    The version is the ClusterServiceVersion, or an empty object if there is not exactly
    one.
    """

    manifests: tuple[tuple[str, Json], ...] = ()
    annotations: Json | None = None
    dockerfile: str | None = None
    problems: tuple[str, ...] = ()

    @property
    def version(self) -> Json:
        found = self.of_kind(CSV)
        return found[0] if len(found) == 1 else {}

    @property
    def name(self) -> str:
        return _name(self.version)

    @property
    def spec(self) -> Json:
        return _object(self.version.get("spec"))

    @property
    def notes(self) -> Json:
        """The annotations of the ClusterServiceVersion."""
        return _object(_object(self.version.get("metadata")).get("annotations"))

    def of_kind(self, kind: str) -> list[Json]:
        return [each for _, each in self.manifests if each.get("kind") == kind]

    def owned(self) -> list[Json]:
        kinds = _object(self.spec.get("customresourcedefinitions"))
        return _objects(kinds.get("owned"))

    def install(self) -> Json:
        return _object(_object(self.spec.get("install")).get("spec"))

    def deployments(self) -> list[Json]:
        return _objects(self.install().get("deployments"))

    def webhooks(self) -> list[Json]:
        return _objects(self.spec.get("webhookdefinitions"))


class Finding(NamedTuple):
    """A sentence about a bundle that breaks a rule."""

    rule: str
    sentence: str
    is_error: bool


class OlmRule(NamedTuple):
    """A rule by its name; a bundle that breaks a rule marked as an error is refused."""

    name: str
    check: Callable[[Bundle], Iterator[str]]
    is_error: bool = True


def bundle_of(files: Mapping[str, str]) -> Bundle:
    """Read the files of a bundle: their texts, by path within its folder."""
    problems: list[str] = []

    def read(path: str) -> list[Any]:
        try:
            return [each for each in yaml.safe_load_all(files[path]) if each]
        except yaml.YAMLError as problem:
            line = str(problem).replace("\n", " ")
            problems.append(f"{path} is no YAML: {line}")
            return []

    manifests = []
    for path in sorted(files):
        if path.startswith("manifests/"):
            for each in read(path):
                if isinstance(each, dict) and isinstance(each.get("kind"), str):
                    manifests.append((path, each))
                else:
                    problems.append(f"{path} has something that is no manifest")
    notes = None
    if "metadata/annotations.yaml" in files:
        found = read("metadata/annotations.yaml")
        notes = _object(_object(found[0] if found else {}).get("annotations"))
    return Bundle(
        tuple(manifests), notes, files.get("bundle.Dockerfile"), tuple(problems)
    )


def judged(bundle: Bundle) -> list[Finding]:
    """The findings of all rules, errors first.

    >>> judged(Bundle())[0].sentence
    'there is no file in manifests/'
    """
    found = [
        Finding(rule.name, sentence, rule.is_error)
        for rule in RULES
        for sentence in rule.check(bundle)
    ]
    return sorted(found, key=lambda each: not each.is_error)


def _object(found: Any) -> Json:
    return found if isinstance(found, dict) else {}


def _objects(found: Any) -> list[Json]:
    return [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []


def _name(manifest: Json) -> str:
    return str(_object(manifest.get("metadata")).get("name") or "")


def _is_version(text: Any) -> bool:
    return isinstance(text, str) and _SEMVER.fullmatch(text) is not None


# ------------------------------------------------------------------------ the folder


def _reading_problems(bundle: Bundle) -> Iterator[str]:
    yield from bundle.problems


def _layout(bundle: Bundle) -> Iterator[str]:
    if not bundle.manifests:
        yield "there is no file in manifests/"
    if bundle.annotations is None:
        yield "there is no metadata/annotations.yaml"


def _one_version(bundle: Bundle) -> Iterator[str]:
    number = len(bundle.of_kind(CSV))
    if bundle.manifests and number != 1:
        yield f"a bundle has one {CSV} in manifests/, not {number}"


def _kinds(bundle: Bundle) -> Iterator[str]:
    for path, each in bundle.manifests:
        if each["kind"] not in _SUPPORTED:
            yield f"{path}: OLM installs no {each['kind']} of a bundle"


def _names(bundle: Bundle) -> Iterator[str]:
    for path, each in bundle.manifests:
        if not _SUBDOMAIN.fullmatch(_name(each)):
            yield f"{path}: {_name(each)!r} is no name of a {each['kind']}"


def _metadata(bundle: Bundle) -> Iterator[str]:
    if bundle.annotations is None:
        return
    for key in (*ANNOTATIONS, _PACKAGE, _CHANNELS, _DEFAULT_CHANNEL):
        if key not in bundle.annotations:
            yield f"the annotation {key} is missing in metadata/annotations.yaml"
        elif not bundle.annotations[key]:
            yield f"the annotation {key} is empty"
    for key, wanted in ANNOTATIONS.items():
        value = bundle.annotations.get(key) or wanted
        if value != wanted:
            yield f"the annotation {key} is {wanted!r} in such a bundle, not {value!r}"


def _channels(bundle: Bundle) -> Iterator[str]:
    notes = bundle.annotations or {}
    channels = [e.strip() for e in str(notes.get(_CHANNELS) or "").split(",")]
    default = notes.get(_DEFAULT_CHANNEL)
    if default and default not in channels:
        yield f"the default channel {default!r} is none of {', '.join(channels)}"


_LABELS = re.compile(r"^\s*LABEL\s+([^\s=]+)=(\S*)\s*$", re.MULTILINE)


def _dockerfile(bundle: Bundle) -> Iterator[str]:
    if bundle.dockerfile is None or bundle.annotations is None:
        return
    labels = {
        key: value.strip("\"'") for key, value in _LABELS.findall(bundle.dockerfile)
    }
    for key, value in bundle.annotations.items():
        if not key.startswith(PREFIX):
            continue
        if labels.get(key) != str(value):
            yield (
                f"the label {key} of bundle.Dockerfile is {labels.get(key)!r}, and the "
                f"annotation is {value!r}"
            )
    for folder in ("manifests", "metadata"):
        if not re.search(
            rf"^\s*COPY\s.*{folder}/?\s+/{folder}/", bundle.dockerfile, re.M
        ):
            yield f"bundle.Dockerfile does not copy {folder}/ to /{folder}/"


def _has_dockerfile(bundle: Bundle) -> Iterator[str]:
    if bundle.dockerfile is None:
        yield "there is no bundle.Dockerfile, by which an image is made of the bundle"


# --------------------------------------------------------------- the version's fields


def _version_of(name: str) -> str:
    """The version number in the name of a version: 1.2.0 in `db.v1.2.0`."""
    return name.partition(".")[2].removeprefix("v")


def _version_name(bundle: Bundle) -> Iterator[str]:
    names = {"metadata.name": bundle.name, "spec.replaces": bundle.spec.get("replaces")}
    for field, name in names.items():
        if name and not _is_version(_version_of(str(name))):
            yield f"{field} is {name!r}, and should look like operator.v1.2.3"


def _same_version(bundle: Bundle) -> Iterator[str]:
    version = bundle.spec.get("version")
    if not bundle.version:
        return
    if not _is_version(version) or version == "0.0.0":
        yield f"spec.version is {version!r}, and should be a version such as 1.2.3"
    elif _is_version(_version_of(bundle.name)) and version != _version_of(bundle.name):
        yield f"spec.version is {version}, and metadata.name is {bundle.name}"


def _replaces(bundle: Bundle) -> Iterator[str]:
    if bundle.name and bundle.spec.get("replaces") == bundle.name:
        yield f"{bundle.name} replaces itself"


def _missing_fields(bundle: Bundle) -> Iterator[str]:
    if not bundle.version:
        return
    if not bundle.spec.get("displayName"):
        yield "spec.displayName is missing"
    strategy = _object(bundle.spec.get("install")).get("strategy")
    if strategy != "deployment":
        yield f"spec.install.strategy is {strategy!r}, and OLM knows only 'deployment'"
    if not bundle.deployments():
        yield "spec.install.spec.deployments is empty: nothing would run"


def _deployments(bundle: Bundle) -> Iterator[str]:
    names = Counter(str(each.get("name") or "") for each in bundle.deployments())
    for name, number in names.items():
        if not re.fullmatch(_LABEL, name):
            yield f"{name!r} is no name of a Deployment"
        elif number > 1:
            yield f"there are {number} deployments with the name {name}"


def _images(bundle: Bundle) -> Iterator[str]:
    for deployment in bundle.deployments():
        pod = deployment
        for part in ("spec", "template", "spec"):
            pod = _object(pod.get(part))
        for part in ("initContainers", "containers"):
            for each in _objects(pod.get(part)):
                image = str(each.get("image") or "")
                if not is_image(image):
                    container = each.get("name")
                    yield f"the image {image!r} of container {container} is none"


def _modes(bundle: Bundle) -> Iterator[str]:
    if not bundle.version:
        return
    found = _objects(bundle.spec.get("installModes"))
    if not found:
        yield "spec.installModes is missing: OLM would not know where it may serve"
        return
    for name, number in Counter(str(each.get("type")) for each in found).items():
        if name not in _MODES:
            yield f"there is no install mode {name!r}; choose from {', '.join(_MODES)}"
        elif number > 1:
            yield f"the install mode {name} is there {number} times"
    if not any(each.get("supported") for each in found):
        yield "no install mode is supported, so it could be installed nowhere"


def _kube_version(bundle: Bundle) -> Iterator[str]:
    found = bundle.spec.get("minKubeVersion")
    if found and not _is_version(found):
        yield f"spec.minKubeVersion is {found!r}, and should be such as 1.25.0"


def _webhooks(bundle: Bundle) -> Iterator[str]:
    names = {str(each.get("name")) for each in bundle.deployments()}
    known = Counter(str(each.get("generateName")) for each in bundle.webhooks())
    modes = {
        str(each.get("type"))
        for each in _objects(bundle.spec.get("installModes"))
        if each.get("supported")
    }
    for name, number in known.items():
        if number > 1:
            yield f"there are {number} webhooks with the name {name}"
    owned = {str(each.get("name")) for each in bundle.owned()}
    for each in bundle.webhooks():
        deployment = str(each.get("deploymentName"))
        if deployment not in names:
            yield f"a webhook is served by {deployment}, which is no deployment here"
        converted = each.get("conversionCRDs") or []
        if converted and modes != {"AllNamespaces"}:
            yield "conversion webhooks need AllNamespaces as the only install mode"
        for crd in converted:
            if crd not in owned:
                yield f"a webhook converts {crd}, which is not owned"


# --------------------------------------------------------------- accounts and rights


def _accounts(bundle: Bundle) -> Iterator[str]:
    named = _accounts_of(bundle)
    for each in bundle.of_kind("ServiceAccount"):
        if _name(each) in named:
            yield (
                f"the ServiceAccount {_name(each)} is in the bundle, and OLM makes it "
                f"for the {CSV}; leave it out"
            )


def _accounts_of(bundle: Bundle) -> set[str]:
    install = bundle.install()
    return {
        str(each.get("serviceAccountName"))
        for key in ("permissions", "clusterPermissions")
        for each in _objects(install.get(key))
    }


def _permissions(bundle: Bundle) -> Iterator[str]:
    for key in ("permissions", "clusterPermissions"):
        for each in _objects(bundle.install().get(key)):
            name = each.get("serviceAccountName")
            if not name:
                yield f"an entry of {key} has no serviceAccountName"
            for rule in _objects(each.get("rules")):
                if not rule.get("verbs"):
                    yield f"a rule of {key} for {name} has no verbs"


# --------------------------------------------------------------- definitions, examples

Gvk = tuple[str, str, str]


def _owned_kinds(bundle: Bundle) -> list[Gvk]:
    return [
        (
            str(each.get("name")).partition(".")[2],
            str(each.get("version")),
            str(each.get("kind")),
        )
        for each in bundle.owned()
    ]


def _defined_kinds(bundle: Bundle) -> list[Gvk]:
    return [
        (
            str(_object(each.get("spec")).get("group")),
            str(version.get("name")),
            str(_object(_object(each.get("spec")).get("names")).get("kind")),
        )
        for each in bundle.of_kind(CRD)
        for version in _objects(_object(each.get("spec")).get("versions"))
    ]


def _label(kind: Gvk) -> str:
    group, version, name = kind
    return f"{name} of {group}/{version}"


def _owned_names(bundle: Bundle) -> Iterator[str]:
    for each in bundle.owned():
        if not str(each.get("name") or "").partition(".")[2]:
            yield f"the owned definition {each.get('name')!r} is no plural.group"
        for field in ("kind", "version"):
            if not each.get(field):
                yield f"the owned definition {each.get('name')!r} has no {field}"


def _owned_present(bundle: Bundle) -> Iterator[str]:
    present = _defined_kinds(bundle)
    for each in _owned_kinds(bundle):
        if each not in present:
            yield f"the owned {_label(each)} is not defined in manifests/"


def _defined_once(bundle: Bundle) -> Iterator[str]:
    for each, number in Counter(_defined_kinds(bundle)).items():
        if number > 1:
            yield f"{_label(each)} is defined {number} times"


def _defined_owned(bundle: Bundle) -> Iterator[str]:
    owned = _owned_kinds(bundle)
    for each in dict.fromkeys(_defined_kinds(bundle)):
        if bundle.version and each not in owned:
            yield f"{_label(each)} is defined in manifests/ and is not owned"


def _examples(bundle: Bundle) -> list[Json] | None:
    text = bundle.notes.get("alm-examples")
    if text is None:
        return []
    try:
        found = orjson.loads(str(text))
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, list) or not all(isinstance(e, dict) for e in found):
        return None
    return found


def _kind_of(example: Json) -> Gvk:
    group, _, version = str(example.get("apiVersion")).rpartition("/")
    return group, version, str(example.get("kind"))


def _examples_json(bundle: Bundle) -> Iterator[str]:
    if _examples(bundle) is None:
        yield "the annotation alm-examples is no JSON list of objects"


def _examples_owned(bundle: Bundle) -> Iterator[str]:
    for each in _examples(bundle) or ():
        if _kind_of(each) not in _owned_kinds(bundle):
            yield f"alm-examples has a {_label(_kind_of(each))}, which is not owned"


def _examples_all(bundle: Bundle) -> Iterator[str]:
    shown = [_kind_of(each) for each in _examples(bundle) or ()]
    for each in _owned_kinds(bundle):
        if each not in shown:
            yield f"alm-examples has no {_label(each)}"


def _taken(bundle: Bundle) -> Iterator[str]:
    """The sentences of an API server that refuses a definition, or an example."""
    run = SimulatedRun(Program(()), empty_cluster(now=EPOCH))
    refused = False
    for each in bundle.of_kind(CRD):
        try:
            apply_manifests(run, [dict(each)])
        except ApplyProblem as problem:
            refused = True
            yield str(problem)
    while run.control():
        pass
    for each in () if refused else _examples(bundle) or ():
        if _kind_of(each) in _defined_kinds(bundle):
            try:
                apply_manifests(run, [dict(each)])
            except (ApplyProblem, KeyError) as problem:
                yield f"alm-examples: {problem}"


# -------------------------------------------------------------------- for catalogues


def _provider(bundle: Bundle) -> Iterator[str]:
    if bundle.version and not _object(bundle.spec.get("provider")).get("name"):
        yield "spec.provider.name is missing; give it with --provider"


def _description(bundle: Bundle) -> Iterator[str]:
    if bundle.version and not bundle.spec.get("description"):
        yield "spec.description is missing; give it with --description"


def _maintainers(bundle: Bundle) -> Iterator[str]:
    found = _objects(bundle.spec.get("maintainers"))
    if bundle.version and not found:
        yield "spec.maintainers is missing; give --maintainer 'NAME <EMAIL>'"
    for each in found:
        name, email = each.get("name"), str(each.get("email") or "")
        if not name or not _EMAIL.fullmatch(email):
            yield f"the maintainer {name!r} needs a name and an email, not {email!r}"


def _links(bundle: Bundle) -> Iterator[str]:
    for each in _objects(bundle.spec.get("links")):
        url = urlsplit(str(each.get("url") or ""))
        if not each.get("name") or not url.scheme or not url.netloc:
            yield f"the link {each.get('name')!r} needs a name and a URL"


def _icon(bundle: Bundle) -> Iterator[str]:
    found = bundle.spec.get("icon")
    if bundle.version and not found:
        yield "spec.icon is missing; give it with --icon"
        return
    for each in _objects(found):
        if each.get("mediatype") not in MEDIA_TYPES:
            yield f"an icon has no media type {each.get('mediatype')!r}"
        try:
            data = base64.b64decode(str(each.get("base64data") or ""), validate=True)
        except binascii.Error:
            data = b""
        if not data:
            yield "the icon's base64data is none"
    if len(_objects(found)) > 1:
        yield "spec.icon has more than one icon"


def _categories(bundle: Bundle) -> Iterator[str]:
    level = bundle.notes.get("capabilities")
    if level is not None and level not in _CAPABILITIES:
        names = ", ".join(_CAPABILITIES)
        yield f"there is no capability level {level!r}; choose from {names}"
    found = str(bundle.notes.get("categories") or "")
    for each in filter(None, map(str.strip, found.split(","))):
        if each not in _CATEGORIES:
            yield f"there is no category {each!r}"


def _has_kube_version(bundle: Bundle) -> Iterator[str]:
    if bundle.version and not bundle.spec.get("minKubeVersion"):
        yield "spec.minKubeVersion is missing, so any cluster would take it"


RULES: tuple[OlmRule, ...] = (
    OlmRule("readable", _reading_problems),
    OlmRule("layout", _layout),
    OlmRule("one version", _one_version),
    OlmRule("supported kinds", _kinds),
    OlmRule("names", _names),
    OlmRule("annotations", _metadata),
    OlmRule("channels", _channels),
    OlmRule("Dockerfile", _dockerfile),
    OlmRule("version's name", _version_name),
    OlmRule("version", _same_version),
    OlmRule("replaces", _replaces),
    OlmRule("required fields", _missing_fields),
    OlmRule("deployments", _deployments),
    OlmRule("images", _images),
    OlmRule("install modes", _modes),
    OlmRule("Kubernetes version", _kube_version),
    OlmRule("webhooks", _webhooks),
    OlmRule("accounts", _accounts),
    OlmRule("permissions", _permissions),
    OlmRule("owned names", _owned_names),
    OlmRule("owned kinds are defined", _owned_present),
    OlmRule("defined once", _defined_once),
    OlmRule("examples are JSON", _examples_json),
    OlmRule("examples are of owned kinds", _examples_owned),
    OlmRule("the API server takes it", _taken),
    OlmRule("defined kinds are owned", _defined_owned, is_error=False),
    OlmRule("an example of each kind", _examples_all, is_error=False),
    OlmRule("has a Dockerfile", _has_dockerfile, is_error=False),
    OlmRule("provider", _provider, is_error=False),
    OlmRule("description", _description, is_error=False),
    OlmRule("maintainers", _maintainers, is_error=False),
    OlmRule("links", _links, is_error=False),
    OlmRule("icon", _icon, is_error=False),
    OlmRule("capabilities and categories", _categories, is_error=False),
    OlmRule("has a Kubernetes version", _has_kube_version, is_error=False),
)
