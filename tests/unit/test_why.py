"""`mind why`: what it says is what the heartbeat does, on the same mind at the same instant; and each thing that may hold her off
is told with its end.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.cli.reasons import Explained, Topic, explain
from mind_body.cli.why_facts import Eyes
from mind_body.clock import now_ms
from mind_body.config import read_host_config, read_mind_config
from mind_body.control.govern import HOSTS, window_of
from mind_body.heartbeat.claim import Claim
from mind_body.heartbeat.launch import NEVER_SOONER_MS
from mind_body.heartbeat.look import Heartbeat
from mind_body.heartbeat.wake import Open, Rest, Wait
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.lease.grant import Stop
from mind_body.lease.ledger import NewCall, admit_call, save_stop
from mind_body.lease.ledger_file import open_ledger
from mind_body.mind.asking_records import Campaign, Question
from mind_body.mind.campaigns import close_campaign, open_campaign
from mind_body.mind.follow_ups import admit_follow_up, open_self_run, read_follow_up
from mind_body.mind.places import admit_turn_places
from mind_body.mind.questions import admit_question
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.runs import adopt_run, live_run, open_run, set_pause
from mind_body.mind.store import Transaction, open_mind
from mind_body.mind.work_records import NewFollowUp
from tests import builders
from tests.builders import NOW, OPERATOR
from tests.examples import share
from tests.fakes import Notes
from tests.homes import call, make_home

ROOM = "!a:example.org"
HOUR = 3_600_000
MENDED = "Sooner, when you mend it: her file, her key, the dial, or a release."
SELF = "[self]\nenabled = true\n"
BEAT = f'beat = true\nhome_room = "{ROOM}"\n'


@dataclass
class Scene:
    """A Mind, `ada`, with what a test puts into her mind."""

    home: Home

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with closing(open_mind(self.home.mind_db("ada"))) as mind, mind.write() as tx:
            yield tx

    def explain(self, now: int = NOW) -> Explained:
        eyes = Eyes(self.home, read_host_config(self.home), "ada")
        with closing(open_mind(self.home.mind_db("ada"))) as mind, mind.read() as tx:
            return explain(eyes.read(tx, read_mind_config(self.home, "ada"), now))

    def topic(self, name: str, now: int = NOW) -> Topic:
        return next(one for one in self.explain(now).topics if one.name == name)

    def words(self, name: str, now: int = NOW) -> str:
        topic = self.topic(name, now)
        return "\n".join((topic.told, *topic.because))

    def beats(self, now: int = NOW) -> tuple[dict[str, Run | None], int | None]:
        """What is live once the heartbeat has looked, and when it looks again."""
        heartbeat = Heartbeat(self.home, read_host_config(self.home), Notes())
        try:
            due = trio.run(lambda: heartbeat.look_round(now, thorough=True))
        finally:
            heartbeat.close()
        with closing(open_mind(self.home.mind_db("ada"))) as mind, mind.read() as tx:
            return {"persona": live_run(tx, RunKind.PERSONA_TURN), "self": live_run(tx, RunKind.SELF_RUN)}, due


def make(root: Path, toml: str = "", host: str = "") -> Scene:
    people = f'[people]\noperators = ["{OPERATOR}"]\nmay_start = ["*"]\nbots = ["@bot:example.org"]\n'
    home = builders.make_home(root, "ada", toml=f"{people}{toml}", host=host)
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.write() as tx:
        builders.insert_room(tx, ROOM)
    return Scene(home)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return make(tmp_path, SELF)


def work(tx: Transaction, asked_by: str = OPERATOR, campaign: str | None = None) -> str:
    return admit_follow_up(tx, NewFollowUp(f"room:{ROOM}", ROOM, None, asked_by, "weed", "main", campaign), NOW - HOUR).id


# -- the same as the heartbeat ----------------------------------------------------------------------------------------------

WHOLE = ("limited", "authentication", "payment", "spend", "budget", "self-limited", "self-fault", "network")
PAUSES = st.sampled_from([*WHOLE, f"spend:room:{ROOM}", f"run-cap:room:{ROOM}", f"self-spend:room:{ROOM}"])


@settings(max_examples=share(0.5))
@given(
    mail=st.lists(
        st.tuples(st.sampled_from([OPERATOR, "@bob:example.org", "@bot:example.org"]), st.integers(-2000, 6 * HOUR)), max_size=3
    ),
    pauses=st.lists(st.tuples(PAUSES, st.integers(-HOUR, HOUR)), max_size=2),
    persona=st.sampled_from(
        ["", BEAT, f'{BEAT}quiet_hours = ["07:00-09:00"]\n', 'quiet_hours = ["07:00-09:00"]\nquiet_for = "everyone"\n']
    ),
    acted=st.none() | st.integers(0, 2 * 24 * HOUR),
    cost=st.sampled_from([0, 9_999_999, 10_000_000]),
    works=st.sampled_from([0, 0, 1, 2]),
    held=st.sampled_from([False, False, False, True]),
    anew=st.booleans(),
)
def test_what_is_explained_is_what_the_heartbeat_does(
    mail: list[tuple[str, int]],
    pauses: list[tuple[str, int]],
    persona: str,
    acted: int | None,
    cost: int,
    works: int,
    held: bool,
    anew: bool,
) -> None:
    with TemporaryDirectory(prefix="why-") as directory:
        scene = make(Path(directory), f"{SELF}[persona]\n{persona}")
        if not anew:
            scene.beats(NOW - 3 * 24 * HOUR)  # the brake was seen before anything happened
        with scene.write() as tx:
            for sender, ago in mail:
                builders.insert_heard(tx, ROOM, at=NOW - ago, sender=sender, person=sender != "@bot:example.org")
            for cause, ahead in pauses:
                set_pause(tx, Pause(cause, NOW + ahead, "because", since=NOW - HOUR))
            if acted is not None:
                run, session = (
                    builders.insert_run(tx, opened_at=NOW - acted, ended_at=NOW - acted, turns=1),
                    builders.insert_session(tx),
                )
                builders.insert_turn(tx, "t", run_id=run, session_id=session, ended_at=NOW, cost_micro_usd=cost)
            for _ in range(works):
                work(tx)
        if held:
            builders.hold(scene.home, "ada", "enough")
        told = scene.explain()
        live, due = scene.beats()
        persona_run, self_run = live["persona"], live["self"]
        decided, claimed = told.decided, told.claimed
        scheduled = next(topic for topic in told.topics if topic.name == "scheduled wakes")
        if isinstance(decided, Open) and (decided.cause != "beat" or scheduled.state == "now"):
            assert persona_run is not None
            assert (persona_run.cause, persona_run.conversations) == (decided.cause, decided.conversations)
        else:
            assert persona_run is None
        assert (self_run is not None) == isinstance(claimed, Claim)
        if isinstance(claimed, Claim) and self_run is not None:
            assert self_run.follow_up_id == claimed.follow_up.id
        waits = [max(one.until, NOW + NEVER_SOONER_MS) for one in (decided, claimed) if isinstance(one, Wait)]
        assert not waits or due is not None
        assert due is None or not waits or due <= min(waits)
        # A conversation's own pause is no decision about her: it is looked at again when that is over.
        apart = any(":" in cause for cause, _ in pauses)
        if persona_run is None and self_run is None and waits and scheduled.state != "waits" and not apart:
            assert due == min(waits)
        for topic in told.topics:
            assert topic.told.endswith(".")
            assert (topic.state in {"waits", "now"}) == (topic.next_at is not None)
            assert topic.next_at is None or topic.next_at >= NOW


# -- what is told -----------------------------------------------------------------------------------------------------------


def test_nobody_and_nothing_is_told_as_it_is(tmp_path: Path) -> None:
    scene = make(tmp_path)
    assert scene.words("mail") == "Nobody waits for an answer."
    assert scene.words("scheduled wakes") == "Off: [persona] beat is false."
    assert scene.words("work") == "She has no Self: [self] enabled is false."
    assert isinstance(scene.explain().decided, Rest)


def test_each_pause_is_told_with_its_end_in_the_hosts_zone_and_what_mends_it(tmp_path: Path) -> None:
    scene = make(tmp_path, host='time_zone = "Europe/Berlin"\n')
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        set_pause(tx, Pause("network", NOW + 180_000, "no answer"))
        set_pause(tx, Pause("authentication", NOW + HOUR, "HTTP 401", since=NOW + 1))
    scene.beats(NOW - HOUR)
    with scene.write() as tx:
        set_pause(tx, Pause("authentication", NOW + HOUR, "HTTP 401", since=NOW + 1))
    topic = scene.topic("mail")
    assert topic.told == "1 message waits: she acts at 10:00 (in 1 h)."
    assert topic.next_at == NOW + HOUR
    assert topic.because == (
        "Paused (network): no answer; over at 09:03 (in 3 min).",
        f"Paused (authentication): HTTP 401; over at 10:00 (in 1 h). {MENDED}",
    )


def test_what_no_wait_helps_is_told_with_what_does(scene: Scene) -> None:
    scene.beats(NOW - HOUR)
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        set_pause(tx, Pause(f"run-cap:room:{ROOM}", NOW + HOUR, "too dear", since=NOW + 1))
    topic = scene.topic("mail")
    assert (topic.state, topic.next_at) == ("rests", None)
    (away,) = topic.because
    assert away.endswith("paused (run-cap): too dear; again when one run may cost more (`mind dial ada --base-run-usd …`).")


def test_a_release_that_the_heartbeat_has_not_seen_counts_as_mended(scene: Scene) -> None:
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        set_pause(tx, Pause("payment", NOW + HOUR, "HTTP 402", since=NOW - 1))
    assert scene.topic("mail").state == "now"
    assert scene.beats()[0]["persona"] is not None


def test_a_cap_of_the_host_is_told_with_what_alone_lifts_it(scene: Scene) -> None:
    scene.beats(NOW - HOUR)
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        set_pause(tx, Pause("spend", NOW + HOUR, f"$50.00 of the $50.00 that {HOSTS} in a day", since=NOW - 1))
    (because,) = scene.topic("mail").because
    assert because.endswith("Sooner, when you raise [spend] of the host: nobody is asked about it.")
    assert scene.beats()[0]["persona"] is None


@pytest.mark.parametrize("seen", [True, False])
def test_a_conversation_that_has_cost_what_it_may_is_told_apart(scene: Scene, seen: bool) -> None:
    if seen:
        scene.beats(NOW - HOUR)
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        set_pause(tx, Pause(f"spend:room:{ROOM}", NOW + HOUR, "its cap", since=NOW - 1))
    topic = scene.topic("mail")
    assert topic.next_at is not None
    assert topic.state == ("waits" if seen else "now"), "a release that nobody has seen tries it anew"
    assert ("brings no turn: by @bob:example.org" in "".join(topic.because)) == seen
    assert (topic.next_at >= NOW + HOUR) == seen
    assert (scene.beats()[0]["persona"] is None) == seen


def test_quiet_hours_hold_back_everyone_but_operators(tmp_path: Path) -> None:
    scene = make(tmp_path, '[persona]\nquiet_hours = ["07:00-09:00"]\nquiet_for = "everyone"\n')
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
    assert "She keeps quiet hours; over at 09:00 (in 1 h)." in scene.words("mail")
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000, sender=OPERATOR)
    assert scene.topic("mail").state == "now"


def test_spending_is_told_with_the_cap_and_who_may_raise_it(scene: Scene) -> None:
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        run, session = builders.insert_run(tx, turns=1), builders.insert_session(tx)
        builders.insert_turn(tx, "t", run_id=run, session_id=session, ended_at=NOW, cost_micro_usd=11_000_000)
        work(tx)
    for name in ("mail", "work"):
        words = scene.words(name)
        assert "She has spent $11.00 of the $10.00 that she may in a day; over on 2027-01-16 at 00:00 (in 16 h" in words
        assert "`mind questions ada`" in words


def test_scheduled_wakes_are_told_with_their_spacing_and_the_silence(tmp_path: Path) -> None:
    scene = make(tmp_path, f"[persona]\n{BEAT}")
    assert "None before she has heard anything" in scene.words("scheduled wakes")
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - HOUR, state="closed")
        for number in range(3):
            builders.insert_run(tx, cause="beat", after_seq=9, opened_at=NOW - HOUR + number, ended_at=NOW - HOUR + number, turns=1)
    topic = scene.topic("scheduled wakes")
    assert topic.state == "waits"
    assert topic.next_at == NOW - HOUR + 2 + 24 * HOUR
    assert "They are 1 d apart: 4 h by the dial, doubled for each of 3 in silence." in topic.because
    builders.release(scene.home, "ada", base_cooldown_s=60)
    topic = scene.topic("scheduled wakes")
    assert "on a beat of the host; the next is now, and wakes one Mind" in topic.told
    assert "Beats of the host are 10 min apart." in topic.because
    assert scene.beats()[0]["persona"] is not None


@pytest.mark.parametrize(
    ("persona", "told"),
    [("beat = true\n", "there is no home_room"), ('beat = true\nhome_room = "!b:x"\n', "not in her home room !b:x: invite her")],
)
def test_scheduled_wakes_that_go_nowhere_say_why(tmp_path: Path, persona: str, told: str) -> None:
    assert told in make(tmp_path, f"[persona]\n{persona}").words("scheduled wakes")


def test_bots_that_get_no_more_and_accounts_that_had_their_day_are_named(tmp_path: Path) -> None:
    scene = make(tmp_path, "[persona]\nloop_turns = 1\ncounterpart_turns = 1\n")
    with scene.write() as tx:
        run, session = builders.insert_run(tx, turns=1), builders.insert_session(tx)
        seq = builders.insert_heard(tx, ROOM, sender="@bob:example.org", state="closed", at=NOW - HOUR)
        builders.insert_turn(tx, "t", run_id=run, session_id=session, ended_at=NOW - HOUR, opened_at=NOW - HOUR)
        builders.insert(tx, "turn_heard", turn_id="t", seq=seq, role="mail")
        admit_turn_places(tx, "t", [(ROOM, "")])
        builders.insert_heard(tx, ROOM, at=NOW - 10_000, sender="@bot:example.org", person=False)
        builders.insert_heard(tx, ROOM, at=NOW - 10_000, sender="@bob:example.org")
    words = scene.words("mail")
    assert words.startswith("1 message waits: she may act on 2027-01-16 at 00:00 (in 16 h).")
    assert f"by @bot:example.org in {ROOM}; she has taken 1 turns since a person last spoke in this room; again when" in words
    assert "she has taken 1 turns for @bob:example.org today; again on 2027-01-16 at 00:00 (in 16 h)." in words
    assert scene.beats()[0]["persona"] is None
    assert f"In {ROOM} bots get no more answers until a person speaks there." in call(scene.home, "why", "ada").stdout


def test_who_holds_a_run_is_told_and_one_whose_holder_died_is_closed_first(scene: Scene) -> None:
    with scene.write() as tx:
        run = open_run(tx, RunKind.PERSONA_TURN, [f"room:{ROOM}"], "direct", "1 message (direct)", NOW - 65_000)
    assert f"Run {run.id} for 'direct' (1 message (direct)) is under way since 1 min 5 s; nobody has taken it yet" in scene.words(
        "mail"
    )
    with scene.write() as tx:
        adopt_run(tx, run.id, "the-holder", NOW - 60_000)
    assert f"Run {run.id} has died (its holder is gone)" in scene.words("mail")
    hold = take_hold(scene.home.lock_file("persona", "ada"), "the-holder")
    assert hold is not None
    topic = scene.topic("mail")
    hold.release()
    assert (topic.state, topic.told.endswith("held by the-holder.")) == ("acting", True)


def test_work_is_told_piece_by_piece(scene: Scene) -> None:
    with scene.write() as tx:
        for slug in ("open", "closed"):
            open_campaign(tx, Campaign(slug, "x", "op", NOW, None))
        close_campaign(tx, "closed", NOW)
        passed, tried, free = work(tx, campaign="closed"), work(tx, "@bob:example.org"), work(tx)
        tx.execute("UPDATE follow_up SET run_id = 'r1' WHERE id = ?", (tried,))
        builders.insert_run(
            tx, id="r1", kind="self_run", follow_up_id=tried, opened_at=NOW - 1000, ended_at=NOW - 100, outcome="died", turns=1
        )
    topic = scene.topic("work")
    assert topic.told == "3 pieces of work wait: she acts as soon as the heartbeat looks."
    words = "\n".join(topic.because)
    assert f"{passed} for {OPERATOR} in 'main' is passed over: the campaign closed is closed." in words
    assert f"{tried} for @bob:example.org in 'main' waits: the last run came to nothing; over" in words
    assert f"{free} for {OPERATOR} in 'main' may begin." in words
    run = scene.beats()[0]["self"]
    assert run is not None
    assert run.follow_up_id == free


def test_work_that_came_to_nothing_waits_for_the_operators_and_not_for_time(scene: Scene) -> None:
    with scene.write() as tx:
        one = work(tx)
        for number in range(3):
            builders.insert_run(
                tx, id=f"r{number}", kind="self_run", follow_up_id=one, opened_at=NOW - HOUR, ended_at=NOW - HOUR, outcome="died"
            )
        admit_question(tx, Question("q", "breaker", f"work:{one}", "it came to nothing", NOW, None, None))
    topic = scene.topic("work")
    assert (topic.state, topic.next_at) == ("rests", None)
    assert "its last 3 runs came to nothing; her operators are asked" in topic.told
    assert "A question waits for an operator's answer: `mind questions ada`." in call(scene.home, "why", "ada").stdout


def test_a_running_self_and_what_waits_behind_it_are_told(scene: Scene) -> None:
    with scene.write() as tx:
        first = read_follow_up(tx, work(tx))
        assert first is not None
        assert open_self_run(tx, first, "asked", NOW - 5000) is not None
        work(tx)
    words = scene.words("work")
    assert "is under way since 5 s; nobody has taken it yet" in words
    assert "1 piece of work waits behind it." in words


# -- the verb ---------------------------------------------------------------------------------------------------------------


def test_organs_that_do_not_run_come_first(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True)
    first = call(home, "why", "ada").stdout.splitlines()[0]
    assert first.startswith("The heartbeat is stopped: nothing begins. The mouth is stopped: ")
    assert first.endswith("The lease is stopped: no model is called. `mind up` runs them.")
    with ExitStack() as stack:
        for organ in ("heartbeat", "mouth", "lease"):
            hold = take_hold(home.lock_file(organ), "x")
            assert hold is not None
            stack.callback(hold.release)
        told = call(home, "why", "ada").stdout
        assert "stopped" not in told
        assert "She has not heard her homeserver yet" in told
        assert json.loads(call(home, "why", "ada", "--json").stdout)["stopped"] == []


def test_a_held_mind_waits_for_her_release_and_for_nothing_else(scene: Scene) -> None:
    with scene.write() as tx:
        builders.insert_heard(tx, ROOM, at=NOW - 10_000)
        work(tx)
    builders.hold(scene.home, "ada", "back on Monday")
    told = call(scene.home, "why", "ada").stdout
    assert "ada is held: back on Monday. She hears, and does nothing else (`mind brake release ada`)." in told
    assert "Mail: 1 message waits, until she is released." in told
    assert "Work: 1 piece of work waits, until she is released." in told
    found = json.loads(call(scene.home, "why", "ada", "--json").stdout)
    assert (found["brake"], found["reason"], found["next_at"]) == ("held", "back on Monday", None)


def test_what_the_ledger_refuses_is_told_beside_her_own_record(tmp_path: Path) -> None:
    scene = make(tmp_path, host="[spend]\nday_usd = 1.0\n")
    window = window_of(read_host_config(scene.home), now_ms())
    call_of = NewCall("bea", "c", "persona", "r", "open", "key", "m", 1_000_000, window.day, window.month, now_ms())
    hers = NewCall("ada", "d", "persona", "r", "open", "key", "m", 0, window.day, window.month, now_ms())
    with closing(open_ledger(scene.home.ledger, begin=True)) as ledger, ledger.write() as tx:
        admit_call(tx, call_of)
        admit_call(tx, hers)
        save_stop(tx, "key", Stop("limited", now_ms() + HOUR, "the plan's limit", now_ms()))
    told = call(scene.home, "why", "ada").stdout
    assert f"All Minds together have used up $1.00 of $1.00 for {window.day} by the ledger" in told
    assert "The lease makes no call with her credential now; again" in told
    assert "(limited: the plan's limit)" in told
    scene.home.ledger.write_bytes(b"no ledger" * 1000)
    assert "The ledger cannot be read, and the lease refuses everything" in call(scene.home, "why", "ada").stdout


def test_every_key_is_in_the_help_and_an_unknown_mind_is_a_sentence(scene: Scene) -> None:
    told = " ".join(call(scene.home, "why", "--help").output.split())
    found = json.loads(call(scene.home, "why", "ada", "--json").stdout)
    for key in (*found, *found["topics"][0], *found["decided"], *found["decided"]["self"]):
        assert key in told, key
    unknown = call(scene.home, "why", "eve")
    assert (unknown.exit_code, len(unknown.stderr.splitlines())) == (78, 1)
