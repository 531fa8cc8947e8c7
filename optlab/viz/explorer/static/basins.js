// Basins of attraction: the map is painted by the minimum that the chosen optimizer reaches from each
// start. The starts run in short pieces, so that the page stays alive.

import { make } from "../../browser/static/elements.js";
import { localShape } from "./field.js";
import { numberText, stepsText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const UNDERWAY = -1, DIVERGED = -2;
const COLUMNS = 132, PIECE = 9, REST = 160; // starts along x; milliseconds a piece; of rest before it begins
const TOLERANCE = 0.01; // of the diagonal of the domain, as optlab.basins has it
const MOST_CANDIDATES = 80, MOST_NAMED = 7;

/** Which minimum runs have reached: those known and those found near where runs end, the lowest first.
 * @param {(point: ArrayLike<number>) => number[]} evaluate
 * @param {number} n coordinates
 * @param {Float64Array} points where runs end
 * @param {Float64Array} losses there; NaN of a run that diverges
 * @param {number[][]} known
 * @param {number} distance at which a minimum is reached
 * @returns {{minima: number[][], values: number[], basin: Int16Array}} */
export function basinsOf(evaluate, n, points, losses, known, distance) {
  /** @type {Map<string, {count: number, best: number}>} */
  const cells = new Map();
  for (let i = 0; i < losses.length; i++) {
    if (Number.isNaN(losses[i])) continue;
    const across = Math.floor(points[i * n] / distance);
    const key = n === 1 ? `${across}` : `${across},${Math.floor(points[i * n + 1] / distance)}`;
    const cell = cells.get(key);
    if (!cell) cells.set(key, { count: 1, best: i });
    else {
      cell.count++;
      if (losses[i] < losses[cell.best]) cell.best = i;
    }
  }
  const apart = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b) => Math.hypot(...Array.from(a, (x, i) => x - b[i]));
  const found = known.map((point) => [...point]);
  for (const { best } of [...cells.values()].sort((a, b) => b.count - a.count).slice(0, MOST_CANDIDATES)) {
    const point = refined(evaluate, Array.from(points.subarray(best * n, (best + 1) * n)), distance);
    if (point && found.every((other) => apart(point, other) > distance)) found.push(point);
  }
  const nearest = new Int16Array(losses.length).fill(UNDERWAY);
  for (let i = 0; i < losses.length; i++) {
    if (Number.isNaN(losses[i])) nearest[i] = DIVERGED;
    else {
      let least = distance;
      for (let k = 0; k < found.length; k++) {
        const dx = found[k][0] - points[i * n], dy = n === 1 ? 0 : found[k][1] - points[i * n + 1];
        const away = Math.sqrt(dx * dx + dy * dy);
        if (away <= least) {
          least = away;
          nearest[i] = k;
        }
      }
    }
  }
  const reached = new Set(nearest);
  const values = found.map((point) => evaluate(point)[0]);
  const order = found.map((_, k) => k).filter((k) => k < known.length || reached.has(k)).sort((a, b) => Number(values[a].toFixed(9)) - Number(values[b].toFixed(9)) || a - b);
  return { minima: order.map((k) => found[k]), values: order.map((k) => values[k]), basin: nearest.map((k) => (k < 0 ? k : order.indexOf(k))) };
}

/** The minimum close to a point by Newton's method, which goes downhill along every axis; or null.
 * @param {(point: ArrayLike<number>) => number[]} evaluate
 * @param {number[]} start
 * @param {number} distance
 * @returns {number[] | null} */
function refined(evaluate, start, distance) {
  let point = start, length = Infinity, low = 0;
  for (let k = 0; k < 40; k++) {
    const { gradient, curvatures, axes } = localShape(evaluate, point, distance * 10);
    low = curvatures[curvatures.length - 1];
    if (!curvatures.every(Number.isFinite) || !gradient.every(Number.isFinite)) return null;
    const angle = axes.length ? axes[0] : 0;
    const frame = point.length === 1 ? [[1]] : [[Math.cos(angle), Math.sin(angle)], [-Math.sin(angle), Math.cos(angle)]];
    const floor = 1e-10 * Math.max(...curvatures.map(Math.abs)) + 1e-300;
    const along = frame.map((axis, i) => axis.reduce((sum, x, c) => sum + x * gradient[c], 0) / Math.max(Math.abs(curvatures[i]), floor));
    length = Math.hypot(...along);
    const scale = Math.min(1, distance / Math.max(length, 1e-300));
    point = point.map((x, c) => x - scale * frame.reduce((sum, axis, i) => sum + axis[c] * along[i], 0));
  }
  const away = Math.hypot(...point.map((x, c) => x - start[c]));
  return length <= 1e-3 * distance && low > 0 && away <= 5 * distance ? point : null;
}

