"""Rule: the lists of `[people]`: user ids, room ids, or globs (`@*:example.org`). Ids are case-sensitive and compared exactly.

Only `*` and `?` are special: `[` is a character of ids (an IPv6 server name), not the beginning of a set.
"""

import functools
import re
from collections.abc import Iterable

from mind_body.settings import PeopleConfig


def listed(identifier: str, globs: Iterable[str]) -> bool:
    """Whether one of the globs is this id."""
    return any(glob in {"*", identifier} or _pattern(glob).fullmatch(identifier) for glob in globs)


def is_operator(user_id: str, people: PeopleConfig) -> bool:
    return listed(user_id, people.operators)


def may_address(user_id: str, people: PeopleConfig) -> bool:
    """Whose messages can be mail."""
    return is_operator(user_id, people) or listed(user_id, people.may_address)


def may_invite(user_id: str, people: PeopleConfig) -> bool:
    """Whose invites are accepted."""
    return is_operator(user_id, people) or listed(user_id, people.may_invite)


def may_start(user_id: str, people: PeopleConfig) -> bool:
    """Whose requests may start work."""
    return is_operator(user_id, people) or listed(user_id, people.may_start)


def may_steer(user_id: str, people: PeopleConfig) -> bool:
    """Whose messages reach the Self that works in their thread."""
    return is_operator(user_id, people) or listed(user_id, people.may_steer)


@functools.lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in re.sub(r"\*+", "*", glob)), re.DOTALL)
