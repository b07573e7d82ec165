"""The terminal's front door: a module a lane. Works with Dagster not installed."""
