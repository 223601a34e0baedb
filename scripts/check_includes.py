#!/usr/bin/env python3
"""Checks that includes between the folders of collage/ go one way (ARCHITECTURE.md) and that no files form a cycle."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# folder -> folders that it may include; what those may include follows.
DIRECT = {
    "support": [],
    "tensor": ["support"],
    "ir": ["tensor"],
    "op": ["ir"],
    "onnx": ["op"],
    "transform": ["op"],
    "dataflow": ["op"],
    "device": ["dataflow"],
    "pattern": ["dataflow"],
    "form": ["pattern"],
    "runtime": ["tensor"],
    "backend": ["pattern", "runtime"],
    "candidate": ["backend"],
    "cost": ["support"],
    "search": ["cost"],
    "decide": ["search"],
    "cache": ["cost"],
    "measure": ["cost", "backend"],
    "fleet": ["measure", "cache"],
    "pricing": ["fleet", "search", "candidate", "form"],
    "partition": ["candidate", "transform", "device"],
    "query": ["partition", "pricing"],
    "lower": ["partition", "runtime"],
    "c": ["lower"],
    "c_compile": ["c"],
    "provider": ["c_compile", "onnx"],
    "explain": ["search", "lower"],
    "driver": ["decide", "pricing", "explain", "onnx", "transform"],
}
# query stands between partition and lower and is included by nobody but tools.
# transform stands behind partition, but what includes partition gets no right to it.
NOT_INHERITED = {"transform"}
GRAPH_COMPILERS = {"onnxruntime", "openvino"}
# Of backend/: shared by several backends, and none itself.
SHARED_BY_BACKENDS = {"element_code", "opencl_device", "cuda_device"}
# Written by the build.
GENERATED = {"collage/backend/contract_headers.h", "collage/explain/page_template.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"(collage/[^"]+)"', re.MULTILINE)


def allowed(folder: str) -> set[str]:
    result: set[str] = set()
    pending = [(name, True) for name in DIRECT[folder]]
    while pending:
        name, direct = pending.pop()
        if name in result or (not direct and name in NOT_INHERITED):
            continue
        result.add(name)
        pending += [(below, False) for below in DIRECT[name]]
    return result


def backend_of(path: str) -> str | None:
    parts = path.split("/")
    return parts[2] if len(parts) > 3 and parts[1] == "backend" else None


def main() -> int:
    problems: list[str] = []
    includes: dict[str, list[str]] = {}
    for path in sorted((ROOT / "collage").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(ROOT).as_posix()
        includes[name] = INCLUDE.findall(path.read_text())
        folder = name.split("/")[1]
        if folder not in DIRECT:
            problems.append(f"{name}: folder '{folder}' has no place in the order; add it to {pathlib.Path(__file__).name}")
            continue
        rights = allowed(folder) | {folder}
        if backend_of(name) in GRAPH_COMPILERS:
            rights |= {"onnx"}
        for included in includes[name]:
            target = included.split("/")[1]
            if not (ROOT / included).exists() and not included.endswith(".pb.h") and included not in GENERATED:
                problems.append(f"{name}: includes {included}, which does not exist")
            if target not in rights:
                problems.append(f"{name}: includes {included}, but {folder} may not include {target}")
            owner = backend_of(included)
            if owner and owner not in SHARED_BY_BACKENDS and owner != backend_of(name):
                problems.append(f"{name}: includes {included}, the inside of a backend")
    problems += cycles(includes)
    for problem in problems:
        print(problem)
    print(f"{len(includes)} files, {len(problems)} problems")
    return 1 if problems else 0


def cycles(includes: dict[str, list[str]]) -> list[str]:
    state: dict[str, int] = {}
    found = []
    for start in includes:
        stack = [(start, iter(includes[start]))]
        if state.get(start):
            continue
        state[start] = 1
        while stack:
            name, rest = stack[-1]
            for included in rest:
                if state.get(included) == 1:
                    found.append(f"{name}: includes {included}, which includes it in turn")
                elif included in includes and not state.get(included):
                    state[included] = 1
                    stack.append((included, iter(includes[included])))
                    break
            else:
                state[name] = 2
                stack.pop()
    return found


if __name__ == "__main__":
    sys.exit(main())
