-- Times are texts of ISO 8601, as in SQLite, so that both share their statements: in UTC and of fixed
-- width, so that they sort like instants, but a message's own time keeps its offset. Names sort by
-- their bytes.
CREATE TABLE conversations (
  key        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant     TEXT COLLATE "C" NOT NULL,
  id         TEXT COLLATE "C" NOT NULL,
  "user"     TEXT COLLATE "C",
  created_at TEXT COLLATE "C" NOT NULL,
  UNIQUE (tenant, id)
);

CREATE INDEX conversations_by_id ON conversations (id);

CREATE TABLE states (
  conversation        BIGINT PRIMARY KEY REFERENCES conversations (key) ON DELETE CASCADE,
  last_seq            BIGINT NOT NULL DEFAULT 0,
  observed_seq        BIGINT NOT NULL DEFAULT 0,
  active_seq          BIGINT NOT NULL DEFAULT 0,
  reflected_seq       BIGINT NOT NULL DEFAULT 0,
  tail_seq            BIGINT NOT NULL DEFAULT 1,
  last_sum_tokens     BIGINT NOT NULL DEFAULT 0,
  observed_sum_tokens BIGINT NOT NULL DEFAULT 0,
  active_sum_tokens   BIGINT NOT NULL DEFAULT 0,
  tail_sum_tokens     BIGINT NOT NULL DEFAULT 0,
  last_message_at     TEXT COLLATE "C",
  last_observed_at    TEXT COLLATE "C",
  last_reflected_at   TEXT COLLATE "C",
  observe_failure     TEXT,  -- JSON
  reflect_failure     TEXT,  -- JSON
  lock_version        BIGINT NOT NULL DEFAULT 0,
  lease_owner         TEXT,
  lease_until         TEXT COLLATE "C",
  indexed_seq         BIGINT NOT NULL DEFAULT 0,  -- text_index holds the messages up to here
  facts_seq           BIGINT NOT NULL DEFAULT 0,
  facts_failure       TEXT,  -- JSON
  look_at             TEXT COLLATE "C",
  look_tokens         BIGINT NOT NULL DEFAULT 0,
  erasures            BIGINT NOT NULL DEFAULT 0  -- work that began before one is void
) WITH (fillfactor = 70);  -- updated by each append

CREATE INDEX states_looks ON states (look_at, conversation) WHERE look_at IS NOT NULL;

CREATE TABLE messages (
  key          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation BIGINT NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  seq          BIGINT NOT NULL,
  id           TEXT COLLATE "C" NOT NULL,
  role         TEXT NOT NULL,
  kind         TEXT NOT NULL,
  name         TEXT,
  content      TEXT NOT NULL,  -- JSON: a string, or a list of parts
  calls        TEXT,           -- JSON: the ids of the tool calls
  created_at   TEXT COLLATE "C" NOT NULL,
  tokens       BIGINT NOT NULL,
  sum_tokens   BIGINT NOT NULL,
  digest       TEXT,           -- of a forgotten message: the salted hash of its content
  UNIQUE (conversation, seq),
  UNIQUE (conversation, id)
);

CREATE INDEX messages_with_calls ON messages (conversation, seq) WHERE calls IS NOT NULL;

CREATE TABLE segments (
  key           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation  BIGINT NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  id            TEXT COLLATE "C" NOT NULL,
  generation    BIGINT NOT NULL,
  first_seq     BIGINT NOT NULL,
  last_seq      BIGINT NOT NULL,
  text          TEXT NOT NULL,
  notes         TEXT NOT NULL,  -- JSON: a list of notes
  tokens        BIGINT NOT NULL,
  source_tokens BIGINT NOT NULL,
  sum_tokens    BIGINT NOT NULL,
  lost          TEXT NOT NULL,  -- JSON: a list of strings
  made_by       TEXT NOT NULL,
  created_at    TEXT COLLATE "C" NOT NULL,
  version       BIGINT NOT NULL,
  superseded    BIGINT,
  dropped       TEXT NOT NULL DEFAULT '[]',  -- JSON: a list of lists
  failed        TEXT NOT NULL DEFAULT '[]',  -- JSON: a list of lists
  notes_version BIGINT NOT NULL DEFAULT 0,
  UNIQUE (conversation, id),
  CHECK (first_seq <= last_seq)
);

CREATE UNIQUE INDEX segments_live ON segments (conversation, first_seq) WHERE superseded IS NULL;
CREATE INDEX segments_by_version ON segments (conversation, version);
CREATE INDEX segments_by_creation ON segments (created_at);

CREATE TABLE journal (
  conversation  BIGINT NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  version       BIGINT NOT NULL,
  kind          TEXT NOT NULL,
  at            TEXT COLLATE "C" NOT NULL,
  observed_seq  BIGINT NOT NULL,
  active_seq    BIGINT NOT NULL,
  reflected_seq BIGINT NOT NULL,
  tail_seq      BIGINT NOT NULL,
  detail        TEXT NOT NULL,
  last_seq      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (conversation, version)
);

