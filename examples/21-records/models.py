"""A model of the name server: it stands for `put_records` in a simulated run."""

from fnop.testing import External


class NameServer(External):
    """The records of each owner."""

    def __init__(self) -> None:
        self.zones: dict[str, dict[str, str]] = {}

    def put_records(self, owner: str, records: dict[str, str]) -> None:
        self.zones.pop(owner, None)
        if records:
            self.zones[owner] = dict(records)


SERVER = NameServer()
CALLS = {"put_records": SERVER.put_records}
