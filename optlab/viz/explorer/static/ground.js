// The ground of the map: which part of the plane it shows, and the surface there with its contours; for a
// problem of one variable the curve of the function.

import { contourOf, drawMarks } from "../../browser/static/canvas.js";
import { between, linearTicks } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { boxesMark, lineMark, pixelFrame, pointMark, ruleMark, textMark } from "../../browser/static/marks.js";
import { curveBoxOf } from "./curve.js";
import { fieldMarks, fieldOf, fieldWithin } from "./field.js";
import { Labels } from "./labels.js";
import { numberText, tickTexts } from "./numbers.js";
import { viewBox } from "./view_box.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const GRID = 276;
const FEW_MINIMA = 4; // each of so many has its name
const CELL = 8; // labels see one point of paths in so many pixels
export const FEW = 8; // more paths are drawn as a group, of which the chosen one stands out

/** The coordinates of runs, as marks have them.
 * @type {WeakMap<object, {x: Float64Array, y: Float64Array, steps: Float64Array}>} */
const COORDINATES = new WeakMap();

/** The points of a run and their steps. The path includes the weights before LookAhead pulled them back,
 * half a step before.
 * @param {any} run */
export function coordinatesOf(run) {
  const known = COORDINATES.get(run);
  if (known) return known;
  const { n, path, last } = run, jumps = n === 2 ? run.terms.fast : null;
  const x = new Float64Array(2 * last + 2), y = new Float64Array(2 * last + 2), steps = new Float64Array(2 * last + 2);
  let count = 0;
  const add = (/** @type {number} */ px, /** @type {number} */ py, /** @type {number} */ step) => {
    x[count] = px;
    y[count] = py;
    steps[count++] = step;
  };
  for (let k = 0; k <= last; k++) {
    if (jumps && k > 0 && (jumps[2 * k - 2] !== path[2 * k] || jumps[2 * k - 1] !== path[2 * k + 1])) add(jumps[2 * k - 2], jumps[2 * k - 1], k - 0.5);
    if (n === 1) add(path[k], run.loss[k], k);
    else add(path[2 * k], path[2 * k + 1], k);
  }
  const found = { x: x.subarray(0, count), y: y.subarray(0, count), steps: steps.subarray(0, count) };
  COORDINATES.set(run, found);
  return found;
}

