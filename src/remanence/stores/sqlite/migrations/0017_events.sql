-- Reports of committed changes. A tenant's ids are given in the order of the commits.
CREATE TABLE event_counters (
  tenant TEXT PRIMARY KEY,
  last   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  tenant       TEXT NOT NULL,
  id           INTEGER NOT NULL,
  type         TEXT NOT NULL,
  at           TEXT NOT NULL,
  conversation TEXT,           -- its id
  user         TEXT,
  data         TEXT NOT NULL,  -- JSON: an object
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_of_conversation ON events (tenant, conversation, id);

-- Events up to `delivered` were handed to a consumer, such as a webhook.
CREATE TABLE event_consumers (
  consumer  TEXT NOT NULL,
  tenant    TEXT NOT NULL,
  delivered INTEGER NOT NULL,
  PRIMARY KEY (consumer, tenant)
) STRICT, WITHOUT ROWID;
