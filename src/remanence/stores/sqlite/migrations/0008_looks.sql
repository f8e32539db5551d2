-- When background work looks at a conversation: at `look_at`, or when its tape has more tokens
-- than `look_tokens`. What a policy makes due is looked up by the index.
ALTER TABLE states ADD COLUMN look_at TEXT;
ALTER TABLE states ADD COLUMN look_tokens INTEGER NOT NULL DEFAULT 0;

CREATE INDEX states_looks ON states (look_at) WHERE look_at IS NOT NULL;

-- The rules by which those times were reckoned; under other ones all are reckoned anew.
CREATE TABLE look_rules (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  digest TEXT NOT NULL
) STRICT;
