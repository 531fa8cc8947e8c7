// A memory study, one run at a time. Marks, numbers and texts come from Python; this code draws them and
// changes the selected run.

import { drawMarks } from "../../browser/static/canvas.js";
import { between, clearCanvas, fitCanvas, leaderOf, placeLabel } from "../../browser/static/drawing.js";
import { classes, fill, make, makeButton, put } from "../../browser/static/elements.js";
import { leaderMarks, pixelFrame, recolored, textMark } from "../../browser/static/marks.js";
import { drawPanel, drawSample, frameOf, makeEntry, makeTarget, pixelIn } from "../../browser/static/pictures.js";
import { Widget } from "../../browser/static/widget.js";

/** @typedef {import("../../browser/static/pictures.js").Panel} Panel */
/** @typedef {import("../../browser/static/marks.js").Mark} Mark */
/** @typedef {import("../../browser/static/marks.js").PointsMark} PointsMark */
/** @typedef {{edges: number[], tips: string[][], where: string, shares: [string, string, number, string][]}} Timeline */
/** @typedef {{name: string, said: string, instead: string, texts: string[], point: PointsMark | null, panel: Panel, line: Timeline | null, front: boolean}} Run */

const HEIGHT = 290;
const REACH = 14; // pixels around a run that belong to it
const ALL_NAMED = 900; // pixels of the page below which only the front and the selected run have names
const MOST_COVERED = 20; // the cost of a name that lies on another

class RecomputeExplorer extends Widget {
  /** @param {any} model
   * @param {HTMLElement} element */
  constructor(model, element) {
    super(model);
    this.view = model.get("view");
    this.last = this.view.runs.length - 1;
    this.selected = Math.max(0, Math.min(this.last, model.get("selected")));
    this.build(element);
    this.listen();
    this.onModel("change:selected", () => this.go(this.model.get("selected")));
    this.themed();
    this.resize();
  }

  /** @param {HTMLElement} element */
  build(element) {
    const { view } = this;
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ click) => makeButton(text, label, click, { class: "round small" });
    this.slider = make("input", { type: "range", min: "0", max: this.last, step: "1", "aria-label": "the run that is shown", on: { input: () => this.go(Number(this.slider.value)) } });
    this.label = make("span", { class: "stage" });
    const transport = make("div", { class: "transport" }, button("◀\uFE0E", "the run before", () => this.go(this.selected - 1)), this.slider, button("▶\uFE0E", "the next run", () => this.go(this.selected + 1)), this.label);
    this.said = make("p", { class: "said", "aria-live": "polite" });
    const plot = (/** @type {string} */ label, /** @type {HTMLElement[]} */ ...inside) => make("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${label}: left and right arrows choose a run` }, ...inside);
    this.lines = make("canvas", { role: "img", on: { pointermove: (/** @type {PointerEvent} */ event) => this.hover(event) } });
    this.instead = make("p", { class: "instead" });
    this.timeline = plot("memory of the run over its events", this.lines, this.instead);
    this.ground = make("canvas", { role: "img", "aria-label": "memory against time: theory, and the front of the runs" });
    this.targets = view.runs.map((/** @type {Run} */ run, /** @type {number} */ i) => {
      const target = makeTarget(run.said, () => this.go(i));
      target.title = run.said;
      target.hidden = !run.point;
      return target;
    });
    this.plane = plot("memory against time", this.ground, ...this.targets);
    this.peakTitle = make("h4");
    this.shares = make("table", { class: "shares" });
    this.legend = view.roles.map((/** @type {{text: string}} */ { text }) => makeEntry(text));
    const peak = make("div", { class: "peak" }, this.peakTitle, this.shares);
    this.rows = view.runs.map((/** @type {Run} */ run, /** @type {number} */ i) => make("tr", { on: { click: () => this.go(i) } }, ...run.texts.map((text) => make("td", { text }))));
    const table = make("table", { class: "rows" }, make("thead", {}, make("tr", {}, ...view.heads.map((/** @type {string} */ text) => make("th", { scope: "col", text })))), make("tbody", {}, ...this.rows));
    this.root = make(
      "div", { class: "optlab-recompute", role: "group", "aria-label": view.title },
      make("h3", { text: view.headline }), make("p", { class: "headline", text: view.about }),
      transport, this.said,
      make(
        "div", { class: "columns" },
        make("div", {}, make("h4", {}, "Memory of the run", make("span", { class: "quiet", text: "MiB above the start, over its events; dotted: the plain peak" })), this.timeline, make("div", { class: "legend" }, ...this.legend)),
        make("div", {}, make("h4", {}, "Memory against time", make("span", { class: "quiet", text: "MiB; % beyond the plain time" })), this.plane),
        peak, make("p", { class: "note", text: view.note }),
      ),
      make("details", {}, make("summary", { tabindex: "0", text: "All runs as a table" }), make("div", { class: "wide" }, table)),
    );
    this.root.explorer = this;
    this.mount(element, STYLE);
  }

