"""Porting: what an author changes to bring handlers of Kopf to fnop's own API.

The operator is never run. `sources` parses its files, `reading` follows its functions
from call to call, and `judging` gives a verdict for each handler. The tables in `rules`
and `names` hold what fnop has in place of each name and each library.
"""
