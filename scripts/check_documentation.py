#!/usr/bin/env python3
"""Checks that lines of Markdown have at most 100 columns; rows of tables and code cannot be wrapped."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 100


def problems_of(name: str, text: str) -> list[str]:
    found = []
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            is_code = not is_code
        if len(line) > COLUMNS and not is_code and not line.startswith(("|", "    ")):
            found.append(f"{name}:{number}: {len(line)} columns, at most {COLUMNS}")
    return found


def main() -> int:
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    problems = [problem for name in names for problem in problems_of(name, (ROOT / name).read_text())]
    print("\n".join([*problems, f"{len(names)} files, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
