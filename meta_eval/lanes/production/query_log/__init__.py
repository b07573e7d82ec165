"""Stage 1 of the production lane: the query log, where every row gets exactly one outcome.

Source: the production evaluation document, the query log. In the order of the data: `grammar`, `framing` and
`lines` (text to rows), `reading` (file to batches of rows), `instants`, `parsing`, `normalise`, `questions` and `rows`
(row to outcome), `keys`, `duplicates` and `spill` (rows among rows), `cases` (what an export holds), `workers`,
`judging` and `scan` (the whole log), `record` and `again` (a second reading); `outcomes` holds their names. `layouts`
and `columns` are a quicker way to the answers of `parsing`; `ranges`, `spark` and `spark_session` read and judge on a
cluster, in the place of `reading` and `workers`. `places` and `ahead` serve several of them.
"""

from __future__ import annotations

from meta_eval.lanes.production.query_log.again import scan_again
from meta_eval.lanes.production.query_log.framing import ROW_LIMIT
from meta_eval.lanes.production.query_log.judging import Engine
from meta_eval.lanes.production.query_log.normalise import normalised_question
from meta_eval.lanes.production.query_log.outcomes import (
    OUTCOME_LETTERS,
    OUTCOMES,
    counts_of,
    outcomes_of,
    runs_of,
)
from meta_eval.lanes.production.query_log.reading import RowReader, read_rows
from meta_eval.lanes.production.query_log.record import NAME as RECORD_NAME
from meta_eval.lanes.production.query_log.rows import classify
from meta_eval.lanes.production.query_log.scan import LARGE_LOG, LogScan, ScannedLog, processes_for, scan_log

__all__ = [
    "LARGE_LOG",
    "OUTCOMES",
    "OUTCOME_LETTERS",
    "RECORD_NAME",
    "ROW_LIMIT",
    "Engine",
    "LogScan",
    "RowReader",
    "ScannedLog",
    "classify",
    "counts_of",
    "normalised_question",
    "outcomes_of",
    "processes_for",
    "read_rows",
    "runs_of",
    "scan_again",
    "scan_log",
]
