#!/usr/bin/env python3
"""Checks that nothing but collage/support/clock.* asks a clock of the system how much time has passed.

Tests of what measures let simulated time pass; a clock of its own would make them depend on the machine's speed.
Dates (std::time) are no measure of time and stay allowed."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("collage", "tools", "bench")
CLOCK_FILES = {"collage/support/clock.h", "collage/support/clock.cc"}
OTHER_CLOCK = re.compile(
    r"\b(steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday|omp_get_wtime|__rdtscp?)\b"
)


def problems_of(name: str, text: str) -> list[str]:
    if name in CLOCK_FILES:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if match := OTHER_CLOCK.search(code):
            found.append(f"{name}:{number}: {match[0]}: time is taken from collage/support/clock.h")
    return found


def main() -> int:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cc")]
    problems = [problem for path in files for problem in problems_of(path.relative_to(ROOT).as_posix(), path.read_text())]
    print("\n".join([*problems, f"{len(files)} files, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
