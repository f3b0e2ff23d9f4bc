"""Maintain the webhook configurations of an operator: which writes, and when.

Several processes of one operator may maintain a configuration: replicas, and during a
rollout two versions. Each lists itself in an annotation, and the newest one decides on
the webhooks. A listed process may have been killed. A process that doubts it removes it
from the list; if it is alive, it returns to the list. If each has an address of its
own, an address that does not answer is a reason to doubt. The last process that ends
empties the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from fnop.core.admission.configurations import CONFIGURATIONS, Group, persistent
from fnop.core.api.catalogue import Catalogue
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.program.rights import Need, Right, Who
from fnop.core.values.errors import joined
from fnop.effects import Create, Patch, Target
from fnop.effects.structs import replace
from fnop.effects.values import same_json, thaw_json

__all__ = [
    "LOOK_SECONDS",
    "MANAGED_BY",
    "NAMESPACE",
    "OWNER",
    "SERVED_BY",
    "WEBHOOKS",
    "Keeper",
    "Move",
    "farewell",
    "is_kept_by",
    "needs_of_webhooks",
    "secret_of",
    "unreached",
]

# The subject that needs the rights to maintain them.
WEBHOOKS = Who("webhooks", is_handler=False)
MANAGED_BY = "app.kubernetes.io/managed-by"
# The annotations of a maintained configuration: the operator, the namespace that it
# runs in, and its processes.
OWNER = "fnop.dev/operator"
NAMESPACE = "fnop.dev/namespace"
SERVED_BY = "fnop.dev/served-by"
# The time between two looks at a configuration.
LOOK_SECONDS = 3.0
# A living process has returned to the list after this time.
RETURN_SECONDS = 2.5 * LOOK_SECONDS
# fnop waits no longer than this for one whose address does not answer either.
SILENT_SECONDS = 1.5 * LOOK_SECONDS
# A process that returns to the list is doubted again after this time.
DOUBT_SECONDS = 60.0

Manifest: TypeAlias = Mapping[str, Any]
Webhooks: TypeAlias = Sequence[Manifest]


class Written(Struct, frozen=True):
    """Webhooks as they were written, and as the API server has stored them.

    The API server adds defaults, and an older one drops fields that it does not know.
    `uid` is the configuration's uid.
    """

    asked: Webhooks
    stored: Webhooks
    uid: str = ""


class Move(Struct, frozen=True):
    """The next move of a keeper: a request if there is one, and the state after it.

    `problem` is the reason why no webhook leads to this operator. `note` is the reason
    why the webhooks differ from what this process wants. Both are "" if all is well.
    They are as wanted after it if it `agrees`. `mended` describes another client's
    change of the configuration, if the move undoes it. After the `last` move of a
    process that ends, no work remains. The webhooks named in `stays` are still
    registered.
    """

    keeper: Keeper
    effect: Create | Patch | None = None
    problem: str = ""
    note: str = ""
    agrees: bool = True
    mended: str = ""
    last: bool = False
    stays: tuple[str, ...] = ()

    @property
    def writes(self) -> bool:
        """Whether it writes webhooks, and not only its place on the list."""
        match self.effect:
            case Create():
                return True
            case Patch(merge=merge):
                return "webhooks" in merge
            case None:
                return False


class Keeper(Struct, frozen=True):
    """One process of an `operator` that maintains one configuration.

    It runs in a `namespace`, "" if unknown. The id of a newer `process` is greater.
    `doubted` is when it last removed others from the list, and `leaving` is when it did
    so to end (monotonic seconds). `silent` is the newest process that it doubted
    because its address did not answer. If that process has returned, its address is
    only out of reach for this process. It `leads` if the webhooks were its own at its
    last look. It `adopts` a configuration that no operator of fnop has marked, such as
    one that Kopf has left.
    """

    operator: str
    process: str
    role: Role
    namespace: str = ""
    written: Written | None = None
    doubted: float | None = None
    leaving: float | None = None
    silent: str = ""
    leads: bool = False
    adopts: bool = False

    def rival(
        self, wanted: Manifest, stored: Manifest | None, now: float
    ) -> Manifest | None:
        """The client configuration for asking whether a newer process exists.

        None if it leads nowhere else, or to a Service, which is in front of all of
        them.
        """
        if stored is None or self.written is None or self._reason_of_foreign(stored):
            return None
        is_newest = self.process >= max(_listed_processes(stored), default="")
        if is_newest and not self._is_waiting(now, RETURN_SECONDS):
            return None
        own = {each["clientConfig"].get("url") for each in wanted["webhooks"]}
        for each in stored.get("webhooks") or []:
            client: Manifest = each["clientConfig"]
            if client.get("url") and client["url"] not in own:
                return client
        return None

    def look(
        self,
        wanted: Manifest,
        stored: Manifest | None,
        now: float,
        *,
        answers: bool = True,
    ) -> Move:
        """Compare the wanted configuration with the one in the cluster.

        Its rival `answers` unless a request to it failed.
        """
        if answers and self.silent:
            return replace(self, silent="").look(wanted, stored, now)
        webhooks: Webhooks = thaw_json(wanted["webhooks"])
        if stored is None:
            return self._recreate(wanted) if webhooks else Move(self)
        if problem := self._reason_of_foreign(stored):
            return Move(self, problem=problem, agrees=False) if webhooks else Move(self)
        if self.written is None:
            return self._write_first(webhooks, stored, now)
        listed = _listed_processes(stored)
        newest = max(listed, default="")
        if self.process >= newest:
            patience = RETURN_SECONDS if answers else SILENT_SECONDS
            return self._decide_as_newest(
                webhooks, stored, self._is_waiting(now, patience)
            )
        if self._is_as_wanted(self.written, webhooks, stored):
            return self._stay_listed(stored)
        overruled = self._yield_to_stored(webhooks, stored)
        is_news = not answers and newest != self.silent
        if self._is_waiting(now, DOUBT_SECONDS) and not is_news:
            return overruled
        older = (each for each in listed if each < self.process)
        patch = self._patch_of(stored, (*older, self.process))
        keeper = replace(
            overruled.keeper, doubted=now, silent="" if answers else newest
        )
        return replace(overruled, keeper=keeper, effect=patch)

    def _write_first(self, webhooks: Webhooks, stored: Manifest, now: float) -> Move:
        """Write the configuration of a process that has not written any yet."""
        may_return = _listed_processes(stored) or self._is_waiting(now, RETURN_SECONDS)
        if may_return and _are_of_other_kinds(webhooks, stored):
            return self._doubt_others(stored, now, is_asked=bool(webhooks))
        # The list may name killed processes: living ones will return.
        return self._write_webhooks(webhooks, stored, ())

    def _doubt_others(self, stored: Manifest, now: float, *, is_asked: bool) -> Move:
        """The move if processes of another operator may maintain the configuration.

        That is a problem if this operator is to be called, too.

        A rollout changes handlers, and seldom all of their kinds. The listed processes
        may have been killed: living ones return.
        """
        problem = (
            f"{_label_of(stored)} is that of another operator {self.operator!r}, whose "
            "webhooks are about other kinds, so it is left as it is; give one of them "
            "another --name"
        )
        move = Move(self, problem=problem, agrees=False) if is_asked else Move(self)
        if self.doubted is not None:
            return move
        keeper = replace(self, doubted=now)
        return replace(move, keeper=keeper, effect=self._patch_of(stored, ()))

    def _is_waiting(self, now: float, patience: float) -> bool:
        """Whether the processes that it has doubted may still return."""
        return self.doubted is not None and now - self.doubted < patience

    def _recreate(self, wanted: Manifest) -> Move:
        mended = f"somebody has deleted {_label_of(wanted)}; it is there again"
        return Move(
            self, self._creation_of(wanted), mended=mended if self.written else ""
        )

    def _creation_of(self, wanted: Manifest) -> Create:
        metadata = {
            **wanted["metadata"],
            "labels": {MANAGED_BY: "fnop"},
            "annotations": {**self._own_annotations, SERVED_BY: self.process},
        }
        return Create({**wanted, "metadata": metadata})

    def _decide_as_newest(
        self, webhooks: Webhooks, stored: Manifest, waits: bool
    ) -> Move:
        """The move of the newest process, if it waits for no newer one."""
        assert self.written is not None, "it has written before it looks again"
        is_written = same_json(self.written.asked, webhooks)
        if is_written and self._is_as_wanted(self.written, webhooks, stored):
            return self._stay_listed(stored)
        listed = _listed_processes(stored)
        if listed and waits:  # the newer one may be alive; an ending one empties it
            return self._yield_to_stored(webhooks, stored)
        move = self._write_webhooks(webhooks, stored, listed)
        if not (is_written and self.leads):
            return move
        mended = f"somebody has changed {_label_of(stored)}; it is as before"
        return replace(move, mended=mended)

    def _is_as_wanted(
        self, written: Written, webhooks: Webhooks, stored: Manifest
    ) -> bool:
        """Whether the webhooks are in the cluster as wanted."""
        found = stored.get("webhooks") or []
        if OWNER not in _annotations_of(stored):
            return False
        if not same_json(written.asked, webhooks):
            return _is_stored_form(found, webhooks)
        return same_json(
            found, [_with_stored_authority(each, stored) for each in written.stored]
        )

    def _write_webhooks(
        self, webhooks: Webhooks, stored: Manifest, others: Iterable[str]
    ) -> Move:
        found = [_with_stored_authority(each, stored) for each in webhooks]
        return Move(self, self._patch_of(stored, (*others, self.process), found))

    def _stay_listed(self, stored: Manifest) -> Move:
        listed = _listed_processes(stored)
        if self.process in listed:
            return Move(self)
        return Move(self, self._patch_of(stored, (*listed, self.process)))

    def wrote(self, wanted: Manifest, answer: Manifest) -> Keeper:
        """Return the keeper after the API server's answer to a webhooks write."""
        asked, stored = wanted["webhooks"], answer.get("webhooks") or []
        uid = str(answer["metadata"].get("uid") or "")
        written = Written(thaw_json(asked), stored, uid)
        return replace(self, written=written, leads=True)

    def leave(
        self, groups: Iterable[Group], stored: Manifest | None, now: float
    ) -> Move:
        """The move of a process that ends: the last one keeps persistent webhooks."""
        if stored is None or self.written is None or self._reason_of_foreign(stored):
            return Move(self, last=True)
        others = _listed_processes(stored) - {self.process}
        if others and self.leaving is None:
            keeper = replace(self, leaving=now)
            return Move(keeper, self._patch_of(stored, ()), note=self._words_for_wait)
        if others:
            note = (
                f"the webhooks of {_label_of(stored)} stay registered, as other "
                f"processes of the operator {self.operator!r} keep them"
            )
            return Move(self, note=note, last=True)
        if self.leaving is not None and now - self.leaving < RETURN_SECONDS:
            return Move(self, note=self._words_for_wait)
        kept = persistent({**stored, "webhooks": stored.get("webhooks") or []}, groups)
        stays = tuple(str(each["name"]) for each in kept)
        return Move(self, self._patch_of(stored, (), kept), last=True, stays=stays)

    @property
    def _words_for_wait(self) -> str:
        return (
            f"the end waits up to {RETURN_SECONDS:g} s for other processes of the "
            f"operator {self.operator!r} to say that they keep the webhooks; killed "
            "ones do not"
        )

    def clear(self, stored: Manifest | None, now: float) -> Move:
        """The move of a process without admission handlers, which its predecessor had.

        Otherwise their webhooks would be called, and their failure policy would decide.
        The webhooks of other living processes stay.
        """
        if (
            stored is None
            or self._reason_of_foreign(stored)
            or not stored.get("webhooks")
        ):
            return Move(self, last=True)
        listed = _listed_processes(stored)
        if listed and self.leaving is None:
            keeper = replace(self, leaving=now)
            return Move(keeper, self._patch_of(stored, ()))
        if listed:
            return Move(self, last=True)
        if self.leaving is not None and now - self.leaving < RETURN_SECONDS:
            return Move(self)
        return Move(self, self._patch_of(stored, (), ()), last=True)

    def _patch_of(
        self,
        stored: Manifest,
        listed: Iterable[str],
        webhooks: Webhooks | None = None,
    ) -> Patch:
        """A change of the list, and of the webhooks, for this version of the object."""
        found = stored["metadata"]
        annotations = {**self._own_annotations, SERVED_BY: " ".join(sorted({*listed}))}
        metadata: dict[str, Any] = {
            "resourceVersion": found["resourceVersion"],
            "annotations": annotations,
        }
        merge: dict[str, Any] = {"metadata": metadata}
        if webhooks is not None:
            metadata["labels"] = {MANAGED_BY: "fnop"}
            merge["webhooks"] = [*webhooks]
        return Patch(Target(CONFIGURATIONS[self.role].plural, found["name"]), merge)

    @property
    def _own_annotations(self) -> dict[str, str]:
        """The annotations of its configuration that identify its operator."""
        place = {NAMESPACE: self.namespace} if self.namespace else {}
        return {OWNER: self.operator, **place}

    def _reason_of_foreign(self, stored: Manifest) -> str:
        """The reason why a configuration belongs to another operator; "" if not."""
        if is_kept_by(self.operator, stored):
            return self._note_of_elsewhere(stored)
        owner = _annotations_of(stored).get(OWNER)
        uid = stored["metadata"].get("uid")
        if owner is None and self.written is not None and uid == self.written.uid:
            return ""  # another client has edited the operator's own
        if owner is None and self.adopts:
            return ""
        label = _label_of(stored)
        if owner is None:
            return (
                f"{label} is somebody else's (it has no annotation {OWNER}), so it is "
                "left as it is and does not lead to this operator; delete it, give the "
                "configurations another name with --webhook-name, or apply them by "
                "hand with --webhook-unmanaged"
            )
        return (
            f"{label} is that of the operator {owner!r}, so it is left as it is and "
            "does not lead to this one; give the configurations another name with "
            "--webhook-name"
        )

    def _note_of_elsewhere(self, stored: Manifest) -> str:
        """The note that another installation maintains a configuration, else "".

        A process on a developer's machine is a different installation from one in a
        namespace. An empty configuration may be taken over: that installation has
        ended.
        """
        place = _annotations_of(stored).get(NAMESPACE)
        if place in (None, self.namespace) or not stored.get("webhooks"):
            return ""
        return (
            f"{_label_of(stored)} is that of the operator {self.operator!r} in the "
            f"namespace {place}, so it is left as it is and does not lead to this "
            "one; give one of them another --webhook-name, or delete the configuration "
            "if that operator is gone"
        )

    def _yield_to_stored(self, webhooks: Webhooks, stored: Manifest) -> Move:
        """The move of a process whose webhooks differ from those in the cluster.

        A replica may learn about a new authority later than the others: that passes.
        """
        stay = self._stay_listed(stored)
        keeper = replace(stay.keeper, leads=False)
        move = replace(stay, keeper=keeper, agrees=False)
        found = stored.get("webhooks") or []
        if _is_stored_form(found, [*map(_without_authority, webhooks)]):
            return move
        newer = f"a newer process of an operator {self.operator!r}"
        if _is_stored_form(found, [*map(_without_address, webhooks)]):
            note = (
                f"{_label_of(stored)} leads to {newer}, which has another address, so "
                "this one is not asked; give them one address with --webhook-service "
                "or --webhook-url"
            )
        else:
            note = (
                f"{_label_of(stored)} is kept by {newer}, whose webhooks are "
                "different; if that is another operator, give one of them another "
                "--name"
            )
        return replace(move, note=note)


