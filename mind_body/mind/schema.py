"""Shapes: the tables of a mind.db, as numbered migrations.

A migration is a number and SQL; each is applied with its own mark (`PRAGMA user_version`) in one transaction, under an exclusive
lock and after a copy (see `store`). A number is never reused and its SQL never edited after a release.
"""

MIGRATIONS: tuple[tuple[int, str], ...] = (
    (
        1,
        """
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
""",
    ),
    (
        2,
        """
CREATE TABLE follow_up (
    id TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    room_id TEXT NOT NULL,
    asked_in TEXT,
    asked_by TEXT NOT NULL,
    brief TEXT NOT NULL,
    workspace TEXT NOT NULL,
    campaign TEXT,
    state TEXT NOT NULL CHECK (state IN ('proposed', 'open', 'claimed', 'done', 'dropped')),
    confirm_said TEXT,
    run_id TEXT,
    continues TEXT,
    thread_said TEXT,
    thread_root TEXT,
    opened_at INTEGER NOT NULL,
    ended_at INTEGER,
    result TEXT,
    why TEXT,
    CHECK ((ended_at IS NULL) = (state NOT IN ('done', 'dropped')))
);
CREATE INDEX follow_up_waiting ON follow_up (id) WHERE state IN ('proposed', 'open', 'claimed');
CREATE TABLE handoff (
    run_id TEXT PRIMARY KEY, workspace TEXT NOT NULL, text TEXT NOT NULL,
    origin TEXT NOT NULL CHECK (origin IN ('model', 'record')), cut INTEGER NOT NULL DEFAULT 0, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX handoff_workspace ON handoff (workspace, run_id);
CREATE TABLE steer (
    id TEXT PRIMARY KEY, run_id TEXT NOT NULL, event_id TEXT UNIQUE, kind TEXT NOT NULL CHECK (kind IN ('steer', 'stop')),
    sender TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'given', 'dropped'))
);
CREATE INDEX steer_queued ON steer (run_id) WHERE state = 'queued';
CREATE TABLE reaction (
    event_id TEXT PRIMARY KEY, room_id TEXT NOT NULL, target TEXT NOT NULL, sender TEXT NOT NULL, key TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX reaction_target ON reaction (target);
CREATE TABLE self_progress (
    run_id TEXT PRIMARY KEY, doing TEXT NOT NULL, prefix_tokens INTEGER NOT NULL, ceiling_tokens INTEGER NOT NULL,
    window_tokens INTEGER NOT NULL, cost_micro_usd INTEGER NOT NULL, turns INTEGER NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE compaction (
    session_id TEXT NOT NULL, run_id TEXT NOT NULL, cause TEXT NOT NULL, before_tokens INTEGER NOT NULL, after_tokens INTEGER,
    at INTEGER NOT NULL, PRIMARY KEY (run_id, at)
) WITHOUT ROWID;
CREATE TABLE turn_run (
    turn_id TEXT NOT NULL, run_id TEXT NOT NULL, told TEXT NOT NULL CHECK (told IN ('started', 'ended')),
    PRIMARY KEY (turn_id, run_id)
) WITHOUT ROWID;
CREATE INDEX turn_run_run ON turn_run (run_id);
ALTER TABLE run ADD COLUMN follow_up_id TEXT;
ALTER TABLE run ADD COLUMN thread_said TEXT;
ALTER TABLE run ADD COLUMN model_usage TEXT NOT NULL DEFAULT '{}';
ALTER TABLE run ADD COLUMN result TEXT;
ALTER TABLE run ADD COLUMN told_turn TEXT;
CREATE INDEX run_untold ON run (id) WHERE kind = 'self_run' AND ended_at IS NOT NULL AND told_turn IS NULL;
CREATE INDEX run_follow_up ON run (follow_up_id) WHERE follow_up_id IS NOT NULL;
ALTER TABLE said RENAME TO said_before;
CREATE TABLE said (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('say', 'notice', 'reaction', 'edit')),
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
    reason TEXT,
    thread_said TEXT,
    edits TEXT
);
INSERT INTO said SELECT said_before.*, NULL, NULL FROM said_before;
DROP TABLE said_before;
CREATE INDEX said_unsent ON said (room_id, place) WHERE state IN ('queued', 'attempted');
CREATE INDEX said_turn ON said (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX said_event ON said (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX said_edits ON said (edits) WHERE edits IS NOT NULL;
""",
    ),
    (
        3,
        """
ALTER TABLE heard ADD COLUMN person INTEGER NOT NULL DEFAULT 1;
ALTER TABLE turn ADD COLUMN after_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN after_seq INTEGER NOT NULL DEFAULT 0;
UPDATE heard SET person = 0 WHERE kind = 'm.notice';
CREATE TABLE spoke (
    room_id TEXT NOT NULL, thread TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (room_id, thread)
) WITHOUT ROWID;
INSERT INTO spoke SELECT room_id, coalesce(thread, ''), max(seq), max(heard_at) FROM heard WHERE person = 1 AND kind <> 'missed'
GROUP BY room_id, coalesce(thread, '');
CREATE INDEX spoke_room ON spoke (room_id, seq);
CREATE INDEX spoke_seq ON spoke (seq);
CREATE TABLE turn_place (
    room_id TEXT NOT NULL, thread TEXT NOT NULL, after_seq INTEGER NOT NULL, turn_id TEXT NOT NULL,
    PRIMARY KEY (room_id, thread, after_seq, turn_id)
) WITHOUT ROWID;
CREATE INDEX turn_place_room ON turn_place (room_id, after_seq);
CREATE INDEX turn_opened ON turn (opened_at);
CREATE INDEX turn_cost ON turn (ended_at, cost_micro_usd);
DROP INDEX turn_ended;
CREATE INDEX run_kind ON run (kind);
CREATE INDEX run_cost ON run (kind, ended_at, cost_micro_usd, id);
CREATE INDEX run_beat ON run (after_seq) WHERE cause = 'beat';
CREATE INDEX follow_up_campaign ON follow_up (campaign, id) WHERE campaign IS NOT NULL;
CREATE TABLE pulse (
    turn_id TEXT PRIMARY KEY, urgency INTEGER NOT NULL, tempo_s INTEGER, at INTEGER NOT NULL
);
CREATE TABLE question (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('breaker', 'purse')),
    about TEXT NOT NULL,
    text TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    room_id TEXT,
    said_id TEXT,
    state TEXT NOT NULL DEFAULT 'asked' CHECK (state IN ('asked', 'answered')),
    answer TEXT CHECK (answer IN ('reopen', 'retire')),
    answered_by TEXT,
    answered_at INTEGER,
    after_run TEXT,
    CHECK ((state = 'answered') = (answer IS NOT NULL))
);
CREATE INDEX question_open ON question (id) WHERE state = 'asked';
CREATE INDEX question_about ON question (about);
CREATE TABLE campaign (
    slug TEXT PRIMARY KEY, text TEXT NOT NULL, opened_by TEXT NOT NULL, opened_at INTEGER NOT NULL, closed_at INTEGER
);
CREATE INDEX follow_up_continues ON follow_up (continues) WHERE continues IS NOT NULL;
""",
    ),
)

NEWEST = MIGRATIONS[-1][0]
"""The version that this code writes; a file with a greater one is refused."""
