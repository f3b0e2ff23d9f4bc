"""The values that handlers of Kopf get: objects, patches, memos, indices, flags."""
