"""Shapes: the tables of a mind.db, as numbered migrations.

A migration is a number and SQL; each is applied with its own mark (`PRAGMA user_version`) in one transaction, under an exclusive
lock and after a copy, and all of them in one where a file is made (see `store`). A number is never reused and its SQL never edited
after a release.
"""

from mind_body.mind.schema_talk import TALK
from mind_body.mind.schema_wakes import WAKES
from mind_body.mind.schema_work import WORK

MIGRATIONS: tuple[tuple[int, str], ...] = ((1, TALK), (2, WORK), (3, WAKES))

NEWEST = MIGRATIONS[-1][0]
"""The version that this code writes; a file with a greater one is refused."""
