-- Rows of the production lane, and the views that recompute from them what Python computed.
CREATE TABLE IF NOT EXISTS query_outcomes (
    artifact_digest VARCHAR NOT NULL,
    row_number BIGINT NOT NULL,
    outcome VARCHAR NOT NULL
);
COMMENT ON TABLE query_outcomes IS 'One row a log row: its single outcome. No question, id or instant.';
COMMENT ON COLUMN query_outcomes.artifact_digest IS 'The query-log-attestation.';
COMMENT ON COLUMN query_outcomes.row_number IS 'Place in the log, from 1.';
COMMENT ON COLUMN query_outcomes.outcome IS 'eligible, or the first exclusion that fits.';

CREATE TABLE IF NOT EXISTS label_cases (
    artifact_digest VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL,
    question_sha256 VARCHAR NOT NULL,
    should_refuse BOOLEAN NOT NULL
);
COMMENT ON TABLE label_cases IS 'One row a frozen case.';
COMMENT ON COLUMN label_cases.artifact_digest IS 'The frozen-labels.';
COMMENT ON COLUMN label_cases.case_id IS 'Pseudonym of the case within its round.';
COMMENT ON COLUMN label_cases.question_sha256 IS 'SHA-256 of the normalised question.';
COMMENT ON COLUMN label_cases.should_refuse IS 'The label: must the feature refuse?';

CREATE TABLE IF NOT EXISTS label_claims (
    artifact_digest VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    claim_id VARCHAR NOT NULL
);
COMMENT ON TABLE label_claims IS 'One row a claim that a case''s label expects.';
COMMENT ON COLUMN label_claims.artifact_digest IS 'The frozen-labels.';
COMMENT ON COLUMN label_claims.case_id IS 'The case.';
COMMENT ON COLUMN label_claims.position IS 'Place in the label''s list, from 1.';
COMMENT ON COLUMN label_claims.claim_id IS 'Stable id of the claim.';

CREATE TABLE IF NOT EXISTS release_requirements (
    artifact_digest VARCHAR NOT NULL,
    requirement VARCHAR NOT NULL,
    state VARCHAR NOT NULL
);
COMMENT ON TABLE release_requirements IS 'One row a requirement of a release''s readiness.';
COMMENT ON COLUMN release_requirements.artifact_digest IS 'The release-readiness.';
COMMENT ON COLUMN release_requirements.requirement IS 'What a ready release must have.';
COMMENT ON COLUMN release_requirements.state IS 'met, missed or unknown; unknown is not met.';

CREATE TABLE IF NOT EXISTS traces (
    artifact_digest VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL,
    trace_sha256 VARCHAR NOT NULL,
    observed_at TIMESTAMP_MS NOT NULL,
    model_version VARCHAR NOT NULL,
    prompt_version VARCHAR NOT NULL,
    refused BOOLEAN NOT NULL,
    latency_ms DECIMAL(18, 3) NOT NULL,
    cost_amount DECIMAL(21, 9) NOT NULL,
    cost_currency VARCHAR NOT NULL,
    cost_basis VARCHAR NOT NULL
);
COMMENT ON TABLE traces IS 'One row an observed production trace.';
COMMENT ON COLUMN traces.artifact_digest IS 'The assembled-bundle.';
COMMENT ON COLUMN traces.case_id IS 'The case.';
COMMENT ON COLUMN traces.trace_sha256 IS 'SHA-256 of the source record.';
COMMENT ON COLUMN traces.observed_at IS 'When production answered, UTC.';
COMMENT ON COLUMN traces.model_version IS 'One for the whole bundle.';
COMMENT ON COLUMN traces.prompt_version IS 'One for the whole bundle.';
COMMENT ON COLUMN traces.refused IS 'Did the feature refuse?';
COMMENT ON COLUMN traces.latency_ms IS 'Milliseconds, to the microsecond.';
COMMENT ON COLUMN traces.cost_amount IS 'Exact decimal amount.';
COMMENT ON COLUMN traces.cost_currency IS 'Three letters, one for the whole bundle.';
COMMENT ON COLUMN traces.cost_basis IS 'provider-receipt or production-instrumentation.';

CREATE TABLE IF NOT EXISTS emitted_claims (
    artifact_digest VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL,
    claim_id VARCHAR NOT NULL
);
COMMENT ON TABLE emitted_claims IS 'One row a claim that the feature made.';
COMMENT ON COLUMN emitted_claims.artifact_digest IS 'The assembled-bundle.';
COMMENT ON COLUMN emitted_claims.case_id IS 'The case.';
COMMENT ON COLUMN emitted_claims.claim_id IS 'Stable id of the claim.';

