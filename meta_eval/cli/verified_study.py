"""A study under audit: both registers, every artifact, and the chain between those that the register names."""

from __future__ import annotations

from collections.abc import Iterator

from meta_eval.cli.verified_files import Row, judged_file, refused
from meta_eval.evidence.errors import InputError, MetaEvalError, VerificationError
from meta_eval.evidence.register import Entry
from meta_eval.lanes.usefulness import chain as study_chain
from meta_eval.lanes.usefulness.studies import KIND_OF, Study


def verified_study(place: Study) -> Iterator[Row]:
    """Both registers, every artifact in the folder, and the chain between those that the register names."""
    chains: list[list[Entry]] = []
    for chain in (place.register, place.ledger):
        try:
            chains.append(chain.entries())
        except MetaEvalError as error:
            yield refused(chain.path, error)
            continue
        if chains[-1]:
            yield {
                "path": str(chain.path),
                "verified": True,
                "artifact": "register",
                "status": f"of {len(chains[-1])} entries",
                "digest": chains[-1][-1]["digest"],
            }
    found = [(file, *judged_file(file)) for file in sorted(place.artifacts.glob("*/*.json"))]
    if len(chains) < 2:
        yield from (result for _, result, _ in found)
        return
    entries, ledger = chains
    named = {e["body"]["digest"]: KIND_OF[e["event"]] for e in entries if e["event"] in KIND_OF}
    on_record = {one["digest"]: one for _, _, one in found if one is not None and one["digest"] in named}
    recorded = study_chain.Recorded(on_record, entries, ledger)
    for file, result, artifact in found:
        problem = None
        if artifact is not None and artifact["digest"] in named:
            problem = study_chain.broken_link(artifact, recorded, study_name=place.name)
        yield result if problem is None else refused(file, VerificationError(str(file), *problem))
    for digest, kind in named.items():
        if digest not in on_record:
            gone = InputError(str(place.artifacts / kind), "the artifact that the register names is gone or not honest")
            yield refused(place.artifacts / kind, gone)
