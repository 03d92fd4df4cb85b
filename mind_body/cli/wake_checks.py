"""Door: what `mind doctor` looks at behind a Mind's wakes: where she would speak unprompted, whom she could ask, what for."""

from mind_body.cli.finding import Check
from mind_body.cli.minds import opened
from mind_body.cli.render import list_words
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.mind.campaigns import read_campaigns
from mind_body.mind.records import Membership
from mind_body.mind.rooms import read_room
from mind_body.persona.campaigns import fitting_campaigns
from mind_body.settings import MindConfig


def check_wakes(home: Home, name: str, config: MindConfig) -> list[Check]:
    """Nothing about a home room where she has no scheduled wakes."""
    beats = [_home_room(home, name, config)] if config.persona.beat else []
    return [*beats, _operators(home, name, config), *_campaigns(home, name, config)]


def _campaigns(home: Home, name: str, config: MindConfig) -> list[Check]:
    """Whether all that she is to work towards finds room in what she is told; nothing where there is none."""
    try:
        with opened(home, name) as mind, mind.read() as tx:
            found = read_campaigns(tx, open_only=True)
    except MindBodyError:
        return []
    shown = fitting_campaigns(found, small=config.model.provider == "local", window_tokens=config.model.window_tokens)
    what, left_out = f"{name}: campaigns", found[: len(found) - len(shown)]
    if not left_out:
        return [Check(what, ok=True, detail=f"{len(found)} open")] if found else []
    slugs = list_words([one.slug for one in left_out])
    detail = f"{len(found)} are open, and together too long: she is not told of {slugs}"
    return [Check(what, ok=False, detail=detail, fix=f"close what is done (`mind campaign close {name} SLUG`), or say it shorter")]


def _home_room(home: Home, name: str, config: MindConfig) -> Check:
    what, room_id, file = f"{name}: scheduled wakes", config.persona.home_room, home.mind_file(name)
    if not room_id:
        detail = "[persona] beat is on, and there is no home_room: she has no scheduled wakes"
        return Check(
            what, ok=False, detail=detail, fix=f"name the room where she may speak unprompted in {file}, or switch beat off"
        )
    try:
        with opened(home, name) as mind, mind.read() as tx:
            room = read_room(tx, room_id)
    except MindBodyError:
        return Check(what, ok=True, detail="not known: her mind cannot be read")
    if room is None or room.membership is not Membership.JOINED:
        detail = f"she is not in her home room {room_id}: she has no scheduled wakes"
        return Check(what, ok=False, detail=detail, fix=f"invite {config.matrix.user} there, or mend home_room in {file}")
    if room.encrypted:
        detail = f"her home room {room_id} is encrypted, and she could not read an answer: she has no scheduled wakes"
        return Check(what, ok=False, detail=detail, fix=f"name a room without encryption as home_room in {file}")
    return Check(what, ok=True, detail=f"in {room.name or room.room_id}")


def _operators(home: Home, name: str, config: MindConfig) -> Check:
    """It is well to have none: `mind questions` shows what she would ask."""
    named = [one for one in config.people.operators if not set(one) & set("*?")]
    if named:
        return Check(f"{name}: operators", ok=True, detail=", ".join(config.people.operators))
    detail = "a glob alone names nobody who could be asked" if config.people.operators else "none"
    fix = (
        f"name yourself by your full id in [people] operators of {home.mind_file(name)}, and she asks you what only you can decide"
    )
    return Check(f"{name}: operators", ok=True, detail=f"{detail}: questions are in `mind questions` alone", fix=fix)
