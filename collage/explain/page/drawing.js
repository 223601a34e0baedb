// What all views draw with: elements, numbers as text, and how a backend looks.

const SVG = "http://www.w3.org/2000/svg";

function append(parent, element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    const isLeftOut = value === false && !name.startsWith("aria-");
    if (value === undefined || value === null || isLeftOut) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
  }
  for (const child of [children].flat()) if (child !== undefined && child !== null) element.append(child);
  if (parent) parent.append(element);
  return element;
}

/** An HTML element; `children` are elements and texts. */
const html = (tag, attributes, ...children) => append(null, document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => append(null, document.createElementNS(SVG, tag), attributes, children);
const drawn = (parent, tag, attributes, ...children) => append(parent, document.createElementNS(SVG, tag), attributes, children);

function timeText(us) {
  const size = Math.abs(us);
  if (size >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
  if (size >= 1e4) return `${(us / 1e3).toFixed(2)} ms`;
  if (size >= 1000) return `${(us / 1e3).toFixed(3)} ms`;
  return `${us.toFixed(size >= 100 ? 0 : 1)} µs`;
}
const moreText = (us) => (us < 0 ? "−" : "+") + timeText(Math.abs(us));
const shareText = (share) => share > 0 && share < 0.0005 ? "<0.1%" : `${(100 * share).toFixed(Math.abs(share) < 0.0995 ? 1 : 0)}%`;
const countText = (count, one, many) => `${count} ${count === 1 ? one : many || one + "s"}`;
const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/** 1234567 as "1.23 M". */
function amountText(value, unit) {
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${(value / size).toPrecision(3)} ${letter}${unit}`;
  }
  return `${value.toPrecision(3)} ${unit}`;
}

// Okabe and Ito's colours, which people of all kinds of sight tell apart; each has a pattern besides, and every use has the name near by.
const LOOKS = [
  { colour: "#0072b2", pattern: "" },
  { colour: "#e69f00", pattern: "M-2 2 l4 -4 M0 8 l8 -8 M6 10 l4 -4" },
  { colour: "#009e73", pattern: "M0 2 h8 M0 6 h8" },
  { colour: "#d55e00", pattern: "M2 0 v8 M6 0 v8" },
  { colour: "#cc79a7", pattern: "M-2 6 l4 4 M0 0 l8 8 M6 -2 l4 4" },
  { colour: "#56b4e9", pattern: "M1 2 h2 M5 6 h2" },
  { colour: "#8c8c00", pattern: "M0 4 h8 M4 0 v8" },
  { colour: "#6d5a9c", pattern: "M0 8 l8 -8 M0 0 l8 8" },
  { colour: "#7f7f7f", pattern: "M0 0 h3 M4 4 h3" },
];
// So that reports of several programs look alike.
const USUAL = ["dnnl", "openvino", "onnxruntime", "native", "xsmm", "openblas", "opencl", "c", "reference"];
const HOST_COLOUR = "#c3cad2";

const lookOf = new Map();

function chooseLooks(backends) {
  const free = LOOKS.filter((_, i) => !backends.includes(USUAL[i]));
  for (const name of backends) {
    if (lookOf.has(name)) continue;
    const usual = USUAL.indexOf(name);
    lookOf.set(name, usual >= 0 ? LOOKS[usual] : free.shift() || LOOKS[lookOf.size % LOOKS.length]);
  }
  const defs = svg("defs");
  for (const [name, look] of lookOf) {
    const pattern = drawn(defs, "pattern", { id: patternOf(name), width: 8, height: 8, patternUnits: "userSpaceOnUse" });
    drawn(pattern, "rect", { width: 8, height: 8, fill: look.colour });
    if (look.pattern) drawn(pattern, "path", { d: look.pattern, stroke: "#fff", "stroke-width": 1.3, "stroke-opacity": 0.75, fill: "none" });
  }
  document.getElementById("patterns")?.remove();
  document.body.append(svg("svg", { id: "patterns", width: 0, height: 0, style: "position:absolute", "aria-hidden": "true" }, defs));
}

const patternOf = (backend) => `look-${backend.replace(/[^a-zA-Z0-9]/g, (c) => `_${c.charCodeAt(0)}`)}`;
const fillOf = (backend) => (lookOf.has(backend) ? `url(#${patternOf(backend)})` : HOST_COLOUR);

function swatch(backend) {
  return svg("svg", { class: "swatch", "aria-hidden": "true" }, svg("rect", { width: 14, height: 14, fill: fillOf(backend) }));
}
const key = (backend, text) => html("span", { class: "key" }, swatch(backend), text || backend);
const meter = (share, backend) => {
  const width = Math.max(1, Math.round(100 * share));
  return svg("svg", { class: "meter", width, height: 10, "aria-hidden": "true" }, svg("rect", { width, height: 10, fill: fillOf(backend) }));
};

/** Arrow keys move among elements of which one at a time can be reached by Tab. */
function roveAmong(elements, event, along = ["ArrowRight", "ArrowDown"], back = ["ArrowLeft", "ArrowUp"]) {
  const at = elements.indexOf(event.currentTarget);
  const to = along.includes(event.key) ? at + 1 : back.includes(event.key) ? at - 1 : event.key === "Home" ? 0 : event.key === "End" ? elements.length - 1 : -2;
  if (to === -2) return;
  event.preventDefault();
  const next = elements[Math.min(Math.max(to, 0), elements.length - 1)];
  elements[at].setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
}

/** Enter and Space press what is no button. */
function pressed(event, action) {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  action();
}
