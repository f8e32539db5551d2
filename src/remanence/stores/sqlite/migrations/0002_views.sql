-- What a person sees who opens the file with any SQLite client. The names and columns are those of
-- the source designs; the tables below them are free to change. Nothing newer than SQLite 3.37.

CREATE INDEX segments_by_time ON segments (conversation, created_at);

-- An entry knows how long the tape was, so that any past context can be shown.
ALTER TABLE journal ADD COLUMN last_seq INTEGER NOT NULL DEFAULT 0;

UPDATE journal SET last_seq = max(observed_seq, (
  SELECT count(*) FROM messages
  WHERE messages.conversation = journal.conversation AND messages.created_at <= journal.at
));

-- One row for each observation ever made: `superseded` is null while it is live, and otherwise the
-- log version of the reflection that replaced it. Indexes are those of `messages.seq`, both included.
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
  s.version,
  s.superseded
FROM segments AS s JOIN conversations AS c ON c.key = s.conversation
WHERE s.generation = 0;

-- One row for each version of a conversation's notes, with the whole text that was live then.
CREATE VIEW observation_log AS
SELECT
  now.key AS id,
  c.id AS conversation_id,
  c.tenant,
  now.version,
  (SELECT group_concat(text, char(10) || char(10) || '---' || char(10) || char(10)) FROM (
    SELECT s.text FROM segments AS s
    WHERE s.conversation = now.conversation AND s.version <= now.version
      AND (s.superseded IS NULL OR s.superseded > now.version) AND s.text <> ''
    ORDER BY s.first_seq)) AS text,
  (SELECT sum(s.tokens) FROM segments AS s
    WHERE s.conversation = now.conversation AND s.version <= now.version
      AND (s.superseded IS NULL OR s.superseded > now.version)) AS token_count,
  now.created_at
FROM segments AS now JOIN conversations AS c ON c.key = now.conversation;

-- One row for each reflection ever made. `replaces_version` is the log version before it.
CREATE VIEW reflections AS
SELECT
  s.id,
  c.id AS conversation_id,
  c.id AS session_key,
  c.tenant,
  c.user,
  s.created_at,
  (SELECT max(b.version) FROM segments AS b
    WHERE b.conversation = s.conversation AND b.version < s.version) AS replaces_version,
  s.text AS output_text,
  s.text AS content,
  s.tokens AS token_count,
  s.generation,
  s.first_seq AS source_start_index,
  s.last_seq AS source_end_index,
  s.version,
  s.superseded
FROM segments AS s JOIN conversations AS c ON c.key = s.conversation
WHERE s.generation > 0;

CREATE VIEW memory_state AS
SELECT
  c.id AS conversation_id,
  c.tenant,
  c.user,
  (SELECT id FROM messages WHERE conversation = c.key AND seq = st.observed_seq)
    AS observed_cursor_message_id,
  st.last_sum_tokens - st.observed_sum_tokens AS unobserved_token_count,
  (SELECT coalesce(sum(tokens), 0) FROM segments
    WHERE conversation = c.key AND superseded IS NULL) AS observation_token_count,
  st.last_observed_at AS last_observer_run,
  st.last_reflected_at AS last_reflector_run,
  st.lock_version,
  st.last_seq,
  st.observed_seq,
  st.active_seq,
  st.reflected_seq
FROM conversations AS c JOIN states AS st ON st.conversation = c.key;
