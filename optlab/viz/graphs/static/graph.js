// A graph of operations with the stages of its backward pass. Texts and positions come from Python;
// this code draws them, and changes the stage and the selected node.

import { classes, fill, make, makeButton, put, showPlaying } from "../../browser/static/elements.js";
import { Widget } from "../../browser/static/widget.js";

const MARGIN = 14;
const SMALLEST = 0.85; // below this scale text would be too small: the graph scrolls instead
const SMALLEST_WHOLE = 0.6; // for a small graph, seeing it as a whole matters more
const FEW = 30;

// The state of a node after a stage, as in Python: optlab.viz.graphs.view.NodeView.state.
function pieceAt(node, stage) {
  let found = null;
  for (const piece of node.pieces) if (piece.stage <= stage) found = piece;
  return found;
}

function stateAt(node, stage) {
  const piece = pieceAt(node, stage);
  if (!piece) return "waiting";
  if (node.turn === stage) return "current";
  if (node.turn !== null && node.turn < stage) return "passed";
  return piece.complete ? "arrived" : "part";
}

class GraphStepper extends Widget {
  constructor(model, element) {
    super(model);
    this.view = model.get("view");
    this.options = model.get("options");
    this.last = this.view.stages.length - 1;
    this.stage = Math.min(model.get("stage"), this.last);
    this.chosen = null;
    this.build(element);
    this.listen();
    this.onModel("change:stage", () => this.go(this.model.get("stage")));
    this.themed();
    this.resize();
    this.update();
  }

