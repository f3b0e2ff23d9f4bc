"""`fnop olm`: bundles of an operator, and mistakes in their options."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fnop.adapters.cli.main import main
from fnop.adapters.generate.olm import ANNOTATIONS, PREFIX, made
from fnop.adapters.generate.olm_about import About, BundleProblem, icon_of, judged
from fnop.adapters.generate.rights import Account, Wishes, studied
from fnop.core.handlers.program.program import Program
from fnop.effects.structs import replace
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


def test_the_facts_of_the_bundle_have_no_mistake() -> None:
    assert judged(ABOUT) == []


def test_the_annotations_are_those_of_the_dockerfile_too() -> None:
    files = files_of()
    notes = yaml.safe_load(files["metadata/annotations.yaml"])["annotations"]
    assert notes[f"{PREFIX}channels.v1"] == "stable,candidate"
    for key, value in notes.items():
        assert f"LABEL {key}={value}\n" in files["bundle.Dockerfile"]
    for folder in ("manifests", "metadata"):
        assert f"COPY {folder} /{folder}/\n" in files["bundle.Dockerfile"]


def test_the_api_server_takes_the_definition_and_the_example() -> None:
    files = files_of()
    run = SimulatedRun(Program(()), empty_cluster(now=EPOCH))
    examples = version(files)["metadata"]["annotations"]["alm-examples"]
    apply_manifests(run, [yaml.safe_load(files[CRD]), *json.loads(examples)])


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


def test_a_kind_without_a_definition_makes_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "nodefinition.py").write_text(OPERATOR)
    path = str(tmp_path / "nodefinition.py")
    wished = Wishes((path,), Account("db", "db"), budget=0)
    with pytest.raises(BundleProblem, match="no definition of databases; give it with"):
        made(studied(wished), wished, ABOUT)


# ----------------------------------------------------------------- an author's mistakes

MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("--package is 'A_B'", {"package": "A_B"}),
    ("--version is '1.2', and should be", {"version": "1.2"}),
    ("--version is '01.2.0'", {"version": "01.2.0"}),
    ("--version is '0.0.0'", {"version": "0.0.0"}),
    ("--replaces is 'parents-1', and should look", {"replaces": "parents-1"}),
    ("parents.v1.2.0 replaces itself", {"replaces": "parents.v1.2.0"}),
    ("--image is 'A b'", {"image": "A b"}),
    ("--image is 'p:1.2.0+b'", {"image": "p:1.2.0+b"}),  # by default of the version
    ("--channel is ''", {"channels": ("",)}),
    ("--channel is 'a,b'", {"channels": ("a,b",)}),
    ("--min-kube-version is '1.25'", {"min_kube_version": "1.25"}),
]
LACKS: list[tuple[str, dict[str, Any]]] = [
    ("give it with --provider", {"provider": ""}),
    ("give it with --description", {"description": ""}),
    ("give --maintainer", {"maintainers": ()}),
    ("'A' needs an email address, not 'ann'", {"maintainers": (("A", "ann"),)}),
    ("'A' needs a URL, not 'b'", {"links": (("A", "b"),)}),
    ("give it with --icon", {"icon": None}),
    ("give it with --icon", {"icon": ("image/png", b"")}),
    ("no capability level 'High'", {"capabilities": "High"}),
]


@pytest.mark.parametrize(("words", "changes"), MISTAKES + LACKS)
def test_each_mistake_is_found(words: str, changes: dict[str, Any]) -> None:
    (found,) = judged(replace(ABOUT, **changes))
    assert words in found.sentence
    assert found.is_error == ((words, changes) in MISTAKES)


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
    assert found.stdout == (
        f"{folder} is made; to judge it: operator-sdk bundle validate {folder}\n"
    )


def test_the_command_reports_what_olm_would_refuse(tmp_path: Path) -> None:
    given = ("--version", "1.2", "--image", "p", "--output", str(tmp_path))
    found = run(FILE, *given, "--package", "parents")
    assert found.exit_code == 1
    first, *others = found.stdout.splitlines()
    assert first == "error: --version is '1.2', and should be a version such as 1.2.3"
    assert all(each.startswith("warning: ") for each in others)


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
        ((FILE, "--version", "1.0.0", "--image", ""), "'' is not an image; write"),
        ((FILE, "--version", "1.0.0", "--image", "a/B:1"), "'a/B:1' is not an image"),
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
