// The chosen plan beside that of each backend alone: what the race measured, and what the recorded prices predict.

function showPlans(panel, report) {
  const { profile } = report.model;
  const page = html("div", { class: "page" });
  showRace(page, profile.report);
  showStrips(page, report);
  panel.replaceChildren(page);
}

function showRace(page, report) {
  const names = Object.keys(report.end_to_end_ms);
  page.append(html("h2", {}, "Whole plans, raced end to end when it was compiled"));
  if (!names.length) {
    page.append(html("p", {}, report.is_estimated ? "Nothing was timed: prices are a user's estimates." : "No race was run."));
  } else {
    const noise = report.noise === null ? "There were too few rounds to tell what is noise." : `An equal pair of plans differed by ${shareText(report.noise)}: less than that is noise.`;
    const drift = `The machine ran ${report.drift.toFixed(2)} times as slowly as when the prices were taken: the plan’s predicted `
      + `${timeText(predictedUs(report))} are ${timeText(report.estimated_us)} in this race.`;
    page.append(html("p", {}, `Medians of interleaved rounds on the machine of the compile. ${noise} ${drift}`));
    const most = Math.max(...Object.values(report.end_to_end_ms));
    const table = html("table", {}, html("tr", {}, html("th", {}, "Plan"), html("th", { class: "number" }, "Median"), html("th", { class: "number" }, "Times the chosen"), html("th", {}, "")));
    for (const name of names) {
      const title = report.end_to_end_title[name];
      const backend = title.endsWith(" alone") ? name.split(/[ @(]/)[0] : "";
      table.append(html("tr", { class: name === "chosen" ? "chosen" : "" }, html("td", {}, backend ? key(backend, title) : html("b", {}, title)), html("td", { class: "number" }, timeText(report.end_to_end_ms[name] * 1000)),
        html("td", { class: "number" }, `${report.end_to_end_ratio[name].toFixed(3)} ×`), html("td", {}, meter(report.end_to_end_ms[name] / most, backend || "host"))));
    }
    page.append(table);
  }
  const missing = Object.entries(report.missing);
  if (missing.length) {
    const table = html("table", {}, ...missing.map(([name, reason]) => html("tr", {}, html("td", {}, `${name} alone`), html("td", {}, reason))));
    page.append(html("details", {}, html("summary", {}, `${countText(missing.length, "plan")} of a single backend did not race`), table));
  }
  if (report.remainder) page.append(html("p", {}, `Behind the plan, on the reference kernels: ${report.remainder}`));
  if (report.rounding) page.append(html("p", {}, `${report.rounding[0].toUpperCase()}${report.rounding.slice(1)}.`));
  if (report.not_compared) page.append(html("p", {}, `Not compared with the reference: ${report.not_compared}`));
}

function showStrips(page, report) {
  const { model } = report;
  const { problem } = model.profile;
  page.append(html("h2", {}, "Who would run what, at the recorded prices"));
  if (!problem) {
    page.append(html("p", {}, `Not known: ${model.profile.no_problem}`));
    return;
  }
  page.append(html("p", {}, "Predicted as those say, all on one scale: kernels in the order in which they run; what is pale at the end is conversions and transitions. A backend that cannot run a node leaves it to others."));
  page.append(legendOf(new Set([...model.backends, "host"].filter((backend) => backend !== "host"))));
  const all = [{ title: "chosen", us: problem.chosen_us, kernels: problem.chosen, note: countText(model.partitions.filter((p) => !p.isHost).length, "partition") }];
  for (const alone of problem.alone) {
    const others = alone.left_to_others ? `, ${alone.left_to_others} left to others` : "";
    all.push({ title: `${alone.backend} alone`, us: alone.cost_us, kernels: alone.kernels, note: countText(alone.partitions, "partition") + others });
  }
  const most = Math.max(...all.map((plan) => plan.us || 0), 1e-9);
  for (const plan of all) {
    const change = plan === all[0] ? "" : ` ${moreText(plan.us - all[0].us)}`;
    page.append(html("div", { class: "plan" }, html("div", {}, html("b", {}, plan.title), html("br"), html("small", {}, plan.note)), drawStrip(report, plan, most),
      html("div", { class: "total" }, timeText(plan.us || 0), html("br"), html("small", {}, change))));
  }
}

function drawStrip(report, plan, most) {
  const { model } = report;
  const width = 1000;
  const strip = svg("svg", { viewBox: `0 0 ${width} 30`, preserveAspectRatio: "none", role: "img", "aria-label": `${plan.title}: ${timeText(plan.us || 0)}` });
  const scale = width / most;
  let x = 0;
  let piece = null;
  const flush = () => {
    if (!piece) return;
    const { backend, from, us, nodes, count } = piece;
    const press = () => report.selectPartition(model.ownerOf[nodes[0]]);
    drawn(strip, "rect", { x: from, width: us * scale, height: 30, fill: fillOf(backend), stroke: "#fff", "stroke-width": us * scale > 4 ? 0.6 : 0, onclick: press, class: "step" },
      svg("title", {}, `${backend}, ${countText(count, "kernel")}, ${timeText(us)}\n${cut([...new Set(nodes.map((id) => nameOfNode(model.nodes[id])))].join(", "), 160)}`));
    piece = null;
  };
  for (const number of plan.kernels) {
    const { backend, inside, cost_us: us } = model.profile.problem.kernels[number];
    if (backend === "host" || !us) continue;
    // What nobody could see by itself is drawn together with its neighbours of the same backend.
    if (piece && (piece.backend !== backend || piece.us * scale > 1)) flush();
    piece = piece || { backend, from: x, us: 0, nodes: [], count: 0 };
    piece.us += us;
    piece.nodes.push(...inside);
    ++piece.count;
    x += us * scale;
  }
  flush();
  const rest = (plan.us || 0) * scale - x;
  if (rest > 0.5) drawn(strip, "rect", { x, width: rest, height: 30, fill: HOST_COLOUR }, svg("title", {}, `conversions and transitions, ${timeText(rest / scale)}`));
  return strip;
}
