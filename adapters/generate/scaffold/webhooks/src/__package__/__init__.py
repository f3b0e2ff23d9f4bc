"""A Kubernetes operator for __plural__.__group__."""

from __package__ import admission as admission
