"""Tests that start real servers. `make test` leaves them alone; each says what it needs and skips nothing."""
