"""Log lines of webhooks, whatever tests before have made of the levels."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def usual_levels(caplog: pytest.LogCaptureFixture) -> None:
    """A command that was run in this process may have set them."""
    for name in ("fnop", "fnop.objects", "fnop.webhooks"):
        caplog.set_level(logging.NOTSET, logger=name)
    caplog.set_level(logging.WARNING)
