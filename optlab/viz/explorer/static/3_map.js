// The map: surface, paths, and the layer of the cursor; for a problem of one variable, its curve.

class MapPanel {
  constructor(explorer) {
    this.explorer = explorer;
    this.base = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.top = make("canvas", { class: "layer", tabindex: "0", role: "img" });
    this.ground = make("canvas", { class: "layer", "aria-hidden": "true" });
    this.element = make("div", { class: "map" }, this.ground, this.base, this.top);
    this.landKey = "";
    this.drag = false;
    const start = (event) => this.onPointer(event, true);
    this.top.addEventListener("pointerdown", start);
    this.top.addEventListener("pointermove", (event) => this.onPointer(event, false));
    this.top.addEventListener("pointerup", () => this.endDrag());
    this.top.addEventListener("pointercancel", () => this.endDrag());
    this.top.addEventListener("keydown", (event) => this.onKey(event));
    this.top.addEventListener("focus", () => explorer.later("top"));
    this.top.addEventListener("blur", () => explorer.later("top"));
  }

  get box() {
    return this.explorer.land.box;
  }

  x(value) {
    return ((value - this.box[0]) / (this.box[1] - this.box[0])) * this.width;
  }

  y(value) {
    return this.height - ((value - this.box[2]) / (this.box[3] - this.box[2])) * this.height;
  }

  // The position of a point in pixels. A point that is very far away keeps its direction.
  place(entry, rate, step) {
    const { runs, land } = this.explorer;
    const point = runs.point(entry, rate, step);
    if (!point) return null;
    const loss = land.curve ? runs.lossAt(entry, rate, step) : point[1];
    return this.far([this.x(point[0]), this.y(loss)]);
  }

  far([px, py]) {
    if (Number.isNaN(px) || Number.isNaN(py)) return null;
    const dx = px - this.width / 2, dy = py - this.height / 2;
    const size = Math.max(Math.abs(dx), Math.abs(dy));
    if (size < 1e5) return [px, py];
    const scale = Number.isFinite(size) ? 1e5 / size : 0;
    return [this.width / 2 + dx * scale, this.height / 2 + dy * scale];
  }

  inside([px, py]) {
    return px >= 0 && py >= 0 && px <= this.width && py <= this.height;
  }

  resize(width) {
    if (width !== this.width) this.landKey = "";
    this.width = width;
    this.height = Math.round(width * (this.explorer.land.curve ? 0.62 : 518 / 690));
    this.element.style.height = `${this.height}px`;
  }

  drawBase() {
    const { explorer } = this;
    const pen = fitCanvas(this.base, this.width, this.height);
    clearCanvas(pen);
    const key = `${explorer.landSerial}|${explorer.theme}|${this.base.width}|${explorer.state.text_size}`;
    if (this.landKey !== key) {
      const land = fitCanvas(this.ground, this.width, this.height);
      clearCanvas(land);
      if (explorer.land.curve) this.drawCurve(land);
      else this.drawSurface(land);
      this.landKey = key;
    }
    for (const entry of explorer.drawingOrder()) this.drawPath(pen, entry, 0, explorer.runs.steps, true);
    this.drawMinima(pen);
  }

  drawSurface(pen) {
    const { land, landNumbers, palette, theme } = this.explorer;
    const [rows, columns] = land.grid;
    const colors = land.colors[theme].map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
    const paper = [1, 3, 5].map((i) => parseInt(palette.paper.slice(i, i + 2), 16));
    const w = pen.canvas.width, h = pen.canvas.height;
    const image = pen.createImageData(w, h);
    const grid = landNumbers;
    for (let j = 0; j < h; j++) {
      const v = (1 - j / (h - 1)) * (rows - 1);
      const r = Math.min(rows - 2, Math.floor(v)), b = v - r;
      for (let i = 0; i < w; i++) {
        const u = (i / (w - 1)) * (columns - 1);
        const c = Math.min(columns - 2, Math.floor(u)), a = u - c;
        const at = r * columns + c;
        const z00 = grid[at], z01 = grid[at + 1], z10 = grid[at + columns], z11 = grid[at + columns + 1];
        const blank = z00 === 65535 || z01 === 65535 || z10 === 65535 || z11 === 65535;
        const z = ((z00 * (1 - a) + z01 * a) * (1 - b) + (z10 * (1 - a) + z11 * a) * b) / 65000;
        const color = blank ? paper : colors[Math.min(land.bands - 1, Math.floor(z * land.bands))];
        const place = 4 * (j * w + i);
        image.data[place] = color[0];
        image.data[place + 1] = color[1];
        image.data[place + 2] = color[2];
        image.data[place + 3] = 255;
      }
    }
    pen.putImageData(image, 0, 0);
    let at = rows * columns;
    pen.strokeStyle = palette.contour;
    land.counts.forEach((count, line) => {
      pen.globalAlpha = land.bold[line] ? 0.9 : 0.45;
      pen.lineWidth = land.bold[line] ? 0.9 : 0.6;
      pen.beginPath();
      for (let i = 0; i < count; i++, at += 2) {
        pen.lineTo((grid[at] / 65535) * this.width, (1 - grid[at + 1] / 65535) * this.height);
      }
      pen.stroke();
    });
    pen.globalAlpha = 1;
    const size = 10.5 * this.explorer.state.text_size;
    for (const [x, y, text, angle] of land.labels) {
      pen.save();
      pen.translate(this.x(x), this.y(y));
      pen.rotate((-angle * Math.PI) / 180);
      drawText(pen, text, 0, 0, { color: palette.quiet, halo: palette.paper, size, align: "center" });
      pen.restore();
    }
    this.drawAxes(pen);
  }

