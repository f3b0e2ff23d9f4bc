"""Redaction of secrets in recordings: keyed tokens stand in their place.

The place of a value decides whether it is a secret: the data of Secrets, fields with
names such as `password`, and the fields that a user lists. A copy of such a value
elsewhere, in clear text or encoded, is replaced only if the value is long and random
enough (`is_telling`). A Secret may hold `default`, or one letter. Names, kinds, uids,
finalizers and the keys of mappings are never changed.

Equal values get equal tokens, and no one can read them without the key. The digests
that the core computes from redacted objects are replaced by digests of the recorded
content, because a replay computes those.
"""

from __future__ import annotations

from fnop.interpreters.recording.identities.tokens import MARK, TOKEN
from fnop.interpreters.recording.redaction.copies import Substitutions
from fnop.interpreters.recording.redaction.digests import Digests
from fnop.interpreters.recording.redaction.forms import (
    TOKEN_LENGTH,
    drawn_forms,
    escapes,
    forms,
    has_token,
    unescaped,
)
from fnop.interpreters.recording.redaction.places import (
    is_secret_kind,
    is_sensitive_name,
)
from fnop.interpreters.recording.redaction.redactor import Draft, Redaction
from fnop.interpreters.recording.redaction.telling import (
    BITS_MIN,
    LENGTH_MIN,
    is_telling,
)
from fnop.interpreters.recording.redaction.words import (
    rewritten,
    words_of,
    words_rewritten,
)

__all__ = [
    "BITS_MIN",
    "LENGTH_MIN",
    "MARK",
    "TOKEN",
    "TOKEN_LENGTH",
    "Digests",
    "Draft",
    "Redaction",
    "Substitutions",
    "drawn_forms",
    "escapes",
    "forms",
    "has_token",
    "is_secret_kind",
    "is_sensitive_name",
    "is_telling",
    "rewritten",
    "unescaped",
    "words_of",
    "words_rewritten",
]
