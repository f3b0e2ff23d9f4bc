"""The built-in controllers of the simulated cluster, each a pure actor.

An actor takes the cluster, a reminder and the time. It returns the next cluster, the
events for watches, and the time of its next look. `storage.waking` makes reminders of
writes; `rounds` gives each reminded controller a turn.
"""
