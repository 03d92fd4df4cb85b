"""Shapes: the second migration of a mind.db: the tables of work, and edits among what is said."""

WORK = """
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
"""
