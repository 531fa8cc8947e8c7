// The field over the map in which a formula is typed, and what is wrong with it.

import { make, makeButton } from "../../browser/static/elements.js";
import { FormulaError, compiledFormula, formulaSurface, functionsSaid } from "./formula.js";

const EXAMPLE = "(1 - x)**2 + 100*(y - x**2)**2";
const WINDOW = 44; // characters of the text that stand above the caret

export class FormulaField {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.input = make("input", {
      type: "text", class: "formula-input", "aria-label": "formula of x and y", placeholder: EXAMPLE, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
      on: {
        input: () => this.say(null),
        keydown: (/** @type {KeyboardEvent} */ event) => {
          event.stopPropagation();
          if (event.key === "Enter") this.show();
          else if (event.key === "Escape") this.close();
        },
      },
    });
    this.said = make("div", { class: "formula-said", role: "alert" });
    this.hint = make("div", { class: "formula-hint" });
    this.element = make("div", { class: "formula-field", hidden: true },
      make("div", { class: "formula-line" }, this.input, make("button", { type: "button", class: "item", text: "show", on: { click: () => this.show() } }), makeButton("×", "close the formula", () => this.close(), { class: "formula-close" })),
      this.said, this.hint);
  }

  open() {
    const { explorer } = this;
    const { problem } = explorer.state;
    explorer.problem.value = `p:${problem}`;
    this.element.hidden = false;
    if (!this.input.value && explorer.engine.typed(problem)) this.input.value = problem;
    this.say(null);
    this.input.focus({ preventScroll: true });
    this.input.select();
  }

  close() {
    this.element.hidden = true;
    this.explorer.problem.focus({ preventScroll: true });
  }

  show() {
    const text = this.input.value.trim();
    try {
      formulaSurface(compiledFormula(text));
    } catch (error) {
      if (!(error instanceof FormulaError)) throw error;
      this.say(error);
      return;
    }
    this.close();
    this.explorer.chooseFormula(text);
  }

  /** Say what is wrong with the formula, and where; without an error, what it may have.
   * @param {FormulaError | null} error */
  say(error) {
    this.said.replaceChildren();
    this.hint.textContent = `Of x and y, or p[0] and p[1]: + − * / **, numbers, pi, e, and ${functionsSaid()}. Enter shows it.`;
    if (!error) return;
    const text = this.input.value.trim();
    // The sentence without the text that stands below it.
    const why = error.message.replace(/^the formula ".*?" cannot be used: /s, "");
    this.said.append(make("div", { text: why[0].toUpperCase() + why.slice(1) }));
    if (why.includes("functions ")) this.hint.textContent = "";
    if (text) {
      const from = Math.max(0, Math.min(error.start - WINDOW / 2, text.length - WINDOW));
      const shown = text.slice(from, from + WINDOW);
      const length = Math.max(1, Math.min(error.end - error.start, shown.length - (error.start - from)));
      const lead = from ? "…" : "";
      const whole = error.start === 0 && error.end >= text.length;
      this.said.append(make("pre", { text: `${lead}${shown.replaceAll("\n", " ")}${whole ? "" : `\n${" ".repeat(error.start - from + lead.length)}${"^".repeat(length)}`}` }));
      if (!whole) this.input.setSelectionRange(error.start, Math.max(error.end, error.start + 1));
    }
    if (error.instead) {
      this.said.append(make("button", { type: "button", class: "item", text: `write ${error.instead.length > 40 ? "it with **" : error.instead}`, on: { click: () => {
        this.input.value = error.instead;
        this.show();
      } } }));
    }
  }
}
