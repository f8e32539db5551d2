-- Versions of a conversation's notes count from one on, one for each observation and reflection,
-- whatever else changed in between. `lock_version` in the views is that of the journal.
ALTER TABLE segments ADD COLUMN notes_version INTEGER NOT NULL DEFAULT 0;

UPDATE segments SET notes_version = (
  SELECT count(*) FROM segments AS earlier
  WHERE earlier.conversation = segments.conversation AND earlier.version <= segments.version
);

CREATE INDEX segments_by_version ON segments (conversation, version);

DROP VIEW observations;
DROP VIEW observation_log;
DROP VIEW reflections;

CREATE VIEW observations AS
SELECT
  s.id,
  c.id AS conversation_id,
  c.id AS session_key,
  c.tenant,
  c.user,
  s.created_at,
  s.text,
  s.text AS content,
  s.tokens AS token_count,
  (SELECT nullif(json_group_array(tag), '[]') FROM
    (SELECT DISTINCT json_extract(value, '$.tag') AS tag FROM json_each(s.notes))) AS tags,
  (SELECT id FROM messages WHERE conversation = s.conversation AND seq = s.first_seq)
    AS source_message_from,
  (SELECT id FROM messages WHERE conversation = s.conversation AND seq = s.last_seq)
    AS source_message_to,
  s.first_seq AS source_start_index,
  s.last_seq AS source_end_index,
  s.notes_version AS version,
  (SELECT b.notes_version FROM segments AS b
    WHERE b.conversation = s.conversation AND b.version = s.superseded) AS superseded,
  s.version AS lock_version
FROM segments AS s JOIN conversations AS c ON c.key = s.conversation
WHERE s.generation = 0;

CREATE VIEW observation_log AS
SELECT
  now.key AS id,
  c.id AS conversation_id,
  c.tenant,
  now.notes_version AS version,
  (SELECT group_concat(text, char(10) || char(10) || '---' || char(10) || char(10)) FROM (
    SELECT s.text FROM segments AS s
    WHERE s.conversation = now.conversation AND s.version <= now.version
      AND (s.superseded IS NULL OR s.superseded > now.version) AND s.text <> ''
    ORDER BY s.first_seq)) AS text,
  (SELECT sum(s.tokens) FROM segments AS s
    WHERE s.conversation = now.conversation AND s.version <= now.version
      AND (s.superseded IS NULL OR s.superseded > now.version)) AS token_count,
  now.created_at,
  now.version AS lock_version
FROM segments AS now JOIN conversations AS c ON c.key = now.conversation;

CREATE VIEW reflections AS
SELECT
  s.id,
  c.id AS conversation_id,
  c.id AS session_key,
  c.tenant,
  c.user,
  s.created_at,
  s.notes_version - 1 AS replaces_version,
  s.text AS output_text,
  s.text AS content,
  s.tokens AS token_count,
  s.generation,
  s.first_seq AS source_start_index,
  s.last_seq AS source_end_index,
  s.notes_version AS version,
  (SELECT b.notes_version FROM segments AS b
    WHERE b.conversation = s.conversation AND b.version = s.superseded) AS superseded,
  s.version AS lock_version
FROM segments AS s JOIN conversations AS c ON c.key = s.conversation
WHERE s.generation > 0;
