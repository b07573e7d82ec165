"""Where the artifacts of rounds lie: in the rounds' own folders, or as objects under one URL that machines share.

Source: the orchestration contract, which moves evidence between machines as artifact files under one root. A root
lists, reads and keeps artifacts, and nothing else: no key, export, inbox, worksheet or store is ever given to it.
Under both roots an artifact has the same name, `rounds/ROUND/artifacts/KIND/FILE`, so that a copy of the one is the
other.

An object is written once: by a conditional put where the name was free, read again, and compared. One put makes an
object whole or not at all. A root of objects must list what was put before; what it lists and cannot give is an
error, and never an artifact less.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from meta_eval.evidence.artifacts import Artifact
from meta_eval.evidence.canonical import Readable, canonical_bytes
from meta_eval.evidence.errors import InputError, MetaEvalError, OverwriteError, UsageError
from meta_eval.evidence.files import write_document

_URL = re.compile(r"(?P<protocol>s3|s3a|memory)://(?P<path>[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9._=-]+)*)/?")
_TIMEOUTS = {"connect_timeout": 5, "read_timeout": 60, "retries": {"mode": "standard", "max_attempts": 3}}
_UNREACHED = re.compile("Connect|Timeout|Endpoint|SSL|DNS")


class ArtifactRoot(Protocol):
    """What a round asks of the place where its artifacts lie. All names are known to be good; lists are sorted."""

    @property
    def shared(self) -> bool:
        """Whether other machines keep artifacts there too, so that a round's other files may lie elsewhere."""

    def round_names(self) -> list[str]:
        """The rounds that have a place here, whether or not their names are good."""

    def files(self, round_name: str, kind: str) -> Sequence[Readable]:
        """The artifacts of a kind, oldest first."""

    def files_of_round(self, round_name: str) -> Sequence[Readable]:
        """Every artifact of a round, by kind."""

    def every_file(self) -> Sequence[Readable]:
        """Every artifact of every round, oldest first."""

    def keep(self, round_name: str, kind: str, name: str, artifact: Artifact) -> Readable:
        """Write an artifact under a name that is free or holds the same. Raises OverwriteError, InputError."""


def artifact_root_at(url: str | None, rounds: Path) -> ArtifactRoot:
    """The root that a setting names: objects under a URL, or the rounds' own folders where there is none.

    Raises:
        UsageError: not a URL that artifacts can lie under.
    """
    return ObjectRoot(url) if url else FolderRoot(rounds)


@dataclass(frozen=True)
class FolderRoot:
    """Artifacts in the folders of rounds: private, flushed, renamed into place."""

    rounds: Path
    shared: bool = False

    def round_names(self) -> list[str]:
        return sorted(folder.name for folder in self.rounds.glob("*") if folder.is_dir())

    def files(self, round_name: str, kind: str) -> list[Path]:
        return sorted((self.rounds / round_name / "artifacts" / kind).glob("*.json"))

    def files_of_round(self, round_name: str) -> list[Path]:
        return sorted((self.rounds / round_name / "artifacts").glob("*/*.json"))

    def every_file(self) -> list[Path]:
        return sorted(self.rounds.glob("*/artifacts/*/*.json"), key=lambda path: (path.name, path.parts))

    def keep(self, round_name: str, kind: str, name: str, artifact: Artifact) -> Path:
        return write_document(self.rounds / round_name / "artifacts" / kind / name, artifact)


@dataclass(frozen=True)
class ObjectFile:
    """One artifact under a root of objects; `key` is its name from the root on."""

    root: ObjectRoot
    key: str

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def read_bytes(self) -> bytes:
        """The object, as it is now. Raises InputError."""
        found = self.root.found(self.key)
        if found is None:
            raise InputError(str(self), "no such object", next_step="restore it, or list the round again")
        return found

    def __str__(self) -> str:
        return f"{self.root}/{self.key}"


