"""Run operators in this process, from the command line or embedded."""
