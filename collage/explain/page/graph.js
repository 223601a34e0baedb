// The graph: a box for each partition or fold, layered top to bottom.

const BOX_WIDTH = 232;
// Below the texts of a box comes its time: an area in the backend's colour, as wide in all boxes, and as high as its time is of the
// longest.
const AREA_TOP = 42;
const AREA_WIDTH = BOX_WIDTH - 22;
// Twice what the texts take: on a screen of 900 its neighbours are still in sight.
const MOST_AREA_HEIGHT = 90;
// Less is no longer seen as a colour. What is shorter than a thirtieth of the longest looks alike.
const LEAST_AREA_HEIGHT = 3;
const BELOW_AREA = 7;
// The side of the square that says how much time an area is.
const UNIT_SIDE = 14;
const HOST_HEIGHT = 24;
const MARGIN = 28;
// Letters that fit into the second line of a box; measuring texts would take longer than all the rest.
const LINE_LENGTH = 34;
const ZOOMS = [0.25, 0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.5];

class GraphView {
  constructor(report) {
    this.report = report;  // main.js: what is selected, and how to select
    this.model = report.model;
    this.forest = findFolds(this.model);
    this.folds = allFolds(this.forest);
    this.open = new Set();
    if (this.model.partitions.length <= MOST_UNFOLDED) this.folds.forEach((fold) => this.open.add(fold.id));
    this.zoom = ZOOMS.indexOf(1);
    this.changing = new Set();
  }

  show(panel) {
    const button = (text, action, label) => html("button", { type: "button", onclick: action, "aria-label": label }, text);
    this.canvas = html("div", { class: "canvas", tabindex: -1 });
    const legend = html("div", { class: "legend" });
    for (const backend of new Set(this.model.partitions.map((partition) => partition.backend))) {
      legend.append(key(backend, backend === "host" ? "host (no kernel)" : backend));
    }
    this.unit = html("span", { class: "key", id: "unit" });
    const bar = html("div", { class: "bar" }, legend, this.unit, html("span", { class: "push" }));
    if (this.folds.length) {
      bar.append(button("Fold all", () => this.setAll(false)), button("Unfold all", () => this.setAll(true)));
    }
    bar.append(button("−", () => this.changeZoom(-1), "Smaller"), button("+", () => this.changeZoom(1), "Larger"));
    panel.replaceChildren(bar, this.canvas);
    this.draw();
    this.revealFocused();
  }

  setAll(open) {
    this.open = new Set(open ? this.folds.map((fold) => fold.id) : []);
    this.draw();
    this.revealFocused();
  }

  /** Of a wide graph the left end may be empty for all of a screen. */
  revealFocused() {
    this.reveal(this.boxes.get(this.focused));
  }

  changeZoom(by) {
    this.zoom = Math.min(Math.max(this.zoom + by, 0), ZOOMS.length - 1);
    this.size();
  }

  /** What is drawn now, in topological order. */
  visible() {
    const items = [];
    const visit = (item) => {
      if (item.kind === "fold" && this.open.has(item.id)) item.children.forEach(visit);
      else items.push(item);
    };
    this.forest.forEach(visit);
    return items;
  }

  draw() {
    const items = this.visible();
    const itemOf = new Map();
    const timeOf = (item) => item.partitions.reduce((sum, id) => sum + this.model.partitions[id].costUs, 0);
    // One scale for all that is in sight, folds and partitions alike, so that all areas compare. Unfolding what is longest makes it finer.
    this.most = Math.max(...items.map(timeOf), 1e-9);
    const boxes = items.map((item) => {
      for (const id of item.partitions) itemOf.set(id, item.id);
      const host = item.kind === "leaf" && this.model.partitions[item.partitions[0]].isHost;
      const area = Math.max((timeOf(item) / this.most) * MOST_AREA_HEIGHT, LEAST_AREA_HEIGHT);
      return { id: item.id, item, area, width: BOX_WIDTH, height: host ? HOST_HEIGHT : AREA_TOP + area + BELOW_AREA };
    });
    const edges = this.edgesBetween(itemOf);
    const layout = this.model.edges ? layOut(boxes, edges) : inColumns(boxes);
    this.layout = layout;
    this.boxes = new Map(boxes.map((box) => [box.id, box]));
    this.itemOf = itemOf;
    this.next = new Map(boxes.map((box) => [box.id, { above: [], below: [] }]));
    for (const [from, to] of edges) {
      this.next.get(from).below.push(to);
      this.next.get(to).above.push(from);
    }
    this.svg = svg("svg", { role: "group", "aria-label": "Graph of partitions. Arrow keys follow edges, Enter selects or unfolds." });
    const root = drawn(this.svg, "g", { transform: `translate(${MARGIN} ${MARGIN})` });
    this.drawFrames(root);
    this.routes = layout.routes.map((route) => ({ ...route, path: drawn(root, "path", { class: "edge", d: curve(route.points) }) }));
    for (const box of boxes) this.drawBox(root, box);
    this.canvas.replaceChildren(this.svg);
    this.size();
    this.mark();
  }

