// What the explorer shows: its state, and the run, rate and style of every optimizer.

import { Widget } from "../../browser/static/widget.js";
import { Engine, conditionsKey } from "./engine.js";
import { ratesSaid } from "./menu.js";
import { bestOf } from "./notches.js";
import { numberText, stepsText } from "./numbers.js";

const WIDEN = 9; // a ladder moves by so many rungs at most to have its best inside

/** @param {number} rate */
const isRung = (rate) => [1, 2, 5].includes(Number(rate.toExponential(0).split("e")[0])) && Number(rate.toExponential(0)) === rate;

/** The rung after (or before) a rate of the form 1, 2 or 5 times a power of ten.
 * @param {number} rate
 * @param {number} by */
function rung(rate, by) {
  const [digit, power] = rate.toExponential(0).split("e").map(Number);
  const place = [1, 2, 5].indexOf(digit) + 3 * power + by;
  return Number(`${[1, 2, 5][((place % 3) + 3) % 3]}e${Math.floor(place / 3)}`);
}

/** The name by which an optimizer has its style: its wrapper, its variant, or its class; as Python's
 * optlab.viz.style.theme.variant_of.
 * @param {any} entry
 * @returns {string} */
export function variantOf({ kind, settings, around }) {
  if (around && around.kind) return around.kind;
  if (kind === "Adam" && settings.amsgrad) return "AMSGrad";
  return kind === "Momentum" && settings.use_nesterov ? "Nesterov" : kind;
}

export class Scene extends Widget {
  /** @param {any} model */
  constructor(model) {
    super(model);
    this.options = model.get("options");
    this.state = structuredClone(model.get("state"));
    this.opened = structuredClone(this.state);
    this.engine = new Engine(this.options.steadiness);
    this.network = model.get("given").network;
    /** @type {any[]} */
    this.shown = [];
    this.floor = { floor: 0, known: false };
    this.inFlight = 0;
    this.highestLoss = Infinity;
    /** @type {{action: string, value: any} | null} */
    this.waiting = null;
    /** @type {any} */
    this.map = null;
    /** @type {any} */
    this.menu = null;
    /** @type {{name: string, run: any} | null} */
    this.ghost = null;
    this.hint = this.state.step === 0;
  }

  // What is shown --------------------------------------------------------------------------------

  get view() {
    return this.state.view;
  }

  /** The loss of the start, with which bars compare. */
  get startLoss() {
    const one = this.shown.find(({ run }) => run);
    return one ? one.run.loss[0] : NaN;
  }

  get axes() {
    return this.network ? this.engine.given.axes || ["norm"] : ["x", "y"].slice(0, this.state.start.length);
  }

  get coordinate() {
    return Math.min(this.state.coordinate, this.axes.length - 1);
  }

  get selected() {
    return this.shown.find(({ entry }) => entry.name === this.state.selected) || this.shown[this.shown.length - 1];
  }

  /** The chosen optimizer last, so that it is drawn on top. */
  inOrder() {
    return [...this.shown].sort((a, b) => Number(a.entry.name === this.state.selected) - Number(b.entry.name === this.state.selected));
  }

  /** Run every optimizer of the state, or look up its recorded run. */
  refresh() {
    const { state, engine } = this;
    if (!this.network && !state.start) state.start = [...engine.surface(state.problem).start];
    const styles = this.styles();
    const before = new Map(this.shown.map((one) => [one.entry.name, one]));
    this.floor = this.network ? { floor: engine.given.recorded.floor ?? 0, known: engine.given.recorded.floorKnown } : engine.floor(state, this.options.ladder);
    this.shown = state.optimizers.map((/** @type {any} */ entry) => {
      const rate = this.rateOf(entry);
      let run = engine.run(state, entry, rate);
      const old = before.get(entry.name);
      const stale = !run && Boolean(this.inFlight || this.waiting);
      if (stale && old) ({ run } = old); // until the kernel answers
      return { entry, rate, run, stale, style: styles.get(entry.name), color: "", sensitive: old && old.run === run ? old.sensitive : -1 };
    });
    if (!this.shown.some(({ entry }) => entry.name === state.selected)) state.selected = this.shown[this.shown.length - 1].entry.name;
    state.step = Math.max(0, Math.min(state.step, state.steps));
    this.highestLoss = this.network ? Infinity : engine.highest(state);
    this.colorAll();
  }