def farewell(unregistered: Iterable[str], stays: Iterable[str]) -> str:
    """A sentence about an ending operator's configurations and webhooks.

    >>> farewell(["ValidatingWebhookConfiguration a.dev"], [])
    'webhooks are unregistered: ValidatingWebhookConfiguration a.dev'
    >>> farewell([], ["b.a.dev"]).partition(":")[0]
    'persistent webhooks stay registered, and their failure policies decide'
    """
    gone, kept = sorted(unregistered), sorted(stays)
    texts = [f"webhooks are unregistered: {joined(gone)}"] if gone else []
    if kept:
        texts.append(
            "persistent webhooks stay registered, and their failure policies decide: "
            f"{joined(kept)}"
        )
    return "; ".join(texts)


def is_kept_by(operator: str, stored: Manifest) -> bool:
    """Whether an operator has written a configuration, by its annotation.

    >>> is_kept_by("a", {"metadata": {"annotations": {"fnop.dev/operator": "a"}}})
    True
    >>> is_kept_by("a", {"metadata": {}})
    False
    """
    return _annotations_of(stored).get(OWNER) == operator


def secret_of(operator: str) -> str:
    """The name of the Secret that shares the webhooks' authority among replicas.

    >>> secret_of("billing")
    'fnop-webhooks-billing'
    """
    return f"fnop-webhooks-{operator}"


