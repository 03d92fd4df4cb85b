"""Loop: one journal line per turn, with its figures. Never a word of what was heard or said (design §11)."""

from mind_body.log import Level
from mind_body.mind.records import TurnState
from mind_body.persona.closing import Course
from mind_body.persona.opening import Opened, Place
from mind_body.persona.outcomes import reason_of, state_of, total_usage

_LEVELS: dict[TurnState, Level] = {TurnState.REPLIED: "info"}


def tell_turn(place: Place, opened: Opened, course: Course, *, recorded: bool) -> None:
    """What the turn came to."""
    state = state_of(course.outcome)
    usage, read = total_usage(course.results), course.read
    last = course.results[-1].last_request if course.results else None
    kind, sentence = (
        _sentence(opened, course, state) if recorded else ("turn.discarded", "Her run was ended; the reply is discarded.")
    )
    place.journal.note(
        kind,
        sentence,
        level=_LEVELS.get(state, "warning") if recorded else "warning",
        RUN=opened.run.id,
        TURN=opened.turn_id,
        CONVERSATION=opened.batch.conversation,
        SESSION=opened.plan.session_id,
        SESSION_CHOICE=opened.why_session,
        MESSAGES=",".join(heard.handle for heard in opened.batch.mail) or None,
        PREFIX_TOKENS=last.prefix if last else None,
        CACHE_READ=usage.cache_read,
        CACHE_WRITE=usage.cache_write_5m + usage.cache_write_1h,
        OUTPUT_TOKENS=usage.output,
        COST_MICRO_USD=sum(result.cost_micro_usd for result in course.results),
        MODEL_MS=course.model_ms,
        CALLS=len(course.asked),
        RUNS_TOLD=",".join(one.run.id for one in opened.news) or None,
        DROPPED="; ".join(read.dropped) if read and read.dropped else None,
        WORK="; ".join(course.work.notes) or None,
        URGENCY=read.wish.urgency if read else None,
        TEMPO_S=read.wish.tempo_s if read else None,
        REASON=reason_of(course.outcome),
    )


def _sentence(opened: Opened, course: Course, state: TurnState) -> tuple[str, str]:
    heard = (
        _count(len(opened.batch.mail), "message")
        if opened.batch.mail
        else "a scheduled wake"
        if opened.scheduled
        else "news of her work"
    )
    match state:
        case TurnState.REPLIED:
            said = len(course.read.say) if course.read else 0
            return (
                "turn.replied",
                f"She answered {heard} with {_count(said, 'message')}." if said else f"She kept silent on {heard}.",
            )
        case TurnState.UNREADABLE:
            return "turn.unreadable", f"Her answer to {heard} could not be read; nothing is said."
        case TurnState.REFUSED:
            return "turn.refused", f"The model declined {heard}; nothing is said."
        case TurnState.LIMITED:
            return "turn.limited", f"A limit holds {heard} back until its reset."
        case _:
            again = f"; {heard} will be taken again" if opened.batch.mail else ""
            return "turn.failed", f"The model call came to nothing{again}."


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