export class MapGround {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.ground = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.base = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.top = make("canvas", { class: "layer", tabindex: "0", role: "application" });
    this.ellipse = make("canvas", { class: "ellipse" });
    this.hoverText = make("div", { class: "hover-text" });
    this.hover = make("div", { class: "hover", hidden: true, "aria-live": "off" }, this.ellipse, this.hoverText);
    this.note = make("div", { class: "map-note" });
    this.element = make("div", { class: "map" }, this.ground, this.base, this.top, this.hover, this.note);
    this.width = this.height = 0;
    /** @type {number[]} */
    this.box = [-1, 1, -1, 1];
    /** The box before it was widened to the map's shape. @type {number[]} */
    this.chosen = this.box;
    this.fitted = "";
    /** @type {any} */
    this.field = null;
    /** @type {{x: number, y: number} | null} */
    this.pointer = null;
    this.drag = "";
    /** What is written on the ground, and over it by elements. @type {any} */
    this.groundLabels = null;
    /** Where paths run, of each that is shown. @type {Map<any, any>} */
    this.outlines = new Map();
    /** @type {Map<number, {x: number, y: number}>} */
    this.fingers = new Map();
    for (const name of ["focus", "blur"]) this.top.addEventListener(name, () => explorer.later("top"));
  }

  get curve() {
    return this.explorer.state.start.length === 1;
  }

  /** The map as marks see it, in coordinates of the plane.
   * @returns {import("../../browser/static/marks.js").Frame} */
  get frame() {
    const [x0, x1, y0, y1] = this.box;
    return { left: 0, top: 0, width: this.width, height: this.height, x: { low: x0, high: x1 }, y: { low: y0, high: y1 }, paper: this.explorer.palette.mapHigh };
  }

  /** The map in pixels: where labels stand. */
  get pixels() {
    return pixelFrame(this.width, this.height, this.explorer.palette.mapHigh);
  }

  /** @param {number} value */
  x(value) {
    return ((value - this.box[0]) / (this.box[1] - this.box[0])) * this.width;
  }

  /** @param {number} value */
  y(value) {
    return this.height - ((value - this.box[2]) / (this.box[3] - this.box[2])) * this.height;
  }

  /** The point of the plane at a pixel.
   * @param {number} px
   * @param {number} py */
  pointAt(px, py) {
    const [x0, x1, y0, y1] = this.box;
    return [x0 + (px / this.width) * (x1 - x0), y0 + (1 - py / this.height) * (y1 - y0)];
  }

  /** A point that is very far away keeps its direction.
   * @param {number[]} pixel
   * @returns {number[] | null} */
  far([px, py]) {
    if (Number.isNaN(px) || Number.isNaN(py)) return null;
    const dx = px - this.width / 2, dy = py - this.height / 2;
    const size = Math.max(Math.abs(dx), Math.abs(dy));
    if (size < 1e5) return [px, py];
    const scale = Number.isFinite(size) ? 1e5 / size : 0;
    return [this.width / 2 + dx * scale, this.height / 2 + dy * scale];
  }

  /** @param {number[]} pixel */
  inside([px, py]) {
    return px >= 0 && py >= 0 && px <= this.width && py <= this.height;
  }

  /** The pixel of a row of a run: `path`, or the rows of a slot.
   * @param {any} run
   * @param {Float64Array} rows
   * @param {number} k */
  place(run, rows, k) {
    if (!rows) return null;
    if (run.n === 1) return rows === run.path ? this.far([this.x(rows[k]), this.y(run.loss[k])]) : null;
    return this.far([this.x(rows[2 * k]), this.y(rows[2 * k + 1])]);
  }

  /** @param {number} width
   * @param {number} height */
  resize(width, height) {
    if (width === this.width && height === this.height) return;
    const before = this.width;
    this.width = width;
    this.height = height;
    this.element.style.height = `${height}px`;
    // From what was chosen: from the last box, every change of size would show more.
    if (before) this.box = this.withAspect(this.chosen);
    this.field = null;
  }

  /** A box with true angles around this one; that of a curve stays.
   * @param {number[]} box */
  withAspect([x0, x1, y0, y1]) {
    if (this.curve) return [x0, x1, y0, y1];
    const unit = Math.max((x1 - x0) / this.width, (y1 - y0) / this.height);
    const cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
    const w = (unit * this.width) / 2, h = (unit * this.height) / 2;
    return [cx - w, cx + w, cy - h, cy + h];
  }

  /** The box that shows start, minima and paths. */
  fittingBox() {
    const { state, engine, shown } = this.explorer;
    const surface = engine.surface(state.problem);
    if (this.curve) return this.curveBox(surface);
    const paths = shown.filter((/** @type {any} */ { run }) => run && run.path).map((/** @type {any} */ { run }) => coordinatesOf(run));
    const [x0, x1, y0, y1] = viewBox([state.start, ...surface.minima], paths, surface.domain);
    // Above there is room for the name of the function, which must not hide the start.
    const name = (46 * state.text_size * Math.max(y1 - y0, (x1 - x0) * (this.height / this.width))) / this.height;
    return this.withAspect([x0, x1, y0, y1 + name]);
  }

  /** @param {any} surface */
  curveBox(surface) {
    const { state, shown } = this.explorer;
    const paths = shown.flatMap((/** @type {any} */ { run }) => (run && run.path && run.n === 1 ? [{ x: run.path, loss: run.loss, count: run.last + 1 }] : []));
    return curveBoxOf(surface.view, surface.domain[0], state.start[0], this.lossAt(state.start), paths);
  }

  /** @param {number} low
   * @param {number} high
   * @param {number} count */
  curvePoints(low, high, count) {
    const { state, engine } = this.explorer;
    const evaluate = engine.evaluator(state.problem);
    if (!evaluate) {
      const sent = engine.surface(state.problem).curve || [];
      return sent.map((/** @type {number[]} */ [x, y]) => [x, y ?? NaN]);
    }
    return Array.from({ length: count }, (_, i) => {
      const x = low + ((high - low) * i) / (count - 1);
      return [x, evaluate([x])[0]];
    });
  }

  /** The places of a run in pixels, where a label or a dot may stand, and its coordinates.
   * @param {any} run */
  outline(run) {
    const found = coordinatesOf(run);
    const places = Array.from(found.x, (x, i) => this.far([this.x(x), this.y(found.y[i])]));
    return { ...found, places };
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawSurface(pen) {
    const { explorer, width, height } = this;
    const { state, engine, palette } = explorer;
    const surface = engine.surface(state.problem);
    const evaluate = engine.evaluator(state.problem);
    const columns = Math.min(GRID, Math.round(width / 2)), rows = Math.max(2, Math.round((columns * height) / width));
    if (evaluate) this.field = fieldOf(evaluate, this.box, columns, rows, surface.minimum);
    else if (explorer.heights) this.field = fieldWithin(explorer.heights, this.box, columns, rows, surface.minimum);
    else this.field = { none: true, levels: [], values: [] };
    const marks = this.undefinedMarks();
    if (!this.field.none) marks.push(...fieldMarks(this.field, palette), ...explorer.beside.groundMarks());
    drawMarks(pen, this.frame, marks);
    this.freshLabels(pen);
    if (this.field.none || explorer.view === "apart") return; // there the arrows are labeled
    const numbers = this.axisMarks();
    drawMarks(pen, this.pixels, [...this.levelLabels(), ...numbers]);
  }

  /** Begin with the labels of the ground: what elements say over it keeps its place.
   * @param {CanvasRenderingContext2D} pen that measures */
  freshLabels(pen) {
    this.groundLabels = new Labels(pen, this.width, this.height);
    this.groundLabels.leader = this.explorer.palette.quiet;
    for (const element of [this.explorer.problem, this.note]) this.groundLabels.keepElement(element);
  }

  /** Hatch the whole ground; what is defined is drawn over it.
   * @returns {Mark[]} */
  undefinedMarks() {
    const { palette } = this.explorer;
    const blank = this.field.none || this.field.values.some(Number.isNaN);
    this.note.textContent = !blank || this.field.none ? "" : "hatched: not defined, or not known here";
    const [x0, x1, y0, y1] = this.box;
    return blank ? [boxesMark([x0], [y0], [x1], [y1], { color: palette.paper, pattern: "/", ink: palette.rule })] : [];
  }

  /** Labels over others, which keep off the paths.
   * @param {Labels} below
   * @param {CanvasRenderingContext2D} pen that measures */
  labelsOver(below, pen) {
    const labels = new Labels(pen, this.width, this.height, below);
    labels.keepOff(this.sparse(this.explorer.shown.slice(0, FEW)));
    return labels;
  }

  /** Points along paths, one in a few pixels where they lie over each other: labels are placed anew at every frame.
   * @param {any[]} shown
   * @returns {number[][]} */
  sparse(shown) {
    /** @type {Map<number, number[]>} */
    const cells = new Map();
    for (const one of shown) {
      for (const place of between(this.outlines.get(one)?.places || [])) {
        if (this.inside(place)) cells.set(Math.round(place[0] / CELL) * 4096 + Math.round(place[1] / CELL), place);
      }
    }
    return [...cells.values()];
  }

  /** The minima and other places that have a name; those of a few minima stand beside them.
   * @param {Labels} labels
   * @returns {Mark[]} in pixels */
  minimaMarks(labels) {
    const { engine, state, view, palette, options } = this.explorer;
    if (view === "apart") return [];
    const surface = engine.surface(state.problem), minima = this.curve ? surface.view.marked : surface.minima;
    /** @type {number[][]} */
    const places = minima.map((/** @type {number[]} */ point) => [this.x(point[0]), this.y(point[1])]).filter((/** @type {number[]} */ place) => this.inside(place));
    for (const [x, y] of places) labels.keepFree(x, y, 10);
    const marks = places.map(([x, y]) => pointMark(x, y, "star", 17, palette.ink, palette.paper, 1.2));
    if (this.curve) return marks;
    /** @type {[string, number[]][]} */
    const named = (options.places[state.problem] || []).map((/** @type {[string, number, number]} */ [text, x, y]) => [text, [this.x(x), this.y(y)]]).filter((/** @type {[string, number[]]} */ [, place]) => this.inside(place));
    for (const [, [x, y]] of named) {
      labels.keepFree(x, y, 8);
      marks.push(pointMark(x, y, "x", 11, palette.ink, palette.paper, 1));
    }
    if (minima.length <= FEW_MINIMA) named.push(...places.map((place) => /** @type {[string, number[]]} */ (["minimum", place])));
    return [...marks, ...named.flatMap(([text, place]) => labels.beside(text, [place], { ink: palette.ink, size: 14 * state.text_size }, { distance: 13, most: 90 }))];
  }

  /** The name of the start, which at first says what one may do.
   * @param {Labels} labels
   * @returns {Mark[]} in pixels */
  startLabel(labels) {
    const { palette, state, hint } = this.explorer;
    const [x, y] = this.startPlace();
    labels.keepFree(x, y, 12);
    const look = { ink: palette.ink, size: (hint ? 15 : 14.25) * state.text_size, bold: hint };
    const said = hint ? ["start: press play, or drag me", "start: press play"].find((text) => labels.wide(text, look) < this.width - 24) : "";
    return labels.beside(said || "start", [[x, y]], look, { distance: 13 });
  }

  /** @param {number[]} point */
  lossAt(point) {
    const evaluate = this.explorer.engine.evaluator(this.explorer.state.problem);
    if (evaluate) return evaluate(point)[0];
    const near = this.curvePoints(0, 0, 0).reduce((/** @type {any} */ best, /** @type {number[]} */ one) => (!best || Math.abs(one[0] - point[0]) < Math.abs(best[0] - point[0]) ? one : best), null);
    return near ? near[1] : NaN;
  }

  startPlace() {
    const { state } = this.explorer;
    return this.curve ? [this.x(state.start[0]), this.y(this.lossAt(state.start))] : [this.x(state.start[0]), this.y(state.start[1])];
  }

  /** One label a bold line, where it is far from paths, borders and other labels.
   * @returns {Mark[]} */
  levelLabels() {
    const { palette, state, shown } = this.explorer;
    const labels = this.groundLabels;
    const size = 13 * state.text_size;
    /** @type {number[][]} */
    const busy = [];
    for (const { run } of shown) {
      if (!run || !run.path) continue;
      busy.push(...between(this.outline(run).places, 24, 12).filter((place) => this.inside(place)));
    }
    // What is written later on other canvases keeps its place.
    const later = this.labelsOver(labels, labels.pen);
    this.minimaMarks(later);
    this.startLabel(later);
    let named = false;
    /** @type {Mark[]} */
    const marks = [];
    const { values, columns, rows } = this.field;
    const lines = this.field.levels.map((/** @type {any} */ level) => ({ level, pieces: contourOf(values, columns, rows, level.loss) }));
    const bold = lines.filter((/** @type {any} */ { level, pieces }) => level.bold && pieces.length > 80).slice(-4);
    for (const { level, pieces } of bold.reverse()) {
      const text = (named ? "" : "loss ") + numberText(level.loss);
      /** @type {any} */
      let best = null;
      const look = { ink: palette.quiet, size, ground: 0.85 }, half = labels.wide(text, look) / 2 + 6;
      const stride = 4 * Math.max(1, Math.round(pieces.length / 4 / 60));
      for (let i = 0; i < pieces.length; i += stride) {
        const x = pieces[i] * this.width, y = (1 - pieces[i + 1]) * this.height;
        const edge = Math.min(x - 4 * size, this.width - x - 4 * size, y - 2.5 * size, this.height - y - 2.5 * size);
        if (edge < 0) continue;
        const room = later.room([x - half, y - 0.75 * size, x + half, y + 0.75 * size]);
        if (!(room > 4)) continue;
        let near = Math.min(edge + 40, 16 + room, 160);
        for (const [bx, by] of busy) near = Math.min(near, Math.hypot((x - bx) * 0.7, y - by));
        if (!best || near > best.near) best = { near, x, y };
      }
      if (!best || best.near < 16) continue;
      marks.push(textMark(best.x, best.y, text, look));
      for (const each of [labels, later]) each.keepFree(best.x, best.y, half, 0.75 * size);
      busy.push([best.x, best.y]);
      named = true;
    }
    return marks;
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawCurve(pen) {
    const { palette } = this.explorer;
    this.field = { none: false, levels: [], values: [] };
    const [x0, x1, y0, y1] = this.box;
    const points = this.curvePoints(x0, x1, 500);
    /** @type {Mark[]} */
    const marks = [boxesMark([x0], [y0], [x1], [y1], { color: palette.mapHigh })];
    for (const tick of linearTicks(y0, y1, 6)) marks.push(ruleMark("y", tick, tick === 0 ? palette.frame : palette.rule));
    /** @type {number[]} */
    const blank = points.filter((/** @type {number[]} */ [, y]) => Number.isNaN(y)).map((/** @type {number[]} */ [x]) => x);
    this.note.textContent = blank.length ? "hatched: not defined" : "";
    const half = (x1 - x0) / points.length / 2 + (0.5 * (x1 - x0)) / this.width;
    if (blank.length) marks.push(boxesMark(blank.map((x) => x - half), blank.map(() => y0), blank.map((x) => x + half), blank.map(() => y1), { color: "none", pattern: "/", ink: palette.frame }));
    marks.push(lineMark(Float64Array.from(points, ([x]) => x), Float64Array.from(points, ([, y]) => y), { color: palette.contour, width: 2.5 }));
    drawMarks(pen, this.frame, marks);
    this.freshLabels(pen);
    this.groundLabels.keepOff(between(points.map((/** @type {number[]} */ [x, y]) => this.far([this.x(x), this.y(y)])), 12));
    drawMarks(pen, this.pixels, this.axisMarks());
  }

  /** The numbers of the axes, inside the map. The last of each has the name of its axis.
   * @returns {Mark[]} */
  axisMarks() {
    const { palette, state } = this.explorer;
    const labels = this.groundLabels;
    const size = 13 * state.text_size;
    const style = { ink: palette.quiet, halo: true, size };
    /** @type {Mark[]} */
    const marks = [];
    const { width, height } = this;
    let name = "x = ";
    const across = linearTicks(this.box[0], this.box[1], width / 120).reverse(), acrossTexts = tickTexts(across);
    for (const [i, tick] of across.entries()) {
      const px = this.x(tick);
      if (px < 12 || px > width - 24) continue;
      const edge = name && px > width - 3.2 * size; // the name of the axis stays inside
      const found = labels.offer(textMark(edge ? width - 5 : px, height - size * 0.8, name + acrossTexts[i], { ...style, across: edge ? "right" : "center" }));
      if (found.length) name = "";
      marks.push(...found);
    }
    name = this.curve ? "loss " : "y = ";
    const up = linearTicks(this.box[2], this.box[3], height / 90).reverse(), upTexts = tickTexts(up);
    for (const [i, tick] of up.entries()) {
      const py = this.y(tick);
      if (py < 1.2 * size || py > height - 1.8 * size) continue;
      // Where the curve of a function runs through a number, it stands at the other side.
      const found = labels.offer(...["right", "left"].slice(0, this.curve ? 2 : 1).map((across) => textMark(across === "left" ? 6 : width - 6, py, name + upTexts[i], { ...style, across })));
      if (found.length) name = "";
      marks.push(...found);
    }
    return marks;
  }
}
