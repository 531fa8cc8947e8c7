// The ground of the map: heights of the surface on a grid, with the levels of their contour lines.

import { linearTicks } from "../../browser/static/drawing.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

const LEAST_LEVELS = 4; // fewer that cross the map leave it empty
const LIKE_LINEAR = 0.7; // so few decades are alike on both scales

/** A part of the plane: [low x, high x, low y, high y].
 * @typedef {number[]} Box */

/** Heights of a surface on a grid.
 * @typedef {object} Field
 * @property {Box} box
 * @property {number} columns
 * @property {number} rows
 * @property {Float64Array} values losses, row by row from the lowest y
 * @property {number} base the loss that heights are above
 * @property {number} low log10 of the lowest height that is told apart
 * @property {number} high
 * @property {{height: number, loss: number, bold: boolean}[]} levels */

/** Evaluate a surface on a grid.
 * @param {(point: ArrayLike<number>) => number[]} evaluate
 * @param {Box} box
 * @param {number} columns
 * @param {number} rows
 * @param {number | null} minimum the known one
 * @returns {Field} */
export function fieldOf(evaluate, box, columns, rows, minimum) {
  const values = new Float64Array(columns * rows);
  const point = [0, 0];
  for (let j = 0; j < rows; j++) {
    point[1] = box[2] + ((box[3] - box[2]) * j) / (rows - 1);
    for (let i = 0; i < columns; i++) {
      point[0] = box[0] + ((box[1] - box[0]) * i) / (columns - 1);
      values[j * columns + i] = evaluate(point)[0];
    }
  }
  return withLevels({ box, columns, rows, values }, minimum);
}

/** Cut a box out of heights that the kernel sent, by linear interpolation; NaN outside of them.
 * @param {{box: Box, columns: number, rows: number, values: ArrayLike<number>}} given
 * @param {Box} box
 * @param {number} columns
 * @param {number} rows
 * @param {number | null} minimum
 * @returns {Field} */
export function fieldWithin(given, box, columns, rows, minimum) {
  const evaluate = (/** @type {number[]} */ [x, y]) => {
    const u = ((x - given.box[0]) / (given.box[1] - given.box[0])) * (given.columns - 1);
    const v = ((y - given.box[2]) / (given.box[3] - given.box[2])) * (given.rows - 1);
    const i = Math.min(given.columns - 2, Math.floor(u)), j = Math.min(given.rows - 2, Math.floor(v));
    if (!(i >= 0 && j >= 0 && u <= given.columns - 1 && v <= given.rows - 1)) return [NaN];
    const at = j * given.columns + i, a = u - i, b = v - j;
    const low = given.values[at] * (1 - a) + given.values[at + 1] * a;
    return [low * (1 - b) + (given.values[at + given.columns] * (1 - a) + given.values[at + given.columns + 1] * a) * b];
  };
  return fieldOf(/** @type {any} */ (evaluate), box, columns, rows, minimum);
}

/** @param {{box: Box, columns: number, rows: number, values: Float64Array}} grid
 * @param {number | null} minimum
 * @returns {Field} */
function withLevels(grid, minimum) {
  const finite = grid.values.filter(Number.isFinite).sort();
  const lowest = finite.length ? finite[0] : 0;
  const base = minimum === null || lowest < minimum ? lowest : minimum;
  const first = finite.findIndex((value) => value > base);
  const above = first < 0 ? finite.subarray(0, 0) : finite.subarray(first);
  /** @param {number} share */
  const quantile = (share) => Math.log10(above[Math.floor(share * (above.length - 1))] - base);
  // In its lowest percent the grid no longer resolves the floor of a narrow valley.
  let low = above.length ? quantile(0.01) : 0, high = above.length ? quantile(0.999) : 1;
  if (!(high - low > 0.2)) [low, high] = [high - 0.2, high];
  const levels = roundLevels(base, low, high);
  const share = (/** @type {number} */ part) => finite[Math.floor(part * (finite.length - 1))];
  const seen = levels.filter(({ loss }) => loss > share(0.1) && loss < share(0.9)).length;
  return { ...grid, base, low, high, levels: seen < LEAST_LEVELS && high - low < LIKE_LINEAR ? evenLevels(base, [0, 0.1, 0.9, 1].map(share)) : levels };
}

/** Losses of contour lines where the surface hardly curves, evenly spaced: then the lines are, too.
 * @param {number} base
 * @param {number[]} ends the lowest and highest loss, and between them where most of the map lies */
