-- The views are looked up by the name of a session and by time alone, also without a tenant.

CREATE INDEX conversations_by_id ON conversations (id);

CREATE INDEX segments_by_creation ON segments (created_at);
