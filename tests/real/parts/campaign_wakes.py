"""Rule: what the minds of a household say, at rest, about who was woken for what: everything once, and nobody in vain.

One message has one turn that answered it; one end of work, one turn that told it; one piece of work, one run that brought it to its
end. A run that came to its end in order had something to do. A scheduled wake is one run of one Mind.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.real.parts.campaign_bills import BEAT
from tests.real.parts.scene import Scene

MAIL = """SELECT heard.body, count(turn.id) AS times FROM heard
    LEFT JOIN turn_heard ON turn_heard.seq = heard.seq AND turn_heard.role = 'mail'
    LEFT JOIN turn ON turn.id = turn_heard.turn_id AND turn.state = 'replied'
    WHERE heard.standing = 'mail' GROUP BY heard.seq"""
ENDS = """SELECT run.id AS body, count(turn.id) AS times FROM run
    LEFT JOIN turn_run ON turn_run.run_id = run.id AND turn_run.told = 'ended'
    LEFT JOIN turn ON turn.id = turn_run.turn_id AND turn.state = 'replied'
    WHERE run.kind = 'self_run' AND run.ended_at IS NOT NULL GROUP BY run.id"""
RESULTS = """SELECT follow_up_id AS body, count(*) AS times FROM run
    WHERE kind = 'self_run' AND outcome = 'result' GROUP BY follow_up_id"""
IN_VAIN = "SELECT id, cause FROM run WHERE kind = 'persona_turn' AND outcome = 'done' AND turns = 0"
BEATS = "SELECT opened_at FROM run WHERE cause = 'beat' AND opened_at >= ?"
WORDS = "SELECT turn.received FROM turn JOIN run ON run.id = turn.run_id WHERE run.cause = 'beat' AND turn.state = 'replied'"


@dataclass
class Wakes:
    """What was found."""

    run_twice: int = 0
    wake_lost: int = 0
    wrong: list[str] = field(default_factory=list)

    def judge(self, what: str, times: int) -> None:
        """Of what should have happened once."""
        self.run_twice += times > 1
        self.wake_lost += times == 0
        if times != 1:
            self.wrong.append(f"{times} times {what}")


def judge_wakes(scene: Scene, minds: Iterable[str], said_at_home: Iterable[str]) -> Wakes:
    """Nothing runs any more. `said_at_home`: what was read in the room where they speak unprompted."""
    found, said = Wakes(), Counter(word for text in said_at_home for word in BEAT.findall(text))
    for mind in minds:
        for what, sql in (("answered", MAIL), ("told the end of", ENDS), ("brought to its end", RESULTS)):
            for row in scene.rows(mind, sql):
                found.judge(f"{mind} {what} {row['body'][:60]}", row["times"])
        for row in scene.rows(mind, IN_VAIN):
            found.judge(f"in vain {mind}'s run {row['id']} ({row['cause']})", 2)
        for row in scene.rows(mind, WORDS):
            for word in set(BEAT.findall(row["received"])):
                found.judge(f"said {word}", said.pop(word, 0))
    for word, times in said.items():
        # Said by a turn that is on record as something else than answered.
        found.judge(f"unrecorded, said {word}", times + 1)
    return found


def count_beats(scene: Scene, minds: Iterable[str], since: int) -> int:
    """Scheduled wakes of the host since an instant (ms)."""
    return sum(len(scene.rows(mind, BEATS, since)) for mind in minds)
