// What a page has kept of its state, in an address that anybody may edit: only what is valid is taken up.

/** @typedef {{presets: Record<string, any>, ladder: number[], mostSteps: number}} Options */

const whole = (/** @type {any} */ value, low = -Infinity, high = Infinity) => Number.isSafeInteger(value) && value >= low && value <= high;
const number = (/** @type {any} */ value, low = -Infinity, high = Infinity) => Number.isFinite(value) && value >= low && value <= high;
const text = (/** @type {any} */ value) => typeof value === "string";
const plain = (/** @type {any} */ value) => value !== null && typeof value === "object" && !Array.isArray(value);
const one = (/** @type {string[]} */ ...of) => (/** @type {any} */ value) => of.includes(value);

/** @param {any} value of a setting */
const setting = (value) => value === null || text(value) || typeof value === "boolean" || (Array.isArray(value) ? value.every(setting) : number(value));

/** @param {any} entry */
function isEntry(entry) {
  if (!plain(entry) || !text(entry.name) || !text(entry.kind) || !plain(entry.settings) || !plain(entry.around)) return false;
  const rate = entry.rate === null || (number(entry.rate) && entry.rate > 0);
  return rate && [...Object.values(entry.settings), ...Object.values(entry.around)].every(setting);
}

/** What each field may be, as `State.check` of Python has it.
 * @type {Record<string, (value: any, options: Options) => boolean>} */
const MAY_BE = {
  problem: text,
  start: (value) => value === null || (Array.isArray(value) && [1, 2].includes(value.length) && value.every((x) => number(x))),
  steps: (value, { mostSteps }) => whole(value, 1, mostSteps),
  seed: (value) => whole(value),
  optimizers: (value) => Array.isArray(value) && value.length > 0 && value.length <= 50 && value.every(isEntry) && new Set(value.map(({ name }) => name)).size === value.length,
  mode: one("best", "equal", "custom"),
  equal_rate: (value, { ladder }) => value === null || ladder.includes(value),
  selected: text,
  step: (value) => whole(value, 0),
  slot: text,
  coordinate: (value) => whole(value, 0, 1),
  preset: (value, { presets }) => value === "" || Object.hasOwn(presets, value),
  theme: one("auto", "light", "dark"),
  text_size: (value) => number(value, 0.5, 3),
  noise: (value) => value === null || number(value, 0),
  tab: one("loss", "memory", "length", "angle", "plane", "beside"),
  beside: one("basins", "curvature", "modes", "rates"),
  view: one("look", "apart"),
};

/** What recorded runs leave to the reader. */
const OF_RECORDED = ["selected", "step", "slot", "coordinate", "theme", "text_size", "tab", "beside"];

/** The fields that were kept, without those that are unknown or not valid.
 * @param {any} kept
 * @param {Options} options
 * @param {boolean} [recorded] whether the runs are as they were
 * @returns {Record<string, any>} */
export function validOf(kept, options, recorded = false) {
  if (!plain(kept)) return {};
  return Object.fromEntries(Object.entries(kept).filter(([name, value]) => (!recorded || OF_RECORDED.includes(name)) && Object.hasOwn(MAY_BE, name) && MAY_BE[name](value, options)));
}
