"""PROOF: what makes a claim checkable. Knows no lane and no Dagster."""
