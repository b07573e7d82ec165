-- Rows of the sessions lane, and the view that recomputes from them every verdict that Python found.
CREATE TABLE IF NOT EXISTS sessions (
    artifact_digest VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    line BIGINT NOT NULL,
    rubric VARCHAR NOT NULL,
    started_at TIMESTAMP_MS,
    files_changed DOUBLE,
    completion_rate DOUBLE,
    planned_issues DOUBLE,
    planned_is_unreadable BOOLEAN NOT NULL,
    spiral DOUBLE,
    spiral_is_unreadable BOOLEAN NOT NULL,
    total_waves DOUBLE,
    wave_count BIGINT,
    all_housekeeping BOOLEAN NOT NULL,
    stream_state VARCHAR NOT NULL,
    stream_kinds VARCHAR[] NOT NULL
);
COMMENT ON TABLE sessions IS 'One row a scored session: what its last record says.';
COMMENT ON COLUMN sessions.artifact_digest IS 'The scored-sessions artifact.';
COMMENT ON COLUMN sessions.session_id IS 'The session.';
COMMENT ON COLUMN sessions.line IS 'The record''s line in sessions.jsonl.';
COMMENT ON COLUMN sessions.rubric IS 'v1 or v2.';
COMMENT ON COLUMN sessions.started_at IS 'UTC; null where unreadable.';
COMMENT ON COLUMN sessions.files_changed IS 'total_files_changed; null where it is no number.';
COMMENT ON COLUMN sessions.completion_rate IS 'effectiveness.completion_rate; null where it is no finite number.';
COMMENT ON COLUMN sessions.planned_issues IS 'effectiveness.planned_issues; null where it is no number.';
COMMENT ON COLUMN sessions.planned_is_unreadable IS 'planned_issues is there, and says nothing that could be a number.';
COMMENT ON COLUMN sessions.spiral IS 'agent_summary.spiral; null where missing or no number.';
COMMENT ON COLUMN sessions.spiral_is_unreadable IS 'spiral is there and no number.';
COMMENT ON COLUMN sessions.total_waves IS 'As recorded; null where it is no number.';
COMMENT ON COLUMN sessions.wave_count IS 'Length of waves; null where it is no list.';
COMMENT ON COLUMN sessions.all_housekeeping IS 'Every wave is the coordinator''s own Housekeeping wave.';
COMMENT ON COLUMN sessions.stream_state IS 'present, empty, absent or unreadable.';
COMMENT ON COLUMN sessions.stream_kinds IS 'Kinds of signals that the stream holds anywhere.';

CREATE TABLE IF NOT EXISTS session_windows (
    artifact_digest VARCHAR NOT NULL,
    session_id VARCHAR,
    line BIGINT NOT NULL,
    started_at TIMESTAMP_MS NOT NULL,
    ended_at TIMESTAMP_MS NOT NULL,
    is_scored BOOLEAN NOT NULL
);
COMMENT ON TABLE session_windows IS 'One row a ledger record with two readable bounds, scored or not: the peers are among them.';
COMMENT ON COLUMN session_windows.artifact_digest IS 'The scored-sessions artifact.';
COMMENT ON COLUMN session_windows.session_id IS 'Null where the record has no usable id.';
COMMENT ON COLUMN session_windows.line IS 'The record''s line in sessions.jsonl.';
COMMENT ON COLUMN session_windows.started_at IS 'UTC.';
COMMENT ON COLUMN session_windows.ended_at IS 'UTC; before the start where the record says so.';
COMMENT ON COLUMN session_windows.is_scored IS 'This record was scored.';

CREATE TABLE IF NOT EXISTS session_events_attributed (
    artifact_digest VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    outcome VARCHAR,
    "at" TIMESTAMP_MS,
    attribution VARCHAR NOT NULL
);
COMMENT ON TABLE session_events_attributed IS 'One row a signal and the session it counts for. In a shared window gates count for nobody, and of guards the first of each kind is listed.';
COMMENT ON COLUMN session_events_attributed.artifact_digest IS 'The scored-sessions artifact.';
COMMENT ON COLUMN session_events_attributed.session_id IS 'The session.';
COMMENT ON COLUMN session_events_attributed.kind IS 'gate, full_gate, blocked, warned or loop_warning.';
COMMENT ON COLUMN session_events_attributed.outcome IS 'A gate''s: green (exit code 0), red, or odd (a list or an object).';
COMMENT ON COLUMN session_events_attributed."at" IS 'UTC; null where unreadable.';
COMMENT ON COLUMN session_events_attributed.attribution IS 'time-window, session-id, or no-offset (one row a kind): near the window, and nobody can say on which side.';

