"""Declarations of Kopf: decorators, registries, settings and storages."""
