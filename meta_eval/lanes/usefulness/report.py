"""The report of a study, as one HTML page: a verdict that a reader can check at a glance.

Source: the usefulness contract, acceptance. It is made from the acceptance artifact alone, holds no script and no
outside reference, names no person, and the same artifact always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from meta_eval.evidence.artifacts import Artifact
from meta_eval.lanes.usefulness.stage import Row

_STYLE = (
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "body{margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem;width:100%}th,td{border-bottom:1px solid GrayText;"
    "padding:.3rem .6rem;text-align:right}th:first-child,td:first-child{text-align:left}caption{text-align:left;"
    "font-weight:600}.verdict{font-size:1.6rem;font-weight:700}.met{color:light-dark(#0a6b2d,#6fdc94)}"
    ".missed{color:light-dark(#9b1c00,#ff9d85)}.bar{display:block;height:.6rem;background:GrayText;position:relative}"
    ".bar i{display:block;height:100%;background:Highlight}.bar b{position:absolute;top:-.2rem;height:1rem;"
    "border-left:2px solid CanvasText}.wide{width:40%}code{overflow-wrap:anywhere}"
)
_WORDS = {
    "passed": "Accepted",
    "rehearsed": "Rehearsed: every condition is met, on invented content",
    "failed": "Not accepted",
    "blocked": "Blocked: there is no verdict",
}
_CONDITIONS = {
    "leastUseful": "enough useful answers of the candidate",
    "combinedGain": "a positive combined net gain over the baseline",
    "noLowerSet": "no fewer useful answers than the baseline",
}


def report(accepted: Artifact) -> bytes:
    """The page of a verified acceptance."""
    result = accepted["result"]
    parts = [
        (
            f'<p class="verdict {"missed" if accepted["status"] in ("failed", "blocked") else "met"}">'
            f"{_WORDS[accepted['status']]}</p>"
        ),
        (
            f"<p>Study {escape(str(accepted['round']))}, judged {escape(accepted['madeAt'])}, "
            f"environment {escape(str(accepted['environment']))}.</p>"
        ),
    ]
    if accepted["status"] == "blocked":
        rows = [[entry["code"], entry["subject"], entry["count"]] for entry in accepted["blockers"]]
        parts.append(_table("What blocks it", ["rule", "place", "count"], rows))
    else:
        parts += _verdict(result)
        parts += _arms(result)
        parts += _closing(accepted)
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Usefulness study {escape(str(accepted['round']))}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>Would a visitor find the first answer useful?</h1>\n{body}\n</body></html>\n"
    ).encode()


def _verdict(result: Row) -> Iterable[str]:
    yield _table(
        "Conditions", ["condition", "where", "met"], [_condition(n, m) for n, m in sorted(result["met"].items())]
    )
    names = [*sorted(result["sets"]), "both sets"]
    tables = [*(result["sets"][name] for name in names[:-1]), result["combined"]]
    rows = [
        [
            name,
            table["both"],
            table["recoveries"],
            table["losses"],
            table["neither"],
            f"{table['gain']:+d}",
            table["questions"],
        ]
        for name, table in zip(names, tables, strict=True)
    ]
    head = ["set", "useful in both", "recoveries", "losses", "useful in neither", "net gain", "questions"]
    yield _table("The same questions in both arms", head, rows)
    yield f"<p>Useful answers by arm, against {escape(result['threshold'])} for the candidate in each set.</p>"
    yield _bars(names, tables, int(result["threshold"].split()[0]))


def _condition(name: str, met: bool) -> list[Any]:
    condition, _, where = name.partition(":")
    return [_CONDITIONS[condition], where or "both sets", "met" if met else "MISSED"]


def _bars(names: Sequence[str], tables: Sequence[Row], least: int) -> str:
    rows = []
    for name, table in zip(names, tables, strict=True):
        for arm in ("baseline", "candidate"):
            share, low_high = table["useful"][arm] / table["questions"], table["wilson95"][arm]
            mark = f'<b style="left:{100 * least / table["questions"]:.2f}%"></b>' if name != "both sets" else ""
            rows.append(
                f"<tr><td>{escape(name)}, {arm}</td><td>{table['useful'][arm]} of {table['questions']}</td>"
                f"<td>{low_high[0]:.3f} to {low_high[1]:.3f}</td>"
                f'<td class="wide"><span class="bar"><i style="width:{100 * share:.2f}%"></i>{mark}</span></td></tr>'
            )
    head = "<tr><th>set and arm</th><th>useful</th><th>95 % Wilson interval</th><th></th></tr>"
    return f"<table><caption>Useful first-visible answers</caption>{head}{''.join(rows)}</table>"


def _arms(result: Row) -> Iterable[str]:
    arms = [(role, result["arms"][role]) for role in ("baseline", "candidate")]
    rows = [
        ["kind", *(arm["kind"] for _, arm in arms)],
        ["useful", *(f"{arm['useful']} of {arm['answers']}" for _, arm in arms)],
        *([f"status {status}", *(arm["statuses"][status] for _, arm in arms)] for status in arms[0][1]["statuses"]),
        *([f"p{p} latency, ms", *(_latency(arm["latencyMs"], p) for _, arm in arms)] for p in (50, 95)),
        ["cost, known", *(arm["cost"]["known"] for _, arm in arms)],
        ["costs unknown", *(arm["cost"]["unknownCount"] for _, arm in arms)],
        ["cost, upper bound", *(arm["cost"]["upperBound"] for _, arm in arms)],
        ["cost per useful answer", *(_cost(arm["costPerUseful"]) for _, arm in arms)],
        ["cost per net useful gain", *(_cost(arm["costPerNetGain"]) for _, arm in arms)],
        *(
            [
                f"first source {name}",
                *(f"{arm['firstSource'][name]['yes']} of {arm['firstSource'][name]['of']}" for _, arm in arms),
            ]
            for name in ("relevant", "decisive")
        ),
    ]
    yield _table("The arms", ["", "baseline", "candidate"], rows)
    defects = [[name, *(arm["defects"][name] for _, arm in arms)] for name in arms[0][1]["defects"]]
    yield _table(
        "Defects: answers in which a standing judgment names the class", ["class", "baseline", "candidate"], defects
    )


def _latency(measured: Mapping[str, Any], percent: int) -> str:
    value = measured[f"p{percent}"]
    told = "none" if value is None else f"{value:g}"
    return f"{told} (measured {measured['measured']} of {measured['of']})"


def _cost(value: Mapping[str, str] | None) -> str:
    return "not stated" if value is None else f"{value['known']} known, {value['upperBound']} at most"


def _closing(accepted: Artifact) -> Iterable[str]:
    result = accepted["result"]
    agreed, info, budget = result["agreement"], result["information"], result["budget"]
    interval = info["gainPerQuestion95"]
    kappa = "not defined" if agreed["kappa"] is None else f"{agreed['kappa']:.3f}"
    rows = [
        ["scorers agreed", f"{agreed['agreed']} of {agreed['pairs']}, Cohen's kappa {kappa}"],
        [
            "adjudicated",
            f"{result['adjudicated']}; oracle errors {result['oracleError']}, product errors {result['productError']}",
        ],
        ["exact McNemar test, for information", f"p = {info['mcnemarExactP']:.4f}"],
        [
            "95 % bootstrap interval of the gain a question, for information",
            f"{interval[0]:+.3f} to {interval[1]:+.3f}",
        ],
        [
            "invariant exercises, apart from the verdict",
            f"{result['invariantExercises']['held']} of {result['invariantExercises']['of']} held",
        ],
        [
            "budget",
            (
                f"{budget['upperBound']} at most of {budget['budget']} {budget['currency']}; "
                f"{budget['unknownCount']} usages unknown"
            ),
        ],
        [
            "agent proxies among authors, scorers and adjudicator",
            f"{result['disclosure']['agentProxies']} of {result['disclosure']['of']}",
        ],
    ]
    yield _table("Agreement, tests and disclosure", ["", ""], rows)
    yield f"<h2>Limits</h2><p>{escape(result['limits'])}</p>"
    yield f"<p>Acceptance <code>{accepted['digest']}</code>, policy <code>{accepted['policyDigest']}</code>.</p>"


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    first = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{first}</tr>{lines}</table>"


def _cell(value: Any) -> str:
    text = escape(str(value))
    return f'<span class="{text.lower()}">{text}</span>' if text in ("met", "MISSED") else text
