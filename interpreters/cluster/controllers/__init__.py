"""The built-in controllers of the simulated cluster, each a pure actor.

An actor takes the cluster, a reminder and the time, and returns the cluster it
leaves behind, what watches see, and when it wants to look again.  `waking` says
whom a change reminds of what; `rounds` gives everybody a turn.
"""