class ObjectRoot:
    """Artifacts as objects under a URL such as `s3://bucket/prefix`; credentials and endpoint are the environment's.

    Raises:
        UsageError: another protocol, or a URL with a user, a query or anything else beside bucket and prefix. The
            URL is not quoted, for it may hold a secret.
    """

    shared = True

    def __init__(self, url: str) -> None:
        if (parts := _URL.fullmatch(url)) is None or {".", ".."} & set(parts["path"].split("/")):
            raise UsageError(
                "META_EVAL_ARTIFACTS is not s3://BUCKET or s3://BUCKET/PREFIX in plain characters; "
                "credentials, endpoint and region belong into the environment (AWS_...)"
            )
        self._protocol, self._base = parts["protocol"], parts["path"]

    def __str__(self) -> str:
        return f"{self._protocol}://{self._base}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectRoot) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def round_names(self) -> list[str]:
        return sorted({key.split("/")[1] for key in self._keys("rounds")})

    def files(self, round_name: str, kind: str) -> list[ObjectFile]:
        return [ObjectFile(self, key) for key in sorted(self._keys(f"rounds/{round_name}/artifacts/{kind}"))]

    def files_of_round(self, round_name: str) -> list[ObjectFile]:
        return [ObjectFile(self, key) for key in sorted(self._keys(f"rounds/{round_name}/artifacts"))]

    def every_file(self) -> list[ObjectFile]:
        files = [ObjectFile(self, key) for key in self._keys("rounds")]
        return sorted(files, key=lambda file: (file.name, file.key.split("/")))

    def keep(self, round_name: str, kind: str, name: str, artifact: Artifact) -> ObjectFile:
        file, data = ObjectFile(self, f"rounds/{round_name}/artifacts/{kind}/{name}"), canonical_bytes(artifact) + b"\n"
        failure = None
        if (found := self.found(file.key)) is None:  # a server that ignores the condition must not overwrite either
            try:
                self._files.pipe_file(self._path(file.key), data, mode="create")
            except Exception as error:
                failure = error
            # A rival may have come first, and an answer may get lost on its way: what lies there now decides.
            found = self._found_after(failure, file.key)
        if found is None:
            raise _refusal(str(file), failure, "was put and is not there") from None
        if found != data:
            raise OverwriteError(f"{file}: holds other contents, and evidence is never overwritten")
        return file

    def found(self, key: str) -> bytes | None:
        """An object's bytes, or None where there is none. Raises InputError where the root cannot tell."""
        files = self._files
        try:
            return bytes(files.cat_file(self._path(key)))
        except FileNotFoundError:
            self._check_bucket()
            return None
        except Exception as error:
            raise _refusal(f"{self}/{key}", error) from None

    def _found_after(self, failure: Exception | None, key: str) -> bytes | None:
        try:
            return self.found(key)
        except MetaEvalError:
            if failure is not None:
                raise _refusal(f"{self}/{key}", failure) from None
            raise

    def _keys(self, folder: str) -> list[str]:
        """Every artifact's key under a folder of keys. An empty answer is believed only of a bucket that is there."""
        files = self._files
        try:
            paths = files.find(self._path(folder))
        except FileNotFoundError:
            paths = []
        except Exception as error:
            raise _refusal(f"{self}/{folder}", error) from None
        if not paths:
            self._check_bucket()
        start = self._path("")
        keys = [path.removeprefix(start) for path in paths if path.startswith(self._path(f"{folder}/"))]
        return [key for key in keys if _is_artifact_key(key)]

    def _check_bucket(self) -> None:
        bucket = self._base.split("/")[0]
        try:
            there = self._protocol == "memory" or self._files.exists(bucket)
        except Exception as error:
            raise _refusal(str(self), error) from None
        if not there:
            raise InputError(str(self), "no such bucket", next_step="make it, or mend META_EVAL_ARTIFACTS")

    def _path(self, key: str) -> str:
        return f"{'/' * (self._protocol == 'memory')}{self._base}/{key}"

    @functools.cached_property
    def _files(self) -> Any:
        """The file system, opened at first use. Listings are not cached: other machines write too."""
        import upath

        options: dict[str, Any] = {}
        if self._protocol != "memory":
            options = {"use_listings_cache": False, "config_kwargs": _TIMEOUTS}
        try:
            return upath.UPath(str(self), **options).fs
        except ImportError:
            raise UsageError(
                f"{self}: {self._protocol}:// needs a package that is not installed; install meta-eval[s3]"
            ) from None
        except Exception as error:
            raise _refusal(str(self), error) from None


def _is_artifact_key(key: str) -> bool:
    parts = key.split("/")
    return len(parts) == 5 and parts[2] == "artifacts" and parts[4].endswith(".json")


def _refusal(where: str, error: Exception | None, otherwise: str = "") -> InputError:
    """What the storage's own error comes to. Its message is not passed on: it may quote keys, tokens and headers."""
    name = type(error).__name__
    if error is None:
        return InputError(where, otherwise, next_step="look at the storage, and run the command again")
    if "Credential" in name or "Token" in name or "Profile" in name:
        return InputError(where, "no credentials that can be used", next_step="set them in the environment (AWS_...)")
    if isinstance(error, PermissionError):
        return InputError(where, "access is refused", next_step="check the credentials and the bucket's policy")
    if isinstance(error, (ConnectionError, TimeoutError)) or _UNREACHED.search(name):
        return InputError(where, "the storage cannot be reached", next_step="check AWS_ENDPOINT_URL and the network")
    return InputError(where, f"the storage failed ({name})", next_step="look at the storage, and run it again")
