"""Shapes: the tables of the ledger, as numbered migrations (see `mind.schema` for what a migration is).

`call` is the ledger: one row per model call, of one day and month of the operator's. `total` is kept beside it in the same
transactions, so that asking how much is committed costs the same in a month's last hour as in its first: what is settled, and what
is reserved, whole. `credential` names a secret by a digest that nobody without this file's key can make; never the secret.
"""

MIGRATIONS: tuple[tuple[int, str], ...] = (
    (
        1,
        """
CREATE TABLE digest_key (one INTEGER PRIMARY KEY CHECK (one = 1), key TEXT NOT NULL);
INSERT INTO digest_key VALUES (1, hex(randomblob(32)));
CREATE TABLE call (
    mind TEXT NOT NULL,
    id TEXT NOT NULL,
    half TEXT NOT NULL CHECK (half IN ('persona', 'self')),
    run TEXT NOT NULL,
    conversation TEXT NOT NULL,
    credential TEXT NOT NULL,
    model TEXT NOT NULL,
    answered TEXT,
    day TEXT NOT NULL,
    month TEXT NOT NULL,
    reserved INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'settled')),
    cost INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    at INTEGER NOT NULL,
    settled_at INTEGER,
    PRIMARY KEY (mind, id),
    CHECK ((state = 'settled') = (settled_at IS NOT NULL))
) WITHOUT ROWID;
CREATE INDEX call_run ON call (mind, run);
CREATE INDEX call_day ON call (day, mind);
CREATE INDEX call_open ON call (at) WHERE state = 'reserved';
CREATE INDEX call_credential ON call (credential, mind);
CREATE TABLE usage (
    mind TEXT NOT NULL, call TEXT NOT NULL, model TEXT NOT NULL,
    uncached INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
    output INTEGER NOT NULL,
    PRIMARY KEY (mind, call, model)
) WITHOUT ROWID;
CREATE TABLE total (
    scope TEXT NOT NULL CHECK (scope IN ('host', 'mind', 'conversation')),
    mind TEXT NOT NULL, conversation TEXT NOT NULL, window TEXT NOT NULL, committed INTEGER NOT NULL,
    PRIMARY KEY (scope, mind, conversation, window)
) WITHOUT ROWID;
CREATE TABLE pause (
    credential TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('limited', 'overloaded', 'authentication', 'payment')),
    until INTEGER, reason TEXT NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (credential, kind)
) WITHOUT ROWID;
CREATE TABLE report (
    mind TEXT NOT NULL, run TEXT NOT NULL, ours INTEGER NOT NULL, theirs INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (mind, run)
) WITHOUT ROWID;
""",
    ),
)

NEWEST = MIGRATIONS[-1][0]
"""The version that this code writes; a file with a greater one is refused."""
