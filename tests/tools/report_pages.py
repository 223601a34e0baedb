"""The data inside a page of `collage explain --html`, and a page of many operators made from one of few."""

import json
import re

LAYERS = 250
OPERATORS_OF_LAYER = 8
DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)


def data_of(page):
    return json.loads(DATA.search(page).group(2))


def many_operators(data):
    """The data of a page for a program of `LAYERS` equal layers, each a partition with a branch around three others."""
    profile = json.loads(json.dumps(data["profiles"][0]))
    report, problem = profile["report"], profile["problem"]
    entry, placement = report["plan"][0], report["operators"][0]
    report["plan"], report["operators"] = [], []
    count = LAYERS * OPERATORS_OF_LAYER
    backends = problem["backends"]
    problem.update(nodes=[], tensors=[], chosen=[], kernels=[], elsewhere=[], alone=[], chosen_us=float(count))
    for number in range(count):
        name, backend = f"%{number}", backends[number % 3]
        node = f"/layer{number // OPERATORS_OF_LAYER}/part{number % OPERATORS_OF_LAYER}/Conv"
        problem["nodes"].append({"name": name, "operator": "nn.conv2d", "nodes": [node]})
        report["operators"].append({**placement, "name": name, "nodes": [node], "partition": f"p{number}", "backend": backend})
        report["plan"].append({**entry, "backend": backend, "partition": f"p{number}", "nodes": [node], "cost_us": 1 + number % 7})
        is_last = number % OPERATORS_OF_LAYER == OPERATORS_OF_LAYER - 1
        readers = [number + 1] if is_last else [number + 1, number - number % OPERATORS_OF_LAYER + OPERATORS_OF_LAYER - 1]
        problem["tensors"].append([number, sorted({reader for reader in readers if reader < count}), 0])
        problem["chosen"].append(number)
        problem["kernels"].append({"backend": backend, "variant": "v", "inside": [number], "cost_us": 1 + number % 7})
        others = [other for other in backends if other != backend]
        problem["elsewhere"].append([{"backend": other, "known": "price", "extra_us": 1.5, "kernels": [number]} for other in others])
    profile["run"] = {"why_not": "it is made up"}
    return {**data, "profiles": [profile]}


def page_with(page, data):
    """This page about something else."""
    text = json.dumps(data).replace("<", "\\u003c")
    return DATA.sub(lambda found: found.group(1) + text + found.group(3), page)


def page_of_many_operators(page):
    """This page with a made-up program instead, of `LAYERS * OPERATORS_OF_LAYER` operators."""
    return page_with(page, many_operators(data_of(page)))
