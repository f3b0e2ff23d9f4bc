"""The command `fnop olm`: a bundle for the Operator Lifecycle Manager."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fnop.adapters.cli.rbac import study_options, study_with, wishes_of
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.generate.images import is_image

if TYPE_CHECKING:
    from fnop.adapters.generate.olm import About

__all__ = ["olm"]

EXIT_BROKEN = 1
_PERSON = re.compile(r"\s*([^<]+?)\s*<([^<>]+)>\s*")
_NAMES_OF_SCOPE = ("namespace", "all_namespaces")


def people(
    ctx: click.Context, param: click.Parameter, value: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Names and addresses.

    >>> people(None, None, ["Ann Lee <ann@example.com>"])
    (('Ann Lee', 'ann@example.com'),)
    """
    found = [_PERSON.fullmatch(each) for each in value]
    if not all(found):
        raise click.BadParameter("write NAME <EMAIL>", ctx, param)
    return tuple((each[1], each[2]) for each in found if each)


def named(
    ctx: click.Context, param: click.Parameter, value: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Names and URLs.

    >>> named(None, None, ["Docs=https://example.com/docs"])
    (('Docs', 'https://example.com/docs'),)
    """
    found = [each.partition("=") for each in value]
    if not all(name and url for name, _, url in found):
        raise click.BadParameter("write NAME=URL", ctx, param)
    return tuple((name, url) for name, _, url in found)


def an_image(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> str | None:
    """A reference of an image.

    >>> an_image(None, None, "registry.example.com/db:1.2.0")
    'registry.example.com/db:1.2.0'
    """
    if value is None or is_image(value):
        return value
    raise click.BadParameter(
        f"{value!r} is no image; write [REGISTRY/]PATH[:TAG], the path in lower case",
        ctx,
        param,
    )


@click.command()
@study_options(without=_NAMES_OF_SCOPE)
@click.option("--version", metavar="X.Y.Z", help="The version of the operator.")
@click.option(
    "--image",
    callback=an_image,
    metavar="IMAGE",
    help="The operator's image; by default PACKAGE:VERSION.",
)
@click.option(
    "--package",
    metavar="NAME",
    help="The name of all its versions; by default that of the account.",
)
@click.option(
    "--channel",
    "channels",
    multiple=True,
    default=("stable",),
    show_default=True,
    metavar="NAME",
    help="A channel of updates; the first is the default one.",
)
@click.option(
    "--own-namespace",
    is_flag=True,
    help="It serves the namespace that its OperatorGroup names, and not the cluster.",
)
@click.option("--display-name", default="", metavar="TEXT", help="Its name for people.")
@click.option(
    "--description",
    default="",
    metavar="TEXT",
    help="What it does, in Markdown; by default the docstring of its file.",
)
@click.option("--provider", default="", metavar="NAME", help="Who provides it.")
@click.option("--provider-url", default="", metavar="URL", help="The provider's site.")
@click.option(
    "--maintainer",
    "maintainers",
    multiple=True,
    callback=people,
    metavar="'NAME <EMAIL>'",
    help="Who maintains it; repeat it for several.",
)
@click.option(
    "--link", "links", multiple=True, callback=named, metavar="NAME=URL", help="A page."
)
@click.option("--keyword", "keywords", multiple=True, metavar="WORD", help="A keyword.")
@click.option(
    "--category", "categories", multiple=True, metavar="NAME", help="Such as Database."
)
@click.option(
    "--capabilities",
    default="Basic Install",
    show_default=True,
    metavar="LEVEL",
    help="The level of capabilities, as OperatorHub.io names them.",
)
@click.option(
    "--maturity", default="alpha", show_default=True, metavar="TEXT", help="Maturity."
)
@click.option(
    "--replaces", default="", metavar="NAME", help="The version before: db.v1.1.0."
)
@click.option(
    "--min-kube-version",
    default="1.20.0",
    show_default=True,
    metavar="X.Y.Z",
    help="The oldest Kubernetes that it runs on.",
)
@click.option(
    "--icon",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="An icon: .svg, .png, .jpeg or .gif.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False),
    default="bundle",
    show_default=True,
    metavar="DIR",
    help="Where the bundle is written.",
)
@click.option(
    "--validate",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Judge the bundle in DIR, and make none.",
)
def olm(paths: Sequence[str], validate: str | None, **options: Any) -> None:
    """Make a bundle of an operator for the Operator Lifecycle Manager (OLM).

    Its rights are those that `fnop rbac` finds, its kinds those of --crd, its examples
    those of --object, or of the files beside the operator. The bundle is judged by the
    rules that operator-sdk's validator has.

    \b
      fnop olm operator.py --version 1.2.0 --image registry.example.com/db:1.2.0
      docker build -f bundle/bundle.Dockerfile bundle
      fnop olm --validate bundle/

    Each option has a variable: FNOP_OLM_VERSION for --version.

    Exit status: 0 when the bundle breaks no rule; 1 when it does; 2 for a wrong call,
    or an operator of which no bundle can be made. Warnings are what catalogues ask for.
    """
    if validate is not None:
        sys.exit(_judged(_files_in(Path(validate)), validate))
    if paths and not options["version"]:
        raise click.UsageError("--version is missing")
    options["namespace"] = ("default",) if options["own_namespace"] else ()
    options["all_namespaces"] = False
    wishes = wishes_of(paths, options, "fnop olm")
    from fnop.adapters.generate.olm import BundleProblem, made

    study = study_with(wishes, quiet=options["quiet"])
    try:
        files = made(study, wishes, _about_package(paths, wishes.account.name, options))
    except BundleProblem as problem:
        fail(str(problem), EXIT_USAGE)
    _write(Path(options["output"]), files)
    sys.exit(_judged(files, options["output"]))


def _about_package(
    paths: Sequence[str], account: str, options: dict[str, Any]
) -> About:
    from fnop.adapters.common.loading import module_of_file
    from fnop.adapters.generate.olm import About, icon_of

    package = options["package"] or account
    image = options["image"] or f"{package}:{options['version']}"
    if not options["image"]:
        warn(f"the image is taken to be {image}; give --image")
    description = options["description"] or module_of_file(paths[0]).__doc__ or ""
    return About(
        package,
        options["version"],
        image,
        tuple(options["channels"]),
        options["display_name"],
        description.strip(),
        options["provider"],
        options["provider_url"],
        options["maintainers"],
        options["links"],
        options["keywords"],
        options["categories"],
        options["capabilities"],
        options["maturity"],
        options["replaces"],
        options["min_kube_version"],
        icon_of(Path(options["icon"])) if options["icon"] else None,
    )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        except OSError as problem:
            fail(f"cannot write {file}: {problem.strerror}", EXIT_USAGE)


def _files_in(folder: Path) -> dict[str, str]:
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            try:
                found[file.relative_to(folder).as_posix()] = file.read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                fail(f"{file} cannot be read as text", EXIT_USAGE)
    return found


def _judged(files: Mapping[str, str], folder: str) -> int:
    from fnop.adapters.generate.olm_rules import RULES, bundle_of, judged

    findings = judged(bundle_of(files))
    for each in findings:
        severity = "error" if each.is_error else "warning"
        echo(f"{severity}: {each.sentence} ({each.rule})")
    errors = sum(each.is_error for each in findings)
    if errors:
        return EXIT_BROKEN
    echo(f"{folder} keeps the {sum(rule.is_error for rule in RULES)} rules for bundles")
    return 0
