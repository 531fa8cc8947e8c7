// Take apart: the lines of one step of one optimizer with their numbers, tied by color to the arrows that
// `arrows.js` draws on the map.

import { make } from "../../browser/static/elements.js";
import { ArrowPicture, partsOf } from "./arrows.js";
import { angleBetween, valuesOf } from "./engine.js";
import { linesOf, readersOf, tipsOf } from "./formulas.js";

/** How lines that are higher than their room are drawn closer, one after the other. */
const CLOSENESS = ["close", "short", "scrolled", "bare", "tight"];
/** So few lines have the whole height, with thicker bars. */
const FEW_LINES = 3;
/** A divisor so many times as long as all that shares its scale would leave hairlines of them. */
const OUTGROWN = 6;

export class TakeApart extends ArrowPicture {
  /** @param {any} explorer */
  constructor(explorer) {
    super(explorer);
    this.element = make("div", { class: "apart", role: "table", "aria-label": "the step, line by line" });
    this.key = this.place = "";
    this.room = this.level = 0;
  }

  /** @param {number} room the height of the lines; 0 for as high as they are */
  resize(room) {
    this.room = room;
    this.element.style.height = room ? `${room}px` : "";
  }

  /** Lines that are higher than their room get closer, then the longest notes are cut, which a pointer still
   * reads. Then the sentences about the step are scrolled to, and where the lines need it, the bars of parts
   * go, and notes have one line. What was needed once stays, so that nothing jumps while the steps go by. */
  fit() {
    const { element, room, explorer } = this;
    const place = `${room}|${element.clientWidth}|${explorer.state.text_size}|${explorer.selected?.entry.name}`;
    if (this.place !== place) this.level = 0;
    this.place = place;
    for (;;) {
      CLOSENESS.forEach((name, i) => element.classList.toggle(`ol-lines-${name}`, i < this.level));
      const tip = this.level > 2 && element.querySelector(".ol-apart-tip");
      const needed = element.scrollHeight - (tip ? tip.offsetHeight + 2 : 0);
      if (!room || this.level >= CLOSENESS.length || needed <= room + 1) return;
      this.level++;
    }
  }

  /** @param {string} role */
  colorOf(role) {
    const { palette, selected, options } = this.explorer;
    const [name] = options.lines[role] || ["quiet"];
    return name === "own" ? selected.color : palette[name];
  }

  /** @param {string} role */
  strengthOf(role) {
    return (this.explorer.options.lines[role] || ["", 1])[1];
  }

  /** The step that is shown, at least the first. */
  get step() {
    const { selected, state } = this.explorer;
    return selected.run ? Math.max(1, Math.min(state.step, selected.run.last)) : 0;
  }

  /** The lines of the step, a reader of its numbers for each coordinate, and sentences about it.
   * @returns {{lines: any[], readers: ((name: string) => number)[], tips: string[]} | null} */
  lines() {
    const { explorer, step } = this;
    const { selected, engine, axes } = explorer;
    const rule = engine.rule(selected.entry);
    if (!selected.run || !selected.run.path || !rule || selected.run.last < 1) return null;
    const { formula, initial } = rule;
    const readers = readersOf(formula, axes.map((/** @type {string} */ _, /** @type {number} */ c) => valuesOf(selected.run, { ...formula, initial }, selected.entry, selected.rate, step, c)));
    return { lines: linesOf(formula, readers, axes), readers, tips: tipsOf(formula, readers) };
  }

  /** What the numbers of the step say, in a sentence. */
  claim() {
    const { explorer, step } = this;
    const { selected } = explorer;
    const { run, entry } = selected;
    if (!run || run.last < 1 || explorer.network) return "";
    const row = (/** @type {Float64Array} */ rows) => Array.from(rows.subarray((step - 1) * run.n, step * run.n));
    const update = row(run.update), downhill = row(run.gradient).map((g) => -g);
    const angle = angleBetween(update, downhill);
    if (Number.isNaN(angle)) return update.some((u) => u !== 0) ? `The gradient is zero. ${entry.name} moves on.` : `${entry.name} does not move in step ${step}.`;
    const found = this.lines();
    const remembered = found && found.lines.flatMap(({ row: line }) => line.parts).filter(([, role]) => role === "kept" || role === "kept step").pop();
    if (angle > 90 && remembered) {
      const kept = found.readers.map((read) => read(remembered[0]));
      // Only what the memory holds can be blamed on it.
      if (angleBetween(kept, downhill) > 90 && angleBetween(kept, update) < 90) return `The gradient says turn back. ${entry.name}’s memory carries it on.`;
    }
    if (angle > 90) return `${entry.name} goes uphill in step ${step}.`;
    if (run.n === 1) {
      const [before, after] = [run.loss[step - 1], run.loss[step]];
      return `${entry.name} follows the slope of this step${after < before ? ", and the loss falls" : after > before ? ", but the loss rises" : ", but the loss stays the same"}.`;
    }
    if (angle < 1) return `${entry.name} goes straight downhill.`;
    return `${entry.name} turns ${Math.round(angle)}° away from straight downhill.`;
  }

