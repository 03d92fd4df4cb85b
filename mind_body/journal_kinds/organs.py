"""Shapes: journal kinds of daemons, the Minds that they serve, and `mind up`."""

from collections.abc import Mapping

from mind_body.journal_kinds.kind import NOTHING, Kind

ORGANS: Mapping[str, Kind] = {
    "mouth.started": Kind(
        "273198001d4cd6e2a951c27cb0b60654",
        "notice",
        "The mouth is ready.",
        "It hears and speaks for every Mind of this host.",
        NOTHING,
    ),
    "mouth.stopped": Kind(
        "dd1f5973c291a2eb2d1e7a60bf3badf7",
        "notice",
        "The mouth has ended.",
        "Nobody is heard before it runs again; the homeserver keeps what is said.",
        NOTHING,
    ),
    "mouth.mind-changed": Kind(
        "1eb5f3771e4de44ef24047aa43397a04",
        "notice",
        "The files of a Mind have changed, or are gone.",
        "The mouth signs her in anew with what is there now, or serves her no more.",
        NOTHING,
    ),
    "mouth.mind-failed": Kind(
        "d24d713d44a60572e3f40c961cb5abae",
        "error",
        "The mouth cannot serve a Mind.",
        "She neither hears nor speaks; the others do. It is tried again by itself.",
        "Do what the line says; `mind doctor` checks it.",
    ),
    "mouth.look-failed": Kind(
        "1b5fac83cd85309494178680158e93a6",
        "error",
        "A look of the mouth at one Mind failed.",
        "The next look tries again; the other Minds are served.",
        "Do what the line says: most often the disk or the rights of her directory.",
    ),
    "heartbeat.started": Kind(
        "fdebd45fec3691765dd7a4e97eab8be5",
        "notice",
        "The heartbeat is ready.",
        "It decides for every Mind of this host when she may act.",
        NOTHING,
    ),
    "heartbeat.stopped": Kind(
        "b70295095993d356524b85b20cdb3de9",
        "notice",
        "The heartbeat has ended.",
        "Nobody is woken before it runs again; what waits is kept.",
        NOTHING,
    ),
    "mind.fault": Kind(
        "789d34f2f5912b8d7728ce76e12102a9",
        "error",
        "The heartbeat leaves a Mind alone.",
        "A file of hers cannot be used. The others are looked after; she is tried again by itself, and when her files change.",
        "Do what the line says; `mind doctor` checks it.",
    ),
    "mind.recovered": Kind(
        "a0697bc6e8cd6627178c32bbc975e8ad",
        "notice",
        "A Mind can be looked after again.",
        "What was wrong with her files is mended.",
        NOTHING,
    ),
    "mind.left": Kind(
        "1b47748dab678e9ec6af7c504838b6a3",
        "notice",
        "A Mind is looked after no more.",
        "Her configuration is gone.",
        "If that was not meant, put her file back into `minds/`.",
    ),
    "poke.refused": Kind(
        "0a2b5b775fb93b91221ff3aaf43538d4",
        "info",
        "An organ could not be poked.",
        "A poke only says that there is something to see. Who missed it looks by itself, within `look_s`.",
        "If it repeats, that organ is not running: `systemctl status 'mind-*'`, or `mind status`.",
    ),
    "organ.started": Kind(
        "c4a1c43f90826d45818d61d89cf34e11",
        "info",
        "`mind up` started an organ.",
        "PID is its process.",
        NOTHING,
    ),
    "organ.not-started": Kind(
        "10788874e2499dcb299ce6272046c59a",
        "error",
        "`mind up` could not start an organ.",
        "It is tried again with a growing wait.",
        "Do what the line says.",
    ),
    "organ.died": Kind(
        "66ae5319195d833b4b359baef5a8cb1b",
        "warning",
        "An organ ended, and `mind up` starts it again.",
        "STRIKES counts how often in a row; the wait doubles with each.",
        "If it repeats, read what it wrote before this line.",
    ),
    "organ.given-up": Kind(
        "53024ebab1c5b692892cebe032e0e94a",
        "error",
        "An organ ended because an operator must act.",
        "It is started again when one of its files has changed.",
        "Read what it wrote before this line, and do that.",
    ),
    "up.started": Kind(
        "8d8ec0ecf5ceac9bb6c0f89686b00a30",
        "notice",
        "`mind up` runs the organs of a home.",
        "The line names the Minds.",
        NOTHING,
    ),
    "up.ended": Kind(
        "1196bb65671d56ccef6d2dba9e452762",
        "notice",
        "`mind up` has ended, and every organ with it.",
        "What waits is kept in the minds.",
        NOTHING,
    ),
}
