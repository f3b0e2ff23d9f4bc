"""The test suites of other clients, run against `fnop cluster` and a real API server.

`python -m tests.clients.suites` fetches the pinned archives, runs each client's own
tests on a fresh server of either kind, and compares: what passes on the real server
passes on the simulated one.  Nothing of the suites is kept in this repository; ours
are the fixtures that stand in for Docker, and the lists of what is left out, and why.
"""