  edgesBetween(itemOf) {
    const seen = new Set();
    const edges = [];
    for (const [from, targets] of this.model.edges || []) {
      for (const to of targets) {
        const edge = [itemOf.get(from), itemOf.get(to)];
        const name = edge.join(" ");
        if (edge[0] === edge[1] || seen.has(name)) continue;
        seen.add(name);
        edges.push(edge);
      }
    }
    return edges;
  }

  size() {
    const width = this.layout.width + 2 * MARGIN;
    const height = this.layout.height + 2 * MARGIN;
    const zoom = ZOOMS[this.zoom];
    append(null, this.svg, { viewBox: `0 0 ${width} ${height}`, width: width * zoom, height: height * zoom });
    const side = UNIT_SIDE * zoom;
    const us = (UNIT_SIDE * UNIT_SIDE * this.most) / (AREA_WIDTH * MOST_AREA_HEIGHT);
    const square = svg("svg", { width: side, height: side, "aria-hidden": "true" }, svg("rect", { class: "unit", width: side, height: side }));
    this.unit.replaceChildren("area is predicted time:", square, timeText(us));
  }

  /** Behind the boxes of each open fold. */
  drawFrames(root) {
    const frame = (item) => {
      if (item.kind !== "fold" || !this.open.has(item.id)) return;
      const inside = this.boxesIn(item);
      const left = Math.min(...inside.map((box) => box.x)) - 10;
      const top = Math.min(...inside.map((box) => box.y)) - 20;
      const right = Math.max(...inside.map((box) => box.x + box.width)) + 10;
      const bottom = Math.max(...inside.map((box) => box.y + box.height)) + 8;
      drawn(root, "rect", { class: "frame", x: left, y: top, width: right - left, height: bottom - top, rx: 9 });
      const close = () => this.toggle(item);
      const label = drawn(root, "g", {
        class: "frame-label", tabindex: 0, role: "button", "aria-label": `Fold ${item.title}`, "data-fold": item.id, onclick: close,
        onkeydown: (event) => pressed(event, close),
      });
      drawn(label, "text", { x: left + 8, y: top + 13 }, `▾ ${item.title}`);
      item.children.forEach(frame);
    };
    this.forest.forEach(frame);
  }

  boxesIn(item) {
    return [...new Set(item.partitions.map((id) => this.itemOf.get(id)))].map((id) => this.boxes.get(id));
  }

  drawBox(root, box) {
    const press = () => this.press(box);
    const group = drawn(root, "g", {
      class: `box ${box.item.kind}`, transform: `translate(${box.x} ${box.y})`, tabindex: -1, role: "button", onclick: press,
      onkeydown: (event) => this.keyDown(event, box),
    });
    box.group = group;
    if (box.item.kind === "fold") this.drawFold(group, box);
    else this.drawPartition(group, box, this.model.partitions[box.item.partitions[0]]);
  }

  drawPartition(group, box, partition) {
    const names = namesOf(this.model, partition);
    const what = operatorsOf(this.model, partition) || "partition";
    if (partition.isHost) {
      group.classList.add("host");
      drawn(group, "rect", { class: "body", width: box.width, height: box.height, rx: 6 });
      drawn(group, "text", { x: 12, y: 16 }, cut(what, 36));
      group.setAttribute("aria-label", `${what}, no kernel`);
      return;
    }
    const time = timeText(partition.costUs);
    this.drawCard(group, box, {
      title: what, name: names.length > 1 ? `(${names.length}) ${names[0]}` : names[0], label: partition.backend + (partition.device ? ` @ ${partition.device}` : ""),
      time, parts: [{ backend: partition.backend, us: partition.costUs }],
    });
    group.setAttribute("aria-label", `${what}; ${names[0]}; ${partition.backend}, ${time}`);
  }

  drawFold(group, box) {
    const by = new Map();
    for (const id of box.item.partitions) {
      const { backend, costUs, isHost } = this.model.partitions[id];
      if (!isHost) by.set(backend, (by.get(backend) || 0) + costUs);
    }
    const parts = [...by].map(([backend, us]) => ({ backend, us })).sort((a, b) => b.us - a.us);
    const total = parts.reduce((sum, part) => sum + part.us, 0);
    const label = parts.length ? parts.slice(0, 3).map((part) => part.backend).join(", ") + (parts.length > 3 ? " …" : "") : "host";
    drawn(group, "rect", { class: "body", x: 5, y: 5, width: box.width, height: box.height, rx: 6 });
    this.drawCard(group, box, {
      title: `▸ ${box.item.title}`, name: countText(box.item.partitions.length, "box", "boxes"), label, time: timeText(total), parts,
    });
    group.setAttribute("aria-label", `Unfold ${box.item.title}: ${countText(box.item.partitions.length, "partition")}, ${timeText(total)}`);
    group.setAttribute("aria-expanded", "false");
  }

