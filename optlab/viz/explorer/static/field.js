// The ground of the map: heights of the surface on a grid, their shades, contour lines and labels.

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
  const above = finite.filter((value) => value > base);
  /** @param {number} share */
  const quantile = (share) => Math.log10(above[Math.floor(share * (above.length - 1))] - base);
  // In its lowest percent the grid no longer resolves the floor of a narrow valley.
  let low = above.length ? quantile(0.01) : 0, high = above.length ? quantile(0.999) : 1;
  if (!(high - low > 0.2)) [low, high] = [high - 0.2, high];
  return { ...grid, base, low, high, levels: roundLevels(base, low, high) };
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

/** @param {string} color */
const channels = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));

/** The shades of a field as an image of one pixel a grid point; clear where it is not defined.
 * @param {Field} field
 * @param {string} lowColor
 * @param {string} highColor */
export function shades(field, lowColor, highColor) {
  const { columns, rows, values, base, low, high } = field;
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(columns, rows);
  const from = channels(lowColor), to = channels(highColor);
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) {
      const value = values[j * columns + i];
      const at = 4 * ((rows - 1 - j) * columns + i);
      if (Number.isNaN(value)) continue;
      const height = value > base ? Math.log10(value - base) : -Infinity;
      const share = Math.max(0, Math.min(1, (height - low) / (high - low)));
      for (let c = 0; c < 3; c++) image.data[at + c] = from[c] + (to[c] - from[c]) * share;
      image.data[at + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** The contour line of a level as pairs of points in shares of the box (marching squares).
 * @param {Field} field
 * @param {number} level
 * @returns {number[]} x0, y0, x1, y1 of each piece */
export function contour(field, level) {
  const { columns, rows, values } = field;
  const found = [];
  const dx = 1 / (columns - 1), dy = 1 / (rows - 1);
  for (let j = 0; j < rows - 1; j++) {
    for (let i = 0; i < columns - 1; i++) {
      const at = j * columns + i;
      const a = values[at] - level, b = values[at + 1] - level;
      const c = values[at + columns + 1] - level, d = values[at + columns] - level;
      const cell = (a > 0 ? 1 : 0) | (b > 0 ? 2 : 0) | (c > 0 ? 4 : 0) | (d > 0 ? 8 : 0);
      if (cell === 0 || cell === 15 || !(Number.isFinite(a + b) && Number.isFinite(c + d))) continue;
      const bottom = () => [(i + a / (a - b)) * dx, j * dy];
      const right = () => [(i + 1) * dx, (j + b / (b - c)) * dy];
      const top = () => [(i + d / (d - c)) * dx, (j + 1) * dy];
      const left = () => [i * dx, (j + a / (a - d)) * dy];
      /** @type {(() => number[])[]} */
      let ends;
      if (cell === 1 || cell === 14) ends = [left, bottom];
      else if (cell === 2 || cell === 13) ends = [bottom, right];
      else if (cell === 4 || cell === 11) ends = [right, top];
      else if (cell === 8 || cell === 7) ends = [top, left];
      else if (cell === 3 || cell === 12) ends = [left, right];
      else if (cell === 6 || cell === 9) ends = [bottom, top];
      else if (cell === 5) ends = a + b + c + d > 0 ? [left, top, bottom, right] : [left, bottom, right, top];
      else ends = a + b + c + d > 0 ? [left, bottom, right, top] : [left, top, bottom, right];
      for (const end of ends) found.push(...end());
    }
  }
  return found;
}

/** A hatching for where something is not defined, or diverges.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} color
 * @param {number} [size] */
export function hatching(pen, color, size = 8) {
  const ratio = window.devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(size * ratio);
  const brush = tile.getContext("2d");
  brush.strokeStyle = color;
  brush.lineWidth = 1.6 * ratio;
  const n = tile.width;
  for (const shift of [-n, 0, n]) {
    brush.beginPath();
    brush.moveTo(shift - 2, n + 2);
    brush.lineTo(shift + n + 2, -2);
    brush.stroke();
  }
  const pattern = pen.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
  return pattern;
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
