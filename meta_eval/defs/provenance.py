"""Which bytes a step read, told to Dagster so that it shows the truth about what is out of date.

Dagster notes the newest event of each upstream asset before a step begins, and calls out of date whatever has a newer
one of another version. A step that reads a file nobody has observed yet observes it itself, so the note must be taken
again; else the materialization would be out of date from birth.
"""

from collections.abc import Sequence

import dagster as dg


def record_inputs(context: dg.AssetExecutionContext, observations: Sequence[dg.AssetObservation]) -> None:
    """Log that a step read these inputs, and count them among what its materialization is made from."""
    step = context.op_execution_context.get_step_execution_context()
    for observation in observations:
        context.log_event(observation)
        step.wipe_input_asset_version_info(observation.asset_key)
