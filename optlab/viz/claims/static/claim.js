// A claim figure: a sentence, a map, a chart, and a slider through positions that were computed before. Map and
// chart are marks that Python has made (claims/marks.py), with names in place of colors.

import { drawMarks } from "../../browser/static/canvas.js";
import { clearCanvas, fitCanvas, FONTS } from "../../browser/static/drawing.js";
import { fill, make, put } from "../../browser/static/elements.js";
import { listenWeakly, Widget } from "../../browser/static/widget.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */
/** @typedef {import("../../browser/static/marks.js").Frame} Frame */

/** Steps of the slider; it snaps to the positions, which need not be evenly spaced. */
const STEPS = 1000;
const NARROW = 600; // pixels, below which map and chart are one above the other
const FINE = 3; // pixels of a canvas for one of the page, in print
const COLORS = ["color", "face", "edge", "ink"];

/** A mark whose colors are those of the palette.
 * @param {any} part a mark, or a part of one
 * @param {Record<string, string>} palette
 * @returns {any} */
function colored(part, palette) {
  const found = { ...part };
  for (const [name, value] of Object.entries(part)) {
    if (COLORS.includes(name) && typeof value === "string") found[name] = palette[value] ?? value;
    else if (name === "fills") found.fills = value.map((/** @type {any} */ one) => colored(one, palette));
    else if (value && typeof value === "object" && !Array.isArray(value)) found[name] = colored(value, palette);
  }
  return found;
}

class ClaimFigure extends Widget {
  /** @param {any} model
   * @param {HTMLElement} element */
  constructor(model, element) {
    super(model);
    this.claim = model.get("claim");
    this.key = model.get("id");
    /** @type {number} */
    this.at = this.claim.at;
    try {
      const kept = sessionStorage.getItem(this.key);
      if (kept !== null && Number(kept) in this.claim.labels) this.at = Number(kept);
    } catch { /* a page without storage forgets the position */ }
    this.ruler = make("canvas").getContext("2d");
    /** What is on the canvases: marks, and where they lie.
     * @type {Record<string, {frame: Frame, marks: Mark[]}>} */
    this.shown = {};
    /** @type {number | undefined} */
    this.ratio = undefined;
    this.build(element);
    this.listen();
    this.cleanup.push(listenWeakly(window, "beforeprint", this, "printed"), listenWeakly(window, "afterprint", this, "themed"));
    this.themed();
  }

  /** @param {HTMLElement} element */
  build(element) {
    const { claim } = this;
    const sentence = claim.sentence.map((/** @type {[string, number | null]} */ [text, who]) => (who === null ? text : make("span", { style: `color: var(--run${who})`, text })));
    this.title = make("p", { class: "optlab-claim-head" });
    this.map = make("canvas", { class: "optlab-claim-map", role: "img" });
    this.chart = make("canvas", { class: "optlab-claim-chart", role: "img", on: { pointerdown: (/** @type {PointerEvent} */ event) => this.take(event), pointermove: (/** @type {PointerEvent} */ event) => this.drag(event) } });
    this.input = make("input", { type: "range", min: "0", max: STEPS, step: "1", "aria-label": claim.question || claim.measured, on: { input: () => this.go(this.nearest(Number(this.input.value) / STEPS)) } });
    this.stops = make("div", { class: "optlab-claim-stops", "aria-hidden": "true" });
    this.said = make("div", { class: "hidden", "aria-live": "polite" });
    this.root = make(
      "section", { class: "optlab-claim" }, make("p", { class: "optlab-claim-sentence", role: "heading", "aria-level": "3" }, ...sentence),
      make(
        "div", { class: "optlab-claim-body" },
        make("div", {}, this.title, this.map),
        make("div", { class: "optlab-claim-plot" }, make("p", { class: "optlab-claim-head", text: claim.measured }), this.chart),
        make("div", { class: "optlab-claim-asks" }, make("b", { text: `${claim.question || "Another position?"} Drag.` }), make("span", { text: claim.setting })),
        make("div", { class: "optlab-claim-slider" }, this.input, this.stops),
      ),
      this.said, claim.note ? make("p", { class: "optlab-claim-note", text: claim.note }) : null,
    );
    this.root.claim = this;
    this.on(this.root, "keyup", (event) => event.stopPropagation());
    this.mount(element, STYLE);
  }

