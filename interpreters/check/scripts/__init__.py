"""Generate scripts from the scripts of an author."""
