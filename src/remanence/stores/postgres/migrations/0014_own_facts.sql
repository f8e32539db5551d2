-- Facts of the conversation itself, which follow its reflections.
ALTER TABLE facts_pins ADD COLUMN own_marker TEXT NOT NULL DEFAULT '';
ALTER TABLE facts_pins ADD COLUMN own_text TEXT NOT NULL DEFAULT '';
