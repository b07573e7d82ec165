-- Rows of the usefulness lane, and the view that recomputes the verdict from them. No text of a question or an answer.
CREATE TABLE IF NOT EXISTS packets (
    artifact_digest VARCHAR NOT NULL,
    set_id VARCHAR NOT NULL,
    receipt VARCHAR NOT NULL,
    question_count BIGINT NOT NULL,
    clause_count BIGINT NOT NULL,
    publication_permitted BOOLEAN NOT NULL
);
COMMENT ON TABLE packets IS 'One row a sealed packet: what may be known of it before the freeze.';
COMMENT ON COLUMN packets.artifact_digest IS 'The sealed-packet.';
COMMENT ON COLUMN packets.set_id IS 'The set.';
COMMENT ON COLUMN packets.receipt IS 'SHA-256 of the packet file''s bytes.';
COMMENT ON COLUMN packets.question_count IS 'Questions in it.';
COMMENT ON COLUMN packets.clause_count IS 'Clauses of all its questions.';
COMMENT ON COLUMN packets.publication_permitted IS 'Whether its author permits publication.';

CREATE TABLE IF NOT EXISTS runs (
    artifact_digest VARCHAR NOT NULL,
    set_id VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    arm VARCHAR NOT NULL,
    attempt INTEGER NOT NULL,
    status VARCHAR NOT NULL,
    latency_ms DECIMAL(18, 3),
    cost DECIMAL(21, 9),
    reservation_id VARCHAR
);
COMMENT ON TABLE runs IS 'One row an attempt of an arm at a question, whatever came of it.';
COMMENT ON COLUMN runs.artifact_digest IS 'The recorded-runs.';
COMMENT ON COLUMN runs.set_id IS 'The set.';
COMMENT ON COLUMN runs.question_id IS 'The question.';
COMMENT ON COLUMN runs.arm IS 'baseline or candidate.';
COMMENT ON COLUMN runs.attempt IS 'From 1; the last one is what a visitor saw.';
COMMENT ON COLUMN runs.status IS 'answered, refused, evidence-gap, timeout, fallback or error.';
COMMENT ON COLUMN runs.latency_ms IS 'Milliseconds; null where it was not measured.';
COMMENT ON COLUMN runs.cost IS 'Exact amount in the budget''s currency; null where it is unknown.';
COMMENT ON COLUMN runs.reservation_id IS 'The reservation of the budget ledger; null for an arm that costs nothing.';

CREATE TABLE IF NOT EXISTS scores (
    artifact_digest VARCHAR NOT NULL,
    scorer_code VARCHAR NOT NULL,
    set_id VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    useful BOOLEAN NOT NULL,
    criteria_met INTEGER NOT NULL,
    clause_coverage INTEGER NOT NULL,
    source_support VARCHAR NOT NULL,
    essential_limits VARCHAR NOT NULL,
    first_source_relevant BOOLEAN,
    first_source_decisive BOOLEAN,
    defects VARCHAR NOT NULL
);
COMMENT ON TABLE scores IS 'One row a judgment of one answer by one scorer; loaded only once both scores are on record.';
COMMENT ON COLUMN scores.artifact_digest IS 'The usefulness-score.';
COMMENT ON COLUMN scores.scorer_code IS 'Pseudonym of the scorer.';
COMMENT ON COLUMN scores.set_id IS 'The set.';
COMMENT ON COLUMN scores.question_id IS 'The question.';
COMMENT ON COLUMN scores.label IS 'X or Y: the label under which the scorer saw the answer.';
COMMENT ON COLUMN scores.useful IS 'The judgment.';
COMMENT ON COLUMN scores.criteria_met IS 'How many of the six criteria are met.';
COMMENT ON COLUMN scores.clause_coverage IS 'Clauses that the answer covers.';
COMMENT ON COLUMN scores.source_support IS 'complete, minor-gap, material-failure or not-applicable.';
COMMENT ON COLUMN scores.essential_limits IS 'complete, minor-gap, material-failure or not-applicable.';
COMMENT ON COLUMN scores.first_source_relevant IS 'Is the first source relevant? Null without a source.';
COMMENT ON COLUMN scores.first_source_decisive IS 'Is it decisive? Null without a source.';
COMMENT ON COLUMN scores.defects IS 'Defect classes, separated by spaces.';

CREATE TABLE IF NOT EXISTS adjudications (
    artifact_digest VARCHAR NOT NULL,
    set_id VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    useful BOOLEAN NOT NULL,
    cause VARCHAR
);
COMMENT ON TABLE adjudications IS 'One row a disagreement that was decided.';
COMMENT ON COLUMN adjudications.artifact_digest IS 'The usefulness-adjudication.';
COMMENT ON COLUMN adjudications.set_id IS 'The set.';
COMMENT ON COLUMN adjudications.question_id IS 'The question.';
COMMENT ON COLUMN adjudications.label IS 'X or Y.';
COMMENT ON COLUMN adjudications.useful IS 'The decision.';
COMMENT ON COLUMN adjudications.cause IS 'oracleError or productError; null where neither was at fault.';

