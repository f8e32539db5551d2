-- Keys are taken before they are committed, so that a reader may see one before a smaller one. The
-- indexer of vectors goes by keys: it takes this lock alone, and so waits for the keys taken before.
CREATE FUNCTION remanence_share_keys() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1919249762);
  RETURN NULL;
END;
$$;

CREATE TRIGGER segments_share_keys BEFORE INSERT ON segments
FOR EACH STATEMENT EXECUTE FUNCTION remanence_share_keys();

CREATE TRIGGER facts_share_keys BEFORE INSERT ON facts
FOR EACH STATEMENT EXECUTE FUNCTION remanence_share_keys();
