"""Whether a release may be made: version, tag, changelog, addresses.

python -m tests.package.ready TAG
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import fnop
from tests.simulations import ROOT

# The names of https://packaging.python.org/en/latest/specifications/well-known-project-urls/
ADDRESSES = ("Repository", "Documentation", "Changelog", "Issues")


def obstacles(
    version: str,
    tag: str,
    project: Mapping[str, Any],
    changelog: str,
    changes: Collection[str],
    readme: str,
) -> Iterator[str]:
    """The reasons not to release, each with the file to change."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"fnop/__init__.py: {version} is not the version of a release"
    if tag != f"v{version}":
        yield f"the tag {tag} is not v{version}, the version in fnop/__init__.py"
    heading = rf"(?m)^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(heading, changelog):
        yield f"CHANGELOG.md: no section `## {version} (YYYY-MM-DD)`: make changelog"
    for name in sorted(changes):
        yield f"changes/{name}: not in the changelog yet: make changelog"
    urls = project.get("urls", {})
    for name in ADDRESSES:
        if not str(urls.get(name, "")).startswith("https://"):
            yield f"pyproject.toml: [project.urls] has no address of {name}"
    # PyPI shows the README outside of the repository.
    relative = re.findall(r"\]\((?!\w+:|#)([^)\s]+)", readme)
    if relative:
        links = f"relative links ({len(relative)}), such as {relative[0]}"
        remedy = "write the address of the repository before them"
        yield f"README.md: {links}, are dead on PyPI: {remedy}"


def main(tag: str) -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    changes = {each.name for each in (ROOT / "changes").iterdir()} - {"README.md"}
    readme = (ROOT / "README.md").read_text("utf-8")
    found = [*obstacles(fnop.__version__, tag, project, changelog, changes, readme)]
    print("\n".join(found) or f"{tag} may be released")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else f"v{fnop.__version__}"))
