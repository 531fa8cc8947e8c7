// What a hand changes: everything here can be undone, and what a page cannot compute is asked of the
// kernel or taken back.

import { numberText } from "./numbers.js";
import { Scene } from "./scene.js";

/** Fields that a page keeps, whatever a preset sets. */
const OF_THE_READER = ["theme", "text_size"];

export class Changes extends Scene {
  /** @param {any} model */
  constructor(model) {
    super(model);
    /** @type {string[]} */
    this.past = [];
    this.lastKind = "";
    this.lastChange = 0;
    this.speed = 1;
    /** Whether the kernel has answered the page that opened, and whether a hand was faster: then what the kernel
     * knows of is older. */
    this.greeted = this.ahead = false;
  }

  // What the explorer does when something has changed.

  /** @param {string} what */
  later(what) {}

  /** @param {string} text */
  say(text) {}

  /** Say what the next change makes old, and offer a state that only a notebook can show.
   * @param {string} text
   * @param {any} [wanted] */
  mention(text, wanted) {}

  /** Take back what was said of an earlier change. */
  unsay() {}

  /** @param {string} action
   * @param {any} value */
  ask(action, value) {}

  sync() {}

  rowsLater() {}

  pause() {}

  /** Change the state by hand.
   * @param {Record<string, any>} changes */
  set(changes) {
    const before = JSON.stringify(this.state);
    this.forgetHint();
    Object.assign(this.state, changes);
    this.changed(before, Object.keys(changes));
  }

  /** After a change: compute, ask the kernel, or take it back.
   * @param {string} before the state as JSON
   * @param {string[]} names of what changed */
  changed(before, names) {
    const { state, engine } = this;
    this.goAhead();
    const runs = names.some((name) => ["problem", "start", "steps", "seed", "noise", "optimizers", "mode", "equal_rate"].includes(name));
    if (runs && !this.network) {
      const missing = !engine.surface(state.problem) ? "this function is not in this page" : this.missing();
      if (missing && this.model.alive) this.ask("compute", null);
      else if (missing) {
        const wanted = this.state;
        this.state = JSON.parse(before);
        this.mention(`That needs a kernel: ${missing}. A notebook can show it:`, wanted);
        this.refresh();
        this.later("all");
        return;
      }
      if (engine.surface(state.problem)) this.refresh();
    } else if ("selected" in state && !this.shown.some(({ entry }) => entry.name === state.selected)) state.selected = this.shown[0].entry.name;
    this.unsay();
    if (names.some((name) => name !== "step")) this.remember(before, names.join());
    const dragged = names.length === 2 && names.includes("start") && names.includes("preset");
    this.later(names.every((name) => name === "step") ? "cursor" : dragged && !this.menu.open ? "paths" : "all");
    if (dragged) this.rowsLater();
    this.sync();
  }

  goAhead() {
    this.ahead ||= !this.greeted;
  }

  /** Why an optimizer cannot be run with this state; "" if all can. */
  missing() {
    const { state, engine } = this;
    for (const entry of state.optimizers) {
      const kept = engine.recorded.get(entry.name)?.held;
      const rate = state.mode === "custom" && entry.rate !== null ? entry.rate : kept ? kept[0] : this.options.ladder[0];
      if (!engine.run(state, entry, rate)) return engine.whyNot(state, entry) || "these settings are not in this page";
    }
    return "";
  }

  /** Keep a state for Undo; changes of one kind in quick succession count as one.
   * @param {string} before
   * @param {string} kind */
  remember(before, kind) {
    const now = performance.now();
    if (kind !== this.lastKind || now - this.lastChange > 700) this.past.push(before);
    if (this.past.length > 100) this.past.shift();
    this.lastKind = kind;
    this.lastChange = now;
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    this.lastKind = "";
    const now = JSON.stringify(this.state);
    this.state = { ...JSON.parse(before), step: this.state.step };
    const kept = this.past.length;
    this.changed(now, ["optimizers", "undo"]);
    this.past.length = kept;
    this.lastKind = "";
    if (!this.menu.panel.hidden) this.menu.build();
  }

  reset() {
    const before = JSON.stringify(this.state);
    this.state = structuredClone(this.opened);
    this.hint = this.state.step === 0;
    if (this.map) this.map.fitted = "";
    this.changed(before, ["optimizers", "reset"]);
    if (!this.menu.panel.hidden) this.menu.build();
  }

  forgetHint() {
    this.hint = false;
  }

  /** Fix every rate as it is, before a hand moves one of them. */
  fixRates() {
    const { state } = this;
    if (state.mode === "custom" && state.optimizers.every((/** @type {any} */ entry) => entry.rate !== null)) return;
    for (const one of this.shown) one.entry.rate = one.rate;
    state.mode = "custom";
    state.equal_rate = null;
  }

  /** @param {string} name
   * @param {number} rate */
  setRate(name, rate) {
    const before = JSON.stringify(this.state);
    this.forgetHint();
    this.fixRates();
    const entry = this.state.optimizers.find((/** @type {any} */ one) => one.name === name);
    entry.rate = rate;
    this.state.preset = "";
    this.ghost = null;
    this.changed(before, ["optimizers", `rate ${name}`]);
  }

  /** @param {string} name
   * @param {string} setting
   * @param {any} value */
  setSetting(name, setting, value) {
    const before = JSON.stringify(this.state);
    this.forgetHint();
    this.fixRates();
    const entry = this.state.optimizers.find((/** @type {any} */ one) => one.name === name);
    entry.settings[setting] = value;
    this.state.preset = "";
    this.ghost = null;
    this.changed(before, ["optimizers", `${setting} ${name}`]);
  }

