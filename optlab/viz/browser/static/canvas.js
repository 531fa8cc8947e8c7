// Draws marks on a canvas: the counterpart of backends/plotly/draw.py and backends/matplotlib/draw.py. All
// that pages draw on canvases comes from here.

import { FONTS, markerOutline } from "./drawing.js";

/** @typedef {import("./marks.js").Mark} Mark */
/** @typedef {import("./marks.js").Frame} Frame */
/** @typedef {import("./marks.js").Axis} Axis */
/** @typedef {import("./marks.js").Pen} Pen */
/** @typedef {import("./marks.js").Fill} Fill */
/** @typedef {import("./marks.js").Numbers} Numbers */

const FAR = 1e5; // pixels: what is farther away keeps its direction
const HALO = 3.5; // pixels around letters, on both sides together
const TILE = 8; // pixels between the lines of a hatching
const HATCHING = "#1f232859"; // as theme.HATCHING in Python

/** From data to pixels: along an axis a + b * value, of its logarithm on a log axis.
 * @typedef {{a: number, b: number, log: boolean}} Scale */

/** @param {Axis} axis
 * @param {number} from the pixel of the low end
 * @param {number} to
 * @returns {Scale} */
function scaleOf({ low, high, scale }, from, to) {
  const b = (to - from) / (high - low);
  return { a: from - b * low, b, log: scale === "log" };
}

/** The pixel of a value; below all on a log axis what has no logarithm.
 * @param {Scale} scale
 * @param {number | null} value
 * @returns {number} */
function pixelOf({ a, b, log }, value) {
  if (value === null) return NaN;
  return a + b * (log ? (value > 0 ? Math.log10(value) : Number.isNaN(value) ? NaN : -400) : value);
}

/** Draw marks, the first at the bottom.
 * @param {CanvasRenderingContext2D} pen
 * @param {Frame} frame
 * @param {Mark[]} marks */
export function drawMarks(pen, frame, marks) {
  const draw = /** @type {any} */ (new Draw(pen, frame));
  for (const below of [true, false]) {
    for (const mark of marks) {
      if (Boolean(/** @type {any} */ (mark).below) !== below) continue;
      if (!MARK_KINDS.includes(mark.kind)) throw new TypeError(`${mark.kind} is no mark.`);
      pen.save();
      if (/** @type {any} */ (mark).clip) draw.clip();
      draw[`draw${mark.kind}`](mark);
      pen.restore();
    }
  }
}

export const MARK_KINDS = ["Line", "Points", "Text", "Rule", "Area", "Band", "Bars", "Boxes", "Region", "Arrow", "Contour", "HeatMap"];

class Draw {
  /** @param {CanvasRenderingContext2D} pen
   * @param {Frame} frame */
  constructor(pen, frame) {
    this.pen = pen;
    this.frame = frame;
    /** @type {Map<string, CanvasPattern>} */
    this.hatches = new Map();
    const { left, top, width, height } = frame;
    this.x = scaleOf(frame.x, left, left + width);
    this.y = scaleOf(frame.y, top + height, top);
  }

  clip() {
    const { left, top, width, height } = this.frame;
    this.pen.beginPath();
    this.pen.rect(left - 1, top, width + 2, height + 1);
    this.pen.clip();
  }

  /** Take up a pen.
   * @param {Pen} look */
  take({ color, width, dash, opacity }) {
    const { pen } = this;
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.globalAlpha = opacity ?? 1;
    pen.setLineDash(dash || []);
  }

  /** Fill the path, and hatch it.
   * @param {Fill} fill
   * @param {CanvasFillRule} [rule] */
  fill({ color, pattern, ink }, rule = "nonzero") {
    const { pen } = this;
    if (color !== "none") {
      pen.fillStyle = color;
      pen.fill(rule);
    }
    if (!pattern) return;
    const lines = ink || HATCHING, key = `${pattern} ${lines}`;
    const hatch = this.hatches.get(key) || hatching(pen, pattern, lines);
    this.hatches.set(key, hatch);
    pen.fillStyle = hatch;
    pen.fill(rule);
  }

  /** @param {Pen | null | undefined} edge */
  edge(edge) {
    if (!edge || !edge.width) return;
    this.take(edge);
    this.pen.stroke();
  }