export class BasinsPanel {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.title = make("span", { class: "beside-title" });
    this.bar = make("progress", { max: "1", "aria-label": "starts that have run" });
    this.button = make("button", { type: "button", class: "item", on: { click: () => (this.running ? this.cancel() : this.begin()) } });
    this.whole = make("button", { type: "button", class: "item", text: "whole domain", title: "show all of the function's domain on the map", on: { click: () => this.showDomain() } });
    this.work = make("span", { class: "beside-work" }, this.button, this.whole);
    this.legend = make("div", { class: "beside-legend", role: "list", "aria-label": "basins" });
    this.note = make("p", { class: "beside-note" });
    this.element = make("div", { hidden: true }, make("div", { class: "beside-line" }, this.title, this.work), this.bar, this.legend, this.note);
    this.key = "";
    this.generation = 0;
    /** @type {any} */
    this.painted = null;
    this.running = false;
    this.frame = 0;
    /** @type {any} */
    this.timer = 0;
  }

  /** The ground is painted anew when this changes. */
  get groundKey() {
    return this.painted ? `basins ${this.generation}` : "";
  }

  wanted() {
    const { selected, state, map } = this.explorer;
    const { entry, rate } = selected;
    return JSON.stringify([state.problem, state.steps, state.seed, state.noise, entry.kind, entry.settings, entry.around, rate, map.box, map.width, map.height]);
  }

  draw() {
    const { explorer } = this;
    const { engine, selected, state } = explorer;
    const why = engine.whyNot(state, selected.entry);
    this.title.textContent = `Where ${selected.entry.name} ends`;
    this.work.hidden = this.bar.hidden = Boolean(why);
    if (why) {
      this.stop();
      this.painted = null;
      this.key = "";
      this.legend.replaceChildren();
      this.note.textContent = `Here this needs runs that a page cannot make (${why}). In Python: ol.basins(problem, optimizer).`;
      return;
    }
    this.whole.hidden = this.domain().join() === explorer.map.box.join();
    const key = this.wanted();
    if (key === this.key) return;
    this.key = key;
    this.stop();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.explorer.beside.panel === this && this.begin(), REST); // while a hand drags, nothing runs
  }

  /** The box of the domain. */
  domain() {
    const { engine, state, map } = this.explorer;
    const [[x0, x1], [y0, y1] = [map.box[2], map.box[3]]] = engine.surface(state.problem).domain;
    return map.withAspect([x0, x1, y0, y1]);
  }

  showDomain() {
    this.explorer.map.show(this.domain());
  }

  begin() {
    const { explorer } = this;
    const { map, state, engine, selected } = explorer;
    const n = state.start.length;
    const columns = COLUMNS, rows = n === 1 ? 1 : Math.max(2, Math.round((COLUMNS * map.height) / map.width));
    let end;
    try {
      end = engine.ends(state, selected.entry, selected.rate);
    } catch (error) {
      this.note.textContent = String(/** @type {Error} */ (error).message);
      return;
    }
    const [x0, x1, y0, y1] = map.box;
    const points = new Float64Array(columns * rows * n), losses = new Float64Array(columns * rows).fill(NaN);
    const start = new Float64Array(n), last = new Float64Array(n);
    this.running = true;
    this.bar.style.visibility = "";
    this.button.textContent = "cancel";
    this.note.textContent = "";
    let i = 0;
    const piece = () => {
      if (!this.running || explorer.dead || explorer.beside.panel !== this) return this.stop();
      for (const until = performance.now() + PIECE; i < losses.length && performance.now() < until; i++) {
        start[0] = x0 + (((i % columns) + 0.5) / columns) * (x1 - x0);
        if (n > 1) start[1] = y1 - ((Math.floor(i / columns) + 0.5) / rows) * (y1 - y0);
        losses[i] = end(start, last);
        points.set(last, i * n);
      }
      this.bar.value = i / losses.length;
      if (i < losses.length) this.frame = requestAnimationFrame(piece);
      else this.finish(points, losses, columns, rows, n);
    };
    this.frame = requestAnimationFrame(piece);
  }

  /** @param {Float64Array} points
   * @param {Float64Array} losses
   * @param {number} columns
   * @param {number} rows
   * @param {number} n */
  finish(points, losses, columns, rows, n) {
    const { explorer } = this;
    const { engine, state } = explorer;
    const surface = engine.surface(state.problem);
    const distance = TOLERANCE * Math.hypot(...surface.domain.map((/** @type {number[]} */ [low, high]) => high - low));
    this.stop();
    const found = basinsOf(engine.evaluator(state.problem), n, points, losses, surface.minima, distance);
    this.painted = { ...found, columns, rows };
    this.generation++;
    this.showLegend();
    explorer.later("paths");
  }

  /** @param {number} k */
  color(k) {
    const { options, theme } = this.explorer;
    return options.styles[k % options.styles.length][theme];
  }

  showLegend() {
    const { minima, values, basin } = this.painted;
    const { steps } = this.explorer.state;
    const counts = new Map();
    for (const k of basin) counts.set(k, (counts.get(k) || 0) + 1);
    const share = (/** @type {number} */ k) => {
      const part = (counts.get(k) || 0) / basin.length;
      return part > 0 && part < 0.005 ? "<1 %" : part > 0.995 && part < 1 ? ">99 %" : `${Math.round(100 * part)} %`;
    };
    const row = (/** @type {string} */ text, /** @type {number} */ k, /** @type {string} */ kind) => {
      const swatch = make("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
      if (k >= 0) swatch.style.background = this.color(k);
      return make("div", { class: "legend-row", role: "listitem" }, swatch, make("span", { text }), make("b", { text: share(k) }));
    };
    const rows = minima.slice(0, MOST_NAMED).map((/** @type {number[]} */ point, /** @type {number} */ k) => row(`(${point.map((x) => numberText(x)).join(", ")}), loss ${numberText(Math.abs(values[k]) < 1e-12 ? 0 : values[k])}`, k, ""));
    if (minima.length > MOST_NAMED) rows.push(make("div", { class: "legend-row", role: "listitem", text: `and ${minima.length - MOST_NAMED} more minima` }));
    if (counts.has(UNDERWAY)) rows.push(row(`not there after ${stepsText(steps)}`, UNDERWAY, "plain"));
    if (counts.has(DIVERGED)) rows.push(row("diverges", DIVERGED, "hatched"));
    this.legend.replaceChildren(...rows);
    this.note.textContent = `Of the ${basin.length.toLocaleString("en")} starts on this map, at rate ${numberText(this.explorer.selected.rate, 6)}; each is painted by the minimum that it reaches.`;
  }

  /** Each start in the color of its minimum; hatched where the run diverges.
   * @returns {Mark[]} */
  groundMarks() {
    const { map, palette, theme, state } = this.explorer;
    if (!this.painted || this.wanted() !== this.key) return [];
    const { basin, minima, columns, rows } = this.painted;
    const [x0, x1, y0, y1] = map.box, wide = (x1 - x0) / columns;
    // A row of cells has no height of its own: the starts of one variable are there twice.
    const tall = state.start.length === 1 ? 2 : rows, step = (y1 - y0) / tall;
    const x = Float64Array.from({ length: columns }, (_, i) => x0 + (i + 0.5) * wide);
    const y = Float64Array.from({ length: tall }, (_, j) => y1 - (j + 0.5) * step);
    const values = Float64Array.from({ length: columns * tall }, (_, i) => {
      const k = basin[i % basin.length];
      return k < 0 ? NaN : k;
    });
    const colors = minima.map((/** @type {any} */ _, /** @type {number} */ k) => this.color(k));
    /** @type {Mark[]} */
    const marks = [];
    if (colors.length) marks.push({ kind: "HeatMap", x, y, values, low: -0.5, high: colors.length - 0.5, colors, opacity: theme === "dark" ? 0.34 : 0.36 });
    // Neighbors in a row are one box: its hatching goes on.
    const [left, low, right, high] = [[], [], [], []].map((all) => /** @type {number[]} */ (all));
    for (let at = 0; at < values.length; at++) {
      if (basin[at % basin.length] !== DIVERGED) continue;
      const i = at % columns, top = y1 - Math.floor(at / columns) * step;
      if (i && basin[(at - 1) % basin.length] === DIVERGED) right[right.length - 1] = x0 + (i + 1) * wide;
      else {
        left.push(x0 + i * wide);
        right.push(x0 + (i + 1) * wide);
        high.push(top);
        low.push(top - step);
      }
    }
    marks.push({ kind: "Boxes", x0: left, y0: low, x1: right, y1: high, fills: [{ color: "none", pattern: "/", ink: palette.frame }] });
    return marks;
  }

  cancel() {
    this.stop();
    this.note.textContent = "Canceled: the map keeps what it showed.";
  }

  stop() {
    this.running = false;
    this.bar.style.visibility = "hidden"; // its place stays, so that the buttons do
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.button.textContent = "repaint";
  }
}
