"""Writes the search problem that a program file carries, with its prices, as a record of recorded_models_test.

Usage: make_recorded.py PROGRAM.collage RECORD.json

The optimum of a record that is there is kept; a new one has none, and the failing test prints what is found.
"""

import json
import pathlib
import sys


def recorded_of(program):
    content = pathlib.Path(program).read_bytes()
    name = b'"recorded":'
    start = content.index(name) + len(name)
    return json.JSONDecoder().raw_decode(content[start:].decode(errors="replace"))[0]


def main():
    program, record = sys.argv[1:]
    path = pathlib.Path(record)
    optimum = json.loads(path.read_text())["optimum"] if path.exists() else []
    path.write_text(json.dumps({"optimum": optimum, "recorded": recorded_of(program)}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
