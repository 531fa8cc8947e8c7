// The map: over its ground the paths of all optimizers, with their names, and what is under the pointer.

import { drawMarks } from "../../browser/static/canvas.js";
import { clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, pointMark, textMark } from "../../browser/static/marks.js";
import { ellipseOf } from "./curvature.js";
import { localShape } from "./field.js";
import { FEW, MapGround, coordinatesOf } from "./ground.js";
import { Labels } from "./labels.js";
import { numberText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const APART = 3; // dots nearer than this, in pixels, are left out
const TIGHT = 8; // dots nearer than this run into each other: they are small and have no edge
const MANY = 60, CROWDED = 15; // later dots have squares of so many pixels each
export const OPENING = 0.65; // of full strength: what lies ahead of the start
const FUTURE = 0.42; // and later ahead of the cursor
const WANDERING = 0.18, WANDERED = 0.4; // the same of a path with noise, and what lies so many steps behind its cursor
const LATEST = 40, SPARSE = 6; // with dots only where they are so many pixels apart
const OWN_PIXELS = 22; // pixels from all others, where a route is told from them

export class MapDrawing extends MapGround {
  /** Show another part of the plane. @param {number[]} box */
  show(box) {
    this.explorer.forgetHint();
    this.box = this.chosen = box;
    this.field = null;
    this.explorer.later("paths");
  }

  fit() {
    this.show(this.fittingBox());
  }

  // Drawing --------------------------------------------------------------------------------------

  drawBase() {
    const { explorer } = this;
    const { state } = explorer;
    const key = `${state.problem}|${state.preset}|${state.start.length}`;
    if (this.fitted !== key) {
      this.fitted = key;
      this.box = this.chosen = this.fittingBox();
      this.field = null;
    }
    this.outlines = new Map();
    for (const one of explorer.inOrder()) if (one.run && one.run.path) this.outlines.set(one, this.outline(one.run));
    const groundKey = `${explorer.view}|${explorer.theme}|${state.text_size}|${window.devicePixelRatio}|${explorer.generation}|${explorer.beside.groundKey}`;
    if (!this.field || this.groundKey !== groundKey) {
      this.groundKey = groundKey;
      const pen = fitCanvas(this.ground, this.width, this.height);
      clearCanvas(pen);
      if (this.curve) this.drawCurve(pen);
      else this.drawSurface(pen);
    }
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    if (explorer.view !== "apart") {
      const noisy = explorer.engine.isNoisy(state), ahead = noisy ? WANDERING : state.step ? FUTURE : OPENING;
      const paths = [...this.outlines].map(([one, { x, y }]) => lineMark(x, y, { color: one.color, width: state.step ? 1.5 : 1.8, opacity: this.faint(one) ? 0.15 : ahead }));
      drawMarks(pen, this.frame, paths);
    }
    this.atStart = !state.step;
    /** At the start the places of the names of routes. @type {[any, number[][]][]} */
    this.names = state.step ? [] : [...this.outlines.keys()].filter((one) => !this.faint(one)).map((one) => [one, this.nameOf(one)]);
    this.labels = this.labelsOver(this.groundLabels, pen);
    drawMarks(pen, this.pixels, this.minimaMarks(this.labels));
  }

  /** @param {any} one */
  faint(one) {
    return this.explorer.shown.length > FEW && one.entry.name !== this.explorer.selected.entry.name;
  }

  drawTop() {
    const { explorer } = this;
    const { palette, state } = explorer;
    if (this.atStart === Boolean(state.step)) this.drawBase(); // routes are paler once they are gone
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    const size = 15 * state.text_size;
    const labels = new Labels(pen, this.width, this.height, this.labels);
    const paths = [...(this.outlines || [])].flatMap(([one, outline]) => this.pathMarks(one, outline));
    drawMarks(pen, this.frame, [...paths, ...this.ghostMarks()]);
    const start = this.startPlace();
    const at = [];
    for (const [one] of this.outlines || []) {
      const place = this.place(one.run, one.run.path, Math.min(state.step, one.run.last));
      if (!place || !this.inside(place)) continue;
      at.push({ one, place });
      labels.keepFree(place[0], place[1], 9);
    }
    const marks = [...this.hoverMarks(), ...explorer.beside.mapMarks()];
    for (const { one, place } of at) {
      if (!state.step && at.length > 1) break; // all are at the start
      const chosen = one.entry.name === state.selected && at.length > 3;
      const ended = one.run.stopped >= 0 && state.step >= one.run.stopped;
      marks.push(pointMark(place[0], place[1], one.style.marker, chosen ? 18 : this.faint(one) ? 9 : 16, ended ? palette.paper : one.color, ended ? one.color : palette.paper, ended ? 2.5 : 1.5));
    }
    marks.push(pointMark(start[0], start[1], "circle", 17, palette.paper, palette.ink, 2.6));
    if (explorer.focused === this.top) {
      const ring = ellipseOf(start, 15, 15, 0);
      marks.push(lineMark(ring.x, ring.y, { color: palette.ink, width: 1.6, dash: [3, 3] }));
    }
    marks.push(...this.startLabel(labels));
    for (const { one, place } of state.step ? at : []) {
      if (this.faint(one)) continue;
      marks.push(...labels.beside(one.entry.name, [place], { ink: one.color, size, bold: true }));
    }
    for (const [one, places] of this.names) marks.push(...labels.beside(one.entry.name, places, { ink: one.color, size, bold: true }));
    drawMarks(pen, this.pixels, marks);
  }

  /** Where a route that nobody has gone yet has its name: near its end, where no other is; else at its end.
   * @param {any} one
   * @returns {number[][]} */
  nameOf(one) {
    const end = [...this.outlines.get(one).places].reverse().find((/** @type {number[] | null} */ place) => place && this.inside(place));
    /** @type {(other: any) => number[][]} */
    const along = (other) => (this.outlines.get(other).along ??= this.sparse([other]));
    const own = along(one), others = this.explorer.shown.filter((/** @type {any} */ other) => other !== one && this.outlines.has(other)).slice(0, FEW).flatMap((/** @type {any} */ other) => along(other));
    const isFree = (/** @type {number[]} */ [x, y]) => others.every((/** @type {number[]} */ [otherX, otherY]) => (x - otherX) ** 2 + (y - otherY) ** 2 > OWN_PIXELS ** 2);
    /** @type {number[][]} */
    const free = [];
    for (let i = own.length - 1; i >= own.length >> 1 && free.length < 3; i--) if (isFree(own[i])) free.unshift(own[i]);
    return free.length ? free : end ? [end] : [];
  }

  /** The part of a path up to the cursor, with a dot a step.
   * @param {any} one
   * @param {any} outline
   * @returns {Mark[]} */
  pathMarks(one, outline) {
    const { state, palette } = this.explorer;
    const { x, y, places, steps } = outline;
    let count = steps.findIndex((/** @type {number} */ step) => step > state.step);
    if (count < 0) count = places.length;
    if (count < 2) return [];
    const faint = this.faint(one);
    // Of a long path that stays where it is, the middle steps back behind its first and last steps.
    // Of one with noise all but its last steps do: it would be a ball of wool.
    const noisy = this.explorer.engine.isNoisy(state), recent = noisy ? Math.max(0, count - LATEST - 1) : 0;
    const crowded = !faint && !noisy && count > 2 * MANY && this.isCrowded(places, count);
    let pieces = [[0, count, faint ? 0.35 : 1]];
    if (crowded) pieces = [[0, MANY, 1], [MANY - 1, count - MANY / 2, 0.3], [count - MANY / 2 - 1, count, 1]];
    else if (recent && !faint) pieces = [[0, recent + 1, WANDERED], [recent, count, 1]];
    /** @type {Mark[]} */
    const marks = pieces.map(([from, to, opacity]) => lineMark(x.subarray(from, to), y.subarray(from, to), { color: one.color, width: opacity < 1 ? 1.4 : 2.6, dash: opacity < 1 ? [] : one.style.dash, opacity }));
    if (faint) return marks;
    const dots = [new Float64Array(count), new Float64Array(count)], tight = [new Float64Array(count), new Float64Array(count)];
    let free = 0, close = 0;
    /** @type {number[] | null} */
    let before = null;
    // Where a path comes again and again, dots would pile up to a blot: one each few pixels is enough.
    const cells = new Set();
    for (let i = 0; i < count; i++) {
      const place = places[i];
      if (!place || !this.inside(place) || !Number.isInteger(steps[i])) continue;
      if (crowded && i > MANY && i < count - MANY / 2) continue;
      if (i < recent) continue;
      if (before && Math.hypot(place[0] - before[0], place[1] - before[1]) < (noisy ? SPARSE : APART)) continue;
      const cell = i > MANY ? Math.round(place[0] / CROWDED) * 4096 + Math.round(place[1] / CROWDED) : -i - 1;
      if (cells.has(cell)) continue;
      cells.add(cell);
      const near = before && Math.hypot(place[0] - before[0], place[1] - before[1]) < TIGHT;
      const of = near ? tight : dots, at = near ? close++ : free++;
      of[0][at] = x[i];
      of[1][at] = y[i];
      before = place;
    }
    for (const { points, many, size, edge } of [{ points: tight, many: close, size: 4.6, edge: "" }, { points: dots, many: free, size: 6.4, edge: palette.mapHigh }]) {
      if (many) marks.push({ kind: "Points", x: points[0].subarray(0, many), y: points[1].subarray(0, many), marker: { name: "circle", size, face: one.color, edge, edge_width: 1 } });
    }
    marks.push(...this.followerMarks(one, state.step));
    return marks;
  }

  /** Whether a path is much longer than the place that it takes.
   * @param {(number[] | null)[]} places
   * @param {number} count */
  isCrowded(places, count) {
    const [xs, ys] = [0, 1].map((c) => places.slice(MANY, count).flatMap((place) => (place ? [place[c]] : [])));
    if (xs.length < 2) return false;
    let long = 0;
    for (let i = 1; i < xs.length; i++) long += Math.hypot(xs[i] - xs[i - 1], ys[i] - ys[i - 1]);
    const ends = (/** @type {number[]} */ values) => values.reduce((a, b) => Math.max(a, b)) - values.reduce((a, b) => Math.min(a, b));
    return long > 25 * Math.hypot(ends(xs), ends(ys));
  }

  /** Averaged weights: slow ones, where they were synchronized, or the average.
   * @param {any} one
   * @param {number} step
   * @returns {Mark[]} */
  followerMarks(one, step) {
    const rows = one.run.terms.slow || one.run.terms.average || one.run.slots.slow || one.run.slots.average;
    if (!rows || one.run.n !== 2) return [];
    const until = Math.min(step, one.run.last);
    const x = new Float64Array(until + 1), y = new Float64Array(until + 1);
    [x[0], y[0]] = one.run.path;
    let count = 1;
    for (let k = 0; k < until; k++) {
      if (k && rows[2 * k] === rows[2 * k - 2] && rows[2 * k + 1] === rows[2 * k - 1]) continue;
      x[count] = rows[2 * k];
      y[count++] = rows[2 * k + 1];
    }
    const { paper } = this.explorer.palette;
    return [{ color: paper, width: 5.5 }, { color: one.color, width: 3.4 }].map((look) => lineMark(x.subarray(0, count), y.subarray(0, count), look));
  }

  /** The path of a notch under the pointer.
   * @returns {Mark[]} */
  ghostMarks() {
    const { ghost, shown } = this.explorer;
    if (!ghost || !ghost.run || !ghost.run.path) return [];
    const one = shown.find((/** @type {any} */ each) => each.entry.name === ghost.name);
    if (!one) return [];
    const { x, y } = coordinatesOf(ghost.run);
    // Where it leaves the view for good it ends: one that diverges would go to and fro across the map.
    let count = x.length;
    while (count && !this.inside([this.x(x[count - 1]), this.y(y[count - 1])])) count--;
    return [lineMark(x.subarray(0, count + 1), y.subarray(0, count + 1), { color: one.color, width: 2, dash: [2, 3] })];
  }

  // Under the pointer ----------------------------------------------------------------------------

  /** The nearest step of a path under the pointer. */
  nearest() {
    if (!this.pointer) return null;
    const { x, y } = this.pointer;
    let best = null;
    for (const [one, { places, steps }] of this.outlines || []) {
      if (this.faint(one)) continue;
      for (let i = 0; i < places.length; i++) {
        const place = places[i];
        if (!place || !Number.isInteger(steps[i])) continue;
        const past = steps[i] <= this.explorer.state.step;
        const distance = Math.hypot(place[0] - x, place[1] - y) + (past ? 0 : 4);
        if (distance < 11 && (!best || distance < best.distance)) best = { distance, one, step: steps[i], place };
      }
    }
    return best;
  }

  /** What is under the pointer, which is also said beside it.
   * @returns {Mark[]} in pixels */
  hoverMarks() {
    const { explorer } = this;
    const { state, palette, engine } = explorer;
    /** @type {Mark[]} */
    const marks = [];
    this.hover.hidden = !this.pointer || Boolean(this.drag) || explorer.playing || explorer.view === "apart";
    if (this.hover.hidden || !this.pointer) return marks;
    this.hover.style.bottom = `${Math.round(23 * state.text_size)}px`; // over the numbers of the axis
    const near = this.nearest();
    const spot = near ? near.place : [this.pointer.x, this.pointer.y];
    let point = this.pointAt(spot[0], spot[1]);
    if (near) point = Array.from(near.one.run.path.subarray(near.step * near.one.run.n, (near.step + 1) * near.one.run.n));
    if (this.curve) point = [point[0]];
    const evaluate = engine.evaluator(state.problem);
    const lines = [];
    lines.push(near ? `${near.one.entry.name}, step ${near.step}` : point.map((value, i) => `${"xy"[i]} ${numberText(value)}`).join(", "));
    this.ellipse.hidden = true;
    if (evaluate) {
      const shape = localShape(evaluate, point, (this.box[1] - this.box[0]) / 10);
      const steep = Math.hypot(...shape.gradient);
      if (Number.isFinite(shape.value)) {
        lines.push(`loss ${numberText(shape.value)}, slope ${numberText(steep)}`);
        this.describeCurvature(shape, lines);
        if (!this.curve && steep > 0) {
          const reach = 44, [gx, gy] = shape.gradient;
          marks.push({ kind: "Arrow", x0: spot[0], y0: spot[1], x1: spot[0] - (gx / steep) * reach, y1: spot[1] + (gy / steep) * reach, pen: { color: palette.ink, width: 2.2 } });
        }
      } else lines.push("not defined here");
    } else if (near) lines.push(`loss ${numberText(near.one.run.loss[near.step])}`);
    else lines.push("values come from the kernel");
    marks.push(pointMark(spot[0], spot[1], "circle", near ? 17 : 8, near ? "none" : palette.ink, near ? palette.ink : palette.paper, near ? 2.2 : 1.4));
    this.hoverText.replaceChildren(...lines.map((text, i) => make(i ? "div" : "b", { text })));
    return marks;
  }

  /** The ellipse of equal loss around the point, and how uneven it is.
   * @param {any} shape
   * @param {string[]} lines */
  describeCurvature({ curvatures, axes, gradient }, lines) {
    if (curvatures.length < 2) return;
    const [large, small] = curvatures;
    const tiny = 1e-7 * Math.max(Math.abs(large), Math.abs(small));
    if (small < -tiny && large > tiny) {
      // A saddle is a point without slope. It is said where Newton's step, which leads to the one of the
      // local quadratic, is at most 4 % of what the map shows across.
      const [gx, gy] = gradient, cos = Math.cos(axes[0]), sin = Math.sin(axes[0]);
      const away = Math.hypot((gx * cos + gy * sin) / large, (gy * cos - gx * sin) / small);
      lines.push(away <= 0.04 * (this.box[1] - this.box[0]) ? "saddle here" : "curved up one way, down the other");
    }
    else if (small < -tiny || large < -tiny) lines.push("curved downward");
    else if (small > tiny) {
      lines.push(`curvature ${numberText(large / small)} : 1`);
      this.ellipse.hidden = false;
      const pen = fitCanvas(this.ellipse, 60, 60);
      clearCanvas(pen);
      // The length of an axis is the inverse root of its curvature.
      const ratio = Math.max(0.06, Math.sqrt(small / large));
      const { paper, mapLow, ink } = this.explorer.palette;
      drawMarks(pen, pixelFrame(60, 60, paper), [{ kind: "Region", ...ellipseOf([30, 30], 26 * ratio, 26, axes[0]), fill: { color: mapLow }, edge: { color: ink, width: 2 } }]);
    } else lines.push("flat along one direction");
  }
}
