"""`python -m fnop.kopf`: programs that call Kopf themselves, and `kopf run`."""

from fnop.adapters.kopf.commands.program import main

main()