  /** @param {string} name
   * @param {any} wanted a kind, or a description */
  setAround(name, wanted) {
    const before = JSON.stringify(this.state);
    this.fixRates();
    const entry = this.state.optimizers.find((/** @type {any} */ one) => one.name === name);
    const kind = typeof wanted === "string" ? wanted : wanted.kind;
    entry.around = typeof wanted === "string" ? (kind ? { kind, ...Object.fromEntries(Object.entries(this.options.around[kind]).map(([key, [, , , first]]) => [key, first])) } : {}) : wanted;
    this.state.preset = "";
    this.changed(before, ["optimizers", "around"]);
    if (!this.menu.panel.hidden) this.menu.build();
  }

  /** A cell of the plane of all runs.
   * @param {number} rate
   * @param {number | undefined} value of the second setting */
  chooseCell(rate, value) {
    const { entry } = this.selected;
    const second = this.second(entry);
    if (second && typeof value === "number") {
      this.fixRates();
      entry.settings[second] = value;
    }
    this.setRate(entry.name, rate);
  }

  /** @param {string} mode */
  setMode(mode) {
    for (const entry of this.state.optimizers) entry.rate = null;
    this.set({ mode, equal_rate: null, preset: "" });
    if (!this.menu.panel.hidden) this.menu.build();
  }

  addable() {
    const { rules = {} } = this.engine.given;
    return Object.keys(rules).filter((name) => this.options.classes.includes(name));
  }

  /** @param {string} kind */
  addOptimizer(kind) {
    const rule = (this.engine.given.rules || {})[kind];
    if (!rule) {
      if (this.model.alive) this.ask("add", kind);
      else {
        const entry = { name: kind, kind, settings: structuredClone(this.options.usual[kind] || {}), rate: /** @type {number | null} */ (null), around: {} };
        const wanted = { ...this.state, optimizers: [...this.state.optimizers, entry], selected: kind, preset: "" };
        this.mention(`${kind} needs a kernel${this.options.paying.includes(kind) ? ": it evaluates as many gradients as its searches need" : ""}. A notebook can show it:`, wanted);
      }
      return;
    }
    const before = JSON.stringify(this.state), { mode } = this.state;
    this.forgetHint();
    this.fixRates();
    const taken = this.state.optimizers.map((/** @type {any} */ entry) => entry.name);
    let name = kind;
    for (let number = 2; taken.includes(name); number++) name = `${kind} ${number}`;
    const entry = { name, kind, settings: structuredClone(rule.settings), rate: /** @type {number | null} */ (null), around: {} };
    this.state.optimizers.push(entry);
    this.state.preset = "";
    this.refresh();
    entry.rate = this.rateOf(entry); // its best: custom rates are none of its own yet
    this.state.selected = name;
    this.changed(before, ["optimizers", "add"]);
    if (mode !== "best") this.sayAdded(name);
  }

  /** Beside rates that a hand has chosen, that of an optimizer that was added is none of them.
   * @param {string} name */
  sayAdded(name) {
    const one = this.shown.find(({ entry }) => entry.name === name);
    if (one) this.mention(`${name} starts at ${this.open ? "the rate" : "its best rate,"} ${numberText(one.rate, 6)}.`);
  }

  /** @param {string} name */
  removeOptimizer(name) {
    this.set({ optimizers: this.state.optimizers.filter((/** @type {any} */ entry) => entry.name !== name), preset: "" });
  }

  /** Show a formula that the reader has typed. @param {string} text */
  chooseFormula(text) {
    this.chooseScene(`p:${text}`);
  }

  /** Choose a problem, or a preset.
   * @param {string} scene */
  chooseScene(scene) {
    const before = JSON.stringify(this.state);
    this.pause();
    const name = scene.slice(2);
    if (scene.startsWith("s:")) {
      const kept = Object.fromEntries(OF_THE_READER.map((field) => [field, this.state[field]]));
      this.state = { ...structuredClone(this.options.presets[name].state), ...kept, seed: this.state.seed };
      this.hint = this.state.step === 0;
    } else {
      const surface = this.engine.surface(name), first = name === this.opened.problem && this.opened.start ? this.opened.start : surface?.start;
      for (const entry of this.state.optimizers) entry.rate = null; // rates of one surface say nothing here
      Object.assign(this.state, { problem: name, start: first ? [...first] : null, noise: null, preset: "", step: 0, mode: "best", equal_rate: null });
      this.hint = true;
    }
    if (this.map) this.map.fitted = "";
    this.changed(before, ["problem", "optimizers"]);
  }

  /** @param {number[]} start */
  moveStart(start) {
    const { engine, state } = this;
    const evaluate = engine.evaluator(state.problem);
    if (evaluate && !Number.isFinite(evaluate(start)[0])) {
      this.mention("The loss is not defined there: the start stays where it was.");
      return;
    }
    const before = JSON.stringify(state);
    this.forgetHint();
    this.fixRates(); // another start with the same rates: the paths follow the hand at once
    Object.assign(state, { start, preset: "" });
    this.changed(before, ["start", "preset"]);
  }

  startMoved() {
    if (!this.menu.panel.hidden) this.menu.build();
  }

  /** @param {string} view */
  setView(view) {
    if (view === "apart" && this.state.step === 0) this.state.step = 1;
    this.set({ view });
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.later("all");
  }

  /** The run of a notch under the pointer, drawn as a ghost.
   * @param {any} entry
   * @param {number} [rate]
   * @param {Record<string, any>} [more] */
  showGhost(entry, rate, more) {
    this.ghost = entry ? { name: entry.name, run: this.engine.run(this.state, entry, rate, more) } : null;
    this.later("top");
  }
}
