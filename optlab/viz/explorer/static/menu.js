// The menu: what is set rarely, what keeps a state, and the list of keys.

import { make, makeButton } from "../../browser/static/elements.js";
import { fillSelect, numberText } from "./numbers.js";

/** @type {[string, string][]} */
const KEYS = [
  ["space", "play or pause"], ["← →", "one step; with shift ten"], ["Home End", "first and last step"], ["1 to 6", "the plots"],
  ["N", "the next example; with shift the one before"], ["T", "take the step apart, and back"], ["↑ ↓", "the next optimizer"], ["on the map: arrows", "move the start; with shift in small steps"],
  ["on the map: + − 0", "zoom in, out, fit"], ["on a slider: ← →", "the next notch"], ["U", "undo"], ["M", "this menu"], ["F", "full screen"], ["?", "this list"],
];

export class Menu {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.button = makeButton("⋯", "menu", () => this.toggle(), { class: "menu-button", "aria-expanded": "false", "aria-haspopup": "true" });
    this.panel = make("div", { class: "menu", role: "dialog", "aria-label": "menu", hidden: true });
    this.said = make("p", { class: "menu-said", role: "alert", hidden: true });
    this.help = make("div", { class: "menu help", role: "dialog", "aria-label": "keys", hidden: true },
      make("h4", { text: "Keys" }),
      make("dl", {}, ...KEYS.flatMap(([key, text]) => [make("dt", { text: key }), make("dd", { text })])),
      make("p", { class: "quiet", text: "Wheel or pinch zooms the map, double click fits it; drag the start, the ground, the line in a plot, a notch. Click a path to go to that step." }),
      makeButton("close", "close", () => this.toggleHelp(false), { class: "link" }));
  }

  /** Put a panel below the button, which closes it: in one column a long claim moves the button down.
   * @param {HTMLElement} panel */
  place(panel) {
    panel.style.setProperty("--below", `${this.button.offsetTop + this.button.offsetHeight + 6}px`);
  }

  /** @param {boolean} [open]
   * @param {boolean} [back] whether the button gets the focus of a menu that is closed */
  toggle(open = this.panel.hidden, back = true) {
    this.panel.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
    if (!open) {
      if (back) this.button.focus({ preventScroll: true });
      return;
    }
    this.help.hidden = true;
    this.say("");
    this.place(this.panel);
    this.build();
    this.panel.querySelector("button, input, select")?.focus({ preventScroll: true });
  }

  /** @param {boolean} [open] */
  toggleHelp(open = this.help.hidden) {
    this.help.hidden = !open;
    if (open) {
      this.panel.hidden = true;
      this.place(this.help);
      this.help.querySelector("button").focus({ preventScroll: true });
    }
  }

  /** Say something below the fields: what stands above the picture is behind the menu.
   * @param {string} text */
  say(text) {
    this.said.textContent = text;
    this.said.hidden = !text;
  }

  get open() {
    return !this.panel.hidden;
  }

  /** Close what is open; return whether something was. */
  close() {
    const open = !this.panel.hidden || !this.help.hidden;
    if (!this.panel.hidden) this.toggle(false);
    this.help.hidden = true;
    return open;
  }

  build() {
    const { explorer } = this;
    const { state, model, selected } = explorer;
    const name = (/** @type {HTMLElement} */ element) => element.getAttribute("aria-label") || element.textContent;
    const inside = this.panel.contains(explorer.focused) ? name(explorer.focused) : "";
    const button = (/** @type {string} */ text, /** @type {() => void} */ click, /** @type {any} */ more = {}) => make("button", { type: "button", class: "item", text, on: { click }, ...more });
    const keep = make("div", { class: "menu-group" },
      button("Undo", () => explorer.undo(), { disabled: !explorer.past.length }),
      button("Reset", () => explorer.reset()),
      button(explorer.isFull ? "Leave full screen" : "Full screen", () => explorer.fullScreen()),
      button("Fit the map", () => explorer.map && explorer.map.fit()),
      button("Copy as Python", () => explorer.copyPython()),
      button("Freeze as a page", () => explorer.savePage(), { title: "a page that opens on what is shown now, to keep or to send" }),
      model.alive ? button("Save a picture", () => explorer.ask("png", null)) : null,
      button("Keys", () => this.toggleHelp(true)));
    const parts = [keep];
    if (!explorer.network) parts.push(this.run(), this.settings(selected));
    const text = this.select("text size", [["1", "normal"], ["1.25", "large"], ["1.6", "projector"]], String(state.text_size), (value) => explorer.set({ text_size: Number(value) }));
    const theme = this.select("theme", [["auto", "as the page"], ["light", "light"], ["dark", "dark"]], state.theme, (value) => explorer.set({ theme: value }));
    parts.push(make("div", { class: "menu-group fields" }, text, theme));
    parts.push(make("p", { class: "quiet conditions", text: explorer.conditions() }));
    this.panel.replaceChildren(...parts);
    if (!inside) return;
    // What was made anew keeps the focus: keys reach the menu only from inside.
    const places = [.../** @type {NodeListOf<any>} */ (this.panel.querySelectorAll("button, input, select"))].filter(({ disabled }) => !disabled);
    (places.find((element) => name(element) === inside) || places[0]).focus({ preventScroll: true });
  }

  /** @param {string} label
   * @param {any} value
   * @param {(value: any) => any} change returns what the field then has, where it may refuse a value
   * @param {any} [more] */
  field(label, value, change, more = {}) {
    const kind = typeof value === "boolean" ? "checkbox" : "number";
    const box = make("input", { type: kind, step: "any", value: kind === "number" ? value : false, "aria-label": label, on: { change: () => {
      if (kind === "checkbox") change(box.checked);
      else if (box.value.trim() !== "" && Number.isFinite(Number(box.value))) box.value = change(Number(box.value)) ?? box.value;
      else box.value = value;
    } }, ...more });
    const name = make("span", { text: label });
    if (kind === "number") return make("label", {}, name, box);
    box.checked = value;
    return make("label", { class: "check" }, box, name);
  }

  /** @param {string} label
   * @param {[string, string, boolean?][]} choices
   * @param {string} value
   * @param {(value: string) => void} change */
  select(label, choices, value, change) {
    const box = make("select", { "aria-label": label, on: { change: () => change(box.value) } });
    fillSelect(box, choices, value);
    return make("label", {}, make("span", { text: label }), box);
  }

  /** What all optimizers share. */
  run() {
    const { explorer } = this;
    const { state, engine } = explorer;
    const start = state.start.map((/** @type {number} */ value, /** @type {number} */ i) => this.field(`start ${"xy"[i]}`, value, (next) => {
      explorer.moveStart(state.start.map((/** @type {number} */ one, /** @type {number} */ k) => (k === i ? next : one)));
      explorer.startMoved();
      return explorer.state.start[i];
    }));
    const { mostSteps } = explorer.options;
    const steps = (/** @type {number} */ value) => {
      if (Number.isInteger(value) && value >= 1 && value <= mostSteps) explorer.set({ steps: value });
      else explorer.mention(`steps is a whole number from 1 to ${mostSteps}; ${value} is none.`);
      return explorer.state.steps;
    };
    const noise = (/** @type {number} */ value) => {
      if (value >= 0) explorer.set({ noise: value });
      else explorer.mention(`gradient noise is a number of at least 0; ${value} is none.`);
      return Number(engine.conditions(explorer.state).sigma.toPrecision(6));
    };
    const seed = (/** @type {number} */ value) => {
      explorer.set({ seed: Math.round(value) });
      return explorer.state.seed;
    };
    const { sigma } = engine.conditions(state);
    const sign = (/** @type {string} */ text, /** @type {string} */ mode) => make("button", { type: "button", class: "item", text, "aria-pressed": String(state.mode === mode), on: { click: () => explorer.setMode(mode) } });
    return make("div", { class: "menu-group fields" }, make("h4", { text: "The race" }), ...start,
      this.field("steps", state.steps, steps, { min: 1 }), this.field("gradient noise", Number(sigma.toPrecision(6)), noise, { min: 0 }), this.field("seed", state.seed, seed),
      sign("each at its best rate", "best"), sign("equal rates", "equal"), this.said);
  }

  /** The hyper-parameters of the chosen optimizer, and its wrapper.
   * @param {any} one */
  settings({ entry }) {
    const { explorer } = this;
    const fields = Object.entries(entry.settings).filter(([, value]) => ["number", "boolean"].includes(typeof value)).map(([name, value]) => this.field(name, value, (next) => {
      explorer.setSetting(entry.name, name, next);
      return explorer.state.optimizers.find((/** @type {any} */ one) => one.name === entry.name)?.settings[name];
    }));
    const { around } = explorer.options;
    const own = entry.around || {};
    const kinds = Object.keys(around).filter((kind) => explorer.model.alive || kind === own.kind || explorer.engine.given.rules[`${entry.kind}|${kind}`]);
    const wrapper = this.select("around it", [["", "nothing"], ...kinds.map((kind) => /** @type {[string, string]} */ ([kind, kind]))], own.kind || "", (kind) => explorer.setAround(entry.name, kind));
    const inner = Object.keys(around[own.kind] || {}).map((name) => this.field(name, own[name], (next) => explorer.setAround(entry.name, { ...own, [name]: next })));
    return make("div", { class: "menu-group fields" }, make("h4", { text: entry.name }), ...fields, wrapper, ...inner);
  }
}

