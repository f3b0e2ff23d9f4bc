"""For `fnop check`: what the end may depend on."""

# A StatefulSet leaves the volumes of members that are gone.
HISTORY = ("persistentvolumeclaims/",)
