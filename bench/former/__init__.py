"""The examples 19 to 21 as handlers of causes: create, update, event, delete, timer.

They are written as carefully as an expert in that style would. `python -m bench.styles`
counts them next to the reconcile handlers. docs/explanation/other-frameworks.md lists
the guarantees that they cannot give.
"""
