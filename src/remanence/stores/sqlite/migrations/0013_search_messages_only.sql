-- What a memory or the host put into a conversation is not looked for.
DELETE FROM text_index WHERE rowid IN (SELECT key FROM messages WHERE kind <> 'message');
