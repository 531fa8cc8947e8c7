// A learning-rate range test, as optlab.lab.lr_range_test: one run whose rate grows with every step,
// and each rate alone for some steps from the start.

import { drawMarks } from "../../browser/static/canvas.js";
import { between, clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, pointMark, ruleMark, textMark } from "../../browser/static/marks.js";
import { Labels } from "./labels.js";
import { numberText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const STEPS = 200, LOW = 1e-5, HIGH = 10, ALONE = 50, TOO_HIGH = 4;

/** Where the rates of a test end, what is suggested, and the highest one that lowers the loss.
 * @param {number[]} rates
 * @param {number[]} ends the loss after some steps at each rate alone; infinite where it diverges
 * @param {number} first the loss of the start */
export function suggestionOf(rates, ends, first) {
  const above = ends.findIndex((loss) => !(loss <= first));
  const highest = rates[above < 0 ? rates.length - 1 : Math.max(above - 1, 0)];
  let best = 0;
  rates.forEach((rate, i) => {
    if (rate <= Math.max(highest / 2, rates[0]) && ends[i] < ends[best]) best = i;
  });
  return { highest, suggestion: Number(rates[best].toPrecision(2)) };
}

export class RatesPanel {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.title = make("div", { class: "beside-title" });
    this.canvas = make("canvas", { class: "beside-canvas", role: "img" });
    this.button = make("button", { type: "button", class: "item", on: { click: () => explorer.setRate(explorer.selected.entry.name, this.found.suggestion) } });
    this.note = make("p", { class: "beside-note" });
    this.element = make("div", { hidden: true }, make("div", { class: "beside-line" }, this.title, this.button), this.canvas, this.note);
    /** @type {any} */
    this.found = null;
  }

  /** The test of the chosen optimizer, or why there is none. */
  test() {
    const { engine, state, selected } = this.explorer;
    const { entry } = selected;
    const why = engine.whyNot({ ...state, steps: STEPS }, entry);
    if (why) return { why };
    if (engine.conditions(state).sigma > 0) return { why: "with noise the losses need a mean; ol.lab.lr_range_test(...) has it" };
    const key = JSON.stringify(["range", state.problem, state.start, entry.name, entry.kind, entry.settings, entry.around]);
    return engine.keep(key, () => {
      const rates = Array.from({ length: STEPS }, (_, k) => LOW * (HIGH / LOW) ** (k / (STEPS - 1)));
      const run = engine.rising(state, entry, rates);
      let count = 0;
      for (let lowest = Infinity; count < STEPS && Number.isFinite(run.loss[count]); count++) {
        lowest = Math.min(lowest, run.loss[count]);
        if (count && run.loss[count] > lowest + (TOO_HIGH - 1) * Math.abs(lowest)) break;
      }
      const last = new Float64Array(state.start.length);
      const ends = rates.map((rate) => {
        const loss = engine.ends({ ...state, steps: ALONE }, entry, rate)(state.start, last);
        return Number.isFinite(loss) ? loss : Infinity;
      });
      return { rates, loss: Array.from(run.loss.subarray(0, count)), ends, ...suggestionOf(rates, ends, run.loss[0]) };
    });
  }

  draw() {
    const { selected } = this.explorer;
    this.found = this.test();
    const { why, suggestion, highest } = this.found;
    this.canvas.hidden = this.button.hidden = Boolean(why);
    this.title.textContent = `${selected.entry.name}: loss after ${ALONE} steps`;
    if (why) {
      this.note.textContent = `There is no test here: ${why}.`;
      return;
    }
    this.button.textContent = `use ${numberText(suggestion, 2)}`;
    this.button.setAttribute("aria-label", `use rate ${numberText(suggestion, 2)}`);
    this.button.title = `Run ${selected.entry.name} at the suggested rate`;
    this.note.textContent = `Up to ${numberText(highest, 2)}, ${ALONE} steps lower the loss; suggested is the best rate up to half of that. Pale: one run whose rate grows; it shows the limit too late.`;
    this.drawChart();
  }

  drawChart() {
    const { explorer, found } = this;
    const { palette, state, selected, floor } = explorer;
    const { rates, loss, ends, suggestion, highest } = found;
    const size = 13 * state.text_size;
    const width = explorer.plot.element.clientWidth, height = explorer.beside.room(this.canvas);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = fitCanvas(this.canvas, width, height);
    clearCanvas(pen);
    // Above the known minimum, or above the lowest loss here.
    const base = floor.known ? floor.floor : Math.min(...ends, ...loss) - 1e-3 * Math.abs(loss[0] || 1);
    const high = Math.log10(Math.max(loss[0] - base, 1e-12)) + 0.4;
    const bend = (/** @type {number} */ value) => Math.log10(Math.max(value - base, 1e-300));
    const low = Math.max(high - 12, Math.min(...[...ends.filter(Number.isFinite), ...loss].map(bend)) - 0.3);
    const left = 46 * state.text_size, right = 16, top = 8, bottom = height - 24 * state.text_size;
    const x = (/** @type {number} */ rate) => left + (Math.log10(rate / LOW) / Math.log10(HIGH / LOW)) * (width - left - right);
    const y = (/** @type {number} */ value) => bottom - ((Math.max(low, bend(value)) - low) / (high - low)) * (bottom - top);
    // Losses are drawn above the base, over the rate: both axes are logarithmic.
    const frame = { left, top, width: width - left - right, height: bottom - top, x: { low: Math.log10(LOW), high: Math.log10(HIGH), scale: "log" }, y: { low, high, scale: "log" }, paper: palette.paper };
    /** @type {Mark[]} */
    const marks = [];
    /** @type {Mark[]} */
    const notes = [];
    const quiet = { ink: palette.quiet, size };
    const ticks = new Labels(pen, width, height);
    const stride = Math.max(1, Math.ceil((high - low) / 4));
    for (let power = Math.ceil(low); power <= high; power++) {
      if (power % stride) continue;
      marks.push(ruleMark("y", 10 ** power, palette.rule));
      notes.push(...ticks.offer(textMark(left - 7, Math.round(bottom - ((power - low) / (high - low)) * (bottom - top)) + 0.5, explorer.plot.tickText(10 ** power), { ...quiet, across: "right" })));
    }
    for (const rate of [1e-4, 1e-2, 1]) notes.push(...ticks.offer(textMark(x(rate), height - size * 0.6, numberText(rate, 6), quiet)));
    const labels = new Labels(pen, width, bottom);
    labels.boxes.push([0, 0, left, height]);
    for (const [values, opacity, thick] of /** @type {[number[], number, number][]} */ ([[loss, 0.4, 1.8], [ends, 1, 2.6]])) {
      const heights = Float64Array.from(values, (value) => (!Number.isFinite(value) || bend(value) > high + 2 ? NaN : Math.max(value - base, 10 ** low)));
      marks.push({ ...lineMark(rates.slice(0, values.length), heights, { color: selected.color, width: thick, opacity }), clip: true });
      labels.keepOff(between(values.map((value, i) => (Number.isNaN(heights[i]) ? null : [x(rates[i]), Math.max(top, y(value))])), 4));
    }
    const at = (/** @type {number} */ rate) => ends[rates.reduce((/** @type {number} */ best, /** @type {number} */ one, /** @type {number} */ i) => (Math.abs(Math.log(one / rate)) < Math.abs(Math.log(rates[best] / rate)) ? i : best), 0)];
    const texts = /** @type {[number, string, string][]} */ ([[suggestion, `suggestion ${numberText(suggestion, 2)}`, numberText(suggestion, 2)], [highest, `still lower at ${numberText(highest, 2)}`, `up to ${numberText(highest, 2)}`]]);
    for (const [rate] of texts) {
      notes.push(pointMark(x(rate), y(at(rate)), "circle", 11, palette.paper, palette.ink, 2.2));
      labels.keepFree(x(rate), y(at(rate)), 8);
    }
    // Where the whole text has no place, a short one may.
    for (const [rate, ...said] of texts) {
      for (const text of said) {
        const placed = labels.beside(text, [[x(rate), y(at(rate))]], { ink: palette.ink, size }, { distance: 9, most: 30 });
        notes.push(...placed);
        if (placed.length) break;
      }
    }
    drawMarks(pen, frame, marks);
    drawMarks(pen, pixelFrame(width, height, palette.paper), notes);
    this.canvas.setAttribute("aria-label", `Loss over the rate. Suggestion ${numberText(suggestion, 2)}, still lower at ${numberText(highest, 2)}.`);
  }
}
