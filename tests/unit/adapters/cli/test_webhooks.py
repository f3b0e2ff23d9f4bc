"""Commands with webhooks: their manifests, and the options of `fnop run`."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fnop.adapters.cli.main import main
from fnop.adapters.cli.option_fields import filled
from fnop.adapters.cli.run import run as run_command
from fnop.adapters.cli.webhook_options import WebhookOptions
from fnop.adapters.kubernetes import service_account
from fnop.core.handlers.declare.settings import Settings

OPERATOR = """
import fnop

@fnop.on.validate("claims.example.com")
def judge(**_): ...

@fnop.on.mutate("claims.example.com", operations=["CREATE"])
def fill(**_): ...
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: claims.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: claims, singular: claim, kind: Claim}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
"""
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "operator.py").write_text(OPERATOR)
    (tmp_path / "crd.yaml").write_text(DEFINITION)
    (tmp_path / "ca.crt").write_text(CERTIFICATE)
    return tmp_path


def webhooks(*words: str) -> Result:
    return CliRunner().invoke(main, ["webhooks", "operator.py", *words])


def printed(*words: str) -> dict[str, dict[str, Any]]:
    """The manifests by their kind."""
    found = webhooks(*words)
    assert found.exit_code == 0, found.output
    return {each["kind"]: each for each in yaml.safe_load_all(found.stdout)}


def test_both_configurations_lead_to_the_service() -> None:
    found = printed("--service", "prod/claims:8443", "--ca", "ca.crt")
    assert [*found] == [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]
    for name, kind in (("fill", "Mutating"), ("judge", "Validating")):
        manifest = found[f"{kind}WebhookConfiguration"]
        assert manifest["apiVersion"] == "admissionregistration.k8s.io/v1"
        assert manifest["metadata"] == {"name": "default.fnop.dev"}
        (webhook,) = manifest["webhooks"]
        assert webhook["name"] == f"{name}.default.fnop.dev"
        assert webhook["clientConfig"] == {
            "service": {
                "namespace": "prod",
                "name": "claims",
                "port": 8443,
                "path": f"/{name}",
            },
            "caBundle": base64.b64encode(CERTIFICATE.encode()).decode(),
        }
        (rule,) = webhook["rules"]
        assert rule["apiVersions"] == ["v1beta2"]


def test_an_address_may_take_the_place_of_the_service() -> None:
    found = printed("--url", "https://hooks.example.com/fnop", "--ca", "ca.crt")
    (webhook,) = found["ValidatingWebhookConfiguration"]["webhooks"]
    assert webhook["clientConfig"]["url"] == "https://hooks.example.com/fnop/judge"


def test_cert_manager_makes_the_certificate_and_puts_its_authority_in() -> None:
    found = printed("--service", "prod/claims", "--cert-manager")
    assert [*found][:2] == ["Issuer", "Certificate"]
    spec = found["Certificate"]["spec"]
    assert spec["dnsNames"][0] == "claims.prod.svc"
    assert spec["issuerRef"]["name"] == found["Issuer"]["metadata"]["name"]
    for each in ("Issuer", "Certificate"):
        assert found[each]["metadata"]["namespace"] == "prod"
    for kind in ("Mutating", "Validating"):
        manifest = found[f"{kind}WebhookConfiguration"]
        assert manifest["metadata"]["annotations"] == {
            "cert-manager.io/inject-ca-from": "prod/claims-webhooks"
        }
        assert "caBundle" not in manifest["webhooks"][0]["clientConfig"]


def test_the_certificate_of_an_address_names_its_host() -> None:
    found = printed("--url", "https://10.0.0.1:8443", "--cert-manager")
    assert found["Certificate"]["spec"]["ipAddresses"] == ["10.0.0.1"]
    assert "dnsNames" not in found["Certificate"]["spec"]


@pytest.mark.parametrize(
    ("words", "namespace", "account"),
    [
        ((), "db", "db:db"),
        (("--service", "prod/claims"), "prod", "prod:db"),
        (("--service", "claims", "--service-account", "ops/it"), "ops", "ops:it"),
    ],
)
def test_the_operator_s_own_writes_and_its_namespace_are_left_out(
    words: tuple[str, ...], namespace: str, account: str
) -> None:
    found = printed("--name", "db", "--ca", "ca.crt", *words)
    manifest = found["ValidatingWebhookConfiguration"]
    assert manifest["metadata"]["name"] == "db.fnop.dev"
    (webhook,) = manifest["webhooks"]
    assert webhook["clientConfig"]["service"]["namespace"] == namespace
    conditions = {e["name"]: e["expression"] for e in webhook["matchConditions"]}
    assert conditions["not-by-the-operator"].endswith(
        f"'system:serviceaccount:{account}'"
    )
    (expression,) = webhook["namespaceSelector"]["matchExpressions"]
    assert expression["values"] == sorted(["kube-system", "kube-node-lease", namespace])


def test_one_sort_of_handlers_has_one_configuration(folder: Path) -> None:
    text = OPERATOR.replace('on.mutate("claims.example.com"', 'on.validate("pods"')
    (folder / "operator.py").write_text(text)
    assert [*printed("--ca", "ca.crt")] == ["ValidatingWebhookConfiguration"]


def test_a_kind_that_nobody_defines_needs_its_version(folder: Path) -> None:
    (folder / "crd.yaml").unlink()
    found = webhooks("--ca", "ca.crt")
    assert found.exit_code == 2
    assert "the version of 'claims.example.com' is not known" in found.output
    assert "judge and fill" in found.output
    assert "--crd" in found.output


def test_a_kind_whose_version_is_named_needs_no_definition(folder: Path) -> None:
    (folder / "crd.yaml").unlink()
    text = OPERATOR.replace("claims.example.com", "claims.v7.example.com")
    (folder / "operator.py").write_text(text)
    manifest = printed("--ca", "ca.crt")["ValidatingWebhookConfiguration"]
    assert manifest["webhooks"][0]["rules"][0]["apiVersions"] == ["v7"]


def test_a_class_in_the_file_defines_its_kind(folder: Path) -> None:
    (folder / "crd.yaml").unlink()
    text = """