  drawCurve(pen) {
    const { land, palette } = this.explorer;
    const [low, high] = this.box.slice(2);
    const size = 11 * this.explorer.state.text_size;
    pen.strokeStyle = palette.rule;
    pen.lineWidth = 1;
    for (const tick of linearTicks(low, high, 6)) {
      pen.strokeStyle = tick === 0 ? palette.frame : palette.rule;
      pen.beginPath();
      pen.moveTo(0, this.y(tick));
      pen.lineTo(this.width, this.y(tick));
      pen.stroke();
    }
    pen.strokeStyle = palette.quiet;
    pen.lineWidth = 2.5;
    pen.beginPath();
    let open = false;
    for (const [x, y] of land.values) {
      if (y === null) open = false;
      else if (open) pen.lineTo(this.x(x), this.y(y));
      else {
        pen.moveTo(this.x(x), this.y(y));
        open = true;
      }
    }
    pen.stroke();
    this.drawAxes(pen);
    drawText(pen, "loss", 8, 8 + size / 2, { color: palette.quiet, halo: palette.paper, size, weight: "bold" });
  }

  drawAxes(pen) {
    const { palette, state, runs, land } = this.explorer;
    const size = 11 * state.text_size;
    const style = { color: palette.quiet, halo: palette.paper, size };
    const across = linearTicks(this.box[0], this.box[1], this.width / 95);
    across.forEach((tick, i) => {
      const px = this.x(tick);
      if (px > 34 && px < this.width - 20) {
        const name = i === across.length - 1 || this.x(across[i + 1]) >= this.width - 20 ? "x = " : "";
        drawText(pen, name + numberText(tick), px, this.height - size, { ...style, align: "center" });
      }
    });
    const up = linearTicks(this.box[2], this.box[3], this.height / 80);
    up.forEach((tick, i) => {
      const py = this.y(tick);
      if (py > size * 2 && py < this.height - size * 2.4) {
        const name = !land.curve && (i === up.length - 1 || this.y(up[i + 1]) <= size * 2) ? "y = " : "";
        drawText(pen, name + numberText(tick), 8, py, style);
      }
    });
    this.axes = runs.header.axes;
  }

  minimumPlace(minimum) {
    const { land, runs } = this.explorer;
    if (!land.curve) return [this.x(minimum[0]), this.y(minimum[1])];
    let nearest = null;
    for (const [x, y] of land.values) {
      if (y !== null && (!nearest || Math.abs(x - minimum[0]) < Math.abs(nearest[0] - minimum[0]))) nearest = [x, y];
    }
    return [this.x(minimum[0]), this.y(nearest ? nearest[1] : runs.header.base)];
  }

  drawMinima(pen) {
    const { land, palette, state } = this.explorer;
    this.marked = [];
    const points = [];
    for (const entry of this.explorer.runs.optimizers) {
      const rate = this.explorer.rateIndex(entry);
      const end = this.explorer.runs.lastStep(entry, rate, this.explorer.runs.steps);
      const places = [];
      for (let k = 0; k <= end; k++) places.push(this.place(entry, rate, k));
      points.push(...between(places));
    }
    this.points = points;
    for (const minimum of land.minima) {
      const place = this.minimumPlace(minimum);
      if (!this.inside(place)) continue;
      drawMarker(pen, "star", place[0], place[1], 15, palette.ink, palette.paper, 1.2);
      const text = `minimum (${minimum.map((c) => numberText(c)).join(", ")})`;
      this.marked.push([place[0] - 10, place[1] - 10, place[0] + 10, place[1] + 10]);
      const size = 12 * state.text_size;
      const spot = placeLabel(pen, text, place[0], place[1], size, this.width, this.height, this.marked, 12, points);
      drawText(pen, text, spot.cx, spot.cy, { color: palette.ink, halo: palette.paper, size, align: "center" });
    }
  }

