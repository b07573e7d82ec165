"""The partitions of each lane. A production round is one partition and one folder of the same name."""

import dagster as dg

rounds_partitions = dg.DynamicPartitionsDefinition(name="rounds")
