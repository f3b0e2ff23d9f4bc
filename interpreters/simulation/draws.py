"""The random bytes of a simulated run: equal seeds draw equal bytes."""

from __future__ import annotations

import hashlib

__all__ = ["Draws"]


class Draws:
    """The seed of each process of an operator, and the bytes drawn so far.

    >>> draws = Draws("0")
    >>> len(draws.draw(4)), draws.seed
    (4, '0')
    >>> draws.restart()
    >>> draws.seed, draws.lives, len(draws.drawn)
    ('0-1', 1, 1)
    """

    __slots__ = ("_first", "drawn", "lives", "secrets", "seed")

    def __init__(self, seed: str) -> None:
        self._first = self.seed = seed
        # The number of crashes so far.
        self.lives = 0
        # All random bytes, and those among them that serve as a secret.
        self.drawn: list[bytes] = []
        self.secrets: list[bytes] = []

    def fork(self) -> Draws:
        """A copy that continues independently of this one."""
        fork = Draws(self._first)
        fork.seed, fork.lives = self.seed, self.lives
        fork.drawn, fork.secrets = [*self.drawn], [*self.secrets]
        return fork

    def restart(self) -> None:
        """Give the next process a seed of its own."""
        self.lives += 1
        self.seed = f"{self._first}-{self.lives}"

    def draw(self, size: int, *, secret: bool = False) -> bytes:
        """Draw this number of bytes."""
        text = f"{self.seed}/{len(self.drawn) + 1}".encode()
        raw = hashlib.shake_128(text).digest(size)
        self.drawn.append(raw)
        if secret:
            self.secrets.append(raw)
        return raw
