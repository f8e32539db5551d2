-- How the newest steps of all conversations ended: whether the makers of notes work.
CREATE INDEX journal_outcomes ON journal (at)
WHERE kind IN ('observed', 'reflected', 'facts', 'failed');
