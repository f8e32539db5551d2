-- Has the database compare vectors, if the extension pgvector is there or may be created. To undo it:
-- DROP FUNCTION remanence_similarity, remanence_embedding CASCADE. Both are bound to the schema of the
-- extension, which need not be in the search_path, and go with the extension.
CREATE FUNCTION remanence_use_pgvector() RETURNS void LANGUAGE plpgsql SET lock_timeout = '3s' AS $$
BEGIN
  IF to_regproc('remanence_similarity') IS NOT NULL THEN
    RETURN;
  END IF;
  CREATE EXTENSION IF NOT EXISTS vector;
  EXECUTE replace($ddl$
    -- From 32-bit floats, little-endian: sign, exponent and fraction. NULL for a NaN or an infinity.
    CREATE FUNCTION remanence_embedding(bytes BYTEA) RETURNS {schema}.vector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
      SELECT CASE WHEN bool_and((bits >> 23) & 255 < 255) THEN array_agg((
        CASE WHEN bits < 0 THEN -1 ELSE 1 END * CASE (bits >> 23) & 255
          WHEN 255 THEN NULL
          WHEN 0 THEN (bits & 8388607) * power(2::float8, -149)
          ELSE ((bits & 8388607) | 8388608) * power(2::float8, ((bits >> 23) & 255) - 150)
        END)::real ORDER BY place)::{schema}.vector END
      FROM (SELECT bytes || ''::bytea AS plain OFFSET 0) AS once,  -- read from TOAST once, not per byte
      LATERAL (
        SELECT place, get_byte(plain, place) | (get_byte(plain, place + 1) << 8)
          | (get_byte(plain, place + 2) << 16) | (get_byte(plain, place + 3) << 24) AS bits
        FROM generate_series(0, least(length(plain), 64000) - 4, 4) AS place OFFSET 0
      ) AS floats;
    END;

    CREATE FUNCTION remanence_similarity(one {schema}.vector, other {schema}.vector) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
      SELECT -(one OPERATOR({schema}.<#>) other);
    END;

    -- A search reads the embeddings alone, so that they stay in the rows, and the bytes move out.
    ALTER TABLE vectors
      ADD COLUMN embedding {schema}.vector GENERATED ALWAYS AS (remanence_embedding(vector)) STORED,
      ALTER COLUMN embedding SET STORAGE MAIN, ALTER COLUMN vector SET STORAGE EXTERNAL;
    ALTER TABLE fact_vectors
      ADD COLUMN embedding {schema}.vector GENERATED ALWAYS AS (remanence_embedding(vector)) STORED,
      ALTER COLUMN embedding SET STORAGE MAIN, ALTER COLUMN vector SET STORAGE EXTERNAL;
  $ddl$, '{schema}', (
    SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'
  ));
END;
$$;
