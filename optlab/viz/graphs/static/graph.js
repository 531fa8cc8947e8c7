// A graph of operations with the stages of its backward pass. Texts, positions and marks come from Python;
// this code draws those of a stage, and changes the stage and the selected node.

import { drawMarks } from "../../browser/static/canvas.js";
import { clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { classes, fill, make, makeButton, put, showPlaying } from "../../browser/static/elements.js";
import { recolored } from "../../browser/static/marks.js";
import { drawSample, makeEntry, makeTarget } from "../../browser/static/pictures.js";
import { Widget } from "../../browser/static/widget.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */
/** @typedef {{stage: number, short: string, full: string, complete: boolean}} Piece */
/** @typedef {{to: string, target: number, code: string, sent: string}} RuleView */
/** @typedef {{kind: string, title: string, line: string, what: string, facts: [string, string][], rules: RuleView[], turn: number | null, pieces: Piece[], width: number, x: number, y: number}} NodeView */

const MARGIN = 14;
const SMALLEST = 0.9; // below this scale text would be too small: the graph scrolls instead
const FEW = 30;
const ONE_COLUMN = 960; // pixels of the page below which the panel is under the graph

/** The gradient at a node after a stage: the last of its pieces until then.
 * @param {NodeView} node
 * @param {number} stage */
const pieceAt = (node, stage) => node.pieces.filter((piece) => piece.stage <= stage).at(-1) || null;

class GraphStepper extends Widget {
  /** @param {any} model
   * @param {HTMLElement} element */
  constructor(model, element) {
    super(model);
    this.view = model.get("view");
    this.options = model.get("options");
    this.last = this.view.stages.length - 1;
    this.stage = Math.min(model.get("stage"), this.last);
    /** @type {number | null} */
    this.chosen = null;
    this.scale = 0;
    /** What the canvas covers of the graph: a part of a large one.
     * @type {{left: number, top: number, width: number, height: number} | null} */
    this.covered = null;
    this.timer = 0;
    this.build(element);
    this.listen();
    this.onModel("change:stage", () => this.go(this.model.get("stage")));
    this.on(this.scroller, "scroll", () => this.cover());
    this.themed();
    this.resize();
    this.update();
  }

  /** @param {HTMLElement} element */
  build(element) {
    const { view } = this;
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ click, kind = "round") => makeButton(text, label, click, { class: kind });
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
    this.canvas = make("canvas", { role: "img", "aria-label": `${view.title}. ${view.headline}` });
    this.nodes = view.nodes.map((/** @type {NodeView} */ node, /** @type {number} */ i) => {
      const target = makeTarget(`${node.title}, ${node.what}`, () => this.choose(i));
      target.title = [`${node.title}, ${node.what}`, ...node.facts.map(([label, text]) => `${label}: ${text.replaceAll("\n", "; ")}`)].join("\n");
      return target;
    });
    this.sheet = make("div", { class: "sheet" }, this.canvas, ...this.nodes);
    this.scroller = make("div", { class: "scroller", tabindex: "0", role: "group", "aria-label": "the graph: left and right arrows step, up and down choose a node" }, this.sheet);
    this.panel = make("div", { class: "panel", tabindex: "0", role: "region", "aria-label": "the chosen node" });
    this.hint = make("p", { class: "quiet hint", hidden: true });
    this.live = make("div", { class: "hidden", "aria-live": "polite" });
    this.legend = this.options.legend.map((/** @type {{text: string}} */ { text }) => makeEntry(text));
    this.root = make(
      "div", { class: "optlab-graph", role: "group", "aria-label": view.title },
      make("h3", { text: view.title }), make("p", { class: "headline", text: view.headline }),
      make("p", { class: "problem", text: view.problem, hidden: !view.problem }),
      transport, this.hint, make("div", { class: "columns" }, this.scroller, this.panel), make("div", { class: "legend" }, ...this.legend), this.live,
    );
    this.root.stepper = this;
    this.mount(element, STYLE);
  }

  themed() {
    const { palette: palettes, made, drawing, legend } = this.options;
    this.paint(palettes);
    const inTheme = (/** @type {any} */ given) => recolored(given, palettes[made], this.palette);
    this.things = inTheme(drawing.things);
    for (const { marks } of this.things.flat()) {
      for (const mark of marks) if (mark.kind !== "Text") [mark.x, mark.y] = [drawing.places[mark.x], drawing.places[mark.y]];
    }
    this.legend.forEach((/** @type {HTMLElement} */ entry, /** @type {number} */ i) => drawSample(entry, inTheme(legend[i].marks), this.palette, 26));
    this.draw();
  }

  /** @param {number} width */
  resized(width) {
    this.root.classList.toggle("ol-narrow", width < ONE_COLUMN);
    const whole = this.view.width + 2 * MARGIN, tall = this.view.height + 2 * MARGIN;
    const room = this.scroller.clientWidth;
    const few = this.view.nodes.length < FEW;
    const high = parseFloat(getComputedStyle(this.scroller).maxHeight) - 2; // without its border
    const fitting = Math.min(1, room / whole, few && high > 0 ? high / tall : 1);
    this.scale = Math.max(SMALLEST, fitting);
    const wider = whole * this.scale > room + 1, higher = tall * this.scale > high + 1;
    this.hint.hidden = !wider && !higher;
    if (higher) put(this.hint, `The graph is larger than its frame: it starts at the end, where backward starts. Scroll inside it${wider ? ", down and sideways," : ""} or press the up and down arrow keys to see the rest.`);
    else if (wider) put(this.hint, "The graph is wider than its frame. Scroll it sideways to see the rest.");
    Object.assign(this.sheet.style, { width: `${whole * this.scale}px`, height: `${tall * this.scale}px` });
    this.view.nodes.forEach((/** @type {NodeView} */ node, /** @type {number} */ i) => {
      const { height } = this.options, { scale } = this;
      Object.assign(this.nodes[i].style, {
        left: `${(node.x + MARGIN - node.width / 2) * scale}px`, top: `${(node.y + MARGIN - height / 2) * scale}px`,
        width: `${node.width * scale}px`, height: `${height * scale}px`, borderRadius: node.kind === "leaf" ? `${height}px` : "",
      });
    });
    this.covered = null;
    this.show(this.shown());
    this.cover();
  }

  /** Let the canvas cover what is in view and half as much around it, where it does not yet. */
  cover() {
    const { scroller, sheet, covered } = this;
    const { scrollLeft: left, scrollTop: top, clientWidth: across, clientHeight: down } = scroller;
    const width = sheet.offsetWidth, height = sheet.offsetHeight;
    if (covered && covered.left <= left && covered.top <= top && covered.left + covered.width >= Math.min(width, left + across) && covered.top + covered.height >= Math.min(height, top + down)) return;
    const part = { left: Math.max(0, left - across / 2), top: Math.max(0, top - down / 2), width: 0, height: 0 };
    part.width = Math.min(width, left + 1.5 * across) - part.left;
    part.height = Math.min(height, top + 1.5 * down) - part.top;
    this.covered = part;
    Object.assign(this.canvas.style, { left: `${part.left}px`, top: `${part.top}px`, width: `${part.width}px`, height: `${part.height}px` });
    this.draw();
  }

  draw() {
    const { covered, scale, stage } = this;
    if (!covered) return;
    const pen = fitCanvas(this.canvas, covered.width, covered.height);
    clearCanvas(pen);
    pen.scale(scale, scale);
    const [left, top, width, height] = [covered.left, covered.top, covered.width, covered.height].map((length) => length / scale);
    drawMarks(pen, {
      left: 0, top: 0, width, height, paper: this.palette.paper,
      x: { low: left - MARGIN, high: left + width - MARGIN }, y: { low: top + height - MARGIN, high: top - MARGIN },
    }, this.things.flatMap((/** @type {{since: number, marks: Mark[]}[]} */ versions) => versions.filter(({ since }) => since <= stage).at(-1).marks));
  }

  /** The node in the panel: the selected one, else the one processed in this stage. */
  shown() {
    if (this.chosen !== null) return this.chosen;
    const turn = this.view.current[this.stage];
    return turn.length ? turn[0] : this.view.nodes.length - 1;
  }

  /** @param {number | null} i */
  choose(i) {
    this.chosen = i;
    this.update();
  }

  /** @param {number} stage */
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
    this.nodes.forEach((/** @type {HTMLElement} */ target, /** @type {number} */ i) => {
      target.setAttribute("aria-pressed", String(i === this.chosen));
      target.setAttribute("class", classes(`target${i === this.chosen ? " chosen" : ""}`));
      if (view.current[stage].includes(i)) target.setAttribute("aria-current", "step");
      else target.removeAttribute("aria-current");
    });
    this.draw();
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

  /** Scroll a node into view within the graph, without scrolling the page.
   * @param {number} i */
  show(i) {
    if (!this.scale) return;
    const node = this.view.nodes[i], box = this.scroller;
    const x = (node.x + MARGIN) * this.scale, y = (node.y + MARGIN) * this.scale;
    const near = 70 * this.scale;
    if (y - near < box.scrollTop || y + near > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
    if (x - near < box.scrollLeft || x + near > box.scrollLeft + box.clientWidth) box.scrollLeft = x - box.clientWidth / 2;
  }

  /** @param {number} i */
  describe(i) {
    const { view, stage } = this;
    const node = view.nodes[i];
    const piece = pieceAt(node, stage);
    /** @type {HTMLElement[]} */
    const parts = [];
    const leaves = view.current[stage].length > 1 || (stage === this.last && this.last > 0);
    if (leaves && this.chosen === null) {
      parts.push(make("h4", { text: "The leaves" }), make("p", { class: "quiet", text: "The backward pass is over. What arrived here is what backward() adds to each leaf's grad." }));
      const all = view.leaves.length ? view.leaves : view.current[stage].map((/** @type {number} */ at) => [view.nodes[at].title, pieceAt(view.nodes[at], stage).full]);
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

  /** @param {NodeView} node
   * @param {HTMLElement[]} parts */
  describeRules(node, parts) {
    const reached = node.turn !== null && node.turn <= this.stage;
    for (const rule of node.rules) {
      parts.push(make("h5", {}, reached ? "sends to " : "rule for ", rule.to, make("span", { class: "quiet", text: named(rule, this.view.nodes) })));
      if (rule.code) parts.push(make("pre", { text: rule.code }));
      if (reached) parts.push(make("div", { class: "numbers", text: rule.sent }));
    }
  }

  /** @param {any} event */
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

/** @param {RuleView} rule
 * @param {NodeView[]} nodes */
function named(rule, nodes) {
  const { title } = nodes[rule.target];
  return title === rule.to ? "" : `: ${title}`;
}

/** @param {{model: any, el: HTMLElement}} given */
export function render({ model, el }) {
  const stepper = new GraphStepper(model, el);
  return () => stepper.destroy();
}
