// The runs of all optimizers: computed here by the captured surface and rules, or as the kernel sent
// them. Both have one form.

import { bytesOf } from "../../browser/static/page_model.js";
import { compiledFormula, formulaSurface, looksLikeFormula } from "./formula.js";
import { numberText } from "./numbers.js";

/** An optimizer of the state.
 * @typedef {{name: string, kind: string, settings: Record<string, any>, rate: number | null, around: Record<string, any>}} Entry */

/** One run: rows of steps. Row k of `path` and `loss` is before step k + 1, other rows are of step k + 1.
 * @typedef {object} Run
 * @property {number} n coordinates
 * @property {number} steps
 * @property {number} last the last step with a point
 * @property {number} stopped the step at which it ended, or -1
 * @property {string} why how it ended
 * @property {boolean} live whether it was computed here
 * @property {Float64Array | null} path
 * @property {Float64Array} loss
 * @property {Float64Array} gradient
 * @property {Float64Array} update
 * @property {Record<string, Float64Array>} slots
 * @property {Record<string, Float64Array>} terms
 * @property {number} finalLoss
 * @property {number[]} [paid] how many steps it took, and how many gradients these were */

const MOST_KEPT = 400;

/** When a path is no chance, as optlab.viz.explorer.runs defines it: the part by which the last bit changes a
 * number, how near paths that differ in it stay, how many times as high and as low nearby rates are, and
 * within which part of a path's length they end.
 * @typedef {{lastBit: number, stable: number, nearby: number, alike: number}} Steadiness */

/** The module of a page's own surfaces and rules; a browser never drops a module, so each is loaded once.
 * @param {string} source
 * @param {string} key
 * @returns {Promise<any>} */
function program(source, key) {
  const page = /** @type {any} */ (globalThis);
  const loaded = (page.optlabPrograms ??= {});
  loaded[key] ??= import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  return loaded[key];
}

/** Formulas that were typed, by their text; null for a text that is none.
 * @type {Map<string, any>} */
const FORMULAS = new Map();

/** @param {string} text */
function typedFormula(text) {
  if (!FORMULAS.has(text)) {
    let made = null;
    try {
      const formula = looksLikeFormula(text) ? compiledFormula(text) : null;
      made = formula && { surface: formulaSurface(formula), dimension: formula.dimension, evaluate: formula.evaluate };
    } catch {
      made = null; // its message was shown where it was typed
    }
    FORMULAS.set(text, made);
  }
  return FORMULAS.get(text);
}

export class Engine {
  /** @param {Steadiness} steadiness */
  constructor(steadiness) {
    this.steadiness = steadiness;
    /** @type {any} */
    this.program = null;
    /** @type {any} */
    this.given = {};
    /** @type {Map<string, any>} */
    this.kept = new Map();
  }

  /** Take what the page holds, or what the kernel sent.
   * @param {any} given */
  async take(given) {
    this.given = given;
    this.kept.clear();
    this.program = given.program ? await program(given.program, given.programKey) : null;
    this.numbers = given.recorded ? new Float32Array(bytesOf(given.recorded.numbers).buffer) : null;
    this.noise = given.noise ? new Float64Array(bytesOf(given.noise).buffer) : null;
    /** @type {Map<string, any>} */
    this.recorded = new Map((given.recorded ? given.recorded.optimizers : []).map((/** @type {any} */ one) => [one.name, one]));
  }

  /** @param {string} problem */
  surface(problem) {
    return this.given.problems[problem] || this.typed(problem)?.surface;
  }

  /** A formula that the reader has typed, as a surface of the program; null where it is none.
   * @param {string} problem */
  typed(problem) {
    const known = this.program && !this.given.problems[problem] && typedFormula(problem);
    if (known) this.program.surfaces[problem] ??= known;
    return known || null;
  }

  /** Value and slopes at a point, or null where the function was not captured.
   * @param {string} problem
   * @returns {((point: ArrayLike<number>) => number[]) | null} */
  evaluator(problem) {
    const known = this.program && (this.program.surfaces[problem] || this.typed(problem));
    return known ? known.evaluate : null;
  }

