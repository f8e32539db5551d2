-- Jobs for the processes of `remanence worker`, in the tables of procrastinate. A conversation whose
-- look is planned has one job that waits, changed in the transaction that plans the look: at any time
-- the two agree. The clock of the one who plans may be ahead, so that a second more is still at once.
CREATE FUNCTION remanence_plan_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job_lock TEXT := 'remanence ' || OLD.conversation;
BEGIN
  IF TG_OP = 'DELETE' OR NEW.look_at IS NULL THEN
    DELETE FROM procrastinate_jobs WHERE queueing_lock = job_lock AND status = 'todo';
    RETURN NULL;
  END IF;
  INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
  SELECT 'remanence', 'remanence.look', job_lock, job_lock, jsonb_build_object('tenant', tenant, 'id', id),
    CASE WHEN NEW.look_at::timestamptz > now() + INTERVAL '1 second'
         THEN NEW.look_at::timestamptz END
  FROM conversations WHERE key = NEW.conversation
  ON CONFLICT (queueing_lock) WHERE status = 'todo'
  DO UPDATE SET scheduled_at = excluded.scheduled_at
  WHERE procrastinate_jobs.scheduled_at IS DISTINCT FROM excluded.scheduled_at;
  RETURN NULL;
END;
$$;

CREATE TRIGGER states_plan_job AFTER UPDATE OF look_at ON states
FOR EACH ROW WHEN (OLD.look_at IS DISTINCT FROM NEW.look_at)
EXECUTE FUNCTION remanence_plan_job();

CREATE TRIGGER states_forget_job AFTER DELETE ON states
FOR EACH ROW WHEN (OLD.look_at IS NOT NULL)
EXECUTE FUNCTION remanence_plan_job();
