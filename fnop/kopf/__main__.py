"""`python -m fnop.kopf`: programs that call Kopf themselves, and `kopf run`."""

from fnop.adapters.kopf.program import main

main()
