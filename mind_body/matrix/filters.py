"""Shapes: which events the homeserver is asked for. What is not named here is never heard."""

TIMELINE_LIMIT = 20
PAGE_LIMIT = 100
STATE_TYPES = ("m.room.member", "m.room.join_rules", "m.room.name", "m.room.encryption", "m.room.tombstone")
MESSAGE_TYPES = ("m.room.message", "m.sticker", "m.room.encrypted", "m.room.redaction", "m.reaction")
NOTHING: dict[str, list[str]] = {"types": []}
SYNC_FILTER = {
    "presence": NOTHING,
    "account_data": {"types": ["m.direct"]},
    "room": {
        "account_data": NOTHING,
        "ephemeral": NOTHING,
        "state": {"types": list(STATE_TYPES), "lazy_load_members": True},
        "timeline": {"types": [*MESSAGE_TYPES, *STATE_TYPES], "limit": TIMELINE_LIMIT, "lazy_load_members": True},
    },
}
PAGE_FILTER = {"types": [*MESSAGE_TYPES, "m.room.member"], "lazy_load_members": True}