  /** The name of the rule of an optimizer in the program, or "".
   * @param {Entry} entry */
  ruleKey(entry) {
    const wrapped = entry.around && entry.around.kind ? `${entry.kind}|${entry.around.kind}` : entry.kind;
    const { rules = {}, own = {} } = this.given;
    const key = own[entry.name] === entry.kind ? `own|${entry.name}|${(entry.around || {}).kind || ""}` : wrapped;
    return this.program && key in rules ? key : "";
  }

  /** @param {Entry} entry */
  rule(entry) {
    const key = this.ruleKey(entry);
    if (key) return this.given.rules[key];
    const known = this.recorded.get(entry.name);
    return known && known.kind === entry.kind ? known : null;
  }

  /** The settings that a run takes.
   * @param {Entry} entry
   * @param {number} rate
   * @param {Record<string, any>} more */
  settings(entry, rate, more) {
    const { kind, ...around } = entry.around || {};
    const given = { ...entry.settings, ...around, ...more, learning_rate: rate };
    const parts = this.program.optimizers[this.ruleKey(entry)].parts;
    return Object.fromEntries(Object.entries(given).filter(([name]) => parts.some((/** @type {any} */ part) => name in part.settings)));
  }

  /** Why a run cannot be computed here; "" if it can.
   * @param {any} state
   * @param {Entry} entry */
  whyNot(state, entry) {
    const key = JSON.stringify(["can", state.problem, state.steps, state.seed, entry.name, entry.kind, entry.settings, entry.around]);
    return this.keep(key, () => {
      if (!this.evaluator(state.problem)) return "this function has an `if`, prints, keeps count or the like, so Python must run it";
      if (!this.ruleKey(entry)) return `${entry.kind}${entry.around.kind ? ` inside ${entry.around.kind}` : ""} is not in this page`;
      const { noise } = this.conditions(state);
      const drawn = noise && !(this.surface(state.problem).pattern || []).length;
      if (drawn && state.seed !== this.given.seed) return `the noise of seed ${state.seed} is not in this page`;
      try {
        const surface = this.surface(state.problem);
        const most = this.program.optimizers[this.ruleKey(entry)].steps;
        if (state.steps > most) return `this page has at most ${most} steps`;
        this.program.run(this.ruleKey(entry), { surface: state.problem, start: surface.start, steps: 1, settings: this.settings(entry, 0.01, {}) });
        return "";
      } catch (error) {
        const { message } = /** @type {Error} */ (error);
        return this.lackingNotch(entry, message) || message;
      }
    });
  }

  /** What values this page has of the settings that the program refused; "" if it refused none.
   * @param {Entry} entry
   * @param {string} refused */
  lackingNotch(entry, refused) {
    const given = this.settings(entry, 0.01, {});
    const said = [];
    for (const { notches } of this.program.optimizers[this.ruleKey(entry)].parts) {
      for (const [name, values] of Object.entries(notches || {})) {
        const known = values.some((/** @type {any} */ value) => JSON.stringify(value) === JSON.stringify(given[name]));
        if (known || !refused.includes(`${name} = `)) continue;
        said.push(`${name} only at ${values.map((/** @type {any} */ value) => (typeof value === "number" ? numberText(value, 6) : String(value))).join(", ")}`);
      }
    }
    return said.length ? `this page has ${said.join(", and ")}` : "";
  }

  /** @param {any} state */
  conditions(state) {
    const surface = this.surface(state.problem);
    const sigma = state.noise ?? (surface ? surface.noise : 0) ?? 0;
    return { sigma, noise: sigma > 0 ? this.noiseOf(state, surface) : null };
  }

  /** Whether gradients are drawn with noise, not with a pattern: a path wanders, and a loss needs a mean.
   * @param {any} state */
  isNoisy(state) {
    return this.conditions(state).sigma > 0 && !(this.surface(state.problem)?.pattern || []).length;
  }

