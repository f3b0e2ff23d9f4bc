"""What other libraries do with functions: retry, trace, measure, cache."""

import contextlib
import functools
import inspect
import time
import typing

P = typing.ParamSpec("P")
R = typing.TypeVar("R")


class RetryError(Exception):
    """All attempts within one call have failed."""


class retrying:
    """Try several times within one call, as libraries for retries do."""

    def __init__(self, *on, attempts=3, pause=0.02):
        self.on, self.attempts, self.pause = on, attempts, pause

    def __call__(self, fn: typing.Callable[P, R]) -> typing.Callable[P, R]:
        @functools.wraps(fn)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            for attempt in range(1, self.attempts + 1):
                wrapped.statistics["attempts"] = attempt
                try:
                    return fn(*args, **kwargs)
                except self.on as error:
                    last = error
                    time.sleep(self.pause)
            raise RetryError(f"{self.attempts} attempts: {last}") from last

        wrapped.statistics = {}
        return wrapped


@contextlib.contextmanager
def span(name):
    """A context manager, which is a decorator as well."""
    spans.append(name)
    yield
    spans.append(f"/{name}")


spans: list[str] = []


def announced(fn):
    """Not async itself, though what it returns may be a coroutine."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        kwargs["logger"].info(f"{fn.__name__} begins")
        return fn(*args, **kwargs)

    return wrapper


def only(*names):
    """Give the handler the arguments that it names, and no others."""

    def decorator(fn):
        wanted = names or tuple(inspect.signature(fn).parameters)

        @functools.wraps(fn)
        async def wrapper(**kwargs):
            return await fn(**{name: kwargs[name] for name in wanted})

        return wrapper

    return decorator
