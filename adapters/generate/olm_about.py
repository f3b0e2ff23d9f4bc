"""The facts about a bundle that only its author knows, and the mistakes in them.

`operator-sdk bundle validate` judges the bundle. These are the mistakes in fnop's own
options, so that their author reads of them at once, and by the names of the options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from fnop.adapters.generate.images import is_image

__all__ = ["About", "BundleProblem", "Finding", "icon_of", "judged"]

_MEDIA_TYPES = frozenset(("image/gif", "image/jpeg", "image/png", "image/svg+xml"))
_CAPABILITIES = (
    *("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights"),
    "Auto Pilot",
)
# https://semver.org: the suggested expression.
_NUMBER = r"(0|[1-9]\d*)"
_PRE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE}(\.{_PRE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_EMAIL = re.compile(r"[^@\s<>]+@[^@\s<>]+")


class BundleProblem(Exception):
    """No bundle can be made; the text is one sentence with the remedy."""


class About(Struct, frozen=True):
    """The facts that only the author knows.

    `package` is the common name of all versions of the operator. `icon` is a media type
    and the bytes of an image; `maintainers` are names and addresses, `links` names and
    URLs.
    """

    package: str
    version: str
    image: str
    channels: tuple[str, ...] = ("stable",)
    display: str = ""
    description: str = ""
    provider: str = ""
    provider_url: str = ""
    maintainers: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    keywords: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    capabilities: str = "Basic Install"
    maturity: str = "alpha"
    replaces: str = ""
    min_kube_version: str = "1.20.0"
    icon: tuple[str, bytes] | None = None

    @property
    def name(self) -> str:
        """The name of this version, such as `db.v1.2.0`."""
        return f"{self.package}.v{self.version}"


def icon_of(file: Path) -> tuple[str, bytes]:
    """The media type and the bytes of an image. Raises `BundleProblem`."""
    suffix = file.suffix.removeprefix(".").lower()
    names = {"svg": "svg+xml", "jpg": "jpeg"}
    media_type = f"image/{names.get(suffix, suffix)}"
    if media_type not in _MEDIA_TYPES:
        raise BundleProblem(
            f"{file} is not an image that OLM shows; give a .svg, .png, .jpeg or .gif"
        )
    return media_type, file.read_bytes()


class Finding(Struct, frozen=True):
    """A sentence about a fact; with an error, OLM would refuse the bundle."""

    sentence: str
    is_error: bool


def judged(about: About) -> list[Finding]:
    """The findings about the facts, errors first.

    >>> judged(About("db", "1.2", "db:1.2"))[0].sentence
    "--version is '1.2', and should be a version such as 1.2.3"
    """
    errors = [Finding(each, is_error=True) for each in _errors(about)]
    return errors + [Finding(each, is_error=False) for each in _warnings(about)]


def _errors(about: About) -> Iterator[str]:
    """The mistakes that OLM and its registry refuse."""
    if not _LABEL.fullmatch(about.package):
        yield f"--package is {about.package!r}, which is not a name of a Deployment"
    if not _SEMVER.fullmatch(about.version) or about.version == "0.0.0":
        yield f"--version is {about.version!r}, and should be a version such as 1.2.3"
    if about.replaces == about.name:
        yield f"--replaces: {about.name} replaces itself"
    elif about.replaces and not _is_version_name(about.replaces):
        yield f"--replaces is {about.replaces!r}, and should look like operator.v1.2.3"
    if not is_image(about.image):
        yield f"--image is {about.image!r}, which is no reference of an image"
    for each in about.channels:
        if not each or "," in each:
            yield f"--channel is {each!r}; give one name, and repeat it for several"
    if about.min_kube_version and not _SEMVER.fullmatch(about.min_kube_version):
        found = about.min_kube_version
        yield f"--min-kube-version is {found!r}, and should be such as 1.25.0"


def _is_version_name(name: str) -> bool:
    version = name.partition(".")[2].removeprefix("v")
    return _SEMVER.fullmatch(version) is not None


def _warnings(about: About) -> Iterator[str]:
    """The facts that a catalogue such as OperatorHub.io asks for."""
    if not about.provider:
        yield "the provider is missing; give it with --provider"
    if not about.description:
        yield "the description is missing; give it with --description"
    if not about.maintainers:
        yield "the maintainers are missing; give --maintainer 'NAME <EMAIL>'"
    for name, email in about.maintainers:
        if not _EMAIL.fullmatch(email):
            yield f"--maintainer: {name!r} needs an email address, not {email!r}"
    for name, url in about.links:
        parts = urlsplit(url)
        if not parts.scheme or not parts.netloc:
            yield f"--link: {name!r} needs a URL, not {url!r}"
    if about.icon is None or not about.icon[1]:
        yield "the icon is missing; give it with --icon"
    if about.capabilities not in _CAPABILITIES:
        names = ", ".join(_CAPABILITIES)
        found = about.capabilities
        yield f"there is no capability level {found!r}; choose from {names}"
