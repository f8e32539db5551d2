-- How much a new conversation should know a fact; infinite for a standing wish.
ALTER TABLE facts ADD COLUMN worth REAL;
UPDATE facts SET worth = CASE WHEN made_by = 'saved' THEN 0 ELSE 9e999 END
WHERE valid_to IS NULL AND (made_by = 'saved' OR tags LIKE '%"wish"%');
CREATE INDEX facts_by_worth ON facts (owner, worth, key) WHERE valid_to IS NULL;
