"""The conformance suite over a backend: what it takes of a corpus of programs has to compute what the operators define.

    backend = collage.register_backend("mine")
    ...
    assert collage.conformance.check(backend).passed

`collage-conformance` of an installation does the same with backends in C++ that are not built with Collage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from collage import _placement
from collage._backend import Backend


@dataclass(frozen=True)
class Case:
    """What one program has shown of a backend."""

    name: str
    problems: list[str]  # what a kernel did and must not do, a line each
    refusal: str  # why the backend takes nothing of it; empty where it takes something
    partitions: int
    kernels: int

    @property
    def verdict(self) -> str:
        """"failed", "refused" or "passed"."""
        return "failed" if self.problems else "refused" if self.refusal else "passed"


@dataclass(frozen=True)
class Conformance:
    """All programs in turn."""

    cases: list[Case]

    def of(self, verdict: str) -> list[Case]:
        return [case for case in self.cases if case.verdict == verdict]

    @property
    def passed(self) -> bool:
        """No kernel was wrong, and some were right."""
        return not self.of("failed") and bool(self.of("passed"))

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.of(verdict))} {verdict}" for verdict in ("passed", "refused", "failed"))
        lines = [f"{len(self.cases)} programs: {counts}; {sum(case.kernels for case in self.cases)} kernels"]
        for case in self.of("failed"):
            lines += [f"failed   {case.name}", *(f"           {problem}" for problem in case.problems)]
        return "\n".join(lines)


def check(backend: Backend | str, *, cases: str = "", progress: Callable[[Case, int, int], object] | None = None) -> Conformance:
    """Of the programs whose names hold `cases`: every kernel on two sets of data, at other addresses, after another kernel has run, with one
    thread and with two, and guards around what it may write. It runs in this process.

    `progress(case, done, total)` is told each in turn. Raises ArgumentError for a backend that is not there, and where no program has such
    a name."""
    done: list[Case] = []

    def tell(name: str, problems: list[str], refusal: str, partitions: int, kernels: int, total: int) -> None:
        done.append(Case(name, problems, refusal, partitions, kernels))
        if progress is not None:
            progress(done[-1], len(done), total)

    _placement.check_conformance(backend if isinstance(backend, str) else backend.name, cases, tell)
    return Conformance(done)
