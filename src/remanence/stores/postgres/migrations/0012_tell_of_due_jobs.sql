-- A planned look that becomes due gets a new job: workers are only told of those that are inserted.
CREATE OR REPLACE FUNCTION remanence_plan_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job_lock TEXT := 'remanence ' || OLD.conversation;
  planned TIMESTAMPTZ;
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.look_at::timestamptz > now() + INTERVAL '1 second' THEN
    planned := NEW.look_at::timestamptz;
  ELSE
    DELETE FROM procrastinate_jobs
    WHERE queueing_lock = job_lock AND status = 'todo'
    AND (TG_OP = 'DELETE' OR NEW.look_at IS NULL OR scheduled_at IS NOT NULL);
  END IF;
  IF TG_OP = 'DELETE' OR NEW.look_at IS NULL THEN
    RETURN NULL;
  END IF;
  INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
  SELECT 'remanence', 'remanence.look', job_lock, job_lock, jsonb_build_object('tenant', tenant, 'id', id), planned
  FROM conversations WHERE key = NEW.conversation
  ON CONFLICT (queueing_lock) WHERE status = 'todo'
  DO UPDATE SET scheduled_at = excluded.scheduled_at
  WHERE procrastinate_jobs.scheduled_at IS DISTINCT FROM excluded.scheduled_at;
  RETURN NULL;
END;
$$;
