// The cursor layer of the map: paths up to the cursor, markers, arrows, and the start with its moves.

Object.assign(MapPanel.prototype, {
  drawTop() {
    const { explorer } = this;
    const { palette, state } = explorer;
    const pen = fitCanvas(this.top, this.width, this.height);
    clearCanvas(pen);
    const size = 12 * state.text_size;
    const labels = { halo: palette.paper, size, align: "center" };
    const taken = [...(this.marked || [])];
    const order = explorer.drawingOrder();
    for (const entry of order) this.drawPath(pen, entry, 0, state.step, false);
    const start = this.startPlace();
    taken.push([start[0] - 10, start[1] - 10, start[0] + 10, start[1] + 10]);
    const text = explorer.fixed ? "start" : "start (drag, or arrow keys)";
    const spot = placeLabel(pen, text, start[0], start[1], size, this.width, this.height, taken, 12, this.points);
    const at = new Map();
    for (const entry of order) {
      const rate = explorer.rateIndex(entry);
      const place = this.place(entry, rate, explorer.runs.lastStep(entry, rate, state.step));
      if (place && this.inside(place)) {
        at.set(entry.name, place);
        taken.push([place[0] - 8, place[1] - 8, place[0] + 8, place[1] + 8]);
      }
    }
    this.drawArrows(pen, taken, labels);
    for (const entry of order) {
      const place = at.get(entry.name);
      if (!place) continue;
      const chosen = entry.name === state.selected;
      const ended = explorer.hasEnded(entry);
      const color = explorer.color(entry);
      drawMarker(
        pen, entry.style.marker, place[0], place[1], chosen ? 14 : 11,
        ended ? palette.paper : color, ended ? color : palette.paper, ended ? 2 : 1.5,
      );
    }
    drawMarker(pen, "circle", start[0], start[1], 13, palette.paper, palette.ink, 2.2);
    if (document.activeElement === this.top) {
      pen.strokeStyle = palette.ink;
      pen.lineWidth = 1.5;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.arc(start[0], start[1], 12, 0, 2 * Math.PI);
      pen.stroke();
    }
    drawText(pen, text, spot.cx, spot.cy, { ...labels, color: palette.ink });
  },

  // The arrows begin at the start of the step; the longer one is labeled with its magnification.
  drawArrows(pen, taken, labels) {
    const { explorer } = this;
    const { runs, state, palette, land } = explorer;
    const entry = explorer.selected;
    const rate = explorer.rateIndex(entry);
    const step = runs.lastStep(entry, rate, state.step);
    if (land.curve || step < 1) return;
    const from = this.place(entry, rate, step - 1);
    const gradient = runs.rows(entry, "gradient", rate);
    const update = runs.rows(entry, "update", rate);
    const g = [gradient.data[2 * step - 2], gradient.data[2 * step - 1]];
    const u = [update.data[2 * step - 2], update.data[2 * step - 1]];
    if (!from || !this.inside(from)) return;
    const scale = this.width / (this.box[1] - this.box[0]);
    const steep = Math.hypot(...g);
    const reach = Math.min(90, this.width / 8);
    const ends = [];
    if (steep > 0 && Number.isFinite(steep)) {
      const end = [from[0] - (g[0] / steep) * reach, from[1] + (g[1] / steep) * reach];
      ends.push([end, palette.ink, "−gradient (direction only)"]);
    }
    const length = Math.hypot(...u) * scale;
    if (length > 0 && Number.isFinite(length)) {
      const wanted = reach / length;
      const ladder = 10 ** Math.floor(Math.log10(wanted));
      const times = wanted <= 1 ? 1 : [5, 2, 1].find((m) => m * ladder <= wanted) * ladder;
      const end = [from[0] + u[0] * scale * times, from[1] - u[1] * scale * times];
      const long = times > 1 ? `update ×${numberText(times)}` : "update";
      ends.push([this.far(end), explorer.color(entry), long]);
    }
    for (const [end, color] of ends) drawArrow(pen, from[0], from[1], end[0], end[1], color, palette.paper);
    // Labels keep away from both arrows.
    const arrows = ends.flatMap(([end]) => [...between([from, end], 3, 60), end]);
    for (const [end, color, text] of ends) {
      if (!this.inside(end)) continue;
      const spot = placeLabel(pen, text, end[0], end[1], labels.size, this.width, this.height, taken, 8, arrows);
      drawText(pen, text, spot.cx, spot.cy, { ...labels, color });
    }
  },

  startPlace() {
    const { state, land, runs } = this.explorer;
    const wanted = this.wantedStart || state.start || runs.header.start;
    if (!land.curve) return [this.x(wanted[0]), this.y(wanted[1])];
    return this.minimumPlace(wanted);
  },

  onPointer(event, down) {
    const { explorer } = this;
    const bounds = this.top.getBoundingClientRect();
    const px = event.clientX - bounds.left, py = event.clientY - bounds.top;
    const start = this.startPlace();
    const near = Math.hypot(px - start[0], py - start[1]) < 18;
    if (down && !explorer.fixed && event.button === 0) {
      this.top.focus({ preventScroll: true });
      if (!near && event.detail !== 2 && !event.shiftKey) {
        this.pickPath(px, py);
        return;
      }
      this.drag = true;
      this.top.setPointerCapture(event.pointerId);
      event.preventDefault();
    } else if (down) {
      this.pickPath(px, py);
    }
    this.top.style.cursor = explorer.fixed ? "default" : this.drag ? "grabbing" : near ? "grab" : "crosshair";
    if (!this.drag) return;
    const [x0, x1, y0, y1] = this.box;
    const x = x0 + (Math.max(0, Math.min(this.width, px)) / this.width) * (x1 - x0);
    const y = y0 + (1 - Math.max(0, Math.min(this.height, py)) / this.height) * (y1 - y0);
    const digits = Math.max(0, 3 - Math.floor(Math.log10(x1 - x0)));
    const round = (value) => Number(value.toFixed(digits));
    this.moveStart(explorer.land.curve ? [round(x)] : [round(x), round(y)]);
  },

  // A click on a path or marker selects its optimizer; a click elsewhere sets the start there.
  pickPath(px, py) {
    const { explorer } = this;
    let best = null;
    for (const entry of explorer.runs.optimizers) {
      const rate = explorer.rateIndex(entry);
      const last = explorer.runs.lastStep(entry, rate, explorer.state.step);
      for (let k = 0; k <= last; k++) {
        const place = this.place(entry, rate, k);
        if (!place) continue;
        const distance = Math.hypot(place[0] - px, place[1] - py) - (k === last ? 4 : 0);
        if (distance < 9 && (!best || distance < best.distance)) best = { distance, entry };
      }
    }
    if (best) explorer.set({ selected: best.entry.name });
    else if (!explorer.fixed) {
      const [x0, x1, y0, y1] = this.box;
      const digits = Math.max(0, 3 - Math.floor(Math.log10(x1 - x0)));
      const x = Number((x0 + (px / this.width) * (x1 - x0)).toFixed(digits));
      const y = Number((y0 + (1 - py / this.height) * (y1 - y0)).toFixed(digits));
      this.moveStart(explorer.land.curve ? [x] : [x, y]);
    }
  },

  moveStart(start) {
    this.wantedStart = start;
    this.explorer.request("start", start);
    this.explorer.controls.showStart(start);
    this.explorer.later("top");
  },

  endDrag() {
    this.drag = false;
  },

  onKey(event) {
    const { explorer } = this;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!(event.key in arrows) || explorer.fixed) return;
    event.preventDefault();
    event.stopPropagation();
    const [x0, x1, y0, y1] = this.box;
    const fine = event.shiftKey ? 0.1 : 1;
    const unit = 10 ** Math.floor(Math.log10((x1 - x0) / 20)) * fine;
    const now = this.wantedStart || explorer.state.start || explorer.runs.header.start;
    const [right, up] = arrows[event.key];
    const limit = (value, low, high) => Math.max(low, Math.min(high, Number(value.toPrecision(12))));
    const next = [limit(now[0] + right * unit, x0, x1)];
    if (now.length > 1) next.push(limit(now[1] + up * unit, y0, y1));
    this.moveStart(next);
  },
});
