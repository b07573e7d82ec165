"""The partitions of each lane, and checks by partition. A production round is one partition, and one folder.

Checks are judged by partition, so that the success of one round never stands over the failure of another. Dagster 1.13
calls that a preview; `docs/decisions/0040-checks-by-round.md` says why we stand on it, and what would break.
"""

import warnings

import dagster as dg

rounds_partitions = dg.DynamicPartitionsDefinition(name="rounds")


def blocking_check(
    name: str, asset: dg.AssetKey, description: str, partitions: dg.PartitionsDefinition
) -> dg.AssetCheckSpec:
    """A check that stops the line, of one partition at a time."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Specifying a partitions_def on an AssetCheckSpec")
        return dg.AssetCheckSpec(name, asset=asset, blocking=True, description=description, partitions_def=partitions)
