-- A replaced segment has the version that replaced it, or the next one if that was erased: null would
-- show it as live.
DROP VIEW observations;
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
    WHERE b.conversation = s.conversation AND b.version >= s.superseded
    ORDER BY b.version, b.notes_version LIMIT 1) AS superseded,
  s.version AS lock_version
FROM segments AS s JOIN conversations AS c ON c.key = s.conversation
WHERE s.generation = 0;

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
    WHERE b.conversation = s.conversation AND b.version >= s.superseded
    ORDER BY b.version, b.notes_version LIMIT 1) AS superseded,
  s.version AS lock_version
FROM segments AS s JOIN conversations AS c ON c.key = s.conversation
WHERE s.generation > 0;
