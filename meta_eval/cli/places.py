"""The round that a call names, at the places that the environment names."""

from __future__ import annotations

from meta_eval.home import artifact_root, rounds_folder
from meta_eval.lanes.production.rounds import Round, round_name_problem


def round_named(name: str) -> Round:
    """A round by name. Raises UsageError for a name that is no round's, or a root that is none."""
    return Round(rounds_folder(), name, artifact_root())


def round_names() -> list[str]:
    """Every name that the rounds' folder or the root of artifacts has, whether or not it is a good one."""
    folders = {folder.name for folder in rounds_folder().glob("*") if folder.is_dir()}
    root = artifact_root()
    return sorted(folders.union(root.round_names()) if root.shared else folders)


def good_round_names() -> list[str]:
    """Those that can name a round."""
    return [name for name in round_names() if not round_name_problem(name)]
