"""Shapes: the first migration of a mind.db: the tables of hearing, saying, and turns."""

TALK = """
CREATE TABLE persona (
    one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL, at INTEGER NOT NULL
);
CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1), user_id TEXT NOT NULL, device_id TEXT NOT NULL
);
CREATE TABLE position (
    one INTEGER PRIMARY KEY CHECK (one = 1), next_batch TEXT NOT NULL, at INTEGER NOT NULL
);
CREATE TABLE room (
    room_id TEXT PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    membership TEXT NOT NULL CHECK (membership IN ('invited', 'joined', 'declined', 'left')),
    join_rule TEXT NOT NULL DEFAULT 'invite',
    direct INTEGER NOT NULL DEFAULT 0,
    encrypted INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '',
    conversation TEXT NOT NULL,
    invited_by TEXT,
    all_mail INTEGER NOT NULL DEFAULT 0,
    upgraded_to TEXT,
    receipt_seq INTEGER NOT NULL DEFAULT 0,
    joined_members INTEGER NOT NULL DEFAULT 0,
    invited_members INTEGER NOT NULL DEFAULT 0,
    widened INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX room_conversation ON room (conversation);
CREATE TABLE member (
    room_id TEXT NOT NULL, user_id TEXT NOT NULL, name TEXT NOT NULL DEFAULT '', membership TEXT NOT NULL,
    PRIMARY KEY (room_id, user_id)
) WITHOUT ROWID;
CREATE TABLE gap (
    room_id TEXT NOT NULL, base INTEGER NOT NULL, cursor TEXT NOT NULL, filled INTEGER NOT NULL DEFAULT 0,
    opened_at INTEGER NOT NULL, not_before INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0,
    until TEXT, fresh INTEGER NOT NULL DEFAULT 0, missed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (room_id, base)
) WITHOUT ROWID;
CREATE TABLE arrival (
    room_id TEXT NOT NULL, place INTEGER NOT NULL, event_id TEXT NOT NULL UNIQUE, event TEXT NOT NULL,
    PRIMARY KEY (room_id, place)
) WITHOUT ROWID;
CREATE TABLE heard (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id TEXT NOT NULL UNIQUE,
    room_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    sender_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    sent_at INTEGER NOT NULL,
    heard_at INTEGER NOT NULL,
    reply_to TEXT,
    thread TEXT,
    standing TEXT NOT NULL CHECK (standing IN ('mail', 'context')),
    reason TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'closed', 'withdrawn')),
    attempts INTEGER NOT NULL DEFAULT 0,
    turn_id TEXT,
    closed_how TEXT,
    edited INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX heard_pending_mail ON heard (room_id, seq) WHERE standing = 'mail' AND state = 'pending';
CREATE INDEX heard_room ON heard (room_id, seq);
CREATE INDEX heard_closed ON heard (room_id, seq) WHERE state = 'closed' AND standing = 'mail';
CREATE INDEX heard_context_age ON heard (heard_at) WHERE standing = 'context';
CREATE INDEX heard_withdrawn_age ON heard (heard_at) WHERE state = 'withdrawn';
CREATE TABLE said (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('say', 'notice', 'reaction')),
    room_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    content TEXT NOT NULL,
    thread TEXT,
    reply_to TEXT,
    after_said TEXT,
    turn_id TEXT,
    state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'attempted', 'sent', 'refused', 'superseded')),
    queued_at INTEGER NOT NULL,
    attempted_at INTEGER,
    device_id TEXT,
    event_id TEXT,
    not_before INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    reason TEXT
);
CREATE INDEX said_unsent ON said (room_id, place) WHERE state IN ('queued', 'attempted');
CREATE INDEX said_turn ON said (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX said_event ON said (event_id) WHERE event_id IS NOT NULL;
CREATE TABLE run (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('persona_turn', 'touch', 'self_run')),
    conversations TEXT NOT NULL,
    cause TEXT NOT NULL,
    reason TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    holder TEXT,
    held_at INTEGER,
    ended_at INTEGER,
    outcome TEXT,
    end_reason TEXT,
    turns INTEGER NOT NULL DEFAULT 0,
    cost_micro_usd INTEGER NOT NULL DEFAULT 0,
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX run_live ON run (kind) WHERE ended_at IS NULL;
CREATE INDEX run_opened ON run (opened_at);
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    instructions TEXT NOT NULL,
    instructions_digest TEXT NOT NULL,
    schema_json TEXT NOT NULL,
    schema_digest TEXT NOT NULL,
    rehydration TEXT NOT NULL,
    cursor TEXT,
    opened_at INTEGER NOT NULL,
    ended_at INTEGER,
    end_reason TEXT,
    prefix_tokens INTEGER NOT NULL DEFAULT 0,
    ceiling_tokens INTEGER NOT NULL DEFAULT 0,
    window_tokens INTEGER NOT NULL DEFAULT 0,
    rehydration_tokens INTEGER NOT NULL DEFAULT 0,
    last_used_at INTEGER NOT NULL,
    last_turn_id TEXT,
    turns INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX session_open ON session (conversation) WHERE ended_at IS NULL;
CREATE TABLE turn (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES run (id),
    session_id TEXT NOT NULL REFERENCES session (id),
    number INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('opened', 'replied', 'unreadable', 'refused', 'limited', 'failed', 'lost')),
    opened_at INTEGER NOT NULL,
    ended_at INTEGER,
    input TEXT NOT NULL,
    sent TEXT NOT NULL DEFAULT '[]',
    received TEXT NOT NULL DEFAULT '[]',
    why TEXT,
    cost_micro_usd INTEGER NOT NULL DEFAULT 0,
    uncached_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_5m_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_1h_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    model_ms INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX turn_session ON turn (session_id, number);
CREATE INDEX turn_open ON turn (run_id) WHERE state = 'opened';
CREATE INDEX turn_ended ON turn (ended_at);
CREATE INDEX turn_conversation ON turn (conversation, opened_at);
CREATE TABLE turn_heard (
    turn_id TEXT NOT NULL, seq INTEGER NOT NULL, role TEXT NOT NULL CHECK (role IN ('mail', 'context')),
    PRIMARY KEY (turn_id, seq)
) WITHOUT ROWID;
CREATE INDEX turn_heard_seq ON turn_heard (seq);
CREATE TABLE turn_room (
    turn_id TEXT NOT NULL, room_id TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (turn_id, room_id)
) WITHOUT ROWID;
CREATE TABLE pause (
    cause TEXT PRIMARY KEY, until INTEGER NOT NULL, reason TEXT NOT NULL, strikes INTEGER NOT NULL DEFAULT 0,
    since INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE ack (
    organ TEXT PRIMARY KEY, control TEXT NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
"""
