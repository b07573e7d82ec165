"""Tests on the running thing: `dagster dev`, a browser, real servers. `make live` runs them, `make test` does not."""