  colorAll() {
    for (const one of this.shown) one.color = one.style[this.theme];
  }

  /** A color, dash and marker for each optimizer: the class decides first. */
  styles() {
    const { order, styles } = this.options;
    const taken = new Set(), found = new Map();
    const hues = new Set(), markers = new Set();
    const take = (/** @type {string} */ name, /** @type {number} */ place) => {
      taken.add(place);
      hues.add(styles[place].light);
      markers.add(styles[place].marker);
      found.set(name, styles[place]);
    };
    for (const entry of this.state.optimizers) {
      const place = order.indexOf(variantOf(entry));
      if (place >= 0 && !taken.has(place)) take(entry.name, place);
    }
    for (const { name } of this.state.optimizers) {
      if (found.has(name)) continue;
      // The styles of the order belong to optimizers; of the others those of a new hue and marker come first,
      // then those of a new hue.
      const free = [...styles.keys()].filter((place) => place >= order.length && !taken.has(place));
      const other = free.filter((place) => !hues.has(styles[place].light));
      take(name, other.find((place) => !markers.has(styles[place].marker)) ?? other[0] ?? free[0]);
    }
    return found;
  }

  /** @param {any} entry */
  rateOf(entry) {
    const { state, options, engine } = this;
    const known = engine.recorded.get(entry.name);
    if (this.network) return known.rates[0];
    if (state.mode === "custom" && entry.rate !== null) return entry.rate;
    if (state.mode === "equal") return state.equal_rate ?? this.equalRate();
    return this.bestRate(entry, known);
  }

  /** The best rate of the ladder by the criterion; while it is an end, the ladder gets another rung.
   * @param {any} entry
   * @param {any} known its recorded runs
   * @returns {number} */
  bestRate(entry, known) {
    const { state, options, engine } = this;
    let { floor } = this.floor;
    const score = (/** @type {number} */ rate) => engine.criterion(state, entry, rate, floor);
    const recorded = known && engine.whyNot(state, entry);
    if (recorded && known.best != null && engine.run(state, entry, known.best)) return known.best; // Python's choice
    const rates = recorded ? known.rates.filter(isRung) : [...options.ladder];
    let scores = rates.map(score);
    for (let turn = 0; ; turn++) {
      const best = scores.indexOf(Math.min(...scores));
      if (!Number.isFinite(scores[best])) break;
      if (recorded) return rates[best];
      if (best > 0 && best < rates.length - 1) return this.steadiest(entry, rates.slice(1, -1), scores.slice(1, -1));
      if (turn === WIDEN) {
        const inside = options.ladder.slice(1, -1);
        return this.steadiest(entry, inside, inside.map(score));
      }
      const next = rung(rates[best], best ? 1 : -1);
      if (best) rates.push(next);
      else rates.unshift(next);
      // Beyond the ladder a run may come lower than all that were seen when the floor was chosen.
      if (!this.floor.known) for (const loss of engine.run(state, entry, next)?.loss || []) if (loss < floor) floor = loss;
      scores = rates.map(score);
    }
    const ends = rates.map((/** @type {number} */ rate) => engine.run(state, entry, rate)?.stopped ?? -1);
    return rates[ends.indexOf(Math.max(...ends))];
  }

  /** The rate with the lowest score whose path is no chance; if there is none, that with the lowest score.
   * @param {any} entry
   * @param {number[]} rates
   * @param {number[]} scores
   * @returns {number} */
  steadiest(entry, rates, scores) {
    const best = bestOf(scores.map((score) => (Number.isFinite(score) ? score : null)), (i) => this.engine.steady(this.state, entry, rates[i]));
    return rates[best < 0 ? scores.indexOf(Math.min(...scores)) : best];
  }

