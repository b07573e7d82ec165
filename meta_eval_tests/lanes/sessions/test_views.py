"""Report, trend and submission are views of records."""

from __future__ import annotations

import re
from typing import Any

from meta_eval.lanes.sessions.report import report
from meta_eval.lanes.sessions.submission import submission
from meta_eval.lanes.sessions.trend import trend
from meta_eval_tests.lanes.sessions.test_journal import record


def judged_record(session_id: str, status: str, model: str = "m1", rubric: str = "rubric-v1") -> dict[str, Any]:
    made = record(session_id)
    made["dimensions"][0]["status"] = status
    return {**made, "model": {"id": model, "source": "config"}, "rubric_version": rubric}


def test_a_report_is_one_file_with_the_same_bytes_each_time_and_runs_nothing() -> None:
    hostile = record("<script>alert(1)</script>", evidence="<img src=x onerror=alert(1)> & \" '")
    page = report(hostile)
    assert page == report(hostile)
    assert not re.search(r"<script|<img|https?://|@import|url\(", page)
    assert "&lt;img src=x onerror=alert(1)&gt; &amp; &quot; &#x27;" in page
    assert "default-src 'none'" in page


def test_opinions_stand_apart_and_are_called_advisory() -> None:
    made = record()
    made["dimensions"].append(
        {"id": "instruction-adherence", "method": "judge", "status": "pass", "evidence": "j", "score": None}
        | {"advisory": True, "calibration_status": "uncalibrated"}
    )
    page = report(made)
    assert page.index("gate-health") < page.index("advisory, uncalibrated") < page.index("instruction-adherence")


def test_a_trend_has_intervals_and_says_what_is_one_and_what_is_a_tie() -> None:
    records = [judged_record(f"s{n}", "pass") for n in range(9)] + [judged_record("s9", "fail")]
    records += [judged_record("x1", "pass", "m2"), judged_record("x2", "cannot-determine", "m2")]
    records += [judged_record("y1", "cannot-determine", "m3")]
    groups = trend(records)["dimensions"]["gate-health"]
    one, two, three = groups["groups"]
    assert (one["counts"]["pass"], one["judged"], one["passRate"]) == (9, 10, 0.9)
    # Wilson for 9 of 10 at z = 1.959964: centre 0.789, half width 0.194
    assert [round(bound, 3) for bound in one["wilson95"]] == [0.596, 0.982]
    assert two["note"] == "n=1: one session is no trend"
    assert (three["note"], three["wilson95"]) == ("none judged", None)
    assert [each["result"] for each in groups["comparisons"]] == ["tie: the intervals overlap"]


def test_a_clear_difference_is_named_and_rubrics_are_not_compared() -> None:
    records = [judged_record(f"a{n}", "pass", "m1") for n in range(30)]
    records += [judged_record(f"b{n}", "fail", "m2") for n in range(30)]
    records += [judged_record(f"c{n}", "fail", "m1", "rubric-v2") for n in range(30)]
    comparisons = trend(records)["dimensions"]["gate-health"]["comparisons"]
    assert [(each["rubric"], each["result"]) for each in comparisons] == [("rubric-v1", "higher: m1")]


def test_a_session_scored_again_counts_once_by_its_last_record() -> None:
    again = [judged_record("s", "fail"), judged_record("s", "pass")]
    assert trend(again)["dimensions"]["gate-health"]["groups"][0]["counts"]["pass"] == 1
    assert trend([]) == {"records": 0, "sessions": 0, "dimensions": {}}


def test_a_submission_holds_no_evidence_no_session_id_and_nothing_unknown() -> None:
    sent = submission(record("secret-project") | {"cwd": "/somewhere", "prompt": "hush"})
    assert sent.keys() == {
        *("schema_version", "record_kind", "run_id", "standard_version", "rubric_version", "handle", "anonymized"),
        *("timestamp", "provenance", "model", "harness", "kpis", "dimensions"),
    }
    assert all("evidence" not in each for each in sent["dimensions"])
