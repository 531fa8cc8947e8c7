// All runs of one optimizer: the loss after the last step over its rate and its second setting as a plane
// of cells; of an optimizer without a second setting, as bars over the rate.

import { drawMarks } from "../../browser/static/canvas.js";
import { FONTS } from "../../browser/static/drawing.js";
import { boxesMark, lineMark, pointMark, ruleMark, textMark } from "../../browser/static/marks.js";
import { Labels } from "./labels.js";
import { barHeights, bestOf } from "./notches.js";
import { numberText, stepsText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

export class Plane {
  /** @param {any} plot */
  constructor(plot) {
    this.plot = plot;
    this.explorer = plot.explorer;
    /** What was drawn last. @type {any} */
    this.shown = null;
    /** The cell under the pointer. @type {{i: number, j: number} | null} */
    this.cell = null;
  }

  /** @param {CanvasRenderingContext2D} pen */
  draw(pen) {
    const { explorer, plot } = this;
    const { palette, state } = explorer;
    const chosen = explorer.selected, { entry } = chosen;
    const size = 13 * state.text_size;
    const second = explorer.second(entry), seconds = second ? explorer.secondNotches(entry) : [0];
    const { rates, finals } = explorer.allRuns(entry);
    const flat = finals.flat(), best = explorer.open ? -1 : bestOf(flat);
    const left = Math.round((second ? 46 : 50) * state.text_size), top = size * 1.7, bottom = plot.height - size * (second ? 3.9 : 1.9);
    const w = (plot.width - left - 4) / rates.length, h = (bottom - top) / seconds.length;
    this.shown = { rates, second, seconds, finals, left, top, bottom, w, h, best };
    const marks = second ? this.cellMarks(pen, flat, size) : this.barMarks(pen, flat, size);
    const tick = { ink: palette.quiet, size };
    const under = bottom + size, at = rates.indexOf(chosen.rate);
    const places = [0, rates.length - 1].filter((i) => Math.abs(i - at) * w > 52 * state.text_size || at < 0);
    for (const i of places) marks.push(textMark(left + (i + 0.5) * w, under, numberText(rates[i], 6), { ...tick, across: i ? "right" : "center" }));
    if (at >= 0) {
      const x = Math.min(left + (at + 0.5) * w, plot.width - 22 * state.text_size);
      marks.push(textMark(x, under, numberText(chosen.rate, 6), { ...tick, ink: palette.ink, bold: true }));
    }
    marks.push(textMark(0, under, "rate", { ...tick, across: "left" }), ...this.limitMarks(pen, size));
    const text = `after ${stepsText(state.steps)}; click to run`;
    plot.about.textContent = `${entry.name} ${text}`;
    if (best >= 0 && rates.length > 2 && [0, rates.length - 1].includes(best % rates.length)) plot.about.textContent = `${entry.name}: the best lies beyond the rate ${numberText(rates[best % rates.length], 6)}`;
    if (flat.every((/** @type {any} */ loss) => loss === undefined)) marks.push(textMark(plot.width / 2, (top + bottom) / 2, "this needs runs that the kernel makes", tick));
    drawMarks(pen, plot.pixels, marks);
  }

  /** The cells as marks see them: the number of the rate across, that of the second setting up.
   * @returns {import("../../browser/static/marks.js").Frame} */
  get frame() {
    const { rates, seconds, left, bottom, w, h } = this.shown, rows = seconds.length;
    return { left, top: bottom - rows * h, width: rates.length * w, height: rows * h, x: { low: 0, high: rates.length }, y: { low: 0, high: rows }, paper: this.explorer.palette.paper };
  }

  /** Draw the cells.
   * @param {CanvasRenderingContext2D} pen
   * @param {(number | null | undefined)[]} flat
   * @param {number} size
   * @returns {Mark[]} what is written beside them, in pixels */
  cellMarks(pen, flat, size) {
    const { explorer, shown } = this;
    const { palette } = explorer;
    const { rates, seconds, finals, second, left, bottom, w, h } = shown;
    const { entry, color } = explorer.selected;
    const heights = barHeights(flat, explorer.floor.floor, explorer.startLoss);
    const ramp = palette.ramp(color), half = [0.5 / w, 0.5 / h]; // a pixel is free between two cells
    const fills = finals.flatMap((/** @type {any[]} */ row, /** @type {number} */ j) => row.map((loss, i) => {
      if (loss === null) return { color: palette.paper, pattern: "/", ink: palette.frame };
      return { color: loss === undefined ? palette.paper : ramp(1 - (heights[j * rates.length + i] - 0.12) / 0.88) };
    }));
    const [x0, y0, x1, y1] = [half[0], half[1], 1 - half[0], 1 - half[1]].map((shift, k) => Float64Array.from(fills, (_, at) => shift + (k % 2 ? Math.floor(at / rates.length) : at % rates.length)));
    drawMarks(pen, this.frame, [{ kind: "Boxes", x0, y0, x1, y1, fills }]);
    /** @type {Mark[]} */
    const marks = [];
    const labels = new Labels(pen, explorer.plot.width, explorer.plot.height), chosen = entry.settings[second];
    // In low rows not all values have room: the chosen one has it first.
    for (const value of [...seconds].sort((a, b) => Number(b === chosen) - Number(a === chosen))) {
      const here = value === chosen;
      marks.push(...labels.offer(textMark(left - 7, bottom - (seconds.indexOf(value) + 0.5) * h, numberText(value, 6), { size, across: "right", bold: here, ink: here ? palette.ink : palette.quiet })));
    }
    marks.push(textMark(0, size * 0.75, second, { ink: palette.quiet, size, across: "left" }));
    return [...marks, ...this.legendMarks(flat, ramp, size)];
  }

  /** Draw the one row: bars of the loss above the floor on a logarithmic axis.
   * @param {CanvasRenderingContext2D} pen
   * @param {(number | null | undefined)[]} flat
   * @param {number} size
   * @returns {Mark[]} what is written beside them, in pixels */
  barMarks(pen, flat, size) {
    const { explorer, plot, shown } = this;
    const { palette } = explorer;
    const { rates, left, top, bottom, w } = shown;
    const { color, rate } = explorer.selected;
    const { floor } = explorer.floor, start = explorer.startLoss;
    const above = flat.map((loss) => (typeof loss === "number" ? Math.max(loss - floor, 0) : NaN));
    const positive = above.filter((value) => value > 0);
    // What ends above the start has the height of the start: others would look alike beside it.
    const cap = start > floor ? start - floor : Math.max(...positive, 1e-300);
    const high = Math.log10(Math.min(Math.max(...positive, 1e-300), cap)), lowest = Math.log10(Math.min(...positive, 10 ** high));
    const low = Math.min(Math.max(lowest, high - 30), high - 1) - 0.05 * Math.max(1, high - lowest);
    const upper = high + 0.06 * (high - low);
    const frame = { left, top, width: plot.width - 4 - left, height: bottom - top, x: { low: 0, high: (plot.width - 4 - left) / w }, y: { low, high: upper }, paper: palette.paper };
    /** @type {Mark[]} */
    const bars = [];
    /** @type {Mark[]} */
    const marks = [];
    /** @param {number} value log10 */
    const y = (value) => bottom - ((value - low) / (upper - low)) * (bottom - top);
    const stride = Math.max(1, Math.ceil((high - low) / Math.max(2, (bottom - top) / (42 * explorer.state.text_size))));
    for (let k = Math.ceil(low); k <= high; k++) {
      if (((k % stride) + stride) % stride) continue;
      bars.push(ruleMark("y", k, palette.rule));
      marks.push(textMark(left - 7, Math.round(y(k)) + 0.5, plot.tickText(10 ** k), { ink: palette.quiet, size, across: "right" }));
    }
    const least = low + (2 * (upper - low)) / (bottom - top); // two pixels at least are seen
    flat.forEach((loss, i) => {
      if (loss === undefined) return;
      const half = Math.min(26, w * 0.72) / w / 2, x = i + 0.5;
      const end = loss === null ? upper : Math.max(least, Math.min(upper, above[i] > 0 ? Math.log10(above[i]) : low));
      const fill = loss === null ? { color: "none", pattern: "/", ink: color } : { color };
      bars.push(boxesMark([x - half], [low], [x + half], [end], fill, rates[i] === rate ? 1 : loss === null ? 0.5 : 0.42));
    });
    drawMarks(pen, frame, bars);
    if (flat.some((loss) => loss === null)) {
      const first = flat.indexOf(null);
      const place = left + (first + (rates.length - first) / 2) * w;
      if (flat.slice(first).every((loss) => loss === null) && rates.length - first > 2) marks.push(textMark(place, (top + bottom) / 2, "diverges", { ink: palette.ink, halo: true, size }));
    }
    marks.push(textMark(0, size * 0.75, floor ? "loss above the lowest" : "loss", { ink: palette.quiet, size, across: "left" }));
    return marks;
  }

  /** The colors of cells, with the losses at both ends.
   * @param {(number | null | undefined)[]} flat
   * @param {(share: number) => string} ramp
   * @param {number} size
   * @returns {Mark[]} */
  legendMarks(flat, ramp, size) {
    const { explorer, plot, shown } = this;
    const { palette } = explorer;
    const known = /** @type {number[]} */ (flat.filter((loss) => loss !== null && loss !== undefined));
    if (!known.length) return [];
    const y = plot.height - size * 1.1, x = shown.left + 92 * (size / 13), wide = Math.max(30, Math.min(150, plot.width - x - 64 * (size / 13)));
    const look = { ink: palette.quiet, size };
    const worst = Math.max(...known), start = explorer.startLoss;
    const places = Array.from({ length: 48 }, (_, i) => x + (i * wide) / 48);
    return [
      textMark(x - 8, y, worst > start ? `loss ≥ ${numberText(start, 2)}` : `loss ${numberText(worst, 2)}`, { ...look, across: "right" }),
      { kind: "Boxes", x0: places, y0: places.map(() => y + 7), x1: places.map((left) => left + wide / 48 + 0.7), y1: places.map(() => y - 8), fills: places.map((_, i) => ({ color: ramp(i / 47) })) },
      textMark(x + wide + 8, y, numberText(Math.min(...known), 2), { ...look, across: "left" }),
    ];
  }

  /** The exact limit of stability of gradient descent with momentum on a quadratic. Its name stands above
   * the cells, where no mark can cover it.
   * @param {CanvasRenderingContext2D} pen that measures
   * @param {number} size
   * @returns {Mark[]} */
  limitMarks(pen, size) {
    const { explorer, plot, shown } = this;
    const { palette, state } = explorer;
    const { entry } = explorer.selected;
    const curvature = explorer.curvature();
    if (!curvature || !["SGD", "Momentum"].includes(entry.kind) || entry.settings.use_nesterov || (entry.around || {}).kind) return [];
    /** @param {number} rate */
    const across = (rate) => {
      const { rates, left, w } = shown;
      const i = rates.findIndex((/** @type {number} */ one) => one >= rate);
      if (i <= 0) return i < 0 ? left + rates.length * w : left;
      const share = Math.log(rate / rates[i - 1]) / Math.log(rates[i] / rates[i - 1]);
      return left + (i - 0.5 + share) * w;
    };
    const seconds = shown.second ? shown.seconds : [0], rows = seconds.length;
    const places = seconds.flatMap((/** @type {number} */ momentum, /** @type {number} */ j) => {
      const x = across((2 * (1 + momentum)) / curvature);
      return (rows > 1 ? [0.5] : [0, 1]).map((end) => [x, shown.bottom - (j + end) * shown.h]);
    });
    const [xs, ys] = [0, 1].map((c) => places.map((/** @type {number[]} */ place) => place[c]));
    const text = shown.second ? `limit 2 (1 + μ) / ${numberText(curvature)}` : `limit 2 / ${numberText(curvature)}`;
    pen.font = `${size}px ${FONTS}`;
    const end = plot.width - 12 - pen.measureText(text).width, reach = 20 * state.text_size;
    return [
      lineMark(xs, ys, { color: palette.paper, width: 4.6 }), lineMark(xs, ys, { color: palette.ink, width: 2.4 }),
      textMark(plot.width - 4, size * 0.75, text, { ink: palette.ink, size, across: "right" }),
      lineMark([end - reach, end], [size * 0.75, size * 0.75], { color: palette.ink, width: 2.4 }),
    ];
  }

  /** The cells that are chosen, best, and under the pointer.
   * @param {CanvasRenderingContext2D} pen */
  drawMarks(pen) {
    const { explorer, shown } = this;
    if (!shown) return;
    const { palette } = explorer;
    const chosen = explorer.selected;
    const i = shown.rates.indexOf(chosen.rate);
    const j = shown.second ? shown.seconds.indexOf(chosen.entry.settings[shown.second]) : 0;
    const low = shown.second ? 0.5 : 1 / shown.h;
    /** @type {Mark[]} */
    const marks = [];
    const frameOf = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ width) => marks.push({ kind: "Boxes", x0: [a], y0: [b], x1: [a + 1], y1: [b + 1], fills: [{ color: "none" }], edge: { color: palette.ink, width } });
    if (shown.best >= 0) {
      const x = (shown.best % shown.rates.length) + 0.5, y = Math.floor(shown.best / shown.rates.length) + low;
      for (const [color, width] of /** @type {[string, number][]} */ ([[palette.paper, 5], [palette.ink, 2.4]])) marks.push(pointMark(x, y, "circle", 11, shown.second ? "none" : palette.paper, color, width));
    }
    if (i >= 0 && j >= 0) {
      if (shown.second) frameOf(i, j, 3);
      marks.push(pointMark(i + 0.5, j + low, chosen.style.marker, shown.second ? Math.min(12, shown.h * 0.6) : shown.best === i ? 7 : 13, chosen.color, palette.paper, shown.best === i && !shown.second ? 1 : 2));
    }
    if (this.cell) frameOf(this.cell.i, this.cell.j, 1.6);
    drawMarks(pen, this.frame, marks);
  }

  /** @param {PointerEvent} event */
  cellAt(event) {
    const { shown, plot } = this;
    if (!shown) return null;
    const bounds = plot.top.getBoundingClientRect();
    const i = Math.floor((event.clientX - bounds.left - shown.left) / shown.w);
    const j = Math.floor((shown.bottom - (event.clientY - bounds.top)) / shown.h);
    return i >= 0 && j >= 0 && i < shown.rates.length && j < shown.seconds.length ? { i, j } : null;
  }

  /** @param {{i: number, j: number} | null} cell */
  choose(cell) {
    const { shown } = this;
    if (cell) this.explorer.chooseCell(shown.rates[cell.i], shown.second && shown.seconds[cell.j]);
  }

  /** @param {{i: number, j: number} | null} cell */
  hover(cell) {
    if (!cell && !this.cell) return;
    if (cell && this.cell && cell.i === this.cell.i && cell.j === this.cell.j) return;
    this.cell = cell;
    const { shown, explorer, plot } = this;
    if (!cell || !shown || plot.what !== "plane") {
      explorer.showGhost(null);
      return;
    }
    const { entry } = explorer.selected;
    const loss = shown.finals[cell.j][cell.i];
    const where = `rate ${numberText(shown.rates[cell.i], 6)}${shown.second ? `, ${shown.second} ${numberText(shown.seconds[cell.j], 6)}` : ""}`;
    plot.about.textContent = `${where}: ${loss === null ? "diverges" : loss === undefined ? "not known here" : `loss ${numberText(loss)}`}`;
    explorer.showGhost(entry, shown.rates[cell.i], shown.second ? { [shown.second]: shown.seconds[cell.j] } : {});
  }

  /** @param {KeyboardEvent} event
   * @returns {boolean} */
  onKey(event) {
    const { shown, explorer } = this;
    /** @type {Record<string, number[]>} */
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    if (!move || !shown) return false;
    const i = shown.rates.indexOf(explorer.selected.rate) + move[0];
    const now = shown.second ? shown.seconds.indexOf(explorer.selected.entry.settings[shown.second]) : 0;
    const j = Math.max(0, Math.min(shown.seconds.length - 1, now + move[1]));
    this.choose({ i: Math.max(0, Math.min(shown.rates.length - 1, i)), j });
    return true;
  }
}
