"""`fnop new`: the project that it makes passes its own tests and lint."""

from __future__ import annotations

import difflib
import doctest
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import fnop as facade
from fnop.adapters.generate import project_names, scaffolding
from fnop.adapters.generate.project_names import NameProblem, Names, names_of
from fnop.adapters.generate.scaffolding import files_of
from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from fnop.adapters.webhooks.addresses import SERVICE_PORT
from tests.commands import PYTEST, Done, fnop
from tests.patience import patience
from tests.simulations import ROOT

NAMES = names_of("my-operator", kind="Website", group="example.com")
# Nothing longer is valid, so that no line gets longer.
LONGEST = names_of(
    "o" * 63, kind=f"K{'k' * 58}", group=f"{'g' * 185}.io", plural="p" * 63
)
# Its kind is called as one that it owns.
NAMESAKE = names_of("web-operator", kind="Service", group="e.com")


def write(names: Names, folder: Path) -> Path:
    """The files of a project, without those that are generated."""
    for path, text in files_of(names).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A tool in a project, as in an environment with the project installed."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(folder / "src"), str(ROOT))),
        "MYPYPATH": str(ROOT),
        "TEST_KUBECONFIG": "",
    }
    return subprocess.run(
        [sys.executable, "-P", "-m", *command],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=False,
    )


def passes(folder: Path, *command: str) -> str:
    done = run(folder, *command)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def documents(text: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all(text)]


# --------------------------------------------------------------------- the project


def test_a_new_project_passes_its_own_tests_and_lint(tmp_path: Path) -> None:
    (tmp_path / "dns" / ".git").mkdir(parents=True)
    options = ("--dir", "dns", "--kind", "DNSRecord", "--group", "dns.example.com")
    made = fnop("new", "dns-operator", *options, folder=tmp_path)
    assert made.status == 0, made.err
    assert made.out.splitlines()[-3:] == [
        "  cd dns",
        "  python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'",
        "  make lint test",
    ]
    project = tmp_path / "dns"
    number = sum(each.is_file() for each in project.rglob("*"))
    assert f"dnsrecords.dns.example.com, {number} files" in made.out

    passes(project, "ruff", "check", "--no-cache")
    passes(project, "ruff", "format", "--check", "--no-cache")
    told = passes(project, *PYTEST)
    assert re.search(r"TEST_KUBECONFIG does not name the kubeconfig", told)
    assert re.search(r"= 14 passed, 1 skipped in ", told)
    the_manifests_fit_together(project)


def test_a_new_project_with_webhooks_passes_its_own_tests_and_lint(
    tmp_path: Path,
) -> None:
    made = fnop("new", "hooked", "--webhooks", folder=tmp_path)
    assert made.status == 0, made.err
    project = tmp_path / "hooked"
    passes(project, "ruff", "check", "--no-cache")
    passes(project, "ruff", "format", "--check", "--no-cache")
    chosen = ("tests/test_admission.py", "tests/test_manifests.py")
    assert "7 passed" in passes(project, *PYTEST, *chosen)
    text = (project / "deploy/rbac.yaml").read_text()
    assert "validatingwebhookconfigurations" in text


