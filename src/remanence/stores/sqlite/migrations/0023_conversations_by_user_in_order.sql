-- Conversations of a user in the order of their pages.
DROP INDEX conversations_by_user;
CREATE INDEX conversations_by_user ON conversations (tenant, "user", id) WHERE "user" IS NOT NULL;
