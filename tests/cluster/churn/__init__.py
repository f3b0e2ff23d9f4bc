"""Churn: hundreds of objects change for an hour, and everything around them fails.

A user creates, edits, reverts, touches and deletes objects, and holds some of them by a
finalizer that is taken away late.  Meanwhile requests of the operator are lost, refused
and delayed by a proxy, watches end and hang, the operator's process is killed and
stopped, and kube-apiserver and etcd are started anew.  What is chosen follows from one
seed; when exactly it comes, from the machine.

The operator keeps a ledger of its calls (`operators/churning.py`), and the proxy hears
what the API server answers.  From the two follows, at any time, what must never happen
(`Judge`), and from the objects, some time after the last fault, what must have happened
(`unmet`).

    python -m tests.cluster.churn --seconds 300 --seed 1 --objects 100
"""
