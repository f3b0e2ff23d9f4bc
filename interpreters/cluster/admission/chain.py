"""The webhooks that review a write, one after the other: what they change or refuse.

The order follows the dispatchers in k8s.io/apiserver/pkg/admission/plugin/webhook.
First come all mutating webhooks, and then again those that request it after a change.
The validating webhooks come when the object is as it would be stored.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import orjson
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.admission.patches import patched_by
from fnop.interpreters.cluster.admission.questions import Ask, Question
from fnop.interpreters.cluster.admission.reviews import (
    Uncalled,
    Verdict,
    request_of,
    review_of,
    verdict_of,
)
from fnop.interpreters.cluster.admission.webhooks import (
    MUTATING,
    VALIDATING,
    Beside,
    Webhook,
    Write,
    kind_for,
    webhooks,
)
from fnop.interpreters.cluster.kinds.conversion import renamed, served, to_storage
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.schema.cel import condition
from fnop.interpreters.cluster.storage.store import Cluster, fresh_uid
from fnop.interpreters.cluster.values.objects import Object, Resource, same
from fnop.interpreters.cluster.values.status import (
    Refusal,
    bad_request,
    forbidden,
    internal,
    quoted,
)

__all__ = ["Read", "Reviewers"]

# Builds an object of a kind, with its defaults, from the JSON value after a patch.
Read = Callable[[Kind, Any], Object]
# The side effects that a webhook may have in a dry run.
HARMLESS = ("None", "NoneOnDryRun")


class Reviewers(Struct, frozen=True):
    """The webhooks of a cluster, the function that asks them, and their warnings."""

    cluster: Cluster
    ask: Ask
    beside: Beside
    warnings: list[str]

    @property
    def are_mutating(self) -> bool:
        """Whether any webhook could change a write."""
        return bool(self._webhooks(MUTATING))

    @property
    def are_validating(self) -> bool:
        """Whether any webhook could refuse a write at its end."""
        return bool(self._webhooks(VALIDATING))

    def _webhooks(self, resource: Resource) -> tuple[Webhook, ...]:
        return webhooks(self.cluster, resource, self.beside)

    def mutated(self, write: Write, read: Read) -> Object | None:
        """The new object after the mutating webhooks.

        A webhook with the policy IfNeeded is asked once more if a later one has changed
        the object. Raises `Refusal` if one denies the write.
        """
        due: set[int] = set()
        called: set[int] = set()
        is_changed = False
        for again in (False, True):
            for number, webhook in enumerate(self._webhooks(MUTATING)):
                kind = self._kind(webhook, write)
                if kind is None or (again and number not in due):
                    continue
                after = self._object_after_webhook(
                    webhook, kind, write, read, again=again
                )
                if not same(after, write.object):
                    is_changed = True
                    due |= called
                    called.clear()
                write = replace(write, object=after)
                if webhook.spec.get("reinvocationPolicy") == "IfNeeded":
                    called.add(number)
            if not is_changed:
                break
        return write.object

    def check(self, write: Write) -> None:
        """Ask all validating webhooks; raise the `Refusal` of the first that denies."""
        asked = [
            (webhook, kind)
            for webhook in self._webhooks(VALIDATING)
            if (kind := self._kind(webhook, write)) is not None
        ]
        refusals: list[Refusal] = []
        for webhook, kind in asked:
            try:
                self._verdict(webhook, kind, write, mutating=False)
            except Refusal as refusal:
                refusals.append(refusal)
        if refusals:
            raise refusals[0]

    # ------------------------------------------------------------------ one webhook

    def _kind(self, webhook: Webhook, write: Write) -> Kind | None:
        """The kind in whose version a webhook is asked, or None (ShouldCallHook)."""
        kind = kind_for(self.cluster, webhook, write)
        conditions = webhook.spec.get("matchConditions") or ()
        if kind is None or not conditions:
            return kind
        request = self._request(webhook, kind, write, "")
        errors = []
        for each in conditions:
            result = condition(each["expression"], request)
            if result is False:
                return None  # regardless of the other conditions
            if result is not True:
                errors.append(
                    f"expression '{each['expression']}' resulted in error: {result}"
                )
        if not errors:
            return kind
        if webhook.is_ignorable:
            return None
        why = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise forbidden(write.kind.group, write.kind.plural, write.name, why)

    def _request(
        self, webhook: Webhook, kind: Kind, write: Write, stage: str
    ) -> dict[str, Any]:
        new, old = (in_version(write, obj, kind) for obj in (write.object, write.old))
        request = request_of(write, kind, new, old)
        # Nothing is random: a question that is asked again is the same.
        who = f"{'/'.join(webhook.configuration)}/{webhook.name}/{stage}"
        content = blake2b(orjson.dumps(request), digest_size=16).hexdigest()
        seed = f"{self.cluster.seed}/{who}/{content}"
        return {"uid": fresh_uid(replace(self.cluster, seed=seed)), **request}

    def _verdict(
        self,
        webhook: Webhook,
        kind: Kind,
        write: Write,
        *,
        mutating: bool,
        again: bool = False,
    ) -> Verdict | None:
        """The verdict of a webhook that allows; None if it failed and may fail."""
        name = quoted(webhook.name)
        if write.dry_run and webhook.spec.get("sideEffects") not in HARMLESS:
            raise bad_request(f"admission webhook {name} does not support dry run")
        request = self._request(webhook, kind, write, "again" if again else "")
        review = review_of(webhook, request)
        question = Question(
            webhook.configuration,
            webhook.name,
            webhook.client,
            review,
            webhook.spec.get("timeoutSeconds", 10),
        )
        try:
            verdict = verdict_of(webhook, review, self.ask(question), mutating=mutating)
        except Uncalled as problem:
            if webhook.is_ignorable:
                return None
            raise internal(f"failed calling webhook {name}: {problem}") from None
        self.warnings.extend(filter(None, verdict.warnings))
        if verdict.denial is not None:
            raise verdict.denial
        return verdict

    def _object_after_webhook(
        self, webhook: Webhook, kind: Kind, write: Write, read: Read, *, again: bool
    ) -> Object | None:
        """The new object after the patch of one webhook."""
        verdict = self._verdict(webhook, kind, write, mutating=True, again=again)
        if verdict is None or not verdict.patch:
            return write.object
        after = patched_by(
            webhook.name, verdict.patch, in_version(write, write.object, kind)
        )
        if after is None:
            return write.object
        return in_version(write, read(kind, after), write.kind, back=kind)


def in_version(
    write: Write, obj: Object | None, kind: Kind, back: Kind | None = None
) -> Object | None:
    """An object of a write in the version of an equivalent kind, or `back` from it.

    Versions of a custom kind differ by name (the conversion None); nothing is pruned.
    """
    own = back or write.kind
    if obj is None or own is kind or write.form is not None:
        return obj
    if kind.custom:
        return renamed(kind, obj)
    return served(kind, to_storage(own, obj))
