// The curve of a function of one variable: its minima, and the heights that are worth seeing, as
// optlab.viz.explorer.curve finds them.

const POINTS = 401, FINER = 21, ROUNDS = 6;
const MOST_MARKED = 9;
const SEEN = 1e-12; // of the largest value: what is flatter is rounding

/** What a picture shows of a curve: its minima with their losses, and a range of heights.
 * @typedef {{marked: number[][], low: number, high: number}} CurveView */

const spread = (/** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ count) => Array.from({ length: count }, (_, i) => (i === count - 1 ? high : i * ((high - low) / (count - 1)) + low));

/** The places that are lower than both of their neighbors. A bottom may have two points.
 * @param {number[]} values
 * @returns {number[]} */
function valleysOf(values) {
  const least = SEEN * values.filter(Number.isFinite).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const places = [];
  for (let i = 1; i < values.length - 1; i++) {
    const after = values[i + 1] === values[i] && i + 2 < values.length ? i + 2 : i + 1;
    if (values[i - 1] - values[i] > least && values[after] - values[i] > least) places.push(i);
  }
  return places;
}

/** What is worth seeing of a function of one variable.
 * @param {(point: number[]) => number[]} evaluate
 * @param {number[]} domain
 * @returns {CurveView} */
export function curveViewOf(evaluate, [low, high]) {
  const value = (/** @type {number} */ x) => evaluate([x])[0];
  const x = spread(low, high, POINTS), values = x.map(value);
  const finite = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!finite.length) return { marked: [], low: 0, high: 1 };
  const valleys = valleysOf(values);
  if (!valleys.length) return { marked: [], low: finite[0], high: finite[finite.length - 1] };
  const refined = (/** @type {number} */ place) => {
    let [from, to, best] = [x[place - 1], x[place + 1], [x[place], values[place]]];
    for (let round = 0; round < ROUNDS; round++) {
      const xs = spread(from, to, FINER), found = xs.map(value);
      const i = found.reduce((least, one, k) => (one < found[least] || Number.isNaN(found[least]) ? k : least), 0);
      best = [xs[i], found[i]];
      [from, to] = [xs[Math.max(i - 1, 0)], xs[Math.min(i + 1, FINER - 1)]];
    }
    return best;
  };
  const marked = valleys.map(refined).sort((a, b) => a[1] - b[1]).slice(0, MOST_MARKED).sort((a, b) => a[0] - b[0]);
  const between = values.slice(valleys[0], valleys[valleys.length - 1] + 1).filter(Number.isFinite);
  const top = between.reduce((a, b) => Math.max(a, b)), bottom = Math.min(...valleys.map((i) => values[i]), ...marked.map(([, loss]) => loss));
  return { marked, low: bottom, high: Math.max(top, finite[Math.floor(finite.length / 2)]) };
}

/** What a picture of a curve shows: its domain, and the heights worth seeing.
 * @param {CurveView} view
 * @param {number[]} domain
 * @param {number} start
 * @param {number} loss at the start
 * @param {{x: ArrayLike<number>, loss: ArrayLike<number>, count: number}[]} paths those beside the domain do not count
 * @returns {number[]} */
export function curveBoxOf(view, domain, start, loss, paths) {
  const ends = [Math.min(domain[0], start), Math.max(domain[1], start)], room = 0.04 * (ends[1] - ends[0]);
  const [low, high] = [ends[0] - room, ends[1] + room];
  let bottom = view.low, top = view.high;
  const hold = (/** @type {number} */ height) => {
    if (!Number.isFinite(height)) return;
    bottom = Math.min(bottom, height);
    top = Math.max(top, height);
  };
  hold(loss);
  for (const path of paths) for (let k = 0; k < path.count; k++) if (path.x[k] >= low && path.x[k] <= high) hold(path.loss[k]);
  if (bottom > 0 && bottom <= top - bottom) bottom = 0; // a linear axis shows zero, where that is near
  const more = 0.1 * (top - bottom) || 1;
  return [low, high, bottom - 2 * more, top + more]; // below the curve there is room for names
}
