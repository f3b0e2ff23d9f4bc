"""Report about an object: log lines, traces, and Events."""
