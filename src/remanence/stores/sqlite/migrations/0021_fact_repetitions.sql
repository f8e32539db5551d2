-- Facts that say the same as another: one of them takes its place when that is erased with its source.
CREATE TABLE fact_repetitions (
  key          INTEGER PRIMARY KEY,
  fact         INTEGER NOT NULL REFERENCES facts (key) ON DELETE CASCADE,
  id           TEXT NOT NULL,
  summary      TEXT NOT NULL,
  type         TEXT NOT NULL,
  tags         TEXT NOT NULL,  -- JSON: a list of strings
  conversation TEXT,           -- its id, as in facts
  first_seq    INTEGER,
  last_seq     INTEGER,
  made_by      TEXT NOT NULL,
  created_at   TEXT NOT NULL,
  valid_from   TEXT NOT NULL
) STRICT;

CREATE INDEX fact_repetitions_of_fact ON fact_repetitions (fact);
CREATE INDEX fact_repetitions_of_conversation ON fact_repetitions (conversation)
WHERE conversation IS NOT NULL;