CREATE TABLE IF NOT EXISTS unblinded_labels (
    artifact_digest VARCHAR NOT NULL,
    set_id VARCHAR NOT NULL,
    question_id VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    arm VARCHAR NOT NULL
);
COMMENT ON TABLE unblinded_labels IS 'One row a label: whose it was, known once adjudication was closed.';
COMMENT ON COLUMN unblinded_labels.artifact_digest IS 'The unblinding.';
COMMENT ON COLUMN unblinded_labels.set_id IS 'The set.';
COMMENT ON COLUMN unblinded_labels.question_id IS 'The question.';
COMMENT ON COLUMN unblinded_labels.label IS 'X or Y.';
COMMENT ON COLUMN unblinded_labels.arm IS 'baseline or candidate.';

CREATE TABLE IF NOT EXISTS acceptance (
    artifact_digest VARCHAR NOT NULL,
    set_id VARCHAR,
    figure VARCHAR NOT NULL,
    value BIGINT NOT NULL,
    threshold BIGINT,
    met BOOLEAN
);
COMMENT ON TABLE acceptance IS 'The figures that Python computed: never read when they are recomputed.';
COMMENT ON COLUMN acceptance.artifact_digest IS 'The usefulness-acceptance.';
COMMENT ON COLUMN acceptance.set_id IS 'The set; null for all sets together.';
COMMENT ON COLUMN acceptance.figure IS 'baselineUseful, candidateUseful, both, recoveries, losses, neither, gain, questions.';
COMMENT ON COLUMN acceptance.value IS 'The count.';
COMMENT ON COLUMN acceptance.threshold IS 'The least that is due; null where there is none.';
COMMENT ON COLUMN acceptance.met IS 'Whether it is reached; null where there is no threshold.';

CREATE TABLE IF NOT EXISTS custody_events (
    artifact_digest VARCHAR NOT NULL,
    seq BIGINT NOT NULL,
    recorded_at TIMESTAMP_MS NOT NULL,
    event VARCHAR NOT NULL,
    subject VARCHAR,
    entry_digest VARCHAR NOT NULL
);
COMMENT ON TABLE custody_events IS 'The custody register as it stood when the verdict was recomputed.';
COMMENT ON COLUMN custody_events.artifact_digest IS 'The usefulness-acceptance.';
COMMENT ON COLUMN custody_events.seq IS 'Place in the register, from 1.';
COMMENT ON COLUMN custody_events.recorded_at IS 'When it was recorded, UTC.';
COMMENT ON COLUMN custody_events.event IS 'What happened: declared, sealed, frozen, opened, consumed and so on.';
COMMENT ON COLUMN custody_events.subject IS 'The set or the scorer that it is about; null for the whole study.';
COMMENT ON COLUMN custody_events.entry_digest IS 'The entry''s digest, which the next entry holds.';

CREATE TABLE IF NOT EXISTS budget_entries (
    artifact_digest VARCHAR NOT NULL,
    seq BIGINT NOT NULL,
    recorded_at TIMESTAMP_MS NOT NULL,
    event VARCHAR NOT NULL,
    reservation_id VARCHAR,
    amount DECIMAL(21, 9)
);
COMMENT ON TABLE budget_entries IS 'The budget ledger as it stood when the runs were recorded.';
COMMENT ON COLUMN budget_entries.artifact_digest IS 'The recorded-runs.';
COMMENT ON COLUMN budget_entries.seq IS 'Place in the ledger, from 1.';
COMMENT ON COLUMN budget_entries.recorded_at IS 'When it was recorded, UTC.';
COMMENT ON COLUMN budget_entries.event IS 'budget, reserve, settle or expire.';
COMMENT ON COLUMN budget_entries.reservation_id IS 'The reservation; null for the budget itself.';
COMMENT ON COLUMN budget_entries.amount IS 'The budget, or what a settled completion cost; null where it is unknown or not said.';

-- Each verdict with the artifacts that it was computed from.
CREATE OR REPLACE VIEW usefulness_verdicts AS
SELECT verdict.artifact_digest, verdict.round AS study, verdict.status, first.sha256 AS first_score,
       second.sha256 AS second_score, decided.sha256 AS adjudication, opened.sha256 AS unblinding
