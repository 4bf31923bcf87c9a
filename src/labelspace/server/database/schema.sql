-- The tables. {number} is the type of a column that counts the rows in the order of insertion, {text} that of text which
-- is sorted by code points.
-- Times are seconds since 1970. JSON is text. In an inbox, an unknown value is minus infinity: it sorts last in every
-- database, and an index needs no NULL.

CREATE TABLE labelspace_schema (version BIGINT NOT NULL);

CREATE TABLE labelspace_feedback (
    number {number}, model {text} NOT NULL, id {text} NOT NULL,
    accepted {text} NOT NULL, rejected {text} NOT NULL, added {text} NOT NULL,
    annotator {text}, document {text}, version {text}, created DOUBLE PRECISION NOT NULL, text {text} NOT NULL,
    is_learned BIGINT NOT NULL DEFAULT 0,
    UNIQUE (model, id));
CREATE INDEX labelspace_feedback_number ON labelspace_feedback (model, number);
CREATE INDEX labelspace_feedback_document ON labelspace_feedback (model, document);
CREATE INDEX labelspace_feedback_new ON labelspace_feedback (model, number) WHERE is_learned = 0;

-- What was learned together; the lineage of a model names its batches. After a rollback, an entry may be in several.
CREATE TABLE labelspace_batches (
    model {text} NOT NULL, batch {text} NOT NULL, id {text} NOT NULL, PRIMARY KEY (model, id, batch));

CREATE TABLE labelspace_inbox (
    number {number}, model {text} NOT NULL, id {text} NOT NULL, text_hash {text} NOT NULL,
    document {text}, status {text} NOT NULL, version {text} NOT NULL,
    uncertainty DOUBLE PRECISION NOT NULL, disagreement DOUBLE PRECISION NOT NULL,
    rare DOUBLE PRECISION NOT NULL, random DOUBLE PRECISION NOT NULL, text {text} NOT NULL,
    UNIQUE (model, id), UNIQUE (model, text_hash));
CREATE INDEX labelspace_inbox_status ON labelspace_inbox (model, status);
CREATE INDEX labelspace_inbox_version ON labelspace_inbox (model, version, number) WHERE status = 'pending';
CREATE INDEX labelspace_inbox_uncertainty ON labelspace_inbox (model, uncertainty DESC, number)
    WHERE status = 'pending';
CREATE INDEX labelspace_inbox_disagreement ON labelspace_inbox (model, disagreement DESC, number)
    WHERE status = 'pending';
CREATE INDEX labelspace_inbox_rare ON labelspace_inbox (model, rare DESC, number) WHERE status = 'pending';
CREATE INDEX labelspace_inbox_random ON labelspace_inbox (model, random DESC, number) WHERE status = 'pending';

CREATE TABLE labelspace_jobs (
    number {number}, id {text} NOT NULL UNIQUE, model {text} NOT NULL, kind {text} NOT NULL, state {text} NOT NULL,
    step {text} NOT NULL, progress DOUBLE PRECISION NOT NULL, created DOUBLE PRECISION NOT NULL,
    started DOUBLE PRECISION, ended DOUBLE PRECISION, error {text}, result {text},
    heartbeat DOUBLE PRECISION NOT NULL);
-- With this index the database itself refuses a second active job of a kind.
CREATE UNIQUE INDEX labelspace_jobs_active ON labelspace_jobs (model, kind) WHERE state IN ('queued', 'running');

CREATE TABLE labelspace_figures (
    model {text} NOT NULL, version {text} NOT NULL, figures {text} NOT NULL, PRIMARY KEY (model, version));
