"""The ends of commands: exit statuses, and sentences on standard error."""

from __future__ import annotations

import sys
from typing import NoReturn

from fnop.adapters.common.plain import echo

__all__ = [
    "EXIT_DAMAGED",
    "EXIT_ERROR",
    "EXIT_INCOMPLETE",
    "EXIT_INTERRUPTED",
    "EXIT_UNKNOWN",
    "EXIT_UNSUPPORTED",
    "EXIT_USAGE",
    "fail",
    "warn",
]

EXIT_ERROR, EXIT_USAGE = 1, 2
# The status after Ctrl-C, as shells have it: 128 and the number of SIGINT.
EXIT_INTERRUPTED = 130
# The statuses of commands that read a recording (docs/reference/exit-statuses.md).
EXIT_DAMAGED, EXIT_INCOMPLETE, EXIT_UNSUPPORTED = 3, 4, 5

# The status of a check without any result (docs/reference/exit-statuses.md).
EXIT_UNKNOWN = 3


def warn(sentence: str) -> None:
    """Print a sentence that the user needs in addition to the result."""
    echo(f"fnop: {sentence}", err=True)


def fail(sentence: str, status: int = EXIT_ERROR) -> NoReturn:
    """End the command with a sentence about the problem."""
    warn(sentence)
    sys.exit(status)
