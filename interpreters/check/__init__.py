"""`fnop check`: the operator under every fault, with models of what lies outside."""