  /** Whether the loss has no lowest point in view: then no rate is the best. */
  get open() {
    return !this.network && Boolean(this.engine.surface(this.state.problem)?.open);
  }

  /** Which of the paths shown depend on the last bit, from which step on. */
  findSensitive() {
    for (const one of this.shown) one.sensitive = this.network ? -1 : this.engine.sensitiveFrom(this.state, one.entry, one.rate);
  }

  /** @param {any} one */
  sensitiveSaid({ entry, sensitive }) {
    return `From step ${sensitive} on the path of ${entry.name} is sensitive to the last bit: two runs whose start and rate differ in it are more than 1e-10 apart. Its numbers from there on show one of many possible paths.`;
  }

  /** The best common rate: fewest divergences, then the least sum of the criterion. */
  equalRate() {
    const { state, options, engine } = this;
    let best = null;
    for (const rate of options.ladder) {
      const scores = state.optimizers.map((/** @type {any} */ entry) => engine.criterion(state, entry, rate, this.floor.floor));
      const finite = scores.filter(Number.isFinite);
      const lost = scores.length - finite.length;
      const sum = finite.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
      if (!best || lost < best.lost || (lost === best.lost && sum < best.sum)) best = { lost, sum, rate };
    }
    return best.rate;
  }

  /** The rates of an optimizer's slider: the ladder, moved until its best is not at an end.
   * @param {any} entry
   * @returns {number[]} */
  ladder(entry) {
    const { state, engine, options } = this;
    const known = engine.recorded.get(entry.name);
    if (this.network || (engine.whyNot(state, entry) && known)) return known ? known.rates : options.ladder;
    const key = JSON.stringify(["ladder", conditionsKey(state), entry.name, entry.kind, entry.settings, entry.around]);
    const rates = engine.keep(key, () => {
      let found = options.ladder;
      for (let i = 0; i < WIDEN; i++) {
        const best = this.open ? -1 : bestOf(engine.finals(state, entry, 0, "learning_rate", found));
        if (best === 0) found = [rung(found[0], -1), ...found.slice(0, -1)];
        else if (best === found.length - 1) found = [...found.slice(1), rung(found[best], 1)];
        else return found;
      }
      return options.ladder; // none is inside: all end alike, or the best is not to move
    });
    const rate = this.rateOf(entry);
    const found = rates.includes(rate) ? rates : [...rates, rate].sort((/** @type {number} */ a, /** @type {number} */ b) => a - b);
    if ((state.mode === "custom" && entry.rate !== null) || !isRung(rate)) return found;
    // A rate that was chosen as the best has a neighbor on both sides.
    if (rate === found[0]) return [rung(rate, -1), ...found];
    return rate === found[found.length - 1] ? [...found, rung(rate, 1)] : found;
  }

  /** The setting of the second slider; "" if there is none.
   * @param {any} entry */
  second(entry) {
    if (this.network) return "";
    const rule = this.engine.rule(entry);
    return rule ? rule.second : "";
  }

  /** @param {any} entry
   * @returns {number[]} */
  secondNotches(entry) {
    const second = this.second(entry), value = entry.settings[second];
    const notches = this.options.notches[second];
    return notches.includes(value) ? notches : [...notches, value].sort((/** @type {number} */ a, /** @type {number} */ b) => a - b);
  }

