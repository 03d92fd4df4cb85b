"""Wiring: `python -m mind_body` is `mind`."""

from mind_body.cli.main import main

if __name__ == "__main__":
    main()
