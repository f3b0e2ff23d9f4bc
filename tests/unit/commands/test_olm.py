"""`fnop olm`: bundles of an operator, and the rules that they must follow."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fnop.adapters.cli.main import main
from fnop.adapters.generate.olm import About, BundleProblem, icon_of, made
from fnop.adapters.generate.olm_rules import (
    ANNOTATIONS,
    PREFIX,
    RULES,
    Bundle,
    bundle_of,
    judged,
)
from fnop.adapters.generate.rights import Account, Wishes, studied
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.cluster.access.rbac import GROUP
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.simulations import DEFINITION, ROOT, example

EXAMPLES = ROOT / "examples"
FILE = str(EXAMPLES / "02-children/example.py")
CSV = "manifests/parents.clusterserviceversion.yaml"
CRD = "manifests/fnopexamples.fnop.dev.crd.yaml"
ABOUT = About(
    "parents",
    "1.2.0",
    "registry.example.com/parents:1.2.0",
    ("stable", "candidate"),
    description="Makes a Pod for each parent.\n\nAnd no more.",
    provider="Example",
    maintainers=(("Ann", "ann@example.com"),),
    links=(("Docs", "https://example.com/docs"),),
    categories=("Database", "Storage"),
    replaces="parents.v1.1.0",
    icon=("image/png", b"\x89PNG"),
)


def wishes(**more: Any) -> Wishes:
    return Wishes((FILE,), Account("parents", "parents"), budget=0, **more)


@cache
def study(**more: Any) -> Any:
    return studied(wishes(**more))


def files_of(about: About = ABOUT, **more: Any) -> dict[str, str]:
    return made(study(**more), wishes(**more), about)


def version(files: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(files[CSV])
    return found


# --------------------------------------------------------------------- what is made


def test_the_bundle_breaks_no_rule() -> None:
    assert judged(bundle_of(files_of())) == []


def test_the_rights_are_those_of_the_whole_cluster() -> None:
    csv = version(files_of(elects=True))
    install = csv["spec"]["install"]["spec"]
    (wide,) = install["clusterPermissions"]
    (local,) = install["permissions"]
    assert wide["serviceAccountName"] == local["serviceAccountName"] == "parents"
    rules = {(*e["apiGroups"], *e["resources"]): e["verbs"] for e in wide["rules"]}
    assert rules == {
        ("", "pods"): ["get", "list", "watch", "create"],
        ("fnop.dev", "fnopexamples"): ["get", "list", "watch"],
        ("fnop.dev", "fnopexamples/status"): ["patch"],
    }
    assert [each["verbs"] for each in local["rules"]] == [["create"], ["get", "patch"]]
    modes = {e["type"]: e["supported"] for e in csv["spec"]["installModes"]}
    assert [name for name, supported in modes.items() if supported] == ["AllNamespaces"]


def test_one_that_serves_its_own_namespace_has_rights_there_alone() -> None:
    csv = version(files_of(namespaces=("default",)))
    install = csv["spec"]["install"]["spec"]
    assert "clusterPermissions" not in install
    modes = {e["type"]: e["supported"] for e in csv["spec"]["installModes"]}
    assert modes["OwnNamespace"]
    assert not modes["AllNamespaces"]
    (deployment,) = install["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each for each in container["env"]}
    field = env["FNOP_RUN_NAMESPACE"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert field == "metadata.annotations['olm.targetNamespaces']"


@pytest.mark.parametrize("more", [{}, {"elects": True}, {"namespaces": ("default",)}])
def test_the_api_server_takes_the_deployment(more: dict[str, Any]) -> None:
    """As OLM makes it, with the roles and the account."""
    install = version(files_of(**more))["spec"]["install"]["spec"]
    (deployment,) = install["deployments"]
    where = {"name": deployment["name"], "namespace": "default"}
    run = SimulatedRun(Program(()), empty_cluster(now=EPOCH))
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    apply_manifests(run, [{**kind, "metadata": where, "spec": deployment["spec"]}])
    for key, role in (("permissions", "Role"), ("clusterPermissions", "ClusterRole")):
        for each in install.get(key, ()):
            made = {"apiVersion": f"{GROUP}/v1", "kind": role, "rules": each["rules"]}
            meta = where if role == "Role" else {"name": where["name"]}
            apply_manifests(run, [{**made, "metadata": meta}])
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "parents"
    assert ("strategy" in deployment["spec"]) == ("elects" not in more)


def test_the_owned_kind_is_described() -> None:
    csv = version(files_of())
    (owned,) = csv["spec"]["customresourcedefinitions"]["owned"]
    assert owned["name"] == "fnopexamples.fnop.dev"
    assert owned["displayName"] == "Fnop Example"
    assert owned["resources"] == [{"kind": "Pod", "name": "", "version": "v1"}]
    (example,) = json.loads(csv["metadata"]["annotations"]["alm-examples"])
    assert example["kind"] == "FnopExample"
    assert "namespace" not in example["metadata"]


OPERATOR = """
import fnop