def needs_of_webhooks(
    groups: Iterable[Group],
    name: str,
    operator: str,
    namespace: str,
    *,
    reports: Iterable[str | None] = (),
) -> Iterator[Need]:
    """The rights in a namespace to maintain configurations of a name.

    It reads both configurations, as a former handler may have left one. For RBAC, an
    object that is being created has no name yet. The operator `reports` denials as
    Kubernetes Events in these namespaces; None means all.
    """
    who = WEBHOOKS
    roles = {each.role for each in groups}
    for role, kind in CONFIGURATIONS.items() if roles else ():
        for verb in ("get", "patch"):
            yield Need(Right(verb, kind.group, kind.plural, name=name), None, who)
        if role in roles:
            yield Need(Right("create", kind.group, kind.plural), None, who)
    if roles:
        for verb in ("get", "patch"):
            right = Right(verb, "", "secrets", name=secret_of(operator))
            yield Need(right, namespace, who)
        yield Need(Right("create", "", "secrets"), namespace, who)
        # The operator's own user.
        review = Right("create", "authentication.k8s.io", "selfsubjectreviews")
        yield Need(review, None, who)
    for place in reports if roles else ():
        for verb in ("create", "patch"):
            yield Need(Right(verb, "", "events"), place, who)


def unreached(groups: Iterable[Group], catalogue: Catalogue) -> str:
    """A sentence about the handlers that no webhook leads to; "" without any."""
    found: dict[str, bool] = {}
    for group in groups:
        for each in group.handlers:
            assert each.selector is not None, "they are about kinds"
            is_idle = not catalogue.find(each.selector)
            found[each.id] = found.get(each.id, True) and is_idle
    idle = [name for name, is_idle in found.items() if is_idle]
    if not idle:
        return ""
    why = "the API server serves no kind for them; are their definitions missing?"
    if len(idle) == len(found):
        return (
            f"there are admission handlers, and none will be called: {joined(idle)}; "
            f"{why}"
        )
    return f"no webhook leads to the admission handlers {joined(idle)}: {why}"


