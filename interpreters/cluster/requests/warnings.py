"""The bounds of the warnings of an answer (apiserver/pkg/endpoints/filters)."""

from __future__ import annotations

__all__ = ["bounded"]

# In characters: the limit for all warnings of an answer, and for each if that is
# exceeded.
MOST_CHARACTERS = 4 * 1024
MOST_OF_EACH = 256


def bounded(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The warnings that are sent: texts with control characters are skipped.

    If all of them together are too long, each is cut. The rest that is still too long
    is dropped.

    >>> bounded(("a\\nb", "c"))
    ('c',)
    >>> [len(text) for text in bounded(("x" * 4000, "y" * 100))]
    [256, 100]
    """
    sent = tuple(text for text in texts if text.isprintable())
    if sum(map(len, sent)) <= MOST_CHARACTERS:
        return sent
    result, size = [], 0
    for text in sent:
        if size >= MOST_CHARACTERS:
            break
        result.append(text[:MOST_OF_EACH])
        size += len(result[-1])
    return tuple(result)
