// The tall plot beside the map: curves over the steps, or the plane of all runs. A vertical line is the
// step that the map shows; it can be dragged.

import { drawMarks } from "../../browser/static/canvas.js";
import { FONTS, clearCanvas, fitCanvas, linearTicks } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, pointMark, ruleMark, textMark } from "../../browser/static/marks.js";
import { seriesOf } from "./engine.js";
import { localShape } from "./field.js";
import { Labels } from "./labels.js";
import { OPENING } from "./map.js";
import { fillSelect, numberText } from "./numbers.js";
import { Plane } from "./plane.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

/** @type {[string, string][]} */
const TABS = [["loss", "loss"], ["memory", "memory"], ["length", "step length"], ["angle", "angle"], ["plane", "all runs"], ["beside", "more"]];
const OF_SURFACES = ["angle", "plane", "beside"];

const BLOCK = 90; // a curve that goes up and down by more pixels than this in each pixel is a block of ink

/** How many pixels a curve goes up and down in each pixel to the right.
 * @param {number[]} heights
 * @param {number} width */
function inked(heights, width) {
  let sum = 0;
  for (let k = 1; k < heights.length; k++) {
    const way = Math.abs(heights[k] - heights[k - 1]);
    if (Number.isFinite(way)) sum += Math.min(way, 200);
  }
  return sum / Math.max(1, width);
}

/** The mean over neighboring steps, as Python's curve_view.moving_mean, as far as values are finite.
 * @param {ArrayLike<number>} values
 * @param {number} window an odd number of steps, fewer at the ends */
export function meanOf(values, window) {
  const found = Float64Array.from(values), half = (window - 1) / 2;
  let last = found.findIndex((value) => !Number.isFinite(value));
  if (last < 0) last = found.length;
  for (let k = 0; k < last; k++) {
    const from = Math.max(0, k - half), to = Math.min(last, k + half + 1);
    let sum = 0;
    for (let i = from; i < to; i++) sum += values[i];
    found[k] = sum / (to - from);
  }
  return found;
}

