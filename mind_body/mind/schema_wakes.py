"""Shapes: the third migration of a mind.db: what a wake depends on, what operators are asked, and campaigns.

Indexes that hold sums and counts are covering: a turn's row is long, and a host looks at a thousand Minds.
"""

WAKES = """
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
CREATE INDEX follow_up_continues ON follow_up (continues) WHERE continues IS NOT NULL;
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
CREATE INDEX question_state ON question (state);
CREATE INDEX question_about ON question (about);
CREATE TABLE campaign (
    slug TEXT PRIMARY KEY, text TEXT NOT NULL, opened_by TEXT NOT NULL, opened_at INTEGER NOT NULL, closed_at INTEGER
);
CREATE TABLE turn_campaign (
    turn_id TEXT NOT NULL, slug TEXT NOT NULL, open INTEGER NOT NULL, PRIMARY KEY (turn_id, slug)
) WITHOUT ROWID;
"""
