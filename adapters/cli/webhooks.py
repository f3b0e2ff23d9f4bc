"""The command `fnop webhooks`: the configurations of an operator's webhooks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from fnop.adapters.cli.options import files, shared
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
            f"{value!r} is no version of Kubernetes; write 1.30", ctx, param
        )
    return int(found[1]), int(found[2])


@click.command()
@files
@shared("module")
@click.option(
    "--service",
    callback=a_service,
    metavar="[NAMESPACE/]NAME[:PORT]",
    help="The Service in front of the operator; by default that of its account's name.",
)
@click.option(
    "--url",
    callback=a_url,
    metavar="URL",
    help="The operator's address, in place of a Service: https://HOST:PORT/PATH.",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The certificates of the authority that signs the operator's, as PEM.",
)
@click.option(
    "--cert-manager",
    is_flag=True,
    help="Have cert-manager make the certificate, and put its authority in.",
)
@shared("webhook_name")
@click.option(
    "--kube-version",
    callback=a_version,
    metavar="X.Y",
    help="The oldest Kubernetes that takes them; match conditions need 1.27.",
)
@click.option(
    "--service-account",
    metavar="[NAMESPACE/]NAME",
    help="The account that its pod runs under; by default fnop-operator, in the "
    "namespace of that name, or the operator's --name.",
)
@shared("name")
@shared("namespace", ", or those of a pattern; repeat it for several")
@shared("all_namespaces", " (as without -n)")
@click.option(
    "-l",
    "--selector",
    default="",
    metavar="LABELS",
    help="Serve only objects with these labels, as in kubectl: app=db,tier!=test.",
)
@shared("crds")
def webhooks(
    paths: Sequence[str],
    module: Sequence[str],
    namespace: Sequence[str],
    all_namespaces: bool,
    crds: Sequence[str],
    cert_manager: bool,
    **options: Any,
) -> None:
    """Print the configurations of an operator's webhooks, to apply them by hand.

    An operator that runs with --webhooks keeps its configurations by itself. These are
    for those who apply all manifests themselves: then run it with
    --webhook-unmanaged, and --webhook-cert and --webhook-key.

    \b
      fnop webhooks operator.py --service prod/claims --ca ca.crt | kubectl apply -f -
      fnop webhooks operator.py --service prod/claims --cert-manager
      fnop webhooks operator.py --kube-version 1.26

    Each option has a variable: FNOP_WEBHOOKS_SERVICE for --service.

    Exit status: 0 when printed; 2 for a wrong call, or an operator without admission
    handlers, or whose kinds are not known.
    """
    if namespace and all_namespaces:
        raise click.UsageError("use either -n/--namespace or -A/--all-namespaces")
    if options["service"] and options["url"]:
        raise click.UsageError("use either --service or --url")
    if options["ca"] and cert_manager:
        raise click.UsageError("use either --ca or --cert-manager")
    try:
        given = Settings(options["name"], tuple(namespace) or None, options["selector"])
        bundle = {"caBundle": bundle_of(options["ca"])} if options["ca"] else {}
    except ValueError as problem:
        fail(str(problem), EXIT_USAGE)
    program = program_of(paths, module, given, "fnop webhooks", broken=EXIT_USAGE)
    settings = told_settings(program.handlers, given, (), warn)
    if not options["ca"] and not cert_manager:
        warn(
            "no authority is named, so the API server takes a certificate of a public "
            "one alone; name it with --ca, or have it put in with --cert-manager"
        )
    about = _registration(settings, bundle, options)
    conditions = options["kube_version"] >= CONDITIONS
    if not conditions:
        for name in _conditional_handlers(program):
            warn(
                f"the match conditions of {name} are left out: before Kubernetes 1.27 "
                "it is asked about more than it says"
            )
    from fnop.adapters.definitions.problems import DefinitionProblem
    from fnop.adapters.generate.webhook_manifests import (
        WebhooksProblem,
        catalogue_for,
        manifests_for,
    )
    from fnop.interpreters.simulation.scenario import ApplyProblem

    try:
        catalogue = catalogue_for(program, paths, module, crds)
        found = manifests_for(
            program, catalogue, about, cert_manager=cert_manager, conditions=conditions
        )
    except (WebhooksProblem, ManifestProblem, DefinitionProblem) as problem:
        fail(str(problem), EXIT_USAGE)
    except ApplyProblem as problem:
        fail(f"{problem} (as --crd)", EXIT_USAGE)
    echo_yaml(dump_yaml(found))


def _registration(
    settings: Settings, bundle: Mapping[str, str], options: Mapping[str, Any]
) -> Registration:
    """The facts in the options: the operator is in the namespace of its Service."""
    from fnop.adapters.generate.rights import account_of

    account = account_of(options["service_account"], settings.operator)
    service = {"namespace": account.namespace, "name": account.name}
    service |= options["service"] or {}
    if not options["service_account"]:
        account = account._replace(namespace=service["namespace"])
    client = {"url": options["url"]} if options["url"] else {"service": service}
    return Registration(
        options["webhook_name"] or settings.domain,
        {**client, **bundle},
        f"system:serviceaccount:{account.namespace}:{account.name}",
        account.namespace,
        settings.namespaces,
        settings.selector,
        settings.marker,
        options["kube_version"] >= LABELS,
    )


def _conditional_handlers(program: Program) -> list[str]:
    """The handlers with match conditions by the author."""
    return [
        each.id
        for each in program.handlers
        if each.webhook is not None and each.webhook.match_conditions
    ]
