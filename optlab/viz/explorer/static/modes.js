// A quadratic, direction by direction: by which factor each eigen-direction shrinks a step at every
// rate, and the closed form of the path as a check of the computed one.

import { drawMarks } from "../../browser/static/canvas.js";
import { between, clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { make, makeButton } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, pointMark, ruleMark, textMark } from "../../browser/static/marks.js";
import { Labels } from "./labels.js";
import { numberText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const VALLEY = "valley", FORMULA = "x**2 + 10*y**2"; // a quadratic, and another where the page has not that

/** A quadratic: its curvatures, the larger first, their directions, its minimum and the loss there.
 * @typedef {{curvatures: number[], axes: number[][], minimum: number[], floor: number}} Quadratic */

/** The quadratic that a function is, or null. Slopes of a quadratic are straight: their differences
 * over a large distance are exact.
 * @param {(point: ArrayLike<number>) => number[]} evaluate
 * @param {number[]} start
 * @param {number[][]} domain
 * @returns {Quadratic | null} */
export function quadraticOf(evaluate, start, domain) {
  const hessianAt = (/** @type {number[]} */ point) => point.map((_, i) => {
    const ends = [1, -1].map((sign) => evaluate(point.map((x, k) => (k === i ? x + 0.5 * sign : x))).slice(1));
    return ends[0].map((x, k) => x - ends[1][k]);
  });
  const points = [start, ...[0.27, 0.81].map((share) => domain.map(([low, high], i) => low + (i ? 1 - share * 0.9 : share) * (high - low)))];
  const [first, ...others] = points.map(hessianAt);
  const size = Math.max(...first.flat().map(Math.abs));
  if (!(size > 0) || !Number.isFinite(size)) return null;
  for (const other of others) if (other.flat().some((x, i) => !(Math.abs(x - first.flat()[i]) <= 1e-9 * size))) return null;
  const slopes = evaluate(start).slice(1);
  if (start.length === 1) {
    const minimum = [start[0] - slopes[0] / first[0][0]];
    return { curvatures: [first[0][0]], axes: [[1]], minimum, floor: evaluate(minimum)[0] };
  }
  const [[a, b], [, d]] = first;
  const middle = (a + d) / 2, spread = Math.hypot((a - d) / 2, b), angle = 0.5 * Math.atan2(2 * b, a - d);
  const curvatures = [middle + spread, middle - spread];
  if (!(Math.abs(curvatures[1]) > 1e-12 * size) || !(Math.abs(curvatures[0]) > 1e-12 * size)) return null; // no single stationary point
  const axes = [[Math.cos(angle), Math.sin(angle)], [-Math.sin(angle), Math.cos(angle)]];
  const minimum = start.map((x, c) => x - axes.reduce((sum, axis, i) => sum + (axis[c] * (axis[0] * slopes[0] + axis[1] * slopes[1])) / curvatures[i], 0));
  return { curvatures, axes, minimum, floor: evaluate(minimum)[0] };
}

/** The momentum of an optimizer whose closed form is known, or null: gradient descent and momentum.
 * @param {any} entry
 * @returns {{mu: number, nesterov: boolean, scale: number} | null} */
export function momentumOf(entry) {
  if (!["SGD", "Momentum"].includes(entry.kind) || (entry.around || {}).kind) return null;
  return { mu: entry.settings.momentum ?? 0, nesterov: Boolean(entry.settings.use_nesterov), scale: entry.settings.rescale_grad ?? 1 };
}

/** The sum and the product of the two factors of a direction, and the first value of a distance 1.
 * @param {number} curvature
 * @param {number} rate
 * @param {{mu: number, nesterov: boolean}} momentum */
function recurrence(curvature, rate, { mu, nesterov }) {
  const shrink = 1 - rate * curvature;
  return { trace: nesterov ? (1 + mu) * shrink : 1 + mu - rate * curvature, product: nesterov ? mu * shrink : mu, first: nesterov ? shrink - mu * rate * curvature : shrink };
}

/** The factor by which a direction shrinks (or grows) a step in the long run, and how.
 * @param {number} curvature
 * @param {number} rate
 * @param {{mu: number, nesterov: boolean}} momentum
 * @returns {{factor: number, kind: string}} */
export function contraction(curvature, rate, momentum) {
  const { trace, product } = recurrence(curvature, rate, momentum);
  const inside = trace * trace - 4 * product;
  const factor = inside < 0 ? Math.sqrt(product) : (Math.abs(trace) + Math.sqrt(inside)) / 2;
  if (factor > 1 + 1e-12) return { factor, kind: "diverges" };
  if (factor > 1 - 1e-12) return { factor, kind: "stays" };
  return { factor, kind: inside < -1e-12 ? "swings" : trace < 0 ? "changes sides" : "shrinks" };
}

/** The path from its closed form: along each axis a sum of two geometric series.
 * @param {Quadratic} quadratic
 * @param {number[]} start
 * @param {number} rate
 * @param {{mu: number, nesterov: boolean}} momentum
 * @param {number} steps
 * @returns {Float64Array} */
export function closedPath({ curvatures, axes, minimum }, start, rate, momentum, steps) {
  const n = start.length, path = new Float64Array((steps + 1) * n);
  for (let k = 0; k <= steps; k++) path.set(minimum, k * n);
  curvatures.forEach((curvature, i) => {
    const distance = axes[i].reduce((sum, x, c) => sum + x * (start[c] - minimum[c]), 0);
    const { trace, product, first } = recurrence(curvature, rate, momentum);
    const half = trace / 2, inside = half * half - product;
    const root = Math.sqrt(Math.abs(inside));
    for (let k = 0; k <= steps; k++) {
      let mode;
      if (!product) mode = k ? first * trace ** (k - 1) : 1;
      else if (inside < -1e-14) {
        const radius = Math.sqrt(product), turn = Math.atan2(root, half);
        mode = radius ** k * (Math.cos(k * turn) + ((first - half) / root) * Math.sin(k * turn));
      } else if (inside <= 1e-14) mode = half ? half ** k * (1 + (first / half - 1) * k) : k ? 0 : 1;
      else {
        const s = half >= 0 ? half + root : half - root, t = product / s;
        const b = (first - s) / (t - s);
        mode = (1 - b) * s ** k + b * t ** k;
      }
      for (let c = 0; c < n; c++) path[k * n + c] += distance * mode * axes[i][c];
    }
  });
  return path;
}

export class ModesPanel {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.title = make("div", { class: "beside-title" });
    this.canvas = make("canvas", { class: "beside-canvas", role: "img" });
    this.lines = make("div", { class: "beside-legend", role: "list", "aria-label": "directions" });
    this.note = make("p", { class: "beside-note" });
    this.straight = makeButton("show the straight valley", "show the straight valley", () => explorer.chooseFormula(explorer.engine.surface(VALLEY) ? VALLEY : FORMULA), { class: "item" });
    this.element = make("div", { hidden: true }, this.title, this.canvas, this.lines, this.note, this.straight);
  }

  draw() {
    const { explorer } = this;
    const { engine, state, selected } = explorer;
    const evaluate = engine.evaluator(state.problem);
    const surface = engine.surface(state.problem);
    const quadratic = evaluate && engine.keep(`quadratic|${state.problem}`, () => quadraticOf(evaluate, surface.start, surface.domain));
    this.canvas.hidden = !quadratic;
    this.straight.hidden = Boolean(quadratic);
    this.lines.replaceChildren();
    if (!quadratic) {
      this.title.textContent = "This function is no quadratic with one stationary point";
      this.note.textContent = "Only of a quadratic the curvatures are the same everywhere, and the path has a closed form. Around a point of this function, see curvature.";
      return;
    }
    const momentum = momentumOf(selected.entry);
    this.title.textContent = `${momentum ? selected.entry.name : "SGD"}: factor per step`;
    const used = momentum || { mu: 0, nesterov: false, scale: 1 };
    this.describe(quadratic, used, Boolean(momentum));
    this.drawChart(quadratic, used, momentum ? selected.rate : NaN);
  }

  /** @param {Quadratic} quadratic
   * @param {{mu: number, nesterov: boolean, scale: number}} momentum */
  limit({ curvatures }, { mu, nesterov, scale }) {
    const high = curvatures[0];
    return high > 0 ? (2 + 2 * mu) / (nesterov ? 1 + 2 * mu : 1) / high / scale : NaN;
  }

  /** @param {number} i */
  color(i) {
    const { palette } = this.explorer;
    return i ? palette.scale : palette.memory;
  }

  /** @param {Quadratic} quadratic
   * @param {{mu: number, nesterov: boolean, scale: number}} momentum
   * @param {number} rate */
  drawChart(quadratic, momentum, rate) {
    const { explorer } = this;
    const { palette, state } = explorer;
    const size = 13 * state.text_size;
    const width = explorer.plot.element.clientWidth, height = explorer.beside.room(this.canvas);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = fitCanvas(this.canvas, width, height);
    clearCanvas(pen);
    const limit = this.limit(quadratic, momentum);
    const middle = Number.isFinite(limit) ? limit : 1;
    const low = Math.log10(Math.min(middle / 300, rate > 0 ? rate / 2 : Infinity)), high = Math.log10(Math.max(middle * 2, rate > 0 ? rate * 1.5 : 0));
    const left = 34 * state.text_size, right = 8, top = 8, bottom = height - 24 * state.text_size, most = 1.25;
    const frame = { left, top, width: width - left - right, height: bottom - top, x: { low, high, scale: "log" }, y: { low: 0, high: most }, paper: palette.paper };
    const x = (/** @type {number} */ value) => left + ((Math.log10(value) - low) / (high - low)) * (width - left - right);
    const y = (/** @type {number} */ factor) => bottom - (factor / most) * (bottom - top);
    const factorOf = (/** @type {number} */ curvature, /** @type {number} */ value) => Math.min(most, contraction(curvature, value * momentum.scale, momentum).factor);
    const quiet = { ink: palette.quiet, size };
    /** @type {Mark[]} */
    const marks = [];
    /** @type {Mark[]} */
    const notes = [];
    const labels = new Labels(pen, width, bottom), ticks = new Labels(pen, width, height);
    for (const tick of [0, 0.5, 1]) {
      marks.push(ruleMark("y", tick, tick === 1 ? palette.ink : palette.rule));
      notes.push(...ticks.offer(textMark(left - 7, y(tick), numberText(tick), { ...quiet, across: "right" })));
    }
    for (let power = Math.ceil(low); power <= high; power++) notes.push(...ticks.offer(textMark(Math.max(left + 16, Math.min(width - 22, x(10 ** power))), height - size * 0.6, power ? numberText(10 ** power, 6) : "1", quiet)));
    const values = Float64Array.from({ length: 241 }, (_, k) => 10 ** (low + ((high - low) * k) / 240));
    quadratic.curvatures.forEach((curvature, i) => {
      const factors = values.map((value) => factorOf(curvature, value));
      marks.push(lineMark(values, factors, { color: this.color(i), width: 2.4, dash: i ? [7, 4] : [] }));
      labels.keepOff(between(Array.from(values, (value, k) => [x(value), y(factors[k])]), 3));
    });
    if (rate > 0) {
      marks.push(lineMark([rate, rate], [0, most], { color: palette.ink, width: 1.4 }));
      quadratic.curvatures.forEach((curvature, i) => {
        marks.push(pointMark(rate, factorOf(curvature, rate), "circle", 11, this.color(i), palette.paper, 1.6));
        labels.keepFree(x(rate), y(factorOf(curvature, rate)), 8);
      });
      const places = Array.from({ length: 12 }, (_, k) => [x(rate), y((most * (k + 0.6)) / 12)]);
      labels.keepOff(between([[x(rate), y(0)], [x(rate), y(most)]], 3, 400));
      notes.push(...labels.beside(`rate ${numberText(rate, 6)}`, places, { ink: palette.ink, size }, { distance: 4, most: 30, leader: "" }));
    }
    drawMarks(pen, frame, marks);
    drawMarks(pen, pixelFrame(width, height, palette.paper), notes);
    this.canvas.setAttribute("aria-label", `The factor of each direction over the rate; above 1 it diverges. The limit is ${numberText(limit)}.`);
  }

  /** @param {Quadratic} quadratic
   * @param {{mu: number, nesterov: boolean, scale: number}} momentum
   * @param {boolean} known whether this optimizer has a closed form */
  describe(quadratic, momentum, known) {
    const { explorer } = this;
    const { selected, state, engine } = explorer;
    const { curvatures, axes } = quadratic;
    this.lines.replaceChildren(...curvatures.map((curvature, i) => {
      const swatch = make("span", { class: "swatch line", "aria-hidden": "true" });
      swatch.style.background = this.color(i);
      const { factor, kind } = contraction(curvature, selected.rate * momentum.scale, momentum);
      const along = axes[i].length > 1 ? `along (${axes[i].map((x) => numberText(Math.abs(x) < 1e-12 ? 0 : x, 2)).join(", ")})` : "";
      return make("div", { class: "legend-row", role: "listitem", title: along }, swatch, make("span", { text: `curvature ${numberText(curvature)}` }), make("b", { text: known ? `${kind} × ${numberText(factor, 4)}` : "" }));
    }));
    const limit = this.limit(quadratic, momentum);
    const parts = [];
    if (curvatures.length > 1 && curvatures[1] > 0) parts.push(`Condition number ${numberText(curvatures[0] / curvatures[1])}.`);
    if (curvatures[curvatures.length - 1] < 0) parts.push("It curves down along a direction: every rate diverges there.");
    else if (Number.isFinite(limit)) parts.push(`It diverges above rate ${numberText(limit, 4)}.`);
    if (!known) parts.push(`The closed form is known of SGD and Momentum, not of ${selected.entry.name}: choose one of them.`);
    else if (engine.conditions(state).sigma > 0) parts.push("With noise the path has no closed form.");
    else if (selected.run && selected.run.path) {
      const { run } = selected;
      const closed = closedPath(quadratic, state.start, selected.rate * momentum.scale, momentum, run.last);
      let apart = 0, size = 0;
      for (let i = 0; i < (run.last + 1) * run.n; i++) {
        apart = Math.max(apart, Math.abs(closed[i] - run.path[i]));
        size = Math.max(size, Math.abs(run.path[i]));
      }
      parts.push(Number.isFinite(apart / size) ? `Closed form and computed path ${apart ? `differ by ${numberText(apart, 2)}${size > 1e3 ? ` of ${numberText(size, 2)}` : ""} at most` : "are equal to the bit"}.` : "");
    }
    this.note.textContent = parts.join(" ");
  }
}
