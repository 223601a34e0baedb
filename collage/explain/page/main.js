// The page as a whole: what is selected, the views, searching and the keyboard.

const VIEWS = [
  ["Graph", (panel, report) => report.graph.show(panel)],
  ["Time line", showTimeLine],
  ["Plans", showPlans],
  ["Roofline", showRoofline],
  ["Refused", showRefusals],
];
const MOST_FOUND = 40;

const byId = (id) => document.getElementById(id);

class Report {
  constructor(profile) {
    this.model = buildModel(profile);
    this.selected = undefined;  // a partition
    this.node = undefined;      // one of its nodes
    this.view = 0;
    chooseLooks(this.model.backends);
    this.graph = new GraphView(this);
  }

  show() {
    this.showSummary();
    this.showTabs();
    this.showView();
    showDetails(byId("details"), this);
  }

  selectPartition(id) {
    if (id === undefined || id < 0) return;
    const partition = this.model.partitions[id];
    this.set(id, partition.nodes.length ? mainNode(this.model, partition) : undefined);
  }

  selectNode(node) {
    const id = this.model.ownerOf[node];
    if (id >= 0) this.set(id, node);
  }

  set(partition, node) {
    this.selected = partition;
    this.node = node;
    this.graph.showChanges(new Set());
    this.graph.reach(partition);
    for (const shape of document.querySelectorAll(".step, .dot")) shape.classList.toggle("selected", shape.dataset.partition === String(partition));
    showDetails(byId("details"), this);
  }

  showSummary() {
    const { report } = this.model.profile;
    const chosen = report.end_to_end_ms.chosen;
    const figures = [];
    if (chosen) figures.push([timeText(chosen * 1000), "a run, median of the race"]);
    const others = Object.entries(report.end_to_end_ratio).filter(([name]) => report.end_to_end_title[name].endsWith(" alone")).sort((a, b) => a[1] - b[1]);
    if (others.length) figures.push([`${others[0][1].toFixed(2)} ×`, `the best single backend’s time over it (${others[0][0]})`]);
    const drift = chosen ? `; in the race all took ${report.drift.toFixed(2)} × their prices` : "";
    figures.push([timeText(predictedUs(report)), `predicted${drift}`], [String(report.plan.length), "partitions"]);
    const sure = report.is_estimated ? ["estimates", "prices of a user’s function; nothing was timed"]
      : report.search_complete ? [shareText(report.smallest_difference), `is all a cheaper plan could save, at ${shareText(report.confidence)} confidence`]
      : [shareText(report.open), "is what a cheaper plan might still save: time ended"];
    figures.push(sure);
    byId("summary").replaceChildren(...figures.map(([figure, text]) => html("div", { class: "figure" }, html("b", {}, figure), html("span", {}, text))));
    const words = [countText(report.threads, "thread"), this.model.profile.name, ...report.pins.map((pin) => `--pin ${pin}`), ...report.forbids.map((forbid) => `--forbid ${forbid}`)];
    byId("subtitle").textContent = `${report.model.split("/").pop()} · ${words.filter(Boolean).join(" · ")}`;
  }

  showTabs() {
    const tabs = VIEWS.map(([name], i) => html("button", {
      type: "button", role: "tab", "aria-selected": i === this.view, "aria-controls": "view", tabindex: i === this.view ? 0 : -1, onclick: () => this.choose(i),
      onkeydown: (event) => {
        roveAmong(tabs, event, ["ArrowRight"], ["ArrowLeft"]);
        if (["ArrowRight", "ArrowLeft", "Home", "End"].includes(event.key)) this.choose(tabs.indexOf(document.activeElement));
      },
    }, name));
    byId("tabs").replaceChildren(...tabs);
  }

  choose(view) {
    this.view = view;
    [...byId("tabs").children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === view);
      tab.setAttribute("tabindex", i === view ? 0 : -1);
    });
    this.showView();
  }

  showView() {
    VIEWS[this.view][1](byId("view"), this);
    byId("view").setAttribute("aria-label", VIEWS[this.view][0]);
    if (this.view === 0 && this.selected !== undefined) this.graph.reach(this.selected);
  }
}

class Search {
  constructor(reportOf) {
    this.reportOf = reportOf;
    this.input = byId("search");
    this.list = byId("found");
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => this.keyDown(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.hide(), 150));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || ["INPUT", "SELECT"].includes(document.activeElement?.tagName)) return;
      event.preventDefault();
      this.input.focus();
    });
  }

  find() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const { model } = this.reportOf();
    const fits = (node) => {
      const text = `${nameOfNode(node)} ${node.name} ${node.operator}`.toLowerCase();
      return model.ownerOf[node.id] >= 0 && node.placement && words.every((word) => text.includes(word));
    };
    this.found = words.length ? model.nodes.filter(fits) : [];
    this.at = 0;
    this.list.replaceChildren(...this.found.slice(0, MOST_FOUND).map((node, i) => html("li", {
      role: "option", id: `found${i}`, onmousedown: (event) => {
        event.preventDefault();
        this.take(node);
      },
    }, `${nameOfNode(node)} `, html("small", {}, `${shortOperator(node.operator)}, ${model.partitions[model.ownerOf[node.id]].backend}`))));
    if (words.length && !this.found.length) this.list.append(html("li", {}, "No node is called so."));
    this.list.hidden = !words.length;
    this.input.setAttribute("aria-expanded", !this.list.hidden);
    this.mark();
  }

  mark() {
    [...this.list.children].forEach((item, i) => item.setAttribute("aria-selected", i === this.at && this.found.length > 0));
    this.input.setAttribute("aria-activedescendant", this.found.length ? `found${this.at}` : "");
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  keyDown(event) {
    if (event.key === "Escape") this.hide();
    if (this.list.hidden || !this.found.length) return;
    const last = Math.min(this.found.length, MOST_FOUND) - 1;
    if (event.key === "ArrowDown") this.at = Math.min(this.at + 1, last);
    else if (event.key === "ArrowUp") this.at = Math.max(this.at - 1, 0);
    else if (event.key === "Enter") return this.take(this.found[this.at]);
    else return;
    event.preventDefault();
    this.mark();
  }

  take(node) {
    this.hide();
    this.reportOf().selectNode(node.id);
  }

  hide() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }
}

function start() {
  const data = JSON.parse(byId("data").textContent);
  let report = new Report(data.profiles[0]);
  byId("title").textContent = data.file;
  if (data.profiles.length > 1) {
    const choice = byId("profile");
    data.profiles.forEach((profile, i) => choice.append(html("option", { value: i }, profile.name || `profile ${i + 1}`)));
    choice.addEventListener("change", () => {
      const { view } = report;
      report = new Report(data.profiles[Number(choice.value)]);
      report.view = view;
      report.show();
    });
    byId("profile-label").hidden = false;
  }
  new Search(() => report);
  report.show();
  // When it could be used, for whoever measures that.
  document.body.dataset.ready = Math.round(performance.now());
}

start();