  /** Unit noise, a row a step: the pattern of a surface, or the normal numbers of the page, whose blocks
   * of 256 rows of two hold in their first 256 numbers those of one variable.
   * @param {any} state
   * @param {any} surface
   * @returns {Float64Array | null} */
  noiseOf(state, surface) {
    const n = surface.start.length, pattern = surface.pattern || [];
    if (!pattern.length && (n === 2 || !this.noise)) return this.noise;
    return this.keep(`noise|${state.problem}|${state.steps}`, () => Float64Array.from({ length: state.steps * n }, (_, i) => {
      if (pattern.length) return pattern[Math.floor(i / n) % pattern.length];
      return this.noise[512 * Math.floor(i / 256) + (i % 256)];
    }));
  }

  /** @param {string} key
   * @param {() => any} make */
  keep(key, make) {
    if (!this.kept.has(key)) {
      if (this.kept.size > MOST_KEPT) for (const old of [...this.kept.keys()].slice(0, MOST_KEPT / 2)) this.kept.delete(old);
      this.kept.set(key, make());
    }
    return this.kept.get(key);
  }

  /** @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @param {Record<string, any>} more */
  raw(state, entry, rate, more) {
    const { sigma, noise } = this.conditions(state);
    return this.program.run(this.ruleKey(entry), {
      surface: state.problem, start: state.start, steps: state.steps, noise, sigma,
      settings: this.settings(entry, rate, more),
    });
  }

  /** A function that takes all steps from any start, and returns the loss where they end.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @returns {(start: ArrayLike<number>, end: Float64Array) => number} */
  ends(state, entry, rate) {
    const { sigma, noise } = this.conditions(state);
    return this.program.ends(this.ruleKey(entry), {
      surface: state.problem, start: state.start, steps: state.steps, noise, sigma, settings: this.settings(entry, rate, {}),
    });
  }

  /** One run from the start whose rate is another one in every step.
   * @param {any} state
   * @param {Entry} entry
   * @param {number[]} rates */
  rising(state, entry, rates) {
    return this.program.run(this.ruleKey(entry), { surface: state.problem, start: state.start, steps: rates.length, rates, settings: this.settings(entry, rates[0], {}) });
  }

  /** A run, or null if neither this page nor the kernel has computed it.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @param {Record<string, any>} [more] settings that differ
   * @returns {Run | null} */
  run(state, entry, rate, more = {}) {
    const key = JSON.stringify(["run", state.problem, state.start, state.steps, state.seed, state.noise, entry.name, entry.kind, entry.settings, entry.around, rate, more]);
    return this.keep(key, () => {
      if (this.whyNot(state, entry)) return Object.keys(more).length ? null : this.recordedRun(state, entry, rate);
      try {
        return this.liveRun(state, this.raw(state, entry, rate, more), state.start.length);
      } catch {
        return null; // a notch that was not written into this page
      }
    });
  }

  /** @param {any} state
   * @param {any} found
   * @param {number} n
   * @returns {Run} */
  liveRun(state, found, n) {
    const { path, loss, gradient, slots, fast, stopped, finalLoss } = found;
    const last = stopped < 0 ? state.steps : stopped;
    const update = new Float64Array(state.steps * n).fill(NaN);
    for (let i = 0; i < last * n; i++) update[i] = (fast ? fast[i] : path[i + n]) - path[i];
    const why = stopped < 0 ? "" : `diverged at step ${stopped}`;
    const terms = fast ? { fast } : {};
    return { n, steps: state.steps, last, stopped, why, live: true, path, loss, gradient, update, slots, terms, finalLoss };
  }

  /** @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @returns {Run | null} */
  recordedRun(state, entry, rate) {
    const known = this.recorded.get(entry.name);
    const { recorded } = this.given;
    if (!known || (!this.given.network && conditionsKey(recorded.state) !== conditionsKey(state)) || !sameEntry(known, entry)) return null;
    const at = known.rates.indexOf(rate), held = known.held.indexOf(rate);
    if (held < 0) return null;
    const { steps, base } = recorded;
    /** @param {string} name
     * @param {number} [add] */
    const rows = (name, add = 0) => {
      if (!known.arrays[name]) return null;
      const [offset, count, width] = known.arrays[name];
      const size = count * width;
      return Float64Array.from(this.numbers.subarray(offset + held * size, offset + (held + 1) * size), (x) => x + add);
    };
    const named = (/** @type {string[]} */ names, /** @type {string} */ prefix) => Object.fromEntries(names.map((name) => [name, rows(`${prefix}.${name}`)]));
    const stopped = known.stopped[at], last = stopped < 0 ? steps : stopped;
    const loss = rows("loss", base), n = known.arrays.gradient[2];
    return {
      n, steps, last, stopped, why: known.why[at], live: false, path: rows("point"), loss, gradient: rows("gradient"), update: rows("update"),
      paid: known.paid[at], slots: named(known.slots, "new"), terms: named(known.terms, "term"), finalLoss: loss[Math.min(last, loss.length - 1)],
    };
  }

