// Beside all views: who runs what is selected, why, and what it would cost elsewhere.

function showDetails(panel, report) {
  const { model, selected, node } = report;
  const partition = model.partitions[selected];
  panel.replaceChildren();
  panel.scrollTop = 0;
  if (!partition) {
    panel.append(html("p", { class: "soft" }, "Select a box: who runs it, why, and what it would cost elsewhere."));
    return;
  }
  panel.append(html("h2", {}, cut(operatorsOf(model, partition) || partition.symbol, 90)));
  if (partition.isHost) {
    panel.append(html("p", { class: "soft" }, "It needs no kernel: it is a view of what is there, or a tuple."));
    panel.append(html("h3", {}, "Nodes of the model"), html("p", {}, namesOf(model, partition).join(", ")));
    return;
  }
  panel.append(
    html("div", { class: "who" }, swatch(partition.backend), partition.backend, html("span", {}, partition.variant + (partition.device ? ` on ${partition.device}` : ""))),
    html("p", {}, priceText(model, partition)),
    html("p", {}, whyText(model, partition)),
  );
  if (partition.form) panel.append(html("p", {}, `It is computed in the form “${partition.form}”.`));
  showOperators(panel, report, partition);
  if (node !== undefined) showElsewhere(panel, report, partition, model.nodes[node]);
}

function priceText(model, partition) {
  const share = model.totalUs > 0 ? `, ${shareText(partition.costUs / model.totalUs)} of all kernels` : "";
  const measured = partition.measuredUs === undefined ? "" : `; ${timeText(partition.measuredUs)} measured in the run shown here`;
  const priced = model.profile.report.is_estimated ? "estimated by the user's function" : "predicted";
  return `${timeText(partition.costUs)} ${priced}${share}${measured}.`;
}

function whyText(model, partition) {
  const { report } = model.profile;
  const placements = partition.nodes.map((id) => model.nodes[id].placement);
  if (placements.some((placement) => placement.pinned)) return "The user pinned it there.";
  if (placements.some((placement) => placement.left_out)) {
    return "It is part of the plan that won. What the best plan without it costs was not looked for: the plan cannot be cut near by.";
  }
  const margin = partition.entry.margin_us;
  const won = report.winner === "searched" ? "It is part of the searched plan, which won the race" : report.winner ? `It is part of the plan of ${report.winner} alone, which won the race` : "It is part of the chosen plan";
  if (margin === null) return `${won}; no other plan of what was timed computes these nodes.`;
  if (margin >= 0) return `${won}. The best plan without this partition is predicted to take ${timeText(margin)} longer.`;
  return `${won}. At prices taken alone a plan without it looks ${timeText(-margin)} shorter, which was not seen in whole programs.`;
}

function showOperators(panel, report, partition) {
  const { model } = report;
  panel.append(html("h3", {}, partition.nodes.length > 1 ? `${partition.nodes.length} operators run together; choose one to ask about` : "Operator"));
  const chips = html("div", { class: "chips" });
  for (const id of partition.nodes) {
    const node = model.nodes[id];
    const text = `${shortOperator(node.operator)} · ${nameOfNode(node)}`;
    chips.append(html("button", { type: "button", "aria-pressed": id === report.node, title: text, "data-node": id, onclick: () => report.selectNode(id) }, text));
  }
  panel.append(chips);
  const pressedChip = chips.querySelector("[aria-pressed=true]");
  if (pressedChip) chips.scrollTop = pressedChip.offsetTop - chips.offsetTop - 40;
}

