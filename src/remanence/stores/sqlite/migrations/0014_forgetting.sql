-- A forgotten message keeps its place: `digest` is the salted hash of its content, the salt is not kept.
ALTER TABLE messages ADD COLUMN digest TEXT;
-- Counts what was erased of a conversation or of its user's facts: work that began before is void.
ALTER TABLE states ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0;
