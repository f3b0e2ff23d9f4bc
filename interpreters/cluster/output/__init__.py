"""The forms of an answer: JSON objects, tables, metadata, OpenAPI documents."""
