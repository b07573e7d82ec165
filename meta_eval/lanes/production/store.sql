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

-- A citation counts as supported when everybody who decided it says so.
CREATE OR REPLACE VIEW judged_citations AS
SELECT artifact_digest, case_id, claim_id, citation,
       bool_and(supported) AS supported, count(*) AS decisions, count(*) FILTER (WHERE supported) AS in_favour
FROM citation_decisions GROUP BY ALL;
COMMENT ON VIEW judged_citations IS 'One row a citation: supported only where every decision about it says so.';

-- A claim is accepted when one of its citations is supported, and a hit when its case's label expects it.
CREATE OR REPLACE VIEW judged_claims AS
SELECT scored.artifact_digest, claim.case_id, claim.claim_id,
       bool_or(coalesce(citation.supported, false)) AS accepted, bool_or(label.claim_id IS NOT NULL) AS expected
FROM scored_rounds AS scored
JOIN emitted_claims AS claim ON claim.artifact_digest = scored.bundle_digest
LEFT JOIN judged_citations AS citation
  ON citation.artifact_digest = claim.artifact_digest
 AND citation.case_id = claim.case_id AND citation.claim_id = claim.claim_id
LEFT JOIN label_claims AS label
  ON label.artifact_digest = scored.labels_digest
 AND label.case_id = claim.case_id AND label.claim_id = claim.claim_id
GROUP BY ALL;
COMMENT ON VIEW judged_claims IS 'One row an emitted claim of a verdict: accepted? expected?';

CREATE OR REPLACE VIEW recomputed_metrics AS
WITH expected AS (
    SELECT scored.artifact_digest, count(label.claim_id) AS claims
    FROM scored_rounds AS scored
    LEFT JOIN label_claims AS label ON label.artifact_digest = scored.labels_digest GROUP BY ALL
), emitted AS (
    SELECT scored.artifact_digest, count(claim.claim_id) AS claims,
           count(*) FILTER (WHERE claim.expected) AS hits,
           count(*) FILTER (WHERE claim.expected AND claim.accepted) AS accepted_hits
    FROM scored_rounds AS scored
    LEFT JOIN judged_claims AS claim ON claim.artifact_digest = scored.artifact_digest GROUP BY ALL
), cited AS (
    SELECT scored.artifact_digest, count(citation.citation) AS citations,
           count(*) FILTER (WHERE citation.supported) AS supported,
           count(*) FILTER (WHERE citation.decisions = 2) AS pairs,
           count(*) FILTER (WHERE citation.decisions = 2 AND citation.in_favour <> 1) AS agreed
    FROM scored_rounds AS scored
    LEFT JOIN judged_citations AS citation ON citation.artifact_digest = scored.bundle_digest GROUP BY ALL
), observed AS (
    SELECT scored.artifact_digest, count(trace.case_id) AS cases,
           count(*) FILTER (WHERE trace.refused = label.should_refuse) AS refusals_right,
           list_sort(list(trace.latency_ms))[(95 * count(trace.case_id) + 99) // 100] AS p95, sum(trace.cost_amount) AS cost
    FROM scored_rounds AS scored
    LEFT JOIN traces AS trace ON trace.artifact_digest = scored.bundle_digest
    LEFT JOIN label_cases AS label
      ON label.artifact_digest = scored.labels_digest AND label.case_id = trace.case_id GROUP BY ALL
)
SELECT artifact_digest, metric, numerator::DECIMAL(38, 9) AS numerator, denominator::BIGINT AS denominator
FROM (
    SELECT artifact_digest, 'precision' AS metric, accepted_hits AS numerator, claims AS denominator FROM emitted
    UNION ALL
    SELECT artifact_digest, 'recall', emitted.hits, expected.claims FROM emitted JOIN expected USING (artifact_digest)
    UNION ALL SELECT artifact_digest, 'citationAccuracy', supported, citations FROM cited
    UNION ALL SELECT artifact_digest, 'refusalAccuracy', refusals_right, cases FROM observed
    UNION ALL SELECT artifact_digest, 'p95LatencyMs', p95, cases FROM observed
    UNION ALL SELECT artifact_digest, 'meanCost', cost, cases FROM observed
    UNION ALL SELECT artifact_digest, 'agreement', agreed, pairs FROM cited
);
COMMENT ON VIEW recomputed_metrics IS 'Every figure again, in SQL, from rows alone.';

CREATE OR REPLACE VIEW metric_disagreements AS
WITH compared AS (
    SELECT artifact_digest, metric, stored.numerator, stored.denominator, stored.threshold, stored.met,
           again.numerator AS again_numerator, again.denominator AS again_denominator,
           CASE
               WHEN stored.threshold IS NULL THEN NULL
               WHEN metric = 'p95LatencyMs'
                   THEN coalesce(again.numerator <= stored.threshold::DECIMAL(38, 9), false)
               ELSE again.denominator > 0
                   AND again.numerator * split_part(stored.threshold, '/', 2)::BIGINT
                       >= again.denominator * split_part(stored.threshold, '/', 1)::BIGINT
           END AS again_met
    FROM metrics AS stored FULL JOIN recomputed_metrics AS again USING (artifact_digest, metric)
)
SELECT * FROM compared
WHERE numerator IS DISTINCT FROM again_numerator OR denominator IS DISTINCT FROM again_denominator
   OR met IS DISTINCT FROM again_met;
COMMENT ON VIEW metric_disagreements IS 'Must be empty: a figure on which Python and SQL differ.';

CREATE OR REPLACE VIEW failing_cases AS
SELECT scored.round, scored.artifact_digest, trace.case_id, 'refusal-differs-from-label' AS why, NULL AS claim_id
FROM scored_rounds AS scored
JOIN traces AS trace ON trace.artifact_digest = scored.bundle_digest
JOIN label_cases AS label ON label.artifact_digest = scored.labels_digest AND label.case_id = trace.case_id
WHERE trace.refused <> label.should_refuse
UNION ALL
SELECT scored.round, scored.artifact_digest, claim.case_id,
       CASE WHEN NOT claim.expected THEN 'claim-not-expected' ELSE 'claim-not-supported' END, claim.claim_id
FROM scored_rounds AS scored JOIN judged_claims AS claim USING (artifact_digest)
WHERE NOT (claim.expected AND claim.accepted)
UNION ALL
SELECT scored.round, scored.artifact_digest, label.case_id, 'expected-claim-missing', label.claim_id
FROM scored_rounds AS scored
JOIN label_claims AS label ON label.artifact_digest = scored.labels_digest
ANTI JOIN judged_claims AS claim
  ON claim.artifact_digest = scored.artifact_digest
 AND claim.case_id = label.case_id AND claim.claim_id = label.claim_id;
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
