"""The options of an admission handler that concern its webhook.

The names and values follow `MutatingWebhook` and `ValidatingWebhook` in
admissionregistration.k8s.io/v1, except for Kopf's names, which are shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Literal, get_args

from msgspec import Struct

from fnop.core.api.reviews import OPERATIONS, Operation
from fnop.core.values.cel import fault_of
from fnop.core.values.errors import RegistrationError, joined
from fnop.core.values.manifest_selectors import selector_of
from fnop.core.values.table import NOTHING
from fnop.effects.names import check_subresource, is_label_name
from fnop.effects.values import shown

__all__ = [
    "CONDITIONS",
    "OPERATIONS",
    "SECONDS",
    "TIMEOUT_SECONDS",
    "MatchPolicy",
    "Operation",
    "Webhook",
    "webhook_of",
]

MatchPolicy = Literal["Exact", "Equivalent"]
# The maximum wait of the API server, in whole seconds.
SECONDS = range(1, 31)
# The API server's own default.
TIMEOUT_SECONDS = 10
# The API server accepts this many match conditions for one webhook.
CONDITIONS_MAX = 64
# The names of the conditions that fnop adds.
CONDITIONS = ("not-being-deleted", "not-by-the-operator", "namespace", "field")


class Webhook(Struct, frozen=True):
    """The requests that lead to a handler's call, and the effect of no answer.

    Without `operations` it is called for all operations. Without a `subresource` it is
    called for no subresource ("*" means all, and the object). `timeout` is in seconds.
    The last three are exceptions from the rules that keep a webhook from breaking a
    cluster. With them it is called for objects that are being `deleted`, and for the
    operator's `own_writes`. With `ratcheting` an update is not denied for an error that
    existed before.

    With an `own_name` a handler is registered as Kopf does it, alone. The webhook's
    name begins with that one, its path is the handler's id, and the API server also
    asks about requests that the handler lets through. It asks a webhook that
    `says_harmless` in dry runs, too, whatever its handler says of side effects. Reviews
    come in the first of `review_versions` that the API server knows.
    """

    operations: tuple[str, ...] = ()
    subresource: str | None = None
    persistent: bool = False
    side_effects: bool = False
    ignore_failures: bool = False
    timeout: int = TIMEOUT_SECONDS
    match_policy: MatchPolicy = "Equivalent"
    match_conditions: tuple[tuple[str, str], ...] = ()
    namespace_selector: Mapping[str, Any] = NOTHING
    object_selector: Mapping[str, Any] = NOTHING
    reinvocation: bool = False
    deleted: bool = False
    own_writes: bool = False
    ratcheting: bool = True
    own_name: str = ""
    says_harmless: bool = False
    review_versions: tuple[str, ...] = ("v1",)

    def is_about(self, operation: str, subresource: str) -> bool:
        """Whether the handler is called for such a request.

        >>> Webhook().is_about("UPDATE", ""), Webhook().is_about("UPDATE", "status")
        (True, False)
        >>> Webhook(subresource="*").is_about("UPDATE", "status")
        True
        """
        wanted = self.subresource or ""
        return (not self.operations or operation in self.operations) and (
            wanted in ("*", subresource)
        )

    def spares(self, *, is_ending: bool, is_own: bool) -> bool:
        """Whether no handler is called for a write, for the safety of the cluster.

        The write is about an object that is being deleted, or it is the operator's own.

        >>> Webhook().spares(is_ending=True, is_own=False)
        True
        """
        return (is_ending and not self.deleted) or (is_own and not self.own_writes)


def webhook_of(options: Mapping[str, Any], label: str) -> Webhook:
    """The webhook that the options of a decorator describe.

    Raises `RegistrationError` for values that the API server would refuse.
    """
    selectors: dict[str, Any] = {
        name: _parse_selector(options[name], f"{label}: {name}=")
        for name in ("namespace_selector", "object_selector")
        if options.get(name) is not None
    }
    flags: dict[str, Any] = {
        name: bool(options[name])
        for name in (*_FLAGS, "ratcheting")
        if options.get(name) is not None
    }
    webhook = Webhook(
        operations=_parse_operations(options, label),
        subresource=_parse_subresource(options.get("subresource"), label),
        timeout=_parse_timeout(options.get("timeout"), label),
        match_policy=_parse_match_policy(options.get("match_policy"), label),
        match_conditions=_parse_conditions(options.get("match_conditions"), label),
        **selectors,
        **flags,
    )
    _check_number_of_conditions(webhook, bool(options.get("field")), label)
    return webhook


_FLAGS = (
    *("persistent", "side_effects", "ignore_failures", "reinvocation"),
    *("deleted", "own_writes"),
)


def _parse_operations(options: Mapping[str, Any], label: str) -> tuple[str, ...]:
    given = options.get("operations")
    one = options.get("operation")
    if one is not None:  # Kopf's older word for one of them
        if not isinstance(one, str):
            raise RegistrationError(
                f"{label}: operation= is one of {joined(OPERATIONS)}, not {shown(one)}"
                "; operations= takes several"
            )
        given = [*(given or ()), one]
    if given is None:
        return ()
    several = _list_values(given, f"{label}: operations= are {joined(OPERATIONS)}")
    for each in several:
        if each not in OPERATIONS:
            raise RegistrationError(
                f"{label}: operations= are {joined(OPERATIONS)}, not {shown(each)}"
            )
    if not several:
        raise RegistrationError(
            f"{label}: operations=[] would ask about nothing; leave it out for all "
            "operations"
        )
    return tuple(each for each in OPERATIONS if each in several)


def _list_values(given: Any, what: str) -> list[Any]:
    """Return one value or several, as a list; `what` describes the option's values."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, (Mapping, bytes)):
        return [*given]
    raise RegistrationError(f"{what}, not {shown(given)}")


