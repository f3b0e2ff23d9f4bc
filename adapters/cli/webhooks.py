"""The command `fnop webhooks`: the configurations of an operator's webhooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from fnop.adapters.cli.option_fields import declared, option, takes
from fnop.adapters.cli.options import SelectionOptions, files, shared
from fnop.adapters.cli.webhook_options import a_service, a_url, bundle_of
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.manifests import ManifestProblem, dump_yaml, echo_yaml
from fnop.adapters.common.operator_settings import told_settings
from fnop.adapters.common.programs import program_of
from fnop.core.admission.configurations import Registration
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program

__all__ = ["webhooks"]


# Kubernetes has match conditions since 1.27, and labels with the names of namespaces
# since 1.21.
CONDITIONS, LABELS = (1, 27), (1, 21)
_LATEST = (1, 999)


def a_version(
    ctx: click.Context | None, param: click.Parameter | None, value: str | None
) -> tuple[int, int]:
    """A version of Kubernetes; without one the latest is meant.

    >>> a_version(None, None, "1.20"), a_version(None, None, "v1.27.3")
    ((1, 20), (1, 27))
    """
    if value is None:
        return _LATEST
    found = re.fullmatch(r"v?(\d+)\.(\d+)(\..*)?", value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is not a version of Kubernetes; write 1.30", ctx, param
        )
    return int(found[1]), int(found[2])


@dataclass(frozen=True, kw_only=True)
class WebhooksOptions:
    """The options of `fnop webhooks`."""

    paths: tuple[str, ...] = declared(files)
    module: tuple[str, ...] = declared(shared("module"))
    service: Mapping[str, Any] | None = option(
        "--service",
        callback=a_service,
        metavar="[NAMESPACE/]NAME[:PORT]",
        help="The Service in front of the operator; by default the Service that has "
        "the name of the operator's account.",
    )
    url: str | None = option(
        "--url",
        callback=a_url,
        metavar="URL",
        help="The operator's address, in place of a Service: https://HOST:PORT/PATH.",
    )
    ca: str | None = option(
        "--ca",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="The CA of the operator's certificate, as PEM.",
    )
    cert_manager: bool = option(
        "--cert-manager",
        is_flag=True,
        help="Print a Certificate for cert-manager, too, and let cert-manager put its "
        "CA into the configurations.",
    )
    webhook_name: str | None = declared(shared("webhook_name"))
    kube_version: tuple[int, int] = option(
        "--kube-version",
        callback=a_version,
        metavar="X.Y",
        help="The oldest Kubernetes for the configurations; match conditions need "
        "1.27.",
    )
    service_account: str | None = option(
        "--service-account",
        metavar="[NAMESPACE/]NAME",
        help="The account of the operator's pod. By default the account and its "
        "namespace have the operator's --name, or fnop-operator without --name.",
    )
    name: str = declared(shared("name"))
    selection: SelectionOptions
    crds: tuple[str, ...] = declared(shared("crds"))

    def __post_init__(self) -> None:
        if self.service and self.url:
            raise click.UsageError("use either --service or --url")
        if self.ca and self.cert_manager:
            raise click.UsageError("use either --ca or --cert-manager")

    @property
    def has_conditions(self) -> bool:
        """Whether the API server knows match conditions."""
        return self.kube_version >= CONDITIONS

    def registration(
        self, settings: Settings, bundle: Mapping[str, str]
    ) -> Registration:
        """The webhooks' place: the operator is in the namespace of its Service."""
        from fnop.adapters.generate.rights import account_of

        account = account_of(self.service_account, settings.operator)
        service = {"namespace": account.namespace, "name": account.name}
        service |= self.service or {}
        if not self.service_account:
            account = account._replace(namespace=service["namespace"])
        client = {"url": self.url} if self.url else {"service": service}
        return Registration(
            self.webhook_name or settings.domain,
            {**client, **bundle},
            f"system:serviceaccount:{account.namespace}:{account.name}",
            account.namespace,
            settings.namespaces,
            settings.selector,
            settings.marker,
            self.kube_version >= LABELS,
        )


@click.command()
@takes(WebhooksOptions)
def webhooks(given: WebhooksOptions) -> None:
    """Print the configurations of an operator's webhooks, to apply them by hand.

    An operator that runs with --webhooks keeps its configurations by itself. If you
    apply all manifests yourself, apply these configurations, and run the operator with
    --webhook-unmanaged, --webhook-cert and --webhook-key.

    \b
      fnop webhooks operator.py --service prod/claims --ca ca.crt | kubectl apply -f -
      fnop webhooks operator.py --service prod/claims --cert-manager
      fnop webhooks operator.py --kube-version 1.26

    Each option has a variable: FNOP_WEBHOOKS_SERVICE for --service.

    Exit status: 0 when printed; 2 for a wrong call, or an operator without admission
    handlers, or whose kinds are not known.
    """
    try:
        settings = given.selection.settings(given.name)
        bundle = {"caBundle": bundle_of(given.ca)} if given.ca else {}
    except ValueError as problem:
        fail(str(problem), EXIT_USAGE)
    program = program_of(
        given.paths, given.module, settings, "fnop webhooks", broken=EXIT_USAGE
    )
    settings = told_settings(program.handlers, settings, (), warn)
    if not given.ca and not given.cert_manager:
        warn(
            "no authority is named, so the API server takes a certificate of a public "
            "one alone; name it with --ca, or have it put in with --cert-manager"
        )
    about = given.registration(settings, bundle)
    if not given.has_conditions:
        for name in _conditional_handlers(program):
            warn(
                f"the match conditions of {name} are left out: before Kubernetes 1.27 "
                "it is asked about more than it says"
            )
    echo_yaml(dump_yaml(_manifests(program, given, about)))


def _manifests(
    program: Program, given: WebhooksOptions, about: Registration
) -> list[dict[str, Any]]:
    from fnop.adapters.definitions.problems import DefinitionProblem
    from fnop.adapters.generate.webhook_manifests import (
        WebhooksProblem,
        catalogue_for,
        manifests_for,
    )
    from fnop.interpreters.simulation.scenario import ApplyProblem

    try:
        catalogue = catalogue_for(program, given.paths, given.module, given.crds)
        return manifests_for(
            program,
            catalogue,
            about,
            cert_manager=given.cert_manager,
            conditions=given.has_conditions,
        )
    except (WebhooksProblem, ManifestProblem, DefinitionProblem) as problem:
        fail(str(problem), EXIT_USAGE)
    except ApplyProblem as problem:
        fail(f"{problem} (as --crd)", EXIT_USAGE)


def _conditional_handlers(program: Program) -> list[str]:
    """The handlers with match conditions by the author."""
    return [
        each.id
        for each in program.handlers
        if each.webhook is not None and each.webhook.match_conditions
    ]
