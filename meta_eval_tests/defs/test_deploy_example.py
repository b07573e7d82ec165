"""The example of more than one machine, as far as it can be read without its servers; live/ plays it."""

from __future__ import annotations

from pathlib import Path

import yaml

PROJECT = Path(__file__).resolve().parents[2]


def test_the_instance_differs_from_the_projects_in_its_storage_only() -> None:
    example = yaml.safe_load((PROJECT / "deploy" / "dagster.yaml").read_text(encoding="utf-8"))
    own = yaml.safe_load((PROJECT / ".dagster_home" / "dagster.yaml").read_text(encoding="utf-8"))
    storage = example.pop("storage")["postgres"]["postgres_db"]
    assert example == own
    assert all(value.keys() == {"env"} for value in storage.values())  # no address and no password in a file


def test_every_package_of_the_example_is_locked_with_its_hash() -> None:
    text = (PROJECT / "deploy" / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    pinned = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert pinned
    assert all("==" in line and "--hash=sha256:" in line for line in pinned)
    assert "://" not in text  # no registry's host
