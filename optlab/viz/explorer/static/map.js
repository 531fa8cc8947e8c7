// The map: the surface and the paths of all optimizers. For a problem of one variable it is the curve
// of the function.

import { between, clearCanvas, drawArrow, drawLeader, drawMarker, drawText, fitCanvas, linearTicks, placeLabel } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { contour, fieldOf, fieldWithin, hatching, localShape, shades } from "./field.js";
import { numberText } from "./numbers.js";

const GRID = 276;
const APART = 3; // dots nearer than this, in pixels, are left out
const TIGHT = 8; // dots nearer than this run into each other: they are small and have no edge
const MANY = 60, CROWDED = 15; // later dots have squares of so many pixels each
const FEW = 8; // more paths are drawn as a group, of which the chosen one stands out

export class MapDrawing {
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
    /** Where labels of contour lines stand. @type {number[][]} */
    this.levelBoxes = [];
    /** @type {Map<number, {x: number, y: number}>} */
    this.fingers = new Map();
    for (const name of ["focus", "blur"]) this.top.addEventListener(name, () => explorer.later("top"));
  }

  get curve() {
    return this.explorer.state.start.length === 1;
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
    const domain = surface.domain;
    if (this.curve) return this.curveBox(surface);
    const xs = [state.start[0]], ys = [state.start[1]];
    const wide = domain[0][1] - domain[0][0], tall = domain[1][1] - domain[1][0];
    for (const [x, y] of surface.minima) {
      // Of many minima those count that are near.
      if (surface.minima.length > 1 && Math.hypot((x - xs[0]) / wide, (y - ys[0]) / tall) > 0.75) continue;
      xs.push(x);
      ys.push(y);
    }
    for (const { run } of shown) {
      if (!run || !run.path) continue;
      for (let k = 0; k <= run.last; k++) {
        const x = run.path[2 * k], y = run.path[2 * k + 1];
        if (x > domain[0][0] - 0.05 * wide && x < domain[0][1] + 0.05 * wide && y > domain[1][0] - 0.05 * tall && y < domain[1][1] + 0.05 * tall) {
          xs.push(x);
          ys.push(y);
        }
      }
    }
    const ends = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const size = Math.max(ends[1] - ends[0], ends[3] - ends[2], 0.08 * Math.max(wide, tall));
    const room = 0.12 * size;
    // Above there is room for the name of the function, which must not hide the start.
    const name = (46 * this.explorer.state.text_size * Math.max(ends[3] - ends[2] + 2 * room, (ends[1] - ends[0] + 2 * room) * (this.height / this.width))) / this.height;
    return this.withAspect([ends[0] - room, ends[1] + room, ends[2] - room, ends[3] + room + name]);
  }

  /** @param {any} surface */
  curveBox(surface) {
    const { state } = this.explorer;
    const low = Math.min(surface.domain[0][0], state.start[0]), high = Math.max(surface.domain[0][1], state.start[0]);
    const room = 0.04 * (high - low);
    const values = this.curvePoints(low - room, high + room, 400).map((/** @type {number[]} */ [, y]) => y).filter(Number.isFinite);
    const bottom = values.length ? Math.min(0, ...values) : 0, top = values.length ? Math.max(...values) : 1;
    const more = 0.1 * (top - bottom) || 1;
    return [low - room, high + room, bottom - more, top + more];
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

  /** Show another part of the plane. @param {number[]} box */
  show(box) {
    this.box = this.chosen = box;
    this.field = null;
    this.explorer.later("paths");
  }

  fit() {
    this.explorer.forgetHint();
    this.show(this.fittingBox());
  }

  // Drawing --------------------------------------------------------------------------------------

  drawBase() {
    const { explorer } = this;
    const { state, palette } = explorer;
    const key = `${state.problem}|${state.preset}|${state.start.length}`;
    if (this.fitted !== key) {
      this.fitted = key;
      this.box = this.chosen = this.fittingBox();
      this.field = null;
    }
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
    this.outlines = new Map();
    for (const one of explorer.inOrder()) if (one.run && one.run.path) this.outlines.set(one, this.outline(one.run));
    if (explorer.view !== "apart") {
      for (const [one, outline] of this.outlines) {
        pen.strokeStyle = one.color;
        pen.globalAlpha = this.faint(one) ? 0.15 : 0.42;
        pen.lineWidth = 1.5;
        pen.stroke(outline.whole);
      }
      pen.globalAlpha = 1;
    }
    this.drawMinima(pen, palette);
  }

  /** @param {any} one */
  faint(one) {
    return this.explorer.shown.length > FEW && one.entry.name !== this.explorer.selected.entry.name;
  }

  /** The places of a run, where a label or a dot may stand, and its whole path.
   * @param {any} run */
  outline(run) {
    const places = [], steps = [];
    const jumps = run.terms.fast;
    for (let k = 0; k <= run.last; k++) {
      // The path includes the weights before LookAhead pulled them back.
      if (jumps && k > 0 && run.n === 2 && (jumps[2 * k - 2] !== run.path[2 * k] || jumps[2 * k - 1] !== run.path[2 * k + 1])) {
        places.push(this.place(run, jumps, k - 1));
        steps.push(k - 0.5);
      }
      places.push(this.place(run, run.path, k));
      steps.push(k);
    }
    const whole = new Path2D();
    this.trace(whole, places, places.length);
    return { places, steps, whole };
  }

  /** @param {Path2D} path
   * @param {(number[] | null)[]} places
   * @param {number} count */
  trace(path, places, count) {
    let open = false;
    for (let i = 0; i < count; i++) {
      const place = places[i];
      if (!place) open = false;
      else if (open) path.lineTo(place[0], place[1]);
      else {
        path.moveTo(place[0], place[1]);
        open = true;
      }
    }
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
    this.drawUndefined(pen);
    if (this.field.none) return;
    pen.imageSmoothingEnabled = true;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(shades(this.field, palette.mapLow, palette.mapHigh), 0, 0, width, height);
    /** @type {{level: any, pieces: number[]}[]} */
    this.lines = [];
    for (const level of this.field.levels) {
      const pieces = contour(this.field, level.loss);
      const path = new Path2D();
      for (let i = 0; i < pieces.length; i += 4) {
        path.moveTo(pieces[i] * width, (1 - pieces[i + 1]) * height);
        path.lineTo(pieces[i + 2] * width, (1 - pieces[i + 3]) * height);
      }
      pen.strokeStyle = palette.contour;
      pen.globalAlpha = level.bold ? 0.95 : 0.5;
      pen.lineWidth = level.bold ? 1.1 : 0.7;
      pen.stroke(path);
      this.lines.push({ level, pieces });
    }
    pen.globalAlpha = 1;
    this.explorer.beside.drawGround(pen);
    if (this.explorer.view === "apart") return; // there the arrows are labeled
    this.drawLevelLabels(pen);
    this.drawAxes(pen);
  }

  /** Hatch the whole ground; what is defined is drawn over it.
   * @param {CanvasRenderingContext2D} pen */
  drawUndefined(pen) {
    const { palette, state } = this.explorer;
    const blank = this.field.none || this.field.values.some(Number.isNaN);
    this.note.textContent = !blank ? "" : this.field.none ? "" : "hatched: not defined, or not known here";
    if (!blank) return;
    pen.fillStyle = palette.paper;
    pen.fillRect(0, 0, this.width, this.height);
    pen.fillStyle = hatching(pen, palette.rule, 9 * state.text_size);
    pen.fillRect(0, 0, this.width, this.height);
  }

  /** One label a bold line, where it is far from paths and borders.
   * @param {CanvasRenderingContext2D} pen */
  drawLevelLabels(pen) {
    const { palette, state, shown } = this.explorer;
    const size = 13 * state.text_size;
    /** @type {number[][]} */
    const busy = [];
    const name = Math.max(15 * size, this.explorer.problem?.offsetWidth || 0); // of the function
    for (let along = size; along < name + size; along += 1.5 * size) busy.push([along, 1.6 * size]);
    for (const { run } of shown) {
      if (!run || !run.path) continue;
      busy.push(...between(this.outline(run).places, 24, 12).filter((place) => this.inside(place)));
    }
    // Beside a mark stands its name, which is drawn on another canvas.
    /** @param {number[]} point @param {number} ems */
    const keepFree = (point, ems) => {
      const x = this.x(point[0]), y = this.y(point[1]);
      for (let along = 0; along <= ems; along += 1.5) busy.push([x + along * size, y]);
    };
    for (const [x, y] of this.axisTexts()) for (const right of [-3, -1, 1]) busy.push([x + right * size, y]);
    if (state.start.length === 2) keepFree(state.start, this.explorer.hint ? 17 : 4);
    for (const point of this.explorer.engine.surface(state.problem).minima) keepFree(point, 6);
    this.levelBoxes = [];
    let named = false;
    const bold = this.lines.filter(({ level, pieces }) => level.bold && pieces.length > 80).slice(-4);
    for (const { level, pieces } of bold.reverse()) {
      const text = (named ? "" : "loss ") + numberText(level.loss);
      let best = null;
      const stride = 4 * Math.max(1, Math.round(pieces.length / 4 / 60));
      for (let i = 0; i < pieces.length; i += stride) {
        const x = pieces[i] * this.width, y = (1 - pieces[i + 1]) * this.height;
        const edge = Math.min(x - 4 * size, this.width - x - 4 * size, y - 2.5 * size, this.height - y - 2.5 * size);
        if (edge < 0) continue;
        let near = Math.min(edge + 40, 160);
        for (const [bx, by] of busy) near = Math.min(near, Math.hypot((x - bx) * 0.7, y - by));
        if (!best || near > best.near) best = { near, x, y };
      }
      if (!best || best.near < 16) continue;
      pen.font = `${size}px sans-serif`;
      const w = pen.measureText(text).width + 12;
      pen.fillStyle = palette.mapHigh;
      pen.globalAlpha = 0.85;
      pen.beginPath();
      pen.roundRect(best.x - w / 2, best.y - size * 0.75, w, size * 1.5, 4);
      pen.fill();
      pen.globalAlpha = 1;
      drawText(pen, text, best.x, best.y, { color: palette.quiet, size, align: "center" });
      busy.push([best.x, best.y]);
      this.levelBoxes.push([best.x - w / 2, best.y - size * 0.75, best.x + w / 2, best.y + size * 0.75]);
      named = true;
    }
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawCurve(pen) {
    const { palette, state } = this.explorer;
    this.field = { none: false, levels: [], values: [] };
    this.levelBoxes = [];
    this.note.textContent = "";
    pen.fillStyle = palette.mapHigh;
    pen.fillRect(0, 0, this.width, this.height);
    const points = this.curvePoints(this.box[0], this.box[1], 500);
    for (const tick of linearTicks(this.box[2], this.box[3], 6)) {
      pen.strokeStyle = tick === 0 ? palette.frame : palette.rule;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(0, this.y(tick));
      pen.lineTo(this.width, this.y(tick));
      pen.stroke();
    }
    if (points.some((/** @type {number[]} */ [, y]) => Number.isNaN(y))) {
      pen.fillStyle = hatching(pen, palette.frame, 9 * state.text_size);
      const step = (this.box[1] - this.box[0]) / points.length;
      for (const [x, y] of points) if (Number.isNaN(y)) pen.fillRect(this.x(x - step / 2) - 0.5, 0, this.x(step) - this.x(0) + 1, this.height);
      this.note.textContent = "hatched: not defined";
    }
    const path = new Path2D();
    this.trace(path, points.map((/** @type {number[]} */ [x, y]) => this.far([this.x(x), this.y(y)])), points.length);
    pen.strokeStyle = palette.contour;
    pen.lineWidth = 2.5;
    pen.stroke(path);
    this.drawAxes(pen);
  }

  /** Where the numbers of the axes stand, about.
   * @returns {number[][]} */
  axisTexts() {
    const size = 13 * this.explorer.state.text_size;
    const across = linearTicks(this.box[0], this.box[1], this.width / 120).map((tick) => [this.x(tick), this.height - size * 0.8]);
    const up = linearTicks(this.box[2], this.box[3], this.height / 90).map((tick) => [this.width - 2 * size, this.y(tick)]);
    return [...across, ...up];
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawAxes(pen) {
    const { palette, state } = this.explorer;
    const size = 13 * state.text_size;
    const style = { color: palette.quiet, halo: palette.mapHigh, size };
    const across = linearTicks(this.box[0], this.box[1], this.width / 120);
    across.forEach((tick, i) => {
      const px = this.x(tick);
      if (px < 90 || px > this.width - 24) return;
      const last = i === across.length - 1 || this.x(across[i + 1]) > this.width - 24;
      const edge = last && px > this.width - 3.2 * size; // the name of the axis stays inside
      drawText(pen, (last ? "x = " : "") + numberText(tick), edge ? this.width - 5 : px, this.height - size * 0.8, { ...style, align: edge ? "right" : "center" });
    });
    const up = linearTicks(this.box[2], this.box[3], this.height / 90).filter((tick) => this.y(tick) > 3.2 * size && this.y(tick) < this.height - 1.8 * size);
    up.forEach((tick, i) => drawText(pen, (i === up.length - 1 ? (this.curve ? "loss " : "y = ") : "") + numberText(tick), this.width - 6, this.y(tick), { ...style, align: "right" }));
  }

  /** @param {CanvasRenderingContext2D} pen
   * @param {Record<string, string>} palette */
  drawMinima(pen, palette) {
    const { engine, state, shown, view } = this.explorer;
    const size = 14 * state.text_size;
    /** @type {number[][]} */
    this.marked = [[0, 0, this.width * 0.5, size * 2.6], ...this.levelBoxes]; // the name of the problem
    /** @type {number[][]} */
    this.points = [];
    for (const one of shown.slice(0, FEW)) if (one.run && one.run.path) this.points.push(...between(this.outlines.get(one)?.places || []));
    if (view === "apart") return;
    const minima = engine.surface(state.problem).minima;
    for (const minimum of minima) {
      const place = this.curve ? [this.x(minimum[0]), this.y(this.lossAt(minimum))] : [this.x(minimum[0]), this.y(minimum[1])];
      if (!this.inside(place)) continue;
      drawMarker(pen, "star", place[0], place[1], 17, palette.ink, palette.paper, 1.2);
      this.marked.push([place[0] - 10, place[1] - 10, place[0] + 10, place[1] + 10]);
      if (minima.length > 1 || this.curve) continue;
      const spot = placeLabel(pen, "minimum", place[0], place[1], size, this.width, this.height, this.marked, 13, this.points);
      drawLeader(pen, spot, place[0], place[1], palette.quiet);
      drawText(pen, "minimum", spot.cx, spot.cy, { color: palette.ink, halo: palette.mapHigh, size, align: "center" });
    }
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

  drawTop() {
    const { explorer } = this;
    const { palette, state } = explorer;
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    const size = 15 * state.text_size;
    const taken = [...(this.marked || [])];
    for (const [one, outline] of this.outlines || []) this.drawPath(pen, one, outline);
    this.drawGhost(pen);
    const start = this.startPlace();
    taken.push([start[0] - 12, start[1] - 12, start[0] + 12, start[1] + 12]);
    const at = [];
    for (const [one] of this.outlines || []) {
      const place = this.place(one.run, one.run.path, Math.min(state.step, one.run.last));
      if (!place || !this.inside(place)) continue;
      at.push({ one, place });
      taken.push([place[0] - 9, place[1] - 9, place[0] + 9, place[1] + 9]);
    }
    const opening = explorer.hint;
    const text = opening ? "start: press play, or drag me" : "start";
    const spot = placeLabel(pen, text, start[0], start[1], opening ? size * 1.14 : size, this.width, this.height, taken, 13, this.points);
    this.drawHovered(pen);
    explorer.beside.drawOnMap(pen);
    for (const { one, place } of at) {
      if (!state.step && at.length > 1) break; // all are at the start
      const chosen = one.entry.name === state.selected && at.length > 3;
      const ended = one.run.stopped >= 0 && state.step >= one.run.stopped;
      drawMarker(pen, one.style.marker, place[0], place[1], chosen ? 18 : this.faint(one) ? 9 : 16, ended ? palette.paper : one.color, ended ? one.color : palette.paper, ended ? 2.5 : 1.5);
    }
    drawMarker(pen, "circle", start[0], start[1], 17, palette.paper, palette.ink, 2.6);
    if (explorer.focused === this.top) {
      pen.strokeStyle = palette.ink;
      pen.lineWidth = 1.6;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.arc(start[0], start[1], 15, 0, 2 * Math.PI);
      pen.stroke();
      pen.setLineDash([]);
    }
    drawText(pen, text, spot.cx, spot.cy, { color: palette.ink, halo: palette.mapHigh, size: size * (opening ? 1 : 0.95), align: "center", weight: opening ? "bold" : "" });
    if (!state.step) return;
    for (const { one, place } of at) {
      if (this.faint(one)) continue;
      const where = placeLabel(pen, one.entry.name, place[0], place[1], size * 1.12, this.width, this.height, taken, 12, this.points);
      drawLeader(pen, where, place[0], place[1], one.color);
      drawText(pen, one.entry.name, where.cx, where.cy, { color: one.color, halo: palette.mapHigh, size, align: "center", weight: "bold" });
    }
  }

  /** The part of a path up to the cursor, with a dot a step.
   * @param {CanvasRenderingContext2D} pen
   * @param {any} one
   * @param {any} outline */
  drawPath(pen, one, outline) {
    const { state, palette } = this.explorer;
    const { places, steps } = outline;
    let count = steps.findIndex((/** @type {number} */ step) => step > state.step);
    if (count < 0) count = places.length;
    if (count < 2) return;
    const faint = this.faint(one);
    // Of a long path that stays where it is, the middle steps back behind its first and last steps.
    const crowded = !faint && count > 2 * MANY && this.isCrowded(places, count);
    const pieces = crowded ? [[0, MANY, 1], [MANY - 1, count - MANY / 2, 0.3], [count - MANY / 2 - 1, count, 1]] : [[0, count, faint ? 0.35 : 1]];
    pen.strokeStyle = one.color;
    for (const [from, to, alpha] of pieces) {
      const path = new Path2D();
      this.trace(path, from ? places.slice(from, to) : places, to - from);
      pen.lineWidth = alpha < 1 ? 1.4 : 2.6;
      pen.globalAlpha = alpha;
      pen.setLineDash(alpha < 1 ? [] : one.style.dash);
      pen.stroke(path);
    }
    pen.globalAlpha = faint ? 0.35 : 1;
    pen.setLineDash([]);
    if (!faint) {
      const dots = new Path2D(), tight = new Path2D();
      /** @type {number[] | null} */
      let before = null;
      // Where a path comes again and again, dots would pile up to a blot: one each few pixels is enough.
      const cells = new Set();
      for (let i = 0; i < count; i++) {
        const place = places[i];
        if (!place || !this.inside(place) || !Number.isInteger(steps[i])) continue;
        if (crowded && i > MANY && i < count - MANY / 2) continue;
        if (before && Math.hypot(place[0] - before[0], place[1] - before[1]) < APART) continue;
        const cell = i > MANY ? Math.round(place[0] / CROWDED) * 4096 + Math.round(place[1] / CROWDED) : -i - 1;
        if (cells.has(cell)) continue;
        cells.add(cell);
        const near = before && Math.hypot(place[0] - before[0], place[1] - before[1]) < TIGHT;
        const path = near ? tight : dots, radius = near ? 2.3 : 3.2;
        path.moveTo(place[0] + radius, place[1]);
        path.arc(place[0], place[1], radius, 0, 2 * Math.PI);
        before = place;
      }
      pen.fillStyle = one.color;
      pen.strokeStyle = palette.mapHigh;
      pen.lineWidth = 1;
      pen.fill(tight);
      pen.fill(dots);
      pen.stroke(dots);
      this.drawFollower(pen, one, state.step);
    }
    pen.globalAlpha = 1;
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

  /** Averaged weights: slow ones, with a diamond at each synchronization, or the average.
   * @param {CanvasRenderingContext2D} pen
   * @param {any} one
   * @param {number} step */
  drawFollower(pen, one, step) {
    const rows = one.run.terms.slow || one.run.terms.average || one.run.slots.slow || one.run.slots.average;
    if (!rows || one.run.n !== 2) return;
    const places = [this.place(one.run, one.run.path, 0)];
    const until = Math.min(step, one.run.last);
    for (let k = 0; k < until; k++) {
      const place = this.place(one.run, rows, k);
      if (!k || rows[2 * k] !== rows[2 * k - 2] || rows[2 * k + 1] !== rows[2 * k - 1]) places.push(place);
    }
    const path = new Path2D();
    this.trace(path, places, places.length);
    for (const [color, width] of [[this.explorer.palette.paper, 5.5], [one.color, 3.4]]) {
      pen.strokeStyle = color;
      pen.lineWidth = width;
      pen.stroke(path);
    }
  }

  /** The path of a notch under the pointer.
   * @param {CanvasRenderingContext2D} pen */
  drawGhost(pen) {
    const { ghost, shown } = this.explorer;
    if (!ghost || !ghost.run || !ghost.run.path) return;
    const one = shown.find((/** @type {any} */ each) => each.entry.name === ghost.name);
    if (!one) return;
    pen.strokeStyle = one.color;
    pen.setLineDash([2, 3]);
    pen.lineWidth = 2;
    pen.stroke(this.outline(ghost.run).whole);
    pen.setLineDash([]);
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

  /** @param {CanvasRenderingContext2D} pen */
  drawHovered(pen) {
    const { explorer } = this;
    const { state, palette, engine } = explorer;
    this.hover.hidden = !this.pointer || Boolean(this.drag) || explorer.playing || explorer.view === "apart";
    if (this.hover.hidden || !this.pointer) return;
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
          drawArrow(pen, spot[0], spot[1], spot[0] - (gx / steep) * reach, spot[1] + (gy / steep) * reach, palette.ink, palette.mapHigh);
        }
      } else lines.push("not defined here");
    } else if (near) lines.push(`loss ${numberText(near.one.run.loss[near.step])}`);
    else lines.push("values come from the kernel");
    drawMarker(pen, "circle", spot[0], spot[1], near ? 17 : 8, near ? "rgba(0,0,0,0)" : palette.ink, near ? palette.ink : palette.paper, near ? 2.2 : 1.4);
    this.hoverText.replaceChildren(...lines.map((text, i) => make(i ? "div" : "b", { text })));
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
      pen.beginPath();
      pen.ellipse(30, 30, 26 * ratio, 26, -axes[0], 0, 2 * Math.PI);
      pen.fillStyle = this.explorer.palette.mapLow;
      pen.fill();
      pen.strokeStyle = this.explorer.palette.ink;
      pen.lineWidth = 2;
      pen.stroke();
    } else lines.push("flat along one direction");
  }
}
