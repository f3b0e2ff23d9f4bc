"""Ships and docks, by a package: its handlers are in a folder, and are found there."""
