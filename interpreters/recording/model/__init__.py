"""Read a recording: its attempts, requests, versions, and times."""
