"""The examples 19 to 21 as handlers of causes: create, update, event, delete, timer.

They are written as carefully as a person would who knows that style, and are there to
be counted beside the reconcile handlers: `python -m bench.styles`. What they cannot
promise is on docs/styles.md.
"""
