// Boxes that stand for several partitions. What is folded is a stretch of the topological order, so that folding never makes a cycle.

// A screen of boxes: with more of them on the highest level, stretches are put together once more.
const MOST_ON_TOP = 60;
// With more partitions than this, blocks are folded when the page opens.
const MOST_UNFOLDED = 200;
const MOST_REPEATED = 24;

let foldCount = 0;

function newFold(children, title) {
  const partitions = children.flatMap((child) => child.partitions);
  return { kind: "fold", id: `fold${foldCount++}`, children, partitions, title, signature: children.map((child) => child.signature).join("|") };
}

/** A forest of leaves (one partition each) and folds, in topological order. */
function findFolds(model) {
  foldCount = 0;
  const leaves = model.order.map((id) => ({
    kind: "leaf", id: `partition${id}`, partitions: [id], signature: operatorsOf(model, model.partitions[id]),
  }));
  if (!model.edges) return chunked(leaves);
  return chunked(repeated(atCuts(model, leaves)));
}

/** Stretches between places where one tensor at most goes on. */
function atCuts(model, leaves) {
  const position = new Map(model.order.map((id, i) => [id, i]));
  const change = new Array(leaves.length + 1).fill(0);
  for (const [from, targets] of model.edges) {
    let last = -1;
    for (const to of targets) last = Math.max(last, position.get(to));
    if (last < 0) continue;
    ++change[position.get(from)];
    --change[last];
  }
  const items = [];
  let stretch = [];
  let open = 0;
  leaves.forEach((leaf, i) => {
    stretch.push(leaf);
    open += change[i];
    if (open > 1 && i + 1 < leaves.length) return;
    if (stretch.length > 1) items.push(newFold(chunked(stretch), ""));
    else items.push(stretch[0]);
    stretch = [];
  });
  nameBlocks(items);
  return items;
}

function nameBlocks(items) {
  const count = new Map();
  for (const item of items) if (item.kind === "fold") count.set(item.signature, (count.get(item.signature) || 0) + 1);
  let number = 0;
  for (const item of items) {
    if (item.kind !== "fold") continue;
    const alike = count.get(item.signature) - 1;
    item.title = `block ${++number}` + (alike ? `, ${alike} like it` : "");
  }
}

/** Where a sequence of items comes again and again, one fold for all of it, with a fold for each time. Only when there are many. */
function repeated(items) {
  if (items.length <= MOST_ON_TOP) return items;
  const result = [];
  for (let i = 0; i < items.length; ) {
    let best = { period: 0, times: 1 };
    for (let period = 1; period <= MOST_REPEATED && i + 2 * period <= items.length; ++period) {
      let times = 1;
      while (isRepeated(items, i, i + times * period, period)) ++times;
      if (times > 1 && times * period > best.times * best.period) best = { period, times };
    }
    if (!best.period) {
      result.push(items[i++]);
      continue;
    }
    const all = [];
    for (let k = 0; k < best.times; ++k, i += best.period) {
      const once = items.slice(i, i + best.period);
      all.push(once.length > 1 ? newFold(once, `${k + 1} of ${best.times}`) : once[0]);
    }
    result.push(newFold(chunked(all), `${best.times} times the same`));
  }
  return result;
}

function isRepeated(items, first, second, period) {
  if (second + period > items.length) return false;
  for (let k = 0; k < period; ++k) if (items[first + k].signature !== items[second + k].signature) return false;
  return true;
}

/** At most a screen of items: many become stretches of about equal length. */
function chunked(items) {
  if (items.length <= MOST_ON_TOP) return items;
  const size = Math.max(Math.ceil(items.length / MOST_ON_TOP), 8);
  const chunks = [];
  for (let i = 0; i < items.length; i += size) {
    const some = items.slice(i, i + size);
    chunks.push(some.length > 1 ? newFold(some, `stretch ${chunks.length + 1}`) : some[0]);
  }
  return chunked(chunks);
}

/** The folds that hold a partition, the outermost first. */
function foldsAround(forest, partition) {
  const path = [];
  let items = forest;
  for (;;) {
    const item = items.find((one) => one.partitions.includes(partition));
    if (!item || item.kind === "leaf") return path;
    path.push(item);
    items = item.children;
  }
}

function allFolds(items) {
  return items.flatMap((item) => (item.kind === "fold" ? [item, ...allFolds(item.children)] : []));
}
