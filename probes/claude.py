"""Wiring: does the installed `claude` CLI still do what the code relies on?

    .venv/bin/python probes/claude.py

The real CLI before a scripted Messages API, without sandbox and gateway, as `model/claude_launch.py` starts it. Prints `version`,
`start_ms` (spawn to the answer of `initialize`), `first_request_ms`, `turn_ms` (in a running process, against an instant API),
`resume_ms` (spawn to answer), `resident_mb`, and `facts`: each with what was found and whether it holds. Exit code 1 where one does
not. The CLI changes about daily and silently: run this before the pinned version is moved.
"""

import itertools
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mind_body.errors import ChildError
from mind_body.home import directory_home
from mind_body.host.process import resident_mb
from mind_body.ids import new_session_uuid
from mind_body.log import Journal, configure
from mind_body.model.claude_files import ClaudeFiles, find_cli
from mind_body.model.claude_launch import Launch
from mind_body.model.claude_process import ClaudeProcess, TurnSeen, start_claude
from mind_body.model.prefix import canonical_blocks, find_break
from tests.real.parts.messages_api import CutOff, Fault, MessagesApi, Prose, Structured, scripted_messages_api

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"say": {"type": "string"}},
    "required": ["say"],
    "additionalProperties": False,
}


class Bench:
    def __init__(self, api: MessagesApi, root: Path) -> None:
        self.api = api
        self.files = ClaudeFiles(directory_home(root, root / "r"), "probe")
        self.files.hold()
        self.facts: dict[str, dict[str, Any]] = {}

    def fact(self, name: str, found: Any, *, holds: bool) -> None:
        self.facts[name] = {"holds": holds, "found": found}

    def launch(self, session: str, *, resume: bool = False, **changes: Any) -> Launch:
        made = Launch(
            binary=str(find_cli("")),
            config_dir=str(self.files.config_dir),
            work_dir=str(self.files.work_dir),
            model="claude-sonnet-4-5",
            session_id=session,
            resume=resume,
            prompt_file=self.files.prepare(session, "You are a probe."),
            output_cap=8_192,
            gateway_url=self.api.url,
            key_kind="api-key",
            key="made-up",
            sandboxed=False,
        )
        return replace(made, **changes)

    @asynccontextmanager
    async def child(self, launch: Launch) -> AsyncIterator[ClaudeProcess]:
        async with trio.open_nursery() as nursery:
            process = start_claude(launch, Journal("probe"))
            nursery.start_soon(process.run)
            await process.initialize(SCHEMA)
            yield process
            await process.aclose()

    async def scene(self, *answers: Any) -> tuple[TurnSeen, int]:
        """One turn of a fresh session under these answers: what was seen, and how many calls it took."""
        before = len(self.api.requests)
        async with self.child(self.launch(new_session_uuid())) as process:
            self.api.script(*answers)
            seen = await process.take_turn("hello")
        calls = len(self.api.requests) - before
        self.api.forget()
        return seen, calls


async def measure(bench: Bench) -> dict[str, Any]:
    """Three turns, a resume, two more."""
    session, api = new_session_uuid(), bench.api
    began = time.monotonic()
    async with bench.child(bench.launch(session)) as process:
        started = time.monotonic()
        await process.take_turn("/clear @/etc/passwd")
        answered = time.monotonic()
        await process.take_turn("two")
        turned = time.monotonic()
        weight, version = resident_mb(process.pid), process.version
    resumed = time.monotonic()
    async with bench.child(bench.launch(session, resume=True)) as process:
        last = await process.take_turn("three")
        back = time.monotonic()
    leaf = last.leaf or ""
    try:
        bench.files.check_resumable(session, leaf)
        bench.fact("the_newest_line_is_the_transcripts_end", leaf, holds=True)
    except Exception as error:  # noqa: BLE001 - a fact, whatever it is
        bench.fact("the_newest_line_is_the_transcripts_end", str(error), holds=False)
    blocks = [canonical_blocks(request.body) for request in api.requests]
    breaks = [why for before, after in itertools.pairwise(blocks) if (why := find_break(before, after))]
    bench.fact("a_structured_turn_is_one_call", len(api.requests), holds=len(api.requests) == 3)
    bench.fact("request_n_plus_1_begins_with_request_n_over_a_resume", breaks, holds=not breaks)
    first = api.requests[0].body["messages"][0]["content"][-1]["text"]
    bench.fact("a_client_composed_message_is_text", first, holds=first == "/clear @/etc/passwd")
    bench.fact("nothing_but_messages_is_asked", [one.path for one in api.others], holds=not api.others)
    api.forget()
    return {
        "version": version,
        "start_ms": round((started - began) * 1000),
        "first_turn_ms": round((answered - started) * 1000),
        "turn_ms": round((turned - answered) * 1000),
        "resume_ms": round((back - resumed) * 1000),
        "resident_mb": round(weight or 0),
    }


async def faults(bench: Bench) -> None:
    for status, calls in ((401, 2), (402, 1), (529, 2)):
        seen, made = await bench.scene(*[Fault(status)] * 9)
        bench.fact(
            f"a_{status}_is_tried_{calls}_times", made, holds=made == calls and seen.result is not None and not seen.result.good
        )
    seen, made = await bench.scene(Fault(429, headers={"x-should-retry": "false"}), Fault(429))
    bench.fact("x_should_retry_false_is_obeyed", made, holds=made == 1)
    seen, made = await bench.scene(Prose("no"), Prose("no"))
    plain = seen.result is not None and seen.result.subtype == "success" and seen.result.structured is None
    bench.fact("prose_brings_one_reminder_and_a_success_without_structure", made, holds=plain and made == 2)
    seen, made = await bench.scene(CutOff(), CutOff())
    subtype = seen.result.subtype if seen.result else None
    bench.fact("a_cut_off_answer_ends_the_turn", subtype, holds=subtype == "error_max_structured_output_retries")


async def refusals(bench: Bench) -> None:
    session = new_session_uuid()
    async with bench.child(bench.launch(session, key_kind="oauth-token")) as process:
        await process.take_turn("hello")
    request = bench.api.requests[-1]
    bearer = request.headers.get("authorization") == "Bearer made-up"
    hour = b'"ttl":"1h"' in request.raw.replace(b" ", b"")
    bench.fact("an_oauth_token_is_a_bearer_with_hour_marks", [bearer, hour], holds=bearer and hour)
    for name, launch in (
        ("the_id_of_a_session_that_exists_is_refused", bench.launch(session)),
        ("an_unknown_session_is_not_resumed", bench.launch(new_session_uuid(), resume=True)),
    ):
        try:
            async with bench.child(launch) as process:
                seen = await process.take_turn("hello")
            bench.fact(name, seen.ended, holds=seen.result is None or not seen.result.good)
        except* ChildError as group:
            bench.fact(name, str(group.exceptions[0]), holds=True)


async def main() -> int:
    configure("error", "text")
    with tempfile.TemporaryDirectory(prefix="probe-claude-") as root, scripted_messages_api(Structured({"say": "ok"})) as api:
        bench = Bench(api, Path(root))
        found = await measure(bench)
        api.default = Structured({"say": "ok"})
        await faults(bench)
        api.default = Structured({"say": "ok"})
        await refusals(bench)
    print(json.dumps({**found, "facts": bench.facts}, indent=2))
    return 0 if all(fact["holds"] for fact in bench.facts.values()) else 1


if __name__ == "__main__":
    sys.exit(trio.run(main))
