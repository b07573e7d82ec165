"""What makes a first-visible answer useful: the six criteria, the defect classes, and what follows from them.

Source: the usefulness contract; rubrics/usefulness-v1.md tells the criteria to scorers. `useful` is never a seventh
opinion: it is what the criteria say, and a sheet on which it says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CRITERIA = {
    "everyPart": "Answers every material part that the sources support, for the actors, cases and actions asked about.",
    "explicit": "States what was asked for outright; nothing has to be inferred from neighbouring material.",
    "sourcesSupport": "Cites approved, live sources that carry the very claim, by exact passage where there is one.",
    "limitsStated": "Gives every limit of maturity, attribution, measurement or certainty that alters its meaning.",
    "unavailableNamed": "Names exactly what is private, unsupported or unavailable, and offers a supported way on.",
    "nothingUnsupported": "Asserts nothing material without support, and does not contradict its own qualification.",
}
DEFECTS = (
    "omission",
    "wrong-actor-or-case",
    "false-gap",
    "relevance-or-compression",
    "wrong-action",
    "attribution-or-measurement",
    "maturity",
    "exclusion",
    "privacy",
    "withdrawal",
    "citation",
    "infrastructure",
)
ASSESSMENTS = ("complete", "minor-gap", "material-failure", "not-applicable")
# An assessment of material failure and the criterion that it must fail.
BOUND_TO = {"sourceSupport": "sourcesSupport", "essentialLimits": "limitsStated"}


def useful(row: Mapping[str, Any], *, navigation: bool) -> bool:
    """What the criteria say of one answer.

    Args:
        navigation: the question asks to be led to an exact source; only then does the first source's decisiveness
            enter.
    """
    conjunction = all(row["criteria"][name] for name in CRITERIA)
    return conjunction and (not navigation or row["firstSourceDecisive"] is True)


def contradiction(row: Mapping[str, Any], *, clauses: int, navigation: bool) -> str | None:
    """The rule by which one row of a sheet contradicts itself, or None."""
    if row["clauseCoverage"] > clauses:
        return "more-clauses-than-asked"
    for assessment, criterion in BOUND_TO.items():
        if row[assessment] == "material-failure" and row["criteria"][criterion]:
            return "material-failure-without-its-criterion"
    if row["useful"] != useful(row, navigation=navigation):
        return "useful-contradicts-criteria"
    if not row["useful"] and not row["defects"]:
        return "not-useful-without-defect"
    if len(set(row["defects"])) != len(row["defects"]):
        return "defect-repeated"
    return None
