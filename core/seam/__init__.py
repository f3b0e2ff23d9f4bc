"""The inputs and the commands of `step`, and their JSON form."""