  draw() {
    const { explorer } = this;
    const found = this.lines();
    if (!found) {
      this.key = "";
      this.element.replaceChildren(make("p", { class: "quiet", text: explorer.selected.run ? "No step has been taken: press play." : "The numbers of this run come from the kernel." }));
      return;
    }
    const { lines, readers, tips } = found;
    const { scales, largest } = this.scales(lines, readers);
    const inUnits = lines.some(({ row }) => row.bars === "update") ? "update in map units" : "";
    const rows = [make("div", { class: "apart-head", role: "row" }, make("span", { role: "columnheader", class: "apart-units", text: inUnits, title: inUnits && "The bars of the update are in units of the map; the others share a scale, but for those whose own is named." }), ...explorer.axes.map((/** @type {string} */ axis) => make("span", { role: "columnheader", text: `along ${axis}` })))];
    for (const line of lines) {
      const { row } = line;
      if (row.role === "position" && rows.length > 1) {
        // Where the step leads stands under it.
        [...rows[rows.length - 1].querySelectorAll(".ol-apart-cell")].forEach((cell, c) => cell.append(make("div", { class: "formula position" }, ...this.written(line.cells[c], row))));
        continue;
      }
      const color = this.colorOf(row.role);
      const name = make("div", { class: "apart-name", role: "rowheader", style: `--line: ${color}` }, make("b", { text: line.label }), " ", make("span", { class: "apart-symbol" }, ...this.written(this.raised(row.symbol), null)));
      const note = [...this.written(line.note, null)];
      if (row.bars === "own") note.push(note.length ? "; own scale" : "own scale");
      if (note.length) {
        name.append(make("div", { class: "apart-note" }, ...note));
        name.title = name.lastElementChild.textContent;
      }
      const cells = line.cells.map((/** @type {any[]} */ pieces, /** @type {number} */ c) => make("div", { class: `apart-cell${row.bars ? "" : " bare"}`, role: "cell" }, make("div", { class: "formula" }, ...this.written(pieces, row)), row.bars ? this.bars(row, readers[c], largest[scales[line.label]], !c && row.bars === "alike" && scales[line.label] === line.label ? "own scale" : "") : null));
      rows.push(make("div", {
        class: "apart-line", "data-line": line.label, "data-role": row.role, role: "row", tabindex: row.arrow ? "0" : false,
        on: { pointerenter: () => this.hover(line.label), pointerleave: () => this.hover(""), focus: () => this.hover(line.label), blur: () => this.hover("") },
      }, name, ...cells));
    }
    if (tips.length) rows.push(make("p", { class: "apart-tip", text: tips.join(" ") }));
    const key = rows.map((cell) => cell.textContent).join("|") + explorer.theme + explorer.selected.entry.name;
    if (key === this.key && this.element.childElementCount) {
      this.fit();
      this.mark();
      return;
    }
    this.key = key;
    const focused = this.element.contains(this.explorer.focused) ? this.hovered : "";
    this.element.style.setProperty("--axes", String(explorer.axes.length));
    this.element.replaceChildren(...rows);
    this.element.classList.toggle("ol-lines-few", rows.length - Number(tips.length > 0) <= FEW_LINES + 1);
    if (focused) this.lineElement(focused)?.focus();
    this.fit();
    this.mark();
  }

  /** @param {string} label */
  lineElement(label) {
    return [...this.element.querySelectorAll("[data-line]")].find((one) => one.dataset.line === label);
  }

