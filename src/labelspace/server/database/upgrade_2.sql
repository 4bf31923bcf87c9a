-- From version 1 of the tables to 2: what was learned is known of each entry of feedback.

ALTER TABLE labelspace_feedback ADD COLUMN is_learned BIGINT NOT NULL DEFAULT 0;
CREATE INDEX labelspace_feedback_new ON labelspace_feedback (model, number) WHERE is_learned = 0;
CREATE TABLE labelspace_batches (
    model {text} NOT NULL, batch {text} NOT NULL, id {text} NOT NULL, PRIMARY KEY (model, id, batch));
UPDATE labelspace_schema SET version = 2;