@fnop.on.create("databases")
def made(**_):
    return fnop.create({"apiVersion": "example.com/v1", "kind": "Volume",
                        "metadata": {"name": "v"}, "spec": {}})
"""


def definition(plural: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def test_fields_are_described_and_needed_kinds_are_required(tmp_path: Path) -> None:
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    texts = {"type": "array", "items": {"type": "string"}}
    schema = {
        "type": "object",
        "description": "A database.",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "description": "In GiB."},
                    "tls": {
                        "type": "object",
                        "properties": {"on": {"type": "boolean"}},
                    },
                    "engine": {"type": "string", "enum": ["a", "b"]},
                },
            },
            "status": {**loose, "properties": {"conditions": texts}},
        },
    }
    any_spec = {"type": "object", "properties": {"spec": loose}}
    crds = [
        definition("databases", "Database", schema),
        definition("volumes", "Volume", any_spec),
        definition("others", "Other", any_spec),
    ]
    (tmp_path / "databasing.py").write_text(OPERATOR)
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump_all(crds))
    paths = (str(tmp_path / "databasing.py"),)
    wished = Wishes(paths, Account("db", "db"), budget=0)
    files = made(studied(wished), wished, ABOUT)
    kinds = version(files)["spec"]["customresourcedefinitions"]
    (owned,) = kinds["owned"]
    assert owned["description"] == "A database."
    ui = "urn:alm:descriptor:com.tectonic.ui:"
    shown = {each["path"]: each for each in owned["specDescriptors"]}
    assert shown["size"]["description"] == "In GiB."
    assert shown["size"]["x-descriptors"] == [f"{ui}number"]
    assert shown["tls.on"]["displayName"] == "On"
    assert shown["tls.on"]["x-descriptors"] == [f"{ui}booleanSwitch"]
    assert shown["engine"]["x-descriptors"] == [f"{ui}select:a", f"{ui}select:b"]
    (status,) = owned["statusDescriptors"]
    assert status["x-descriptors"] == ["urn:alm:descriptor:io.kubernetes.conditions"]
    assert [each["name"] for each in kinds["required"]] == ["volumes.example.com"]
    assert [each for each in files if each.endswith(".crd.yaml")] == [
        "manifests/databases.example.com.crd.yaml"
    ]
    assert judged(bundle_of(files)) == []


def test_a_kind_without_a_definition_makes_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "nodefinition.py").write_text(OPERATOR)
    path = str(tmp_path / "nodefinition.py")
    wished = Wishes((path,), Account("db", "db"), budget=0)
    with pytest.raises(BundleProblem, match="no definition of databases; give it with"):
        made(studied(wished), wished, ABOUT)


# ------------------------------------------------------------------------- the rules

Spoil = Callable[[dict[str, Any]], Any]


def with_version(spoil: Spoil) -> dict[str, str]:
    """A bundle whose ClusterServiceVersion was changed."""
    files = files_of()
    csv = copy.deepcopy(version(files))
    spoil(csv)
    return {**files, CSV: yaml.safe_dump(csv)}


def with_crd(spoil: Spoil) -> dict[str, str]:
    files = files_of()
    crd = yaml.safe_load(files[CRD])
    spoil(crd)
    return {**files, CRD: yaml.safe_dump(crd)}


def with_notes(**notes: str | None) -> dict[str, str]:
    files = files_of()
    key = "metadata/annotations.yaml"
    found = yaml.safe_load(files[key])["annotations"]
    for name, value in notes.items():
        full = f"{PREFIX}{name}.v1".replace("_", ".")
        found = {k: v for k, v in found.items() if k != full}
        if value is not None:
            found[full] = value
    labels = "".join(f"LABEL {k}={v}\n" for k, v in found.items())
    copies = "COPY manifests /manifests/\nCOPY metadata /metadata/\n"
    notes_text = yaml.safe_dump({"annotations": found})
    return {**files, key: notes_text, "bundle.Dockerfile": labels + copies}


def and_manifest(**manifest: Any) -> dict[str, str]:
    return {**files_of(), "manifests/more.yaml": yaml.safe_dump(manifest)}


def without(path: str) -> dict[str, str]:
    return {key: text for key, text in files_of().items() if key != path}


def spec(**changes: Any) -> dict[str, str]:
    return with_version(lambda csv: csv["spec"].update(changes))


def note(**changes: str) -> dict[str, str]:
    named = {key.replace("_", "-"): value for key, value in changes.items()}
    return with_version(lambda csv: csv["metadata"]["annotations"].update(named))


def install(**changes: Any) -> dict[str, str]:
    return with_version(lambda csv: csv["spec"]["install"]["spec"].update(changes))


def deploying(part: str, image: str) -> dict[str, str]:
    def spoil(csv: dict[str, Any]) -> None:
        (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
        pod = deployment["spec"]["template"]["spec"]
        pod[part] = [{"name": "x", "image": image}]

    return with_version(spoil)


def owned(**changes: Any) -> dict[str, str]:
    def spoil(csv: dict[str, Any]) -> None:
        csv["spec"]["customresourcedefinitions"]["owned"][0].update(changes)

    return with_version(spoil)


def renamed(name: str) -> dict[str, str]:
    return with_version(lambda csv: csv["metadata"].update(name=name))


HOOK = {"generateName": "h", "deploymentName": "parents", "type": "ConversionWebhook"}
ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "parents"},
}
BOOK = {"apiVersion": "example.com/v1", "kind": "Book", "metadata": {"name": "b"}}
TWICE = [{"type": "AllNamespaces", "supported": True}] * 2

BROKEN: list[tuple[str, str, Callable[[], dict[str, str]]]] = [
    ("readable", "is no YAML", lambda: {**files_of(), "manifests/x.yaml": "a: ["}),
    ("readable", "no manifest", lambda: {**files_of(), "manifests/x.yaml": "- 1"}),
    ("layout", "no file in manifests/", dict),
    (
        "layout",
        "no metadata/annotations.yaml",
        lambda: without("metadata/annotations.yaml"),
    ),
    ("one version", "not 0", lambda: without(CSV)),
    (
        "one version",
        "not 2",
        lambda: {**files_of(), "manifests/b.yaml": files_of()[CSV]},
    ),
    (
        "supported kinds",
        "no Pod of a bundle",
        lambda: and_manifest(kind="Pod", metadata={"name": "x"}),
    ),
    (
        "names",
        "'A_B' is no name of a Service",
        lambda: and_manifest(kind="Service", metadata={"name": "A_B"}),
    ),
    ("annotations", "is missing", lambda: with_notes(package=None)),
    ("annotations", "is empty", lambda: with_notes(channels="")),
    ("annotations", "'registry+v1'", lambda: with_notes(mediatype="helm+v1")),
    ("annotations", "'manifests/'", lambda: with_notes(manifests="elsewhere/")),
    ("channels", "none of stable", lambda: with_notes(channel_default="beta")),
    (
        "Dockerfile",
        "label",
        lambda: {
            **files_of(),
            "bundle.Dockerfile": files_of()["bundle.Dockerfile"].replace(
                "package.v1=parents", "package.v1=other"
            ),
        },
    ),
    (
        "Dockerfile",
        "does not copy metadata/",
        lambda: {
            **files_of(),
            "bundle.Dockerfile": files_of()["bundle.Dockerfile"].replace(
                "COPY metadata /metadata/", ""
            ),
        },
    ),
    ("version's name", "should look like", lambda: renamed("parents")),
    ("version's name", "should look like", lambda: renamed("parents.v1.2")),
    ("version's name", "spec.replaces", lambda: spec(replaces="parents-1")),
    ("version", "should be a version", lambda: spec(version="1.2")),
    ("version", "should be a version", lambda: spec(version="01.2.0")),
    ("version", "metadata.name is parents.v1.2.0", lambda: spec(version="1.3.0")),
    ("replaces", "replaces itself", lambda: spec(replaces="parents.v1.2.0")),
    ("required fields", "displayName", lambda: spec(displayName="")),
    ("required fields", "strategy", lambda: spec(install={"strategy": "helm"})),
    ("required fields", "nothing would run", lambda: install(deployments=[])),
    ("deployments", "is no name", lambda: install(deployments=[{"name": "A"}])),
    ("deployments", "there are 2", lambda: install(deployments=[{"name": "a"}] * 2)),
    ("install modes", "is missing", lambda: spec(installModes=[])),
    ("install modes", "2 times", lambda: spec(installModes=TWICE)),
    (
        "install modes",
        "no install mode 'Some'",
        lambda: spec(installModes=[{"type": "Some", "supported": True}]),
    ),
    (
        "install modes",
        "no install mode is supported",
        lambda: spec(installModes=[{"type": "AllNamespaces", "supported": False}]),
    ),
    ("Kubernetes version", "minKubeVersion", lambda: spec(minKubeVersion="1.25")),
    ("webhooks", "with the name h", lambda: spec(webhookdefinitions=[HOOK, HOOK])),
    (
        "webhooks",
        "no deployment here",
        lambda: spec(webhookdefinitions=[{**HOOK, "deploymentName": "x"}]),
    ),
    (
        "webhooks",
        "not owned",
        lambda: spec(webhookdefinitions=[{**HOOK, "conversionCRDs": ["a.b"]}]),
    ),
    (
        "webhooks",
        "the only install mode",
        lambda: spec(
            webhookdefinitions=[{**HOOK, "conversionCRDs": ["fnopexamples.fnop.dev"]}],
            installModes=[{"type": "OwnNamespace", "supported": True}],
        ),
    ),
    ("images", "'' of container x", lambda: deploying("containers", "")),
    ("images", "'A b' of container x", lambda: deploying("initContainers", "A b")),
    ("accounts", "leave it out", lambda: and_manifest(**ACCOUNT)),
    (
        "permissions",
        "no serviceAccountName",
        lambda: install(permissions=[{"rules": []}]),
    ),
    (
        "permissions",
        "no verbs",
        lambda: install(
            permissions=[{"serviceAccountName": "x", "rules": [{"resources": ["a"]}]}]
        ),
    ),
    ("owned names", "no plural.group", lambda: owned(name="fnopexamples")),
    ("owned names", "has no version", lambda: owned(version="")),
    ("owned kinds are defined", "not defined", lambda: without(CRD)),
    ("owned kinds are defined", "not defined", lambda: owned(version="v2")),
    (
        "defined once",
        "defined 2 times",
        lambda: {**files_of(), "manifests/again.yaml": files_of()[CRD]},
    ),
    ("examples are JSON", "no JSON list", lambda: note(alm_examples="[{]")),
    ("examples are JSON", "no JSON list", lambda: note(alm_examples="{}")),
    (
        "examples are of owned kinds",
        "has a Book",
        lambda: note(alm_examples=json.dumps([BOOK])),
    ),
    (
        "the API server takes it",
        "is refused",
        lambda: with_crd(lambda crd: crd["spec"]["names"].update(plural="others")),
    ),
    (
        "the API server takes it",
        "alm-examples",
        lambda: note(
            alm_examples=json.dumps(
                [
                    {
                        "apiVersion": "fnop.dev/v1",
                        "kind": "FnopExample",
                        "metadata": {"name": "A_B"},
                    }
                ]
            )
        ),
    ),
    (
        "defined kinds are owned",
        "is not owned",
        lambda: spec(customresourcedefinitions={}),
    ),
    ("an example of each kind", "has no", lambda: note(alm_examples="[]")),
    ("has a Dockerfile", "no bundle.Dockerfile", lambda: without("bundle.Dockerfile")),
    ("provider", "--provider", lambda: spec(provider={})),
    ("description", "--description", lambda: spec(description="")),
    ("maintainers", "--maintainer", lambda: spec(maintainers=[])),
    ("maintainers", "'ann'", lambda: spec(maintainers=[{"name": "A", "email": "ann"}])),
    (
        "links",
        "needs a name and a URL",
        lambda: spec(links=[{"name": "A", "url": "b"}]),
    ),
    ("icon", "--icon", lambda: spec(icon=[])),
    (
        "icon",
        "no media type",
        lambda: spec(icon=[{"base64data": "YQ==", "mediatype": "image/x"}]),
    ),
    (
        "icon",
        "base64data is none",
        lambda: spec(icon=[{"base64data": "%", "mediatype": "image/png"}]),
    ),
    ("capabilities and categories", "level 'High'", lambda: note(capabilities="High")),
    ("capabilities and categories", "'Cats'", lambda: note(categories="Storage,Cats")),
    (
        "has a Kubernetes version",
        "any cluster",
        lambda: spec(minKubeVersion=""),
    ),
]


@pytest.mark.parametrize(
    ("rule", "words", "files"), BROKEN, ids=[f"{r}-{w}" for r, w, _ in BROKEN]
)
def test_each_rule_finds_what_breaks_it(
    rule: str, words: str, files: Callable[[], dict[str, str]]
) -> None:
    found = [each for each in judged(bundle_of(files())) if each.rule == rule]
    assert any(words in each.sentence for each in found), found
    (row,) = [each for each in RULES if each.name == rule]
    assert {each.is_error for each in found} == {row.is_error}


def test_every_rule_is_broken_by_some_test() -> None:
    assert {rule for rule, _, _ in BROKEN} == {each.name for each in RULES}


def test_an_empty_bundle_is_judged() -> None:
    assert [each.rule for each in judged(Bundle()) if each.is_error] == ["layout"] * 2


@pytest.mark.parametrize(
    "odd",
    [
        {"spec": None},
        {"spec": {"installModes": "x", "icon": "y", "links": [1]}},
        {"spec": {"install": [], "customresourcedefinitions": {"owned": [{}, 3]}}},
        {"metadata": None},
    ],
)
def test_odd_bundles_are_judged_without_an_error_of_our_own(odd: Any) -> None:
    csv = {"kind": "ClusterServiceVersion", **odd}
    assert judged(bundle_of({"manifests/a.yaml": yaml.safe_dump(csv)}))


# ----------------------------------------------------------------------- the command


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["olm", *args, "--budget", "0"])


def test_the_command_writes_a_bundle_and_judges_it(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    icon = tmp_path / "icon.svg"
    icon.write_text("<svg/>")
    given = ("--version", "1.2.0", "--image", "r.example.com/p:1", "--icon", str(icon))
    more = ("--provider", "Ex", "--maintainer", "Ann <a@b.c>", "--package", "parents")
    found = run(FILE, *given, *more, "--output", str(folder), "--channel", "beta")
    assert found.exit_code == 0, found.output
    assert "warning" not in found.stdout
    assert sorted(e.relative_to(folder).as_posix() for e in folder.rglob("*.*")) == [
        "bundle.Dockerfile",
        CRD,
        CSV,
        "metadata/annotations.yaml",
    ]
    notes = yaml.safe_load((folder / "metadata/annotations.yaml").read_text())
    assert notes["annotations"].items() >= ANNOTATIONS.items()
    assert notes["annotations"][f"{PREFIX}channel.default.v1"] == "beta"
    again = run("--validate", str(folder))
    assert again.exit_code == 0
    assert "keeps the" in again.stdout
    (folder / CRD).unlink()
    broken = run("--validate", str(folder))
    assert broken.exit_code == 1
    assert broken.stdout.splitlines() == [
        "error: the owned FnopExample of fnop.dev/v1 is not defined in manifests/ "
        "(owned kinds are defined)"
    ]


def test_an_image_that_is_not_given_is_told(tmp_path: Path) -> None:
    found = run(FILE, "--version", "1.0.0", "--output", str(tmp_path), "--name", "db")
    assert found.exit_code == 0, found.output
    assert "the image is taken to be db:1.0.0; give --image" in found.stderr
    file = tmp_path / "manifests/db.clusterserviceversion.yaml"
    csv = yaml.safe_load(file.read_text())
    assert csv["metadata"]["name"] == "db.v1.0.0"
    assert csv["metadata"]["annotations"]["containerImage"] == "db:1.0.0"


def test_a_wrong_call_is_told() -> None:
    for args, text in (
        ((), "name the operator's file"),
        ((FILE,), "--version is missing"),
        ((FILE, "--maintainer", "Ann"), "write NAME <EMAIL>"),
        ((FILE, "--link", "Ann"), "write NAME=URL"),
        ((FILE, "--version", "1.0.0", "--image", ""), "'' is no image; write"),
        ((FILE, "--version", "1.0.0", "--image", "a/B:1"), "'a/B:1' is no image"),
    ):
        found = run(*args)
        assert found.exit_code == 2, found.output
        assert text in found.stderr


def test_an_icon_is_an_image(tmp_path: Path) -> None:
    file = tmp_path / "icon.txt"
    file.write_text("x")
    with pytest.raises(BundleProblem, match=r"give a \.svg"):
        icon_of(file)


@pytest.mark.parametrize("image", ["", "Upper/case", "two words"])
def test_an_image_that_cannot_be_is_told(image: str, tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(
        "import fnop\n\n\n@fnop.reconcile('fnopexamples')\n"
        "def keep(**_):\n    return fnop.desired()\n"
    )
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(DEFINITION))
    (tmp_path / "object.yaml").write_text(yaml.safe_dump(example()))
    words = ["olm", str(tmp_path / "operator.py"), "--version", "1.0.0"]
    done = CliRunner().invoke(
        main, [*words, "--image", image, "--output", str(tmp_path / "bundle")]
    )
    assert done.exit_code != 0


# ------------------------------------------------------------------------ admission

ADMITTING = """
import fnop

