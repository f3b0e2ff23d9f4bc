"""Try the schedules of all scripts within a budget."""
