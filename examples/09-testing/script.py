"""What `fnop check` has to know of this operator."""

# A claim that no pod uses is not bound, and grows only when it is: until then its size
# is that with which it was made, which depends on when that was.
HISTORY = ("persistentvolumeclaims/",)
