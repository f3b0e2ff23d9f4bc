"""The property that secrets stay in Secrets."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Seen,
    Violation,
)
from fnop.interpreters.check.state.records import line_of
from fnop.interpreters.check.state.sites import target_of
from fnop.interpreters.cluster import StoredEvent
from fnop.interpreters.recording.redaction import (
    drawn_forms,
    is_sensitive_name,
    is_telling,
)
from fnop.interpreters.simulation.actions import Action, Apply, Edit

__all__ = ["PROPERTIES", "keeps_secrets"]

_SECRETS = ("", "secrets")
# Keys of Secrets that hold a secret under a generic name: keys of the types
# kubernetes.io/tls, ssh-auth and dockerconfigjson, and usual names of files.
_KEYS = re.compile(
    r"(tls|server|client|ca|tsig)\.key|ssh-privatekey|\.dockerconfigjson|\.dockercfg"
    r"|id_(rsa|dsa|ecdsa|ed25519)|(private|key)\.pem|.*[-_.]?kubeconfig|\.?pgpass|pw|pass"
    r"|(.*[-_.])?(cookie|signing|encryption|session|master)[-_.]?(secret|key)"
    r"|credentials?\.(json|ya?ml|ini|txt)",
    re.IGNORECASE,
)
# A URL with a user and a password, under any key.
_WITH_PASSWORD = re.compile(rb"[a-z][-+.a-z0-9]*://[^/?#\s:@]*:[^/?#\s@]+@")


def keeps_secrets(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The passwords, tokens and keys in Secrets are in no other object, and no log.

    They are recognized by the names of their keys, or because they are made of
    `fnop.random(secret=True)`. A Secret also has a host and a user, which are not
    secret. A value that the user has also written elsewhere is not secret either.
    """
    secrets = _secrets(seen)
    if not secrets:
        return
    for event in seen.events:
        if event.resource == _SECRETS or event.type == "DELETED":
            continue
        leak = _leaked_secret(event, secrets)
        if leak:
            name = target_of(event.resource[1], event.object)
            yield Violation("keeps_secrets", f"{name} shows {leak}")
            return
    journal = seen.trial.journal
    for say in (*(e for _, e in journal.lines), *(e for *_, e in journal.said)):
        leak = _secret_in(line_of(say).encode(), secrets)
        if leak:
            yield Violation("keeps_secrets", f"a line of the log shows {leak}")
            return


def _secrets(seen: Seen) -> Mapping[bytes, str]:
    """The secret values of Secrets, in their visible forms, by name."""
    base = seen.trial.scene.base.cluster.shelves.get(_SECRETS)
    objects = [*base.values()] if base else []
    objects += [each.object for each in seen.events if each.resource == _SECRETS]
    written = orjson.dumps(
        [*map(_content_of_action, seen.trial.scene.script)], default=dict
    )
    drawn = [*_drawn_bytes(seen)]
    found: dict[bytes, str] = {}
    for each in objects:
        for key, text in (each.get("data") or {}).items():
            value = base64.b64decode(text or "")
            is_drawn = any(form in value for form in drawn)
            if (is_drawn or _is_secret(key, value)) and is_telling(value):
                forms = value, _json_spelling(value), text.encode()
                if not any(form in written for form in forms):
                    name = f"{key} of {target_of('secrets', each)}"
                    found |= dict.fromkeys(forms, name)
    return found


def _drawn_bytes(seen: Seen) -> Iterator[bytes]:
    """The random bytes that serve as a secret, in the forms that a value is made of."""
    for raw in seen.trial.state.drawn_secrets:
        forms = raw, *(form.encode() for form, _ in drawn_forms(raw, raw))
        yield from (each for each in forms if len(each) >= _DRAWN_MIN)


# A shorter form may be in a value by chance.
_DRAWN_MIN = 8


def _is_secret(key: str, value: bytes) -> bool:
    """Whether a value of a Secret is a secret: it may also hold a host and a user."""
    is_named = _KEYS.fullmatch(key) or is_sensitive_name(key) is not None
    return bool(is_named or _WITH_PASSWORD.match(value))


def _content_of_action(action: Action) -> Any:
    """The manifest or the changes of a user, unless the object is a Secret."""
    match action:
        case Apply(manifest) if manifest.get("kind") != "Secret":
            return manifest
        case Edit(where, changes) if not where.startswith("secrets/"):
            return changes
        case _:
            return None


def _json_spelling(value: bytes) -> bytes:
    """The spelling of a value in a JSON text; the value itself if it has none."""
    try:
        return orjson.dumps(value.decode())[1:-1]
    except UnicodeDecodeError:
        return value


def _leaked_secret(event: StoredEvent, secrets: Mapping[bytes, str]) -> str:
    """The name of a secret that an object shows, and did not show before."""
    name = _secret_in(orjson.dumps(event.object), secrets)
    if name and event.previous is not None:
        before = orjson.dumps(event.previous)
        return "" if _secret_in(before, secrets) == name else name
    return name


def _secret_in(text: bytes, secrets: Mapping[bytes, str]) -> str:
    return next((name for form, name in secrets.items() if form in text), "")


PROPERTIES = (
    Property(
        keeps_secrets,
        "passwords, tokens and keys of Secrets are nowhere else",
        230,
    ),
)