  /** Equal areas are equal times, of partitions and folds alike; backends of a fold share its area side by side. */
  drawCard(group, box, { title, name, label, time, parts }) {
    const { width, height } = box;
    drawn(group, "title", {}, `${title}\n${label}, ${time}`);
    drawn(group, "rect", { class: "body", width, height, rx: 6 });
    drawn(group, "text", { class: "title", x: 12, y: 18 }, cut(title, 28));
    const right = `${cut(label, 18)} · ${time}`;
    drawn(group, "text", { class: "name", x: 12, y: 33 }, cut(name, LINE_LENGTH - right.length));
    drawn(group, "text", { class: "time", x: width - 10, y: 33 }, right);
    const total = parts.reduce((sum, part) => sum + part.us, 0);
    let x = 12;
    for (const part of parts) {
      const length = total > 0 ? (part.us / total) * AREA_WIDTH : AREA_WIDTH / parts.length;
      drawn(group, "rect", { class: "area", x, y: AREA_TOP, width: length, height: box.area, fill: fillOf(part.backend) });
      x += length;
    }
  }

  press(box) {
    this.focused = box.id;
    if (box.item.kind === "fold") this.toggle(box.item);
    else this.report.selectPartition(box.item.partitions[0]);
  }

  toggle(item) {
    const opens = !this.open.has(item.id);
    if (opens) this.open.add(item.id);
    else this.open.delete(item.id);
    this.draw();
    this.focus(this.itemOf.get(item.partitions[0]));
  }

  keyDown(event, box) {
    const { above, below } = this.next.get(box.id);
    const beside = (by) => {
      const row = [...this.boxes.values()].filter((one) => one.y === box.y).sort((a, b) => a.x - b.x);
      return row[row.indexOf(box) + by];
    };
    const nearest = (ids) => ids.map((id) => this.boxes.get(id)).sort((a, b) => Math.abs(a.x - box.x) - Math.abs(b.x - box.x))[0];
    const to = { ArrowDown: () => nearest(below), ArrowUp: () => nearest(above), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1) }[event.key];
    if (to) {
      event.preventDefault();
      const next = to();
      if (next) this.focus(next.id);
    } else {
      pressed(event, () => this.press(box));
    }
  }

  focus(id) {
    this.setTabStop(id);
    const box = this.boxes.get(id);
    box.group.focus({ preventScroll: true });
    this.reveal(box);
  }

  setTabStop(id) {
    this.boxes.get(this.focused)?.group.setAttribute("tabindex", -1);
    this.focused = id;
    this.boxes.get(id)?.group.setAttribute("tabindex", 0);
  }

  reveal(box) {
    const zoom = ZOOMS[this.zoom];
    const svgLeft = this.svg.getBoundingClientRect().left - this.canvas.getBoundingClientRect().left + this.canvas.scrollLeft;
    const x = (box.x + MARGIN) * zoom + svgLeft;
    const y = (box.y + MARGIN) * zoom;
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.canvas;
    if (y < scrollTop + 20 || y + box.height * zoom > scrollTop + clientHeight - 20) this.canvas.scrollTop = y - clientHeight / 3;
    if (x < scrollLeft + 10 || x + box.width * zoom > scrollLeft + clientWidth - 10) this.canvas.scrollLeft = x - clientWidth / 2 + (box.width * zoom) / 2;
  }

  /** The selected partition comes into sight, out of its folds where it is in some. */
  reach(partition) {
    const shut = foldsAround(this.forest, partition).filter((fold) => !this.open.has(fold.id));
    shut.forEach((fold) => this.open.add(fold.id));
    if (!this.canvas?.isConnected) return;
    if (shut.length) this.draw();
    else this.mark();
    this.setTabStop(this.itemOf.get(partition));
    this.revealFocused();
  }

  /** Partitions that a question would change. */
  showChanges(partitions) {
    this.changing = partitions;
    if (this.canvas?.isConnected) this.mark();
  }

  mark() {
    const selected = this.itemOf.get(this.report.selected);
    for (const box of this.boxes.values()) {
      box.group.classList.toggle("selected", box.id === selected);
      box.group.classList.toggle("changes", box.item.partitions.some((id) => this.changing.has(id)));
      if (box.item.kind === "leaf" ) box.group.setAttribute("aria-pressed", box.id === selected);
    }
    for (const route of this.routes) route.path.classList.toggle("near", route.from === selected || route.to === selected);
    if (!this.boxes.has(this.focused)) this.focused = undefined;
    this.setTabStop(this.focused ?? selected ?? this.boxes.keys().next().value);
  }
}

/** Where no edges are known: one below another. */
function inColumns(boxes) {
  let y = 0;
  for (const box of boxes) {
    box.x = 0;
    box.y = y;
    y += box.height + 10;
  }
  return { width: BOX_WIDTH, height: y, routes: [] };
}

function curve(points) {
  let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
  for (let i = 1; i < points.length; ++i) {
    const [x, y] = points[i];
    const [px, py] = points[i - 1];
    const middle = (y + py) / 2;
    path += Math.abs(x - px) < 0.5 ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `C${px.toFixed(1)} ${middle.toFixed(1)} ${x.toFixed(1)} ${middle.toFixed(1)} ${x.toFixed(1)} ${y.toFixed(1)}`;
  }
  return path;
}
