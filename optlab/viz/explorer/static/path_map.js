// The map of recorded runs of a real model: their paths in the plane in which they move most, over the
// loss there where it is known.

import { between, clearCanvas, drawLeader, drawMarker, drawText, fitCanvas, placeLabel } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { bytesOf } from "../../browser/static/page_model.js";
import { contour, fieldWithin, shades } from "./field.js";
import { numberText } from "./numbers.js";

export class PathMap {
  /** @param {any} explorer
   * @param {any} plane paths, box and losses */
  constructor(explorer, plane) {
    this.explorer = explorer;
    this.plane = plane;
    this.heights = plane.values ? { ...plane, box: plane.ground, values: new Float32Array(bytesOf(plane.values).buffer) } : null;
    this.base = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.top = make("canvas", { class: "layer", role: "img" });
    this.note = make("div", { class: "map-note", text: plane.said });
    this.element = make("div", { class: "map" }, this.base, this.top, this.note);
    this.width = this.height = 0;
    /** @type {number[]} */
    this.box = plane.box;
  }

  /** @param {number} width
   * @param {number} height */
  resize(width, height) {
    [this.width, this.height] = [width, height];
    this.element.style.height = `${height}px`;
    // One scale in both directions: distances in the plane are distances between weights.
    const [x0, x1, y0, y1] = this.plane.box;
    const pixel = Math.max((x1 - x0) / width, (y1 - y0) / height);
    const [x, y] = [(x0 + x1) / 2, (y0 + y1) / 2];
    this.box = [x - (pixel * width) / 2, x + (pixel * width) / 2, y - (pixel * height) / 2, y + (pixel * height) / 2];
  }

  /** @param {number[]} point
   * @returns {number[]} */
  place([x, y]) {
    const [x0, x1, y0, y1] = this.box;
    return [((x - x0) / (x1 - x0)) * this.width, this.height - ((y - y0) / (y1 - y0)) * this.height];
  }

  drawBase() {
    const { explorer, plane } = this;
    const { palette } = explorer;
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    if (this.heights) this.drawGround(pen);
    for (const one of explorer.inOrder()) {
      const path = plane.paths[one.entry.name];
      if (!path) continue;
      this.line(pen, one, path.points, 0.35);
      const [x, y] = this.place(path.points[0]);
      drawMarker(pen, "circle", x, y, 7, palette.paper, one.color);
    }
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawGround(pen) {
    const { palette } = this.explorer;
    const box = this.plane.ground, field = fieldWithin(this.heights, box, 180, 100, null);
    const [left, low] = this.place([box[0], box[2]]);
    const [right, high] = this.place([box[1], box[3]]);
    const [width, height] = [right - left, low - high];
    pen.imageSmoothingEnabled = true;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(shades(field, palette.mapLow, palette.mapHigh), left, high, width, height);
    for (const level of field.levels) {
      const pieces = contour(field, level.loss);
      const path = new Path2D();
      for (let i = 0; i < pieces.length; i += 4) {
        path.moveTo(left + pieces[i] * width, high + (1 - pieces[i + 1]) * height);
        path.lineTo(left + pieces[i + 2] * width, high + (1 - pieces[i + 3]) * height);
      }
      pen.strokeStyle = palette.contour;
      pen.globalAlpha = level.bold ? 0.95 : 0.5;
      pen.lineWidth = level.bold ? 1.1 : 0.7;
      pen.stroke(path);
    }
    pen.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} pen
   * @param {any} one
   * @param {number[][]} points
   * @param {number} opacity */
  line(pen, one, points, opacity) {
    pen.strokeStyle = one.color;
    pen.globalAlpha = opacity;
    pen.lineWidth = opacity < 1 ? 1.4 : 2.2;
    pen.setLineDash(opacity < 1 ? [] : one.style.dash);
    pen.beginPath();
    points.forEach((point, i) => {
      const [x, y] = this.place(point);
      if (i) pen.lineTo(x, y);
      else pen.moveTo(x, y);
    });
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  /** The point of a path at a step, between two recorded ones on the line between them.
   * @param {any} path
   * @param {number} step
   * @returns {number[][]} the path up to there */
  until(path, step) {
    const { steps, points } = path;
    let last = 0;
    while (last + 1 < steps.length && steps[last + 1] <= step) last++;
    const found = points.slice(0, last + 1);
    if (last + 1 < steps.length && step > steps[last]) {
      const share = (step - steps[last]) / (steps[last + 1] - steps[last]);
      found.push([0, 1].map((k) => points[last][k] + share * (points[last + 1][k] - points[last][k])));
    }
    return found;
  }

  drawTop() {
    const { explorer, plane } = this;
    const { palette, state } = explorer;
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    /** @type {string[]} */
    const said = [];
    /** @type {{one: any, place: number[]}[]} */
    const ends = explorer.inOrder().filter((/** @type {any} */ one) => plane.paths[one.entry.name]).map((/** @type {any} */ one) => {
      const points = this.until(plane.paths[one.entry.name], state.step);
      this.line(pen, one, points, 1);
      said.push(`${one.entry.name} (${points[points.length - 1].map((c) => numberText(c)).join(", ")})`);
      return { one, place: this.place(points[points.length - 1]) };
    });
    for (const { one, place: [x, y] } of ends) drawMarker(pen, one.style.marker, x, y, one.entry.name === state.selected ? 15 : 12, one.color, palette.paper);
    // Names stand beside their points, off the paths and the other marks. The chosen one is named first.
    const size = 15 * state.text_size;
    const paths = ends.flatMap(({ one }) => between(plane.paths[one.entry.name].points.map((/** @type {number[]} */ point) => this.place(point))));
    const starts = ends.map(({ one }) => this.place(plane.paths[one.entry.name].points[0]));
    const taken = [...starts, ...ends.map(({ place }) => place)].map(([x, y]) => [x - 9, y - 9, x + 9, y + 9]);
    taken.push([this.width / 2, 0, this.width, 2.2 * size]); // how much the plane holds
    const label = (/** @type {string} */ text, /** @type {number[]} */ [x, y], /** @type {string} */ color, weight = "") => {
      const spot = placeLabel(pen, text, x, y, size * 1.12, this.width, this.height, taken, 12, paths);
      drawLeader(pen, spot, x, y, color);
      drawText(pen, text, spot.cx, spot.cy, { color, halo: palette.mapHigh, size, weight, align: "center" });
    };
    const [first] = starts;
    if (first && starts.every(([x, y]) => Math.hypot(x - first[0], y - first[1]) < 30)) label("start", first, palette.ink);
    for (const { one, place } of state.step ? ends.reverse() : []) label(one.entry.name, place, one.color, "bold");
    this.top.setAttribute("aria-label", `Paths in the plane of the runs at step ${state.step}: ${said.join(", ")}; ${plane.said}.`);
  }
}
