// What pages of one picture share: panels of Python's scene.py with their axes, samples of a legend, and
// buttons over what a canvas shows.

import { drawMarks } from "./canvas.js";
import { FONTS, clearCanvas, fitCanvas, linearTicks } from "./drawing.js";
import { make } from "./elements.js";
import { pixelFrame, ruleMark, textMark } from "./marks.js";

/** @typedef {import("./marks.js").Mark} Mark */
/** @typedef {import("./marks.js").Frame} Frame */

/** An axis as in scene.py.
 * @typedef {{low: number, high: number, name: string, ticks: [number, string][] | null, suffix: string, grid: boolean, zero: boolean}} PanelAxis */
/** @typedef {{x: PanelAxis, y: PanelAxis, marks: Mark[]}} Panel */

const ROOM = { left: 52, right: 12, top: 20, bottom: 22 };
const SMALL = 11;

/** Where a panel is drawn on a canvas of this size.
 * @param {Panel} panel
 * @param {number} width
 * @param {number} height
 * @param {Record<string, string>} palette
 * @returns {Frame} */
export function frameOf({ x, y }, width, height, palette) {
  const { left, right, top, bottom } = ROOM;
  return { left, top, width: width - left - right, height: height - top - bottom, x, y, paper: palette.paper };
}

/** The pixel of a place.
 * @param {Frame} frame
 * @param {number} x
 * @param {number} y */
export function pixelIn(frame, x, y) {
  const share = (/** @type {number} */ value, /** @type {{low: number, high: number}} */ axis) => (value - axis.low) / (axis.high - axis.low);
  return [frame.left + share(x, frame.x) * frame.width, frame.top + (1 - share(y, frame.y)) * frame.height];
}

/** Draw a panel: its grid, its numbers, its marks.
 * @param {CanvasRenderingContext2D} pen
 * @param {Panel} panel
 * @param {Frame} frame
 * @param {Record<string, string>} palette
 * @returns {number[][]} the boxes of its numbers, from which labels keep away */
export function drawPanel(pen, panel, frame, palette) {
  const { x, y, marks } = panel;
  const across = ticksOf(x, frame.width / 60), up = ticksOf(y, frame.height / 45);
  /** @type {Mark[]} */
  const rules = [];
  for (const [along, axis, ticks] of /** @type {[string, PanelAxis, [number, string][]][]} */ ([["x", x, across], ["y", y, up]])) {
    if (axis.grid) rules.push(...ticks.map(([at]) => ruleMark(along, at, palette.rule)));
    if (axis.zero) rules.push(ruleMark(along, 0, palette.frame));
  }
  drawMarks(pen, frame, rules);
  drawMarks(pen, frame, marks);
  const wide = frame.left + frame.width + ROOM.right, low = frame.top + frame.height;
  const look = { ink: palette.quiet, size: SMALL };
  pen.font = `${SMALL}px ${FONTS}`;
  const widthOf = (/** @type {string} */ text) => pen.measureText(text).width;
  const beside = up.map(([at, text]) => textMark(frame.left - 6, pixelIn(frame, x.low, at)[1], text, { ...look, across: "right" }));
  const below = across.map(([at, text]) => {
    const half = widthOf(text) / 2 + 1;
    return textMark(Math.max(half, Math.min(wide - half, pixelIn(frame, at, y.low)[0])), low + 13, text, look);
  });
  drawMarks(pen, pixelFrame(wide, low + ROOM.bottom, palette.paper), [...beside, ...below]);
  return beside.map((mark) => [mark.x - widthOf(mark.text), mark.y - SMALL, mark.x, mark.y + SMALL]);
}

/** The places of an axis that get a number, and their texts; the first bears the name.
 * @param {PanelAxis} axis
 * @param {number} most
 * @returns {[number, string][]} */
function ticksOf({ low, high, ticks, name, suffix }, most) {
  if (ticks) return ticks;
  return linearTicks(low, high, most).map((value, i) => {
    const text = String(Number(value.toPrecision(4))).replace("-", "−") + suffix;
    return [value, i || !name ? text : `${name} ${text}`];
  });
}

/** A clear button over something that a canvas shows: hands and screen readers find it there.
 * @param {string} label
 * @param {() => void} click
 * @returns {HTMLButtonElement} */
export function makeTarget(label, click) {
  return make("button", { type: "button", class: "target", tabindex: "-1", "aria-label": label, on: { click } });
}

/** An entry of a legend: a sample, and what it means.
 * @param {string} text
 * @returns {HTMLElement} */
export const makeEntry = (text) => make("span", {}, make("canvas", { "aria-hidden": "true" }), text);

/** Draw the sample of an entry, in a box of this width and 15 pixels high.
 * @param {HTMLElement} entry
 * @param {Mark[]} marks
 * @param {Record<string, string>} palette
 * @param {number} width */
export function drawSample(entry, marks, palette, width) {
  const canvas = /** @type {HTMLCanvasElement} */ (entry.firstChild);
  Object.assign(canvas.style, { width: `${width}px`, height: "15px" });
  const pen = fitCanvas(canvas, width, 15);
  clearCanvas(pen);
  drawMarks(pen, pixelFrame(width, 15, palette.paper), marks);
}
