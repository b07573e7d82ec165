"""A golden run as JUnit XML, as CI servers read it: a test case a prompt, a failure for each regression."""

from __future__ import annotations

from collections.abc import Sequence

from junitparser import Failure, JUnitXml, TestCase, TestSuite

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.golden.prompts import Prompt


def junit_xml(artifact: Artifact, prompts: Sequence[Prompt]) -> bytes:
    """The run of a verdict that is not blocked, as an XML document."""
    suite = TestSuite("golden")
    rows = zip(prompts, artifact["replay"]["answers"], artifact["result"]["verdicts"], strict=True)
    for prompt, answer, verdict in rows:
        case = TestCase(prompt.prompt_id, f"golden.{prompt.kind}", (answer["latencyMs"] or 0) / 1000)
        if verdict["verdict"] == "regressed":
            case.result = [Failure(f"expected {said(prompt.claim_ids)}; got {got(answer)}", "regressed")]
        elif verdict["verdict"] != "same":
            case.system_out = f"{verdict['verdict']}: {got(answer)}"
        suite.add_testcase(case)
    document = JUnitXml("meta_eval golden")
    document.add_testsuite(suite)
    return bytes(document.tostring())


def said(claim_ids: Sequence[str]) -> str:
    """Claims in words; none is a refusal."""
    return ", ".join(claim_ids) if claim_ids else "a refusal"


def got(answer: dict[str, object]) -> str:
    """What an answer came to, in words."""
    if answer["outcome"] == "error":
        return f"an error ({answer['fault']})"
    claims = answer["claimIds"]
    told = said(claims if isinstance(claims, list) else [])
    return f"{told}, without a citation" if answer["uncited"] else told