CREATE TABLE IF NOT EXISTS citation_decisions (
    artifact_digest VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL,
    claim_id VARCHAR NOT NULL,
    citation VARCHAR NOT NULL,
    reviewer_code VARCHAR NOT NULL,
    supported BOOLEAN NOT NULL
);
COMMENT ON TABLE citation_decisions IS 'One row a reviewer''s decision about one citation.';
COMMENT ON COLUMN citation_decisions.artifact_digest IS 'The assembled-bundle.';
COMMENT ON COLUMN citation_decisions.case_id IS 'The case.';
COMMENT ON COLUMN citation_decisions.claim_id IS 'The claim that was cited for.';
COMMENT ON COLUMN citation_decisions.citation IS 'The public URL cited.';
COMMENT ON COLUMN citation_decisions.reviewer_code IS 'Pseudonym of the reviewer.';
COMMENT ON COLUMN citation_decisions.supported IS 'Does the citation support the claim?';

CREATE TABLE IF NOT EXISTS metrics (
    artifact_digest VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    numerator DECIMAL(38, 9),
    denominator BIGINT NOT NULL,
    threshold VARCHAR,
    met BOOLEAN
);
COMMENT ON TABLE metrics IS 'The figures that Python computed: never read when they are recomputed.';
COMMENT ON COLUMN metrics.artifact_digest IS 'The production-metrics.';
COMMENT ON COLUMN metrics.metric IS 'precision, recall, citationAccuracy, refusalAccuracy, p95LatencyMs, meanCost, agreement.';
COMMENT ON COLUMN metrics.numerator IS 'Numerator; for p95LatencyMs the milliseconds at the rank, for meanCost the total.';
COMMENT ON COLUMN metrics.denominator IS 'Denominator, or the number of rows.';
COMMENT ON COLUMN metrics.threshold IS 'The policy''s threshold; null where there is none.';
COMMENT ON COLUMN metrics.met IS 'Whether the threshold is met; null where there is none.';

-- Each verdict with the labels and the bundle that it was computed from.
CREATE OR REPLACE VIEW scored_rounds AS
SELECT verdict.artifact_digest, verdict.round, labels.sha256 AS labels_digest, bundle.sha256 AS bundle_digest
FROM artifacts AS verdict
JOIN artifact_inputs AS labels ON labels.artifact_digest = verdict.artifact_digest AND labels.name = 'frozenLabels'
JOIN artifact_inputs AS bundle ON bundle.artifact_digest = verdict.artifact_digest AND bundle.name = 'assembledBundle'
WHERE verdict.artifact = 'production-metrics' AND verdict.status <> 'blocked';
COMMENT ON VIEW scored_rounds IS 'Each verdict that has figures, with the digests of its labels and bundle.';

-- In every view the verdict comes first, its rows are joined before they are grouped, and no rows are read twice: a
-- question about one round then reads that round's rows alone, however many rounds the store holds.

-- A citation counts as supported when everybody who decided it says so.
CREATE OR REPLACE VIEW judged_citations AS
SELECT scored.round, scored.artifact_digest, decision.case_id, decision.claim_id, decision.citation,
       bool_and(decision.supported) AS supported, count(*) AS decisions,
       count(*) FILTER (WHERE decision.supported) AS in_favour
FROM scored_rounds AS scored
JOIN citation_decisions AS decision ON decision.artifact_digest = scored.bundle_digest
GROUP BY ALL;
COMMENT ON VIEW judged_citations IS 'One row a citation of a verdict: supported only where every decision about it says so.';

-- A claim is accepted when one of its citations is supported, and expected when its case's label has it.
CREATE OR REPLACE VIEW judged_claims AS
SELECT round, artifact_digest, case_id, claim_id, bool_or(source = 'emitted') AS emitted,
       bool_or(source = 'cited' AND supported) AS accepted, bool_or(source = 'expected') AS expected,
       count(*) FILTER (WHERE source = 'cited') AS citations, count(*) FILTER (WHERE supported) AS supported,
       count(*) FILTER (WHERE decisions = 2) AS pairs,
       count(*) FILTER (WHERE decisions = 2 AND in_favour <> 1) AS agreed
FROM (
    SELECT 'emitted' AS source, scored.round, scored.artifact_digest, claim.case_id, claim.claim_id,
           NULL AS supported, NULL AS decisions, NULL AS in_favour
    FROM scored_rounds AS scored JOIN emitted_claims AS claim ON claim.artifact_digest = scored.bundle_digest
    UNION ALL
    SELECT 'cited', round, artifact_digest, case_id, claim_id, supported, decisions, in_favour FROM judged_citations
    UNION ALL
    SELECT 'expected', scored.round, scored.artifact_digest, label.case_id, label.claim_id, NULL, NULL, NULL
    FROM scored_rounds AS scored JOIN label_claims AS label ON label.artifact_digest = scored.labels_digest
)
GROUP BY round, artifact_digest, case_id, claim_id;
COMMENT ON VIEW judged_claims IS 'One row a claim that a feature made or a label expects: emitted? accepted? expected? And what its citations came to.';

