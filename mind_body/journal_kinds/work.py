"""Shapes: journal kinds of work, and the Self that does it."""

from collections.abc import Mapping

from mind_body.journal_kinds.kind import NOTHING, Kind

WORK: Mapping[str, Kind] = {
    "work.queued": Kind(
        "b9eba85fe562bbce2080fd02b654a5a4",
        "info",
        "Work waits, and may begin later.",
        "REASON says what holds it up: a run under way, a pause, a spent cap. UNTIL says for how long where that is known.",
        "`mind why NAME` says what would end it.",
    ),
    "work.skipped": Kind(
        "c70703f8e2e2b1b85ade04c98e9a26b8",
        "info",
        "Work waits, and nothing begins by itself.",
        "She is held, or has no Self.",
        "`mind brake release NAME`, or `self.enabled` in her file.",
    ),
    "work.confirmed": Kind(
        "69e797919ba0f6461f2620f075ffcba9",
        "info",
        "Who asked for work confirmed its brief.",
        "It begins when its turn comes.",
        NOTHING,
    ),
    "work.dropped": Kind(
        "6b1aa000c95b7e1c31d99edb879b0244",
        "notice",
        "Work is given up.",
        "It was declined, not confirmed in time, stopped, or an operator gave it up. REASON says which; its thread is told.",
        "To have it done all the same, ask for it again.",
    ),
    "campaign.closed": Kind(
        "8fecab330f815b5609ceb960836bd102",
        "notice",
        "A campaign is closed.",
        "Its work came to nothing too often and an operator left it at that. What is queued for it waits.",
        "To go on, open another campaign: `mind campaign open`.",
    ),
    "self.began": Kind(
        "8e1d14d53ebbb62f6ef46656d982a068",
        "info",
        "Her Self begins to work.",
        "SESSION_CHOICE says with which session: a new one, one that goes on, one after a hand-off.",
        NOTHING,
    ),
    "self.ended": Kind(
        "190b682f9c9da7f8f76c353221bc3757",
        "info",
        "Her Self has ended a run.",
        "The one line with all its figures; OUTCOME and REASON say how it ended. At warning the CLI counted otherwise than we "
        "did: FIGURES.",
        "`mind run show RUN` has its result.",
    ),
    "self.fed": Kind(
        "24305da659689f6fc4cf14ea69b40b90",
        "info",
        "Her Self was given a message.",
        "What it is to do, or what somebody says to it while it works.",
        NOTHING,
    ),
    "self.flush-asked": Kind(
        "c643d0d883a56bab01771b65bc6db118",
        "info",
        "Her Self is asked for its hand-off.",
        "Its context is nearly full, or it has to end. What it writes is what the next session begins with.",
        NOTHING,
    ),
    "self.handed-off": Kind(
        "00de2ab10045f5de3ab7b081ae52be99",
        "info",
        "The hand-off of her Self is stored.",
        "ORIGIN says whether the model wrote it or it was made from the record; CUT whether it was too long.",
        NOTHING,
    ),
    "self.compacted": Kind(
        "9ab5aedc972d9654a9410195e4ba2051",
        "warning",
        "The CLI shortened a session by itself.",
        "The prefix that was cached is gone, and it may have forgotten what it was told.",
        "If it repeats, lower `self.ceiling_tokens`, so that it hands off before.",
    ),
    "self.interrupted": Kind(
        "2e361d5f77d9108d396ca1c253cace16",
        "info",
        "The turn of her Self is interrupted.",
        "The first step to the end of a run. REASON says why it ends.",
        NOTHING,
    ),
    "self.end-asked": Kind(
        "cf756156d8a79e63ddd61de3b9f4071d",
        "info",
        "Her Self is asked to end its session.",
        "One step to the end of a run.",
        NOTHING,
    ),
    "self.stdin-closed": Kind(
        "0e9b9593d8144dd3bfa831c1d003f3d0",
        "info",
        "Her Self is told nothing more.",
        "One step to the end of a run: its stdin is closed.",
        NOTHING,
    ),
    "self.terminated": Kind(
        "ac24acfcdb8275111ef4b797476e1060",
        "notice",
        "Her Self is told to end by SIGTERM.",
        "It did not end when it was asked to.",
        NOTHING,
    ),
    "self.killed": Kind(
        "956c20c3710fb449f74259a1d3c97755",
        "warning",
        "The sandbox of her Self was killed, and everything in it.",
        "It ended by none of the steps before. The record of its run is kept; its session is not gone on with.",
        "If it repeats, look at what its work starts: `mind run show RUN`.",
    ),
    "self.reopened": Kind(
        "00840db54dcad95e05b1780932749a95",
        "warning",
        "The child of her Self went before it answered anything.",
        "Another one is started, once.",
        "If it repeats, `mind doctor` tries the CLI and its sandbox.",
    ),
    "self.failed": Kind(
        "3ef8028b11751491f03831174988989b",
        "error",
        "Her Self cannot work.",
        "Something that only an operator can mend: the CLI, its sandbox, its key, a file. It is not started again before that.",
        "Do what the line says; `mind doctor` checks it.",
    ),
    "claude.started": Kind(
        "9141b0bfabf55dd2d3403e7b59c7ffc5",
        "info",
        "The claude CLI's child answers.",
        "VERSION is what it says of itself.",
        NOTHING,
    ),
    "claude.stderr": Kind(
        "96c4efcc7ea48350d71a632679b4c72b",
        "debug",
        "The claude CLI's child wrote to its stderr.",
        "Its own words, cut; shown at debug alone because nobody vouches for what is in them.",
        NOTHING,
    ),
}