CREATE TABLE IF NOT EXISTS session_dimensions (
    artifact_digest VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    dimension VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    score DOUBLE,
    evidence VARCHAR NOT NULL
);
COMMENT ON TABLE session_dimensions IS 'One row a session and dimension: the verdict that Python found.';
COMMENT ON COLUMN session_dimensions.artifact_digest IS 'The scored-sessions artifact.';
COMMENT ON COLUMN session_dimensions.session_id IS 'The session.';
COMMENT ON COLUMN session_dimensions.position IS 'Place in the rubric''s order, from 1.';
COMMENT ON COLUMN session_dimensions.dimension IS 'Its id, such as gate-health.';
COMMENT ON COLUMN session_dimensions.status IS 'pass, fail, not-applicable or cannot-determine.';
COMMENT ON COLUMN session_dimensions.score IS 'plan-fidelity''s completion rate; informative.';
COMMENT ON COLUMN session_dimensions.evidence IS 'What the verdict follows from, in words.';

CREATE TABLE IF NOT EXISTS session_kpis (
    artifact_digest VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL,
    kpi VARCHAR NOT NULL,
    value DOUBLE
);
COMMENT ON TABLE session_kpis IS 'One row a session and KPI: reported, never graded.';
COMMENT ON COLUMN session_kpis.artifact_digest IS 'The scored-sessions artifact.';
COMMENT ON COLUMN session_kpis.session_id IS 'The session.';
COMMENT ON COLUMN session_kpis.kpi IS 'Its name.';
COMMENT ON COLUMN session_kpis.value IS 'Null where unknown, never 0 for it.';

CREATE OR REPLACE VIEW session_overlaps AS
SELECT DISTINCT own.artifact_digest, own.session_id
FROM session_windows AS own
JOIN session_windows AS other
    ON other.artifact_digest = own.artifact_digest
    AND other.session_id IS DISTINCT FROM own.session_id
    AND other.started_at < own.ended_at
    AND own.started_at < other.ended_at
WHERE own.is_scored AND own.started_at <= own.ended_at;
COMMENT ON VIEW session_overlaps IS 'Scored sessions whose window another session''s overlaps; touching is no overlap.';

CREATE OR REPLACE VIEW session_counts AS
WITH last_full AS (
    SELECT artifact_digest, session_id, max("at") AS last_at
    FROM session_events_attributed
    WHERE kind = 'full_gate' AND attribution = 'time-window'
    GROUP BY ALL
)
SELECT
    e.artifact_digest,
    e.session_id,
    count(*) FILTER (e.outcome IS NOT NULL AND attribution = 'time-window') AS gates,
    count(*) FILTER (e.outcome = 'red' AND attribution = 'time-window') AS red_gates,
    count(*) FILTER (e.outcome = 'odd' AND attribution = 'time-window') AS odd_gates,
    count(*) FILTER (e.kind IN ('gate', 'full_gate') AND attribution = 'no-offset') AS unplaced_gates,
    count(*) FILTER (e.kind = 'full_gate' AND attribution = 'time-window') AS full_gates,
    count(*) FILTER (e.kind = 'full_gate' AND attribution = 'no-offset') AS unplaced_full_gates,
    count(DISTINCT e.outcome) FILTER (e.kind = 'full_gate' AND e."at" = l.last_at AND attribution = 'time-window')
        AS last_outcomes,
    min(e.outcome) FILTER (e.kind = 'full_gate' AND e."at" = l.last_at AND attribution = 'time-window') AS last_outcome,
    count(*) FILTER (e.kind = 'blocked' AND attribution = 'time-window') AS blocked,
    count(*) FILTER (e.kind = 'blocked' AND attribution = 'no-offset') AS unplaced_blocked
FROM session_events_attributed AS e
LEFT JOIN last_full AS l USING (artifact_digest, session_id)
GROUP BY ALL;
COMMENT ON VIEW session_counts IS 'Per scored session, the counts that its verdicts follow from.';

CREATE OR REPLACE VIEW session_basis AS
SELECT
    s.*,
    o.session_id IS NOT NULL AS is_contaminated,
    w.line IS NOT NULL AND w.started_at <= w.ended_at AS is_measurable,
    coalesce(c.gates, 0) AS gates,
    coalesce(c.red_gates, 0) AS red_gates,
    coalesce(c.odd_gates, 0) AS odd_gates,
    coalesce(c.unplaced_gates, 0) AS unplaced_gates,
    coalesce(c.full_gates, 0) AS full_gates,
    coalesce(c.unplaced_full_gates, 0) AS unplaced_full_gates,
    coalesce(c.last_outcomes, 0) AS last_outcomes,
    c.last_outcome,
    coalesce(c.blocked, 0) AS blocked,
    coalesce(c.unplaced_blocked, 0) AS unplaced_blocked
