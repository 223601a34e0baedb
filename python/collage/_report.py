"""Reports of compiles, and how they and sessions look in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collage._session import InferenceSession

# The longest partitions that a notebook shows; a table of hundreds hides what matters.
_MOST_ROWS = 12
# Okabe and Ito's, as in `collage explain --html`; the name stands beside each.
_COLOURS = {
    "dnnl": "#0072b2",
    "openvino": "#e69f00",
    "onnxruntime": "#009e73",
    "native": "#d55e00",
    "xsmm": "#cc79a7",
    "openblas": "#56b4e9",
    "xnnpack": "#f0e442",
}


class Report(dict[str, Any]):
    """What a compile has to say, as `collage explain --json` prints it. In a notebook it shows itself."""

    def _repr_html_(self) -> str:
        profiles = self.get("profiles")
        if profiles:
            return "".join(f"<h4>{escape(_shapes(profile))}</h4>{Report(profile)._repr_html_()}" for profile in profiles)
        return _summary(self) + _race(self) + _longest(self)


def session_html(session: InferenceSession) -> str:
    rows = [("input", one) for one in session.get_inputs()] + [("output", one) for one in session.get_outputs()]
    cells = [[kind, one.name, one.type, _shape(one.shape)] for kind, one in rows]
    table = _table(["", "name", "type", "shape"], cells)
    if not session.is_compiled:
        return f"<p>Collage, compiled when a run tells its shapes</p>{table}"
    return f"<p>Collage, {_count(session.threads, 'thread')}</p>{table}{session.report._repr_html_()}"


def _summary(report: Report) -> str:
    # As the prices of the partitions say, of which the table below is made; `estimated_us` is at the speed of the race.
    parts = [f"{_count(len(report['plan']), 'partition')}, predicted {_time(report['estimated_us'] / report['drift'])}"]
    chosen = report["end_to_end_ms"].get("chosen")
    if chosen is not None:
        parts.insert(0, f"<b>{_time(chosen * 1000)}</b> a run in the race of the compile")
        parts.append(f"the machine ran {report['drift']:.2f} times as slowly in the race as when the prices were taken")
    if report["is_estimated"]:
        parts.append("prices are a user's estimates; nothing was timed")
    return f"<p><b>{escape(report['model'].rpartition('/')[2])}</b>: {'; '.join(parts)}</p>"


def _race(report: Report) -> str:
    times = report["end_to_end_ms"]
    if not times:
        return ""
    rows = []
    for name, median in times.items():
        rows.append([report["end_to_end_title"][name], _time(median * 1000), f"{report['end_to_end_ratio'][name]:.3f}"])
    return _table(["plan", "median", "times chosen"], rows)


def _longest(report: Report) -> str:
    plan = sorted(report["plan"], key=lambda entry: -entry["cost_us"])
    total = sum(entry["cost_us"] for entry in plan) or 1
    rows = []
    for entry in plan[:_MOST_ROWS]:
        names = entry.get("nodes") or entry["operators"]
        what = ", ".join(names[:3]) + (f" … ({len(names)})" if len(names) > 3 else "")
        rows.append([entry["backend"], entry["variant"], _time(entry["cost_us"]), f"{100 * entry['cost_us'] / total:.1f}%", what])
    more = len(plan) - _MOST_ROWS
    note = f"<p>and {_count(more, 'partition')} more</p>" if more > 0 else ""
    return _table(["backend", "variant", "predicted", "share", "nodes"], rows, colours=True) + note


def _table(head: Iterable[str], rows: Iterable[list[str]], colours: bool = False) -> str:
    text = "<table><thead><tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr></thead><tbody>"
    for row in rows:
        cells = [escape(cell) for cell in row]
        if colours:
            colour = _COLOURS.get(row[0], "#7f7f7f")
            cells[0] = f'<span style="color:{colour}" aria-hidden="true">&#9632;</span> {cells[0]}'
        text += "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"
    return text + "</tbody></table>"


def _shape(shape: list[int | str | None] | None) -> str:
    if shape is None:
        return "known after a run"
    return " × ".join("?" if extent is None else str(extent) for extent in shape) or "scalar"


def _shapes(report: dict[str, Any]) -> str:
    return " ".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in report["inputs"].items())


def _time(us: float) -> str:
    return f"{us / 1000:.3f} ms" if us >= 1000 else f"{us:.1f} µs"


def _count(count: int, one: str) -> str:
    return f"{count} {one}" + ("" if count == 1 else "s")