def _parse_subresource(given: Any, label: str) -> str | None:
    subresource: str | None = given
    if subresource is not None and subresource != "*":
        try:
            check_subresource(subresource, "")
        except ValueError:
            raise RegistrationError(
                f"{label}: subresource= is one name in small letters, such as "
                f"'status', or '*' for all, not {shown(given)}"
            ) from None
    return subresource


def _parse_timeout(given: Any, label: str) -> int:
    if given is None:
        return TIMEOUT_SECONDS
    if isinstance(given, (int, float)) and given in SECONDS:
        return int(given)
    raise RegistrationError(
        f"{label}: timeout= is a whole number of seconds from 1 to 30, as the API "
        f"server waits no longer, not {shown(given)}"
    )


def _parse_match_policy(given: Any, label: str) -> MatchPolicy:
    if given is None:
        return "Equivalent"
    if given in get_args(MatchPolicy):
        policy: MatchPolicy = given
        return policy
    raise RegistrationError(
        f"{label}: match_policy= is 'Exact' or 'Equivalent', not {shown(given)}"
    )


def _parse_conditions(given: Any, label: str) -> tuple[tuple[str, str], ...]:
    """The match conditions: CEL expressions by name, or a list of them without names.

    The rules are the API server's (validateMatchCondition). It also compiles the
    expressions, and refuses those that fail.
    """
    if given is None:
        return ()
    what = (
        f"{label}: match_conditions= are CEL expressions by name, such as "
        "{'spec': 'object.spec != oldObject.spec'}"
    )
    if not isinstance(given, Mapping):
        given = {
            f"condition-{n}": e for n, e in enumerate(_list_values(given, what), 1)
        }
    pairs = tuple(given.items())
    for name, expression in pairs:
        if not isinstance(expression, str):
            raise RegistrationError(f"{what}, not {shown(expression)}")
        _check_condition_name(name, label)
        if fault := fault_of(expression):
            raise RegistrationError(
                f"{label}: match_conditions= has {shown(expression)} as {name!r}, "
                f"which no API server can read: {fault}"
            )
    return pairs


def _check_number_of_conditions(webhook: Webhook, has_field: bool, label: str) -> None:
    """Refuse more conditions than fit together with those that fnop may add."""
    number = len(webhook.match_conditions)
    added = sum(
        (
            not webhook.deleted,
            not webhook.own_writes,
            not webhook.namespace_selector,
            has_field,
        )
    )
    if number and number > CONDITIONS_MAX - added:
        raise RegistrationError(
            f"{label}: match_conditions= has {number} expressions, but the API server "
            f"takes {CONDITIONS_MAX}, and fnop may add {added}; join some by &&"
        )


def _check_condition_name(name: Any, label: str) -> None:
    if not is_label_name(name):
        raise RegistrationError(
            f"{label}: match_conditions= has the name {shown(name)}, but a name has "
            "letters, digits, -, _ and ., 63 at most, and perhaps a domain before it, "
            "as in 'example.com/resized'"
        )
    if name in CONDITIONS:
        raise RegistrationError(
            f"{label}: match_conditions= has the name {name!r}, which is that of a "
            f"condition of fnop's own; choose another one, such as 'my-{name}'"
        )


def _parse_selector(given: Any, where: str) -> Mapping[str, Any]:
    """A label selector: as in a manifest, or a mapping of labels to values."""
    for each in _enumerations_in(given):
        raise RegistrationError(
            f"{where}: {each} is not a text; write the text, and for labels that are "
            "there or not the operators Exists and DoesNotExist in matchExpressions"
        )
    try:
        return selector_of(given, where)
    except (TypeError, ValueError) as problem:
        raise RegistrationError(str(problem)) from None


def _enumerations_in(given: Any) -> Iterator[Enum]:
    """The members of enumerations in a selector, such as `fnop.PRESENT`.

    Their values, which JSON would contain instead, would select other objects.
    """
    if isinstance(given, Enum) and not isinstance(given, str):
        yield given
    if isinstance(given, Mapping):
        given = given.values()
    elif not isinstance(given, (list, tuple)):
        return
    for each in given:
        yield from _enumerations_in(each)
