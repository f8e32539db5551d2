-- Facts of the conversation's user were extracted up to here.
ALTER TABLE states ADD COLUMN facts_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE states ADD COLUMN facts_failure TEXT;  -- JSON

CREATE TABLE fact_owners (
  key    INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  user   TEXT NOT NULL,
  UNIQUE (tenant, user)
) STRICT;

CREATE TABLE facts (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,  -- facts_index may still hold a forgotten one's
  owner         INTEGER NOT NULL REFERENCES fact_owners (key) ON DELETE CASCADE,
  id            TEXT NOT NULL,
  summary       TEXT NOT NULL,
  plain         TEXT NOT NULL,  -- the summary without case and white space: equal ones are one fact
  type          TEXT NOT NULL,
  tags          TEXT NOT NULL,  -- JSON: a list of strings
  conversation  TEXT,           -- its id: the conversation is of the owner's tenant
  first_seq     INTEGER,
  last_seq      INTEGER,
  made_by       TEXT NOT NULL,
  created_at    TEXT NOT NULL,
  valid_from    TEXT NOT NULL,
  valid_to      TEXT,
  superseded_by TEXT,           -- the id of another fact of the owner
  UNIQUE (owner, id)
) STRICT;

CREATE UNIQUE INDEX facts_live ON facts (owner, plain) WHERE valid_to IS NULL;
CREATE INDEX facts_superseded ON facts (owner, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_of_conversation ON facts (conversation) WHERE conversation IS NOT NULL;

-- A fact has its key as rowid. `scope` names the owner.
CREATE VIRTUAL TABLE facts_index USING fts5 (
  scope, terms, content='', contentless_delete=1,
  tokenize="porter unicode61 categories 'L* N* Co Mn Mc'"
);
INSERT INTO facts_index (facts_index, rank) VALUES ('secure-delete', 1);

-- The facts that a conversation's contexts show until its prefix changes anyway.
CREATE TABLE facts_pins (
  conversation INTEGER PRIMARY KEY REFERENCES conversations (key) ON DELETE CASCADE,
  owner        INTEGER NOT NULL REFERENCES fact_owners (key) ON DELETE CASCADE,
  marker       TEXT NOT NULL,
  text         TEXT NOT NULL,
  at           TEXT NOT NULL
) STRICT;

CREATE INDEX facts_pins_of_owner ON facts_pins (owner);
