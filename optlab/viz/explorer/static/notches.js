// A slider with notches: above each notch stands the loss to which it leads. Short is good, hatched
// diverges, a ring above its bar marks the best.

import { drawMarks } from "../../browser/static/canvas.js";
import { clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { boxesMark, lineMark, pixelFrame, pointMark } from "../../browser/static/marks.js";
import { numberText } from "./numbers.js";

/** Which of these losses is the lowest, of those that may be called the best: the lowest of all if none
 * may; -1 if there is none.
 * @param {(number | null | undefined)[]} finals
 * @param {(index: number) => boolean} [may]
 * @returns {number} */
export function bestOf(finals, may = () => true) {
  const known = [...finals.keys()].filter((i) => typeof finals[i] === "number");
  known.sort((i, j) => /** @type {number} */ (finals[i]) - /** @type {number} */ (finals[j]));
  return known.find(may) ?? known[0] ?? -1;
}

/** Heights of bars, from 0.12 to 1, of losses on a logarithmic scale. What ends above the start has the
 * full height: a run that grows without bound would make all others look alike.
 * @param {(number | null | undefined)[]} finals
 * @param {number} floor
 * @param {number} start the loss of the start
 * @returns {number[]} NaN where there is no loss */
export function barHeights(finals, floor, start) {
  const least = Math.min(...finals.map((loss) => (typeof loss === "number" && loss > floor ? loss - floor : Infinity)), 1);
  const above = finals.map((loss) => (typeof loss === "number" ? Math.log10(Math.max(loss - floor, least / 10)) : NaN));
  const known = above.filter((value) => !Number.isNaN(value));
  const low = Math.min(...known), highest = Math.max(...known);
  const high = start > floor ? Math.max(Math.min(highest, Math.log10(start - floor)), low) : highest;
  const span = Math.max(high - low, 1);
  return above.map((value) => (highest - low < 1e-9 ? 0.55 : 0.12 + 0.88 * Math.min(1, (value - low) / span)));
}

export class NotchSlider {
  /** @param {object} given
   * @param {string} given.label
   * @param {(index: number) => void} given.choose
   * @param {(index: number) => void} given.hover -1 for none
   */
  constructor({ label, choose, hover }) {
    this.canvas = make("canvas", { class: "notch-canvas", "aria-hidden": "true" });
    this.element = make("div", { class: "notches", role: "slider", tabindex: "0", "aria-label": label }, this.canvas);
    this.choose = choose;
    /** @type {any} */
    this.shown = null;
    let held = false;
    /** The notch that is nearest.
     * @param {PointerEvent} event */
    const at = (event) => {
      const bounds = this.element.getBoundingClientRect();
      const { places } = this.shown, [first] = places, span = places[places.length - 1] - first + 1;
      const place = first + ((event.clientX - bounds.left) / bounds.width) * span - 0.5;
      const away = places.map((/** @type {number} */ one) => Math.abs(one - place));
      return away.indexOf(Math.min(...away));
    };
    this.element.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0 || this.shown.disabled) return;
      held = true;
      this.element.setPointerCapture(event.pointerId);
      this.element.focus({ preventScroll: true });
      event.preventDefault();
      choose(at(event));
    });
    this.element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      const index = at(event);
      this.element.title = this.said(index);
      if (held && index !== this.shown.index) choose(index);
      else if (!held) hover(index === this.shown.index ? -1 : index);
    });
    for (const name of ["pointerup", "pointercancel"]) this.element.addEventListener(name, () => (held = false));
    this.element.addEventListener("pointerleave", () => hover(-1));
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const { index, values, disabled } = this.shown;
      /** @type {Record<string, number>} */
      const to = { ArrowLeft: index - 1, ArrowDown: index - 1, ArrowRight: index + 1, ArrowUp: index + 1, Home: 0, End: values.length - 1 };
      if (!(event.key in to) || disabled || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      choose(Math.max(0, Math.min(values.length - 1, to[event.key])));
    });
  }

  /** @param {number} index */
  said(index) {
    const { values, finals } = this.shown;
    const loss = finals[index];
    const end = loss === undefined ? "" : loss === null ? ": diverges" : `: loss ${numberText(loss)}`;
    return `${numberText(values[index], 6)}${end}`;
  }

  /** Draw it. A notch stands at its place: sliders that share places have equal values below each other.
   * @param {{values: number[], places?: number[], index: number, finals: (number | null | undefined)[], floor: number, start: number, color: string, palette: Record<string, string>, notch: number, height: number, disabled?: boolean, best?: boolean, open?: boolean, steady?: (index: number) => boolean}} shown */
  draw(shown) {
    const { values, places = values.map((_, i) => i), index, finals, color, palette, notch, height, floor, start, disabled } = shown;
    this.shown = { ...shown, places };
    const [first] = places, inside = notch * (places[places.length - 1] - first + 1);
    const handle = Math.min(16, 1.6 * notch, 0.37 * height), line = 0.21 * handle;
    // The canvas is wider than the slider, so that a handle at the first or last notch is whole.
    const edge = Math.max(0, Math.ceil((handle + line - notch) / 2 + 1)), width = inside + 2 * edge;
    this.element.style.width = `${inside}px`;
    this.element.style.height = `${height}px`;
    Object.assign(this.canvas.style, { width: `${width}px`, marginLeft: `${-edge}px` });
    const pen = fitCanvas(this.canvas, width, height);
    clearCanvas(pen);
    const middle = (/** @type {number} */ i) => edge + notch * (places[i] - first + 0.5);
    const bar = Math.min(22, notch * 0.74), track = height - (handle + line) / 2 - 0.3, base = track - 0.44 * handle, tallest = base - 1;
    const heights = barHeights(finals, floor, start), wanted = shown.best === false ? -1 : bestOf(finals, shown.steady);
    // A rate at the end is none that one may call the best: better ones may lie beyond.
    const best = shown.open && (wanted === 0 || wanted === values.length - 1) ? -1 : wanted;
    /** @type {import("../../browser/static/marks.js").Mark[]} */
    const marks = [];
    const tall = (/** @type {number} */ i) => (finals[i] === null ? tallest : heights[i] * tallest);
    values.forEach((_, i) => {
      const x = middle(i) - bar / 2;
      if (finals[i] === undefined) return;
      const fill = finals[i] === null ? { color: "none", pattern: "/", ink: color } : { color };
      marks.push(boxesMark([x], [base], [x + bar], [base - tall(i)], fill, i === index ? 1 : finals[i] === null ? 0.5 : 0.38));
    });
    const ends = [middle(0), middle(values.length - 1)];
    // A line with round ends.
    marks.push(lineMark(ends, [track, track], { color: palette.track, width: 4 }), ...ends.map((x) => pointMark(x, track, "circle", 4, palette.track)));
    const ring = (/** @type {number} */ i, /** @type {number} */ y, /** @type {number} */ size, /** @type {string} */ ink, /** @type {number} */ wide) => {
      const mark = pointMark(middle(i), y, "circle", size, palette.paper, ink, wide);
      marks.push({ ...mark, marker: { .../** @type {any} */ (mark.marker), opacity: disabled ? 0.5 : 1 } });
    };
    // Above its bar, which is short: on the line the handle would cover it.
    const small = Math.min(8, notch * 0.72);
    if (best >= 0) ring(best, Math.max(small / 2 + 1, base - tall(best) - small / 2 - 2.5), small, palette.quiet, 1.8);
    ring(index, track, handle, color, line);
    drawMarks(pen, pixelFrame(width, height, palette.paper), marks);
    this.element.setAttribute("aria-valuemin", "0");
    this.element.setAttribute("aria-valuemax", String(values.length - 1));
    this.element.setAttribute("aria-valuenow", String(index));
    this.element.setAttribute("aria-valuetext", this.said(index) + (best === index ? ", the lowest of these" : ""));
    this.element.setAttribute("aria-disabled", String(Boolean(disabled)));
  }
}
