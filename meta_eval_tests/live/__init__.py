"""Tests on the running thing: `dagster dev` and a real browser. `make live` runs them; `make test` does not."""
