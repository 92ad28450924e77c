"""`python -m client`: the `canvass` command."""

from client.cli import main

if __name__ == "__main__":
    main()