  /** Add a polyline to the path, broken where a coordinate is NaN.
   * @param {Numbers} x
   * @param {Numbers} y
   * @param {boolean} [stepped]
   * @param {boolean} [closed] */
  trace(x, y, stepped = false, closed = false) {
    const { pen, frame } = this;
    const cx = frame.left + frame.width / 2, cy = frame.top + frame.height / 2;
    const { a: ax, b: bx } = this.x, { a: ay, b: by } = this.y;
    // Paths of runs are typed arrays on plain axes: this is what every frame spends its time on.
    const plain = x instanceof Float64Array && y instanceof Float64Array && !this.x.log && !this.y.log;
    let open = false, before = 0;
    for (let i = 0; i < x.length; i++) {
      let px = plain ? ax + bx * x[i] : pixelOf(this.x, x[i]), py = plain ? ay + by * y[i] : pixelOf(this.y, y[i]);
      const size = Math.max(Math.abs(px - cx), Math.abs(py - cy));
      if (!(size < FAR)) {
        px = cx + (px - cx) * (FAR / size);
        py = cy + (py - cy) * (FAR / size);
      }
      if (Number.isNaN(px) || Number.isNaN(py)) {
        if (closed && open) pen.closePath();
        open = false;
        continue;
      }
      if (open && stepped) pen.lineTo(before, py);
      if (open) pen.lineTo(px, py);
      else pen.moveTo(px, py);
      open = true;
      before = px;
    }
    if (closed && open) pen.closePath();
  }

  /** @param {import("./marks.js").LineMark} mark */
  drawLine({ x, y, pen: look, stepped }) {
    const { pen } = this;
    this.take(look);
    pen.beginPath();
    this.trace(x, y, stepped);
    pen.stroke();
  }

  /** @param {import("./marks.js").PointsMark} mark */
  drawPoints({ x, y, marker, seen, faces, text, side, ink }) {
    const { pen } = this;
    if (!marker) return;
    const { name, size, face, edge, edge_width: width, opacity } = marker;
    pen.globalAlpha = opacity ?? 1;
    pen.lineWidth = width || 0;
    if (edge) pen.strokeStyle = edge;
    const finish = (/** @type {string} */ color) => {
      if (color !== "none") {
        pen.fillStyle = color;
        pen.fill();
      }
      if (edge && width) pen.stroke();
    };
    // All in one path: one call of the canvas, however many there are.
    if (!faces || !faces.length) pen.beginPath();
    for (let i = 0; i < x.length; i++) {
      const px = pixelOf(this.x, x[i]), py = pixelOf(this.y, y[i]);
      if ((seen && !seen[i]) || !(Math.abs(px) < FAR && Math.abs(py) < FAR)) continue;
      if (faces && faces.length) pen.beginPath();
      markerOutline(pen, name, px, py, size);
      if (faces && faces.length) finish(faces[i]);
    }
    if (!faces || !faces.length) finish(face);
    if (!text || !side) return;
    const [up, across] = side.split(" "), away = size / 2 + 2;
    this.drawText({
      kind: "Text", x: /** @type {number} */ (x[0]), y: /** @type {number} */ (y[0]), text, ink: ink || edge || face, size: 12, halo: true,
      across: { left: "right", center: "center", right: "left" }[across], up: { top: "bottom", middle: "middle", bottom: "top" }[up],
      shift: [{ left: -away, center: 0, right: away }[across], { top: away, middle: 0, bottom: -away }[up]],
    });
  }

  /** @param {import("./marks.js").TextMark} mark */
  drawText({ x, y, text, ink, size, across = "center", up = "middle", shift = [0, 0], bold, angle, halo, ground, opacity }) {
    const { pen, frame } = this;
    const lines = text.split("\n"), tall = 1.25 * size;
    pen.font = `${bold ? "bold " : ""}${size}px ${FONTS}`;
    pen.textAlign = /** @type {CanvasTextAlign} */ (across);
    pen.textBaseline = "middle";
    pen.globalAlpha = opacity ?? 1;
    let px = pixelOf(this.x, x) + shift[0], py = pixelOf(this.y, y) - shift[1];
    if (angle) {
      pen.translate(px, py);
      pen.rotate((-angle * Math.PI) / 180);
      px = py = 0;
    }
    const first = py + (/** @type {Record<string, number>} */ ({ top: 0.5, middle: 0.5 - lines.length / 2, bottom: 0.5 - lines.length }))[up] * tall;
    if (ground) {
      const wide = Math.max(...lines.map((line) => pen.measureText(line).width));
      const left = px + (/** @type {Record<string, number>} */ ({ left: 0, center: -0.5, right: -1 }))[across] * wide;
      pen.globalAlpha = ground * (opacity ?? 1);
      pen.fillStyle = frame.paper;
      pen.beginPath();
      pen.roundRect(left - 6, first - 0.75 * size, wide + 12, tall * (lines.length - 1) + 1.5 * size, 4);
      pen.fill();
      pen.globalAlpha = opacity ?? 1;
    }
    lines.forEach((line, i) => {
      if (halo && !ground) {
        pen.setLineDash([]);
        pen.strokeStyle = frame.paper;
        pen.lineWidth = HALO;
        pen.strokeText(line, px, first + i * tall);
      }
      pen.fillStyle = ink;
      pen.fillText(line, px, first + i * tall);
    });
  }

