"""`python -m fnop` is the command `fnop`."""

from fnop.adapters.cli import main

if __name__ == "__main__":
    main()
