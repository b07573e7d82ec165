-- Rows of the golden gate, and the view that recomputes each prompt's verdict from them.
CREATE TABLE IF NOT EXISTS golden_results (
    artifact_digest VARCHAR NOT NULL,
    prompt_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    expected_claims VARCHAR[] NOT NULL,
    outcome VARCHAR NOT NULL,
    fault VARCHAR,
    claims VARCHAR[] NOT NULL,
    uncited BOOLEAN NOT NULL,
    latency_ms DOUBLE,
    baseline_outcome VARCHAR,
    baseline_fault VARCHAR,
    baseline_claims VARCHAR[],
    baseline_uncited BOOLEAN,
    met BOOLEAN NOT NULL,
    verdict VARCHAR NOT NULL
);
COMMENT ON TABLE golden_results IS 'One row a golden prompt of a run: regression evidence, never production evidence.';
COMMENT ON COLUMN golden_results.artifact_digest IS 'The golden-verdict.';
COMMENT ON COLUMN golden_results.prompt_id IS 'The prompt.';
COMMENT ON COLUMN golden_results.kind IS 'answerable, museum-number, multi-claim, ambiguous, near-miss, refusal or out-of-scope.';
COMMENT ON COLUMN golden_results.expected_claims IS 'The claims of a right answer, ascending; none where it refuses.';
COMMENT ON COLUMN golden_results.outcome IS 'answered, refused or error.';
COMMENT ON COLUMN golden_results.fault IS 'Why it is an error; null otherwise.';
COMMENT ON COLUMN golden_results.claims IS 'The claims that were made, ascending.';
COMMENT ON COLUMN golden_results.uncited IS 'A claim came without a citation.';
COMMENT ON COLUMN golden_results.latency_ms IS 'As the answerer tells it; null for an error.';
COMMENT ON COLUMN golden_results.baseline_outcome IS 'The same in the baseline; null without one.';
COMMENT ON COLUMN golden_results.baseline_fault IS 'The same in the baseline.';
COMMENT ON COLUMN golden_results.baseline_claims IS 'The same in the baseline.';
COMMENT ON COLUMN golden_results.baseline_uncited IS 'The same in the baseline.';
COMMENT ON COLUMN golden_results.met IS 'What Python found: the expectation is met. Not read when it is recomputed.';
COMMENT ON COLUMN golden_results.verdict IS 'What Python found: same, fixed, regressed or changed. Not read either.';

CREATE OR REPLACE VIEW recomputed_golden AS
WITH judged AS (
    SELECT *, outcome <> 'error' AND NOT uncited AND claims = expected_claims AS is_met,
           baseline_outcome IS NULL
               OR (baseline_outcome <> 'error' AND NOT baseline_uncited AND baseline_claims = expected_claims) AS was_met
    FROM golden_results
)
SELECT artifact_digest, prompt_id, kind, is_met AS met,
       CASE WHEN is_met AND NOT was_met THEN 'fixed'
            WHEN was_met AND NOT is_met THEN 'regressed'
            WHEN baseline_outcome IS NULL
              OR (outcome = baseline_outcome AND fault IS NOT DISTINCT FROM baseline_fault
                  AND claims = baseline_claims AND uncited = baseline_uncited) THEN 'same'
            ELSE 'changed' END AS verdict
FROM judged;
COMMENT ON VIEW recomputed_golden IS 'Every golden verdict again, in SQL, from answers and baseline alone.';

CREATE OR REPLACE VIEW golden_disagreements AS
SELECT artifact_digest, prompt_id, result.verdict AS python_verdict, again.verdict AS sql_verdict
FROM golden_results AS result JOIN recomputed_golden AS again USING (artifact_digest, prompt_id)
WHERE result.verdict <> again.verdict OR result.met <> again.met;
COMMENT ON VIEW golden_disagreements IS 'Must be empty: a prompt on which Python and SQL differ.';