function evenLevels(base, [lowest, from, to, highest]) {
  if (!(to - from > 1e-11 * Math.max(Math.abs(lowest), Math.abs(highest)))) return [];
  const [first, second] = linearTicks(from, to, 8), unit = second - first;
  return linearTicks(lowest, highest, (highest - lowest) / unit).filter((loss) => loss > base).map((tick) => {
    const loss = Number(tick.toPrecision(12));
    return { height: Math.log10(loss - base), loss, bold: Math.round(tick / unit) % 5 === 0 };
  });
}

/** Losses of contour lines, round numbers that rise like 1, 2, 5, 10 above the lowest: where there are
 * many, one a decade or fewer; where there are few, more of each decade.
 * @param {number} base
 * @param {number} low log10 of the lowest height
 * @param {number} high */
export function roundLevels(base, low, high) {
  const span = high - low;
  const digits = span < 1.2 ? [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9] : span < 2.4 ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
  const stride = [1, 2, 4, 8, 16].find((one) => span / one <= 5.4 * (one > 1 ? 2.6 : 1)) || 32;
  const used = span <= 5.4 ? digits : span <= 8 ? [1, 3] : [1];
  /** @type {{height: number, loss: number, bold: boolean}[]} */
  const levels = [];
  for (let k = Math.floor(low); k <= high; k++) {
    if (used.length === 1 && ((k % stride) + stride) % stride) continue;
    for (const digit of used) {
      const above = digit * 10 ** k, unit = 10 ** k * (digit % 1 ? 0.5 : 1);
      const loss = base ? Number((Math.round((base + above) / unit) * unit).toPrecision(12)) : Number(above.toPrecision(12));
      const height = Math.log10(loss - base);
      if (!(height >= low && height <= high) || (levels.length && loss <= levels[levels.length - 1].loss)) continue;
      levels.push({ height, loss, bold: digit === 1 });
    }
  }
  if (levels.filter(({ bold }) => bold).length < 2) for (const level of levels) level.bold = level.bold || /^-?[125]/.test((level.loss - base).toExponential(0));
  return levels;
}

/** Evenly spaced numbers, both ends among them.
 * @param {number} low
 * @param {number} high
 * @param {number} count */
const evenly = (low, high, count) => Float64Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));

/** A field as shades between two colors, with contour lines.
 * @param {Field} field
 * @param {Record<string, string>} palette
 * @returns {Mark[]} */
export function fieldMarks(field, palette) {
  const { box, columns, rows, values, base, low, high } = field;
  const x = evenly(box[0], box[1], columns), y = evenly(box[2], box[3], rows);
  const heights = values.map((value) => (Number.isNaN(value) ? NaN : value > base ? Math.log10(value - base) : -Infinity));
  /** @type {Mark[]} */
  const marks = [{ kind: "HeatMap", x, y, values: heights, low, high, colors: [palette.mapLow, palette.mapHigh], smooth: true, blended: true }];
  for (const bold of [false, true]) {
    const levels = field.levels.filter((one) => one.bold === bold).map(({ loss }) => loss);
    marks.push({ kind: "Contour", x, y, height: values, levels, colors: [], pen: { color: palette.contour, width: bold ? 1.1 : 0.7, opacity: bold ? 0.95 : 0.5 } });
  }
  return marks;
}

/** Slopes and curvatures at a point: the value, the gradient, and the Hessian by differences of it.
 * @param {(point: ArrayLike<number>) => number[]} evaluate
 * @param {number[]} point
 * @param {number} reach the length of the differences */
export function localShape(evaluate, point, reach) {
  const [value, ...gradient] = evaluate(point);
  if (point.length < 2) {
    const h = Math.max(Math.abs(point[0]), reach) * 1e-5;
    return { value, gradient, curvatures: [(evaluate([point[0] + h])[1] - evaluate([point[0] - h])[1]) / (2 * h)], axes: [] };
  }
  const h = [0, 1].map((i) => Math.max(Math.abs(point[i]), reach) * 1e-5);
  const hessian = [0, 1].map((i) => {
    const ends = [1, -1].map((sign) => evaluate(point.map((x, k) => (k === i ? x + sign * h[i] : x))).slice(1));
    return [0, 1].map((k) => (ends[0][k] - ends[1][k]) / (2 * h[i]));
  });
  const a = hessian[0][0], d = hessian[1][1], b = (hessian[0][1] + hessian[1][0]) / 2;
  const middle = (a + d) / 2, spread = Math.hypot((a - d) / 2, b);
  const angle = 0.5 * Math.atan2(2 * b, a - d); // of the larger curvature
  return { value, gradient, curvatures: [middle + spread, middle - spread], axes: [angle] };
}
