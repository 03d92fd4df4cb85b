"""Rule: who somebody is to her. A role comes from the user id alone (design §6): names are what people call themselves."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from mind_body.settings import PeopleConfig

Role = Literal["operator", "member", "person", "bot"]


def role_of(user_id: str, people: PeopleConfig) -> Role:
    """Operators first: no other list takes that away."""
    if _listed(user_id, people.operators):
        return "operator"
    if _listed(user_id, people.bots):
        return "bot"
    return "member" if _listed(user_id, (*people.may_steer, *people.may_start)) else "person"


def _listed(user_id: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(user_id, glob) for glob in globs)
