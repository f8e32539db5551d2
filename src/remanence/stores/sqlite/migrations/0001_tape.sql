CREATE TABLE schema_migrations (
  number     INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  applied_at TEXT NOT NULL,
  version    TEXT NOT NULL  -- of remanence
) STRICT;

CREATE TABLE conversations (
  key        INTEGER PRIMARY KEY AUTOINCREMENT,  -- a deleted conversation's key never comes back
  tenant     TEXT NOT NULL,
  id         TEXT NOT NULL,
  user       TEXT,
  created_at TEXT NOT NULL,
  UNIQUE (tenant, id)
) STRICT;

CREATE TABLE states (
  conversation        INTEGER PRIMARY KEY REFERENCES conversations (key) ON DELETE CASCADE,
  last_seq            INTEGER NOT NULL DEFAULT 0,
  observed_seq        INTEGER NOT NULL DEFAULT 0,
  active_seq          INTEGER NOT NULL DEFAULT 0,
  reflected_seq       INTEGER NOT NULL DEFAULT 0,
  tail_seq            INTEGER NOT NULL DEFAULT 1,
  last_sum_tokens     INTEGER NOT NULL DEFAULT 0,
  observed_sum_tokens INTEGER NOT NULL DEFAULT 0,
  active_sum_tokens   INTEGER NOT NULL DEFAULT 0,
  tail_sum_tokens     INTEGER NOT NULL DEFAULT 0,
  last_message_at     TEXT,
  last_observed_at    TEXT,
  last_reflected_at   TEXT,
  observe_failure     TEXT,  -- JSON
  reflect_failure     TEXT,  -- JSON
  lock_version        INTEGER NOT NULL DEFAULT 0,
  lease_owner         TEXT,
  lease_until         TEXT,
  indexed_seq         INTEGER NOT NULL DEFAULT 0  -- text_index holds the messages up to here
) STRICT;

CREATE TABLE messages (
  key          INTEGER PRIMARY KEY AUTOINCREMENT,  -- text_index may still hold a deleted one's
  conversation INTEGER NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  seq          INTEGER NOT NULL,
  id           TEXT NOT NULL,
  role         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  name         TEXT,
  content      TEXT NOT NULL,  -- JSON: a string, or a list of parts
  calls        TEXT,           -- JSON: the ids of the tool calls
  created_at   TEXT NOT NULL,
  tokens       INTEGER NOT NULL,
  sum_tokens   INTEGER NOT NULL,
  UNIQUE (conversation, seq),
  UNIQUE (id, conversation)  -- new ids are in order of time: all conversations write one page
) STRICT;

CREATE INDEX messages_with_calls ON messages (conversation, seq) WHERE calls IS NOT NULL;

CREATE TABLE segments (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation  INTEGER NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  id            TEXT NOT NULL,
  generation    INTEGER NOT NULL,
  first_seq     INTEGER NOT NULL,
  last_seq      INTEGER NOT NULL,
  text          TEXT NOT NULL,
  notes         TEXT NOT NULL,  -- JSON: a list of notes
  tokens        INTEGER NOT NULL,
  source_tokens INTEGER NOT NULL,
  sum_tokens    INTEGER NOT NULL,
  lost          TEXT NOT NULL,  -- JSON: a list of strings
  made_by       TEXT NOT NULL,
  created_at    TEXT NOT NULL,
  version       INTEGER NOT NULL,
  superseded    INTEGER,
  UNIQUE (conversation, id),
  CHECK (first_seq <= last_seq)
) STRICT;

CREATE UNIQUE INDEX segments_live ON segments (conversation, first_seq) WHERE superseded IS NULL;

CREATE TABLE journal (
  conversation  INTEGER NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  version       INTEGER NOT NULL,
  kind          TEXT NOT NULL,
  at            TEXT NOT NULL,
  observed_seq  INTEGER NOT NULL,
  active_seq    INTEGER NOT NULL,
  reflected_seq INTEGER NOT NULL,
  tail_seq      INTEGER NOT NULL,
  detail        TEXT NOT NULL,
  PRIMARY KEY (conversation, version)
) STRICT, WITHOUT ROWID;

-- A message has its key as rowid; note n of a segment has -(segment key * 65536 + n).
-- `scope` names the conversation, so that a search reads no other one's matches.
CREATE VIRTUAL TABLE text_index USING fts5 (
  scope, terms, content='', contentless_delete=1,
  tokenize="porter unicode61 categories 'L* N* Co Mn Mc'"
);

-- Merging is done in small steps while nobody waits, and never by the transaction that adds words.
INSERT INTO text_index (text_index, rank) VALUES ('automerge', 0), ('crisismerge', 1000);

-- What is still to be done while nobody waits.
CREATE TABLE chores (
  name    TEXT NOT NULL,
  subject INTEGER NOT NULL,
  PRIMARY KEY (name, subject)
) STRICT, WITHOUT ROWID;
