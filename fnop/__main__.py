"""`python -m fnop` is the command `fnop`."""

from fnop.adapters.cli.main import main

if __name__ == "__main__":
    main()
