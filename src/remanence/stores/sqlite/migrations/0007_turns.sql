-- Who may add to a conversation's turn in progress; a conversation has one before it has messages.
CREATE TABLE turns (
  tenant TEXT NOT NULL,
  id     TEXT NOT NULL,
  owner  TEXT NOT NULL,
  until  TEXT NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
