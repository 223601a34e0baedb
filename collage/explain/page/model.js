// What the file says, as the views want it: partitions with their nodes, and edges between partitions.

/**
 * @returns {{partitions: Array, nodes: Array, ownerOf: Array<number>, edges: Map<number, Set<number>>|null, order: number[],
 *   totalUs: number, backends: string[], profile: object}} Partitions are numbered in the order of the plan. `edges` goes from the one that
 *   makes a tensor to those that read it; null: the file does not know them.
 */
function buildModel(profile) {
  const { report, problem, run } = profile;
  const model = problem ? fromProblem(problem, report) : fromReport(report);
  model.profile = profile;
  model.totalUs = model.partitions.reduce((sum, partition) => sum + partition.costUs, 0);
  const bySymbol = new Map(model.partitions.filter((p) => p.symbol).map((p) => [p.symbol, p]));
  for (const step of run.steps || []) {
    step.partition = step.kind === "kernel" ? bySymbol.get(step.name) : undefined;
    if (step.partition) step.partition.measuredUs = (step.partition.measuredUs || 0) + step.took_us;
  }
  const used = new Set(model.partitions.filter((p) => !p.isHost).map((p) => p.backend));
  const others = problem ? problem.backends : [];
  model.backends = [...used, ...others.filter((name) => !used.has(name))];
  model.order = model.edges ? topologicalOrder(model) : model.partitions.map((_, i) => i);
  return model;
}

function newPartition(id, backend, nodes, costUs) {
  return { id, backend, nodes, costUs, isHost: backend === "host", variant: "", symbol: "", device: "", form: "", entry: null };
}

function addEntry(partition, entry) {
  partition.entry = entry;
  partition.symbol = entry.partition;
  partition.variant = entry.variant;
  partition.device = entry.device || "";
  partition.form = entry.form || "";
  partition.costUs = entry.cost_us;
}

/** Gives nodes their placements: those of one partition, in order. Nodes that get none are of a form that the plan does not take. */
function place(nodes, inside, placements) {
  let next = 0;
  for (const id of inside) {
    const placement = placements[next];
    if (!placement || placement.name !== nodes[id].name || placement.operator !== nodes[id].operator) continue;
    nodes[id].placement = placement;
    ++next;
  }
}

function fromProblem(problem, report) {
  const nodes = problem.nodes.map((node, id) => ({ id, ...node, placement: null, elsewhere: problem.elsewhere[id] || [] }));
  const bySymbol = new Map();
  for (const placement of report.operators) {
    const symbol = placement.backend === "host" ? `host ${placement.name} ${placement.operator}` : placement.partition;
    bySymbol.set(symbol, [...(bySymbol.get(symbol) || []), placement]);
  }
  const takeOfHost = (id) => bySymbol.get(`host ${nodes[id].name} ${nodes[id].operator}`)?.shift() || null;
  const partitions = [];
  const ownerOf = new Array(nodes.length).fill(-1);
  let entries = 0;
  for (const number of problem.chosen) {
    const kernel = problem.kernels[number];
    const partition = newPartition(partitions.length, kernel.backend, [], kernel.cost_us || 0);
    if (!partition.isHost) {
      addEntry(partition, report.plan[entries++]);
      place(nodes, kernel.inside, bySymbol.get(partition.symbol) || []);
    } else {
      for (const id of kernel.inside) nodes[id].placement = takeOfHost(id);
    }
    partition.nodes = kernel.inside.filter((id) => nodes[id].placement);
    if (!partition.nodes.length) continue;
    for (const id of kernel.inside) ownerOf[id] = partition.id;
    partitions.push(partition);
  }
  const edges = new Map(partitions.map((partition) => [partition.id, new Set()]));
  for (const [producer, consumers] of problem.tensors) {
    const from = producer === null ? -1 : ownerOf[producer];
    if (from < 0) continue;
    for (const consumer of consumers) {
      // What another form replaces reads nothing; its result is made in the form's place.
      const to = nodes[consumer].placement ? ownerOf[consumer] : -1;
      if (to >= 0 && to !== from) edges.get(from).add(to);
    }
  }
  return { nodes, partitions, ownerOf, edges };
}

function fromReport(report) {
  const nodes = report.operators.map((placement, id) => ({
    id, name: placement.name, operator: placement.operator, nodes: placement.nodes || [], placement, elsewhere: [],
  }));
  const partitions = [];
  const bySymbol = new Map();
  for (const entry of report.plan) {
    const partition = newPartition(partitions.length, entry.backend, [], entry.cost_us);
    addEntry(partition, entry);
    bySymbol.set(entry.partition, partition);
    partitions.push(partition);
  }
  const ownerOf = nodes.map((node) => {
    const partition = bySymbol.get(node.placement.partition);
    if (!partition) return -1;
    partition.nodes.push(node.id);
    return partition.id;
  });
  return { nodes, partitions: partitions, ownerOf, edges: null };
}

/** What the plan is predicted to take as the prices say, as every other prediction here. The report's own estimate is for the race. */
const predictedUs = (report) => report.estimated_us / report.drift;

/** Kahn's, the first of the plan first. A plan has no cycles. */
function topologicalOrder(model) {
  const waiting = new Array(model.partitions.length).fill(0);
  for (const targets of model.edges.values()) for (const to of targets) ++waiting[to];
  const ready = model.partitions.filter((partition) => !waiting[partition.id]).map((partition) => partition.id).reverse();
  const order = [];
  while (ready.length) {
    const from = ready.pop();
    order.push(from);
    // Depth first, so that what belongs together stays together.
    for (const to of [...model.edges.get(from)].sort((a, b) => b - a)) if (--waiting[to] === 0) ready.push(to);
  }
  return order;
}

const shortOperator = (name) => name.replace(/^nn\./, "");

/** "conv2d + add + relu", each run of equal ones once. */
function operatorsOf(model, partition) {
  const names = partition.nodes.map((id) => shortOperator(model.nodes[id].operator));
  const runs = [];
  for (const name of names) {
    const last = runs[runs.length - 1];
    if (last && last.name === name) ++last.count;
    else runs.push({ name, count: 1 });
  }
  return runs.map((run) => (run.count > 1 ? `${run.name} ×${run.count}` : run.name)).join(" + ");
}

const nameOfNode = (node) => (node.nodes.length ? node.nodes.join(", ") : node.name);

/** The model's names in a partition, the first of them. */
function namesOf(model, partition) {
  const names = partition.entry && partition.entry.nodes.length ? partition.entry.nodes : partition.nodes.map((id) => nameOfNode(model.nodes[id]));
  return names.length ? [...new Set(names)] : [partition.symbol];
}

/** The node that stands for a partition: the one for which most other backends have a price, the first of these. */
function mainNode(model, partition) {
  const known = (id) => model.nodes[id].elsewhere.filter((row) => row.known === "price").length;
  const heavy = (id) => (/conv|dense|matmul|lstm|gru|attention/.test(model.nodes[id].operator) ? 100 : 0);
  return partition.nodes.reduce((best, id) => (known(id) + heavy(id) > known(best) + heavy(best) ? id : best), partition.nodes[0]);
}
