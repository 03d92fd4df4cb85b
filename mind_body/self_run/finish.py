"""Loop: from the decision that a run is over to its record: nothing passes any more, the figures are added up, the end is written
and told, and the child is kept or let go.
"""

import json
from dataclasses import dataclass

import trio

from mind_body.clock import now_ms
from mind_body.crash import crash_point
from mind_body.host.poke import send_poke
from mind_body.mind.turning import SessionUse
from mind_body.model.prefix import fingerprint
from mind_body.model.seat import Grant
from mind_body.model.session import Limited
from mind_body.model.spend import Trouble
from mind_body.model.told import compare_costs
from mind_body.self_run.actions import Outcome, Record
from mind_body.self_run.course import Course
from mind_body.self_run.ending import End, write_end
from mind_body.self_run.figures import Totals, add_up, find_limit, find_trouble
from mind_body.self_run.left import render_record
from mind_body.self_run.meter import compare, total_usage
from mind_body.self_run.place import Place, Work
from mind_body.self_run.tell import Teller
from mind_body.self_run.worker import Worker, mono_ms

SETTLE_S = 1.0
"""For the gateway to note the end of a request that is broken off."""


@dataclass(frozen=True, slots=True)
class Finish:
    """What the end of one run is made from."""

    place: Place
    work: Work
    course: Course
    worker: Worker
    grant: Grant
    teller: Teller

    async def finish(self, record: Record) -> None:
        """Write and tell it; then the child is kept where it may stay."""
        place, course = self.place, self.course
        course.recorded = True
        self.worker.seat.close_grant()
        with trio.move_on_after(SETTLE_S):
            await self.grant.idle.wait()
        totals = add_up(self.grant.passed)
        self.teller.show(totals.cost_micro_usd, totals.requests)
        crash_point("self.before-end")
        end = self._make_end(record, totals)
        with place.mind.write() as tx:
            ended = write_end(tx, end, place.holder, now_ms())
        crash_point("self.run-ended")
        self._tell(end, totals, ours=ended is not None)
        await self._tell_lease(end)
        for path in (place.post.home.mouth_socket, place.post.home.heartbeat_socket):
            send_poke(path)
        if record.stays and end.use is not None:
            place.bench.rest(totals.cost_micro_usd)
        else:
            await place.bench.let_go()

    async def _tell_lease(self, end: End) -> None:
        """What it cost by the CLI's own word; and a limit that no request of its own showed."""
        lease, passed, trouble = self.place.lease, self.grant.passed, end.trouble
        costs = compare_costs(passed, self.course.meter.told)
        if costs is not None:
            lease.report(*costs)
        if isinstance(trouble, Limited) and find_limit(passed, now_ms()) is None:
            with trio.move_on_after(SETTLE_S):
                await lease.tell(f"{self.work.run.id}.told", Trouble("limited", trouble.until, trouble.reason))

    def _make_end(self, record: Record, totals: Totals) -> End:
        course, passed = self.course, self.grant.passed
        done = record.outcome is Outcome.RESULT
        result = course.result_text if done else ""
        told = Outcome.INTERRUPTED if course.calls.stopped and not done else record.outcome
        return End(
            run=self.work.run,
            record=record,
            why=course.ladder.why,
            totals=totals,
            result=result or None,
            session_id=course.seen.session_id,
            use=self._use(record),
            handoff=render_record(self.work, course, record.reason, now_ms()),
            said=self.teller.end(told, result, totals.cost_micro_usd),
            trouble=find_trouble(record.outcome, passed, course.seen.limit_until, now_ms()),
            answered=bool(passed) and passed[-1].metered.complete,
        )

    def _use(self, record: Record) -> SessionUse | None:
        """Where the session can be gone on with: its last turn was seen to end, and nobody had to be killed for it."""
        course, seen, blocks = self.course, self.course.seen, self.worker.seat.main.blocks
        lost = record.outcome in {Outcome.FLUSHED, Outcome.DIED, Outcome.KILLED} or course.handoff_stored
        if lost or seen.leaf is None or seen.busy or course.ladder.terminated_at is not None:
            return None
        cursor = json.dumps({"leaf": seen.leaf, "sent": fingerprint(blocks) if blocks else None})
        window = seen.window_tokens or 0
        ceiling = self.place.constants.ceiling(seen.window_tokens)
        return SessionUse(cursor, course.meter.prefix_tokens, window, ceiling)

    def _tell(self, end: End, totals: Totals, *, ours: bool) -> None:
        """The one canonical line."""
        course, record, usage = self.course, end.record, totals.usage
        odd = compare(total_usage(course.meter.told.totals), usage)
        sentence = f"The run ended: {record.reason}." if ours else "The run was ended by somebody else; its end is not recorded."
        self.place.journal.note(
            "self.ended" if ours else "run.lost",
            sentence,
            level="info" if ours and odd is None else "warning",
            RUN=self.work.run.id,
            CONVERSATION=self.work.asked.conversation,
            WORKSPACE=self.work.asked.workspace,
            OUTCOME=record.outcome.value,
            REASON=record.reason,
            SESSION=course.seen.session_id,
            VERSION=course.seen.version or None,
            ELAPSED_MS=mono_ms() - course.began_at,
            REQUESTS=totals.requests,
            PREFIX_TOKENS=course.meter.prefix_tokens,
            WINDOW_TOKENS=course.seen.window_tokens,
            CACHE_READ=usage.cache_read,
            CACHE_WRITE=usage.cache_write_5m + usage.cache_write_1h,
            OUTPUT_TOKENS=usage.output,
            COST_MICRO_USD=totals.cost_micro_usd,
            MODELS=json.dumps(totals.per_model),
            COMPACTED=len(course.seen.compacted) or None,
            SKIPPED_LINES=(self.worker.child.skipped or None) if self.worker.child else None,
            FIGURES=odd,
        )
