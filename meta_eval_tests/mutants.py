"""The mutation campaign: every kind of artifact, changed in every place, and judged as an audit would judge it.

    python -m meta_eval_tests.mutants

Each leaf is changed in value and in type, each key removed, a key added, list entries removed, doubled and swapped, and
the outer digest is computed anew each time. Each mutant is judged

- alone (`verify PATH`),
- among the files of its round (`verify --round`, no store at hand): the chain of digests and receipts,
- among files that the forger rewrote one and all to fit the mutant, with the evidence store, which holds the digest of
  whatever it was given and was not rewritten.

What survives the first is listed and explained by `test_mutations.py`.

Then the strongest forger: a whole round on disk, each artifact of which is changed in what it keeps and rebuilt by its
own stage, so that every inner digest and figure follows from the change. It is judged in its round, with the files of
the round at hand and no store (`verify --round`). What it may still say otherwise is `MAY_DIFFER`, and the store's list
of digests settles that.

Last, one artifact of each kind of the other lanes and the gate, alone and beside a store that holds its digest. Of the
usefulness lane none verifies alone; what does of the others is listed, with the reason, in their own tests.

Prints `mutants N survivors M` last: M counts the mutants that survive the last judge of either kind.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.errors import VerificationError
from meta_eval.evidence.replay import verified
from meta_eval.lanes.production import collection, metrics, policy, readiness, stages
from meta_eval.lanes.production.chain import Surroundings, broken_link, unlike_upstream
from meta_eval.lanes.production.remaking import remade
from meta_eval.lanes.production.rounds import Round, artifact_name
from meta_eval.lanes.production.steps import REBUILDS, Setting
from meta_eval.lanes.usefulness import policy as usefulness_policy
from meta_eval_tests.defs.people import People, play
from meta_eval_tests.lanes.golden.test_gate import ERROR, REFUSAL, RIGHT, WRONG, verdict
from meta_eval_tests.lanes.production.broken import SMALL_POLICY, whole
from meta_eval_tests.lanes.production.test_mutations import ARTIFACTS, SMALL, forgeries, mutations
from meta_eval_tests.lanes.sessions.test_scored_sessions import artifact_of, mixed_world
from meta_eval_tests.lanes.usefulness.test_mutations import READY as USEFULNESS_STEPS
from meta_eval_tests.lanes.usefulness.world import SMALL_POLICY as SMALL_STUDY
from meta_eval_tests.lanes.usefulness.world import small
from meta_eval_tests.test_mutated_kinds import calibrated, verifying_alone

LEAST_MUTANTS = 5000
_REHEARSED = {
    f"{part} rehearsed": lambda part=part: getattr(whole(overlap=2, environment="rehearsal", **SMALL), part)
    for part in ("prepared", "frozen", "kit", "bundle", "verdict")
}


def survives_alone(mutant: Artifact) -> bool:
    """Does the mutant verify by itself?"""
    try:
        verified(mutant, REBUILDS)
    except VerificationError:
        return False
    return True


def survives_among_files(mutant: Artifact, original: Artifact) -> bool:
    """Does a mutant that verifies alone go unnoticed in the original's round, where no store is at hand?"""
    around = Surroundings(
        round_name=original["round"],
        digests={entry["digest"] for entry in original["inputs"].values() if "digest" in entry},
        receipts={entry["receipt"] for entry in original["inputs"].values() if "receipt" in entry},
        loaded=None,
    )
    return broken_link(mutant, around, file_name=artifact_name(mutant), newest=True) is None


def survives_a_rewritten_round(mutant: Artifact, original: Artifact) -> bool:
    """And where every other artifact and file was made anew to fit it, but not the store?"""
    around = Surroundings(
        round_name=mutant["round"],
        digests={entry["digest"] for entry in mutant["inputs"].values() if "digest" in entry},
        receipts={entry["receipt"] for entry in mutant["inputs"].values() if "receipt" in entry},
        loaded={original["digest"]},
    )
    return broken_link(mutant, around, file_name=artifact_name(mutant), newest=True) is None


MAY_DIFFER = {"/madeAt value": "made again at another instant from the same files, it is what its stage makes then"}


def played(home: Path) -> Round:
    """A round of six cases on disk, through every stage."""
    people, round_ = People(home, "forged", cases=6, answerable=4), Round(home / "rounds", "forged")

    def run(names: str, clock: str) -> None:
        for name in names.split():
            setting = Setting(instant_ms(clock) or 0, round_.name, SMALL_POLICY)
            stages.advance(round_, stages.stage_named(name), setting)

    play(people, run)
    return round_


