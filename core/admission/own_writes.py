"""The operator's own writes, which its handlers do not review.

A service account belongs to the operator alone. Another account may belong to a person
who runs the operator on a machine. Then the field manager distinguishes the writes.
"""

from __future__ import annotations

from fnop.core.api.reviews import Request
from fnop.core.values.cel import literal

__all__ = ["condition", "is_own"]

# Kubernetes: the users of service accounts (serviceaccount.MakeUsername).
SERVICE_ACCOUNT = "system:serviceaccount:"


def is_own(request: Request, account: str, manager: str) -> bool:
    """Whether an operator with this account and field manager has made a request.

    >>> request = Request("1", "CREATE", "", "v1", "pods", "Pod")
    >>> by = request._replace(user_info={"username": "anna"})
    >>> is_own(by, "anna", "fnop.dev/x")
    False
    >>> ours = by._replace(options={"fieldManager": "fnop.dev/x"})
    >>> is_own(ours, "anna", "fnop.dev/x")
    True
    """
    if not account or request.user != account:
        return False
    is_alone = account.startswith(SERVICE_ACCOUNT)
    return is_alone or request.options.get("fieldManager") == manager


def condition(account: str, manager: str) -> str:
    """The match condition that lets only others' requests through, in CEL."""
    of_others = f"request.userInfo.username != {literal(account)}"
    if account.startswith(SERVICE_ACCOUNT):
        return of_others
    # CONNECT has no options.
    has_manager = (
        "has(request.options) && request.options != null"
        " && has(request.options.fieldManager)"
    )
    manages = f"request.options.fieldManager == {literal(manager)}"
    return f"{of_others} || !({has_manager} && {manages})"
