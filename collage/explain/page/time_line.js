// One run, a row for each device: measured where the program could run, else the predicted times one after another.

const ROW_HEIGHT = 46;
const LABEL_HEIGHT = 18;
const AXIS_HEIGHT = 26;

function showTimeLine(panel, report) {
  const { model } = report;
  const { run } = model.profile;
  const steps = run.steps ? measuredSteps(run.steps) : predictedSteps(model);
  const end = Math.max(...steps.map((step) => step.begin + step.us), 1e-9);
  const page = html("div", { class: "page" });
  page.append(html("h2", {}, run.steps ? "One run, measured when this report was made" : "One run as predicted"));
  page.append(html("p", {}, run.steps ? measuredText(model, run, steps) : `These are the prices of the compile, one after another, without conversions and transitions. The program was not run: ${run.why_not}.`));
  let zoom = 1;
  const scroll = html("div", { class: "scroll" });
  const draw = () => scroll.replaceChildren(drawTimeLine(report, steps, end, Math.max(scroll.clientWidth - 2, 300) * zoom));
  const change = (by) => {
    const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / scroll.scrollWidth;
    zoom = Math.min(Math.max(zoom * by, 1), 64);
    draw();
    scroll.scrollLeft = middle * scroll.scrollWidth - scroll.clientWidth / 2;
  };
  const bar = html("div", { class: "bar" }, legendOf(new Set(steps.map((step) => step.backend))), html("span", { class: "push" }),
    html("button", { type: "button", onclick: () => change(0.5), "aria-label": "Shorter" }, "−"), html("button", { type: "button", onclick: () => change(2), "aria-label": "Longer" }, "+"));
  page.append(scroll, sumsByKind(steps));
  panel.replaceChildren(bar, page);
  draw();
}

function legendOf(backends) {
  const legend = html("div", { class: "legend" });
  for (const backend of backends) legend.append(key(backend || "host", backend || "conversions, copies and waits"));
  return legend;
}

function measuredSteps(steps) {
  return steps.map((step) => ({
    begin: step.begin_us, us: step.took_us, kind: step.kind, name: step.name, device: step.device, partition: step.partition,
    backend: step.partition ? step.partition.backend : step.kind === "kernel" ? "kernel" : "",
  }));
}

function predictedSteps(model) {
  let begin = 0;
  const steps = [];
  for (const id of model.order) {
    const partition = model.partitions[id];
    if (partition.isHost) continue;
    steps.push({ begin, us: partition.costUs, kind: "kernel", name: partition.symbol, device: partition.device || "cpu:0", partition, backend: partition.backend });
    begin += partition.costUs;
  }
  return steps;
}

function measuredText(model, run, steps) {
  const kernels = steps.reduce((sum, step) => sum + step.us, 0);
  const raced = model.profile.report.end_to_end_ms.chosen;
  return `With random inputs and ${countText(model.profile.report.threads, "thread")}. Its steps take ${timeText(kernels)} together, each timed by itself; `
    + `whole runs right before took ${timeText(run.run_us)} in the middle` + (raced ? `, and ${timeText(raced * 1000)} in the race of the compile.` : ".");
}

function drawTimeLine(report, steps, end, width) {
  const { model } = report;
  const devices = [...new Set(steps.map((step) => step.device))];
  const height = AXIS_HEIGHT + devices.length * (ROW_HEIGHT + LABEL_HEIGHT) + 6;
  const root = svg("svg", { width, height, role: "group", "aria-label": "Time line. Arrow keys go from step to step, Enter selects." });
  const scale = (width - 16) / end;
  drawAxis(root, end, scale, height);
  const rects = [];
  devices.forEach((device, row) => drawn(root, "text", { class: "row-label", x: 8, y: AXIS_HEIGHT + row * (ROW_HEIGHT + LABEL_HEIGHT) + 13 }, device));
  for (const step of steps) {
    const y = AXIS_HEIGHT + devices.indexOf(step.device) * (ROW_HEIGHT + LABEL_HEIGHT) + LABEL_HEIGHT;
    const what = step.partition ? `${operatorsOf(model, step.partition)}; ${namesOf(model, step.partition)[0]}; ${step.backend}` : `${step.kind} ${step.name}`;
    const press = () => step.partition && report.selectPartition(step.partition.id);
    const rect = drawn(root, "rect", {
      class: "step", x: 8 + step.begin * scale, y, width: Math.max(step.us * scale, 0.7), height: ROW_HEIGHT - 6, fill: fillOf(step.backend), tabindex: rects.length ? -1 : 0,
      role: "button", "aria-label": `${what}, ${timeText(step.us)}`, onclick: press, "data-partition": step.partition ? step.partition.id : undefined,
    }, svg("title", {}, `${what}\n${timeText(step.us)}, from ${timeText(step.begin)}`));
    if (step.partition && step.partition.id === report.selected) rect.classList.add("selected");
    rect.addEventListener("keydown", (event) => {
      roveAmong(rects, event);
      pressed(event, press);
    });
    rects.push(rect);
  }
  return root;
}

/** A round number of about a tenth of the whole. */
function tickOf(whole) {
  const rough = whole / 8;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
}

function drawAxis(root, end, scale, height) {
  const axis = drawn(root, "g", { class: "axis" });
  const tick = tickOf(end / Math.max(1, scale * end / 900));
  for (let at = 0; at <= end; at += tick) {
    const x = 8 + at * scale;
    drawn(axis, "line", { x1: x, x2: x, y1: 18, y2: height });
    drawn(axis, "text", { x: x + 3, y: 14 }, at ? timeText(at).replace(/\.0+ /, " ") : "0");
  }
}

function sumsByKind(steps) {
  const sums = new Map();
  for (const step of steps) {
    const name = step.kind === "kernel" ? `kernels of ${step.backend}` : `${step.kind}s`;
    const sum = sums.get(name) || { us: 0, count: 0, backend: step.backend };
    sum.us += step.us;
    ++sum.count;
    sums.set(name, sum);
  }
  const total = [...sums.values()].reduce((all, sum) => all + sum.us, 0) || 1;
  const table = html("table", {}, html("tr", {}, html("th", {}, "What"), html("th", { class: "number" }, "Steps"), html("th", { class: "number" }, "Time"), html("th", {}, "Share")));
  for (const [name, sum] of [...sums].sort((a, b) => b[1].us - a[1].us)) {
    table.append(html("tr", {}, html("td", {}, name), html("td", { class: "number" }, String(sum.count)), html("td", { class: "number" }, timeText(sum.us)),
      html("td", {}, meter(sum.us / total, sum.backend || "host"), ` ${shareText(sum.us / total)}`)));
  }
  return table;
}
