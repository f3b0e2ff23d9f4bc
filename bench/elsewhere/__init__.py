"""The example 19-database with other frameworks, as carefully as we could.

`kopf_database.py` and `kopf_causes.py` run on a real API server under the same random
user as the example (`make reconciler-driver KINDS=kopf-databases`). The module
`metacontroller_database.py` is the sync hook of a CompositeController, which
`metacontroller.yaml` declares; it was run by tests of ours alone, and not by
Metacontroller. The lines: `python -m bench.styles`.
"""
