-- Vectors of a conversation in the order in which retention deletes them.
DROP INDEX vectors_of_conversation;
CREATE INDEX vectors_of_conversation ON vectors (conversation, item);
