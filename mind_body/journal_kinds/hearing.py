"""Shapes: journal kinds of what is heard, and where bots are left unanswered."""

from collections.abc import Mapping

from mind_body.journal_kinds.kind import NOTHING, Kind

HEARING: Mapping[str, Kind] = {
    "heard.mail": Kind(
        "6a5674cf40b1c60c39a8dfcdf0e951de",
        "info",
        "A message is hers to answer.",
        "It waits in the mind for her next turn. REASON says why it counts as mail.",
        NOTHING,
    ),
    "heard.context": Kind(
        "e61f3ad7f82043165cdc274cff70f824",
        "info",
        "A message is not hers to answer.",
        "It is kept as context for what she is asked next. REASON says why it is no mail.",
        "Nothing, unless she should have answered: REASON names what decided, most often `[people]` or that nobody addressed her.",
    ),
    "heard.steer": Kind(
        "740567e991981df33d80c73622bc99fa",
        "info",
        "A message goes to the Self that works in its thread.",
        "The Self reads it before its next request to the model.",
        NOTHING,
    ),
    "heard.stop": Kind(
        "78b308a6862add50bff1547ed268dfef",
        "info",
        "Somebody who may stop a running Self told it to stop.",
        "The run ends within seconds; the thread is told.",
        NOTHING,
    ),
    "heard.barred": Kind(
        "46b06d686f92e366189ef66ebe2c6ef9",
        "info",
        "Somebody wrote to a running Self who may not steer it.",
        "The Self is not told. The writer is told so once in the thread.",
        "To let them steer, add SENDER to `people.may_steer`.",
    ),
    "heard.reacted": Kind(
        "08ba7be81d464f087bdac2e89ac74c83",
        "info",
        "Somebody reacted to a message of hers.",
        "The reaction is kept and shown to her with what she reads next.",
        NOTHING,
    ),
    "heard.edited": Kind(
        "93630983bfecde079897f8c9bbbab8b8",
        "info",
        "A message was edited before she read it.",
        "She reads the newer text alone.",
        NOTHING,
    ),
    "heard.withdrawn": Kind(
        "1cde2216a101c27de18a9877bd2398d9",
        "info",
        "A message was redacted before she read it.",
        "It is gone from the mind and is not answered.",
        NOTHING,
    ),
    "heard.closed": Kind(
        "56354d65014d3be1a33f0ecc3f3e8adc",
        "info",
        "A message changed after she had read it.",
        "What she made of it stands; nothing follows from the change.",
        NOTHING,
    ),
    "heard.known": Kind(
        "79077b181045a6e77682aaacc999ea7f",
        "debug",
        "An event came a second time.",
        "The homeserver repeated it, as it may; it counts once.",
        NOTHING,
    ),
    "heard.unknown": Kind(
        "261f9e2588afa4769331e1d31f8c15fe",
        "debug",
        "An event changes a message that she never heard.",
        "It came from before her time or from a gap, and is left alone.",
        NOTHING,
    ),
    "ear.baseline": Kind(
        "0db5cf9a34ad8c8b52e4d9124aae1aeb",
        "notice",
        "The first sync of her account is stored.",
        "What was in her rooms before is history: none of it is mail. From now on she answers.",
        NOTHING,
    ),
    "ear.gap": Kind(
        "d76fa9a7859656f0494381578e2dd64b",
        "info",
        "The homeserver left out part of a room's timeline.",
        "The hole is filled, oldest first, before anything newer is heard there.",
        NOTHING,
    ),
    "ear.gap-page": Kind(
        "ebf6e436df1952766fe160de236962a3",
        "info",
        "A page of a gap was filled in.",
        "DONE says whether the gap is closed with it. Messages beyond the cap are counted and she is told how many.",
        "To page back further, raise `gap_max_events` or `gap_max_days` in config.toml.",
    ),
    "ear.gap-waits": Kind(
        "78e9a25405ba894bb145f2b1c70c987f",
        "warning",
        "A gap could not be filled yet.",
        "The homeserver did not answer or asked for time. The room waits; the others do not.",
        "If it repeats, look at the homeserver.",
    ),
    "ear.gap-refused": Kind(
        "05e849a6be38e8e25a7dec309e5fb98b",
        "warning",
        "The homeserver refused the messages of a gap.",
        "It stays open, and the room goes on after it. She is told that something is missing.",
        "Check whether her account may read that room's history.",
    ),
    "ear.waits": Kind(
        "a1b40ab5187d7826267a6645b5932d79",
        "warning",
        "She cannot hear just now.",
        "A sync failed; it is tried again with a growing wait. Nothing is lost: the homeserver keeps what is said.",
        "If it repeats, look at the homeserver and at the network between.",
    ),
    "ear.hears-again": Kind(
        "5b05742cb3f8b115b3ee699e1a663f38",
        "notice",
        "She hears again.",
        "The homeserver answers after attempts in vain; what was said meanwhile comes now.",
        NOTHING,
    ),
    "ear.storage": Kind(
        "1455a314253bed70c587c98d7f26bc1c",
        "error",
        "What was heard could not be stored.",
        "The disk refused a write. It is asked for again until it can be stored: nothing is lost, and she answers nothing "
        "meanwhile.",
        "Make room on the disk of her mind, or mend it; `mind doctor` looks at both.",
    ),
    "ear.context-expired": Kind(
        "97d93ea000ab82f681ab54c7149794c8",
        "info",
        "Old context was deleted.",
        "Messages that were no mail are kept for `context_keep_days`; older ones are gone now.",
        NOTHING,
    ),
    "loop.spent": Kind(
        "e01ea6cac449cbe71bd96730a1c813ce",
        "warning",
        "She answers no bots in a room or thread any more.",
        "They have had all her turns there since a person last spoke. One notice says so in the room.",
        "A person's word there begins the count anew. `persona.loop_turns` is the count; `people.persons` and `people.bots` say"
        " who is a person.",
    ),
    "loop.ceiling": Kind(
        "6b023cedb7d46327aa7d155a94df0a60",
        "warning",
        "One account has brought her all the turns that it may in a day.",
        "Its messages bring no more until tomorrow. One notice says so in the room.",
        "`persona.counterpart_turns` is the count; operators are not counted.",
    ),
}
