"""The example 19-database with other frameworks, written as carefully as possible.

`kopf_database.py` and `kopf_causes.py` run on a real API server under the same random
user as the example (`make reconciler-driver KINDS=kopf-databases`). The module
`metacontroller_database.py` is the sync hook of a CompositeController, which
`metacontroller.yaml` declares; only fnop's tests have run it, not Metacontroller.
`python -m bench.styles` counts the lines.
"""
