"""Blindness, measured: from a scorer's folder alone, nobody guesses the arm better than by a coin.

200 seeded studies whose arms differ in nothing but identity: both arms' answers to a question are drawn from the same
distribution. A logistic regression is fitted on 100 studies and asked about the other 100. It sees everything that a
scorer's folder has: lengths, counts, order in the file, keys, names, sizes and times, and what the answers share with
their neighbours. The same classifier must succeed where labels are handed out in the order of the arms: it can see.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from meta_eval.lanes.usefulness import blinding, form
from meta_eval.lanes.usefulness.sheets import put_sheet

ARMS = ("arm-a", "arm-b")
SETS, QUESTIONS, STUDIES = ("set-a", "set-b"), 12, 200
Floats = npt.NDArray[np.float64]


def study(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Packets and runs; arm-a's row always comes first, runs faster and costs nothing, as a real baseline's would."""
    drawn = random.Random(seed)  # noqa: S311 - seeded on purpose
    packets: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for set_id in SETS:
        questions = []
        for number in range(QUESTIONS):
            question_id = f"{set_id}-{number:02d}"
            oracle = {"facts": ["It is old."], "sources": [], "limits": [], "unavailable": []}
            questions.append(
                {
                    "questionId": question_id,
                    "question": f"How old is invented thing {number}?",
                    "clauses": ["age"],
                    "exactSourceNavigation": False,
                    "oracle": oracle,
                }
            )
            rows += [_row(set_id, question_id, arm, drawn) for arm in ARMS]
        packets[set_id] = {"questions": questions}
    return packets, rows


def _row(set_id: str, question_id: str, arm: str, drawn: random.Random) -> dict[str, Any]:
    return {
        "setId": set_id,
        "questionId": question_id,
        "arm": arm,
        "attempt": 1,
        "status": drawn.choice(["answered", "refused", "timeout"]),
        "answer": "old " * drawn.randint(1, 40),
        "limitations": ["so they say"] * drawn.randint(0, 3),
        "links": [
            {"claim": "It is old.", "url": f"https://x.example/{drawn.randint(0, 99)}"}
            for _ in range(drawn.randint(0, 3))
        ],
        "latencyMs": 10 if arm == ARMS[0] else 900,
        "cost": "0" if arm == ARMS[0] else "0.01",
    }


def handed_out(seed: int, folder: Path, *, blind: bool) -> tuple[Path, list[int]]:
    """A scorer's folder, and the truth: for each question, whether X is arm-a."""
    packets, rows = study(seed)
    ids = {set_id: [entry["questionId"] for entry in packets[set_id]["questions"]] for set_id in SETS}
    key = blinding.drawn_key(hashlib.sha256(f"study {seed}".encode()).digest(), ids, ARMS)
    if not blind:
        key = {s: {q: dict(zip("XY", ARMS, strict=True)) for q in ids[s]} for s in SETS}
        for number, (set_id, question) in enumerate((s, q) for s in SETS for q in ids[s]):
            if number % 2:  # a pattern that a careless implementation could leave: labels that take turns
                key[set_id][question] = dict(zip("YX", ARMS, strict=True))
    sheet = blinding.sheet("SCO-1P", "demo", "none", packets, rows, key)
    put_sheet(folder, sheet, form.scoring_form(sheet))
    return folder, [int(key[s][q]["X"] == ARMS[0]) for s in SETS for q in ids[s]]


def features(folder: Path) -> Floats:
    """Everything about a question that the folder shows, as numbers."""
    raw = (folder / "sheet.json").read_bytes()
    entries = json.loads(raw)["entries"]
    times = [path.stat().st_mtime_ns for path in sorted(folder.iterdir())]
    common = [len(raw), times[0] - times[1], (folder / "sheet.html").stat().st_size, len(list(folder.iterdir()))]
    table = []
    for place, entry in enumerate(entries):
        one, other = entry["deliveries"]
        pairs = [
            [len(d["answer"] or ""), len(d["limitations"]), len(d["links"]), d["answer"] is None, len(str(d))]
            for d in (one, other)
        ]
        order = [list(d).index("label") for d in (one, other)]
        before = entries[place - 1]["deliveries"]
        same = [len(str(a)) - len(str(b)) for a, b in zip(before, entry["deliveries"], strict=True)]
        position = raw.find(entry["questionId"].encode())
        table.append(
            [
                *pairs[0],
                *pairs[1],
                *np.subtract(pairs[0], pairs[1]),
                *order,
                *same,
                place,
                place % 2,
                place % 3,
                position % 7,
                hashlib.sha256(str(one).encode()).digest()[0],
                *common,
            ]
        )
    return np.asarray(table, dtype=np.float64)


def accuracy(train: tuple[Floats, Floats], test: tuple[Floats, Floats]) -> float:
    """A ridge logistic regression by Newton's method, on standardised features."""
    mean, spread = train[0].mean(axis=0), train[0].std(axis=0)
    spread[spread == 0] = 1
    x, unseen = ((np.c_[(part - mean) / spread, np.ones(len(part))]) for part in (train[0], test[0]))
    weights = np.zeros(x.shape[1])
    for _ in range(15):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (train[1] - p) - weights
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.eye(len(weights))
        weights += np.linalg.solve(hessian, gradient)
    return float(((unseen @ weights > 0) == (test[1] > 0.5)).mean())


def measured(tmp_path: Path, *, blind: bool) -> tuple[float, int]:
    folders = [handed_out(seed, tmp_path / f"{blind}-{seed}", blind=blind) for seed in range(STUDIES)]
    tables = [features(folder) for folder, _ in folders]
    half = STUDIES // 2
    x = [np.vstack(part) for part in (tables[:half], tables[half:])]
    y = [
        np.concatenate([np.asarray(t, dtype=np.float64) for _, t in part]) for part in (folders[:half], folders[half:])
    ]
    return accuracy((x[0], y[0]), (x[1], y[1])), len(y[1])


@pytest.mark.parametrize("blind", [True, False])
def test_a_classifier_is_no_better_than_chance_on_what_is_blinded(tmp_path: Path, blind: bool) -> None:
    found, asked = measured(tmp_path, blind=blind)
    print(f"accuracy {found:.4f} on {asked} held-out questions")  # noqa: T201 - the figure is to be seen
    if blind:
        assert abs(found - 0.5) < 3.3 * 0.5 / asked**0.5  # one chance in a thousand, either way
    else:
        assert found > 0.99


def test_labels_are_fair_coins_that_know_nothing_of_their_neighbours() -> None:
    ids = {"s": [f"{number:04d}" for number in range(4000)]}
    key = blinding.drawn_key(hashlib.sha256(b"fair").digest(), ids, ARMS)
    said = [int(labels["X"] == ARMS[0]) for labels in key["s"].values()]
    assert abs(sum(said) / 4000 - 0.5) < 0.03
    repeats = sum(one == other for one, other in itertools.pairwise(said))
    assert abs(repeats / 3999 - 0.5) < 0.03


def test_both_scorers_see_the_same_but_for_their_own_code() -> None:
    packets, rows = study(1)
    ids = {s: [entry["questionId"] for entry in packets[s]["questions"]] for s in SETS}
    key = blinding.drawn_key(hashlib.sha256(b"x").digest(), ids, ARMS)
    one, other = (blinding.sheet(code, "demo", "none", packets, rows, key) for code in ("SCO-1P", "SCO-2Q"))
    assert one | {"scorerCode": ""} == other | {"scorerCode": ""}
    # The order in which a runner wrote its rows leaves no trace.
    assert blinding.sheet("SCO-1P", "demo", "none", packets, rows[::-1], key) == one
