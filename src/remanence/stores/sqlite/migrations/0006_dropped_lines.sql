-- Lines of a model's answer that became no note, each with the reason.
ALTER TABLE segments ADD COLUMN dropped TEXT NOT NULL DEFAULT '[]';  -- JSON: a list of lists
