"""Shapes: what every run of one Mind's Self stands on."""

from dataclasses import dataclass

from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.mind.records import Run
from mind_body.mind.store import Mind
from mind_body.mind.work_records import FollowUp
from mind_body.model.lease import Lease
from mind_body.self_run.constants import Constants
from mind_body.self_run.opening import Bench
from mind_body.settings import MindConfig


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