  themed() {
    const { palette: palettes, made, roles, theory, labels, runs } = this.view;
    this.paint(palettes);
    /** What is drawn, in the colors of the page.
     * @type {{roles: {marks: Mark[]}[], theory: Panel, labels: any[], runs: {panel: Panel, point: PointsMark | null}[]}} */
    this.shown = recolored({ roles, theory, labels, runs: runs.map((/** @type {Run} */ { panel, point }) => ({ panel, point })) }, palettes[made], this.palette);
    this.legend.forEach((/** @type {HTMLElement} */ entry, /** @type {number} */ i) => drawSample(entry, this.shown.roles[i].marks, this.palette, 14));
    if (this.seenWidth) this.update();
  }

  /** @param {number} width */
  resized(width) {
    this.root.classList.toggle("ol-narrow", width < 780);
    this.update();
  }

  /** @param {number} run */
  go(run) {
    const to = Math.max(0, Math.min(this.last, run));
    if (to === this.selected) return;
    this.selected = to;
    this.update();
    this.tell("selected", to);
  }

  /** @param {any} event */
  onKey(event) {
    if (["INPUT", "SUMMARY"].includes(event.target.tagName)) return false;
    if (event.key === "ArrowRight") this.go(this.selected + 1);
    else if (event.key === "ArrowLeft") this.go(this.selected - 1);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.last);
    else return false;
    return true;
  }

  update() {
    const { view, selected } = this;
    /** @type {Run} */
    const run = view.runs[selected];
    this.slider.value = selected;
    fill(this.slider);
    this.slider.setAttribute("aria-valuetext", run.name);
    this.label.replaceChildren(make("span", { class: "quiet", text: `${selected + 1} / ${this.last + 1}` }), make("b", { text: run.name }));
    put(this.said, run.said);
    this.rows.forEach((/** @type {HTMLElement} */ row, /** @type {number} */ i) => row.setAttribute("class", classes(i === selected ? "chosen" : "")));
    this.targets.forEach((/** @type {HTMLElement} */ target, /** @type {number} */ i) => target.setAttribute("aria-pressed", String(i === selected)));
    this.drawTimeline(run);
    this.drawPlane();
    this.tellPeak(run);
  }

  /** An empty canvas as wide as its plot, and the frame of a panel on it.
   * @param {HTMLCanvasElement} canvas
   * @param {Panel} panel */
  begin(canvas, panel) {
    const width = Math.max(220, /** @type {HTMLElement} */ (canvas.parentNode).clientWidth);
    Object.assign(canvas.style, { width: `${width}px`, height: `${HEIGHT}px` });
    const pen = fitCanvas(canvas, width, HEIGHT);
    clearCanvas(pen);
    return { pen, width, frame: frameOf(panel, width, HEIGHT, this.palette) };
  }

  /** @param {Run} run */
  drawTimeline(run) {
    const { panel } = this.shown.runs[this.selected];
    const { pen, frame } = this.begin(this.lines, panel);
    drawPanel(pen, panel, frame, this.palette);
    this.lines.setAttribute("aria-label", run.said);
    this.lines.title = "";
    put(this.instead, run.instead);
  }

  /** Tell of the event under the pointer.
   * @param {PointerEvent} event */
  hover(event) {
    /** @type {Run} */
    const { line, panel } = this.view.runs[this.selected];
    const frame = frameOf(panel, this.lines.clientWidth, HEIGHT, this.palette);
    const at = ((event.offsetX - frame.left) / frame.width) * panel.x.high;
    const i = line ? line.edges.findIndex((edge, k) => at >= edge && at < line.edges[k + 1]) : -1;
    this.lines.title = i < 0 ? "" : line.tips[i].join("\n");
  }

  drawPlane() {
    const { view, selected, shown } = this, { theory } = shown;
    const { pen, width, frame } = this.begin(this.ground, theory);
    const taken = drawPanel(pen, theory, frame, this.palette);
    /** @type {number[][]} */
    const along = [];
    for (const mark of theory.marks) {
      if (mark.kind !== "Line") continue;
      /** @type {(number[] | null)[]} */
      const places = [];
      Array.from(mark.x, (a, k) => {
        const b = mark.y[k], before = places.at(-1), here = a === null || b === null ? null : pixelIn(frame, a, b);
        if (mark.stepped && before && here) places.push([before[0], here[1]]);
        places.push(here);
      });
      along.push(...between(places));
    }
    // The selected run is on top, and named first, where the best place is; then those of the front.
    const rank = (/** @type {number} */ i) => 2 * Number(i === selected) + Number(view.runs[i].front);
    const order = view.runs.map((/** @type {Run} */ _, /** @type {number} */ i) => i).sort((/** @type {number} */ a, /** @type {number} */ b) => rank(a) - rank(b)).filter((/** @type {number} */ i) => shown.runs[i].point);
    const placeOf = (/** @type {number} */ i) => pixelIn(frame, shown.runs[i].point.x[0], shown.runs[i].point.y[0]);
    for (const i of order) {
      const { marker } = shown.runs[i].point, chosen = i === selected, [px, py] = placeOf(i);
      taken.push([px - 8, py - 8, px + 8, py + 8]);
      const look = chosen ? { size: 15, edge: this.palette.ink, edge_width: 1.4 } : { opacity: 0.55 };
      drawMarks(pen, frame, [{ ...shown.runs[i].point, text: "", marker: { ...marker, ...look } }]);
      Object.assign(this.targets[i].style, { left: `${px - REACH}px`, top: `${py - REACH}px`, width: `${2 * REACH}px`, height: `${2 * REACH}px`, zIndex: chosen ? 1 : 0 });
    }
    /** @type {Mark[]} */
    const names = [];
    const name = (/** @type {string} */ text, /** @type {number[]} */ [px, py], /** @type {number} */ distance, /** @type {any} */ look, needed = false) => {
      const before = taken.length, spot = placeLabel(pen, text, px, py, look.size, width, HEIGHT - 22, taken, distance, along);
      if (spot.cost >= MOST_COVERED && !needed) taken.length = before;
      else names.push(...leaderMarks(leaderOf(spot, px, py), look.ink), textMark(spot.cx, spot.cy, text, { halo: true, ...look }));
    };
    for (const i of order.reverse()) {
      const { text, ink } = shown.runs[i].point;
      if (this.seenWidth < ALL_NAMED && !rank(i)) continue;
      name(text, placeOf(i), i === selected ? 13 : 8, i === selected ? { ink: this.palette.ink, size: 12, bold: true } : { ink, size: 11 }, rank(i) > 0);
    }
    for (const { x, y, text, ink, size } of shown.labels) name(text, pixelIn(frame, x, y), 4, { ink, size });
    drawMarks(pen, pixelFrame(width, HEIGHT, this.palette.paper), names);
  }

  /** @param {Run} run */
  tellPeak(run) {
    const { line } = run;
    this.peakTitle.replaceChildren();
    if (line) this.peakTitle.append("At its peak", make("span", { class: "quiet", text: `in ${line.where}: whose arrays are alive that were not at the start` }));
    this.shares.replaceChildren(...(line ? line.shares : []).map(([text, size, part, color]) => make("tr", {}, make("td", { text }), make("td", { text: size }), make("td", {}, make("i", { style: `width: ${(100 * part).toFixed(1)}%; background: ${color || "var(--frame)"}` })))));
  }

  destroy() {
    super.destroy();
    delete this.root.explorer;
    this.view = null;
  }
}

/** @param {{model: any, el: HTMLElement}} given */
export function render({ model, el }) {
  const explorer = new RecomputeExplorer(model, el);
  return () => explorer.destroy();
}