  // A path between two steps; `ahead`: the part after the cursor, thin and pale.
  drawPath(pen, entry, first, last, ahead) {
    const { explorer } = this;
    const selected = entry.name === explorer.state.selected;
    const rate = explorer.rateIndex(entry);
    const end = explorer.runs.lastStep(entry, rate, last);
    const places = [];
    for (let k = first; k <= end; k++) {
      // The path includes the weights before LookAhead pulled them back.
      const fast = k > first && this.met(entry, rate, k) && this.placeOf(entry, "term.fast", rate, k);
      if (fast) places.push(fast);
      places.push(this.place(entry, rate, k));
    }
    const trace = (along = places) => {
      pen.beginPath();
      let open = false;
      for (const place of along) {
        if (!place) open = false;
        else if (open) pen.lineTo(place[0], place[1]);
        else {
          pen.moveTo(place[0], place[1]);
          open = true;
        }
      }
    };
    pen.save();
    if (!ahead && selected) {
      pen.strokeStyle = explorer.palette.paper;
      pen.globalAlpha = 0.7;
      pen.lineWidth = 5;
      trace();
      pen.stroke();
    }
    pen.strokeStyle = explorer.color(entry);
    pen.setLineDash(selected ? [] : entry.style.dash);
    pen.globalAlpha = ahead ? 0.3 : selected ? 1 : 0.75;
    pen.lineWidth = ahead ? 1.2 : selected ? 2.4 : 1.8;
    trace();
    pen.stroke();
    if (!ahead) this.drawFollower(pen, entry, rate, end, selected, trace);
    if (selected && !ahead) {
      pen.fillStyle = explorer.color(entry);
      let before = null;
      for (const place of places) {
        if (place && (!before || Math.hypot(place[0] - before[0], place[1] - before[1]) > 5)) {
          pen.beginPath();
          pen.arc(place[0], place[1], 2.6, 0, 2 * Math.PI);
          pen.fill();
          before = place;
        }
      }
    }
    pen.restore();
  }

  // The position of a recorded point of step `step` (from 1); null on a curve, which shows losses.
  placeOf(entry, what, rate, step) {
    const rows = this.explorer.runs.rows(entry, what, rate);
    if (!rows || rows.width < 2) return null;
    const at = (step - 1) * rows.width;
    return this.far([this.x(rows.data[at]), this.y(rows.data[at + 1])]);
  }

  // Whether LookAhead synchronized fast and slow weights in a step.
  met(entry, rate, step) {
    const rows = this.explorer.runs.rows(entry, "term.synchronised", rate);
    return Boolean(rows) && rows.data[(step - 1) * rows.width] > 0;
  }

  // Averaged weights: slow ones, with a diamond at each synchronization, or the average.
  drawFollower(pen, entry, rate, end, selected, trace) {
    const slow = Boolean(entry.arrays["term.slow"]);
    if (!slow && !entry.arrays["term.average"]) return;
    const places = [this.place(entry, rate, 0)];
    for (let k = 1; k <= end; k++) {
      if (!slow) places.push(this.placeOf(entry, "term.average", rate, k));
      else if (this.met(entry, rate, k)) places.push(this.placeOf(entry, "term.slow", rate, k));
    }
    const { palette } = this.explorer;
    pen.setLineDash([]);
    for (const [color, width] of [[palette.paper, selected ? 6 : 5], [this.explorer.color(entry), selected ? 3.6 : 2.8]]) {
      pen.strokeStyle = color;
      pen.lineWidth = width;
      trace(places);
      pen.stroke();
    }
    if (!slow) return;
    let before = null;
    for (const place of places.slice(1)) {
      if (place && this.inside(place) && (!before || Math.hypot(place[0] - before[0], place[1] - before[1]) > 9)) {
        drawMarker(pen, "diamond", place[0], place[1], selected ? 9 : 7, this.explorer.color(entry), palette.paper, 1.2);
        before = place;
      }
    }
  }
}