def _label_of(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _annotations_of(stored: Manifest) -> Mapping[str, Any]:
    return stored["metadata"].get("annotations") or {}


def _listed_processes(stored: Manifest) -> frozenset[str]:
    return frozenset(str(_annotations_of(stored).get(SERVED_BY) or "").split())


def _with_stored_authority(webhook: Manifest, stored: Manifest) -> Manifest:
    """Return a webhook with an authority that another client set (cert-manager).

    A webhook that names an authority itself stays as it is.
    """
    client = webhook["clientConfig"]
    for each in stored.get("webhooks") or []:
        bundle = each["clientConfig"].get("caBundle")
        if each["name"] == webhook["name"] and bundle and "caBundle" not in client:
            return {**webhook, "clientConfig": {**client, "caBundle": bundle}}
    return webhook


def _are_of_other_kinds(webhooks: Webhooks, stored: Manifest) -> bool:
    """Whether webhooks have no kind in common with a configuration's.

    Versions of one operator in a rollout have one Service: these never count.
    """
    there = stored.get("webhooks") or ()
    found = _kinds_in(there)
    return (
        bool(found)
        and found.isdisjoint(_kinds_in(webhooks))
        and _services_in(there).isdisjoint(_services_in(webhooks))
    )


def _services_in(webhooks: Webhooks) -> frozenset[tuple[str, str]]:
    """The namespaces and names of the Services that webhooks lead to."""
    found = (each["clientConfig"].get("service") for each in webhooks)
    return frozenset((each["namespace"], each["name"]) for each in found if each)


def _kinds_in(webhooks: Webhooks) -> frozenset[tuple[str, str]]:
    """The groups and plurals of the kinds of webhooks."""
    return frozenset(
        (group, resource.partition("/")[0])
        for each in webhooks
        for rule in each.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    )


def _without_authority(webhook: Manifest) -> Manifest:
    client = {k: v for k, v in webhook["clientConfig"].items() if k != "caBundle"}
    return {**webhook, "clientConfig": client}


def _without_address(webhook: Manifest) -> Manifest:
    return {key: value for key, value in webhook.items() if key != "clientConfig"}


def _is_stored_form(stored: Any, asked: Any) -> bool:
    """Whether the API server may have stored this after a request for that.

    It adds defaults; before 1.27 it drops match conditions.
    """
    if isinstance(asked, Mapping) and isinstance(stored, Mapping):
        return all(
            _is_stored_form(stored[key], value)
            if key in stored
            else key == "matchConditions"
            for key, value in asked.items()
        )
    if isinstance(asked, (list, tuple)) and isinstance(stored, (list, tuple)):
        pairs = zip(stored, asked, strict=False)
        return len(stored) == len(asked) and all(
            _is_stored_form(*pair) for pair in pairs
        )
    return same_json(stored, asked)
