"""The documents that people bring to a round, as shapes that the strict reader holds them to.

Source: the production contract. Whatever a document holds beyond these keys is refused, and aggregates that
somebody computed elsewhere (`AGGREGATES`) are dropped and counted: figures come from rows alone.
"""

from __future__ import annotations

import re

from meta_eval.evidence.artifacts import ENVIRONMENTS
from meta_eval.evidence.documents import (
    CODE,
    INSTANT,
    SHA256,
    TRUE_OR_FALSE,
    Keyed,
    Leaf,
    Listed,
    exactly,
    matching,
    one_of,
    public_url,
    whole_number,
)
from meta_eval.evidence.identifiers import urls_carry_contact

VERSION_1 = exactly(1, rule="not-version-1")
ENVIRONMENT = one_of(ENVIRONMENTS, rule="not-an-environment")
CASE_ID = matching(r"case-[0-9a-f]{20}", rule="not-a-case-id", screened=False)
CLAIM_ID = matching(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}", rule="not-a-claim-id")
REVISION = matching(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,99}", rule="not-a-revision")
CURRENCY = matching(r"[A-Z]{3}", rule="not-a-currency", screened=False)
AMOUNT = matching(r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,9})?", rule="not-an-amount", screened=False)
_PATH = re.compile(r"(?!/)(?!.*(?:^|/)\.{1,2}(?:/|$))[^\x00-\x1f\x7f\\]{1,400}")
COST_BASES = ("provider-receipt", "production-instrumentation")
MOST_LATENCY_MS = 86_400_000

AGGREGATES = frozenset(
    "aggregate aggregates metric metrics summary totals precision recall citationAccuracy refusalAccuracy "
    "p95LatencyMs meanCost".split()
)


def _latency_rule(value: object) -> str | None:
    """Milliseconds, to the microsecond: finite, not negative, and less than a day."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "not-a-latency"
    fits = 0 <= value <= MOST_LATENCY_MS and round(value * 1000) / 1000 == value
    return None if fits else "not-a-latency"


LATENCY_MS = Leaf(_latency_rule)


def _path_rule(value: object) -> str | None:
    """A relative path. An e-mail address is no part of one, though `@scope/package` is."""
    if not isinstance(value, str) or _PATH.fullmatch(value) is None:
        return "not-a-path"
    return "contact-detail" if urls_carry_contact(value) else None


RELEASE_PATH = Leaf(_path_rule)
STAGE_STATUS = one_of(("ready", "blocked"), rule="not-a-status")
UPSTREAM = Keyed({"status": STAGE_STATUS, "policyDigest": SHA256})
"""What a stage keeps of an artifact that it was made from, beside what it needs of its result."""


def claimed_environment(document: object) -> str | None:
    """The environment that a document claims, or None where it claims none that there is."""
    claimed = document.get("environment") if isinstance(document, dict) else None
    return claimed if claimed in ENVIRONMENTS else None


def environment_of(document: object) -> str:
    """The environment that a document claims, or `production`, the strictest, where it claims none."""
    return claimed_environment(document) or "production"


def attestation(environment: str) -> Keyed:
    """The operator's word for a log: that it is what it says, and that questions may be collected from it."""
    return Keyed(
        {
            "version": VERSION_1,
            "environment": ENVIRONMENT,
            "source": public_url(environment),
            "logSha256": SHA256,
            "exportedAt": INSTANT,
            "operatorCode": CODE,
            "questionCollectionApproved": exactly(True, rule="question-collection-not-approved"),
        }
    )


def labels(environment: str) -> Keyed:
    """The labeller's completed manifest with its approval."""
    case = Keyed(
        {
            "caseId": CASE_ID,
            "questionSha256": SHA256,
            "shouldRefuse": TRUE_OR_FALSE,
            "relevantClaimIds": Listed(CLAIM_ID),
        }
    )
    approval = Keyed(
        {
            "approverCode": CODE,
            "approvedAt": INSTANT,
            "evidenceUrl": public_url(environment),
            "receiptSha256": SHA256,
            "independentOfRunOperator": exactly(True, rule="not-independent-of-run-operator"),
        }
    )
    return Keyed(
        {
            "version": VERSION_1,
            "environment": ENVIRONMENT,
            "source": public_url(environment),
            "exportSha256": SHA256,
            "preparedManifestDigest": SHA256,
            "frozenAt": INSTANT,
            "cases": Listed(case),
            "approval": approval,
        }
    )


