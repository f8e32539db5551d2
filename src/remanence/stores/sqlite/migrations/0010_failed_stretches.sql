-- Stretches of a segment's range that no notes could be made of, each with the reason.
ALTER TABLE segments ADD COLUMN failed TEXT NOT NULL DEFAULT '[]';  -- JSON: a list of lists
