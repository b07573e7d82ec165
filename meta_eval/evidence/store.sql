-- What every lane's evidence shares. Append-only: a digest is loaded once, whole, and never changed.
CREATE TABLE IF NOT EXISTS artifacts (
    artifact_digest VARCHAR PRIMARY KEY,
    round VARCHAR,
    artifact VARCHAR NOT NULL,
    evidence_class VARCHAR NOT NULL,
    environment VARCHAR,
    status VARCHAR NOT NULL,
    policy_digest VARCHAR NOT NULL,
    made_at TIMESTAMP_MS NOT NULL
);
COMMENT ON TABLE artifacts IS 'One row an artifact that a stage left behind, ready or blocked.';
COMMENT ON COLUMN artifacts.artifact_digest IS 'SHA-256 of the artifact''s canonical JSON without its digest key.';
COMMENT ON COLUMN artifacts.round IS 'The round (partition) it belongs to; null outside a round.';
COMMENT ON COLUMN artifacts.artifact IS 'The kind, such as production-metrics.';
COMMENT ON COLUMN artifacts.evidence_class IS 'production, rehearsal, regression or unattested: no class stands in for another.';
COMMENT ON COLUMN artifacts.environment IS 'production or rehearsal; null before a person attests.';
COMMENT ON COLUMN artifacts.status IS 'ready, blocked, passed, rehearsed or failed.';
COMMENT ON COLUMN artifacts.policy_digest IS 'SHA-256 of the policy whose thresholds applied.';
COMMENT ON COLUMN artifacts.made_at IS 'The artifact''s own recorded time, UTC.';

CREATE TABLE IF NOT EXISTS artifact_inputs (
    artifact_digest VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE artifact_inputs IS 'What each artifact was made from: the chain from raw log to verdict.';
COMMENT ON COLUMN artifact_inputs.artifact_digest IS 'The artifact that was made.';
COMMENT ON COLUMN artifact_inputs.name IS 'The input''s name, such as frozenLabels.';
COMMENT ON COLUMN artifact_inputs.kind IS 'receipt (of a file''s bytes) or digest (of a canonical value).';
COMMENT ON COLUMN artifact_inputs.sha256 IS 'The receipt or digest.';

CREATE TABLE IF NOT EXISTS blockers (
    artifact_digest VARCHAR NOT NULL,
    code VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    count BIGINT NOT NULL
);
COMMENT ON TABLE blockers IS 'Why a stage refused: rule, place and count, never a value.';
COMMENT ON COLUMN blockers.artifact_digest IS 'The blocked artifact.';
COMMENT ON COLUMN blockers.code IS 'The rule that was broken.';
COMMENT ON COLUMN blockers.subject IS 'Where it was broken.';
COMMENT ON COLUMN blockers.count IS 'How often; for a threshold, the number that was found.';

CREATE TABLE IF NOT EXISTS loads (
    artifact_digest VARCHAR NOT NULL,
    table_name VARCHAR NOT NULL,
    row_count BIGINT NOT NULL
);
COMMENT ON TABLE loads IS 'How many rows each artifact brought to each table: a store that holds fewer is short, and says so.';
COMMENT ON COLUMN loads.artifact_digest IS 'The artifact.';
COMMENT ON COLUMN loads.table_name IS 'The table that its rows went to.';
COMMENT ON COLUMN loads.row_count IS 'How many rows.';