RUN_OPERATOR = Keyed(
    {
        "version": VERSION_1,
        "operatorCode": CODE,
        "overlap": whole_number(least=0, most=1_000_000, rule="not-a-number-of-cases"),
    },
    optional=frozenset({"overlap"}),
)


COST = Keyed(
    {
        "amount": AMOUNT,
        "currency": CURRENCY,
        "basis": one_of(COST_BASES, rule="not-a-cost-basis"),
        "receiptSha256": SHA256,
    },
    optional=frozenset({"receiptSha256"}),
)


def observations(environment: str) -> Keyed:
    """What production did with each case, from its own instrumentation."""
    claim = Keyed({"claimId": CLAIM_ID, "citations": Listed(public_url(environment))})
    observation = Keyed(
        {
            "caseId": CASE_ID,
            "traceSha256": SHA256,
            "observedAt": INSTANT,
            "modelVersion": REVISION,
            "promptVersion": REVISION,
            "refused": TRUE_OR_FALSE,
            "claims": Listed(claim),
            "latencyMs": LATENCY_MS,
            "cost": COST,
        },
        ignored=AGGREGATES,
    )
    return Keyed(
        {
            "version": VERSION_1,
            "datasetDigest": SHA256,
            "environment": ENVIRONMENT,
            "runOperatorCode": CODE,
            "observations": Listed(observation),
        },
        ignored=AGGREGATES,
    )


def reviews(environment: str) -> Keyed:
    """What people decided about each emitted citation."""
    decision = Keyed({"claimId": CLAIM_ID, "citation": public_url(environment), "supported": TRUE_OR_FALSE})
    review = Keyed(
        {
            "caseId": CASE_ID,
            "reviewerCode": CODE,
            "reviewedAt": INSTANT,
            "evidenceUrl": public_url(environment),
            "receiptSha256": SHA256,
            "decisions": Listed(decision),
        },
        ignored=AGGREGATES,
    )
    return Keyed({"version": VERSION_1, "datasetDigest": SHA256, "reviews": Listed(review)}, ignored=AGGREGATES)


def normalised_bundle(environment: str) -> Keyed:
    """A ready bundle as stage 7 joins it and stage 8 keeps it."""
    decision = Keyed({"reviewerCode": CODE, "supported": TRUE_OR_FALSE})
    citation = Keyed({"url": public_url(environment), "decisions": Listed(decision)})
    evidence = Keyed({"url": public_url(environment), "receiptSha256": SHA256})
    review = Keyed(
        {
            "reviewerCode": CODE,
            "reviewedAt": INSTANT,
            "evidenceUrl": public_url(environment),
            "receiptSha256": SHA256,
        }
    )
    case = Keyed(
        {
            "caseId": CASE_ID,
            "traceSha256": SHA256,
            "observedAt": INSTANT,
            "refused": TRUE_OR_FALSE,
            "latencyMs": LATENCY_MS,
            "cost": COST,
            "claims": Listed(Keyed({"claimId": CLAIM_ID, "citations": Listed(citation)})),
            "reviews": Listed(review),
        }
    )
    return Keyed(
        {
            "version": VERSION_1,
            "environment": ENVIRONMENT,
            "datasetDigest": SHA256,
            "releaseDigest": SHA256,
            "runOperatorCode": CODE,
            "modelVersion": REVISION,
            "promptVersion": REVISION,
            "evidence": evidence,
            "cases": Listed(case),
        }
    )


def evidence_reference(environment: str) -> Keyed:
    """Where the run's own evidence is kept, which nothing in the files can tell truthfully."""
    return Keyed({"version": VERSION_1, "evidenceUrl": public_url(environment), "receiptSha256": SHA256})


RELEASE_MANIFEST = Keyed(
    {"version": VERSION_1, "files": Listed(Keyed({"path": RELEASE_PATH, "sha256": SHA256}))},
)

COLLECTION_APPROVAL = Keyed(
    {
        "version": VERSION_1,
        "contractSha256": SHA256,
        "approverCode": CODE,
        "approvedAt": INSTANT,
        "evidenceUrl": public_url("production"),
        "receiptSha256": SHA256,
    }
)
"""A person's word for the collection contract. Collection is always of real people, so only public hosts count."""