CREATE INDEX journal_outcomes ON journal (at)
WHERE kind IN ('observed', 'reflected', 'facts', 'failed');

-- Words of notes and messages. The key is a message's, or a note's place below zero. A long text
-- has several parts, as a tsvector holds at most a megabyte and positions up to 16,383. Each has
-- the lexeme of its scope, so that the index answers for one conversation.
CREATE TABLE text_index (
  key   BIGINT NOT NULL,
  part  INT NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  words INT NOT NULL,
  terms TSVECTOR NOT NULL,
  PRIMARY KEY (key, part)
);

CREATE INDEX text_index_terms ON text_index USING gin (terms);
CREATE INDEX text_index_scopes ON text_index (scope);

CREATE TABLE facts_index (LIKE text_index INCLUDING ALL);

CREATE TEXT SEARCH DICTIONARY remanence_stem (TEMPLATE = snowball, LANGUAGE = english);

CREATE FUNCTION remanence_stem(word TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT coalesce((ts_lexize('remanence_stem', word))[1], word) $$;

CREATE TABLE model_calls (
  key                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation       BIGINT REFERENCES conversations (key) ON DELETE SET NULL,
  tenant             TEXT,
  "user"             TEXT,
  purpose            TEXT COLLATE "C" NOT NULL,
  model              TEXT COLLATE "C" NOT NULL,
  input_tokens       BIGINT NOT NULL,
  output_tokens      BIGINT NOT NULL,
  cache_read_tokens  BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  cost_usd           DOUBLE PRECISION,
  duration_seconds   DOUBLE PRECISION NOT NULL,
  outcome            TEXT NOT NULL,
  at                 TEXT COLLATE "C" NOT NULL
);

CREATE INDEX model_calls_of_conversation ON model_calls (conversation, at);
CREATE INDEX model_calls_of_user ON model_calls ("user", at);
CREATE INDEX model_calls_in_time ON model_calls (at);

CREATE TABLE fact_owners (
  key    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT COLLATE "C" NOT NULL,
  "user" TEXT COLLATE "C" NOT NULL,
  UNIQUE (tenant, "user")
);

CREATE TABLE facts (
  key           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner         BIGINT NOT NULL REFERENCES fact_owners (key) ON DELETE CASCADE,
  id            TEXT COLLATE "C" NOT NULL,
  summary       TEXT NOT NULL,
  plain         TEXT COLLATE "C" NOT NULL,  -- without case and white space: equal ones are one fact
  type          TEXT NOT NULL,
  tags          TEXT NOT NULL,  -- JSON: a list of strings
  conversation  TEXT COLLATE "C",  -- its id: the conversation is of the owner's tenant
  first_seq     BIGINT,
  last_seq      BIGINT,
  made_by       TEXT NOT NULL,
  created_at    TEXT COLLATE "C" NOT NULL,
  valid_from    TEXT COLLATE "C" NOT NULL,
  valid_to      TEXT COLLATE "C",
  superseded_by TEXT COLLATE "C",  -- the id of another fact of the owner
  UNIQUE (owner, id)
);

CREATE UNIQUE INDEX facts_live ON facts (owner, plain) WHERE valid_to IS NULL;
CREATE INDEX facts_superseded ON facts (owner, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_of_conversation ON facts (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE facts_pins (
  conversation BIGINT PRIMARY KEY REFERENCES conversations (key) ON DELETE CASCADE,
  owner        BIGINT NOT NULL REFERENCES fact_owners (key) ON DELETE CASCADE,
  marker       TEXT NOT NULL,
  text         TEXT NOT NULL,
  at           TEXT COLLATE "C" NOT NULL
);

CREATE INDEX facts_pins_of_owner ON facts_pins (owner);

CREATE TABLE vectors (
  item         BIGINT NOT NULL,
  model        TEXT COLLATE "C" NOT NULL,  -- the embedder's name
  conversation BIGINT NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  vector       BYTEA NOT NULL,  -- of length 1: 32-bit floats, little-endian
  PRIMARY KEY (item, model)
);

CREATE INDEX vectors_of_conversation ON vectors (conversation, model);

CREATE TABLE fact_vectors (
  fact   BIGINT NOT NULL REFERENCES facts (key) ON DELETE CASCADE,
  model  TEXT COLLATE "C" NOT NULL,
  vector BYTEA NOT NULL,
  PRIMARY KEY (fact, model)
);

-- Segments and facts up to this key have vectors, or need none.
CREATE TABLE vector_cursors (
  model   TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  cursor  BIGINT NOT NULL,
  PRIMARY KEY (model, subject)
);

CREATE TABLE turns (
  tenant TEXT COLLATE "C" NOT NULL,
  id     TEXT COLLATE "C" NOT NULL,
  owner  TEXT NOT NULL,
  until  TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, id)
);

CREATE TABLE look_rules (
  id     INT PRIMARY KEY CHECK (id = 1),
  digest TEXT NOT NULL
);

-- As in SQLite: the elements of a list of strings, given as JSON text.
CREATE FUNCTION json_each(list TEXT) RETURNS TABLE (value TEXT) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT json_array_elements_text(list::json) $$;
