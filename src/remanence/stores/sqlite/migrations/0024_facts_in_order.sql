-- Facts of a user, the last written first, for pages and for the newest one.
CREATE INDEX facts_in_order ON facts (owner, key);
