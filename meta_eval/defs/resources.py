"""What the assets need from outside: the home folder with its rounds and evidence, and the clock.

The orchestration contract: stages are pure, so the folder and the clock enter here and nowhere below.
"""

import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg

from meta_eval.evidence.artifact_roots import ArtifactRoot, ObjectFile
from meta_eval.evidence.canonical import Readable
from meta_eval.evidence.chronology import instant_ms
from meta_eval.evidence.errors import UsageError
from meta_eval.evidence.store import EvidenceStore
from meta_eval.home import artifact_root, home_folder, log_engine
from meta_eval.lanes.catalogue import evidence_store
from meta_eval.lanes.production.rounds import Round
from meta_eval.lanes.production.steps import Setting


class MetaEvalHome(dg.ConfigurableResource[None]):
    """The home folder, the URL of shared artifacts, the engine for query logs, and a fixed clock for controlled runs.

    Left out, each is that of the terminal.
    """

    home: str | None = None
    artifacts: str | None = None
    as_of: str | None = None
    engine: str | None = None
    spark_master: str | None = None

    @property
    def folder(self) -> Path:
        return Path(self.home).absolute() if self.home else home_folder()

    @property
    def rounds(self) -> Path:
        return self.folder / "rounds"

    @property
    def root(self) -> ArtifactRoot:
        """Where the artifacts of rounds lie. Raises UsageError for a URL that they cannot lie under."""
        return artifact_root(self.rounds, self.artifacts)

    def round(self, name: str) -> Round:
        """The round of a partition. Raises UsageError for a name that is no round's."""
        return Round(self.rounds, name, self.root)

    def store(self) -> EvidenceStore:
        """The evidence store, with the tables of every lane."""
        return evidence_store(self.folder / "evidence")

    def setting(self, round_name: str, on_rows: Callable[[int, int], None] | None = None) -> Setting:
        """What a stage of this round runs under: the clock is read here, once a step.

        Raises:
            UsageError: the fixed clock is not an instant, or no engine has that name.
        """
        made_at = time.time_ns() // 1_000_000 if self.as_of is None else instant_ms(self.as_of)
        if made_at is None:
            raise UsageError("as_of is not an instant such as 2026-11-30T19:00:00.000Z")
        engine = log_engine(self.engine, self.spark_master)
        return Setting(made_at=made_at, round_name=round_name, on_rows=on_rows, engine=engine)

    def relative(self, file: Readable) -> str:
        """A file as people are shown it: from the home folder or root on, so that no machine path is recorded."""
        return file.key if isinstance(file, ObjectFile) else Path(str(file)).relative_to(self.folder).as_posix()
