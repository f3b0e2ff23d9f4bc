"""The command `fnop olm`: a bundle for the Operator Lifecycle Manager."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fnop.adapters.cli.option_fields import option, takes
from fnop.adapters.cli.rbac import StudyOptions, study_with
from fnop.adapters.common.endings import EXIT_USAGE, fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.generate.images import is_image

if TYPE_CHECKING:
    from fnop.adapters.generate.olm_about import About

__all__ = ["olm"]

EXIT_BROKEN = 1
_PERSON = re.compile(r"\s*([^<]+?)\s*<([^<>]+)>\s*")


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
        f"{value!r} is not an image; write [REGISTRY/]PATH[:TAG], the path in "
        "lower case",
        ctx,
        param,
    )


@dataclass(frozen=True, kw_only=True)
class OlmOptions:
    """The options of `fnop olm`."""

    study: StudyOptions
    version: str | None = option(
        "--version", metavar="X.Y.Z", help="The version of the operator."
    )
    image: str | None = option(
        "--image",
        callback=an_image,
        metavar="IMAGE",
        help="The operator's image; by default PACKAGE:VERSION.",
    )
    package: str | None = option(
        "--package",
        metavar="NAME",
        help="The name of the package, the same for all versions; by default the name "
        "of the account.",
    )
    channels: tuple[str, ...] = option(
        "--channel",
        multiple=True,
        default=("stable",),
        show_default=True,
        metavar="NAME",
        help="A channel of updates; the first is the default one.",
    )
    own_namespace: bool = option(
        "--own-namespace",
        is_flag=True,
        help="The operator serves the namespace that its OperatorGroup names, and not "
        "the whole cluster.",
    )
    display_name: str = option(
        "--display-name", default="", metavar="TEXT", help="The name to display."
    )
    description: str = option(
        "--description",
        default="",
        metavar="TEXT",
        help="A description in Markdown; by default the docstring of the operator's "
        "file.",
    )
    provider: str = option(
        "--provider", default="", metavar="NAME", help="The provider's name."
    )
    provider_url: str = option(
        "--provider-url", default="", metavar="URL", help="The provider's site."
    )
    maintainers: tuple[tuple[str, str], ...] = option(
        "--maintainer",
        multiple=True,
        callback=people,
        metavar="'NAME <EMAIL>'",
        help="A maintainer; repeat the option for several.",
    )
    links: tuple[tuple[str, str], ...] = option(
        "--link",
        multiple=True,
        callback=named,
        metavar="NAME=URL",
        help="A link to a page about the operator.",
    )
    keywords: tuple[str, ...] = option(
        "--keyword",
        multiple=True,
        metavar="WORD",
        help="A keyword, by which users find the operator.",
    )
    categories: tuple[str, ...] = option(
        "--category",
        multiple=True,
        metavar="NAME",
        help="A category, such as Database.",
    )
    capabilities: str = option(
        "--capabilities",
        default="Basic Install",
        show_default=True,
        metavar="LEVEL",
        help="The level of capabilities, as OperatorHub.io names them.",
    )
    maturity: str = option(
        "--maturity",
        default="alpha",
        show_default=True,
        metavar="TEXT",
        help="The maturity of this version, as OLM names it.",
    )
    replaces: str = option(
        "--replaces", default="", metavar="NAME", help="The version before: db.v1.1.0."
    )
    min_kube_version: str = option(
        "--min-kube-version",
        default="1.20.0",
        show_default=True,
        metavar="X.Y.Z",
        help="The oldest version of Kubernetes on which the operator runs.",
    )
    icon: str | None = option(
        "--icon",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="An icon: .svg, .png, .jpeg or .gif.",
    )
    output: str = option(
        "--output",
        type=click.Path(file_okay=False),
        default="bundle",
        show_default=True,
        metavar="DIR",
        help="Where the bundle is written.",
    )

    def __post_init__(self) -> None:
        if self.study.paths and not self.version:
            raise click.UsageError("--version is missing")

    def about(self, account: str) -> About:
        """The facts that only the author knows; others are the usual ones."""
        from fnop.adapters.common.loading import module_of_file
        from fnop.adapters.generate.olm_about import About, icon_of

        package, version = self.package or account, self.version or ""
        image = self.image or f"{package}:{version}"
        if not self.image:
            warn(f"the image is taken to be {image}; give --image")
        usual = module_of_file(self.study.paths[0]).__doc__ or ""
        return About(
            package,
            version,
            image,
            self.channels,
            self.display_name,
            (self.description or usual).strip(),
            self.provider,
            self.provider_url,
            self.maintainers,
            self.links,
            self.keywords,
            self.categories,
            self.capabilities,
            self.maturity,
            self.replaces,
            self.min_kube_version,
            icon_of(Path(self.icon)) if self.icon else None,
        )


@click.command()
@takes(OlmOptions)
def olm(given: OlmOptions) -> None:
    """Make a bundle of an operator for the Operator Lifecycle Manager (OLM).

    The bundle has the rights that `fnop rbac` finds, the kinds of --crd, and the
    objects of --object as examples. Without --crd and --object, fnop reads the files
    next to the operator. fnop reports mistakes in these options; `operator-sdk bundle
    validate` judges the bundle.

    \b
      fnop olm operator.py --version 1.2.0 --image registry.example.com/db:1.2.0
      docker build -f bundle/bundle.Dockerfile bundle
      operator-sdk bundle validate bundle

    Each option has a variable: FNOP_OLM_VERSION for --version.

    Exit status: 0 when the bundle is made; 1 when OLM would refuse it; 2 for a wrong
    call, or an operator that cannot be bundled. Warnings name facts that
    catalogues such as OperatorHub.io ask for. They do not change the exit status.
    """
    study = given.study
    namespaces = ("default",) if given.own_namespace else None
    wishes = study.wishes("fnop olm", study.account(), namespaces)
    from fnop.adapters.generate.olm import made
    from fnop.adapters.generate.olm_about import BundleProblem

    found = study_with(wishes, quiet=study.quiet)
    try:
        about = given.about(wishes.account.name)
        files = made(found, wishes, about)
    except BundleProblem as problem:
        fail(str(problem), EXIT_USAGE)
    _write(Path(given.output), files)
    sys.exit(_judge(about, given.output))


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        except OSError as problem:
            fail(f"cannot write {file}: {problem.strerror}", EXIT_USAGE)


def _judge(about: About, folder: str) -> int:
    from fnop.adapters.generate.olm_about import judged

    findings = judged(about)
    for each in findings:
        echo(f"{'error' if each.is_error else 'warning'}: {each.sentence}")
    if any(each.is_error for each in findings):
        return EXIT_BROKEN
    echo(f"{folder} is made; to judge it: operator-sdk bundle validate {folder}")
    return 0
