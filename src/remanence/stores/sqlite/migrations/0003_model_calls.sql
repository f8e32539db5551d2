-- The ledger. A deleted conversation's calls stay, without it.
CREATE TABLE model_calls (
  key                INTEGER PRIMARY KEY,
  conversation       INTEGER REFERENCES conversations (key) ON DELETE SET NULL,
  tenant             TEXT,
  user               TEXT,
  purpose            TEXT NOT NULL,
  model              TEXT NOT NULL,
  input_tokens       INTEGER NOT NULL,
  output_tokens      INTEGER NOT NULL,
  cache_read_tokens  INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  cost_usd           REAL,
  duration_seconds   REAL NOT NULL,
  outcome            TEXT NOT NULL,
  at                 TEXT NOT NULL
) STRICT;

CREATE INDEX model_calls_of_conversation ON model_calls (conversation, at);
CREATE INDEX model_calls_of_user ON model_calls (user, at);
CREATE INDEX model_calls_in_time ON model_calls (at);