  /** The last loss of a rate whose run the kernel holds: null where it diverges.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @param {number} highest
   * @returns {number | null | undefined} */
  recordedFinal(state, entry, rate, highest) {
    const known = this.recorded.get(entry.name);
    if (!known || conditionsKey(this.given.recorded.state) !== conditionsKey(state) || !sameEntry(known, entry)) return undefined;
    const at = known.rates.indexOf(rate);
    if (at < 0) return undefined;
    const loss = known.finals[at];
    return loss !== null && loss <= highest ? loss : null;
  }

  /** The loss above which a run has diverged: a thousand times as high above the minimum as the start.
   * @param {any} state
   * @returns {number} */
  highest(state) {
    const evaluate = this.evaluator(state.problem);
    const minimum = this.surface(state.problem)?.minimum;
    const above = evaluate && typeof minimum === "number" ? evaluate(state.start)[0] - minimum : NaN;
    return above > 0 ? /** @type {number} */ (minimum) + 1000 * above : Infinity;
  }

  /** The loss after the last step at each notch of a setting: null where it diverges, undefined where
   * it is not known. A run diverges that is not finite any more, or ends a thousand times as high above
   * the minimum as it began.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @param {string} setting
   * @param {number[]} notches
   * @returns {(number | null | undefined)[]} */
  finals(state, entry, rate, setting, notches) {
    const key = JSON.stringify(["finals", state.problem, state.start, state.steps, state.seed, state.noise, entry.name, entry.kind, entry.settings, entry.around, setting === "learning_rate" ? 0 : rate, setting, notches]);
    const highest = this.highest(state);
    const ended = (/** @type {any} */ run) => (run.stopped < 0 && Number.isFinite(run.finalLoss) && run.finalLoss <= highest ? run.finalLoss : null);
    return this.keep(key, () => notches.map((value) => {
      if (!this.whyNot(state, entry)) {
        try {
          return ended(setting === "learning_rate" ? this.raw(state, entry, value, {}) : this.raw(state, entry, rate, { [setting]: value }));
        } catch {
          return undefined;
        }
      }
      if (setting !== "learning_rate") return undefined;
      const run = this.recordedRun(state, entry, value);
      return run ? ended(run) : this.recordedFinal(state, entry, value, highest);
    }));
  }

  /** The step from which a path depends on the last bit: two runs whose start and rate differ in it are
   * then more than 1e-10 apart. -1 for a stable path, and where it is not known.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @returns {number} */
  sensitiveFrom(state, entry, rate) {
    const key = JSON.stringify(["sensitive", state.problem, state.start, state.steps, state.seed, state.noise, entry.name, entry.kind, entry.settings, entry.around, rate]);
    return this.keep(key, () => {
      const run = this.run(state, entry, rate);
      if (!run || !run.path) return -1;
      if (!run.live) {
        const known = this.recorded.get(entry.name);
        // Python has looked at the run that it showed, whose rate it writes as 1e-05.
        const at = Object.keys(known.sensitive || {}).find((text) => Number(text) === rate);
        return at === undefined ? -1 : known.sensitive[at];
      }
      const { lastBit, stable } = this.steadiness;
      let first = Infinity;
      for (const factor of [1 + lastBit, 1 - lastBit]) {
        const nudged = { ...state, start: state.start.map((/** @type {number} */ x) => x * factor) };
        let again;
        try {
          again = this.raw(nudged, entry, rate * factor, {});
        } catch {
          again = this.raw(nudged, entry, rate, {}); // written for its notches alone: the start tells
        }
        const ended = again.stopped < 0 ? state.steps : again.stopped;
        const last = Math.min(run.last, ended);
        for (let i = 0; i < last * run.n; i++) {
          if (!(Math.abs(run.path[i] - again.path[i]) <= stable * Math.max(1, Math.abs(run.path[i])))) {
            first = Math.min(first, Math.floor(i / run.n));
            break;
          }
        }
        if (run.last !== ended) first = Math.min(first, last);
      }
      return Number.isFinite(first) ? first : -1;
    });
  }

