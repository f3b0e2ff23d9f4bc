"""The patterns of names (`apimachinery/pkg/util/validation`), without their lengths.

`LABEL` is a DNS label of RFC 1123, `SERVICE` one of RFC 1035. A key of a label is
`QUALIFIED`, perhaps after a `SUBDOMAIN` and a slash.

>>> bool(SUBDOMAIN.fullmatch("a.example.com")), bool(SERVICE.fullmatch("1a"))
(True, False)
"""

from __future__ import annotations

import re

__all__ = ["LABEL", "LABEL_VALUE", "QUALIFIED", "SERVICE", "SUBDOMAIN"]

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
LABEL_VALUE = re.compile(rf"({QUALIFIED.pattern})?")
