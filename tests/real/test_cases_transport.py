"""X1 and X2 with a real Synapse and the mouth as a process: what is queued, and what an independent account reads back."""

from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from mind_body.clock import now_ms
from mind_body.host.poke import send_poke
from mind_body.ids import new_id
from mind_body.matrix.markdown import ALLOWED_TAGS
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.matrix.speech import render_say
from mind_body.mind.outbox import admit_said
from mind_body.mind.records import NewSaid
from mind_body.mind.store import open_mind
from tests.real.parts.hearing import OpenScene, join_room
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

FAMILY = "👩‍👩‍👧‍👦"


def queue(scene: Scene, *rows: NewSaid) -> None:
    mind = open_mind(scene.home.mind_db("ada"))
    with mind.write() as tx:
        admit_said(tx, rows, None, now_ms())
    mind.close()
    send_poke(scene.home.mouth_socket)


def unsent(scene: Scene) -> int:
    return int(scene.rows("ada", "SELECT count(*) AS left FROM said WHERE state IN ('queued', 'attempted')")[0]["left"])


def say(room: str, text: str) -> list[NewSaid]:
    return render_say(new_id(), room, text, thread=None, reply_to=None)


def hers(bob: Person, room: str, her: str) -> list[str]:
    return [event["content"]["body"] for event in bob.messages(room, her)]


def test_x1_a_429_loses_nothing_keeps_the_order_and_holds_up_no_other_room(
    start_homeserver: Callable[..., Homeserver], open_scene: OpenScene
) -> None:
    server = start_homeserver(limits={"rc_message": {"per_second": 0.2, "burst_count": 3}})
    scene, mouth = open_scene(server)
    her, bob = scene.add_mind("ada"), scene.person()
    mouth.start()
    long_room, other_room = join_room(scene, bob, her, direct=True), join_room(scene, bob, her, direct=True)
    reply = say(long_room, "\n\n".join(f"{n} " + "word " * 4200 for n in range(8)))
    assert len(reply) == 8
    progress = render_notice("en", NoticeKey.UNREACHABLE, "cause", other_room)
    queue(scene, *reply)
    scene.wait_rows("ada", "a limit", "SELECT 1 FROM said WHERE reason LIKE 'limited%'")

    # The second room is asked something and told something while the long reply is limited.
    queue(scene, progress, *say(other_room, "the other room"))
    bob.wait_for("the other room's answer", lambda: "the other room" in hers(bob, other_room, her), 40)
    assert len(hers(bob, long_room, her)) < 8, "the long reply had not gone before it"

    # The wait is remembered: killed and started again, she does not ask before the told instant.
    limited = "SELECT id, not_before, tries FROM said WHERE reason LIKE 'limited%' AND state <> 'sent' AND not_before > ?"
    (row,) = wait_until("a told wait", lambda: scene.rows("ada", limited, now_ms() + 1500))[:1]
    mouth.kill()
    killed_at = now_ms()
    mouth.start()
    waits = "SELECT tries FROM said WHERE id = ?"
    moved = wait_until(
        "the next try", lambda: scene.rows("ada", waits + " AND (tries > ? OR state = 'sent')", row["id"], row["tries"])
    )
    assert moved
    assert now_ms() >= row["not_before"] > killed_at

    # The ear hears all the while.
    bob.send(other_room, "do you hear me?")
    scene.wait_rows("ada", "bob to be heard", "SELECT 1 FROM heard WHERE body = 'do you hear me?'", deadline_s=20)

    wait_until("everything to be sent", lambda: unsent(scene) == 0, 90)
    assert hers(bob, long_room, her) == [part.content["body"] for part in reply]
    assert hers(bob, other_room, her) == ["the other room", progress.content["body"]]
    times = [event["origin_server_ts"] for event in bob.messages(long_room, her)]
    assert bob.messages(other_room, her)[-1]["origin_server_ts"] > times[-1], "replies go before notices, in whatever room"


class Balanced(HTMLParser):
    """Raises where a tag is not Matrix's, not closed, or closed out of turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED_TAGS
        if tag not in {"br", "hr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"br", "hr"}:
            assert self.open.pop() == tag


def test_x2_200_kb_arrive_whole_and_each_part_stands_for_itself(homeserver: Homeserver, open_scene: OpenScene) -> None:
    scene, mouth = open_scene(homeserver)
    her, bob = scene.add_mind("ada"), scene.person()
    mouth.start()
    room = join_room(scene, bob, her, direct=True)
    prose = f'Prose with {FAMILY}, **bold** "quoted" words & a [link](https://example.org/?a=1&b=2).\n\n'
    table = "| who | what |\n| --- | --- |\n" + "".join(f"| Ada {n} | {FAMILY} |\n" for n in range(80))
    fence = (
        "```python\n"
        + "".join(f"print({n}, 'a line of code that says \"hello\" & <more>', {n} * {n})\n" for n in range(400))
        + "```\n"
    )
    text = prose * 700 + table + "\n" + fence + "\n" + prose * 900 + FAMILY * 2000
    assert len(text.encode()) > 200_000
    queue(scene, *say(room, text))
    wait_until("everything to be sent", lambda: unsent(scene) == 0, 60)

    events = bob.messages(room, her)
    assert {event["content"]["msgtype"] for event in events} == {"m.text"}
    joined = ""
    for event in events:
        body = event["content"]["body"]
        Balanced(event["content"]["formatted_body"])
        assert "```" not in event["content"]["formatted_body"], "every fence became a code block"
        reopened = joined.endswith("```") and body.startswith("```python\n")
        joined = joined.removesuffix("```") + body.removeprefix("```python\n") if reopened else joined + body
    assert joined == text
    assert not scene.rows("ada", "SELECT * FROM said WHERE state = 'refused'")


@pytest.mark.parametrize("redacted", [False, True], ids=["", "redacted meanwhile"])
def test_d5_an_attempt_that_the_homeserver_may_have_forgotten_is_found_in_the_history(
    homeserver: Homeserver, open_scene: OpenScene, *, redacted: bool
) -> None:
    scene, mouth = open_scene(homeserver)
    her, bob = scene.add_mind("ada"), scene.person()
    mouth.start()
    room = join_room(scene, bob, her, direct=True)
    queue(scene, *say(room, "once and never again"))
    (event_id,) = bob.wait_for("her message", lambda: [event["event_id"] for event in bob.messages(room, her)])
    wait_until("its receipt", lambda: unsent(scene) == 0)
    mouth.stop()
    for number in range(120):
        bob.send(room, f"later {number}")
    if redacted:
        bob.redact(room, event_id)
    # As a mouth leaves it that died 25 h ago before T4b: attempted, no receipt.
    scene.forget("ada", "UPDATE said SET state = 'attempted', event_id = NULL, attempted_at = attempted_at - 90000000")
    mouth.start()
    wait_until("its receipt again", lambda: unsent(scene) == 0)
    assert scene.rows("ada", "SELECT event_id, state FROM said") == [{"event_id": event_id, "state": "sent"}]
    assert "kind=said.found" in mouth.journal()
    assert len([event for event in bob.history(room) if event["sender"] == her and event["type"] == "m.room.message"]) == 1
