"""Common parts of the commands: loading files, printing, logging."""