/** The Python that shows a state again.
 * @param {any} state
 * @param {any} options
 * @param {string} own the name of a function of one's own */
export function pythonOf(state, options, own) {
  /** @type {(value: any) => string} */
  const number = (value) => (value === true ? "True" : value === false ? "False" : Array.isArray(value) ? `(${value.map(number).join(", ")})` : String(value));
  const problem = state.problem === "own" ? own || "my_function" : JSON.stringify(state.problem);
  const plain = state.optimizers.every((/** @type {any} */ entry) => entry.kind in options.defaults && !(entry.around || {}).kind && entry.rate !== null);
  const start = state.start ? `, start=(${state.start.map(number).join(", ")}${state.start.length === 1 ? "," : ""})` : "";
  /** @type {string[]} */
  const more = [];
  for (const [name, usual] of /** @type {[string, any][]} */ ([["step", 0], ["tab", "loss"], ["beside", "basins"], ["view", "look"], ["noise", null], ["slot", ""], ["coordinate", 0]])) {
    if (state[name] !== usual) more.push(`${name}=${typeof state[name] === "string" ? JSON.stringify(state[name]) : number(state[name])}`);
  }
  // Names alone stand for the library's settings, each at its best rate.
  const named = state.mode === "best" && state.optimizers.every((/** @type {any} */ { name, kind, rate, settings, around }) => name === kind && rate === null && !(around || {}).kind && kind in options.defaults && JSON.stringify(options.usual[kind]) === JSON.stringify(settings));
  if (named) {
    if (state.selected !== state.optimizers[state.optimizers.length - 1].name) more.push(`selected=${JSON.stringify(state.selected)}`);
    const names = state.optimizers.map((/** @type {any} */ { name }) => JSON.stringify(name)).join(", ");
    const change = more.length ? `.change(${more.join(", ")})` : "";
    return `import optlab as ol\n\nol.explore(${problem}, [${names}]${start}, steps=${state.steps}${state.seed ? `, seed=${state.seed}` : ""})${change}\n`;
  }
  if (!plain) {
    const given = state.problem === "own" ? problem : "";
    return `import optlab as ol\n\nol.explore(${given}).change(state=${JSON.stringify(JSON.stringify(state))})\n`;
  }
  more.push(`selected=${JSON.stringify(state.selected)}`);
  const lines = state.optimizers.map((/** @type {any} */ entry) => {
    const usual = options.defaults[entry.kind];
    const settings = Object.entries(entry.settings).filter(([name, value]) => JSON.stringify(usual[name]) !== JSON.stringify(value)).map(([name, value]) => `, ${name}=${number(value)}`).join("");
    return `    ${JSON.stringify(entry.name)}: ol.optimizer.${entry.kind}(${number(entry.rate)}${settings}),\n`;
  });
  return `import optlab as ol\n\nol.explore(${problem}, {\n${lines.join("")}}${start}, steps=${state.steps}${state.seed ? `, seed=${state.seed}` : ""}).change(${more.join(", ")})\n`;
}

/** @param {string} name
 * @param {string} type
 * @param {BlobPart[]} parts */
export function download(name, type, parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** The sentence on how the rates were chosen.
 * @param {any} explorer */
export function ratesSaid(explorer) {
  const { state, options, floor } = explorer;
  const chosen = state.mode === "best" || (state.mode === "custom" && state.optimizers.some((/** @type {any} */ { rate }) => rate === null));
  const how = options.conditions[state.mode] + (chosen && state.mode === "custom" ? options.conditions.others : "") + (chosen && !explorer.open ? "; ○ marks the lowest loss after the last step, which another rate may have" : "") + (explorer.open ? "; the loss has no lowest point in view, so that no rate is the best" : "");
  return floor.known ? how : how.replace("loss − minimum", `loss − lowest loss seen, ${numberText(floor.floor)}`);
}
