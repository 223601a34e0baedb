// What was refused, by whom and why, with the nodes that it was refused for.

const MOST_NAMES = 12;

function showRefusals(panel, report) {
  const { model } = report;
  const page = html("div", { class: "page" });
  const groups = new Map();
  for (const node of model.nodes) {
    for (const { backend, variant, reason } of node.placement ? node.placement.rejections : []) {
      const name = JSON.stringify([backend, variant, reason]);
      if (!groups.has(name)) groups.set(name, { backend, variant, reason, nodes: [] });
      groups.get(name).nodes.push(node);
    }
  }
  page.append(html("h2", {}, "What was refused, and why"));
  page.append(html("p", {}, groups.size ? `${countText(groups.size, "kind")} of kernels could not be made or run, or were found wrong. They took no part in the search.` : "No kernel was refused."));
  if (groups.size) {
    const table = html("table", {}, html("tr", {}, html("th", {}, "Backend"), html("th", {}, "Variant"), html("th", {}, "Reason"), html("th", {}, "Nodes")));
    for (const group of [...groups.values()].sort((a, b) => b.nodes.length - a.nodes.length)) {
      const chips = html("div", { class: "chips" });
      for (const node of group.nodes.slice(0, MOST_NAMES)) chips.append(html("button", { type: "button", onclick: () => report.selectNode(node.id) }, cut(nameOfNode(node), 40)));
      if (group.nodes.length > MOST_NAMES) chips.append(html("span", { class: "soft" }, `and ${group.nodes.length - MOST_NAMES} more`));
      table.append(html("tr", {}, html("td", {}, key(group.backend)), html("td", {}, group.variant), html("td", {}, group.reason), html("td", {}, chips)));
    }
    page.append(table);
  }
  panel.replaceChildren(page);
}
