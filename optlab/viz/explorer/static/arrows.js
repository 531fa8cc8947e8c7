// The picture of a step: its arrows over the part of the map around it, and for a function of one
// variable the curve with its tangent.

import { drawMarks } from "../../browser/static/canvas.js";
import { between, clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { lineMark, pointMark, textMark } from "../../browser/static/marks.js";
import { Labels } from "./labels.js";
import { numberText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

/** An arrow in pixels.
 * @typedef {{line: string, text: string, color: string, from: number[], to: number[], thick: number, dotted?: boolean, small?: boolean}} Arrow */

const RECENT = 12; // so many steps before the one that is shown are drawn in full
const REACH = 0.34; // of the map: the longest arrow in units of the gradient

const ARROWS = 3; // so much more than off a path a label keeps off arrows
/** How names of arrows stand at them: where there is no room their lines name them; those of parts and the
 * words beside need not be there either. */
const AT_ARROWS = { bold: { distance: 11, mark: 5, always: false }, end: { distance: 11, always: false }, plain: { distance: 11, most: 90 } };

/** The parts of a sum that are drawn head to tail.
 * @param {any} row
 * @returns {string[][]} */
export const partsOf = (row) => row.parts.filter((/** @type {string[]} */ [, role]) => role);

export class ArrowPicture {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.hovered = "";
  }

  /** @returns {number} */
  get step() {
    return 0;
  }

  /** @returns {any} */
  lines() {
    return null;
  }

  /** @param {string} role
   * @returns {string} */
  colorOf(role) {
    return role;
  }

  /** The part of the plane, or of the curve, around the step.
   * @param {any} map */
  box(map) {
    const { explorer, step } = this;
    const { run } = explorer.selected;
    if (!run || !run.path || run.last < 1) return null;
    const { n } = run;
    const rows = (/** @type {Float64Array} */ of, /** @type {number} */ k) => Array.from(of.subarray(n * k, n * (k + 1)));
    const at = rows(run.path, step - 1), u = rows(run.update, step - 1);
    // What wrappers add belongs to the picture.
    const moved = rows(run.path, step).map((x, c) => x - at[c]);
    const size = Math.max(Math.hypot(...u), Math.hypot(...moved) || 0);
    if (![...at, size].every(Number.isFinite)) return null;
    const least = 1e-9 * Math.max(1, ...at.map(Math.abs));
    // Steps of two, so that the ground rests while playing; an update of zero has its surroundings.
    const wanted = (size > least ? size : this.usualSize(run) || least) / (n === 1 ? 0.3 * map.width : 0.2 * Math.min(map.width, map.height));
    const unit = 2 ** Math.round(Math.log2(wanted));
    const x = [at[0] - (unit * map.width) / 2, at[0] + (unit * map.width) / 2];
    if (n === 2) return [...x, at[1] - (unit * map.height) / 2, at[1] + (unit * map.height) / 2];
    const [low, high] = x.map((end) => end + (Math.min(0, u[0], moved[0]) + Math.max(0, u[0], moved[0])) / 2);
    const seen = map.curvePoints(low, high, 200).filter((/** @type {number[]} */ [px, y]) => px >= low && px <= high && Number.isFinite(y)).map((/** @type {number[]} */ [, y]) => y);
    const ends = [run.loss[step - 1], run.loss[step]].filter(Number.isFinite);
    const values = [...seen, ...ends];
    if (!values.length) return null;
    const bottom = Math.min(...values), top = Math.max(...values), tall = top - bottom || Math.abs(top) || 1;
    // Below the curve lie the arrows, above it its name.
    return [low, high, bottom - 0.85 * tall, top + 0.25 * tall];
  }

  /** A typical length of the steps of a run.
   * @param {any} run */
  usualSize(run) {
    for (let k = run.last - 1; k >= 0; k--) {
      const size = Math.hypot(...run.update.subarray(run.n * k, run.n * (k + 1)));
      if (size > 0) return size;
    }
    return 0;
  }

  /** The arrows of the step in pixels, from its start: what has the gradient's units shares a scale, the
   * update has its true length.
   * @param {any} map
   * @param {number[]} from
   * @returns {Arrow[]} */
  arrows(map, from) {
    const found = this.lines();
    if (!found) return [];
    const { lines, readers } = found;
    const vector = (/** @type {string} */ name) => readers.map((/** @type {any} */ read) => read(name));
    const drawn = lines.filter((/** @type {any} */ { row }) => row.arrow);
    const last = (/** @type {string} */ role) => drawn.filter((/** @type {any} */ { row }) => row.role === role).pop();
    const chosen = [...new Set([drawn[0], last("gradient"), last("memory"), last("update")])].filter(Boolean);
    const length = (/** @type {string} */ name) => Math.hypot(...vector(name)) || 0;
    const alike = chosen.filter(({ row }) => row.bars === "alike");
    const longest = Math.max(...alike.flatMap(({ row }) => [length(row.result), ...partsOf(row).slice(0, 1).map((/** @type {string[]} */ [name]) => length(name))]).filter(Number.isFinite), 0);
    const reach = REACH * Math.min(map.width, map.height);
    const unit = (map.box[1] - map.box[0]) / map.width;
    /** @type {Arrow[]} */
    const arrows = [];
    for (const { row, label } of chosen) {
      const scale = row.bars === "alike" ? (longest > 0 ? reach / longest : 0) : 1 / unit;
      const moved = (/** @type {number[]} */ start, /** @type {number[]} */ v) => [start[0] + scale * v[0], start[1] - scale * (v[1] || 0)];
      if (!scale || !vector(row.result).every(Number.isFinite)) continue;
      let at = from;
      partsOf(row).forEach((/** @type {string[]} */ [name, role], /** @type {number} */ i) => {
        const to = moved(at, vector(name));
        const text = role === "kept" ? "memory" : role === "kept step" ? "last step" : role === "decay" ? "decay" : "";
        if (Math.hypot(to[0] - at[0], to[1] - at[1]) > 3) arrows.push({ line: label, text, color: this.colorOf(role), from: at, to, thick: 2.2, dotted: !i, small: true });
        at = to;
      });
      arrows.push({ line: label, text: label, color: this.colorOf(row.role), from, to: moved(from, vector(row.result)), thick: row.role === "update" ? 6 : row.role === "memory" ? 3.4 : 2.6 });
    }
    return arrows;
  }

  /** The marks of an arrow; a dotted one has no head.
   * @param {Arrow} arrow
   * @returns {Mark[]} */
  arrowMarks({ line, color, from, to, thick, dotted }) {
    const { palette } = this.explorer;
    const hovered = this.hovered === line, opacity = this.hovered && !hovered ? 0.18 : 1;
    if (!dotted) return [{ kind: "Arrow", x0: from[0], y0: from[1], x1: to[0], y1: to[1], pen: { color, width: hovered ? thick + 2.4 : thick, opacity } }];
    const ends = [[from[0], to[0]], [from[1], to[1]]];
    return [
      lineMark(ends[0], ends[1], { color: palette.mapHigh, width: 5, opacity }),
      lineMark(ends[0], ends[1], { color, width: hovered ? 3.6 : 2.6, dash: [2.5, 4.5], opacity }),
    ];
  }

  /** The step with its arrows, over the map.
   * @param {any} map */
  drawOn(map) {
    const { explorer, step } = this;
    const { palette, state, selected } = explorer;
    const pen = fitCanvas(map.top, map.width, map.height);
    clearCanvas(pen);
    const size = 15 * state.text_size;
    const labels = new Labels(pen, map.width, map.height, map.groundLabels);
    drawMarks(pen, map.pixels, labels.put(textMark(14, size * 1.1, `${selected.entry.name}, step ${step}`, { ink: palette.ink, halo: true, size, bold: true, across: "left" })));
    const { run } = selected;
    if (!run || !run.path || run.last < 1) return;
    const from = map.place(run, run.path, step - 1), to = map.place(run, run.path, step);
    if (!from || !to) return;
    drawMarks(pen, map.frame, this.pastMarks(map));
    const marks = map.curve ? this.curveMarks(labels, map, from, to, size) : this.planeMarks(labels, map, from, to, size);
    drawMarks(pen, map.pixels, marks);
  }

  /** The steps before this one, in coordinates of the map.
   * @param {any} map
   * @returns {Mark[]} */
  pastMarks(map) {
    const { explorer, step } = this;
    const { palette, selected } = explorer;
    const { x, y, steps, places } = map.outline(selected.run);
    let count = steps.findIndex((/** @type {number} */ k) => k >= step);
    if (count < 0) count = steps.length;
    const recent = map.curve ? 0 : steps.findIndex((/** @type {number} */ k) => k >= step - 1 - RECENT);
    /** @type {Mark[]} */
    const marks = [];
    // The last steps lead to this one; of a long run around it the others are behind them.
    for (const [first, end, alpha] of map.curve ? [] : [[0, recent + 1, 0.16], [recent, count, 0.6]]) marks.push(lineMark(x.subarray(first, end), y.subarray(first, end), { color: selected.color, width: 2, opacity: this.hovered ? alpha / 2.4 : alpha }));
    const seen = Uint8Array.from(steps, (/** @type {number} */ k, /** @type {number} */ i) => Number(i >= recent && Number.isInteger(k) && k < step - 1 && places[i] && map.inside(places[i])));
    const opacity = this.hovered && !map.curve ? 0.25 : 0.6;
    marks.push({ kind: "Points", x, y, seen, marker: { name: "circle", size: 7, face: selected.color, edge: palette.mapHigh, edge_width: 1, opacity } });
    return marks;
  }

  /** @param {Labels} labels
   * @param {any} map
   * @param {number[]} from
   * @param {number[]} to
   * @param {number} size
   * @returns {Mark[]} in pixels */
  planeMarks(labels, map, from, to, size) {
    const { explorer, step } = this;
    const { palette, selected } = explorer;
    const { places, steps } = map.outline(selected.run);
    const recent = places.filter((/** @type {any} */ _, /** @type {number} */ i) => steps[i] < step && steps[i] >= step - 1 - RECENT);
    const arrows = this.arrows(map, from);
    const found = this.lines();
    const jump = found && found.lines.find((/** @type {any} */ { row }) => row.role === "wrapper" && row.arrow);
    const fast = arrows.length ? arrows[arrows.length - 1].to : to;
    if (jump) arrows.push({ line: jump.label, text: jump.label, color: this.colorOf("wrapper"), from: fast, to, thick: 3.4 });
    const long = (/** @type {Arrow} */ arrow) => Math.hypot(arrow.to[0] - arrow.from[0], arrow.to[1] - arrow.from[1]);
    // Parts below all, and of the others the shorter on the longer, which would hide it.
    const drawn = [...arrows].sort((a, b) => (a.small || b.small ? Number(Boolean(b.small)) - Number(Boolean(a.small)) : long(b) - long(a)));
    const marks = drawn.flatMap((arrow) => {
      // The head touches the dot in which the step ends, and does not lie under it.
      const ends = Math.hypot(arrow.to[0] - to[0], arrow.to[1] - to[1]) < 2;
      const length = long(arrow);
      const keep = ends && length > 20 ? 1 - 9 / length : 1;
      return this.arrowMarks({ ...arrow, to: [0, 1].map((i) => arrow.from[i] + (arrow.to[i] - arrow.from[i]) * keep) });
    });
    if (jump) marks.push(pointMark(fast[0], fast[1], "circle", 9, palette.paper, selected.color, 2));
    marks.push(pointMark(from[0], from[1], "circle", 13, palette.paper, selected.color, 3));
    marks.push(pointMark(to[0], to[1], selected.style.marker, 15, selected.color, palette.paper));
    for (const [x, y] of [from, to]) labels.keepFree(x, y, 9);
    marks.push(...labels.put(textMark(14, map.height - size, "update: true length", { ink: palette.quiet, size: size * 0.92, across: "left", ground: 0.85 })));
    const along = arrows.flatMap(({ from: [x, y], to: end }) => Array.from({ length: 16 }, (_, k) => [x + ((end[0] - x) * k) / 15, y + ((end[1] - y) * k) / 15]));
    labels.keepOff([...along, ...between(recent)], ARROWS);
    marks.push(...this.averageMarks(labels, map, size), ...this.arrowLabels(labels, map, arrows, to, size));
    marks.push(...labels.beside(`step ${step - 1}`, [from], { ink: palette.quiet, size: size * 0.95 }, AT_ARROWS.plain));
    return marks;
  }

  /** Averaged weights, which the optimizer does not move to.
   * @param {Labels} labels
   * @param {any} map
   * @param {number} size
   * @returns {Mark[]} */
  averageMarks(labels, map, size) {
    const { explorer, step } = this;
    const { run } = explorer.selected;
    const [name, rows] = Object.entries({ ...run.slots, ...run.terms }).find(([key]) => key === "average" || key === "slow") || [];
    if (!rows) return [];
    const place = map.place(run, rows, step - 1);
    if (!place || !map.inside(place)) return [];
    const color = this.colorOf("wrapper");
    labels.keepFree(place[0], place[1], 8);
    return [pointMark(place[0], place[1], "diamond", 13, color, explorer.palette.paper), ...labels.beside(name === "slow" ? "slow weights" : "average", [place], { ink: color, size, bold: true }, AT_ARROWS.bold)];
  }

  /** The names of arrows, those of their parts last.
   * @param {Labels} labels
   * @param {any} map
   * @param {Arrow[]} arrows
   * @param {number[]} to where the step ends
   * @param {number} size
   * @returns {Mark[]} */
  arrowLabels(labels, map, arrows, to, size) {
    return [...arrows].sort((a, b) => Number(Boolean(a.small)) - Number(Boolean(b.small))).flatMap((arrow) => {
      if (!arrow.text) return [];
      const { from: [x, y], to: end, small } = arrow;
      // A dotted part is named at its middle, an arrow at its head.
      const at = small ? [x + 0.62 * (end[0] - x), y + 0.62 * (end[1] - y)] : end;
      if (small && Math.hypot(end[0] - x, end[1] - y) < 2.5 * size) return [];
      const opacity = this.hovered && this.hovered !== arrow.line ? 0.3 : 1;
      const place = [Math.max(8, Math.min(map.width - 8, at[0])), Math.max(8, Math.min(map.height - 8, at[1]))];
      return labels.beside(arrow.text, [place], { ink: arrow.color, size: small ? size * 0.95 : size, bold: !small, opacity }, small ? AT_ARROWS.plain : Math.hypot(end[0] - to[0], end[1] - to[1]) < 2 ? AT_ARROWS.end : AT_ARROWS.bold);
    });
  }

  /** A function of one variable: its tangent, the step at its true length, and below the curve the
   * arrows in units of the gradient.
   * @param {Labels} labels
   * @param {any} map
   * @param {number[]} from
   * @param {number[]} to
   * @param {number} size
   * @returns {Mark[]} in pixels */
  curveMarks(labels, map, from, to, size) {
    const { explorer, step } = this;
    const { palette, selected } = explorer;
    const { run } = selected;
    const slope = run.gradient[step - 1];
    const [x0, x1, y0, y1] = map.box;
    const tilt = (-slope * (map.height / (y1 - y0))) / (map.width / (x1 - x0)); // pixels down for one right
    const run1 = 0.3 * map.width / Math.hypot(1, tilt);
    const [a, b] = [-1, 1].map((side) => [from[0] + side * run1, from[1] + side * run1 * tilt]);
    /** @type {Mark[]} */
    const marks = [];
    const line = (/** @type {number[]} */ start, /** @type {number[]} */ end, /** @type {string} */ color, /** @type {number} */ width, /** @type {number[]} */ dash) => marks.push(lineMark([start[0], end[0]], [start[1], end[1]], { color, width, dash }));
    line(a, b, palette.quiet, 2, [7, 5]);
    const arrows = this.arrows(map, from).filter((one) => !one.small || one.dotted);
    const floor = map.height - 2.6 * size;
    const parts = this.arrows(map, from);
    const below = parts.filter((one) => one.line !== "update" && !one.small);
    const rows = [...new Set(below.map((one) => one.line))];
    line([from[0], from[1]], [from[0], floor + 0.6 * size], palette.frame, 1.2, [3, 3]);
    const update = arrows.find((one) => one.line === "update" && !one.small);
    const found = this.lines();
    const jump = found && found.lines.find((/** @type {any} */ { row }) => row.role === "wrapper" && row.arrow);
    const reached = update ? update.to : [to[0], from[1]];
    line([reached[0], from[1]], [reached[0], jump ? from[1] : to[1]], selected.color, 1.6, [3, 3]);
    if (update) marks.push(...this.arrowMarks({ ...update, to: [reached[0], from[1]] }));
    const above = from[1] - 1.1 * size; // the way back does not cover the way there
    if (jump) {
      line([reached[0], from[1]], [reached[0], above], this.colorOf("wrapper"), 1.6, [3, 3]);
      marks.push(...this.arrowMarks({ line: jump.label, text: jump.label, color: this.colorOf("wrapper"), from: [reached[0], above], to: [to[0], above], thick: 3.4 }));
      line([to[0], above], to, this.colorOf("wrapper"), 1.6, [3, 3]);
    }
    marks.push(pointMark(from[0], from[1], "circle", 13, palette.paper, selected.color, 3));
    marks.push(pointMark(to[0], to[1], selected.style.marker, 15, selected.color, palette.paper));
    for (const [x, y] of [from, to]) labels.keepFree(x, y, 9);
    const along = [a, b].flatMap((end) => Array.from({ length: 14 }, (_, k) => [from[0] + ((end[0] - from[0]) * k) / 13, from[1] + ((end[1] - from[1]) * k) / 13]));
    for (const [px, y] of map.curvePoints(x0, x1, 60)) along.push([map.x(px), map.y(y)]);
    for (let k = 0; k < 12; k++) along.push([from[0] + ((reached[0] - from[0]) * k) / 11, from[1]], [reached[0], from[1] + ((to[1] - from[1]) * k) / 11]);
    if (jump) for (let k = 0; k < 12; k++) along.push([reached[0] + ((to[0] - reached[0]) * k) / 11, above]);
    labels.keepOff(along, ARROWS);
    rows.forEach((label, i) => {
      const y = floor - (rows.length - 1 - i) * 2 * size;
      const own = parts.filter((one) => one.line === label);
      for (const one of own) {
        const shift = one.small && !one.dotted ? 0.55 * size : one.dotted ? 0.55 * size : 0;
        marks.push(...this.arrowMarks({ ...one, from: [one.from[0], y + shift], to: [one.to[0], y + shift] }));
      }
      const whole = own.find((one) => !one.small);
      if (!whole) return;
      const right = whole.to[0] >= from[0];
      const ends = own.flatMap((one) => [one.from[0], one.to[0]]);
      // Behind the arrow, or before it where there is no room; over it where there is none either.
      const look = { ink: whole.color, halo: true, size, bold: true, opacity: this.hovered && this.hovered !== label ? 0.3 : 1 };
      const sides = [textMark(Math.min(...ends) - 10, y, label, { ...look, across: "right" }), textMark(Math.max(...ends) + 10, y, label, { ...look, across: "left" })];
      const over = textMark(Math.max(4, Math.min(map.width - labels.wide(label, look) - 8, Math.min(...ends))), y - 0.85 * size, label, { ...look, across: "left" });
      const side = (right ? sides : sides.reverse()).find((mark) => labels.fits(mark));
      marks.push(...labels.put(side || over));
    });
    labels.boxes.push([0, floor - rows.length * 2 * size, map.width, map.height]);
    if (update) marks.push(...labels.beside("update", [[(from[0] + reached[0]) / 2, from[1]]], { ink: update.color, size, bold: true }, AT_ARROWS.bold));
    if (jump) marks.push(...labels.beside(jump.label, [[(to[0] + reached[0]) / 2, above]], { ink: this.colorOf("wrapper"), size, bold: true }, AT_ARROWS.bold));
    const plain = { ink: palette.quiet, size: size * 0.95 };
    marks.push(...labels.beside(`tangent: slope ${numberText(slope)}`, slope * (b[1] - a[1]) && b[1] < a[1] ? [b, a] : [a, b], plain, AT_ARROWS.plain));
    marks.push(...labels.beside(`step ${step - 1}`, [from], plain, AT_ARROWS.plain));
    return marks;
  }
}