  /** @param {PointerEvent} event */
  take(event) {
    this.chart.setPointerCapture(event.pointerId);
    this.drag(event);
    event.preventDefault();
    this.input.focus({ preventScroll: true });
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!event.buttons || !this.chart.hasPointerCapture(event.pointerId)) return;
    const { left, width } = this.shown.chart.frame;
    this.go(this.nearest((event.clientX - this.chart.getBoundingClientRect().left - left) / width));
  }

  /** The position nearest to a place along the slider, from 0 to 1.
   * @param {number} part
   * @returns {number} */
  nearest(part) {
    /** @type {number[]} */
    const away = this.claim.places.map((/** @type {number} */ place) => Math.abs(place - part));
    return away.indexOf(Math.min(...away));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const last = this.claim.labels.length - 1;
    /** @type {Record<string, number>} */
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -3, PageUp: 3, Home: -last, End: last };
    if (!(event.key in moves)) return false;
    this.go(Math.min(last, Math.max(0, this.at + moves[event.key])));
    return true;
  }

  /** @param {number} at */
  go(at) {
    const changed = at !== this.at;
    this.at = at;
    this.showPlace();
    if (!changed) return;
    try { sessionStorage.setItem(this.key, String(at)); } catch { /* forgotten */ }
    this.draw();
  }

  /** The thumb is always at a position, wherever a hand has left it. */
  showPlace() {
    this.input.value = String(STEPS * this.claim.places[this.at]);
    fill(this.input);
  }

  themed() {
    this.look("auto");
  }

  /** Paper is light, and finer than a screen. */
  printed() {
    this.look("light", FINE);
  }

  /** @param {string} theme
   * @param {number} [ratio] */
  look(theme, ratio) {
    this.ratio = ratio;
    this.paint(this.claim.palettes, theme);
    this.resize(true);
  }

  /** @param {number} width */
  resized(width) {
    this.root.classList.toggle("ol-narrow", width < NARROW);
    this.draw();
  }

  draw() {
    const { claim, at } = this;
    const said = `${claim.labels[at]}: ${claim.names.map((/** @type {string} */ name, /** @type {number} */ i) => `${name} ${claim.texts[at][i]}`).join(", ")}`;
    this.showPlace();
    this.input.setAttribute("aria-valuetext", said);
    put(this.said, said);
    put(this.title, claim.titles[at]);
    this.map.setAttribute("aria-label", `${claim.titles[at]}: ${claim.names.join(", ")}`);
    this.chart.setAttribute("aria-label", `${claim.measured}, ${said}`);
    if (!this.seenWidth) return; // not on a page, or hidden
    this.drawMap();
    this.drawChart();
  }

  /** @param {Mark[]} marks
   * @returns {Mark[]} */
  inColors(marks) {
    return marks.map((mark) => colored(mark, this.palette));
  }

  /** A canvas that is as wide as its column, and empty.
   * @param {HTMLCanvasElement} canvas
   * @param {number} width
   * @param {number} height
   * @returns {CanvasRenderingContext2D} */
  cleared(canvas, width, height) {
    canvas.style.width = `${width}px`;
    const pen = fitCanvas(canvas, width, height, this.ratio);
    clearCanvas(pen);
    return pen;
  }

  drawMap() {
    const { x, y } = this.claim.axes.map, width = this.map.parentElement.clientWidth;
    const height = Math.round((width * y.low) / x.high);
    const frame = { left: 0, top: 0, width, height, x, y, paper: this.palette.ground };
    const marks = this.inColors(this.claim.maps[this.at]);
    drawMarks(this.cleared(this.map, width, height), frame, marks);
    this.shown.map = { frame, marks };
  }

  drawChart() {
    const { claim, palette } = this, width = this.chart.parentElement.clientWidth, height = claim.height + 2 * claim.edge;
    const left = 16 + Math.max(0, ...claim.chart.map((/** @type {Mark} */ mark) => (mark.kind === "Text" ? this.measured(mark.text) : 0)));
    const right = width - Math.max(14, this.measured(claim.labels[claim.labels.length - 1]) / 2);
    const frame = { left, top: claim.edge, width: right - left, height: claim.height, ...claim.axes.chart, paper: palette.paper };
    const fitting = claim.values.filter((/** @type {any} */ one) => one.width <= frame.width).pop() || claim.values[0];
    const [rule, ...points] = this.inColors(claim.here[this.at]);
    const marks = [...this.inColors(claim.chart), ...points, ...this.inColors(fitting.marks[this.at])];
    const pen = this.cleared(this.chart, width, height);
    drawMarks(pen, { ...frame, top: 0, height }, [rule]); // down to the slider
    drawMarks(pen, frame, marks);
    this.shown.chart = { frame, marks: [rule, ...marks] };
    this.input.style.marginLeft = `${(100 * (left - 12)) / width}%`;
    this.input.style.width = `${(100 * (right - left + 24)) / width}%`;
    this.stops.replaceChildren(...fitting.stops.map((/** @type {number} */ i) => make("span", { text: claim.labels[i], style: `left: ${(100 * (left + frame.width * claim.places[i])) / width}%` })));
  }

  /** The width of a text of ticks.
   * @param {string} text
   * @returns {number} */
  measured(text) {
    this.ruler.font = `13px ${FONTS}`;
    return this.ruler.measureText(text).width;
  }
}

/** @param {{model: any, el: HTMLElement}} given
 * @returns {() => void} */
export function render({ model, el }) {
  const figure = new ClaimFigure(model, el);
  return () => figure.destroy();
}
