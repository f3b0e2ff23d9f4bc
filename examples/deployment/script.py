"""For `fnop check`: what the end may depend on."""

# A Pod that runs stays as it is: the operator tells of an edit, and that is all.
HISTORY = ("pods/",)
