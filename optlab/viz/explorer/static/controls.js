// The controls below the plots: play and scrub, and a row with two sliders for each optimizer.

import { drawMarks } from "../../browser/static/canvas.js";
import { clearCanvas, fitCanvas } from "../../browser/static/drawing.js";
import { fill, make, makeButton, put, showPlaying } from "../../browser/static/elements.js";
import { lineMark, pixelFrame, pointMark } from "../../browser/static/marks.js";
import { NotchSlider } from "./notches.js";
import { fillAdd, paidSaid } from "./adding.js";
import { numberText, stepsText } from "./numbers.js";

/** From this number of optimizers on they are chips, and only the chosen one has its sliders. */
const CHIPS = 4;
/** @type {[number, string][]} */
const SPEEDS = [[0.5, "½"], [1, "1"], [4, "4×"]];

export class Controls {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.play = makeButton("▶\uFE0E", "play", () => explorer.toggle(), { class: "play", title: "play or pause (space)" });
    this.scrub = make("input", { type: "range", min: "0", step: "1", "aria-label": "step", class: "scrub", on: { input: () => explorer.go(Number(this.scrub.value)) } });
    this.step = make("b", { class: "step" });
    this.of = make("span", { class: "of" });
    this.speeds = SPEEDS.map(([speed, text]) => make("button", { type: "button", class: "speed", text, "aria-label": `speed ${text}`, on: { click: () => explorer.setSpeed(speed) } }));
    this.add = make("select", { class: "add", "aria-label": "add an optimizer", on: { change: () => {
      const kind = this.add.value;
      this.add.value = "";
      if (kind) explorer.addOptimizer(kind);
    } } });
    this.bar = make("div", { class: "bar" },
      make("div", { class: "bar-left" }, this.play, this.scrub),
      make("div", { class: "bar-right" }, make("span", { class: "count" }, this.step, this.of), make("span", { class: "speeds" }, make("span", { class: "quiet", text: "speed" }), ...this.speeds), this.add));
    this.caption = make("div", { class: "caption" });
    this.chips = make("div", { class: "chips", role: "radiogroup", "aria-label": "optimizers" });
    this.rows = make("div", { class: "rows", role: "group", "aria-label": "optimizers and their settings" });
    /** @type {Map<string, any>} */
    this.made = new Map();
    this.names = this.chipNames = this.captionKey = "";
    this.element = make("div", { class: "controls" }, this.bar, this.caption, this.chips, this.rows);
  }

  /** Which optimizers have a row. */
  get inRows() {
    const { shown, selected } = this.explorer;
    return shown.length < CHIPS ? shown : [selected];
  }

  update() {
    const { explorer } = this;
    const { state, shown } = explorer;
    this.scrub.max = String(state.steps);
    this.speeds.forEach((button, i) => button.setAttribute("aria-pressed", String(SPEEDS[i][0] === explorer.speed)));
    this.add.hidden = explorer.network || (!explorer.model.alive && !explorer.addable().length);
    fillAdd(this.add, explorer);
    const rows = this.inRows;
    const names = rows.map((/** @type {any} */ { entry }) => `${entry.name}|${explorer.second(entry)}`).join("\n");
    if (names !== this.names) this.build(names, rows);
    this.caption.hidden = explorer.network;
    const sensitive = shown.some((/** @type {any} */ one) => one.sensitive >= 0);
    const best = explorer.open ? "no lowest point in view: no rate is best" : "○ lowest";
    this.putCaption(`${explorer.tight ? "rate · " : ""}${paidSaid(shown, explorer.options.paying)}loss after ${stepsText(state.steps)} at every notch; ${best}, hatched diverges${sensitive ? "; ≈ sensitive to the last bit" : ""}`, explorer.kernelSaid());
    this.buildChips(shown);
    const { rows: room, roomy } = explorer.rowSizes();
    this.element.classList.toggle("ol-compact", rows.length === CHIPS - 1);
    this.element.classList.toggle("ol-roomy", roomy);
    this.element.style.setProperty("--rows", `${room}px`);
    // All have one width of a notch, which depends on how many there are in every row.
    for (const { entry } of rows) {
      const made = this.made.get(entry.name);
      made.rates = explorer.ladder(entry);
      made.seconds = explorer.second(entry) ? explorer.secondNotches(entry) : [];
    }
    for (const one of rows) this.drawRow(one);
  }

  /** The caption begins above the sliders; a long one at the edge, then without the reason why the kernel
   * computes, which a pointer reads, and at last on two lines: nothing is cut off.
   * @param {string} text
   * @param {string[]} kernel what is said of the kernel, the longest first; empty for nothing */
  putCaption(text, kernel) {
    const { caption, explorer } = this, { classList } = caption;
    const texts = kernel.length ? kernel.map((said) => `${text} · ${said}`) : [text];
    const key = [...texts, explorer.layout, explorer.room, explorer.state.text_size, caption.hidden].join("|");
    if (this.captionKey === key) return; // measuring is a layout of the page
    this.captionKey = key;
    caption.title = texts[0];
    classList.remove("ol-long", "ol-lines");
    if (this.explorer.layout === "narrow") {
      caption.textContent = texts[0];
      return;
    }
    for (const one of [texts[0], ...texts]) {
      caption.textContent = one;
      if (caption.scrollWidth <= caption.clientWidth) return;
      classList.add("ol-long");
    }
    caption.textContent = texts[0];
    classList.add("ol-lines");
  }

  /** @param {string} names
   * @param {any[]} rows */
  build(names, rows) {
    const { explorer } = this;
    /** @type {(row: Element | undefined) => any[]} */
    const places = (row) => [...(row ? row.querySelectorAll('button, [tabindex="0"]') : [])];
    const before = [...this.rows.children], held = before.findIndex((row) => row.contains(explorer.focused)), place = places(before[held]).indexOf(explorer.focused);
    this.names = names;
    this.made.clear();
    this.rows.replaceChildren(...rows.map(({ entry }) => {
      const { name } = entry;
      const second = explorer.second(entry);
      const sample = make("canvas", { class: "sample", "aria-hidden": "true" });
      const loss = make("span", { class: "row-loss" });
      const button = make("button", { type: "button", class: "row-name", on: { click: () => explorer.set({ selected: name }) } }, sample, make("span", { class: "row-text" }, make("b", { text: name }), loss));
      const rate = new NotchSlider({ label: `learning rate of ${name}`, choose: (i) => explorer.setRate(name, this.made.get(name).rates[i]), hover: (i) => this.hover(name, i, "") });
      const rateValue = make("b", { class: "value" });
      const left = make("div", { class: "row-left" }, button, make("span", { class: "label", text: "rate" }), rate.element, rateValue);
      const right = make("div", { class: "row-right" });
      let other = null, otherValue = null;
      if (second) {
        other = new NotchSlider({ label: `${second} of ${name}`, choose: (i) => explorer.setSetting(name, second, this.made.get(name).seconds[i]), hover: (i) => this.hover(name, i, second) });
        otherValue = make("b", { class: "value" });
        right.append(make("span", { class: "label second", text: second, title: second }), other.element, otherValue);
      }
      const remove = makeButton("×", `remove ${name}`, (event) => {
        event.stopPropagation();
        explorer.removeOptimizer(name);
      }, { class: "remove" });
      const row = make("div", { class: "row", on: { click: (/** @type {MouseEvent} */ event) => {
        if ([row, left, right].includes(event.target)) explorer.set({ selected: name });
      } } }, left, right, remove);
      this.made.set(name, { row, sample, loss, rate, rateValue, other, otherValue, remove, rates: [], seconds: [] });
      return row;
    }));
    if (held < 0) return;
    // The row that comes to the place of the one with the focus has it, at the same part; a single one has no ×.
    const next = places(this.rows.children[Math.min(held, rows.length - 1)]), last = place === places(before[held]).length - 1;
    const chosen = last ? next[next.length - 1] : next[Math.min(place, next.length - 2)];
    (last && explorer.shown.length < 2 ? next[0] : chosen).focus({ preventScroll: true });
  }

  /** What a notch under the pointer would do: its path, and its value with how it ends, in the value's place.
   * @param {string} name
   * @param {number} index
   * @param {string} second */
  hover(name, index, second) {
    const { explorer } = this;
    const one = explorer.shown.find((/** @type {any} */ each) => each.entry.name === name);
    const made = this.made.get(name), slider = second ? made?.other : made?.rate, value = second ? made?.otherValue : made?.rateValue;
    if (index < 0 && slider?.shown) put(value, numberText(slider.shown.values[slider.shown.index], 6));
    else if (index >= 0) value.replaceChildren(make("span", { class: "quiet", style: "display:inline-block;width:0;white-space:pre;font-weight:400;font-size:.87em;line-height:1.15", text: slider.said(index).replace(": ", "\n") }));
    if (index < 0 || !one) explorer.showGhost(null);
    else if (second) explorer.showGhost(one.entry, one.rate, { [second]: this.made.get(name).seconds[index] });
    else explorer.showGhost(one.entry, this.made.get(name).rates[index]);
  }

  /** @param {any} one */
  drawRow(one) {
    const { explorer } = this;
    const { state, engine, palette } = explorer;
    const made = this.made.get(one.entry.name);
    const chosen = one.entry.name === state.selected && explorer.shown.length > 1 && (explorer.view === "apart" || state.tab === "plane");
    made.row.classList.toggle("ol-chosen", chosen);
    made.row.querySelector(".ol-row-name").setAttribute("aria-pressed", String(one.entry.name === state.selected));
    made.rate.element.hidden = explorer.network;
    made.remove.hidden = explorer.network || explorer.shown.length < 2;
    this.drawSample(made.sample, one);
    const second = explorer.second(one.entry);
    const { notch, height, most, union } = explorer.sliderSizes();
    const waiting = !one.run;
    // Equal rates of all stand below each other, where there is room for that.
    const places = made.rates.map((/** @type {number} */ rate, /** @type {number} */ i) => (union ? union.indexOf(rate) : i));
    made.rate.element.style.marginLeft = `${notch * places[0]}px`;
    made.rate.draw({
      values: made.rates, places, index: Math.max(0, made.rates.indexOf(one.rate)), finals: engine.finals(state, one.entry, one.rate, "learning_rate", made.rates),
      floor: explorer.floor.floor, start: explorer.startLoss, color: one.color, palette, notch, height, disabled: explorer.network, best: !explorer.open, open: true, steady: (/** @type {number} */ i) => explorer.network || engine.steady(state, one.entry, made.rates[i]),
    });
    // Their values stand in a column, though some sliders have a notch more.
    made.rateValue.style.marginLeft = explorer.network ? "" : `${notch * (most[0] - 1 - places[places.length - 1])}px`;
    put(made.rateValue, numberText(one.rate, 6));
    if (second) {
      const value = one.entry.settings[second];
      made.other.draw({
        values: made.seconds, index: Math.max(0, made.seconds.indexOf(value)), finals: engine.finals(state, one.entry, one.rate, second, made.seconds),
        floor: explorer.floor.floor, start: explorer.startLoss, color: one.color, palette, notch, height, disabled: waiting && !explorer.model.alive, best: !explorer.open, steady: (/** @type {number} */ i) => engine.steady(state, { ...one.entry, settings: { ...one.entry.settings, [second]: made.seconds[i] } }, one.rate),
      });
      made.otherValue.style.marginLeft = `${notch * (most[1] - made.seconds.length)}px`;
      put(made.otherValue, numberText(value, 6));
    }
  }

  /** @param {HTMLCanvasElement} canvas
   * @param {any} one */
  drawSample(canvas, one) {
    const { palette, state, layout, tight } = this.explorer;
    const size = state.text_size, wide = (tight ? 30 : layout === "middle" ? 34 : 46) * size, tall = 18 * size;
    const key = [palette.paper, one.color, one.style.dash, one.style.marker, wide, tall, window.devicePixelRatio].join("|");
    if (canvas.dataset.shows === key) return; // what is drawn again is rasterized again, each in a layer of its own
    canvas.dataset.shows = key;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${tall}px`;
    const pen = fitCanvas(canvas, wide, tall);
    clearCanvas(pen);
    const line = lineMark([1, wide - 1], [tall / 2, tall / 2], { color: one.color, width: 2.8 * size, dash: one.style.dash.map((/** @type {number} */ length) => length * size) });
    drawMarks(pen, pixelFrame(wide, tall, palette.paper), [line, pointMark(wide / 2, tall / 2, one.style.marker, 14 * size, one.color, palette.paper)]);
  }

  /** @param {any[]} shown */
  buildChips(shown) {
    const { explorer } = this;
    this.chips.hidden = shown.length < CHIPS;
    if (this.chips.hidden) return;
    const names = shown.map(({ entry }) => entry.name).join("\n");
    if (names !== this.chipNames) {
      this.chipNames = names;
      this.chips.replaceChildren(...shown.map(({ entry }) => make("button", {
        type: "button", class: "chip", role: "radio", "data-name": entry.name,
        on: { click: () => explorer.set({ selected: entry.name }) },
      }, make("canvas", { class: "sample", "aria-hidden": "true" }), make("span", { text: entry.name }), make("span", { class: "row-loss" }))));
    }
    [...this.chips.children].forEach((chip, i) => {
      chip.setAttribute("aria-checked", String(shown[i].entry.name === explorer.state.selected));
      this.drawSample(chip.querySelector("canvas"), shown[i]);
    });
    const chosen = this.chips.querySelector('[aria-checked="true"]');
    if (!chosen) return;
    // The chosen one is whole where the chips scroll; the page itself stays where it is.
    const top = chosen.offsetTop - this.chips.offsetTop, bottom = top + chosen.offsetHeight - this.chips.clientHeight;
    this.chips.scrollTop = Math.max(bottom, Math.min(top, this.chips.scrollTop));
  }

  /** The numbers at the cursor. */
  updateCursor() {
    const { explorer } = this;
    const { state, shown } = explorer;
    put(this.step, `step ${state.step}`);
    put(this.of, ` of ${state.steps}`);
    if (Number(this.scrub.value) !== state.step) this.scrub.value = String(state.step);
    fill(this.scrub);
    showPlaying(this.play, explorer.playing);
    for (const one of shown) {
      const text = this.lossText(one);
      const made = this.made.get(one.entry.name);
      if (made) {
        const ended = one.run && (one.run.stopped >= 0 || one.run.finalLoss > explorer.highestLoss);
        put(made.loss, text);
        made.loss.classList.toggle("ol-ended", Boolean(ended));
        made.loss.title = one.sensitive >= 0 ? `${text}. ${explorer.sensitiveSaid(one)}` : text; // a narrow row cuts the text
      }
      const chip = this.chips.hidden ? null : [...this.chips.children].find((each) => each.dataset.name === one.entry.name);
      if (chip) put(chip.lastElementChild, text.replace("loss ", ""));
    }
  }

  /** The loss at the cursor; ≈ where it depends on the last bit. A run that ends says so at every step.
   * @param {any} one */
  lossText({ run, sensitive }) {
    if (!run) return "waiting for the kernel";
    const { step } = this.explorer.state;
    if (run.stopped >= 0) return step >= run.stopped ? run.why || "ended" : `${numberText(run.loss[step])}, ${(run.why || "ends").replace("diverged", "diverges")}`;
    if (run.finalLoss > this.explorer.highestLoss) return `${numberText(run.loss[step])}, diverges`;
    return `loss ${sensitive >= 0 && step >= sensitive ? "≈ " : ""}${numberText(run.loss[Math.min(step, run.loss.length - 1)])}`;
  }
}