CREATE OR REPLACE VIEW judged_cases AS
SELECT round, artifact_digest, case_id, bool_or(refused) AS refused, bool_or(should_refuse) AS should_refuse,
       max(latency_ms) AS latency_ms, max(cost_amount) AS cost_amount
FROM (
    SELECT scored.round, scored.artifact_digest, trace.case_id, trace.refused, NULL AS should_refuse,
           trace.latency_ms, trace.cost_amount
    FROM scored_rounds AS scored JOIN traces AS trace ON trace.artifact_digest = scored.bundle_digest
    UNION ALL
    SELECT scored.round, scored.artifact_digest, label.case_id, NULL, label.should_refuse, NULL, NULL
    FROM scored_rounds AS scored JOIN label_cases AS label ON label.artifact_digest = scored.labels_digest
)
GROUP BY round, artifact_digest, case_id;
COMMENT ON VIEW judged_cases IS 'One row a case of a verdict: what the feature did, how long it took and cost, and what the label asks for.';

CREATE OR REPLACE VIEW recomputed_metrics AS
WITH claims AS (
    SELECT round, artifact_digest, count(*) FILTER (WHERE emitted) AS emitted, count(*) FILTER (WHERE expected) AS expected,
           count(*) FILTER (WHERE emitted AND expected) AS hits,
           count(*) FILTER (WHERE emitted AND expected AND accepted) AS accepted_hits,
           sum(citations) AS citations, sum(supported) AS supported, sum(pairs) AS pairs, sum(agreed) AS agreed
    FROM judged_claims GROUP BY round, artifact_digest
), cases AS (
    SELECT round, artifact_digest, count(refused) AS observed,
           count(*) FILTER (WHERE refused = should_refuse) AS refused_rightly, sum(cost_amount) AS cost,
           list_sort(list(latency_ms) FILTER (WHERE latency_ms IS NOT NULL))[(95 * count(refused) + 99) // 100] AS p95
    FROM judged_cases GROUP BY round, artifact_digest
), figures AS (
    SELECT round, artifact_digest, unnest([
        {'metric': 'precision', 'numerator': accepted_hits::DECIMAL(38, 9), 'denominator': emitted::BIGINT},
        {'metric': 'recall', 'numerator': hits, 'denominator': expected},
        {'metric': 'citationAccuracy', 'numerator': supported, 'denominator': citations},
        {'metric': 'agreement', 'numerator': agreed, 'denominator': pairs}
    ], recursive := true) FROM claims
    UNION ALL
    SELECT round, artifact_digest, unnest([
        {'metric': 'refusalAccuracy', 'numerator': refused_rightly::DECIMAL(38, 9), 'denominator': observed::BIGINT},
        {'metric': 'p95LatencyMs', 'numerator': p95, 'denominator': observed},
        {'metric': 'meanCost', 'numerator': cost, 'denominator': observed}
    ], recursive := true) FROM cases
    UNION ALL -- a verdict without a claim has these figures too, over nothing
    SELECT round, artifact_digest, unnest(['precision', 'recall', 'citationAccuracy', 'agreement']), 0, 0 FROM scored_rounds
)
SELECT round, artifact_digest, metric, sum(numerator)::DECIMAL(38, 9) AS numerator, sum(denominator)::BIGINT AS denominator
FROM figures GROUP BY round, artifact_digest, metric;
COMMENT ON VIEW recomputed_metrics IS 'Every figure again, in SQL, from rows alone.';

CREATE OR REPLACE VIEW metric_disagreements AS
WITH both_sides AS (
    SELECT verdict.round, artifact_digest, figure.metric, figure.numerator, figure.denominator, figure.threshold,
           figure.met, false AS again
    FROM metrics AS figure JOIN artifacts AS verdict USING (artifact_digest)
    UNION ALL
    SELECT round, artifact_digest, metric, numerator, denominator, NULL, NULL, true FROM recomputed_metrics
), paired AS (
    SELECT round, artifact_digest, metric,
           any_value(numerator) FILTER (WHERE NOT again) AS numerator,
           any_value(denominator) FILTER (WHERE NOT again) AS denominator,
           any_value(threshold) AS threshold, any_value(met) AS met,
           any_value(numerator) FILTER (WHERE again) AS again_numerator,
           any_value(denominator) FILTER (WHERE again) AS again_denominator
    FROM both_sides GROUP BY round, artifact_digest, metric
), compared AS (
    SELECT *, CASE
        WHEN threshold IS NULL THEN NULL
        WHEN metric = 'p95LatencyMs' THEN coalesce(again_numerator <= threshold::DECIMAL(38, 9), false)
        ELSE again_denominator > 0
            AND again_numerator * split_part(threshold, '/', 2)::BIGINT
                >= again_denominator * split_part(threshold, '/', 1)::BIGINT
    END AS again_met
    FROM paired
)
SELECT * FROM compared
WHERE numerator IS DISTINCT FROM again_numerator OR denominator IS DISTINCT FROM again_denominator
   OR met IS DISTINCT FROM again_met;
COMMENT ON VIEW metric_disagreements IS 'Must be empty: a figure on which Python and SQL differ.';

CREATE OR REPLACE VIEW failing_cases AS
SELECT round, artifact_digest, case_id, 'refusal-differs-from-label' AS why, NULL AS claim_id
FROM judged_cases WHERE refused <> should_refuse
UNION ALL
SELECT round, artifact_digest, case_id,
       CASE WHEN NOT emitted THEN 'expected-claim-missing'
            WHEN NOT expected THEN 'claim-not-expected' ELSE 'claim-not-supported' END, claim_id
FROM judged_claims WHERE NOT (emitted AND expected AND accepted);
COMMENT ON VIEW failing_cases IS 'Per case, which claim or refusal lowered a figure, and why.';

CREATE OR REPLACE VIEW current_rounds AS
SELECT round, environment, status, made_at, artifact_digest
FROM artifacts
WHERE artifact = 'production-metrics' AND round IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY round ORDER BY made_at DESC, artifact_digest) = 1;
COMMENT ON VIEW current_rounds IS 'Each round with its newest verdict.';