def test_webhooks_are_reached_by_the_service() -> None:
    files = files_of(NAMES, webhooks=True)
    (service,) = documents(files["deploy/service.yaml"])
    (patch,) = documents(files["deploy/webhooks.yaml"])
    (deployment,) = documents(files["deploy/deployment.yaml"])
    assert patch["metadata"]["name"] == deployment["metadata"]["name"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    (inside,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["name"] == inside["name"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    named = {key: service["metadata"][key] for key in ("namespace", "name")}
    assert variables["FNOP_RUN_WEBHOOK_SERVICE"] == "{namespace}/{name}".format(**named)
    (port,) = container["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert port["containerPort"] == SERVICE_PORT


def test_webhooks_change_no_more_of_a_file_than_they_need() -> None:
    usual, hooked = files_of(NAMES), files_of(NAMES, webhooks=True)
    assert {*hooked} > {*usual}
    changed = {
        path: [each for each in ndiff(usual[path], hooked[path]) if each[0] in "+-"]
        for path in usual
        if usual[path] != hooked[path]
    }
    added = {path: [each[2:] for each in lines] for path, lines in changed.items()}
    assert added["deploy/kustomization.yaml"] == [
        "  - service.yaml",
        "patches:",
        "  - path: webhooks.yaml",
    ]
    assert len(added["Dockerfile"]) == 2
    assert (
        added["Makefile"][-1] == "\tfnop run $(OPERATOR) --standalone --webhooks $(RUN)"
    )
    # Its readers learn about the additional files, the run with them, and the end.
    kept = [line for line in changed["README.md"] if line.startswith("-")]
    assert not kept
    assert any("admission.py" in line for line in added["README.md"])
    assert [*added] == [
        "Dockerfile",
        "Makefile",
        "README.md",
        "deploy/kustomization.yaml",
        "src/my_operator/__init__.py",
    ]


def ndiff(one: str, other: str) -> Iterator[str]:
    return difflib.ndiff(one.splitlines(), other.splitlines())


@pytest.mark.long
def test_a_new_project_has_types(tmp_path: Path) -> None:
    """Its imports are read for it, which takes a minute in a fresh clone."""
    assert fnop("new", "dns-operator", folder=tmp_path).status == 0
    cache = str(ROOT / ".mypy_cache" / "new-project")
    project = tmp_path / "dns-operator"
    passes(project, "mypy", "--follow-imports=silent", "--cache-dir", cache)


def the_manifests_fit_together(project: Path) -> None:
    """All of them are admitted, and name each other rightly."""
    listed = yaml.safe_load((project / "deploy/kustomization.yaml").read_text())
    found = [
        each
        for name in listed["resources"]
        for each in documents((project / "deploy" / name).read_text())
    ]
    (example,) = documents((project / "example.yaml").read_text())
    cluster = SimulatedCluster()
    cluster.apply([*found, example])
    assert cluster.get("dnsrecords.dns.example.com", "example") is not None

    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found) == 6
    deployment = by_kind["Deployment"]
    account = {
        "kind": "ServiceAccount",
        "name": deployment["spec"]["template"]["spec"]["serviceAccountName"],
        "namespace": deployment["metadata"]["namespace"],
    }
    assert by_kind["ClusterRoleBinding"]["subjects"] == [account]
    assert by_kind["ServiceAccount"]["metadata"]["name"] == account["name"]
    assert by_kind["Namespace"]["metadata"]["name"] == account["namespace"]
    assert listed["namespace"] == account["namespace"]
    pods = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"] == pods["metadata"]["labels"]
    (container,) = pods["spec"]["containers"]
    (image,) = listed["images"]
    assert container["image"] == image["name"]
    # Pod Security Standards: restricted.
    assert "enforce" in str(by_kind["Namespace"]["metadata"]["labels"])
    pod, inside = pods["spec"]["securityContext"], container["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["capabilities"] == {"drop": ["ALL"]}
    ports = {each["name"] for each in container["ports"]}
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_kustomize_renders_the_deployment(tmp_path: Path) -> None:
    write(NAMES, tmp_path)
    for path in scaffolding.generated_by(NAMES):
        (tmp_path / path).write_text("")
    command = ["kubectl", "kustomize", str(tmp_path / "deploy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience(20))
    assert done.returncode == 0, done.stderr
    namespace, deployment = documents(done.stdout)
    assert namespace["metadata"]["name"] == deployment["metadata"]["namespace"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/my-operator:0.1.0"


def define(names: Names, project: Path) -> None:
    command = scaffolding.generated_by(names)["deploy/crd.yaml"]
    (project / "deploy/crd.yaml").write_text(passes(project, "fnop", *command))


def test_a_project_of_the_longest_names_passes_its_lint(tmp_path: Path) -> None:
    project = write(LONGEST, tmp_path)
    passes(project, "ruff", "check", "--no-cache")
    passes(project, "ruff", "format", "--check", "--no-cache")
    define(LONGEST, project)
    cluster = SimulatedCluster()
    for path in ("crd.yaml", "namespace.yaml", "deployment.yaml", "../example.yaml"):
        cluster.apply(project / "deploy" / path)


def test_a_kind_may_be_called_as_one_that_it_owns(tmp_path: Path) -> None:
    project = write(NAMESAKE, tmp_path)
    define(NAMESAKE, project)
    chosen = ("tests/test_simulation.py", "-k", "sample or hand")
    assert "2 passed" in passes(project, *PYTEST, *chosen)


# ----------------------------------------------------------------- what goes with it


def test_the_project_asks_for_this_fnop() -> None:
    project = tomllib.loads(files_of(NAMES)["pyproject.toml"])["project"]
    major, minor, *_ = facade.__version__.split(".")
    # Semantic Versioning: until 1.0 a minor release may change interfaces.
    bound = f"0.{int(minor) + 1}" if major == "0" else f"{int(major) + 1}"
    assert project["dependencies"] == [f"fnop>={facade.__version__},<{bound}"]
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ours["requires-python"]


def test_no_project_has_the_name_of_what_it_needs() -> None:
    """It could not be installed next to it, or would be imported in its place."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    theirs = tomllib.loads(files_of(NAMES)["pyproject.toml"])
    extras = ours["optional-dependencies"]
    needed = [
        *(*ours["dependencies"], *extras["testing"], *extras["cel"], *extras["uvloop"]),
        *theirs["project"]["optional-dependencies"]["dev"],
        *theirs["build-system"]["requires"],
    ]
    found = {re.split(r"[^\w-]", each)[0].lower().replace("-", "_") for each in needed}
    assert found <= project_names.TAKEN


def test_the_targets_that_are_named_are_in_the_makefile() -> None:
    files = files_of(NAMES)
    targets = {*re.findall(r"^([a-z-]+):", files["Makefile"], re.MULTILINE)}
    named = {
        target
        for path in ("README.md", ".github/workflows/ci.yaml")
        for target in re.findall(r"\bmake ([a-z-]+)", files[path])
    }
    assert named <= targets
    phony = re.findall(r"^\.PHONY: (.*)", files["Makefile"], re.MULTILINE)
    assert {*phony[0].split()} == targets


def test_one_image_is_built_loaded_and_deployed() -> None:
    files = files_of(NAMES)
    (image,) = yaml.safe_load(files["deploy/kustomization.yaml"])["images"]
    name = f"{image['newName']}:{image['newTag']}"
    for path in ("Makefile", "README.md", ".github/workflows/ci.yaml"):
        assert {*re.findall(r"registry\S+:\S+", files[path])} == {name}


def test_make_manifests_writes_what_fnop_new_has_written() -> None:
    lines = files_of(NAMES)["Makefile"].replace("$(OPERATOR)", "{OPERATOR}")
    variables = dict(re.findall(r"^(\w+) :?\??= (.*)$", lines, re.MULTILINE))
    recipe = re.findall(r"^\tfnop (.*) > (.*)$", lines, re.MULTILINE)
    found = {
        path: tuple(
            command.replace("$(GIVEN)", variables["GIVEN"])
            .replace("$(CALLS)", "")  # a new project has no models
            .format(OPERATOR=variables["OPERATOR"])
            .split()
        )
        for command, path in recipe
    }
    assert found == scaffolding.generated_by(NAMES)


@pytest.mark.parametrize("has_models", [False, True])
def test_models_of_calls_are_taken_where_they_are(
    has_models: bool, tmp_path: Path
) -> None:
    (tmp_path / "Makefile").write_text(files_of(NAMES)["Makefile"])
    if has_models:
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests/models.py").touch()
    for target in ("check", "simulate", "manifests"):
        command = ["make", "--dry-run", target]
        said = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert ("--calls tests/models.py" in said) is has_models


def test_the_image_is_pinned_not_root_and_of_files_that_are_there() -> None:
    files = files_of(NAMES)
    image = files["Dockerfile"]
    bases = re.findall(r"^FROM (\S+)", image, re.MULTILINE)
    assert bases
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", each) for each in bases)
    (user,) = re.findall(r"^USER (\d+):\d+$", image, re.MULTILINE)
    assert int(user) > 0
    copied = {
        source
        for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", image, re.MULTILINE)
        for source in sources.split()
    }
    sent = re.findall(r"^!(.*)$", files[".dockerignore"], re.MULTILINE)
    assert copied == {*sent}
    for source in copied:
        assert any(path == source or path.startswith(f"{source}/") for path in files)


@pytest.mark.parametrize("module", [project_names, scaffolding])
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    outcome = doctest.testmod(module, optionflags=flags)
    assert outcome.attempted
    assert outcome.failed == 0


# --------------------------------------------------------------------- what is refused

PROJECTS = (
    *("", ".", "..", "../up", "a/b", "a\\b", "/tmp/a", "~", "-a", "a-", "a.b", "a_b"),
    *("A", "a b", "a\n", "a\x1b[31m", "é", "$HOME", "$(id)", "`id`", "__kind__"),
    *("1st", "x" * 64, "class", "json", "no", "null", "fnop", "pytest", "lightkube"),
    *("kubernetes-asyncio", "kinds", "operator", "tests"),
)
KINDS = (
    *("", "website", "1st", "Web-site", "Web site", "Web_site", "Web.site", "Wébsite"),
    *("True", "None", "Null", "Yes", "Annotated", "K" * 60, "A\n", "A:\n    x"),
)
GROUPS = ("", "apps", "Example.com", "e..com", ".com", "e.com.", "e.com/v1", "-e.com")
MORE_GROUPS = ("e_x.com", "e.com\n", "x.k8s.io", "kubernetes.io", f"{'a' * 250}.io")
PLURALS = ("", "Websites", "web sites", "web.sites", "1st", "-a", "a-", "no", "x" * 64)


@pytest.mark.parametrize("name", PROJECTS)
def test_such_a_name_of_a_project_is_refused(name: str) -> None:
    with pytest.raises(NameProblem, match="cannot be the name of a project"):
        names_of(name, kind="Website", group="example.com")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("kind", each) for each in KINDS),
        *(("group", each) for each in (*GROUPS, *MORE_GROUPS)),
        *(("plural", each) for each in PLURALS),
    ],
)
def test_such_names_of_a_kind_are_refused(option: str, value: str) -> None:
    given = {"kind": "Website", "group": "example.com", option: value}
    with pytest.raises(NameProblem, match=f"--{option}|cannot be the"):
        names_of("my-operator", **given)


def test_a_name_that_is_nearly_right_is_told_as_it_should_be() -> None:
    with pytest.raises(NameProblem, match=r"; write my-operator$"):
        names_of("My_Operator", kind="Website", group="example.com")


def refused(*arguments: str, folder: Path) -> Done:
    before = {*folder.rglob("*")}
    done = fnop("new", *arguments, folder=folder)
    assert done.status != 0
    assert {*folder.rglob("*")} == before
    return done


def test_nothing_is_written_for_a_name_that_is_refused(tmp_path: Path) -> None:
    done = refused("../up", folder=tmp_path)
    assert done.status == 2
    assert "'../up' cannot be the name of a project" in done.complaint
    assert not (tmp_path.parent / "up").exists()


def test_a_folder_with_something_in_it_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "my-operator").mkdir()
    (tmp_path / "my-operator" / "notes").write_text("mine")
    done = refused("my-operator", folder=tmp_path)
    assert done.status == 1
    assert done.complaint == (
        "fnop: my-operator is not empty; name a new folder with --dir"
    )


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = refused("my-operator", "--dir", "file", folder=tmp_path)
    assert done.complaint == "fnop: file is a file; name a folder with --dir"
    done = refused("my-operator", "--dir", "file/inside", folder=tmp_path)
    assert done.status == 1
    assert len(done.err.splitlines()) <= 2
    assert "Traceback" not in done.err
