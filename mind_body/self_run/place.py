"""Wiring: what every run of one Mind's Self stands on."""

from dataclasses import dataclass, replace

from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.mind.records import Run
from mind_body.mind.store import Mind
from mind_body.mind.work_records import FollowUp
from mind_body.model.lease import Lease
from mind_body.self_run.constants import Constants
from mind_body.self_run.opening import Bench
from mind_body.settings import MindConfig, SelfConfig


@dataclass(frozen=True, slots=True)
class Place:
    """One Self at its post, under one configuration."""

    post: Post
    name: str
    config: MindConfig
    mind: Mind
    journal: Journal
    bench: Bench
    lease: Lease
    constants: Constants

    @property
    def holder(self) -> str:
        return self.post.hold.holder


@dataclass(frozen=True, slots=True)
class Work:
    """A run, and what it works on."""

    run: Run
    asked: FollowUp


def make_constants(config: SelfConfig) -> Constants:
    """Those of design §8, where the operator has not set others."""
    return replace(
        Constants(),
        ceiling_tokens=config.ceiling_tokens,
        flush_headroom_tokens=config.flush_headroom_tokens,
        flush_grace_ms=round(config.flush_grace_s * 1000),
        stall_ms=round(config.stall_s * 1000),
    )
