// Rates of kernels against what they have to compute and to move, and against what no kernel can do without.

const PLOT = { width: 860, height: 420, left: 100, right: 24, top: 18, bottom: 46 };

function showRoofline(panel, report) {
  const { model } = report;
  const points = model.partitions.filter((partition) => partition.entry && partition.entry.work && partition.costUs > 0).map((partition) => pointOf(partition));
  const page = html("div", { class: "page" });
  page.append(html("h2", {}, "Where the time goes, against what has to be done"));
  if (!points.length) {
    page.append(html("p", {}, "The file says nothing of the work of its kernels: it was compiled by an earlier Collage. Compile the model again."));
    panel.replaceChildren(page);
    return;
  }
  const best = { flops: Math.max(...points.map((p) => p.flopRate)), bytes: Math.max(...points.map((p) => p.byteRate)) };
  const timed = model.profile.run.steps ? "measured in the run shown here" : "predicted";
  page.append(html("p", {}, `A dot is a partition, its area the time it takes (${timed}). Higher is faster. The lines are the highest rates that any partition of this program reaches: ${amountText(best.flops, "FLOP/s")} and ${amountText(best.bytes, "B/s")}. They are not limits of the machine; weights count as moved in each run.`));
  const heavy = points.filter((point) => point.flops > 0);
  page.append(legendOf(new Set(points.map((point) => point.partition.backend))));
  if (heavy.length) page.append(html("div", { class: "scroll" }, drawRoofline(report, heavy, best)));
  page.append(html("h2", {}, "The longest"), longest(report, points, best));
  panel.replaceChildren(page);
}

function pointOf(partition) {
  const { flops, bytes, roofline_us: proved } = partition.entry.work;
  const us = partition.measuredUs || partition.costUs;
  return { partition, us, flops, bytes, proved, flopRate: flops / (us * 1e-6), byteRate: bytes / (us * 1e-6), intensity: flops / Math.max(bytes, 1) };
}

function drawRoofline(report, points, best) {
  const { width, height, left, right, top, bottom } = PLOT;
  const decades = (values) => [10 ** Math.floor(Math.log10(Math.min(...values) * 0.9)), 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.1))];
  const [x0, x1] = decades(points.map((point) => point.intensity));
  const [y0, y1] = decades([...points.map((point) => point.flopRate), best.flops]);
  const place = (value, from, to, begin, end) => begin + ((Math.log(value) - Math.log(from)) / (Math.log(to) - Math.log(from))) * (end - begin);
  const x = (value) => place(value, x0, x1, left, width - right);
  const y = (value) => place(value, y0, y1, height - bottom, top);
  const root = svg("svg", { width, height, role: "group", "aria-label": "Roofline. Arrow keys go from partition to partition, Enter selects." });
  const axis = drawn(root, "g", { class: "axis" });
  for (let at = x0; at <= x1 * 1.01; at *= 10) {
    drawn(axis, "line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom });
    drawn(axis, "text", { x: x(at), y: height - bottom + 16, "text-anchor": "middle" }, String(Number(at.toPrecision(1))));
  }
  for (let at = y0; at <= y1 * 1.01; at *= 10) {
    drawn(axis, "line", { x1: left, x2: width - right, y1: y(at), y2: y(at) });
    drawn(axis, "text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, amountText(at, "FLOP/s").replace(/\.0+ /, " "));
  }
  drawn(axis, "text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, "operations for each byte read or written");
  const knee = best.flops / best.bytes;
  const clip = (value) => Math.min(Math.max(value, x0), x1);
  const roof = (value) => Math.min(value * best.bytes, best.flops);
  const line = [x0, clip(knee), x1].filter((value) => roof(value) >= y0).map((value) => `${x(value).toFixed(1)},${y(Math.max(roof(value), y0)).toFixed(1)}`);
  drawn(root, "polyline", { class: "limit", points: line.join(" ") });
  const total = points.reduce((sum, point) => sum + point.us, 0);
  const dots = [];
  // Small ones last, so that none is hidden.
  for (const point of [...points].sort((a, b) => b.us - a.us)) {
    const press = () => report.selectPartition(point.partition.id);
    const text = `${operatorsOf(report.model, point.partition)}, ${point.partition.backend}: ${timeText(point.us)}, ${amountText(point.flopRate, "FLOP/s")}`;
    const dot = drawn(root, "circle", {
      class: "dot", cx: x(point.intensity), cy: y(point.flopRate), r: Math.max(3.5, 60 * Math.sqrt(point.us / total / Math.PI)), fill: fillOf(point.partition.backend), "fill-opacity": 0.85,
      stroke: "#fff", tabindex: dots.length ? -1 : 0, role: "button", "aria-label": text, onclick: press, "data-partition": point.partition.id,
    }, svg("title", {}, `${text}\n${namesOf(report.model, point.partition)[0]}`));
    if (point.partition.id === report.selected) dot.classList.add("selected");
    dot.addEventListener("keydown", (event) => {
      roveAmong(dots, event);
      pressed(event, press);
    });
    dots.push(dot);
  }
  return root;
}

const LONGEST = 15;

function longest(report, points, best) {
  const { model } = report;
  const total = points.reduce((sum, point) => sum + point.us, 0);
  const head = ["Partition", "Backend", "Time", "Share", "Rate", "Of the best here", "Proved to need"];
  const table = html("table", {}, html("tr", {}, ...head.map((text, i) => html("th", { class: i > 1 ? "number" : "" }, text))));
  for (const point of [...points].sort((a, b) => b.us - a.us).slice(0, LONGEST)) {
    const { partition } = point;
    const of = Math.max(point.flopRate / best.flops || 0, point.byteRate / best.bytes || 0);
    table.append(html("tr", { class: partition.id === report.selected ? "chosen" : "" },
      html("td", {}, html("button", { class: "plain", type: "button", onclick: () => report.selectPartition(partition.id) }, cut(operatorsOf(model, partition), 40)), html("div", { class: "soft" }, cut(namesOf(model, partition)[0], 50))),
      html("td", {}, key(partition.backend)), html("td", { class: "number" }, timeText(point.us)), html("td", { class: "number" }, shareText(point.us / total)),
      html("td", { class: "number" }, point.flops ? amountText(point.flopRate, "FLOP/s") : amountText(point.byteRate, "B/s")), html("td", { class: "number" }, shareText(of)),
      html("td", { class: "number" }, timeText(point.proved))));
  }
  return table;
}
