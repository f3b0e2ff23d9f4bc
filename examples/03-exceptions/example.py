"""The errors of handlers: for good, for now, or by the handler's own limits."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
def never_again(**_: Any) -> None:
    raise fnop.PermanentError("this will never work; it is not tried again")


@fnop.on.create("fnopexamples")
def works_at_last(retry: int, **_: Any) -> dict[str, int]:
    if retry < 3:
        raise fnop.TemporaryError("not yet; tried again in a while", delay=1)
    return {"attempts": retry + 1}


@fnop.on.create("fnopexamples", retries=3, backoff=1.0)
def gives_up(**_: Any) -> None:
    raise RuntimeError("an arbitrary error is tried again, as often as retries says")


@fnop.on.create("fnopexamples", errors=fnop.ErrorsMode.PERMANENT)
def not_even_once(spec: fnop.Spec, **_: Any) -> str:
    return f"this needs a field that is not there: {spec['missing']}"
