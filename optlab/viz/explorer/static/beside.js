// The panels behind the tab "more": basins of attraction, the curvature at a point, the modes of a
// quadratic, a learning-rate range test.

import { make } from "../../browser/static/elements.js";
import { BasinsPanel } from "./basins.js";
import { CurvaturePanel } from "./curvature.js";
import { ModesPanel } from "./modes.js";
import { RatesPanel } from "./rates.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */

/** @type {[string, string, string][]} */
const KINDS = [
  ["basins", "basins", "which minimum each start reaches"], ["curvature", "curvature", "the quadratic around a point"],
  ["modes", "modes", "each direction of a quadratic by itself"], ["rates", "rate test", "a run whose rate grows"],
];

export class Beside {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {Record<string, any>} */
    this.panels = { basins: new BasinsPanel(explorer), curvature: new CurvaturePanel(explorer), modes: new ModesPanel(explorer), rates: new RatesPanel(explorer) };
    this.choices = KINDS.map(([key, text, title]) => make("button", { type: "button", class: "item beside-choice", text, title, on: { click: () => explorer.set({ beside: key }) } }));
    this.element = make("div", { class: "beside", hidden: true },
      make("div", { class: "beside-choices", role: "group", "aria-label": "panels" }, ...this.choices),
      ...KINDS.map(([key]) => this.panels[key].element));
  }

  /** The panel that is shown, or null. */
  get panel() {
    const { state, map, view } = this.explorer;
    return map && view === "look" && state.tab === "beside" ? this.panels[state.beside] : null;
  }

  /** What the ground of the map depends on. */
  get groundKey() {
    const { panel } = this;
    return panel && panel.groundKey ? panel.groundKey : "";
  }

  draw() {
    const { state } = this.explorer;
    KINDS.forEach(([key], i) => {
      this.choices[i].setAttribute("aria-pressed", String(key === state.beside));
      this.panels[key].element.hidden = key !== state.beside;
    });
    const { plot, layout } = this.explorer;
    const inColumn = layout === "narrow"; // there the page scrolls, not the panel
    this.element.style.height = inColumn ? "" : `${plot.height}px`;
    if (inColumn && this.panel) plot.element.style.height = "auto";
    if (this.panel) this.panel.draw();
  }

  /** The height that the canvas of the panel has beside its texts: nothing is cut off.
   * @param {HTMLCanvasElement} canvas */
  room(canvas) {
    const { plot, layout, state } = this.explorer;
    if (layout === "narrow") return Math.round(150 * state.text_size);
    canvas.style.height = "0px";
    const texts = this.panel.element.getBoundingClientRect().bottom - this.element.getBoundingClientRect().top + this.element.scrollTop;
    return Math.max(Math.round(84 * state.text_size), Math.floor(plot.height - texts - 2));
  }

  drawCursor() {
    if (this.panel && this.panel.drawCursor) this.panel.drawCursor();
  }

  /** What the panel puts on the ground of the map.
   * @returns {Mark[]} */
  groundMarks() {
    return this.panel && this.panel.groundMarks ? this.panel.groundMarks() : [];
  }

  /** What the panel puts on the map, in pixels.
   * @returns {Mark[]} */
  mapMarks() {
    return this.panel && this.panel.mapMarks ? this.panel.mapMarks() : [];
  }

  stop() {
    for (const panel of Object.values(this.panels)) if (panel.stop) panel.stop();
  }
}
