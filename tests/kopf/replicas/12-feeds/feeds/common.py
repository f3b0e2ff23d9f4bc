import functools
import inspect

import kopf

from . import web

KIND = ("replicas.fnop.dev", "v1", "feeds")


def translated(delay=1.0):
    """Errors of the net become retries. It decorates plain and async functions."""

    def decorator(fn):
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def wrapper(*args, **kwargs):
                try:
                    return await fn(*args, **kwargs)
                except (TimeoutError, ConnectionError) as e:
                    raise kopf.TemporaryError(
                        f"{type(e).__name__} in {fn.__name__}", delay
                    ) from e
                except web.ServerError as e:
                    raise kopf.PermanentError(str(e)) from None

        else:

            @functools.wraps(fn)
            def wrapper(*args, **kwargs):
                kwargs["logger"].info(f"{fn.__name__} is called with {sorted(args)}")
                return fn(*args, **kwargs)

        return wrapper

    return decorator


def unnamed(fn):
    """Without `functools.wraps`, as beginners write it."""

    async def inner(**kwargs):
        kwargs.pop("stopped", None)
        return await fn(**kwargs)

    return inner


class Counter:
    """An object that is called as a handler."""

    def __init__(self):
        self.seen = []

    def __call__(self, name, logger, **_):
        self.seen.append(name)
        logger.info(f"seen so far: {self.seen}")