@fnop.on.validate("fnopexamples.fnop.dev", labels={"tier": "prod"})
def judged(**_): ...

@fnop.on.mutate("fnopexamples.fnop.dev", operations=["CREATE"])
def filled(**_): ...
"""


def test_olm_registers_the_webhooks(tmp_path: Path) -> None:
    file = tmp_path / "operator.py"
    file.write_text(ADMITTING)
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(DEFINITION))
    asked = Wishes((str(file),), Account("parents", "parents"), budget=0)
    files = made(studied(asked), asked, ABOUT)
    assert not [each for each in judged(bundle_of(files)) if each.is_error]
    assert CRD in files
    spec = version(files)["spec"]
    first, second = spec["webhookdefinitions"]
    assert first["type"] == "MutatingAdmissionWebhook"
    assert second == {
        "type": "ValidatingAdmissionWebhook",
        "generateName": "judged.default.fnop.dev",
        "deploymentName": "parents",
        "containerPort": 9443,
        "targetPort": 9443,
        "webhookPath": "/judged",
        "rules": [
            {
                "apiGroups": ["fnop.dev"],
                "apiVersions": ["v1"],
                "operations": ["*"],
                "resources": ["fnopexamples"],
                "scope": "*",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "objectSelector": {"matchLabels": {"tier": "prod"}},
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }
    install = spec["install"]["spec"]
    (deployment,) = install["deployments"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["FNOP_RUN_WEBHOOKS"] == "true"
    assert variables["FNOP_RUN_WEBHOOK_UNMANAGED"] == "true"
    # OLM keeps the configurations and the certificates.
    (wide,) = install["clusterPermissions"]
    groups = [each["apiGroups"] for each in wide["rules"]]
    assert groups == [["authentication.k8s.io"]]
    assert "permissions" not in install


def test_without_admission_handlers_there_are_no_webhooks() -> None:
    assert "webhookdefinitions" not in version(files_of())["spec"]
