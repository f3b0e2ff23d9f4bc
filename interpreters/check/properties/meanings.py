"""The meaning of each property of a check, for reports."""

from __future__ import annotations

__all__ = ["EXPLAINED"]

# The meaning of each property, in a line.
EXPLAINED = {
    "matches": "what the author expects holds after the faults, and stays true",
    "settles": "all comes to rest once the faults have ended",
    "total": "no handler fails of an error of its own",
    "keeps_data": "claims, Secrets and replicas go only where the benign run lets them",
    "creates_once": "nothing is there twice, or is made outside more often",
    "no_clobber": "no write takes back what others have changed meanwhile",
    "right_object": "nothing is changed that only has the name of what was looked at",
    "deletes": "a deleted object disappears",
    "no_orphans": "what was created for an object goes with it",
    "honest_status": "a status tells what was observed",
    "same_end": "after the faults the world is that of the benign run",
    "no_more_writes": "a second restart at the end changes nothing",
    "no_refused_writes": "no write is refused as invalid",
    "bounded_work": "at most three times the writes of the benign run",
    "quiet": "at rest nothing is asked for in vain again and again",
    "pure": "handlers decide by their arguments alone",
    "idle": "each handler does something",
    "heeds": "what a handler looks at matters",
    "apart": "objects share nothing: another one changes nothing of what one has",
    "refers": "what the operator makes refers to what is there",
    "keeps_secrets": "passwords, tokens and keys of Secrets are nowhere else",
    "serves": "the operator starts, and its handlers may come to a good end",
    "deletable": "each object can be deleted, and goes once it is",
    "updatable": "each stored object can be updated, if only its labels",
    "admits_itself": "the operator's own writes are admitted",
    "idempotent": "mutations change nothing that they have changed already",
    "accepted": "what mutations make is accepted by validations and the schema",
    "traceless": "denied writes and dry runs leave nothing behind outside",
    "steady": "validations give one answer to one question, in any order",
    "history": "the end does not depend on how the object became what it is",
}
