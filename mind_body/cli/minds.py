"""Door: the Minds that a verb is about: their names, checked, and their files, opened for as long as it looks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mind_body.config import list_minds, read_mind_config
from mind_body.home import Home
from mind_body.mind.store import Mind, open_mind


def find_minds(home: Home, names: Sequence[str]) -> list[str]:
    """These, or all of the host. Raises ConfigError, naming the ones there are, for a name that none has."""
    known = list_minds(home)
    for name in names:
        if name not in known:
            read_mind_config(home, name)  # raises
    return list(names) or known


@contextmanager
def opened(home: Home, name: str) -> Iterator[Mind]:
    """Raises MindFileError or StorageError with a sentence."""
    mind = open_mind(home.mind_db(name))
    try:
        yield mind
    finally:
        mind.close()


def pick_id(ids: Sequence[str], wanted: str) -> list[str]:
    """Those that are meant by an id, or by enough of its beginning or end."""
    if wanted in ids:
        return [wanted]
    return [one for one in ids if wanted and (one.startswith(wanted) or one.endswith(wanted))]
