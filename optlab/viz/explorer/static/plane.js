// All runs of one optimizer: the loss after the last step over its rate and its second setting as a plane
// of cells; of an optimizer without a second setting, as bars over the rate.

import { drawMarker, drawText } from "../../browser/static/drawing.js";
import { hatching } from "./field.js";
import { barHeights, bestOf } from "./notches.js";
import { numberText } from "./numbers.js";

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
    if (second) this.drawCells(pen, flat, size);
    else this.drawBars(pen, flat, size);
    const tick = { color: palette.quiet, size };
    const under = bottom + size, at = rates.indexOf(chosen.rate);
    const places = [0, rates.length - 1].filter((i) => Math.abs(i - at) * w > 52 * state.text_size || at < 0);
    for (const i of places) drawText(pen, numberText(rates[i], 6), left + (i + 0.5) * w, under, { ...tick, align: i ? "right" : "center" });
    if (at >= 0) {
      const x = Math.min(left + (at + 0.5) * w, plot.width - 22 * state.text_size);
      drawText(pen, numberText(chosen.rate, 6), x, under, { ...tick, color: palette.ink, weight: "bold", align: "center" });
    }
    drawText(pen, "rate", 0, under, tick);
    this.drawLimit(pen, size);
    const text = `after ${state.steps} steps; click to run`;
    plot.about.textContent = `${entry.name} ${text}`;
    if (best >= 0 && rates.length > 2 && [0, rates.length - 1].includes(best % rates.length)) plot.about.textContent = `${entry.name}: the best lies beyond the rate ${numberText(rates[best % rates.length], 6)}`;
    if (flat.every((/** @type {any} */ loss) => loss === undefined)) drawText(pen, "this needs runs that the kernel makes", plot.width / 2, (top + bottom) / 2, { ...tick, align: "center" });
  }

  /** @param {CanvasRenderingContext2D} pen
   * @param {(number | null | undefined)[]} flat
   * @param {number} size */
  drawCells(pen, flat, size) {
    const { explorer, shown } = this;
    const { palette } = explorer;
    const { rates, seconds, finals, second, left, bottom, w, h } = shown;
    const { entry, color } = explorer.selected;
    const heights = barHeights(flat, explorer.floor.floor, explorer.startLoss);
    const hatch = hatching(pen, palette.frame, 8), ramp = palette.ramp(color);
    finals.forEach((/** @type {any[]} */ row, /** @type {number} */ j) => row.forEach((loss, i) => {
      const x = left + i * w, y = bottom - (j + 1) * h;
      pen.fillStyle = loss === undefined ? palette.paper : loss === null ? hatch : ramp(1 - (heights[j * rates.length + i] - 0.12) / 0.88);
      pen.fillRect(x + 0.5, y + 0.5, w - 1, h - 1);
    }));
    seconds.forEach((/** @type {number} */ value, /** @type {number} */ j) => {
      const here = value === entry.settings[second];
      drawText(pen, numberText(value, 6), left - 7, bottom - (j + 0.5) * h, { size, align: "right", weight: here ? "bold" : "", color: here ? palette.ink : palette.quiet });
    });
    drawText(pen, second, 0, size * 0.75, { color: palette.quiet, size });
    this.drawLegend(pen, flat, ramp, size);
  }

  /** The one row: bars of the loss above the floor on a logarithmic axis.
   * @param {CanvasRenderingContext2D} pen
   * @param {(number | null | undefined)[]} flat
   * @param {number} size */
  drawBars(pen, flat, size) {
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
    /** @param {number} value log10 */
    const y = (value) => bottom - (Math.max(0, Math.min(1, (value - low) / (high + 0.06 * (high - low) - low)))) * (bottom - top);
    const stride = Math.max(1, Math.ceil((high - low) / Math.max(2, (bottom - top) / (42 * explorer.state.text_size))));
    for (let k = Math.ceil(low); k <= high; k++) {
      if (((k % stride) + stride) % stride) continue;
      const py = Math.round(y(k)) + 0.5;
      pen.strokeStyle = palette.rule;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(left, py);
      pen.lineTo(plot.width - 4, py);
      pen.stroke();
      drawText(pen, plot.tickText(10 ** k), left - 7, py, { color: palette.quiet, size, align: "right" });
    }
    const hatch = hatching(pen, color, 8);
    flat.forEach((loss, i) => {
      if (loss === undefined) return;
      const wide = Math.min(26, w * 0.72), x = left + (i + 0.5) * w - wide / 2;
      pen.globalAlpha = rates[i] === rate ? 1 : loss === null ? 0.5 : 0.42;
      pen.fillStyle = loss === null ? hatch : color;
      const upper = loss === null ? top : Math.min(bottom - 2, above[i] > 0 ? y(Math.log10(above[i])) : bottom);
      pen.fillRect(x, upper, wide, bottom - upper);
    });
    pen.globalAlpha = 1;
    if (flat.some((loss) => loss === null)) {
      const first = flat.indexOf(null);
      const place = left + (first + (rates.length - first) / 2) * w;
      if (flat.slice(first).every((loss) => loss === null) && rates.length - first > 2) drawText(pen, "diverges", place, (top + bottom) / 2, { color: palette.ink, halo: palette.paper, size, align: "center" });
    }
    drawText(pen, floor ? "loss above the lowest" : "loss", 0, size * 0.75, { color: palette.quiet, size });
  }

  /** @param {CanvasRenderingContext2D} pen
   * @param {(number | null | undefined)[]} flat
   * @param {(share: number) => string} ramp
   * @param {number} size */
  drawLegend(pen, flat, ramp, size) {
    const { explorer, plot, shown } = this;
    const { palette } = explorer;
    const known = /** @type {number[]} */ (flat.filter((loss) => loss !== null && loss !== undefined));
    if (!known.length) return;
    const y = plot.height - size * 1.1, x = shown.left + 92 * (size / 13), wide = Math.max(30, Math.min(150, plot.width - x - 64 * (size / 13)));
    const color = { color: palette.quiet, size };
    const worst = Math.max(...known), start = explorer.startLoss;
    drawText(pen, worst > start ? `loss ≥ ${numberText(start, 2)}` : `loss ${numberText(worst, 2)}`, x - 8, y, { ...color, align: "right" });
    for (let i = 0; i < 48; i++) {
      pen.fillStyle = ramp(i / 47);
      pen.fillRect(x + (i * wide) / 48, y - 8, wide / 48 + 0.7, 15);
    }
    drawText(pen, numberText(Math.min(...known), 2), x + wide + 8, y, color);
  }

  /** The exact limit of stability of gradient descent with momentum on a quadratic. Its name stands above
   * the cells, where no mark can cover it.
   * @param {CanvasRenderingContext2D} pen
   * @param {number} size */
  drawLimit(pen, size) {
    const { explorer, plot, shown } = this;
    const { palette, state } = explorer;
    const { entry } = explorer.selected;
    const curvature = explorer.curvature();
    if (!curvature || !["SGD", "Momentum"].includes(entry.kind) || entry.settings.use_nesterov || (entry.around || {}).kind) return;
    /** @param {number} rate */
    const across = (rate) => {
      const { rates, left, w } = shown;
      const i = rates.findIndex((/** @type {number} */ one) => one >= rate);
      if (i <= 0) return i < 0 ? left + rates.length * w : left;
      const share = Math.log(rate / rates[i - 1]) / Math.log(rates[i] / rates[i - 1]);
      return left + (i - 0.5 + share) * w;
    };
    for (const [color, width] of /** @type {[string, number][]} */ ([[palette.paper, 4.6], [palette.ink, 2.4]])) {
      pen.strokeStyle = color;
      pen.lineWidth = width;
      pen.beginPath();
      const seconds = shown.second ? shown.seconds : [0];
      seconds.forEach((/** @type {number} */ momentum, /** @type {number} */ j) => {
        const x = across((2 * (1 + momentum)) / curvature);
        for (const end of seconds.length > 1 ? [0.5] : [0, 1]) pen.lineTo(x, shown.bottom - (j + end) * shown.h);
      });
      pen.stroke();
    }
    const text = shown.second ? `limit 2 (1 + μ) / ${numberText(curvature)}` : `limit 2 / ${numberText(curvature)}`;
    drawText(pen, text, plot.width - 4, size * 0.75, { color: palette.ink, size, align: "right" });
    const wide = pen.measureText(text).width, x = plot.width - 12 - wide, reach = 20 * state.text_size;
    pen.beginPath();
    pen.moveTo(x - reach, size * 0.75);
    pen.lineTo(x, size * 0.75);
    pen.stroke();
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
    const middle = (/** @type {number} */ a, /** @type {number} */ b) => [shown.left + (a + 0.5) * shown.w, shown.second ? shown.bottom - (b + 0.5) * shown.h : shown.bottom - 1];
    const frame = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ width) => {
      pen.lineWidth = width;
      pen.strokeStyle = palette.ink;
      pen.setLineDash([]);
      pen.strokeRect(shown.left + a * shown.w, shown.bottom - (b + 1) * shown.h, shown.w, shown.h);
    };
    if (shown.best >= 0) {
      const [x, y] = middle(shown.best % shown.rates.length, Math.floor(shown.best / shown.rates.length));
      drawMarker(pen, "circle", x, y, 11, shown.second ? "rgba(0,0,0,0)" : palette.paper, palette.paper, 5);
      drawMarker(pen, "circle", x, y, 11, shown.second ? "rgba(0,0,0,0)" : palette.paper, palette.ink, 2.4);
    }
    if (i >= 0 && j >= 0) {
      const [x, y] = middle(i, j);
      if (shown.second) frame(i, j, 3);
      drawMarker(pen, chosen.style.marker, x, y, shown.second ? Math.min(12, shown.h * 0.6) : shown.best === i ? 7 : 13, chosen.color, palette.paper, shown.best === i && !shown.second ? 1 : 2);
    }
    if (this.cell) frame(this.cell.i, this.cell.j, 1.6);
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
