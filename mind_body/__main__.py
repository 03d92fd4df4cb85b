"""Wiring: `python -m mind_body` is `mind`."""

import gc

# What is imported stays: collecting among it while it is being made takes a tenth of an organ's start. `main` switches it on again.
gc.disable()

from mind_body.cli.main import main  # noqa: E402 - after the line above

if __name__ == "__main__":
    main()
