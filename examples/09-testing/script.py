"""For `fnop check`: what the end may depend on."""

# A claim that no pod uses is not bound, and grows only when it is: until then its size
# is that with which it was made, which depends on when that was.
HISTORY = ("persistentvolumeclaims/",)