  /** The scale of each line's bars, and what the longest bar, or sum of parts, of each scale is. Bars in units
   * of the gradient share one, unless a divisor has outgrown the others.
   * @param {any[]} lines
   * @param {((name: string) => number)[]} readers
   * @returns {{scales: Record<string, string>, largest: Record<string, number>}} by the line's label, by the scale */
  scales(lines, readers) {
    const drawn = lines.filter(({ row }) => row.bars);
    const longest = (/** @type {any[]} */ some) => Math.max(0, ...some.flatMap(({ row }) => readers.flatMap((read) => {
      let sum = 0;
      return [read(row.result), ...partsOf(row).map(([name]) => (sum += read(name)))].filter(Number.isFinite).map(Math.abs);
    })));
    const shared = longest(drawn.filter(({ row }) => row.bars === "alike" && row.role !== "scale"));
    const alone = (/** @type {any} */ line) => line.row.bars === "own" || (line.row.bars === "alike" && line.row.role === "scale" && longest([line]) > OUTGROWN * shared);
    const scales = Object.fromEntries(drawn.map((line) => [line.label, alone(line) ? line.label : line.row.bars]));
    const largest = Object.fromEntries(Object.values(scales).map((scale) => [scale, longest(drawn.filter(({ label }) => scales[label] === scale))]));
    return { scales, largest };
  }

  mark() {
    for (const line of this.element.querySelectorAll("[data-line]")) {
      line.classList.toggle("ol-faded", Boolean(this.hovered) && line.dataset.line !== this.hovered);
      line.classList.toggle("ol-hovered", line.dataset.line === this.hovered);
    }
  }

  /** @param {string} label */
  hover(label) {
    if (this.hovered === label) return;
    this.hovered = label;
    this.mark();
    this.explorer.later("top");
  }

  /** @param {string} symbol with ^[...] where it is raised */
  raised(symbol) {
    return symbol.split(/(\^\[[^\]]*\])/).filter(Boolean).map((text) => (text.startsWith("^[") ? { text: text.slice(2, -1), raised: true } : { text }));
  }

  /** Pieces in the colors of what they are; those of an operator with its number stay on one line.
   * @param {any[]} pieces
   * @param {any} row
   * @returns {any[]} */
  written(pieces, row) {
    const { roles } = this.explorer.options;
    const equals = row ? pieces.findIndex((piece) => !piece.name && piece.text.endsWith(" = ")) : -1;
    if (equals > 0 || (equals === 0 && pieces.length > 2)) {
      // A line that is too long breaks before its result.
      const left = [...pieces.slice(0, equals), { ...pieces[equals], text: pieces[equals].text.slice(0, -3) }];
      const right = [{ text: "= " }, ...pieces.slice(equals + 1)];
      return [make("span", { class: "side" }, ...this.written(left, row)), " ", make("span", { class: "side" }, ...this.written(right, row))];
    }
    return pieces.map((piece) => {
      const result = row && piece.bold && row.role !== "position";
      const role = result ? row.role : row && roles[piece.name];
      if (!piece.name && !piece.raised) return piece.text;
      const style = role && (!row || row.role !== "position") ? `color: ${this.colorOf(role)}` : false;
      return make(piece.raised ? "sup" : piece.bold ? "b" : "span", { text: piece.text, style, class: "number" });
    });
  }

  /** The bar of a line, below those of its parts head to tail.
   * @param {any} row
   * @param {(name: string) => number} read
   * @param {number} largest
   * @param {string} said of its scale, beside a bar of a number above zero */
  bars(row, read, largest, said) {
    const bar = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ role, /** @type {string} */ kind) => {
      const share = (/** @type {number} */ value) => (Number.isFinite(value) && largest ? Math.max(-1, Math.min(1, value / largest)) : 0);
      const [a, b] = [share(from), share(to)].sort((x, y) => x - y);
      const color = this.colorOf(role);
      const fill = kind === "outline" ? `box-shadow: inset 0 0 0 1.5px ${color}; background: color-mix(in srgb, ${color} 16%, transparent)` : `background: color-mix(in srgb, ${color} ${100 * this.strengthOf(role)}%, transparent)`;
      return make("div", { class: `bar-line ${kind}` }, make("i", { style: `left: ${50 + 50 * a}%; width: ${50 * (b - a)}%; ${fill}` }));
    };
    let sum = 0;
    const parts = partsOf(row).map((/** @type {string[]} */ [name, role]) => bar(sum, (sum += read(name)), role, "part"));
    return make("div", { class: "bars", "aria-hidden": "true" }, said ? make("span", { class: "own-scale", text: said }) : null, ...parts, bar(0, read(row.result), row.role, row.role === "scale" ? "outline" : "whole"));
  }
}
