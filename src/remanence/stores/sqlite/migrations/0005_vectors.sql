-- The item is that of text_index: a message's key, or a note's place below zero.
CREATE TABLE vectors (
  item         INTEGER NOT NULL,
  model        TEXT NOT NULL,  -- the embedder's name
  conversation INTEGER NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
  vector       BLOB NOT NULL,  -- of length 1: 32-bit floats, little-endian
  PRIMARY KEY (item, model)
) STRICT;

CREATE INDEX vectors_of_conversation ON vectors (conversation, model);

CREATE TABLE fact_vectors (
  fact   INTEGER NOT NULL REFERENCES facts (key) ON DELETE CASCADE,
  model  TEXT NOT NULL,
  vector BLOB NOT NULL,
  PRIMARY KEY (fact, model)
) STRICT;

-- Segments and facts up to this key have vectors, or need none.
CREATE TABLE vector_cursors (
  model   TEXT NOT NULL,
  subject TEXT NOT NULL,
  cursor  INTEGER NOT NULL,
  PRIMARY KEY (model, subject)
) STRICT, WITHOUT ROWID;
