-- From version 1 of the tables to 2: what was learned is known of each entry of feedback.

ALTER TABLE labelspace_feedback ADD COLUMN batch {text};
ALTER TABLE labelspace_feedback ADD COLUMN is_learned BIGINT NOT NULL DEFAULT 0;
CREATE INDEX labelspace_feedback_new ON labelspace_feedback (model, number) WHERE is_learned = 0;
CREATE INDEX labelspace_feedback_batch ON labelspace_feedback (model, batch) WHERE batch IS NOT NULL;
UPDATE labelspace_schema SET version = 2;
