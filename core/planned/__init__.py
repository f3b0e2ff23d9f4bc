"""What an operator would do: for `fnop plan`."""
