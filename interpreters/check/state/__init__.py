"""The state of a trial: the user, the processes of the operator, and the journal."""
