// The tall plot beside the map: curves over the steps, or the plane of all runs. A vertical line is the
// step that the map shows; it can be dragged.

import { clearCanvas, drawMarker, drawText, fitCanvas, linearTicks } from "../../browser/static/drawing.js";
import { make } from "../../browser/static/elements.js";
import { seriesOf } from "./engine.js";
import { hatching } from "./field.js";
import { barHeights, bestOf } from "./notches.js";
import { fillSelect, numberText } from "./numbers.js";

/** @type {[string, string][]} */
const TABS = [["loss", "loss"], ["memory", "memory"], ["length", "step length"], ["angle", "angle"], ["plane", "all runs"], ["beside", "more"]];

export class Plot {
  /** @param {any} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.tabs = TABS.map(([key, text], i) => make("button", { type: "button", class: "tab", role: "tab", text, title: `${text} (${i + 1})`, on: { click: () => explorer.set({ tab: key }) } }));
    this.list = make("div", { class: "tabs", role: "tablist", "aria-label": "plots" }, ...this.tabs);
    this.about = make("span", { class: "about" });
    this.choice = make("select", { "aria-label": "quantity", on: { change: () => explorer.set({ slot: this.choice.value }) } });
    this.axis = make("button", { type: "button", class: "small-button", on: { click: () => explorer.set({ coordinate: 1 - explorer.coordinate }) } });
    this.head = make("div", { class: "plot-head" }, this.about, this.choice, this.axis);
    this.base = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.top = make("canvas", { class: "layer", tabindex: "0", role: "slider", "aria-valuemin": "0" });
    this.area = make("div", { class: "plot-area" }, this.base, this.top);
    this.element = make("div", { class: "plot" }, this.list, this.head, this.area);
    /** @type {any[]} */
    this.curves = [];
    let held = false;
    this.top.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0) return;
      this.top.focus({ preventScroll: true });
      event.preventDefault();
      if (this.what === "plane") {
        const cell = this.cellAt(event);
        if (cell) explorer.chooseCell(this.plane.rates[cell.i], this.plane.second && this.plane.seconds[cell.j]);
        return;
      }
      held = true;
      this.top.setPointerCapture(event.pointerId);
      this.scrub(event);
    });
    this.top.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (held) this.scrub(event);
      else if (this.what === "plane") this.hoverCell(this.cellAt(event));
    });
    this.top.addEventListener("pointerleave", () => this.hoverCell(null));
    for (const name of ["pointerup", "pointercancel"]) this.top.addEventListener(name, () => (held = false));
  }

  get what() {
    return this.explorer.state.tab;
  }

  /** @param {PointerEvent} event */
  scrub(event) {
    const bounds = this.top.getBoundingClientRect();
    const share = (event.clientX - bounds.left - this.left) / (this.width - this.left - this.right);
    this.explorer.go(Math.round(share * this.explorer.state.steps));
  }

  /** @param {number} width
   * @param {number} height of everything */
  resize(width, height) {
    this.element.style.height = `${height}px`;
    this.width = width;
    this.height = Math.max(120, height - this.list.offsetHeight - this.head.offsetHeight);
    this.area.style.height = `${this.height}px`;
    const size = this.explorer.state.text_size;
    this.left = Math.round(50 * size);
    this.right = 14;
    this.upper = 8;
    this.lower = Math.round(26 * size);
  }

  /** The name of the rows that the tab shows of an optimizer.
   * @param {any} one */
  rowsOf(one) {
    if (this.what !== "memory") return this.what;
    const { state } = this.explorer;
    const slots = Object.keys(one.run.slots).filter((name) => !["slow", "average"].includes(name));
    const wanted = state.slot.replace(/^(new|term)\./, "");
    return [wanted, ...slots].find((name) => name && (name in one.run.slots || name in one.run.terms || ["gradient", "update", "point"].includes(name))) || "";
  }

  update() {
    const { explorer } = this;
    const { state } = explorer;
    TABS.forEach(([key], i) => {
      this.tabs[i].setAttribute("aria-selected", String(key === this.what));
      this.tabs[i].hidden = explorer.network && ["angle", "plane", "beside"].includes(key);
    });
    const memory = this.what === "memory", beside = this.what === "beside";
    this.head.hidden = this.area.hidden = beside;
    explorer.beside.element.hidden = !beside;
    this.choice.hidden = !memory;
    this.axis.hidden = !memory || explorer.axes.length < 2;
    this.axis.textContent = `along ${explorer.axes[explorer.coordinate]}`;
    this.axis.title = "the other coordinate";
    if (memory) {
      const names = new Set();
      for (const { run } of explorer.shown) if (run) for (const name of [...Object.keys(run.slots), ...Object.keys(run.terms)]) names.add(name);
      /** @type {[string, string][]} */
      const choices = [["", "first memory of each"], ...[...names].map((name) => /** @type {[string, string]} */ ([name, name])), ["gradient", "gradient"], ["update", "update"]];
      if (!explorer.network) choices.push(["point", "position"]);
      const wanted = state.slot.replace(/^(new|term)\./, "");
      fillSelect(this.choice, choices, choices.some(([value]) => value === wanted) ? wanted : "");
    }
  }

  // Curves ---------------------------------------------------------------------------------------

  prepare() {
    const { explorer } = this;
    this.curves = [];
    for (const one of explorer.inOrder()) {
      if (!one.run) continue;
      const what = this.rowsOf(one);
      const values = what && seriesOf(one.run, what, explorer.coordinate);
      if (values) this.curves.push({ one, values, what });
    }
    /** @type {number[]} */
    const all = [];
    let wild = 0;
    for (const { one, values } of this.curves) {
      for (let k = 0; k < values.length; k++) {
        if (!Number.isFinite(values[k])) continue;
        if (one.run.stopped < 0 || all.length === 0 || k === 0) all.push(values[k]);
        else wild = Math.max(wild, Math.abs(values[k]));
      }
    }
    this.chooseScale(all, wild);
  }

  /** @param {number[]} all
   * @param {number} wild the largest value of runs that diverge */
  chooseScale(all, wild) {
    const { explorer, what } = this;
    this.shift = what === "loss" && explorer.floor.known && !explorer.network ? explorer.floor.floor : 0;
    const shifted = all.map((value) => value - this.shift);
    const positive = shifted.filter((value) => value > 0);
    const log = what === "length" || (what === "loss" && (this.shift !== 0 || explorer.floor.known || explorer.network || positive.length === shifted.length));
    if (what === "angle") {
      this.scale = "angle";
      [this.low, this.high] = [0, 180];
    } else if (log && positive.length) {
      this.scale = "log";
      let top = Math.log10(positive.reduce((a, b) => Math.max(a, b)));
      const bottom = Math.log10(positive.reduce((a, b) => Math.min(a, b)));
      if (Math.log10(wild) > top) top += 1;
      this.low = Math.max(bottom, top - 16);
      const room = Math.max(0.15, 0.06 * (top - this.low));
      this.low -= room;
      this.high = top + room;
    } else {
      const sizes = all.map(Math.abs).filter((v) => v > 0).sort((a, b) => a - b);
      const largest = sizes.length ? sizes[sizes.length - 1] : 1;
      const middle = sizes.length ? sizes[Math.floor(sizes.length / 2)] : 1;
      this.scale = largest > 60 * middle ? "symlog" : "linear";
      this.threshold = 10 ** Math.floor(Math.log10(middle || 1));
      const ends = [0, ...all].map((v) => this.bend(v));
      this.low = ends.reduce((a, b) => Math.min(a, b));
      this.high = ends.reduce((a, b) => Math.max(a, b));
      const room = 0.08 * (this.high - this.low) || 1;
      this.low -= this.low < 0 ? room : 0;
      this.high += this.high > 0 ? room : 0;
    }
  }

  /** @param {number} value */
  bend(value) {
    if (this.scale === "log") return value > this.shift ? Math.log10(value - this.shift) : -400;
    if (this.scale === "symlog") return Math.sign(value) * Math.log10(1 + Math.abs(value) / this.threshold);
    return value;
  }

  /** @param {number} step */
  x(step) {
    return this.left + (step / this.explorer.state.steps) * (this.width - this.left - this.right);
  }

  /** @param {number} value */
  y(value) {
    const bottom = this.height - this.lower;
    const share = (this.bend(value) - this.low) / (this.high - this.low);
    return bottom - Math.max(-3, Math.min(3, share)) * (bottom - this.upper);
  }

  /** @returns {number[]} */
  ticks() {
    if (this.scale === "angle") return [0, 45, 90, 135, 180];
    const most = Math.max(2, Math.floor(this.height / 56));
    if (this.scale === "log") {
      const stride = Math.max(1, Math.ceil((this.high - this.low) / most));
      const found = [];
      for (let k = Math.ceil(this.low); k <= this.high; k++) if (k % stride === 0) found.push(this.shift + 10 ** k);
      if (found.length > 1) return found;
      return linearTicks(10 ** this.low, 10 ** this.high, 4).filter((tick) => tick > 0).map((tick) => tick + this.shift);
    }
    if (this.scale === "symlog") {
      const found = [0];
      const far = Math.max(Math.abs(this.low), Math.abs(this.high));
      const stride = Math.max(1, Math.ceil(far / 3));
      for (let k = stride; k <= far; k += stride) {
        for (const sign of [1, -1]) {
          const tick = sign * this.threshold * 10 ** k;
          if (this.bend(tick) >= this.low && this.bend(tick) <= this.high) found.push(tick);
        }
      }
      return found;
    }
    return linearTicks(this.low, this.high, most);
  }

  drawBase() {
    const { explorer } = this;
    const { palette, state } = explorer;
    this.update();
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    if (this.what === "beside") {
      explorer.beside.draw();
      return;
    }
    if (this.what === "plane") {
      this.drawPlane(pen);
      return;
    }
    this.prepare();
    const size = 13 * state.text_size;
    pen.lineWidth = 1;
    for (const tick of this.ticks()) {
      const py = Math.round(this.y(tick)) + 0.5;
      pen.strokeStyle = tick === 0 && this.scale !== "log" ? palette.frame : palette.rule;
      pen.beginPath();
      pen.moveTo(this.left, py);
      pen.lineTo(this.width - this.right, py);
      pen.stroke();
      drawText(pen, numberText(this.scale === "log" ? tick - this.shift : tick), this.left - 7, py, { color: palette.quiet, size, align: "right" });
    }
    for (const tick of new Set([...linearTicks(0, state.steps, Math.max(2, this.width / 110)), state.steps])) {
      const right = tick === state.steps;
      if (!right && this.x(tick) > this.width - 64 * state.text_size) continue;
      drawText(pen, tick === 0 ? "step 0" : numberText(tick, 6), tick === 0 ? this.left : right ? this.width - 4 : this.x(tick), this.height - size * 0.62, { color: palette.quiet, size, align: tick === 0 ? "left" : right ? "right" : "center" });
    }
    const many = this.curves.length > 8;
    for (const { one, values } of this.curves) {
      const path = new Path2D();
      let open = false;
      for (let k = 0; k < values.length; k++) {
        if (Number.isNaN(values[k])) open = false;
        else if (open) path.lineTo(this.x(k), this.y(values[k]));
        else {
          path.moveTo(this.x(k), this.y(values[k]));
          open = true;
        }
      }
      one.curve = path;
      const faint = many && one.entry.name !== state.selected;
      this.stroke(pen, one, 0, state.steps, faint ? 0.15 : 0.4, 1.6, false);
    }
    if (!this.curves.some(({ values }) => values.some(Number.isFinite))) {
      drawText(pen, "nothing to show: no optimizer here has it", (this.width + this.left) / 2, this.height / 2, { color: palette.quiet, size, align: "center" });
    }
    this.describe();
  }

  /** @param {CanvasRenderingContext2D} pen
   * @param {any} one
   * @param {number} from
   * @param {number} to
   * @param {number} alpha
   * @param {number} width
   * @param {boolean} dashed */
  stroke(pen, one, from, to, alpha, width, dashed) {
    pen.save();
    pen.beginPath();
    pen.rect(this.x(from) - 1, 0, this.x(to) - this.x(from) + 1, this.height - this.lower + 2);
    pen.clip();
    pen.strokeStyle = one.color;
    pen.globalAlpha = alpha;
    pen.lineWidth = width;
    pen.setLineDash(dashed ? one.style.dash : []);
    pen.stroke(one.curve);
    pen.restore();
  }

  describe() {
    const { explorer, what } = this;
    const scale = { log: "", symlog: `, symmetric log beyond ±${numberText(this.threshold)}`, linear: "", angle: "" }[this.scale];
    let text = "";
    if (what === "loss") text = explorer.network ? "loss of the mini-batch" : this.shift ? `loss above the minimum ${numberText(this.shift)}` : "loss";
    else if (what === "length") text = explorer.network ? "norm of the update" : "length of the update";
    else if (what === "angle") text = "degrees between update and −gradient";
    else text = [...new Set(this.curves.map((curve) => `${curve.one.entry.name}: ${curve.what}`))].slice(0, 3).join(", ");
    this.about.textContent = what === "memory" ? "" : text + (this.scale === "log" && what === "loss" ? ", log scale" : "") + scale;
    this.area.title = what === "memory" ? text + scale : "";
  }

  drawTop() {
    const { explorer } = this;
    if (this.what === "beside") {
      explorer.beside.drawCursor();
      return;
    }
    const { palette, state } = explorer;
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    this.top.setAttribute("aria-valuemax", String(state.steps));
    this.top.setAttribute("aria-valuenow", String(state.step));
    if (this.what === "plane") {
      this.drawCells(pen);
      return;
    }
    const px = Math.round(this.x(state.step)) + 0.5;
    const many = this.curves.length > 8;
    for (const { one } of this.curves) {
      const faint = many && one.entry.name !== state.selected;
      this.stroke(pen, one, 0, state.step, faint ? 0.3 : 1, faint ? 1.4 : 2.6, true);
    }
    pen.strokeStyle = palette.ink;
    pen.lineWidth = 1.6;
    pen.beginPath();
    pen.moveTo(px, 2);
    pen.lineTo(px, this.height - this.lower);
    pen.stroke();
    const labels = [];
    for (const { one, values } of this.curves) {
      const value = values[Math.min(state.step, one.run.last)];
      if (!Number.isFinite(value) || (many && one.entry.name !== state.selected)) continue;
      const py = this.y(value);
      if (py < -4 || py > this.height - this.lower + 6) continue;
      drawMarker(pen, one.style.marker, px, py, 13, one.color, palette.paper);
      labels.push({ one, py, wanted: py, text: `${one.entry.name} ${numberText(value)}` });
    }
    this.drawLabels(pen, labels, px);
    const chosen = this.curves.find(({ one }) => one.entry.name === state.selected);
    this.top.setAttribute("aria-label", `${this.about.textContent || "memory"}, over the steps`);
    this.top.setAttribute("aria-valuetext", `step ${state.step}: ${state.selected} ${chosen ? numberText(chosen.values[state.step]) : "not there"}`);
  }

  /** Labels beside the cursor, apart from each other and from the curves where there is room.
   * @param {CanvasRenderingContext2D} pen
   * @param {any[]} labels
   * @param {number} px */
  drawLabels(pen, labels, px) {
    const { palette, state } = this.explorer;
    const size = 15 * state.text_size, gap = size * 1.25;
    pen.font = `bold ${size}px ${getComputedStyle(this.element).fontFamily}`;
    const widest = Math.max(0, ...labels.map(({ text }) => pen.measureText(text).width));
    const right = px + 14 + widest < this.width - 2;
    labels.sort((a, b) => a.py - b.py);
    const low = this.upper + size * 0.6, high = this.height - this.lower - size * 0.6;
    labels.forEach((label, i) => {
      label.py = Math.max(low + i * gap, label.py + (labels.length === 1 || i ? 0 : 0) - (i < labels.length / 2 ? 11 : -11));
      if (i) label.py = Math.max(label.py, labels[i - 1].py + gap);
    });
    for (let i = labels.length - 1; i >= 0; i--) {
      const most = i === labels.length - 1 ? high : labels[i + 1].py - gap;
      labels[i].py = Math.min(labels[i].py, most);
    }
    for (const { one, py, text } of labels) {
      drawText(pen, text, right ? px + 13 : px - 13, py, { color: one.color, halo: palette.paper, size, weight: "bold", align: right ? "left" : "right" });
    }
  }

  // The plane of all runs --------------------------------------------------------------------------

  /** @param {CanvasRenderingContext2D} pen */
  drawPlane(pen) {
    const { explorer } = this;
    const { palette, state, engine } = explorer;
    const chosen = explorer.selected, { entry } = chosen;
    const size = 13 * state.text_size;
    const rates = explorer.ladder(entry), second = explorer.second(entry);
    const seconds = second ? explorer.secondNotches(entry) : [0];
    const finals = seconds.map((/** @type {number} */ value) => engine.finals(state, second ? { ...entry, settings: { ...entry.settings, [second]: value } } : entry, 0, "learning_rate", rates));
    const flat = finals.flat();
    const heights = barHeights(flat, explorer.floor.floor, explorer.startLoss), best = bestOf(flat);
    const left = Math.round(46 * state.text_size), top = size * 1.6, bottom = this.height - size * 3.9;
    const w = (this.width - left - 4) / rates.length, h = (bottom - top) / seconds.length;
    this.plane = { rates, second, seconds, finals, left, top, bottom, w, h, best };
    const hatch = hatching(pen, palette.frame, 8);
    const ramp = palette.ramp(chosen.color);
    finals.forEach((/** @type {any[]} */ row, /** @type {number} */ j) => row.forEach((loss, i) => {
      const x = left + i * w, y = bottom - (j + 1) * h;
      pen.fillStyle = loss === undefined ? palette.paper : loss === null ? hatch : ramp(1 - (heights[j * rates.length + i] - 0.12) / 0.88);
      pen.fillRect(x + 0.5, y + 0.5, w - 1, h - 1);
    }));
    const tick = { color: palette.quiet, size };
    seconds.forEach((/** @type {number} */ value, /** @type {number} */ j) => {
      const here = second && value === entry.settings[second];
      if (second) drawText(pen, numberText(value, 6), left - 7, bottom - (j + 0.5) * h, { ...tick, align: "right", weight: here ? "bold" : "", color: here ? palette.ink : palette.quiet });
    });
    if (second) drawText(pen, second, 0, size * 0.7, tick);
    for (const i of [0, rates.length - 1]) drawText(pen, numberText(rates[i], 6), left + (i + 0.5) * w, bottom + size, { ...tick, align: i ? "right" : "center" });
    const at = rates.indexOf(chosen.rate);
    if (at > 1 && at < rates.length - 3) drawText(pen, numberText(chosen.rate, 6), left + (at + 0.5) * w, bottom + size, { ...tick, color: palette.ink, weight: "bold", align: "center" });
    drawText(pen, "rate", left + (rates.length - 2.6) * w, bottom + size, { ...tick, align: "center" });
    this.drawLegend(pen, flat, ramp, left, size);
    this.drawLimit(pen, palette, size);
    this.about.textContent = `${entry.name}: loss after ${state.steps} steps; click a cell to run it`;
    if (flat.every((/** @type {any} */ loss) => loss === undefined)) drawText(pen, "this needs runs that the kernel makes", this.width / 2, (top + bottom) / 2, { ...tick, align: "center" });
  }

  /** @param {CanvasRenderingContext2D} pen
   * @param {(number | null | undefined)[]} flat
   * @param {(share: number) => string} ramp
   * @param {number} left
   * @param {number} size */
  drawLegend(pen, flat, ramp, left, size) {
    const { palette } = this.explorer;
    const known = /** @type {number[]} */ (flat.filter((loss) => loss !== null && loss !== undefined));
    if (!known.length) return;
    const y = this.height - size * 1.1, x = left + 92 * (size / 13), wide = Math.min(150, this.width * 0.36);
    const color = { color: palette.quiet, size };
    const worst = Math.max(...known), start = this.explorer.startLoss;
    drawText(pen, worst > start ? `loss ≥ ${numberText(start, 2)}` : `loss ${numberText(worst, 2)}`, x - 8, y, { ...color, align: "right" });
    for (let i = 0; i < 48; i++) {
      pen.fillStyle = ramp(i / 47);
      pen.fillRect(x + (i * wide) / 48, y - 8, wide / 48 + 0.7, 15);
    }
    drawText(pen, numberText(Math.min(...known), 2), x + wide + 8, y, color);
  }

  /** The exact limit of stability of gradient descent with momentum on a quadratic.
   * @param {CanvasRenderingContext2D} pen
   * @param {Record<string, string>} palette
   * @param {number} size */
  drawLimit(pen, palette, size) {
    const { explorer, plane } = this;
    const { entry } = explorer.selected;
    const curvature = explorer.curvature();
    if (!curvature || !["SGD", "Momentum"].includes(entry.kind) || entry.settings.use_nesterov || (entry.around || {}).kind) return;
    /** @param {number} rate */
    const across = (rate) => {
      const { rates, left, w } = plane;
      let i = rates.findIndex((/** @type {number} */ one) => one >= rate);
      if (i <= 0) return i < 0 ? left + rates.length * w : left;
      const share = Math.log(rate / rates[i - 1]) / Math.log(rates[i] / rates[i - 1]);
      return left + (i - 0.5 + share) * w;
    };
    pen.strokeStyle = palette.ink;
    pen.lineWidth = 2.4;
    pen.beginPath();
    const seconds = plane.second ? plane.seconds : [0];
    seconds.forEach((/** @type {number} */ momentum, /** @type {number} */ j) => {
      const x = across((2 * (1 + momentum)) / curvature);
      for (const end of seconds.length > 1 ? [0.5] : [0, 1]) pen.lineTo(x, plane.bottom - (j + end) * plane.h);
    });
    pen.stroke();
    const text = plane.second ? `limit 2 (1 + μ) / ${numberText(curvature)}` : `limit 2 / ${numberText(curvature)}`;
    drawText(pen, text, this.width - 6, plane.bottom - plane.h * 0.5, { color: palette.ink, halo: palette.paper, size, align: "right" });
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawCells(pen) {
    const { plane, explorer } = this;
    if (!plane) return;
    const { palette } = explorer;
    const chosen = explorer.selected;
    const i = plane.rates.indexOf(chosen.rate);
    const j = plane.second ? plane.seconds.indexOf(chosen.entry.settings[plane.second]) : 0;
    const middle = (/** @type {number} */ a, /** @type {number} */ b) => [plane.left + (a + 0.5) * plane.w, plane.bottom - (b + 0.5) * plane.h];
    if (plane.best >= 0) {
      const [x, y] = middle(plane.best % plane.rates.length, Math.floor(plane.best / plane.rates.length));
      drawMarker(pen, "circle", x, y, 11, "rgba(0,0,0,0)", palette.paper, 5);
      drawMarker(pen, "circle", x, y, 11, "rgba(0,0,0,0)", palette.ink, 2.4);
    }
    if (i >= 0 && j >= 0) {
      const [x, y] = middle(i, j);
      pen.lineWidth = 3;
      pen.strokeStyle = palette.ink;
      pen.strokeRect(x - plane.w / 2, y - plane.h / 2, plane.w, plane.h);
      drawMarker(pen, chosen.style.marker, x, y, Math.min(12, plane.h * 0.6), chosen.color, palette.paper, 2);
    }
    if (this.cell) {
      const [x, y] = middle(this.cell.i, this.cell.j);
      pen.lineWidth = 1.6;
      pen.strokeStyle = palette.ink;
      pen.strokeRect(x - plane.w / 2, y - plane.h / 2, plane.w, plane.h);
    }
  }

  /** @param {PointerEvent} event */
  cellAt(event) {
    const { plane } = this;
    if (!plane) return null;
    const bounds = this.top.getBoundingClientRect();
    const i = Math.floor((event.clientX - bounds.left - plane.left) / plane.w);
    const j = Math.floor((plane.bottom - (event.clientY - bounds.top)) / plane.h);
    return i >= 0 && j >= 0 && i < plane.rates.length && j < plane.seconds.length ? { i, j } : null;
  }

  /** @param {{i: number, j: number} | null} cell */
  hoverCell(cell) {
    if (!cell && !this.cell) return;
    if (cell && this.cell && cell.i === this.cell.i && cell.j === this.cell.j) return;
    this.cell = cell;
    const { plane, explorer } = this;
    if (!cell || !plane || this.what !== "plane") explorer.showGhost(null);
    else {
      const { entry } = explorer.selected;
      const loss = plane.finals[cell.j][cell.i];
      const where = `rate ${numberText(plane.rates[cell.i], 6)}${plane.second ? `, ${plane.second} ${numberText(plane.seconds[cell.j], 6)}` : ""}`;
      this.about.textContent = `${where}: ${loss === null ? "diverges" : loss === undefined ? "not known here" : `loss ${numberText(loss)}`}`;
      explorer.showGhost(entry, plane.rates[cell.i], plane.second ? { [plane.second]: plane.seconds[cell.j] } : {});
    }
  }

  /** @param {KeyboardEvent} event
   * @returns {boolean} */
  onKey(event) {
    if (this.what !== "plane" || !this.plane) return false;
    /** @type {Record<string, number[]>} */
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    if (!move) return false;
    const { plane, explorer } = this;
    const i = plane.rates.indexOf(explorer.selected.rate) + move[0];
    const now = plane.second ? plane.seconds.indexOf(explorer.selected.entry.settings[plane.second]) : 0;
    const j = Math.max(0, Math.min(plane.seconds.length - 1, now + move[1]));
    explorer.chooseCell(plane.rates[Math.max(0, Math.min(plane.rates.length - 1, i))], plane.second && plane.seconds[j]);
    return true;
  }
}