FROM sessions AS s
LEFT JOIN session_overlaps AS o USING (artifact_digest, session_id)
LEFT JOIN session_windows AS w ON w.artifact_digest = s.artifact_digest AND w.line = s.line AND w.is_scored
LEFT JOIN session_counts AS c ON c.artifact_digest = s.artifact_digest AND c.session_id = s.session_id;
COMMENT ON VIEW session_basis IS 'Per scored session, everything that the rubric''s tables read.';

CREATE OR REPLACE VIEW recomputed_session_verdicts AS
SELECT artifact_digest, session_id, 'verification-evidence' AS dimension,
    CASE
        WHEN is_contaminated OR stream_state = 'unreadable' THEN 'cannot-determine'
        WHEN NOT is_measurable AND list_has_any(stream_kinds, ['gate', 'full_gate']) THEN 'cannot-determine'
        WHEN red_gates > 0 THEN 'fail'
        WHEN unplaced_gates > 0 THEN 'cannot-determine'
        WHEN gates = 0 AND files_changed = 0 THEN 'not-applicable'
        WHEN gates = 0 OR odd_gates > 0 THEN 'cannot-determine'
        ELSE 'pass'
    END AS status
FROM session_basis
UNION ALL
SELECT artifact_digest, session_id, 'plan-fidelity',
    CASE
        WHEN completion_rate >= 0.8::DOUBLE THEN 'pass'
        WHEN completion_rate IS NOT NULL THEN 'fail'
        WHEN planned_is_unreadable THEN 'cannot-determine'
        WHEN coalesce(planned_issues, 0) = 0 THEN 'not-applicable'
        ELSE 'cannot-determine'
    END
FROM session_basis
UNION ALL
SELECT artifact_digest, session_id, 'gate-health',
    CASE
        WHEN is_contaminated OR stream_state = 'unreadable' THEN 'cannot-determine'
        WHEN NOT is_measurable AND list_contains(stream_kinds, 'full_gate') THEN 'cannot-determine'
        WHEN unplaced_full_gates > 0 THEN 'cannot-determine'
        WHEN full_gates = 0 AND (all_housekeeping OR coalesce(total_waves = 0, false) OR coalesce(wave_count = 0, false))
            THEN 'not-applicable'
        WHEN full_gates = 0 AND wave_count IS NULL AND total_waves IS NULL THEN 'not-applicable'
        WHEN full_gates = 0 OR last_outcomes > 1 OR last_outcome = 'odd' THEN 'cannot-determine'
        WHEN last_outcome = 'green' THEN 'pass'
        ELSE 'fail'
    END
FROM session_basis
UNION ALL
SELECT artifact_digest, session_id, 'process-safety',
    CASE
        WHEN stream_state <> 'present' THEN 'cannot-determine'
        WHEN spiral > 0 THEN 'fail'
        WHEN rubric = 'v1' AND blocked > 0 THEN 'fail'
        WHEN spiral_is_unreadable THEN 'cannot-determine'
        WHEN rubric = 'v1' AND NOT is_measurable AND list_has_any(stream_kinds, ['blocked', 'loop_warning'])
            THEN 'cannot-determine'
        WHEN rubric = 'v1' AND unplaced_blocked > 0 THEN 'cannot-determine'
        ELSE 'pass'
    END
FROM session_basis
UNION ALL
SELECT artifact_digest, session_id, 'guard-friction', 'not-applicable' FROM session_basis WHERE rubric = 'v2'
UNION ALL
SELECT artifact_digest, session_id, 'efficiency-kpis', 'not-applicable' FROM session_basis;
COMMENT ON VIEW recomputed_session_verdicts IS 'Every deterministic verdict, recomputed in SQL from rows alone.';

CREATE OR REPLACE VIEW session_verdict_disagreements AS
SELECT
    coalesce(d.artifact_digest, r.artifact_digest) AS artifact_digest,
    coalesce(d.session_id, r.session_id) AS session_id,
    coalesce(d.dimension, r.dimension) AS dimension,
    d.status AS python_status,
    r.status AS sql_status
FROM session_dimensions AS d
FULL JOIN recomputed_session_verdicts AS r
    ON r.artifact_digest = d.artifact_digest AND r.session_id = d.session_id AND r.dimension = d.dimension
WHERE d.status IS DISTINCT FROM r.status;
COMMENT ON VIEW session_verdict_disagreements IS 'Must be empty: a verdict on which Python and SQL differ.';

CREATE OR REPLACE VIEW session_verdict_counts AS
SELECT s.rubric, d.dimension, d.status, count(*) AS sessions, d.artifact_digest
FROM session_dimensions AS d
JOIN sessions AS s USING (artifact_digest, session_id)
GROUP BY ALL;
COMMENT ON VIEW session_verdict_counts IS 'Per artifact and dimension, how many sessions came out how.';
