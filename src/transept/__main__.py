"""`python -m transept`, and so `torchrun -m transept`."""

from transept.cli.app import main

if __name__ == "__main__":
    main()
