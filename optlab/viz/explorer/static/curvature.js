// The curvature at the pointer and at the step that is shown: the quadratic around the point, its
// axes, and how uneven it is. Where it curves down, that is said, and there is no ratio.

import { drawMarks } from "../../browser/static/canvas.js";
import { FONTS, clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, textMark } from "../../browser/static/marks.js";
import { localShape } from "./field.js";
import { numberText } from "./numbers.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const SMALLEST_PICTURE = 76, LARGEST_PICTURE = 150, TEXTS = 178, HALF_AXIS = 36; // pixels; the last of the longer half axis on the map

/** What the quadratic around a point is, from its curvatures, the larger first.
 * @param {number[]} curvatures
 * @returns {{kind: string, said: string}} */
export function shapeSaid(curvatures) {
  const large = curvatures[0], small = curvatures[curvatures.length - 1];
  const tiny = 1e-7 * Math.max(Math.abs(large), Math.abs(small));
  if (!curvatures.every(Number.isFinite)) return { kind: "none", said: "not defined here" };
  if (!(tiny > 0)) return { kind: "flat", said: "flat: no curvature" };
  if (small > tiny) return { kind: "bowl", said: curvatures.length < 2 ? "curves up" : `bowl, condition number ${numberText(large / small)}` };
  if (large < -tiny) return { kind: "dome", said: curvatures.length < 2 ? "curves down" : "dome: down along both axes" };
  if (small < -tiny && large > tiny) return { kind: "saddle", said: "down along the dashed axis" };
  return small < -tiny ? { kind: "dome", said: "down along the dashed axis, flat along the other" } : { kind: "flat", said: "flat along one axis" };
}

/** The outline of an ellipse, in pixels.
 * @param {number[]} middle
 * @param {number} across half its first axis
 * @param {number} along half its second
 * @param {number} angle of the first, counterclockwise
 * @returns {{x: Float64Array, y: Float64Array}} */
export function ellipseOf([x, y], across, along, angle) {
  const count = 73, cos = Math.cos(angle), sin = Math.sin(angle);
  const turn = (/** @type {number} */ i) => (2 * Math.PI * i) / (count - 1);
  return {
    x: Float64Array.from({ length: count }, (_, i) => x + across * Math.cos(turn(i)) * cos + along * Math.sin(turn(i)) * sin),
    y: Float64Array.from({ length: count }, (_, i) => y - across * Math.cos(turn(i)) * sin + along * Math.sin(turn(i)) * cos),
  };
}

/** Half the length of each axis, in pixels: the inverse root of its curvature, where that can be seen.
 * @param {number[]} curvatures
 * @param {number} reach */
function halfAxes(curvatures, reach) {
  const [large, small] = curvatures;
  if (shapeSaid(curvatures).kind === "bowl") return [Math.max(2, Math.sqrt(small / large) * reach), reach];
  return curvatures.map((c) => reach * Math.max(0.3, Math.sqrt(Math.min(Math.abs(large), Math.abs(small)) / Math.max(Math.abs(c), 1e-300) || 0.3)));
}

/** The directions of the axes on the screen; the first is the one of the larger curvature.
 * @param {number[]} axes
 * @returns {number[][]} */
const directionsOf = ([angle]) => [[Math.cos(angle), -Math.sin(angle)], [Math.sin(angle), Math.cos(angle)]];

/** The curvature beside the end of each axis, and how long an axis may be beside them.
 * @param {any} shape
 * @param {number} middle of a picture
 * @param {{ink: string, size: number}} look
 * @param {CanvasRenderingContext2D} pen
 * @returns {{reach: number, notes: Mark[]}} */
function axisNotes({ curvatures, axes }, middle, look, pen) {
  const usual = middle - 8;
  if (curvatures.length < 2 || !curvatures.every(Number.isFinite)) return { reach: usual, notes: [] };
  const directions = directionsOf(axes), texts = curvatures.map((/** @type {number} */ c) => numberText(c));
  pen.font = `${look.size}px ${FONTS}`;
  // How far a text reaches along its axis, from its middle.
  const halves = texts.map((/** @type {string} */ text, /** @type {number} */ i) => Math.abs(directions[i][0]) * pen.measureText(text).width / 2 + Math.abs(directions[i][1]) * look.size * 0.5);
  const reach = Math.max(12, Math.min(usual, ...halves.map((/** @type {number} */ half) => middle - 6 - 2 * half)));
  const lengths = halfAxes(curvatures, reach);
  return { reach, notes: texts.map((/** @type {string} */ text, /** @type {number} */ i) => textMark(middle + directions[i][0] * (lengths[i] + 5 + halves[i]), middle + directions[i][1] * (lengths[i] + 5 + halves[i]), text, look)) };
}

/** The ellipse of equal loss, or the axes where there is none.
 * @param {number[]} place
 * @param {any} shape
 * @param {number} reach
 * @param {{ink: string, fill: string}} colors
 * @returns {Mark[]} in pixels */
