// The examples: races that make one point each, as a row of names under their claim. In one column they
// are a list to choose from.

import { make } from "../../browser/static/elements.js";

export class Examples {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.row = make("div", { class: "examples-row", role: "radiogroup", "aria-label": "examples" });
    this.list = make("select", { class: "examples-list", "aria-label": "example", on: { change: () => this.list.value && this.choose(this.list.value) } });
    this.element = make("div", { class: "examples", hidden: true }, this.row, this.list);
    this.key = "";
    /** @type {string[]} */
    this.names = [];
    this.row.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      /** @type {Record<string, number>} */
      const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.next(moves[event.key]);
      this.row.querySelector('[aria-checked="true"]')?.focus({ preventScroll: true });
    });
  }

  /** The height that the row takes where it is shown.
   * @returns {number} */
  room() {
    if (!this.names.length || this.explorer.network) return 0;
    const { hidden } = this.element;
    this.element.hidden = false;
    const style = getComputedStyle(this.element);
    const height = this.element.offsetHeight + parseFloat(style.marginBottom);
    this.element.hidden = hidden;
    return height;
  }

  /** @param {string} name */
  choose(name) {
    this.explorer.chooseScene(`s:${name}`);
  }

  /** The next example, or the one before.
   * @param {number} by */
  next(by) {
    const { names } = this, at = names.indexOf(this.explorer.state.preset);
    if (names.length) this.choose(names[at < 0 ? (by > 0 ? 0 : names.length - 1) : (at + by + names.length) % names.length]);
  }

  update() {
    const { explorer } = this;
    const { options, engine, model, state } = explorer;
    this.names = Object.keys(options.presets).filter((name) => model.alive || options.presets[name].state.problem in engine.given.problems);
    // A step that is taken apart needs the room.
    this.element.hidden = explorer.network || explorer.view === "apart" || !this.names.length;
    const key = this.names.join();
    if (this.key !== key) {
      this.key = key;
      this.row.replaceChildren(...this.names.map((name) => make("button", {
        type: "button", class: "example", role: "radio", text: options.presets[name].short, title: options.presets[name].claim, "data-name": name,
        on: { click: () => this.choose(name) },
      })));
      this.list.replaceChildren(make("option", { value: "", text: `${this.names.length} examples` }), ...this.names.map((name) => make("option", { value: name, text: name })));
    }
    const checked = this.names.includes(state.preset) ? state.preset : "";
    [...this.row.children].forEach((button, i) => {
      button.setAttribute("aria-checked", String(button.dataset.name === checked));
      button.tabIndex = checked ? (button.dataset.name === checked ? 0 : -1) : i ? -1 : 0;
    });
    if (this.list.value !== checked) this.list.value = checked;
  }
}
