-- Limits of models, shared by all processes: calls are counted up to `counted_to`, those that wait are
-- told to ask again up to `line_to`, and the provider asked for no call before `paused_until`.
CREATE TABLE call_limits (
  model TEXT PRIMARY KEY,
  counted_to TEXT,
  line_to TEXT,
  paused_until TEXT
) STRICT;