  /** @param {import("./marks.js").RuleMark} mark */
  drawRule({ along, at, pen: look }) {
    const { pen, frame } = this;
    const across = along === "x";
    this.take(look);
    pen.beginPath();
    // In the middle of a pixel: a thin line is sharp.
    const place = Math.round(pixelOf(across ? this.x : this.y, at)) + 0.5;
    pen.moveTo(across ? place : frame.left, across ? frame.top : place);
    pen.lineTo(across ? place : frame.left + frame.width, across ? frame.top + frame.height : place);
    pen.stroke();
  }

  /** The path around what lies between two curves.
   * @param {Numbers} x
   * @param {Numbers} low
   * @param {Numbers} high */
  between(x, low, high) {
    const { pen } = this;
    pen.beginPath();
    for (let i = 0; i < x.length; i++) pen.lineTo(pixelOf(this.x, x[i]), pixelOf(this.y, high[i]));
    for (let i = x.length - 1; i >= 0; i--) pen.lineTo(pixelOf(this.x, x[i]), pixelOf(this.y, low[i]));
    pen.closePath();
  }

  /** @param {import("./marks.js").AreaMark} mark */
  drawArea({ x, low, high, fill, edge }) {
    this.between(x, low, high);
    this.fill(fill);
    if (!edge) return;
    this.take(edge);
    this.pen.beginPath();
    this.trace(x, high);
    this.pen.stroke();
  }

  /** @param {import("./marks.js").BandMark} mark */
  drawBand({ x, low, high, color, opacity }) {
    this.pen.globalAlpha = opacity;
    this.between(x, low, high);
    this.fill({ color });
  }

  /** @param {import("./marks.js").BarsMark} mark */
  drawBars({ lengths, places, thickness, fills, edge }) {
    const half = thickness / 2, middles = Array.from(places, Number);
    this.drawBoxes({ kind: "Boxes", x0: middles.map(() => 0), y0: middles.map((y) => y - half), x1: lengths, y1: middles.map((y) => y + half), fills, edge });
  }

  /** @param {import("./marks.js").BoxesMark} mark */
  drawBoxes({ x0, y0, x1, y1, fills, edge, opacity }) {
    const { pen } = this;
    for (let i = 0; i < x0.length; i++) {
      const left = pixelOf(this.x, x0[i]), top = pixelOf(this.y, y1[i]);
      pen.globalAlpha = opacity ?? 1;
      pen.beginPath();
      pen.rect(left, top, pixelOf(this.x, x1[i]) - left, pixelOf(this.y, y0[i]) - top);
      this.fill(fills[fills.length > 1 ? i : 0]);
      this.edge(edge);
    }
  }

  /** @param {import("./marks.js").RegionMark} mark */
  drawRegion({ x, y, fill, edge, opacity }) {
    const { pen } = this;
    pen.globalAlpha = opacity ?? 1;
    pen.beginPath();
    this.trace(x, y, false, true);
    this.fill(fill, "evenodd");
    this.edge(edge);
  }

  /** @param {import("./marks.js").ArrowMark} mark */
  drawArrow({ x0, y0, x1, y1, pen: look, halo = true }) {
    const { pen, frame } = this;
    const [ax, ay, bx, by] = [pixelOf(this.x, x0), pixelOf(this.y, y0), pixelOf(this.x, x1), pixelOf(this.y, y1)];
    const length = Math.hypot(bx - ax, by - ay);
    if (!(length >= 2)) return;
    const ux = (bx - ax) / length, uy = (by - ay) / length, thick = look.width;
    const wide = 4 + 1.2 * Math.max(0, thick - 2.2), head = Math.min(10 + 1.6 * Math.max(0, thick - 2.2), length);
    const parts = [{ style: look.color, width: thick, grow: 0 }];
    if (halo) parts.unshift({ style: frame.paper, width: thick + 2.8, grow: 2 });
    pen.globalAlpha = look.opacity ?? 1;
    pen.setLineDash([]);
    for (const { style, width, grow } of parts) {
      pen.strokeStyle = pen.fillStyle = style;
      pen.lineWidth = width;
      pen.beginPath();
      pen.moveTo(ax, ay);
      pen.lineTo(bx - ux * head * 0.7, by - uy * head * 0.7);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(bx + ux * grow, by + uy * grow);
      pen.lineTo(bx - ux * (head + grow) - uy * (wide + grow), by - uy * (head + grow) + ux * (wide + grow));
      pen.lineTo(bx - ux * (head + grow) + uy * (wide + grow), by - uy * (head + grow) - ux * (wide + grow));
      pen.closePath();
      pen.fill();
    }
  }