export class Plot {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.tabs = TABS.map(([key, text], i) => make("button", { type: "button", class: "tab", role: "tab", text, "data-text": text, title: `${text} (${i + 1})`, on: { click: () => explorer.set({ tab: key }) } }));
    this.list = make("div", { class: "tabs", role: "tablist", "aria-label": "plots" }, ...this.tabs);
    this.about = make("span", { class: "about" });
    this.choice = make("select", { "aria-label": "quantity", on: { change: () => explorer.set({ slot: this.choice.value }) } });
    this.axis = make("button", { type: "button", class: "small-button", on: { click: () => explorer.set({ coordinate: 1 - explorer.coordinate }) } });
    this.head = make("div", { class: "plot-head" }, this.about, this.choice, this.axis);
    this.base = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.top = make("canvas", { class: "layer", tabindex: "0", role: "slider", "aria-valuemin": "0" });
    this.area = make("div", { class: "plot-area" }, this.base, this.top);
    this.element = make("div", { class: "plot" }, this.list, this.head, this.area);
    /** @type {any[]} */
    this.curves = [];
    /** Those beside the cursor. @type {any[]} */
    this.labels = [];
    this.plane = new Plane(this);
    let held = false;
    this.top.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0) return;
      this.top.focus({ preventScroll: true });
      event.preventDefault();
      if (this.what === "plane") {
        this.plane.choose(this.plane.cellAt(event));
        return;
      }
      held = true;
      this.top.setPointerCapture(event.pointerId);
      this.scrub(event);
    });
    this.top.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (held) this.scrub(event);
      else if (this.what === "plane") this.plane.hover(this.plane.cellAt(event));
    });
    this.top.addEventListener("pointerleave", () => this.plane.hover(null));
    for (const name of ["pointerup", "pointercancel"]) this.top.addEventListener(name, () => (held = false));
  }

  /** The tabs of this explorer: recorded runs have no start, and no other runs beside them.
   * @returns {string[]} */
  get tabsShown() {
    return TABS.map(([key]) => key).filter((key) => !this.explorer.network || !OF_SURFACES.includes(key));
  }

  get what() {
    const { tab } = this.explorer.state;
    return this.tabsShown.includes(tab) ? tab : "loss"; // a state or an address may name any
  }

  /** Names of parts of the run that an example speaks of: [text, first step, last step].
   * @returns {[string, number, number][]} */
  get parts() {
    const { options, state } = this.explorer;
    return (this.what === "loss" && options.presets[state.preset]?.parts) || [];
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    return this.what === "plane" && this.plane.onKey(event);
  }

  /** @param {PointerEvent} event */
  scrub(event) {
    const bounds = this.top.getBoundingClientRect();
    const share = (event.clientX - bounds.left - this.left) / (this.width - this.left - this.right);
    this.explorer.go(Math.round(share * this.explorer.state.steps));
  }

  /** @param {number} width
   * @param {number} height of everything */
  resize(width, height) {
    this.element.style.height = `${height}px`;
    this.width = width;
    this.height = Math.max(120, height - this.list.offsetHeight - this.head.offsetHeight);
    this.area.style.height = `${this.height}px`;
    const size = this.explorer.state.text_size;
    this.left = Math.round(50 * size);
    this.right = 14;
    this.upper = Math.round((this.parts.length ? 34 : 8) * size);
    this.lower = Math.round(26 * size);
  }

  /** The name of the rows that the tab shows of an optimizer.
   * @param {any} one */
  rowsOf(one) {
    if (this.what !== "memory") return this.what;
    const { state } = this.explorer;
    const slots = Object.keys(one.run.slots).filter((name) => !["slow", "average"].includes(name));
    const wanted = state.slot.replace(/^(new|term)\./, "");
    return [wanted, ...slots].find((name) => name && (name in one.run.slots || name in one.run.terms || ["gradient", "update", "point"].includes(name))) || "";
  }

  update() {
    const { explorer } = this;
    const { state } = explorer;
    TABS.forEach(([key], i) => {
      this.tabs[i].setAttribute("aria-selected", String(key === this.what));
      if (key === "length") this.tabs[i].textContent = this.tabs[i].dataset.text = explorer.layout === "middle" ? "length" : "step length";
      this.tabs[i].hidden = !this.tabsShown.includes(key);
    });
    const memory = this.what === "memory", beside = this.what === "beside";
    this.head.hidden = this.area.hidden = beside;
    explorer.beside.element.hidden = !beside;
    this.choice.hidden = !memory;
    this.axis.hidden = !memory || explorer.axes.length < 2;
    this.axis.textContent = `along ${explorer.axes[explorer.coordinate]}`;
    this.axis.title = "the other coordinate";
    if (memory) {
      const names = new Set();
      for (const { run } of explorer.shown) if (run) for (const name of [...Object.keys(run.slots), ...Object.keys(run.terms)]) names.add(name);
      /** @type {[string, string][]} */
      const choices = [["", "first memory of each"], ...[...names].map((name) => /** @type {[string, string]} */ ([name, name])), ["gradient", "gradient"], ["update", "update"]];
      if (!explorer.network) choices.push(["point", "position"]);
      const wanted = state.slot.replace(/^(new|term)\./, "");
      fillSelect(this.choice, choices, choices.some(([value]) => value === wanted) ? wanted : "");
    }
  }

  // Curves ---------------------------------------------------------------------------------------

  prepare() {
    const { explorer } = this;
    this.curves = [];
    for (const one of explorer.inOrder()) {
      if (!one.run) continue;
      const what = this.rowsOf(one);
      const values = what && seriesOf(one.run, what, explorer.coordinate);
      if (values) this.curves.push({ one, values, what, drawn: values });
    }
    this.window = this.smooths ? Math.max(3, 2 * Math.floor(Math.max(0, ...this.curves.map(({ values }) => values.length)) / 80) + 1) : 0;
    if (this.window) for (const curve of this.curves) curve.drawn = meanOf(curve.values, this.window);
    /** @type {number[]} */
    const all = [];
    let wild = 0;
    for (const { one, values } of this.curves) {
      for (let k = 0; k < values.length; k++) {
        if (!Number.isFinite(values[k])) continue;
        if (one.run.stopped < 0 || all.length === 0 || k === 0) all.push(values[k]);
        else wild = Math.max(wild, Math.abs(values[k]));
      }
    }
    this.chooseScale(all, wild);
  }

  /** Whether losses are noisy: a mean stands over them. */
  get smooths() {
    const { explorer } = this;
    return this.what === "loss" && (explorer.network || explorer.engine.isNoisy(explorer.state));
  }

  /** @param {number[]} all
   * @param {number} wild the largest value of runs that diverge */
  chooseScale(all, wild) {
    const { explorer, what } = this;
    // Losses below zero have no logarithm: theirs is taken above the lowest that was seen.
    const below = all.some((value) => value <= 0) && !explorer.open && Number.isFinite(explorer.floor.floor);
    this.shift = what === "loss" && !explorer.network && (explorer.floor.known || below) ? explorer.floor.floor : 0;
    const shifted = all.map((value) => value - this.shift);
    const positive = shifted.filter((value) => value > 0);
    const log = what === "length" || (what === "loss" && (this.shift !== 0 || explorer.floor.known || explorer.network || shifted.every((value) => value >= 0)));
    if (what === "angle") {
      this.scale = "angle";
      [this.low, this.high] = [0, 180];
    } else if (log && positive.length) {
      this.scale = "log";
      let top = Math.log10(positive.reduce((a, b) => Math.max(a, b)));
      const bottom = Math.log10(positive.reduce((a, b) => Math.min(a, b)));
      if (Math.log10(wild) > top) top += 1;
      this.low = Math.max(bottom, top - 16);
      const room = Math.max(0.15, 0.06 * (top - this.low));
      this.low -= room;
      this.high = top + room;
    } else {
      this.shift = 0; // no loss is above it: the axis has the losses themselves
      const sizes = all.map(Math.abs).filter((v) => v > 0).sort((a, b) => a - b);
      const largest = sizes.length ? sizes[sizes.length - 1] : 1;
      const middle = sizes.length ? sizes[Math.floor(sizes.length / 2)] : 1;
      this.scale = largest > 60 * middle ? "symlog" : "linear";
      this.threshold = 10 ** Math.floor(Math.log10(middle || 1));
      const ends = [0, ...all].map((v) => this.bend(v));
      this.low = ends.reduce((a, b) => Math.min(a, b));
      this.high = ends.reduce((a, b) => Math.max(a, b));
      const room = 0.08 * (this.high - this.low) || 1;
      this.low -= this.low < 0 ? room : 0;
      this.high += this.high > 0 ? room : 0;
      if (this.low === this.high) this.high = 1; // all stay at 0, as on a minimum
      this.shift = 0;
    }
  }

  /** Why no path leaves the start; "" if one does, or is not known. */
  still() {
    const { shown, floor, network, engine, state } = this.explorer;
    const stays = (/** @type {any} */ run) => run?.path && run.stopped < 0 && run.path.every((/** @type {number} */ x, /** @type {number} */ i) => x === run.path[i % run.n]);
    if (network || !shown.every((/** @type {any} */ { run }) => stays(run))) return "";
    const evaluate = engine.evaluator(state.problem);
    const lowest = (floor.known && shown[0].run.loss[0] <= floor.floor) || (evaluate && localShape(evaluate, state.start, 1).curvatures.every((curvature) => curvature > 0));
    return lowest ? "The start is a minimum: nothing moves." : "The start has no slope: nothing moves.";
  }

  /** @param {number} value */
  bend(value) {
    if (this.scale === "log") return value > this.shift ? Math.log10(value - this.shift) : -400;
    if (this.scale === "symlog") return Math.sign(value) * Math.log10(1 + Math.abs(value) / this.threshold);
    return value;
  }

  /** @param {number} step */
  x(step) {
    return this.left + (step / this.explorer.state.steps) * (this.width - this.left - this.right);
  }

  /** @param {number} value */
  y(value) {
    return this.at(this.bend(value));
  }

  /** @param {number} bent a value of the axis */
  at(bent) {
    const bottom = this.height - this.lower;
    const share = (bent - this.low) / (this.high - this.low);
    return bottom - Math.max(-3, Math.min(3, share)) * (bottom - this.upper);
  }

  /** The plot as marks see it: over the steps what `bend` makes of values.
   * @returns {import("../../browser/static/marks.js").Frame} */
  get frame() {
    const { left, upper, width, height, right, lower } = this;
    return {
      left, top: upper, width: width - left - right, height: height - lower - upper, x: { low: 0, high: this.explorer.state.steps },
      y: { low: this.low, high: this.high }, paper: this.explorer.palette.paper,
    };
  }

  get pixels() {
    return pixelFrame(this.width, this.height, this.explorer.palette.paper);
  }

  /** The text of a tick: powers of ten in short.
   * @param {number} value */
  tickText(value) {
    const small = value !== 0 && Math.abs(value) < 0.0099;
    return small ? value.toExponential(2).replace(/\.?0+e/, "e").replace("-", value < 0 ? "−" : "-") : numberText(value);
  }

  /** The text of a value at its curve: a number of the axis, above the shift.
   * @param {number} value */
  valueText(value) {
    return numberText(value - this.shift);
  }

  /** @returns {number[]} of the axis: above the shift where it is logarithmic */
  ticks() {
    if (this.scale === "angle") return [0, 45, 90, 135, 180];
    const most = Math.max(2, Math.floor(this.height / 56));
    if (this.scale === "log") {
      const stride = Math.max(1, Math.ceil((this.high - this.low) / most));
      const found = [];
      for (let k = Math.ceil(this.low); k <= this.high; k++) if (k % stride === 0) found.push(10 ** k);
      if (found.length > 1) return found;
      return linearTicks(10 ** this.low, 10 ** this.high, 4).filter((tick) => tick > 0);
    }
    if (this.scale === "symlog") {
      const found = [0];
      const far = Math.max(Math.abs(this.low), Math.abs(this.high));
      const stride = Math.max(1, Math.ceil(far / 3));
      for (let k = stride; k <= far; k += stride) {
        for (const sign of [1, -1]) {
          const tick = sign * this.threshold * 10 ** k;
          if (this.bend(tick) >= this.low && this.bend(tick) <= this.high) found.push(tick);
        }
      }
      return found;
    }
    return linearTicks(this.low, this.high, most);
  }

  drawBase() {
    const { explorer } = this;
    const { palette, state } = explorer;
    this.update();
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    if (this.what === "beside") {
      explorer.beside.draw();
      return;
    }
    if (this.what === "plane") {
      this.plane.draw(pen);
      return;
    }
    this.prepare();
    this.atStart = !state.step;
    const size = 13 * state.text_size;
    /** @type {Mark[]} */
    const rules = [];
    const labels = new Labels(pen, this.width, this.height);
    const notes = this.partMarks(size, labels);
    for (const tick of this.ticks()) {
      const at = this.scale === "log" ? Math.log10(tick) : this.bend(tick);
      rules.push(ruleMark("y", at, tick === 0 && this.scale !== "log" ? palette.frame : palette.rule));
      notes.push(...labels.offer(textMark(this.left - 7, Math.round(this.at(at)) + 0.5, this.tickText(tick), { ink: palette.quiet, size, across: "right" })));
    }
    for (const tick of this.stepTicks()) {
      const right = this.x(tick) > this.width - 22 * state.text_size;
      notes.push(textMark(tick === 0 ? this.left : right ? this.width - 2 : this.x(tick), this.height - size * 0.62, tick === 0 ? "step 0" : numberText(tick, 6), { ink: palette.quiet, size, across: tick === 0 ? "left" : right ? "right" : "center" }));
    }
    const many = this.curves.length > 8;
    for (const curve of this.curves) {
      const { values, drawn } = curve;
      curve.heights = Array.from(drawn, (/** @type {number} */ value) => this.y(value));
      // Three heights of the plot away a curve goes no farther.
      const tall = this.high - this.low;
      const near = (/** @type {number} */ value) => (Number.isNaN(value) ? NaN : Math.max(this.low - 3 * tall, Math.min(this.low + 3 * tall, this.bend(value))));
      curve.y = Float64Array.from(drawn, near);
      curve.raw = this.window ? Float64Array.from(values, near) : null;
      curve.x = Float64Array.from(values, (/** @type {number} */ _, /** @type {number} */ k) => k);
      curve.ink = inked(curve.heights, this.width - this.left - this.right);
    }
    this.curves.sort((/** @type {any} */ a, /** @type {any} */ b) => b.ink - a.ink); // the others lie over a block
    const lines = this.curves.map(({ one, x, y, ink }) => {
      const faint = many && one.entry.name !== state.selected;
      return { ...lineMark(x, y, { color: one.color, width: 1.6, opacity: faint ? 0.15 : ink > BLOCK ? 0.16 : state.step ? 0.4 : OPENING }), clip: true };
    });
    if (this.window && !many) lines.unshift(...this.rawMarks(Infinity, 0.16));
    const still = this.still();
    if (still && this.what !== "memory") notes.push(textMark((this.width + this.left) / 2, this.upper + size, still, { ink: palette.quiet, size }));
    else if (!this.curves.some(({ values }) => values.some(Number.isFinite))) {
      const text = this.what === "memory" ? "No memory: each step depends on its own gradient alone." : "Nothing to show: no optimizer here has it.";
      const look = { ink: palette.quiet, size }, said = labels.lines(text, look, Math.min(16 * size, this.width - this.left));
      said.forEach((line, i) => notes.push(textMark((this.width + this.left) / 2, this.height / 2 + (i - 1) * 1.5 * size, line, look)));
    }
    drawMarks(pen, this.frame, [...rules, ...lines]);
    drawMarks(pen, this.pixels, notes);
    this.describe();
  }

  /** The losses of every step behind their means, up to a step.
   * @param {number} count
   * @param {number} opacity */
  rawMarks(count, opacity) {
    return this.curves.map(({ one, x, raw }) => ({ ...lineMark(x.subarray(0, count), raw.subarray(0, count), { color: one.color, width: 1.2, opacity }), clip: true }));
  }

  /** Even steps of 1, 2 or 5 times a power of ten; the last step where it is one of them.
   * @returns {number[]} */
  stepTicks() {
    const { steps, text_size: size } = this.explorer.state;
    const most = Math.max(1, Math.floor((this.width - this.left - this.right) / (58 * size)));
    let tick = 1;
    for (let place = 0; steps / tick > most; ) tick = [1, 2, 5][++place % 3] * 10 ** Math.floor(place / 3);
    return Array.from({ length: Math.floor(steps / tick) + 1 }, (_, i) => i * tick);
  }

  /** The parts of a run that the claim of an example names, as brackets over the curves.
   * @param {number} size
   * @param {Labels} labels
   * @returns {Mark[]} in pixels */
  partMarks(size, labels) {
    const { palette } = this.explorer;
    return this.parts.flatMap(([text, from, to]) => {
      const x0 = this.x(from) + 2, x1 = this.x(to) - 2;
      const look = { ink: palette.quiet, size };
      // The name of a short part begins where it does, that of the next may end where it does.
      const at = (/** @type {number} */ x, /** @type {string} */ across) => textMark(x, size * 0.75, text, { ...look, across });
      const names = [at((x0 + x1) / 2, "center"), at(x0, "left"), at(x1, "right")];
      return [lineMark([x0, x1], [size * 1.6, size * 1.6], { color: palette.ink, width: 2.4 }), ...labels.offer(...(labels.wide(text, look) > x1 - x0 ? names.slice(1) : names))];
    });
  }

  describe() {
    const { explorer, what } = this;
    const scale = { log: "", symlog: `, symmetric log beyond ±${numberText(this.threshold)}`, linear: "", angle: "" }[this.scale];
    let text = "";
    if (what === "loss") text = explorer.network ? "loss of the mini-batch" : this.shift ? `loss above the ${explorer.floor.known ? "minimum" : "lowest seen,"} ${numberText(this.shift)}` : "loss";
    else if (what === "length") text = explorer.network ? "norm of the update" : "length of the update";
    else if (what === "angle") text = "degrees between update and −gradient";
    else text = [...new Set(this.curves.map((curve) => `${curve.one.entry.name}: ${curve.what}`))].slice(0, 3).join(", ");
    this.about.textContent = what === "memory" ? "" : text + (this.scale === "log" && what === "loss" ? ", log scale" : "") + scale + (this.window ? `; bold: mean of ${this.window}` : "");
    this.area.title = what === "memory" ? text + scale : "";
  }

  drawTop() {
    const { explorer } = this;
    if (this.what === "beside") {
      explorer.beside.drawCursor();
      return;
    }
    const { palette, state } = explorer;
    if (this.what !== "plane" && this.atStart === Boolean(state.step)) this.drawBase();
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    this.top.setAttribute("aria-valuemax", String(state.steps));
    this.top.setAttribute("aria-valuenow", String(state.step));
    if (this.what === "plane") {
      this.plane.drawMarks(pen);
      return;
    }
    const px = Math.round(this.x(state.step)) + 0.5;
    const many = this.curves.length > 8, count = state.step + 1;
    if (this.window && !many) drawMarks(pen, this.frame, this.rawMarks(count, 0.25));
    drawMarks(pen, this.frame, this.curves.map(({ one, x, y, ink }) => {
      const faint = many && one.entry.name !== state.selected, block = ink > BLOCK;
      const look = { color: one.color, width: faint ? 1.4 : block ? 1.2 : 2.6, dash: block ? [] : one.style.dash, opacity: faint ? 0.3 : block ? 0.25 : 1 };
      return { ...lineMark(x.subarray(0, count), y.subarray(0, count), look), clip: true };
    }));
    /** @type {Mark[]} */
    const marks = [];
    if (this.curves.length) marks.push(lineMark([px, px], [this.upper - 6, this.height - this.lower], { color: palette.ink, width: 1.6 }));
    const labels = [];
    for (const { one, drawn, values } of this.curves) {
      // Before the first step there is nothing to take a mean of: all start with one loss.
      const value = state.step ? drawn[Math.min(state.step, one.run.last)] : values[0];
      if (!Number.isFinite(value) || (many && one.entry.name !== state.selected)) continue;
      const py = this.y(value);
      if (py < -4 || py > this.height - this.lower + 6) continue;
      if (state.step) marks.push(pointMark(px, py, one.style.marker, 13, one.color, palette.paper));
      labels.push({ one, py, wanted: py, text: `${one.entry.name} ${this.valueText(value)}` });
    }
    // At the start all are at one place, which is marked as on the map.
    for (const { one, py } of state.step ? [] : labels) {
      const same = labels.length > 1 && labels.every((other) => Math.abs(other.py - py) < 2);
      marks.push(same ? pointMark(px, py, "circle", 13, palette.paper, palette.ink, 2.2) : pointMark(px, py, one.style.marker, 13, one.color, palette.paper));
    }
    drawMarks(pen, this.pixels, [...marks, ...this.labelMarks(pen, labels, px)]);
    const chosen = this.curves.find(({ one }) => one.entry.name === state.selected);
    this.top.setAttribute("aria-label", `${this.about.textContent || "memory"}, over the steps`);
    this.top.setAttribute("aria-valuetext", `step ${state.step}: ${state.selected} ${chosen ? this.valueText(chosen.drawn[state.step]) : "not there"}`);
  }

  /** Labels beside the cursor, where neither a curve nor another label is.
   * @param {CanvasRenderingContext2D} pen that measures
   * @param {any[]} labels
   * @param {number} px
   * @returns {Mark[]} in pixels */
  labelMarks(pen, labels, px) {
    const { state } = this.explorer;
    const size = 15 * state.text_size, half = size * 0.62;
    const top = this.upper + half, bottom = this.height - this.lower - half;
    /** @type {number[][]} */
    const taken = [];
    labels.sort((a, b) => a.wanted - b.wanted);
    labels.forEach((label, i) => {
      for (label.size of [size, size * 0.87]) {
        pen.font = `bold ${label.size}px ${FONTS}`;
        label.wide = pen.measureText(label.text).width;
        // Beside the cursor, on either side; where no side has room, over it.
        const right = px + 12, left = px - 12 - label.wide, end = this.width - 2 - label.wide;
        label.places = [[right, 0], [left, 5]].filter(([from]) => from >= this.left - 4 && from <= end);
        if (label.places.length) break;
      }
      if (!label.places.length) label.places = [[Math.max(this.left - 4, this.width - 2 - label.wide), 30]];
      /** @type {any} */
      let best = null;
      for (const [from, dear] of label.places) {
        for (let shift = 0; shift <= this.height; shift += shift < 60 ? 6 : 14) {
          if (best && shift * 0.6 > best.cost) break; // farther is never better
          for (const py of shift ? [label.wanted - shift, label.wanted + shift] : [label.wanted]) {
            if (py < top || py > bottom) continue;
            const box = [from - 2, py - half, from + label.wide + 2, py + half];
            // The upper ones rather go up, the lower ones down; a label far away belongs to nobody.
            const away = Math.abs(py - label.wanted) + (Math.sign(py - label.wanted) * (i - (labels.length - 1) / 2) < 0 ? 6 : 0);
            let cost = away * (away > 60 ? 1.6 : 0.6) + dear + 18 * this.crossed(box);
            for (const other of taken) if (box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]) cost += 400;
            if (!best || cost < best.cost) best = { cost, from, py, box };
          }
        }
      }
      const [[from]] = label.places, py = Math.max(top, Math.min(bottom, label.wanted));
      best ??= { from, py, box: [from, py - half, from + label.wide, py + half] };
      taken.push(best.box);
      Object.assign(label, best);
    });
    // Those on one side of the cursor stand in the order of their curves.
    for (const side of [labels.filter(({ from }) => from > px), labels.filter(({ from }) => from <= px)]) {
      const heights = side.map(({ py }) => py).sort((a, b) => a - b);
      side.forEach((label, i) => (label.py = heights[i]));
    }
    this.labels = labels;
    return labels.map(({ text, one, from, py, size: tall }) => textMark(from, py, text, { ink: one.color, halo: true, size: tall, bold: true, across: "left" }));
  }

  /** How many curves run through a box.
   * @param {number[]} box */
  crossed([x0, y0, x1, y1]) {
    const unit = (this.width - this.left - this.right) / this.explorer.state.steps;
    const from = Math.max(0, Math.floor((x0 - this.left) / unit)), to = Math.min(this.explorer.state.steps, Math.ceil((x1 - this.left) / unit));
    const stride = Math.max(1, Math.floor((to - from) / 24));
    let count = 0;
    for (const { heights } of this.curves) {
      for (let k = from; k < to; k += stride) {
        const a = heights[k], b = heights[Math.min(to, k + stride)];
        if (Math.max(a, b) > y0 && Math.min(a, b) < y1) {
          count++;
          break;
        }
      }
    }
    return count;
  }
}
