"""The usefulness lane: sealed packets, blind scores, paired acceptance.

Source: the usefulness contract and the custody and usefulness rubric, as told in docs/usefulness-rules.md. Stages in
order: study, packets (seal), freeze, budget (preflight), packets (open), runs, blinding, scoring, adjudication,
unblinding, acceptance, publication.
"""
