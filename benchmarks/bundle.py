"""A bundle of many cases through the stages after the export, from files to artifacts: what each stage costs.

    python benchmarks/bundle.py [--cases 100000] [--citations 3]

The people's documents are invented, by the rules of a rehearsal, with as many claims a case and citations a claim as
asked for. Every stage runs in a process of its own, as the commands run it: read and verify what is upstream, judge,
write. Printed for each: wall time, processor time, peak memory, and size of what it wrote.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from meta_eval.evidence.canonical import canonical_bytes, read_document, receipt
from meta_eval.evidence.files import write_document
from meta_eval.evidence.replay import load_verified
from meta_eval.lanes.catalogue import evidence_store, tables_of
from meta_eval.lanes.production import bundle, labels, manifest, metrics, run_kit, steps
from meta_eval.lanes.production.rehearsal import people
from meta_eval.lanes.production.steps import Setting, Step

VERDICT_AT = 1_796_000_000_000
TIMES = people.Timeline(VERDICT_AT)


def measured(name: str, work: Callable[[], Path | None]) -> None:
    """Run one piece of work in a child process, and print what it cost."""
    started = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:  # the parent must hear of it, whatever it is
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{name} failed")
    wall = time.perf_counter() - started
    print(f"{name:<12} {wall:>8.1f} s wall {used.ru_utime + used.ru_stime:>8.1f} s CPU {used.ru_maxrss // 1024:>7,} MB")


def kept(folder: Path, step: Step) -> Path:
    """The artifact of a step, written."""
    return write_document(folder / f"{step.artifact['artifact']}.json", step.artifact)


class Bench:
    """One round's files, and the stages over them."""

    def __init__(self, folder: Path, cases: int, claims: int, citations: int) -> None:
        self.folder, self.cases, self.claims, self.citations = folder, cases, claims, citations

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def setting(self, made_at: int) -> Setting:
        return Setting(made_at, "bench")

    def write_export(self) -> None:
        cases = [{"caseId": f"case-{n:020x}", "question": f"Which hall shows object {n}?"} for n in range(self.cases)]
        document = {"version": 1, "environment": "rehearsal", "source": f"{people.HOST}/log", "cases": cases}
        write_document(self.path("export"), document)

    def prepare(self) -> None:
        kept(self.folder, steps.prepare_manifest(self.path("export"), self.setting(TIMES.after_log(1))))

    def label(self) -> None:
        prepared, _ = read_document(self.path(manifest.KIND))
        worksheet = manifest.labels_worksheet(prepared)
        export, _ = read_document(self.path("export"))
        document = people.labels(worksheet, export, {}, TIMES)
        for n, case in enumerate(document["cases"]):
            case["shouldRefuse"] = n % 10 == 0
            case["relevantClaimIds"] = [] if n % 10 == 0 else [f"claim-{place}" for place in range(self.claims)]
        write_document(self.path("labels"), document)

    def freeze(self) -> None:
        step = steps.freeze_labels(self.path("labels"), self.path(manifest.KIND), self.setting(TIMES.after_log(5)))
        kept(self.folder, step)

    def kit(self) -> None:
        setting = self.setting(TIMES.after_log(6))
        step = steps.prepare_run_kit(self.path(labels.KIND), people.run_operator(), setting)
        kept(self.folder, step)
        for name, paper in step.papers.items():
            write_document(self.folder / name, paper)

    def observe(self) -> None:
        worksheet, _ = read_document(self.path("observation-worksheet"))
        frozen, _ = read_document(self.path("labels"))
        observed = people.observations(worksheet, frozen, TIMES, people.SLIPS)
        for row in observed["observations"]:
            for claim in row["claims"]:
                claim["citations"] = [f"{people.HOST}/records/{n}" for n in range(self.citations)]
        write_document(self.path("observations"), observed)
        sheets = {lane: read_document(self.path(f"review-worksheet-{lane.lower()}"))[0] for lane in run_kit.LANES}
        write_document(self.path("reviews"), people.reviews(sheets, observed, TIMES, people.SLIPS))
        write_document(self.path("release"), people.release_manifest())

    def assemble(self) -> None:
        files = steps.BundleFiles(
            self.path("observations"),
            self.path("reviews"),
            self.path("release"),
            self.path(labels.KIND),
            self.path(run_kit.KIND),
        )
        reference = people.evidence_reference()
        kept(
            self.folder,
            steps.assemble_bundle(
                files,
                self.setting(VERDICT_AT),
                evidence_reference=reference,
                reference_receipt=receipt(canonical_bytes(reference)),
                operator_code=people.OPERATOR,
            ),
        )

    def evaluate(self) -> None:
        step = steps.evaluate_bundle(self.path(labels.KIND), self.path(bundle.KIND), self.setting(VERDICT_AT))
        assert step.artifact["status"] in ("rehearsed", "failed"), step.artifact["blockers"]
        kept(self.folder, step)

    def verify(self) -> None:
        load_verified(self.path(metrics.KIND), steps.REBUILDS)

    def load(self) -> None:
        store = evidence_store(self.folder / "evidence")
        for kind in (labels.KIND, bundle.KIND, metrics.KIND):
            artifact, _ = read_document(self.path(kind))
            store.load(artifact, tables_of(artifact))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--claims", type=int, default=3)
    parser.add_argument("--citations", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.cases, given.claims, given.citations)
        bench.write_export()
        for name in ("prepare", "label", "freeze", "kit", "observe", "assemble", "evaluate", "verify", "load"):
            measured(name, getattr(bench, name))
        for path in sorted(Path(folder).glob("*.json")):
            print(f"{path.name:<32} {path.stat().st_size / 1e6:>9.1f} MB")


if __name__ == "__main__":
    main()
