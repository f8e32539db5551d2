-- For the recall over all conversations of a user.
CREATE INDEX conversations_by_user ON conversations (tenant, "user") WHERE "user" IS NOT NULL;
