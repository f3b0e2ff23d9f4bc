"""Storages that are written from Kopf's base classes, not from its own storages."""

import base64
import json
import zlib

import kopf


class OneAnnotation(kopf.ProgressStorage):
    """All records in one annotation, by handler."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def _records(self, body):
        return json.loads(
            body.get("metadata", {}).get("annotations", {}).get(self.name) or "{}"
        )

    def _pending(self, body, patch):
        """The records with those that this patch has already."""
        own = patch.get("metadata", {}).get("annotations", {}).get(self.name)
        return self._records(body) if own is None else json.loads(own)

    def fetch(self, *, key, body):
        return self._records(body).get(key)

    def store(self, *, key, record, body, patch):
        records = self._pending(body, patch)
        records[key] = {k: v for k, v in record.items() if v is not None}
        patch.meta.annotations[self.name] = json.dumps(records)

    def purge(self, *, key, body, patch):
        records = self._pending(body, patch)
        if records.pop(key, None) is not None:
            patch.meta.annotations[self.name] = json.dumps(records) if records else None

    def touch(self, *, body, patch, value):
        patch.meta.annotations[f"{self.name}-touch-dummy"] = value

    def clear(self, *, essence):
        essence = super().clear(essence=essence)
        notes = essence.get("metadata", {}).get("annotations", {})
        for name in [each for each in notes if each.startswith(self.name)]:
            del notes[name]
        return essence


class ArchivedEssence(kopf.DiffBaseStorage):
    """The essence, compressed. Big objects do not fit into an annotation else."""

    def __init__(self, name, ignored):
        super().__init__(ignored_fields=ignored)
        self.name = name

    def build(self, *, body, extra_fields=None):
        essence = super().build(body=body, extra_fields=extra_fields)
        notes = essence.get("metadata", {}).get("annotations", {})
        notes.pop(self.name, None)
        if "metadata" in essence and not notes:
            essence["metadata"].pop("annotations", None)
            if not essence["metadata"]:
                del essence["metadata"]
        return essence

    def fetch(self, *, body):
        packed = body.metadata.annotations.get(self.name)
        return packed and json.loads(zlib.decompress(base64.b64decode(packed)))

    def store(self, *, body, patch, essence):
        text = json.dumps(essence, sort_keys=True, separators=(",", ":"))
        packed = base64.b64encode(zlib.compress(text.encode(), 0)).decode()
        patch.meta.annotations[self.name] = packed
