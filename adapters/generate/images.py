"""References of container images, as container runtimes parse them."""

from __future__ import annotations

import re

__all__ = ["is_image"]

# The grammar of references in the distribution specification: a registry, a path in
# lower case, a tag, a digest.  The first part is the registry if it has a dot or a
# port, or is localhost. Otherwise it belongs to the path.
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PORT = r":[0-9]+"
_HOST = (
    rf"(?:localhost(?:{_PORT})?|{_LABEL}(?:\.{_LABEL})+(?:{_PORT})?"
    rf"|{_LABEL}{_PORT}|\[[a-fA-F0-9:]+\](?:{_PORT})?)"
)
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST = r"[a-zA-Z][a-zA-Z0-9]*(?:[+._-][a-zA-Z][a-zA-Z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::{_TAG})?(?:@{_DIGEST})?"
)
_NAME_LENGTH_MAX = 255
# It would be read as the id of an image.
_ID = re.compile(r"[a-f0-9]{64}")


def is_image(text: str) -> bool:
    """Whether a runtime can parse the reference of an image.

    >>> is_image("registry.example.com:5000/team/db:1.2.0"), is_image("db")
    (True, True)
    >>> [each for each in ("", "two words", "Upper/case", "db:") if is_image(each)]
    []
    """
    found = _IMAGE.fullmatch(text)
    if found is None or _ID.fullmatch(text):
        return False
    return len(found["name"]) <= _NAME_LENGTH_MAX