from dataclasses import dataclass
import fnop

@fnop.definition("claims.v3.example.com")
@dataclass
class Claim:
    size: int
"""
    (folder / "operator.py").write_text(text + OPERATOR)
    manifest = printed("--ca", "ca.crt")["ValidatingWebhookConfiguration"]
    assert manifest["webhooks"][0]["rules"][0]["apiVersions"] == ["v3"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--service", "a/b/c"), "is not a service"),
        (("--service", "A_b"), "the service"),
        (("--service", "a:99999"), "99999 is not a port"),
        (("--url", "http://a"), "https://HOST"),
        (("--url", "https://user@a"), "https://HOST"),
        (("--url", "https://a?x=1"), "https://HOST"),
        (("--url", "https://a:b"), "https://HOST"),
        (("--url", "https://a", "--service", "b"), "either --service or --url"),
        (("--ca", "ca.crt", "--cert-manager"), "either --ca or --cert-manager"),
        (("--ca", "operator.py"), "operator.py has no certificate"),
        (("--kube-version", "new"), "write 1.30"),
        (("-n", "a", "-A"), "either -n/--namespace or -A"),
    ],
)
def test_a_wrong_call_is_refused_with_the_remedy(
    words: tuple[str, ...], said: str
) -> None:
    found = webhooks(*words)
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())


def test_without_handlers_of_admission_there_is_nothing_to_print(folder: Path) -> None:
    (folder / "operator.py").write_text(
        "import fnop\n@fnop.on.create('pods')\ndef f(**_): ...\n"
    )
    found = webhooks("--ca", "ca.crt")
    assert found.exit_code == 2
    assert "@fnop.on.validate" in found.output


@pytest.mark.parametrize(
    ("version", "has_conditions", "has_names"),
    [
        ((), True, True),
        (("--kube-version", "1.27"), True, True),
        (("--kube-version", "v1.26.3"), False, True),
        (("--kube-version", "1.20"), False, False),
    ],
)
def test_older_servers_are_sent_what_they_know(
    version: tuple[str, ...], has_conditions: bool, has_names: bool
) -> None:
    found = printed("--ca", "ca.crt", "-n", "prod", *version)
    (webhook,) = found["ValidatingWebhookConfiguration"]["webhooks"]
    assert ("matchConditions" in webhook) is has_conditions
    assert bool(webhook["namespaceSelector"]) is has_names


def test_an_author_s_match_conditions_are_not_left_out_in_silence(folder: Path) -> None:
    text = OPERATOR.replace(
        '"claims.example.com")', '"claims.example.com", match_conditions="true")', 1
    )
    (folder / "operator.py").write_text(text)
    assert "left out" not in webhooks("--ca", "ca.crt").stderr
    found = webhooks("--ca", "ca.crt", "--kube-version", "1.20")
    assert "the match conditions of judge are left out" in found.stderr


def test_without_an_authority_there_is_a_warning() -> None:
    found = webhooks()
    assert found.exit_code == 0
    assert "--cert-manager" in found.stderr


# -------------------------------------------------------------------- fnop run


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["run", "operator.py", *words])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--webhook-addr", ":9443"), "--webhook-addr needs --webhooks"),
        (("--webhook-unmanaged",), "--webhook-unmanaged needs --webhooks"),
        (("--webhooks", "--webhook-addr", "9443"), "write HOST:PORT"),
        (("--webhooks", "--webhook-addr", "a:b"), "write HOST:PORT"),
        (("--webhooks", "--webhook-url", "http://a"), "https://HOST"),
        (("--webhooks", "--webhook-service", "a"), "NAMESPACE/NAME"),
        (
            ("--webhooks", "--webhook-url", "https://a", "--webhook-service", "a/b"),
            "either --webhook-service or --webhook-url",
        ),
        (("--webhooks", "--webhook-cert", "ca.crt"), "go together"),
        (("--webhooks", "--webhook-ca", "ca.crt"), "--webhook-ca needs"),
        (
            ("--webhooks", "--webhook-unmanaged", "--webhook-name", "a.b"),
            "either --webhook-name or --webhook-unmanaged",
        ),
        (("--webhooks", "--simulate", "crd.yaml"), "cannot be used with --simulate"),
    ],
)
def test_options_that_cannot_be_are_refused(words: tuple[str, ...], said: str) -> None:
    found = run(*words)
    assert found.exit_code == 2
    assert said in " ".join(found.output.split())


def test_in_a_pod_the_service_has_to_be_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "namespace").write_text("prod")
    monkeypatch.setattr(service_account, "FOLDER", folder)
    found = run("--webhooks")
    assert found.exit_code == 2
    assert "--webhook-service NAME" in " ".join(found.output.split())


def set_by(**given: Any) -> Settings:
    """The settings that options of `fnop run` come to."""
    context = run_command.make_context("run", [])
    options = filled(WebhookOptions, {**context.params, **given})
    return options.add_to(Settings("billing"))


def test_the_options_choose_the_server_and_the_name() -> None:
    assert set_by().admission_server is None
    found = set_by(webhooks=True)
    assert found.admission_server is not None
    assert found.admission_managed == "billing.fnop.dev"
    named = set_by(webhooks=True, webhook_name="hooks.dev")
    assert named.admission_managed == "hooks.dev"
    found = set_by(webhooks=True, webhook_unmanaged=True)
    assert found.admission_server is not None
    assert found.admission_managed is None