FROM artifacts AS verdict
JOIN artifact_inputs AS first ON first.artifact_digest = verdict.artifact_digest AND first.name = 'score1'
JOIN artifact_inputs AS second ON second.artifact_digest = verdict.artifact_digest AND second.name = 'score2'
JOIN artifact_inputs AS decided ON decided.artifact_digest = verdict.artifact_digest AND decided.name = 'adjudication'
JOIN artifact_inputs AS opened ON opened.artifact_digest = verdict.artifact_digest AND opened.name = 'unblinding'
WHERE verdict.artifact = 'usefulness-acceptance' AND verdict.status <> 'blocked';
COMMENT ON VIEW usefulness_verdicts IS 'Each verdict that has figures, with the digests of what it came from.';

-- An answer counts as both scorers say, or else as it was decided; undecided is not useful.
CREATE OR REPLACE VIEW judged_answers AS
SELECT verdict.artifact_digest, named.set_id, named.question_id, named.arm,
       CASE WHEN one.useful = other.useful THEN one.useful ELSE coalesce(decided.useful, false) END AS useful
FROM usefulness_verdicts AS verdict
JOIN unblinded_labels AS named ON named.artifact_digest = verdict.unblinding
JOIN scores AS one ON one.artifact_digest = verdict.first_score AND one.set_id = named.set_id
 AND one.question_id = named.question_id AND one.label = named.label
JOIN scores AS other ON other.artifact_digest = verdict.second_score AND other.set_id = named.set_id
 AND other.question_id = named.question_id AND other.label = named.label
LEFT JOIN adjudications AS decided ON decided.artifact_digest = verdict.adjudication
 AND decided.set_id = named.set_id AND decided.question_id = named.question_id AND decided.label = named.label;
COMMENT ON VIEW judged_answers IS 'One row an answer of a verdict: which arm gave it, and whether it counts as useful.';

CREATE OR REPLACE VIEW recomputed_acceptance AS
WITH pairs AS (
    SELECT artifact_digest, set_id, question_id,
           bool_or(useful) FILTER (WHERE arm = 'baseline') AS baseline,
           bool_or(useful) FILTER (WHERE arm = 'candidate') AS candidate
    FROM judged_answers GROUP BY ALL
), counted AS (
    SELECT artifact_digest, set_id, count(*) AS questions,
           count(*) FILTER (WHERE baseline) AS "baselineUseful",
           count(*) FILTER (WHERE candidate) AS "candidateUseful",
           count(*) FILTER (WHERE baseline AND candidate) AS "both",
           count(*) FILTER (WHERE NOT baseline AND candidate) AS recoveries,
           count(*) FILTER (WHERE baseline AND NOT candidate) AS losses,
           count(*) FILTER (WHERE NOT baseline AND NOT candidate) AS neither,
           count(*) FILTER (WHERE candidate) - count(*) FILTER (WHERE baseline) AS gain
    FROM pairs GROUP BY GROUPING SETS ((artifact_digest, set_id), (artifact_digest))
)
SELECT artifact_digest, set_id, figure, value::BIGINT AS value
FROM (UNPIVOT counted ON questions, "baselineUseful", "candidateUseful", "both", recoveries, losses, neither, gain
      INTO NAME figure VALUE value);
COMMENT ON VIEW recomputed_acceptance IS 'Every count of a verdict again, in SQL, from scores, decisions and labels alone.';

CREATE OR REPLACE VIEW acceptance_disagreements AS
WITH compared AS (
    SELECT coalesce(stored.artifact_digest, again.artifact_digest) AS artifact_digest,
           coalesce(stored.set_id, again.set_id) AS set_id, coalesce(stored.figure, again.figure) AS figure,
           stored.value, again.value AS again_value, stored.threshold, stored.met,
           CASE WHEN stored.threshold IS NULL THEN NULL ELSE coalesce(again.value >= stored.threshold, false) END AS again_met
    FROM acceptance AS stored
    FULL JOIN recomputed_acceptance AS again
      ON again.artifact_digest = stored.artifact_digest AND again.figure = stored.figure
     AND again.set_id IS NOT DISTINCT FROM stored.set_id
)
SELECT * FROM compared WHERE value IS DISTINCT FROM again_value OR met IS DISTINCT FROM again_met
UNION ALL
-- The status must be what the thresholds say: failed exactly where one of them is missed.
SELECT verdict.artifact_digest, NULL, 'status', NULL, NULL, NULL, verdict.status <> 'failed', bool_and(stored.met)
FROM usefulness_verdicts AS verdict JOIN acceptance AS stored USING (artifact_digest)
WHERE stored.threshold IS NOT NULL GROUP BY ALL
HAVING (verdict.status <> 'failed') IS DISTINCT FROM bool_and(stored.met);
COMMENT ON VIEW acceptance_disagreements IS 'Must be empty: a count or a verdict on which Python and SQL differ.';
