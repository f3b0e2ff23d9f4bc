"""The verbs of the API and the subresources; `server` answers a request."""
