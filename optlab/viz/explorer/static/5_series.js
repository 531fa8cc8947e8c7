// A panel of curves over the steps; all panels and the map share one cursor.

class SeriesPanel {
  constructor(explorer, what) {
    this.explorer = explorer;
    this.what = what;
    this.heading = make("span", { class: "series-title" });
    this.note = make("span", { class: "quiet" });
    this.head = make("div", { class: "series-head" }, this.heading, this.note);
    this.base = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.top = make("canvas", {
      class: "layer", tabindex: "0", role: "slider", "aria-valuemin": "0",
    });
    this.plot = make("div", { class: "plot" }, this.base, this.top);
    this.element = make("div", { class: "series" }, this.head, this.plot);
    if (what === "slot") {
      this.choice = make("select", { "aria-label": "quantity", on: { change: () => explorer.set({ slot: this.choice.value }) } });
      this.axis = make("select", { "aria-label": "coordinate", on: { change: () => explorer.set({ coordinate: Number(this.axis.value) }) } });
      this.head.replaceChildren(this.choice, this.axis, this.note);
    }
    let held = false;
    const move = (event) => {
      const bounds = this.top.getBoundingClientRect();
      const share = (event.clientX - bounds.left - this.left) / (bounds.width - this.left - this.right);
      explorer.go(Math.round(share * explorer.runs.steps));
    };
    this.top.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      held = true;
      this.top.setPointerCapture(event.pointerId);
      move(event);
    });
    this.top.addEventListener("pointermove", (event) => held && move(event));
    for (const name of ["pointerup", "pointercancel"]) this.top.addEventListener(name, () => (held = false));
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.left = Math.round(46 * Math.max(1, this.explorer.state.text_size * 0.95));
    this.right = 12;
    this.plot.style.height = `${height}px`;
  }

  // The values of each optimizer, and the scale that fits all of them.
  prepare() {
    const { explorer } = this;
    const { runs, state } = explorer;
    const what = this.what === "slot" ? explorer.slot : this.what;
    this.curves = [];
    for (const entry of explorer.drawingOrder()) {
      const rate = explorer.rateIndex(entry);
      const values = runs.series(entry, what, rate, state.coordinate);
      if (values) this.curves.push({ entry, values, steady: entry.stopped[rate] < 0 });
    }
    const all = [];
    let wild = 0;
    for (const { values, steady } of this.curves) {
      let first = true;
      for (const value of values) {
        if (!Number.isFinite(value)) continue;
        if (steady || first) all.push(value);
        else wild = Math.max(wild, Math.abs(value));
        first = false;
      }
    }
    this.chooseScale(what, all, wild);
  }

  chooseScale(what, all, wild) {
    const { header } = this.explorer.runs;
    const positive = all.filter((value) => value > 0);
    const log = what === "length" || (what === "loss" && (header.floorKnown || header.network || positive.length === all.length));
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

  bend(value) {
    if (this.scale === "log") return value > 0 ? Math.log10(value) : -400;
    if (this.scale === "symlog") return Math.sign(value) * Math.log10(1 + Math.abs(value) / this.threshold);
    return value;
  }

  x(step) {
    return this.left + (step / this.explorer.runs.steps) * (this.width - this.left - this.right);
  }

  y(value) {
    const bottom = this.height - this.bottom, top = 6;
    const share = (this.bend(value) - this.low) / (this.high - this.low);
    return bottom - Math.max(-3, Math.min(3, share)) * (bottom - top);
  }

  ticks() {
    if (this.scale === "angle") return [0, 90, 180];
    if (this.scale === "log") {
      const stride = Math.max(1, Math.ceil((this.high - this.low) / 4));
      const found = [];
      for (let k = Math.ceil(this.low); k <= this.high; k++) if (k % stride === 0) found.push(10 ** k);
      if (found.length > 1) return found;
      return linearTicks(10 ** this.low, 10 ** this.high, 3).filter((tick) => tick > 0);
    }
    if (this.scale === "symlog") {
      const found = [0];
      const most = Math.max(Math.abs(this.low), Math.abs(this.high));
      const stride = Math.max(1, Math.ceil(most / 2));
      for (let k = stride; k <= most; k += stride) {
        for (const sign of [1, -1]) {
          const tick = sign * this.threshold * 10 ** k;
          if (this.bend(tick) >= this.low && this.bend(tick) <= this.high) found.push(tick);
        }
      }
      return found;
    }
    return linearTicks(this.low, this.high, this.height / 34);
  }

  drawBase(last) {
    const { explorer } = this;
    const { palette, state, runs } = explorer;
    this.bottom = last ? 20 * Math.max(1, state.text_size) : 6;
    this.prepare();
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    const size = 11 * state.text_size;
    pen.lineWidth = 1;
    for (const tick of this.ticks()) {
      const py = Math.round(this.y(tick)) + 0.5;
      pen.strokeStyle = tick === 0 ? palette.frame : palette.rule;
      pen.beginPath();
      pen.moveTo(this.left, py);
      pen.lineTo(this.width - this.right, py);
      pen.stroke();
      drawText(pen, numberText(tick), this.left - 6, py, { color: palette.quiet, size, align: "right" });
    }
    if (last) {
      for (const tick of linearTicks(0, runs.steps, 4)) {
        const align = tick === 0 ? "left" : tick > runs.steps * 0.93 ? "right" : "center";
        const text = tick === 0 ? "step 0" : numberText(tick, 6);
        drawText(pen, text, tick === 0 ? this.left - 18 : this.x(tick), this.height - size * 0.6, { color: palette.quiet, size, align });
      }
    }
    pen.save();
    pen.beginPath();
    pen.rect(this.left - 1, 0, this.width - this.left - this.right + 2, this.height - this.bottom + 2);
    pen.clip();
    for (const { entry, values } of this.curves) {
      const selected = entry.name === state.selected;
      if (this.what === "angle" && !selected) continue;
      pen.strokeStyle = explorer.color(entry);
      pen.setLineDash(selected ? [] : entry.style.dash);
      pen.globalAlpha = selected ? 1 : 0.6;
      pen.lineWidth = selected ? 2.2 : 1.5;
      pen.beginPath();
      let open = false;
      for (let k = 0; k < values.length; k++) {
        if (Number.isNaN(values[k])) open = false;
        else if (open) pen.lineTo(this.x(k), this.y(values[k]));
        else {
          pen.moveTo(this.x(k), this.y(values[k]));
          open = true;
        }
      }
      pen.stroke();
    }
    pen.restore();
    if (!this.curves.some(({ values }) => values.some(Number.isFinite))) {
      const text = "no optimizer here has this quantity";
      drawText(pen, text, (this.width + this.left) / 2, this.height / 2, { color: palette.quiet, size: size * 1.1, align: "center" });
    }
    this.describe();
  }

  describe() {
    const { explorer } = this;
    const { header } = explorer.runs;
    const scale = { log: "log scale", symlog: `symmetric log, linear within ±${numberText(this.threshold || 1)}`, linear: "linear scale" }[this.scale];
    if (this.what === "loss") {
      this.heading.textContent = header.network ? "loss of the mini-batch" : header.base ? `loss above the minimum ${numberText(header.base)}` : "loss";
      this.note.textContent = scale;
    } else if (this.what === "length") {
      this.heading.textContent = header.network ? "norm of the update" : "length of the update";
      this.note.textContent = scale;
    } else if (this.what === "angle") {
      this.heading.textContent = "angle between update and −gradient";
      this.note.textContent = `${explorer.state.selected}, degrees${this.width > 430 * explorer.state.text_size ? "; 0 = steepest descent" : ""}`;
    } else if (this.what === "gradient") {
      this.heading.textContent = "norm of the gradient";
      this.note.textContent = scale;
    } else {
      this.note.textContent = scale;
    }
  }

  drawTop() {
    const { explorer } = this;
    const { palette, state, runs } = explorer;
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    const px = Math.round(this.x(state.step)) + 0.5;
    pen.strokeStyle = palette.ink;
    pen.globalAlpha = 0.65;
    pen.lineWidth = 1.2;
    pen.beginPath();
    pen.moveTo(px, 2);
    pen.lineTo(px, this.height - this.bottom);
    pen.stroke();
    pen.globalAlpha = 1;
    for (const { entry, values } of this.curves || []) {
      const selected = entry.name === state.selected;
      if (this.what === "angle" && !selected) continue;
      const value = values[state.step];
      if (!Number.isFinite(value)) continue;
      const py = this.y(value);
      if (py < 0 || py > this.height - this.bottom + 4) continue;
      drawMarker(pen, entry.style.marker, px, py, selected ? 11 : 8, explorer.color(entry), palette.paper);
    }
    this.top.setAttribute("aria-valuemax", runs.steps);
    this.top.setAttribute("aria-valuenow", state.step);
    const chosen = (this.curves || []).find(({ entry }) => entry.name === state.selected);
    const value = chosen ? numberText(chosen.values[state.step]) : "not there";
    const label = this.what === "slot" ? explorer.slot.replace(/^(new|term)\./, "") : this.heading.textContent;
    this.top.setAttribute("aria-label", `${label}, over the steps`);
    this.top.setAttribute("aria-valuetext", `step ${state.step}: ${state.selected} ${value}`);
  }
}