function showElsewhere(panel, report, partition, node) {
  const { model } = report;
  panel.append(html("h3", {}, `${cut(nameOfNode(node), 60)} elsewhere, by the whole plan's predicted time`));
  if (!node.elsewhere.length) {
    const reason = model.profile.no_problem || "The file names no chosen plan to compare with.";
    panel.append(html("p", { class: "soft" }, `Not known: ${reason}`));
  } else {
    const table = html("table", { class: "elsewhere" });
    table.append(html("tr", { class: "chosen" }, html("td", { class: "who-cell" }, key(partition.backend)), html("td", {}, "runs it"), html("td", { class: "number" }, "±0")));
    const rows = [...node.elsewhere].sort((a, b) => (a.extra_us ?? Infinity) - (b.extra_us ?? Infinity));
    for (const row of rows) table.append(row.known === "price" ? pricedRow(report, node, row) : unpricedRow(report, node, row));
    panel.append(table, html("div", { id: "changes", "aria-live": "polite" }));
  }
  const refused = node.placement.rejections;
  if (!refused.length) return;
  const list = html("ul", { class: "refused" });
  for (const one of refused) list.append(html("li", {}, html("b", {}, `${one.backend} ${one.variant}`), `: ${one.reason}`));
  panel.append(html("h3", {}, `Refused here (${refused.length})`), list);
}

function pricedRow(report, node, row) {
  const { problem } = report.model.profile;
  const extra = row.extra_us;
  const kernels = row.kernels.map((number) => problem.kernels[number]);
  const own = kernels.find((kernel) => kernel.inside.includes(node.id));
  const text = own ? `${cut(own.variant, 30)} ${timeText(own.cost_us)}` : "other kernels";
  const show = () => showChanges(report, node, row.backend, kernels);
  const side = extra < 0 ? "cheaper" : "dearer";
  const share = problem.chosen_us ? ` (${extra < 0 ? "−" : "+"}${shareText(Math.abs(extra) / problem.chosen_us)})` : "";
  return html("tr", {}, html("td", { class: "who-cell" }, key(row.backend)),
    html("td", {}, html("button", { type: "button", onclick: show, title: "Show what would change" }, text), own && own.inside.length > 1 ? html("div", { class: "why" }, `for ${own.inside.length} operators`) : null),
    html("td", { class: `number ${side}` }, moreText(extra), html("div", { class: "why" }, share.trim())));
}

function unpricedRow(report, node, row) {
  const isSettled = report.model.profile.report.search_complete;
  const refused = node.placement.rejections.find((one) => one.backend === row.backend);
  const why = {
    "no candidate": "no rule of it takes this node",
    refused: refused ? `refused: ${cut(refused.reason, 90)}` : "every kernel of it was refused",
    "not timed": isSettled ? "never timed: it could hardly be part of the cheapest plan" : "never timed: the compile’s time ended",
    "no plan": "no plan near by has it there",
    "not searched": "not looked for: the plan cannot be cut near by",
  }[row.known];
  return html("tr", {}, html("td", { class: "who-cell" }, key(row.backend)), html("td", { class: "why", colspan: 2 }, why));
}

/** The second click: which kernels would come in place of which, in words and in the graph. */
function showChanges(report, node, backend, kernels) {
  const { model } = report;
  const list = html("ul");
  const replaced = new Set();
  for (const kernel of kernels) {
    for (const id of kernel.inside) if (model.ownerOf[id] >= 0) replaced.add(model.ownerOf[id]);
    const names = [...new Set(kernel.inside.map((id) => nameOfNode(model.nodes[id])))];
    list.append(html("li", {}, swatch(kernel.backend), html("span", {}, `${kernel.backend} ${cut(kernel.variant, 28)}, ${timeText(kernel.cost_us || 0)}: ${cut(names.join(", "), 80)}`)));
  }
  for (const id of replaced) if (model.partitions[id].isHost) replaced.delete(id);
  const name = node.nodes[0] || node.name;
  const before = [...replaced].reduce((sum, id) => sum + model.partitions[id].costUs, 0);
  document.getElementById("changes").replaceChildren(html("div", { class: "change" },
    html("p", {}, `In place of ${countText(replaced.size, "partition")} (${timeText(before)}; outlined in the graph), beside conversions and transitions:`), list,
    html("code", {}, `collage explain FILE --pin '${name}=${backend}'`)));
  report.graph.showChanges(replaced);
}
