"""Match names that differ in any two runs: uids, times, secrets."""
