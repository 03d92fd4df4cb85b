"""Door: who sits at the command line."""

import os
import pwd


def read_user_name() -> str:
    """The name of this process's user; its number where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
