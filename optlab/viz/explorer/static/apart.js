// Take apart: one step of one optimizer as a picture, and each line of its formula with the numbers of
// this step, tied by color to its arrow.

import { clearCanvas, drawArrow, drawMarker, drawText, fitCanvas, placeLabel } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { angleBetween, valuesOf } from "./engine.js";
import { reader, writtenRows } from "./numbers.js";

/** Roles whose bars share one scale: they are in units of the gradient. */
const ALIKE = ["gradient", "memory", "scale"];

export class TakeApart {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.element = make("div", { class: "apart", role: "table", "aria-label": "the step, line by line" });
    this.hovered = "";
    this.key = "";
  }

  /** The color of a role.
   * @param {string} role */
  colorOf(role) {
    const { palette, selected } = this.explorer;
    if (role === "update") return selected.color;
    return { gradient: palette.ink, memory: palette.memory, scale: palette.scale, square: palette.scale }[role] || palette.quiet;
  }

  /** The step that is shown, at least the first. */
  get step() {
    const { selected, state } = this.explorer;
    return selected.run ? Math.max(1, Math.min(state.step, selected.run.last)) : 0;
  }

  /** The lines for every coordinate, and a reader of the numbers of each.
   * @returns {{lines: any[][], readers: ((name: string) => number)[], rule: any} | null} */
  lines() {
    const { explorer, step } = this;
    const { selected, engine, axes } = explorer;
    const rule = engine.rule(selected.entry);
    if (!selected.run || !selected.run.path || !rule || selected.run.last < 1) return null;
    const values = axes.map((/** @type {string} */ _, /** @type {number} */ c) => valuesOf(selected.run, { ...rule.formula, initial: rule.initial }, selected.entry, selected.rate, step, c));
    return {
      rule: rule.formula,
      lines: axes.map((/** @type {string} */ axis, /** @type {number} */ c) => writtenRows(rule.formula, values[c], axis)),
      readers: values.map((/** @type {any} */ each) => reader(rule.formula, each)),
    };
  }

  /** What the numbers of the step say, in a sentence. */
  claim() {
    const { explorer, step } = this;
    const { selected } = explorer;
    const { run, entry } = selected;
    if (!run || run.last < 1 || explorer.network) return "";
    const row = (/** @type {Float64Array} */ rows) => Array.from(rows.subarray((step - 1) * run.n, step * run.n));
    const angle = angleBetween(row(run.update), row(run.gradient).map((g) => -g));
    if (Number.isNaN(angle)) return `${entry.name} does not move in step ${step}.`;
    const memory = Object.keys(run.slots).some((name) => ["velocity", "moment1"].includes(name));
    if (angle > 90) return memory ? `The gradient says turn back. ${entry.name}’s memory carries it on.` : `${entry.name} goes uphill in step ${step}.`;
    if (angle < 1) return `${entry.name} goes straight downhill.`;
    return `${entry.name} turns ${Math.round(angle)}° away from straight downhill.`;
  }

  draw() {
    const { explorer } = this;
    const found = this.lines();
    if (!found) {
      this.element.replaceChildren(make("p", { class: "quiet", text: explorer.selected.run ? "No step has been taken: press play." : "The numbers of this run come from the kernel." }));
      return;
    }
    const { lines, readers } = found;
    const values = (/** @type {any} */ line) => readers.map((read) => read(line.result));
    const largest = { alike: 0, update: 0 };
    for (const line of lines[0]) {
      const size = Math.max(...values(line).map(Math.abs).filter(Number.isFinite), 0);
      if (ALIKE.includes(line.role)) largest.alike = Math.max(largest.alike, size);
      else if (line.role === "update") largest.update = Math.max(largest.update, size);
    }
    const cells = [make("div", { class: "apart-head" }, make("span"), ...explorer.axes.map((/** @type {string} */ axis) => make("span", { text: `along ${axis}` })))];
    lines[0].forEach((line, i) => {
      const color = this.colorOf(line.role);
      const bars = ALIKE.includes(line.role) ? largest.alike : line.role === "update" ? largest.update : 0;
      const name = make("div", { class: "apart-name", style: `color: ${color}` }, make("b", { text: line.role === "position" ? "position" : line.label }));
      const numbers = lines.map((each, c) => make("div", { class: "apart-cell" }, ...this.formula(each[i], bars ? this.bar(values(line)[c], bars, color) : null)));
      cells.push(make("div", {
        class: `apart-line${this.hovered && this.hovered !== line.role ? " faded" : ""}`, "data-role": line.role, role: "row",
        on: { pointerenter: () => this.hover(line.role), pointerleave: () => this.hover("") },
      }, name, ...numbers));
    });
    cells.push(make("p", { class: "apart-note quiet", text: "Bars of gradient, memory and scale share one scale; those of the update have their own." }));
    const key = cells.map((cell) => cell.textContent).join("|") + explorer.theme;
    if (key === this.key && this.element.childElementCount) return this.mark();
    this.key = key;
    this.element.replaceChildren(...cells);
    this.mark();
  }

  mark() {
    for (const line of this.element.querySelectorAll("[data-role]")) line.classList.toggle("ol-faded", Boolean(this.hovered) && line.dataset.role !== this.hovered);
  }

  /** @param {string} role */
  hover(role) {
    this.hovered = role;
    this.mark();
    this.explorer.later("top");
  }

  /** A line with its numbers in the colors of what they are: how the result comes about, then the
   * result with its bar.
   * @param {any} line
   * @param {HTMLElement | null} bar */
  formula(line, bar) {
    const { roles } = this.explorer.options;
    const shown = (/** @type {any} */ piece) => {
      if (!piece.name && !piece.bold && !piece.raised) return piece.text;
      const role = roles[piece.name];
      const style = role && line.role !== "position" ? `color: ${this.colorOf(role)}` : false;
      return make(piece.raised ? "sup" : piece.bold ? "b" : "span", { text: piece.text, style });
    };
    const at = line.pieces.findIndex((/** @type {any} */ piece) => piece.bold);
    if (at < 0 || !bar) return [make("div", { class: "formula" }, ...line.pieces.map(shown))];
    const how = line.pieces.slice(0, at).map((/** @type {any} */ piece, /** @type {number} */ i) => (i === at - 1 && !piece.name ? { ...piece, text: piece.text.replace(/ = $/, "") } : piece));
    const plain = how.length === 1 && !how[0].name; // "g": there is nothing to compute
    const first = plain ? null : make("div", { class: "formula" }, ...how.map(shown));
    return [first, make("div", { class: "formula result" }, make("span", { class: "equals" }, plain ? `${how[0].text} = ` : "= ", ...line.pieces.slice(at).map(shown)), bar)];
  }

  /** @param {number} value
   * @param {number} largest
   * @param {string} color */
  bar(value, largest, color) {
    const share = Number.isFinite(value) && largest ? Math.max(-1, Math.min(1, value / largest)) : 0;
    const left = share < 0 ? 50 + 50 * share : 50;
    return make("div", { class: "bar-line" }, make("i", { style: `left: ${left}%; width: ${50 * Math.abs(share)}%; background: ${color}` }));
  }

  /** The part of the plane around the step.
   * @param {any} map */
  box(map) {
    const { explorer, step } = this;
    const { run } = explorer.selected;
    if (!run || !run.path || run.n !== 2 || run.last < 1) return null;
    const at = [0, 1].map((c) => run.path[2 * (step - 1) + c]), u = [0, 1].map((c) => run.update[2 * (step - 1) + c]);
    const size = Math.hypot(...u);
    if (![...at, size].every(Number.isFinite)) return null;
    const wanted = Math.max(size, 1e-9 * Math.max(1, Math.abs(at[0]), Math.abs(at[1]))) / (0.2 * Math.min(map.width, map.height));
    const unit = 2 ** Math.round(Math.log2(wanted)); // steps of two, so that the ground rests while playing
    return [at[0] - (unit * map.width) / 2, at[0] + (unit * map.width) / 2, at[1] - (unit * map.height) / 2, at[1] + (unit * map.height) / 2];
  }

  /** The step with its arrows, over the map.
   * @param {any} map */
  drawOn(map) {
    const { explorer, step } = this;
    const { palette, state, selected } = explorer;
    const pen = fitCanvas(map.top, map.width, map.height);
    clearCanvas(pen);
    const size = 15 * state.text_size;
    drawText(pen, `${selected.entry.name}, step ${step}`, 14, size * 1.1, { color: palette.ink, halo: palette.mapHigh, size, weight: "bold" });
    const found = this.lines();
    const { run } = selected;
    if (!found || run.n !== 2) return;
    const outline = map.outline(run);
    const path = new Path2D();
    map.trace(path, outline.places, outline.steps.findIndex((/** @type {number} */ k) => k >= step) + 1 || outline.places.length);
    pen.strokeStyle = selected.color;
    pen.lineWidth = 2.4;
    pen.globalAlpha = 0.75;
    pen.stroke(path);
    pen.globalAlpha = 1;
    const from = map.place(run, run.path, step - 1), to = map.place(run, run.path, step);
    if (!from || !to) return;
    const unit = (map.box[1] - map.box[0]) / map.width;
    const vector = (/** @type {string} */ role, /** @type {number} */ sign) => {
      const line = [...found.lines[0]].reverse().find((one) => one.role === role && one.result);
      return line ? found.readers.map((read) => sign * read(line.result)) : null;
    };
    /** @type {[string, string, number[] | null, number][]} */
    const arrows = [["gradient", "−gradient", vector("gradient", -1), 2.6], ["memory", "memory", vector("memory", -1), 3.4]];
    const longest = Math.max(...arrows.map(([, , v]) => (v && v.every(Number.isFinite) ? Math.hypot(...v) : 0)));
    const reach = 0.32 * Math.min(map.width, map.height);
    /** @type {any[]} */
    const ends = [];
    for (const [role, text, v, thick] of arrows) {
      if (v && longest > 0 && v.every(Number.isFinite)) ends.push({ role, text, thick, end: [from[0] + (v[0] / longest) * reach, from[1] - (v[1] / longest) * reach] });
    }
    const update = [0, 1].map((c) => run.update[2 * (step - 1) + c]);
    ends.push({ role: "update", text: "update", thick: 6, end: [from[0] + update[0] / unit, from[1] - update[1] / unit] });
    const taken = [[0, 0, map.width * 0.6, size * 2.2], [0, map.height - size * 2, map.width * 0.6, map.height]];
    for (const { role, thick, end } of ends) {
      pen.globalAlpha = this.hovered && this.hovered !== role ? 0.2 : 1;
      drawArrow(pen, from[0], from[1], end[0], end[1], this.colorOf(role), palette.mapHigh, this.hovered === role ? thick + 2.4 : thick);
    }
    pen.globalAlpha = 1;
    drawMarker(pen, "circle", from[0], from[1], 13, palette.paper, selected.color, 3);
    const landed = map.place(run, run.path, step);
    if (landed) drawMarker(pen, selected.style.marker, landed[0], landed[1], 15, selected.color, palette.paper, 1.5);
    const along = ends.flatMap(({ end }) => Array.from({ length: 16 }, (_, k) => [from[0] + ((end[0] - from[0]) * k) / 15, from[1] + ((end[1] - from[1]) * k) / 15]));
    for (const { role, text, end } of ends) {
      const spot = placeLabel(pen, text, end[0], end[1], size, map.width, map.height, taken, 10, along);
      drawText(pen, text, spot.cx, spot.cy, { color: this.colorOf(role), halo: palette.mapHigh, size, weight: "bold", align: "center" });
    }
    const before = placeLabel(pen, `step ${step - 1}`, from[0], from[1], size, map.width, map.height, taken, 10, along);
    drawText(pen, `step ${step - 1}`, before.cx, before.cy, { color: palette.quiet, halo: palette.mapHigh, size: size * 0.95, align: "center" });
    drawText(pen, "update: true length", 14, map.height - size, { color: palette.quiet, halo: palette.mapHigh, size: size * 0.92 });
  }
}
