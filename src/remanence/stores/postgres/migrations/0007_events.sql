-- Reports of committed changes. A change takes the tenant's next id as its last step, and the row of
-- the counter stays locked until it is committed: a reader never sees an id before a smaller one.
CREATE TABLE event_counters (
  tenant TEXT COLLATE "C" PRIMARY KEY,
  last   BIGINT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE events (
  tenant       TEXT COLLATE "C" NOT NULL,
  id           BIGINT NOT NULL,
  type         TEXT NOT NULL,
  at           TEXT COLLATE "C" NOT NULL,
  conversation TEXT COLLATE "C",  -- its id
  "user"       TEXT COLLATE "C",
  data         TEXT NOT NULL,     -- JSON: an object
  PRIMARY KEY (tenant, id)
);

CREATE INDEX events_of_conversation ON events (tenant, conversation, id);

-- Events up to `delivered` were handed to a consumer, such as a webhook.
CREATE TABLE event_consumers (
  consumer  TEXT COLLATE "C" NOT NULL,
  tenant    TEXT COLLATE "C" NOT NULL,
  delivered BIGINT NOT NULL,
  PRIMARY KEY (consumer, tenant)
);
