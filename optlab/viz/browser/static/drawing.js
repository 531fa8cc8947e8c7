// Canvases, the outlines of markers, ticks, and places for labels: what the makers of marks share.

export const FONTS = '"Inter", "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif';

/** Fit a canvas to its box in device pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @param {number} [ratio] of its pixels to those of the page
 * @returns {CanvasRenderingContext2D} */
export function fitCanvas(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.lineJoin = "round";
  pen.lineCap = "butt";
  return pen;
}

/** @param {CanvasRenderingContext2D} pen */
export function clearCanvas(pen) {
  pen.save();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, pen.canvas.width, pen.canvas.height);
  pen.restore();
}

/** @type {Record<string, number[]>} */
const POLYGONS = { "triangle-up": [3, -90], "triangle-down": [3, 90], diamond: [4, -90], square: [4, -45], pentagon: [5, -90], hexagon: [6, 0] };

/** Add the outline of a marker to the path.
 * @param {any} pen a canvas context, or what records its calls
 * @param {string} marker
 * @param {number} x
 * @param {number} y
 * @param {number} size */
export function markerOutline(pen, marker, x, y, size) {
  const r = size / 2;
  let first = true;
  const to = (/** @type {number} */ px, /** @type {number} */ py) => {
    if (first) pen.moveTo(px, py);
    else pen.lineTo(px, py);
    first = false;
  };
  if (marker === "circle") {
    pen.moveTo(x + r, y);
    pen.arc(x, y, r, 0, 2 * Math.PI);
  } else if (marker === "star") {
    for (let i = 0; i < 10; i++) {
      const radius = i % 2 ? r * 0.42 : r * 1.15;
      const angle = ((i * 36 - 90) * Math.PI) / 180;
      to(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    }
    pen.closePath();
  } else if (marker === "x-thin") {
    for (const side of [1, -1]) {
      pen.moveTo(x - r, y - side * r);
      pen.lineTo(x + r, y + side * r);
    }
  } else if (marker === "cross" || marker === "x") {
    const turn = marker === "x" ? Math.PI / 4 : 0;
    const w = r * 0.4;
    for (const [a, b] of [[-w, -r], [w, -r], [w, -w], [r, -w], [r, w], [w, w], [w, r], [-w, r], [-w, w], [-r, w], [-r, -w], [-w, -w]]) {
      to(x + a * Math.cos(turn) - b * Math.sin(turn), y + a * Math.sin(turn) + b * Math.cos(turn));
    }
    pen.closePath();
  } else {
    const [corners, turned] = POLYGONS[marker] || POLYGONS.diamond;
    const radius = r * (corners === 3 ? 1.25 : 1.15);
    for (let i = 0; i < corners; i++) {
      const angle = ((turned + (i * 360) / corners) * Math.PI) / 180;
      to(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    }
    pen.closePath();
  }
}

/** About `most` round numbers between low and high.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 * @returns {number[]} */
export function linearTicks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough * 0.999) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    found.push(Math.abs(k * step) < step * 1e-9 ? 0 : k * step);
  }
  return found;
}

/** @param {number[]} box
 * @param {number} x
 * @param {number} y */
function nearestOf(box, x, y) {
  return [Math.max(box[0] + 3, Math.min(box[2] - 3, x)), Math.max(box[1] + 2, Math.min(box[3] - 2, y))];
}

/** Whether a label is so far from its point that it seems to belong to another.
 * @param {{box: number[]}} spot what `placeLabel` has found
 * @param {number} x
 * @param {number} y
 * @param {number} mark the radius of what is drawn at the point */
export function isFar({ box }, x, y, mark) {
  const [nx, ny] = nearestOf(box, x, y);
  return Math.hypot(nx - x, ny - y) >= mark + 11;
}

/** A thin line from a point to its label, where the label had to go far away from it: its ends.
 * @param {{box: number[]}} spot what `placeLabel` has found
 * @param {number} x
 * @param {number} y
 * @param {number} [mark] the radius of what is drawn at the point
 * @returns {{x: number[], y: number[]} | null} */
export function leaderOf(spot, x, y, mark = 9) {
  if (!isFar(spot, x, y, mark)) return null;
  const ends = nearestOf(spot.box, x, y), far = Math.hypot(ends[0] - x, ends[1] - y);
  return { x: [x + ((ends[0] - x) * mark) / far, ends[0]], y: [y + ((ends[1] - y) * mark) / far, ends[1]] };
}

/** Points along a path in pixels, from which labels keep away; null breaks the path.
 * @param {(number[] | null)[]} places
 * @returns {number[][]} */
export function between(places, apart = 14, most = 20) {
  /** @type {number[][]} */
  const found = [];
  places.forEach((place, i) => {
    const before = places[i - 1];
    if (!place || !before) return;
    const pieces = Math.min(most, Math.ceil(Math.hypot(place[0] - before[0], place[1] - before[1]) / apart));
    for (let k = 0; k < pieces; k++) found.push([before[0] + ((place[0] - before[0]) * k) / pieces, before[1] + ((place[1] - before[1]) * k) / pieces]);
  });
  return found;
}

/** What a label costs that is cut: more than any that covers others. */
export const OUTSIDE = 1e6;

/** The position of a label beside a point, inside the canvas and outside the boxes already taken.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {number} width
 * @param {number} height
 * @param {number[][]} taken
 * @param {number} [distance]
 * @param {number[][]} [points]
 * @returns {{cost: number, cx: number, cy: number, box: number[]}} */
export function placeLabel(pen, text, x, y, size, width, height, taken, distance = 12, points = []) {
  pen.font = `${size}px ${FONTS}`;
  const w = pen.measureText(text).width + 6;
  const h = size * 1.4;
  const sides = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1], [2.5, -2], [-2.5, -2], [2.5, 2], [-2.5, 2]];
  let best = null;
  // Of thousands of points a few are near enough for a side.
  const far = 2.5 * distance;
  const near = points.filter(([px, py]) => Math.abs(px - x) < w + far && Math.abs(py - y) < h + far);
  for (const [right, down] of sides) {
    const cx = x + Math.sign(right) * (w / 2) + right * distance;
    const cy = y + Math.sign(down) * (h / 2) + down * distance;
    const box = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2];
    let cost = box[0] < 4 || box[1] < 4 || box[2] > width - 4 || box[3] > height - 4 ? OUTSIDE : 0;
    cost += Math.abs(right) + Math.abs(down);
    for (const other of taken) {
      const across = Math.min(box[2], other[2]) - Math.max(box[0], other[0]);
      const along = Math.min(box[3], other[3]) - Math.max(box[1], other[1]);
      if (across > 0 && along > 0) cost += 20 + across * along;
    }
    for (const [px, py] of near) if (px > box[0] && px < box[2] && py > box[1] && py < box[3]) cost += 3;
    if (!best || cost < best.cost) best = { cost, cx, cy, box };
  }
  taken.push(best.box);
  return best;
}