  /** Whether a path is no chance: neither rounding nor a hundredth of its rate leads it elsewhere. True
   * where only the kernel could tell.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @returns {boolean} */
  steady(state, entry, rate) {
    const key = JSON.stringify(["steady", state.problem, state.start, state.steps, state.seed, state.noise, entry.name, entry.kind, entry.settings, entry.around, rate]);
    return this.keep(key, () => {
      const run = this.run(state, entry, rate);
      if (!run || !run.live || !run.path) return true;
      if (run.stopped >= 0) return false;
      const { path, n, last } = run, { nearby, alike } = this.steadiness;
      let extent = 0;
      for (let i = 0; i < (last + 1) * n; i++) extent = Math.max(extent, Math.abs(path[i] - path[i % n]));
      for (const near of [rate * nearby, rate / nearby]) {
        let other;
        try {
          other = this.raw(state, entry, near, {});
        } catch {
          break; // written for its notches alone
        }
        if (other.stopped >= 0) return false;
        for (let c = 0; c < n; c++) if (!(Math.abs(other.path[last * n + c] - path[last * n + c]) <= alike * extent)) return false;
      }
      return this.sensitiveFrom(state, entry, rate) < 0;
    });
  }

  /** The mean of log10(loss - floor) over a run; infinite if it diverges. The kernel's own criterion.
   * @param {any} state
   * @param {Entry} entry
   * @param {number} rate
   * @param {number} floor */
  criterion(state, entry, rate, floor) {
    const run = this.run(state, entry, rate);
    if (!run || run.stopped >= 0 || this.leavesView(state, run)) return Infinity;
    let sum = 0;
    for (let k = 0; k <= run.steps; k++) sum += Math.log10(Math.max(run.loss[k] - floor, 0) + 1e-12);
    return Number.isFinite(sum) ? sum / (run.steps + 1) : Infinity;
  }

  /** Whether a path leaves the view of a function without a lowest point by more than half its width.
   * @param {any} state
   * @param {Run} run */
  leavesView(state, { path, n, last }) {
    const surface = this.surface(state.problem);
    if (!surface || !surface.open || !path) return false;
    return surface.domain.some((/** @type {number[]} */ [low, high], /** @type {number} */ c) => {
      const room = (high - low) / 2;
      for (let k = 0; k <= last; k++) if (path[k * n + c] < low - room || path[k * n + c] > high + room) return true;
      return false;
    });
  }

  /** The known minimum of a problem, or the lowest loss of all runs; and whether it is known. Where the
   * rates were chosen by hand, these runs are enough.
   * @param {any} state
   * @param {number[]} ladder
   * @returns {{floor: number, known: boolean}} */
  floor(state, ladder) {
    const key = JSON.stringify(["floor", state.mode, state.problem, state.start, state.steps, state.seed, state.noise, state.optimizers]);
    return this.keep(key, () => {
      let lowest = Infinity;
      for (const entry of state.optimizers) {
        const own = entry.rate === null ? [] : [entry.rate];
        for (const rate of new Set(state.mode === "custom" && own.length ? own : [...ladder, ...own])) {
          const run = this.run(state, entry, rate);
          if (run) for (const loss of run.loss) if (loss < lowest) lowest = loss;
        }
      }
      const minimum = this.surface(state.problem)?.minimum ?? null;
      const known = minimum !== null && lowest >= minimum - 1e-9 * Math.max(1, Math.abs(minimum));
      return { floor: known ? minimum : lowest, known };
    });
  }
}

/** What recorded runs depend on besides their optimizer.
 * @param {any} state */
