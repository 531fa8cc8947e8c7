// The map of recorded runs of a real model: their paths in the plane in which they move most, over the
// loss there where it is known.

import { drawMarks } from "../../browser/static/canvas.js";
import { between, clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, pointMark } from "../../browser/static/marks.js";
import { bytesOf } from "../../browser/static/page_model.js";
import { fieldMarks, fieldWithin } from "./field.js";
import { Labels } from "./labels.js";
import { numberText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

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

  /** The map as marks see it.
   * @returns {import("../../browser/static/marks.js").Frame} */
  get frame() {
    const [x0, x1, y0, y1] = this.box;
    return { left: 0, top: 0, width: this.width, height: this.height, x: { low: x0, high: x1 }, y: { low: y0, high: y1 }, paper: this.explorer.palette.mapHigh };
  }

  drawBase() {
    const { explorer, plane } = this;
    const { palette } = explorer;
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    const marks = this.heights ? fieldMarks(fieldWithin(this.heights, plane.ground, 180, 100, null), palette) : [];
    for (const one of explorer.inOrder()) {
      const path = plane.paths[one.entry.name];
      if (!path) continue;
      const [x, y] = path.points[0];
      marks.push(this.pathMark(one, path.points, 0.35), pointMark(x, y, "circle", 7, palette.paper, one.color));
    }
    drawMarks(pen, this.frame, marks);
  }

  /** A path, faint behind the one up to the step.
   * @param {any} one
   * @param {number[][]} points
   * @param {number} opacity
   * @returns {Mark} */
  pathMark(one, points, opacity) {
    const faint = opacity < 1;
    return lineMark(Float64Array.from(points, ([x]) => x), Float64Array.from(points, ([, y]) => y), { color: one.color, width: faint ? 1.4 : 2.2, dash: faint ? [] : one.style.dash, opacity });
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

  /** Those that have a place of their own at a step: several that have not moved are at the start, and before its
   * first recorded point a run is nowhere.
   * @param {number} step
   * @returns {any[]} */
  movedAt(step) {
    const known = this.explorer.inOrder().filter((/** @type {any} */ { entry }) => this.plane.paths[entry.name]?.steps[0] <= step);
    return step || known.length < 2 ? known : [];
  }

  drawTop() {
    const { explorer, plane } = this;
    const { palette, state } = explorer;
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    /** @type {string[]} */
    const said = [];
    /** @type {Mark[]} */
    const marks = [];
    /** @type {{one: any, place: number[]}[]} */
    const ends = this.movedAt(state.step).map((one) => {
      const points = this.until(plane.paths[one.entry.name], state.step);
      marks.push(this.pathMark(one, points, 1));
      said.push(`${one.entry.name} (${points[points.length - 1].map((c) => numberText(c)).join(", ")})`);
      return { one, place: this.place(points[points.length - 1]) };
    });
    drawMarks(pen, this.frame, marks);
    /** @type {Mark[]} */
    const notes = [];
    for (const { one, place: [x, y] } of ends) notes.push(pointMark(x, y, one.style.marker, one.entry.name === state.selected ? 15 : 12, one.color, palette.paper));
    // Names stand beside their points, off the paths and the other marks. The chosen one is named first.
    const size = 15 * state.text_size;
    const labels = new Labels(pen, this.width, this.height);
    labels.keepElement(this.note);
    /** @type {any[]} */
    const paths = explorer.inOrder().flatMap((/** @type {any} */ { entry }) => plane.paths[entry.name] || []);
    for (const { points } of paths) labels.keepOff(between(points.map((/** @type {number[]} */ point) => this.place(point))));
    const starts = paths.map(({ points }) => this.place(points[0]));
    for (const [x, y] of [...starts, ...ends.map(({ place }) => place)]) labels.keepFree(x, y, 9);
    const [first] = starts, [begin] = paths.map(({ steps }) => steps[0]);
    if (first && starts.every(([x, y]) => Math.hypot(x - first[0], y - first[1]) < 30) && paths.every(({ steps }) => steps[0] === begin)) {
      if (!begin && !state.step) notes.push(pointMark(first[0], first[1], "circle", 17, palette.paper, palette.ink, 2.6));
      notes.push(...labels.beside(begin ? `step ${begin}` : "start", [first], { ink: palette.ink, size }));
    }
    for (const { one, place } of state.step ? ends.reverse() : []) notes.push(...labels.beside(one.entry.name, [place], { ink: one.color, size, bold: true }));
    drawMarks(pen, pixelFrame(this.width, this.height, palette.mapHigh), notes);
    this.top.setAttribute("aria-label", `Paths in the plane of the runs at step ${state.step}: ${said.join(", ") || (state.step ? "not recorded yet" : "all at the start")}; ${plane.said}.`);
  }
}