CREATE OR REPLACE VIEW metric_history AS
SELECT verdict.round, verdict.made_at, figure.metric, figure.numerator, figure.denominator,
       CASE WHEN figure.metric = 'p95LatencyMs' THEN figure.numerator::DOUBLE
            WHEN figure.denominator > 0 THEN figure.numerator::DOUBLE / figure.denominator END AS value,
       figure.threshold, figure.met, verdict.artifact_digest
FROM metrics AS figure JOIN artifacts AS verdict USING (artifact_digest);
COMMENT ON VIEW metric_history IS 'Every figure of every verdict over time; value is for reading, numerator and denominator are exact.';

CREATE OR REPLACE VIEW outcome_history AS
SELECT scan.round, scan.made_at, log.outcome, count(*) AS rows, scan.artifact_digest
FROM query_outcomes AS log JOIN artifacts AS scan USING (artifact_digest)
GROUP BY ALL;
COMMENT ON VIEW outcome_history IS 'How many rows of each log had which outcome, over time.';

CREATE OR REPLACE VIEW latency_distribution AS
WITH sorted AS (
    SELECT scored.round, scored.artifact_digest, list_sort(list(trace.latency_ms)) AS latencies
    FROM scored_rounds AS scored JOIN traces AS trace ON trace.artifact_digest = scored.bundle_digest
    GROUP BY ALL
)
SELECT round, artifact_digest, percent, latencies[(percent * len(latencies) + 99) // 100] AS latency_ms,
       len(latencies) AS rows
FROM sorted, (VALUES (50), (75), (90), (95), (99), (100)) AS ranks(percent);
COMMENT ON VIEW latency_distribution IS 'Latency at each percent by nearest rank: the value at rank ceil(percent * n / 100).';

-- Pairs are the citations that two reviewers decided; within a case they are told apart by the order of their codes.
CREATE OR REPLACE VIEW reviewer_agreement AS
WITH pairs AS (
    SELECT scored.round, scored.artifact_digest,
           arg_min(decision.supported, decision.reviewer_code) AS first_says,
           arg_max(decision.supported, decision.reviewer_code) AS second_says
    FROM scored_rounds AS scored JOIN citation_decisions AS decision ON decision.artifact_digest = scored.bundle_digest
    GROUP BY scored.round, scored.artifact_digest, decision.case_id, decision.claim_id, decision.citation
    HAVING count(*) = 2
), counted AS (
    SELECT round, artifact_digest, count(*) AS pairs,
           count(*) FILTER (WHERE first_says = second_says) AS agreed,
           count(*) FILTER (WHERE first_says) AS first_yes, count(*) FILTER (WHERE second_says) AS second_yes
    FROM pairs GROUP BY ALL
), chance AS (
    SELECT *, first_yes * second_yes + (pairs - first_yes) * (pairs - second_yes) AS by_chance FROM counted
)
SELECT round, artifact_digest, pairs, agreed,
       CASE WHEN by_chance < pairs * pairs
            THEN (agreed * pairs - by_chance)::DOUBLE / (pairs * pairs - by_chance) END AS kappa
FROM chance;
COMMENT ON VIEW reviewer_agreement IS 'How often two reviewers of one citation said the same, and Cohen''s kappa.';