  /** @param {import("./marks.js").ContourMark} mark */
  drawContour({ x, y, height, levels, colors, pen: look }) {
    const { pen } = this;
    if (colors.length) this.bands(x, y, height, levels, colors);
    const px = Float64Array.from(x, (value) => pixelOf(this.x, value)), py = Float64Array.from(y, (value) => pixelOf(this.y, value));
    const at = (/** @type {Float64Array} */ places, /** @type {number} */ share) => {
      const place = share * (places.length - 1), i = Math.min(Math.floor(place), places.length - 2);
      return places[i] + (place - i) * (places[i + 1] - places[i]);
    };
    this.take(look);
    for (const level of Array.from(levels, Number)) {
      const pieces = contourOf(height, x.length, y.length, level);
      pen.beginPath();
      for (let i = 0; i < pieces.length; i += 4) {
        pen.moveTo(at(px, pieces[i]), at(py, pieces[i + 1]));
        pen.lineTo(at(px, pieces[i + 2]), at(py, pieces[i + 3]));
      }
      pen.stroke();
    }
  }

  /** Fill what is above each level in the color of the band above it: the pieces of all cells that are.
   * @param {Numbers} x
   * @param {Numbers} y
   * @param {Numbers} height
   * @param {Numbers} levels
   * @param {string[]} colors */
  bands(x, y, height, levels, colors) {
    const { pen } = this, columns = x.length;
    [-Infinity, ...Array.from(levels, Number)].forEach((level, k) => {
      pen.beginPath();
      for (let j = 0; j + 1 < y.length; j++) {
        for (let i = 0; i + 1 < columns; i++) {
          const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]].map(([a, b]) => {
            const value = height[b * columns + a];
            return [pixelOf(this.x, x[a]), pixelOf(this.y, y[b]), value === null ? NaN : value];
          });
          if (corners.some(([, , value]) => Number.isNaN(value))) continue;
          let open = false;
          corners.forEach((from, n) => {
            const to = corners[(n + 1) % 4], above = from[2] >= level;
            const ends = above ? [from] : [];
            if (above !== to[2] >= level) {
              const share = (level - from[2]) / (to[2] - from[2]);
              ends.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
            }
            for (const [px, py] of ends) {
              if (open) pen.lineTo(px, py);
              else pen.moveTo(px, py);
              open = true;
            }
          });
          if (open) pen.closePath();
        }
      }
      this.fill({ color: colors[k] });
    });
  }

  /** @param {import("./marks.js").HeatMapMark} mark */
  drawHeatMap({ x, y, values, low, high, colors, smooth, blended, opacity }) {
    const { pen } = this;
    const columns = x.length, rows = y.length;
    const [left, right] = edgesOf(x).map((value) => pixelOf(this.x, value));
    const [first, last] = edgesOf(y).map((value) => pixelOf(this.y, value));
    pen.imageSmoothingEnabled = Boolean(blended);
    pen.imageSmoothingQuality = "high";
    pen.globalAlpha = opacity ?? 1;
    // The first row of an image is its highest; that of the values is the lowest of the axis.
    pen.translate(left, first);
    pen.scale((right - left) / columns, (last - first) / rows);
    pen.drawImage(imageOf(values, columns, rows, low, high, colors, Boolean(smooth)), 0, 0);
  }
}

/** The outer edges of cells around evenly spaced places.
 * @param {Numbers} places
 * @returns {number[]} */
function edgesOf(places) {
  const first = Number(places[0]), last = Number(places[places.length - 1]);
  const half = places.length > 1 ? (last - first) / (places.length - 1) / 2 : 0.5;
  return [first - half, last + half];
}

/** Values as an image of one pixel a cell, the first row on top; clear where there is none.
 * @param {Numbers} values
 * @param {number} columns
 * @param {number} rows
 * @param {number} low
 * @param {number} high
 * @param {string[]} colors
 * @param {boolean} smooth
 * @returns {HTMLCanvasElement} */