export const conditionsKey = (state) => JSON.stringify([state.problem, state.start, state.steps, state.seed, state.noise ?? null]);

/** @param {any} known
 * @param {Entry} entry */
const sameEntry = (known, entry) =>
  known.kind === entry.kind && JSON.stringify(known.entry.settings) === JSON.stringify(entry.settings) &&
  JSON.stringify(known.entry.around) === JSON.stringify(entry.around);

/** The angle between two vectors in degrees; NaN if one of them is zero.
 * @param {number[]} u
 * @param {number[]} v */
export function angleBetween(u, v) {
  const a = Math.max(...u.map(Math.abs));
  const b = Math.max(...v.map(Math.abs));
  if (!(a > 0) || !(b > 0)) return NaN;
  const p = u.map((x) => x / a);
  const q = v.map((x) => x / b);
  const dot = p.reduce((sum, x, i) => sum + x * q[i], 0);
  const cosine = dot / (Math.hypot(...p) * Math.hypot(...q));
  return (Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI;
}

/** A series over steps 0 to n, NaN where it has no value.
 * @param {Run} run
 * @param {string} what loss, length, angle, or the name of a slot, a term, `gradient` or `point`
 * @param {number} coordinate
 * @returns {Float64Array | null} */
export function seriesOf(run, what, coordinate) {
  const { n, steps } = run;
  const out = new Float64Array(steps + 1).fill(NaN);
  if (what === "loss") {
    out.set(run.loss.subarray(0, steps + 1));
    return out;
  }
  const row = (/** @type {Float64Array} */ rows, /** @type {number} */ k) => Array.from(rows.subarray(k * n, (k + 1) * n));
  if (what === "length" || what === "angle") {
    for (let k = 0; k < steps; k++) {
      const u = row(run.update, k);
      out[k + 1] = what === "length" ? Math.hypot(...u) : angleBetween(u, row(run.gradient, k).map((x) => -x));
    }
    return out;
  }
  const bare = what.replace(/^(new|term)\./, "");
  const rows = bare === "point" ? run.path : bare === "gradient" ? run.gradient : bare === "update" ? run.update : run.slots[bare] || run.terms[bare];
  if (!rows) return null;
  const shift = bare === "point" ? 0 : 1;
  const c = Math.min(coordinate, n - 1);
  for (let k = 0; k + shift <= steps && k * n + c < rows.length; k++) out[k + shift] = rows[k * n + c];
  return out;
}

/** Every number of step `step` (from 1), by its name in the rows.
 * @param {Run} run
 * @param {any} rule
 * @param {Entry} entry
 * @param {number} rate
 * @param {number} step
 * @param {number} c coordinate
 * @returns {Record<string, number>} */
export function valuesOf(run, rule, entry, rate, step, c) {
  const at = step - 1, { n } = run;
  const one = (/** @type {Float64Array} */ rows, when = at) => rows[when * n + c];
  /** @type {Record<string, number>} */
  const values = {
    t: step, raw: one(run.gradient), p: one(run.path),
    "p.new": run.terms.fast ? one(run.terms.fast) : one(run.path, step),
  };
  // Clipped and decayed gradients follow from the others where they were not recorded.
  if (run.terms.used_gradient || !("g" in rule.computed)) values.g = one(run.terms.used_gradient || run.gradient);
  for (const [name, value] of Object.entries({ ...entry.settings, ...entry.around })) {
    if (Array.isArray(value)) value.forEach((one, i) => (values[`h.${name}.${i}`] = Number(one)));
    else values[`h.${name}`] = Number(value);
  }
  values["h.learning_rate"] = rate;
  if (!(run.live && "update" in rule.computed)) values.update = one(run.update);
  for (const [slot, rows] of Object.entries(run.slots)) {
    values[`new.${slot}`] = one(rows);
    // A slot starts with a number, with a setting, or else with the weights.
    const first = rule.initial[slot];
    values[`old.${slot}`] = at ? one(rows, at - 1) : typeof first === "string" ? values[first] : (first ?? one(run.path, 0));
  }
  for (const [term, rows] of Object.entries(run.terms)) values[`term.${term}`] = one(rows);
  return values;
}
