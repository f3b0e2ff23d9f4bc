"""What goes in and out of `step`: inputs, commands, and their JSON form."""