  build(element) {
    const { view } = this;
    const button = (text, label, click, kind = "round") => makeButton(text, label, click, { class: kind });
    this.play = button("▶\uFE0E", "play", () => this.toggle(), "round main");
    this.scrub = make("input", { type: "range", min: "0", max: this.last, step: "1", "aria-label": "stage of the backward pass", on: { input: () => this.go(Number(this.scrub.value)) } });
    this.label = make("span", { class: "stage" });
    const transport = make(
      "div", { class: "transport", hidden: this.last < 1 },
      button("❙◀\uFE0E", "before backward", () => this.go(0)),
      button("◀\uFE0E", "one stage back", () => this.go(this.stage - 1), "round small"),
      this.play,
      button("▶\uFE0E", "one stage on", () => this.go(this.stage + 1), "round small"),
      button("▶\uFE0E❙", "the end", () => this.go(this.last)),
      this.scrub, this.label,
    );
    this.svg = make("svg", { role: "img", "aria-label": `${view.title}. ${view.headline}` });
    this.edges = view.edges.map((edge) => this.drawEdge(edge));
    this.nodes = view.nodes.map((node, i) => this.drawNode(node, i));
    this.lines = make("g");
    this.svg.append(this.lines, ...this.nodes);
    this.scroller = make("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": "the graph: left and right arrows step, up and down choose a node" }, this.svg);
    this.panel = make("div", { class: "panel", tabindex: "0", role: "region", "aria-label": "the chosen node" });
    this.hint = make("p", { class: "quiet hint", hidden: true, text: "The graph is larger than its frame: it starts at the end, where backward starts. Scroll inside it, or press the up and down arrow keys, to see the rest." });
    this.live = make("div", { class: "hidden", "aria-live": "polite" });
    const legend = make("div", { class: "legend" }, ...this.options.legend.map(([kind, text]) => make("span", {}, make("i", { class: kind }), text)));
    this.root = make(
      "div", { class: "optlab-graph", role: "group", "aria-label": view.title },
      make("h3", { text: view.title }), make("p", { class: "headline", text: view.headline }),
      make("p", { class: "problem", text: view.problem, hidden: !view.problem }),
      transport, this.hint, make("div", { class: "columns" }, this.scroller, this.panel), legend, this.live,
    );
    this.root.stepper = this;
    this.mount(element, STYLE);
  }

  drawEdge(edge) {
    return make("path", { class: "edge", d: this.curve(edge.points), "data-stage": edge.stage });
  }

  // A smooth curve downward; its vertical pieces beside other nodes stay straight.
  curve(points) {
    const at = ([x, y]) => `${x + MARGIN} ${y + MARGIN}`;
    let d = `M${at(points[0])}`;
    for (let i = 1; i < points.length; i++) {
      const [x, y] = points[i - 1], [u, v] = points[i];
      if (x === u) d += `L${at(points[i])}`;
      else d += `C${at([x, (y + v) / 2])} ${at([u, (y + v) / 2])} ${at([u, v])}`;
    }
    return d;
  }

  drawNode(node, i) {
    const { width } = node, height = this.options.height;
    const x = node.x + MARGIN - width / 2, y = node.y + MARGIN - height / 2;
    const round = { leaf: height / 2, data: 0 }[node.kind] ?? 8;
    const box = (grow, kind) => make("rect", { class: kind, x: x - grow, y: y - grow, width: width + 2 * grow, height: height + 2 * grow, rx: round + (round ? grow : 0) });
    const text = (kind, line, content) => make("text", { class: kind, x: node.x + MARGIN, y: y + line, text: content });
    const group = make("g", { on: { click: () => this.choose(i) } }, make("title", { text: [`${node.title}, ${node.what}`, ...node.facts.map(([label, text]) => `${label}: ${text.replaceAll("\n", "; ")}`)].join("\n") }), box(0, "box"), box(4, "ring"), make("g", { class: "words" }, text("title", 18, fitted(node.title, width - 14, 7.1)), text("line", 33, fitted(node.line, width - 12, 5.8)), text("g", 48, "")));
    return group;
  }

  themed() {
    this.paint(this.options.palette);
  }

  resized(width) {
    this.root.classList.toggle("ol-narrow", width < 780);
    const whole = this.view.width + 2 * MARGIN, tall = this.view.height + 2 * MARGIN;
    const room = this.scroller.clientWidth;
    const few = this.view.nodes.length < FEW;
    const high = parseFloat(getComputedStyle(this.scroller).maxHeight) - 2; // without its border
    const fitting = Math.min(1, room / whole, few && high > 0 ? high / tall : 1);
    this.scale = Math.max(few ? SMALLEST_WHOLE : SMALLEST, fitting);
    this.hint.hidden = whole * this.scale <= room + 1 && !(tall * this.scale > high + 1);
    this.svg.setAttribute("viewBox", `0 0 ${whole} ${tall}`);
    this.svg.setAttribute("width", whole * this.scale);
    this.svg.setAttribute("height", tall * this.scale);
    this.show(this.shown());
  }

  // The node in the panel: the selected one, else the one processed in this stage.
  shown() {
    if (this.chosen !== null) return this.chosen;
    const turn = this.view.current[this.stage];
    return turn.length ? turn[0] : this.view.nodes.length - 1;
  }

  choose(i) {
    this.chosen = i;
    this.update();
  }

  go(stage) {
    const to = Math.max(0, Math.min(this.last, stage));
    if (to === this.stage) return;
    this.stage = to;
    this.chosen = null;
    this.update();
    this.tell("stage", to);
  }

  update() {
    const { view, stage } = this;
    const shown = this.shown();
    view.nodes.forEach((node, i) => {
      const piece = pieceAt(node, stage);
      this.nodes[i].setAttribute("class", classes(`node ${node.kind} ${stateAt(node, stage)}${i === this.chosen ? " chosen" : ""}`));
      put(this.nodes[i].querySelector(".ol-g"), piece ? fitted(piece.short, node.width - 10, 5.9) : "");
      this.nodes[i].querySelector(".ol-words").setAttribute("transform", piece && piece.short ? "" : "translate(0 7)");
    });
    view.edges.forEach((edge, i) => {
      const passed = edge.stage !== null && edge.stage <= stage;
      this.edges[i].setAttribute("class", classes(`edge ${!passed ? "" : edge.stage === stage ? "now" : "passed"}`));
    });
    const late = (edge) => this.view.edges[this.edges.indexOf(edge)].stage ?? Infinity;
    const rank = (edge) => (late(edge) > stage ? -1 : late(edge));
    this.lines.append(...[...this.edges].sort((a, b) => rank(a) - rank(b)));
    this.scrub.value = stage;
    fill(this.scrub);
    this.scrub.setAttribute("aria-valuetext", view.stages[stage]);
    this.label.textContent = "";
    this.label.append(make("span", { class: "quiet", text: `${stage} / ${this.last}` }), view.stages[stage]);
    this.describe(shown);
    this.show(shown);
    const piece = pieceAt(view.nodes[shown], stage);
    put(this.live, `${view.stages[stage]}. ${view.nodes[shown].title}${piece && piece.full ? `: gradient ${piece.full}` : ""}`);
  }

  // Scroll a node into view within the graph, without scrolling the page.
  show(i) {
    if (!this.scale) return;
    const node = this.view.nodes[i], box = this.scroller;
    const x = (node.x + MARGIN) * this.scale, y = (node.y + MARGIN) * this.scale;
    const near = 70 * this.scale;
    if (y - near < box.scrollTop || y + near > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
    if (x - near < box.scrollLeft || x + near > box.scrollLeft + box.clientWidth) box.scrollLeft = x - box.clientWidth / 2;
  }

  describe(i) {
    const { view, stage } = this;
    const node = view.nodes[i];
    const piece = pieceAt(node, stage);
    const parts = [];
    const leaves = view.current[stage].length > 1 || (stage === this.last && this.last > 0);
    if (leaves && this.chosen === null) {
      parts.push(make("h4", { text: "The leaves" }), make("p", { class: "quiet", text: "The backward pass is over. What arrived here is what backward() adds to each leaf's grad." }));
      const all = view.leaves.length ? view.leaves : view.current[stage].map((at) => [view.nodes[at].title, pieceAt(view.nodes[at], stage).full]);
      for (const [title, gradient] of all) parts.push(make("h5", { text: title }), make("div", { class: "numbers", text: gradient }));
    } else {
      parts.push(make("h4", { text: node.title }), make("p", { class: "quiet", text: node.what }));
      if (piece && piece.full) parts.push(make("h5", { text: piece.complete ? "gradient that arrives, g" : "gradient so far (more is to come)" }), make("div", { class: "numbers", text: piece.full }));
      this.describeRules(node, parts);
      const table = make("table", { class: "facts" });
      for (const [label, text] of node.facts) table.append(make("tr", {}, make("th", { scope: "row", text: label }), make("td", { text })));
      if (node.rules.length || piece) parts.push(make("h5", { text: node.kind === "operation" ? "what ran" : "what it is" }));
      parts.push(table);
    }
    this.panel.replaceChildren(...parts);
    this.panel.scrollTop = 0;
  }

  describeRules(node, parts) {
    const reached = node.turn !== null && node.turn <= this.stage;
    for (const rule of node.rules) {
      parts.push(make("h5", {}, reached ? "sends to " : "rule for ", rule.to, make("span", { class: "quiet", text: named(rule, this.view.nodes) })));
      if (rule.code) parts.push(make("pre", { text: rule.code }));
      if (reached) parts.push(make("div", { class: "numbers", text: rule.sent }));
    }
  }

  onKey(event) {
    const { tagName } = event.target;
    if (event.key === " " && tagName !== "BUTTON") this.toggle();
    else if (tagName === "INPUT" || event.target === this.panel) return false;
    else if (event.key === "ArrowRight") this.go(this.stage + 1);
    else if (event.key === "ArrowLeft") this.go(this.stage - 1);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.last);
    else if (event.key === "ArrowUp") this.choose(Math.max(0, this.shown() - 1));
    else if (event.key === "ArrowDown") this.choose(Math.min(this.view.nodes.length - 1, this.shown() + 1));
    else if (event.key === "Escape") this.choose(null);
    else return false;
    return true;
  }

  toggle() {
    if (this.timer) this.pause();
    else {
      if (this.stage >= this.last) this.go(0);
      this.timer = setInterval(() => {
        this.go(this.stage + 1);
        if (this.stage >= this.last) this.pause();
      }, 1100);
      showPlaying(this.play, Boolean(this.timer));
    }
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    showPlaying(this.play, Boolean(this.timer));
  }

  destroy() {
    this.pause();
    super.destroy();
    delete this.root.stepper;
    this.view = null;
  }
}

function named(rule, nodes) {
  const { title } = nodes[rule.target];
  return title === rule.to ? "" : `: ${title}`;
}

// Truncate text to fit; the panel has it in full.
function fitted(text, room, letter) {
  const most = Math.floor(room / letter);
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

/** @param {{model: any, el: HTMLElement}} given */
export function render({ model, el }) {
  const stepper = new GraphStepper(model, el);
  return () => stepper.destroy();
}
