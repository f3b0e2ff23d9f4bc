"""Churn: hundreds of objects change for an hour, and everything around them fails.

A user creates, edits, reverts, touches and deletes objects, and holds some of them by a
finalizer that is taken away late.  Meanwhile a proxy loses, refuses and delays requests
of the operator, watches end and hang, the operator's process is killed and stopped, and
kube-apiserver and etcd are restarted. The choices follow from one seed; their exact
times, from the machine.

The operator keeps a ledger of its calls (`operators/churning.py`), and the proxy
records the API server's answers. From the two follows, at any time, whether something
forbidden has happened (`Judge`). From the objects, some time after the last fault,
follows whether something required is missing (`unmet`).

    python -m tests.cluster.churn --seconds 300 --seed 1 --objects 100
"""