  /** The losses after all runs of an optimizer, by its second setting and its rate. The rates move until the
   * best of all is not at an end.
   * @param {any} entry
   * @returns {{rates: number[], finals: (number | null | undefined)[][]}} */
  allRuns(entry) {
    const { engine, state } = this;
    const second = this.second(entry), seconds = second ? this.secondNotches(entry) : [0];
    const known = engine.whyNot(state, entry);
    const finalsOf = (/** @type {number[]} */ rates) => seconds.map((value) => engine.finals(state, second ? { ...entry, settings: { ...entry.settings, [second]: value } } : entry, 0, "learning_rate", rates));
    let rates = this.ladder(entry), finals = finalsOf(rates);
    if (known || this.open) return { rates, finals };
    const key = JSON.stringify(["all", conditionsKey(state), entry.name, entry.kind, entry.settings, entry.around, rates]);
    return engine.keep(key, () => {
      const most = rates.length + WIDEN;
      const first = { rates, finals };
      while (rates.length < most) {
        const at = bestOf(finals.flat()) % rates.length;
        if (at > 0 && at < rates.length - 1) break;
        const next = rung(rates[Math.max(0, at)], at ? 1 : -1);
        if (at < 0 || rates.includes(next)) break;
        const more = finalsOf([next]);
        rates = at ? [...rates, next] : [next, ...rates];
        finals = finals.map((row, j) => (at ? [...row, ...more[j]] : [...more[j], ...row]));
      }
      return rates.length < most ? { rates, finals } : first;
    });
  }

  /** The largest curvature of a quadratic; 0 for other functions, where it is not one number. */
  curvature() {
    const { state, engine } = this;
    const evaluate = engine.evaluator(state.problem);
    if (!evaluate) return 0;
    return engine.keep(`curvature|${state.problem}`, () => {
      const { start, domain } = engine.surface(state.problem);
      const slopes = (/** @type {number[]} */ point) => evaluate(point).slice(1);
      const points = [start, domain.map((/** @type {number[]} */ [low, high]) => 0.7 * low + 0.3 * high), domain.map((/** @type {number[]} */ [low, high]) => 0.2 * low + 0.8 * high)];
      const hessians = points.map((point) => point.map((/** @type {number} */ _, /** @type {number} */ i) => {
        const ends = [1, -1].map((sign) => slopes(point.map((/** @type {number} */ x, /** @type {number} */ k) => (k === i ? x + 0.5 * sign : x))));
        return ends[0].map((/** @type {number} */ x, /** @type {number} */ k) => x - ends[1][k]);
      }));
      const flat = hessians.map((one) => one.flat());
      const size = Math.max(...flat.flat().map(Math.abs));
      if (!(size > 0) || flat.some((one) => one.some((/** @type {number} */ x, /** @type {number} */ i) => Math.abs(x - flat[0][i]) > 1e-9 * size))) return 0;
      if (start.length === 1) return Math.max(0, flat[0][0]);
      const [a, b, , d] = flat[0];
      return Math.max(0, (a + d) / 2 + Math.hypot((a - d) / 2, b));
    });
  }

  /** Which runs the kernel computes, with the reason and without; empty if the page computes all.
   * @returns {string[]} */
  kernelSaid() {
    if (this.network) return [];
    const { state, engine } = this;
    const kernel = this.shown.filter(({ entry }) => engine.whyNot(state, entry));
    if (!kernel.length) return [];
    const who = kernel.length === this.shown.length ? "" : `${kernel.map(({ entry }) => entry.name).join(", ")} `;
    return [`${who}computed by the kernel: ${engine.whyNot(state, kernel[0].entry)}`, `${who}computed by the kernel`];
  }

  conditions() {
    const { state } = this;
    if (this.network) return `Same initial weights, same ${stepsText(state.steps)}, seed ${state.seed}. The runs are as they were recorded: their rates are fixed.`;
    const where = state.start.map((/** @type {number} */ value) => numberText(value, 6)).join(", ");
    const [kernel] = this.kernelSaid();
    const from = kernel ? ` ${kernel[0].toUpperCase()}${kernel.slice(1)}.` : " Computed in this page: no kernel is needed.";
    const sensitive = this.shown.filter((one) => one.sensitive >= 0).map((one) => ` ${this.sensitiveSaid(one)}`).join("");
    return `Same start (${where}), same ${stepsText(state.steps)}, seed ${state.seed}. Rates: ${ratesSaid(this)}.${from}${sensitive}`;
  }
}
