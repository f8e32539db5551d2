-- Replaced segments in the order in which retention deletes them.
CREATE INDEX segments_superseded ON segments (conversation, superseded) WHERE superseded IS NOT NULL;
