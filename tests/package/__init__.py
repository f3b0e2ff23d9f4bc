"""The package as a release has it: built, checked, installed from an index, and run."""
