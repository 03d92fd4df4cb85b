"""Rule: who somebody is to her. A role comes from the user id alone (design §6): names are what people call themselves."""

from typing import Literal

from mind_body.control.people import is_operator, listed
from mind_body.settings import PeopleConfig

Role = Literal["operator", "member", "person", "bot"]


def role_of(user_id: str, people: PeopleConfig) -> Role:
    """Operators first: no other list takes that away."""
    if is_operator(user_id, people):
        return "operator"
    if listed(user_id, people.bots):
        return "bot"
    return "member" if listed(user_id, (*people.may_steer, *people.may_start)) else "person"