function shapeMarks([x, y], { curvatures, axes }, reach, { ink, fill }) {
  if (curvatures.length < 2 || !curvatures.every(Number.isFinite)) return [];
  const [large, small] = curvatures, [angle] = axes;
  const pen = { color: ink, width: 1.8 }, sizes = halfAxes(curvatures, reach);
  if (shapeSaid(curvatures).kind === "bowl") return [{ kind: "Region", ...ellipseOf([x, y], sizes[0], sizes[1], angle), fill: { color: fill }, opacity: 0.55, edge: pen }];
  const least = 1e-7 * Math.max(Math.abs(large), Math.abs(small));
  return directionsOf(axes).flatMap(([dx, dy], i) => {
    if (Math.abs(curvatures[i]) <= least) return []; // flat: no axis
    const ends = [-sizes[i], sizes[i]];
    return [lineMark(ends.map((end) => x + dx * end), ends.map((end) => y + dy * end), { ...pen, dash: curvatures[i] < 0 ? [4, 3] : [] })];
  });
}

class Spot {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.size = SMALLEST_PICTURE;
    this.picture = make("canvas", { class: "spot-picture", "aria-hidden": "true" });
    this.name = make("b");
    this.lines = make("div");
    this.element = make("div", { class: "spot" }, this.picture, make("div", { class: "spot-text" }, this.name, this.lines));
  }

  /** @param {string} name
   * @param {any} shape
   * @param {string} [color] */
  show(name, shape, color = "") {
    const { palette, state } = this.explorer, { size } = this, middle = size / 2;
    this.picture.style.width = this.picture.style.height = `${size}px`;
    this.element.style.minHeight = `${size}px`;
    const pen = fitCanvas(this.picture, size, size);
    clearCanvas(pen);
    this.name.textContent = name;
    this.name.style.color = color;
    this.picture.hidden = !shape || shape.curvatures.length < 2;
    this.name.className = shape ? "" : "ol-quiet"; // a hint is no headline
    if (!shape) {
      this.lines.replaceChildren();
      return;
    }
    const { reach, notes } = axisNotes(shape, middle, { ink: palette.quiet, size: 12 * state.text_size }, pen);
    drawMarks(pen, pixelFrame(size, size, palette.paper), [...shapeMarks([middle, middle], shape, reach, { ink: color || palette.ink, fill: palette.mapLow }), ...notes]);
    const { curvatures } = shape;
    const { kind, said } = shapeSaid(curvatures);
    const lines = [`loss ${numberText(shape.value)}, slope ${numberText(Math.hypot(...shape.gradient))}`];
    if (kind !== "none") lines.push(`curvature ${curvatures.map((/** @type {number} */ c) => numberText(c)).join(" and ")}`);
    lines.push(said);
    if (curvatures[0] > 0 && Number.isFinite(curvatures[0])) lines.push(`SGD stable up to ${numberText(2 / curvatures[0], 2)}`);
    this.lines.replaceChildren(...lines.map((text) => make("div", { text })));
  }
}

export class CurvaturePanel {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.step = new Spot(explorer);
    this.under = new Spot(explorer);
    this.element = make("div", { hidden: true, title: "An ellipse joins points of equal loss of the quadratic around the spot; its long axis is the flat one." }, this.step.element, this.under.element);
  }

  /** Two pictures are as high as the panel, and leave room for their texts. */
  draw() {
    const { explorer } = this, { plot, layout, beside, state } = explorer;
    const above = this.element.getBoundingClientRect().top - beside.element.getBoundingClientRect().top + beside.element.scrollTop;
    const tall = layout === "narrow" ? 120 * state.text_size : (plot.height - above - 8) / 2;
    const size = Math.round(Math.max(SMALLEST_PICTURE, Math.min(LARGEST_PICTURE * state.text_size, tall, plot.element.clientWidth - TEXTS * state.text_size)));
    for (const spot of [this.step, this.under]) spot.size = size;
  }

  /** @param {ArrayLike<number>} point */
  shapeAt(point) {
    const { engine, state, map } = this.explorer;
    const evaluate = engine.evaluator(state.problem);
    return evaluate ? localShape(evaluate, Array.from(point), (map.box[1] - map.box[0]) / 10) : null;
  }

  /** The shapes at the step and at the pointer, which are also said in the panel.
   * @returns {Mark[]} in pixels */
  mapMarks() {
    const { explorer } = this;
    /** @type {Mark[]} */
    const marks = [];
    const { map, state, selected, palette } = explorer;
    const { run, entry, color } = selected;
    map.hover.hidden = true; // the panel says it all
    if (!this.shapeAt(state.start)) {
      this.step.show("", null);
      this.under.show("The page does not know the slopes: the function comes from the kernel. In Python: ol.lab.curvature(f, point).", null);
      return marks;
    }
    if (run && run.path) {
      const k = Math.min(state.step, run.last);
      const shape = this.shapeAt(run.path.subarray(k * run.n, (k + 1) * run.n));
      const place = map.place(run, run.path, k);
      if (shape && place && map.inside(place)) marks.push(...shapeMarks(place, shape, HALF_AXIS, { ink: color, fill: palette.paper }));
      this.step.show(`${entry.name}, step ${k}`, shape, color);
    } else this.step.show(`${entry.name} has no path yet`, null);
    if (map.pointer && !map.drag) {
      const { x, y } = map.pointer;
      const point = map.pointAt(x, y).slice(0, state.start.length);
      const shape = this.shapeAt(point);
      if (shape) marks.push(...shapeMarks([x, y], shape, HALF_AXIS, { ink: palette.ink, fill: palette.paper }));
      this.under.show(`at (${point.map((/** @type {number} */ c) => numberText(c)).join(", ")})`, shape);
    } else this.under.show("Point at the map: its curvature stands here.", null);
    return marks;
  }
}