def rebuilt(mutant: Artifact) -> Artifact | None:
    """What the stage itself makes of a mutant's replay; None where it refuses to."""
    try:
        return verified(REBUILDS[mutant["artifact"]](mutant), REBUILDS)
    except Exception:  # a mutant may break a stage in any way
        return None


def survives_in_its_round(forged: Artifact, round_: Round, honest: dict[str, Artifact]) -> bool:
    """Does a rebuilt artifact pass for its round's, with every other file of the round as it was?"""
    around = Surroundings(round_.name, honest.keys(), round_.receipts(), loaded=None, key=round_.key_digest())
    if broken_link(forged, around, file_name=artifact_name(forged), newest=True) is not None:
        return False
    if unlike_upstream(forged, honest) is not None:
        return False
    try:
        again = remade(round_, forged)
    except VerificationError:
        return False
    return again is None or again["digest"] == forged["digest"]


def rebuilt_in_a_round() -> tuple[int, int]:
    """How many artifacts were rebuilt from an edited part, and how many of them pass for honest."""
    total = survivors = 0
    with tempfile.TemporaryDirectory() as home:
        round_ = played(Path(home))
        originals = [round_.current(stage.kind) for stage in stages.STAGES]
        honest = {artifact["digest"]: artifact for artifact in originals}
        for original in originals:
            tried, passed = 0, Counter[str]()
            for place, mutant in mutations(original):
                forged = rebuilt(mutant)
                if forged is None or forged["digest"] == original["digest"]:
                    continue  # refused, or put right again by its stage
                tried += 1
                if survives_in_its_round(forged, round_, honest):
                    passed[place] += 1
            survivors += sum(passed[place] for place in passed.keys() - MAY_DIFFER.keys())
            total += tried
            print(f"{original['artifact']:<32} {tried:>5} rebuilt  pass in their round: {dict(passed) or 'none'}")
    return total, survivors


def of_other_lanes(home: Path) -> dict[str, Artifact]:
    """An artifact of each kind that is not production's."""
    usefulness_policy.KNOWN_POLICIES[SMALL_STUDY.digest] = SMALL_STUDY
    study = small()
    wrong = verdict([RIGHT, WRONG, ERROR], [RIGHT, RIGHT, REFUSAL])
    made = {f"usefulness {step}": study.made[step] for step in USEFULNESS_STEPS}
    return made | {
        "scored-sessions": artifact_of(mixed_world(home, sessions=12, events=60), "v2"),
        "calibration": calibrated(),
        "golden-verdict": wrong,
    }


def walked_elsewhere() -> tuple[int, int]:
    """How many mutants of the other lanes' artifacts there are, and how many a store would take for honest."""
    total = survivors = 0
    with tempfile.TemporaryDirectory() as home:
        for name, original in of_other_lanes(Path(home)).items():
            tried, alone = verifying_alone(original)
            if name.startswith("usefulness"):
                survivors += len(alone)
                for place in alone:
                    print(f"SURVIVOR {name} {place}", file=sys.stderr)
            total += tried
            print(f"{name:<32} {tried:>5} mutants  {len(alone):>3} verify alone")
    return total, survivors


def main() -> int:
    """Run the campaign; 0 where nothing survives and enough was tried."""
    policy.KNOWN_POLICIES[SMALL_POLICY.digest] = SMALL_POLICY
    started, (total, survivors) = time.monotonic(), rebuilt_in_a_round()
    for name, make in (ARTIFACTS | _REHEARSED).items():
        original = make()
        tried = alone = among = 0
        for place, mutant in forgeries(original):
            tried += 1
            if not survives_alone(mutant):
                continue
            alone += 1
            # Whatever is made from an artifact names its digest, and misses it; nothing is made from a verdict.
            ends = (metrics.KIND, readiness.KIND, collection.KIND)
            last = original["artifact"] in ends or original["status"] == "blocked"
            among += last and survives_among_files(mutant, original)
            if survives_a_rewritten_round(mutant, original):
                survivors += 1
                print(f"SURVIVOR {name} {place}", file=sys.stderr)
        total += tried
        print(f"{name:<32} {tried:>5} mutants  {alone:>3} verify alone  {among:>3} among files without a store")
    elsewhere, passed = walked_elsewhere()
    total, survivors = total + elsewhere, survivors + passed
    print(f"{time.monotonic() - started:.0f} s")
    print(f"mutants {total} survivors {survivors}")
    return 0 if survivors == 0 and total >= LEAST_MUTANTS else 1


if __name__ == "__main__":
    sys.exit(main())