function imageOf(values, columns, rows, low, high, colors, smooth) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = pen.createImageData(columns, rows);
  const parts = colors.map((color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)));
  const last = colors.length - 1;
  for (let at = 0; at < columns * rows; at++) {
    const value = values[at];
    if (value === null || Number.isNaN(value)) continue;
    const share = Math.max(0, Math.min(1, (value - low) / (high - low)));
    const place = smooth ? share * last : Math.min(last, Math.floor(share * colors.length));
    const from = parts[Math.floor(place)], to = parts[Math.min(last, Math.floor(place) + 1)], part = place - Math.floor(place);
    for (let c = 0; c < 3; c++) image.data[4 * at + c] = from[c] + (to[c] - from[c]) * part;
    image.data[4 * at + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/** Contour lines that were found, of each grid by level: labels ask for those that are drawn.
 * @type {WeakMap<object, Map<number, number[]>>} */
const FOUND = new WeakMap();

/** Which sides of a cell its contour line joins (0 bottom, 1 right, 2 top, 3 left), by the corners that
 * are above the level; and those of a saddle whose middle is on the other side. */
const CROSSED = [[], [3, 0], [0, 1], [3, 1], [1, 2], [3, 0, 1, 2], [0, 2], [2, 3], [2, 3], [0, 2], [3, 0, 1, 2], [1, 2], [3, 1], [0, 1], [3, 0], []];
const TURNED = [3, 2, 0, 1];

/** The contour line of a level as pairs of points in shares of the grid (marching squares).
 * @param {Numbers} height row by row
 * @param {number} columns
 * @param {number} rows
 * @param {number} level
 * @returns {number[]} x0, y0, x1, y1 of each piece */
export function contourOf(height, columns, rows, level) {
  const known = FOUND.get(height) || new Map();
  FOUND.set(height, known);
  const before = known.get(level);
  if (before) return before;
  /** @type {number[]} */
  const found = [];
  known.set(level, found);
  const values = /** @type {ArrayLike<number>} */ (Array.isArray(height) ? Float64Array.from(height, (value) => value ?? NaN) : height);
  const dx = 1 / (columns - 1), dy = 1 / (rows - 1);
  for (let j = 0; j < rows - 1; j++) {
    // The right side of a cell is the left side of the next.
    let b = values[j * columns] - level, c = values[(j + 1) * columns] - level;
    for (let i = 0; i < columns - 1; i++) {
      const at = j * columns + i + 1, a = b, d = c;
      b = values[at] - level;
      c = values[at + columns] - level;
      const cell = (a > 0 ? 1 : 0) | (b > 0 ? 2 : 0) | (c > 0 ? 4 : 0) | (d > 0 ? 8 : 0);
      if (cell === 0 || cell === 15 || !(Number.isFinite(a + b) && Number.isFinite(c + d))) continue;
      const turned = (cell === 5 || cell === 10) && (cell === 5) === a + b + c + d > 0;
      for (const side of turned ? TURNED : CROSSED[cell]) {
        if (side === 0) found.push((i + a / (a - b)) * dx, j * dy);
        else if (side === 1) found.push((i + 1) * dx, (j + b / (b - c)) * dy);
        else if (side === 2) found.push((i + d / (d - c)) * dx, (j + 1) * dy);
        else found.push(i * dx, (j + a / (a - d)) * dy);
      }
    }
  }
  return found;
}

/** A hatching, in lines of one color on nothing.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} name "/", "x" or "."
 * @param {string} color
 * @returns {CanvasPattern} */
function hatching(pen, name, color) {
  const ratio = window.devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  const n = (tile.width = tile.height = Math.round(TILE * ratio));
  const brush = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  brush.strokeStyle = brush.fillStyle = color;
  brush.lineWidth = 1.6 * ratio;
  brush.beginPath();
  if (name === ".") {
    brush.arc(n / 2, n / 2, 1.2 * ratio, 0, 2 * Math.PI);
    brush.fill();
  } else {
    for (const shift of [-n, 0, n]) {
      brush.moveTo(shift - 2, n + 2);
      brush.lineTo(shift + n + 2, -2);
      if (name !== "x") continue;
      brush.moveTo(shift - 2, -2);
      brush.lineTo(shift + n + 2, n + 2);
    }
    brush.stroke();
  }
  const pattern = /** @type {CanvasPattern} */ (pen.createPattern(tile, "repeat"));
  pattern.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
  return pattern;
}
