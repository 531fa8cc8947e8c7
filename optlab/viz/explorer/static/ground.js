// The ground of the map: which part of the plane it shows, and the surface there with its contours; for a
// problem of one variable the curve of the function.

import { between, drawText, linearTicks } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { contour, fieldOf, fieldWithin, hatching, shades } from "./field.js";
import { numberText } from "./numbers.js";

const GRID = 276;

export class MapGround {
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
}
