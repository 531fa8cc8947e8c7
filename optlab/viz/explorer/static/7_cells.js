// The numbers at the cursor: rows, step panel, and the text alternative of the canvas.

Object.assign(Controls.prototype, {
  drawSamples() {
    const { explorer } = this;
    for (const { entry, sample } of this.cells.values()) {
      const pen = fitCanvas(sample, 40, 16);
      clearCanvas(pen);
      pen.strokeStyle = explorer.color(entry);
      pen.lineWidth = 2.2;
      pen.setLineDash(entry.style.dash);
      pen.beginPath();
      pen.moveTo(1, 8);
      pen.lineTo(39, 8);
      pen.stroke();
      drawMarker(pen, entry.style.marker, 20, 8, 11, explorer.color(entry), explorer.palette.paper);
    }
  },

  updateCursor() {
    const { explorer } = this;
    const { state, runs } = explorer;
    this.count.textContent = `step ${state.step} / ${runs.steps}`;
    if (Number(this.scrub.value) !== state.step) this.scrub.value = state.step;
    this.scrub.style.setProperty("--share", `${(100 * state.step) / Math.max(1, runs.steps)}%`);
    for (const { entry, rate, loss, middle, row } of this.cells.values()) {
      const index = explorer.rateIndex(entry);
      const custom = explorer.isCustom(entry);
      put(rate, (custom ? "custom " : "") + entry.rateTexts[index]);
      const ended = explorer.hasEnded(entry);
      const value = runs.lossAt(entry, index, state.step);
      put(loss, ended ? "—" : Number.isNaN(value) ? "—" : numberText(value));
      const fate = entry.why[index];
      const told = middle.querySelector(".fate");
      if (told) put(told, fate);
      row.classList.toggle("ended", Boolean(fate));
      if (fate && !told) put(loss, ended ? fate.replace("diverged at ", "diverged,\n") : loss.textContent);
      loss.title = fate;
    }
    if (this.slider) {
      const entry = explorer.selected;
      const index = explorer.rateIndex(entry);
      if (Number(this.slider.value) !== index) this.slider.value = index;
      this.slider.setAttribute("aria-valuetext", `${entry.rateTexts[index]}${entry.why[index] ? ", " + entry.why[index] : ""}`);
      this.slider.style.setProperty("--share", `${(100 * index) / Math.max(1, entry.rates.length - 1)}%`);
    }
    this.updatePanel();
  },

  updatePanel() {
    const { explorer } = this;
    const { state, runs } = explorer;
    const entry = explorer.selected;
    const rate = explorer.rateIndex(entry);
    const coordinate = Math.min(state.coordinate, runs.header.axes.length - 1);
    const axis = runs.header.axes[coordinate];
    this.panelTitle.textContent = "";
    const ended = explorer.hasEnded(entry);
    const head = `What happened in step ${state.step}`;
    const about = runs.network ? `${entry.name}, norms over all parameters` : `${entry.name}, coordinate ${axis}`;
    this.panelTitle.append(`${head} `, make("span", { class: "quiet", text: about }));
    let rows;
    if (state.step === 0) rows = [["", "No step has been taken yet. Press play, or move the cursor."]];
    else if (ended && state.step > entry.stopped[rate]) rows = [["", `Nothing: ${entry.name} ${entry.why[rate]}.`]];
    else if (runs.network) {
      rows = ["gradient", "update", ...entry.slots.map((s) => `new.${s}`), ...entry.terms.map((t) => `term.${t}`)].map((name) => [`‖${name.replace(/^(new|term)\./, "")}‖`, `**${numberText(runs.series(entry, name, rate, 0)[state.step], 4)}**`]);
    } else rows = writtenRows(entry.rule, runs.valuesOf(entry, rate, state.step, coordinate), axis);
    while (this.panelRows.rows.length > rows.length) this.panelRows.deleteRow(-1);
    rows.forEach(([label, text], i) => {
      const row = this.panelRows.rows[i] || this.panelRows.insertRow();
      if (!row.cells.length) row.append(make("th", { scope: "row" }), make("td"));
      put(row.cells[0], label);
      if (row.cells[1].dataset.text !== text) {
        row.cells[1].dataset.text = text;
        putMarked(row.cells[1], text);
      }
    });
  },

  // The same as text and as a table; once the cursor rests, not at every frame.
  updateWords() {
    const { explorer } = this;
    const { state, runs } = explorer;
    const header = ["optimizer", "rate", "loss", "length of the update", "angle to −gradient", ...runs.header.axes];
    const lines = [];
    const said = [];
    for (const entry of runs.optimizers) {
      const rate = explorer.rateIndex(entry);
      const at = (what) => numberText(runs.series(entry, what, rate, 0)[state.step]);
      const point = runs.point(entry, rate, state.step) || [];
      const loss = numberText(runs.lossAt(entry, rate, state.step));
      lines.push([entry.name, entry.rateTexts[rate], entry.why[rate] && explorer.hasEnded(entry) ? entry.why[rate] : loss, at("length"), runs.network ? "" : at("angle"), ...point.map((c) => numberText(c))]);
      said.push(`${entry.name} ${explorer.hasEnded(entry) ? entry.why[rate] : loss}`);
    }
    this.table.textContent = "";
    this.table.append(make("caption", { text: `${runs.header.title}, step ${state.step} of ${runs.steps}` }));
    const head = this.table.insertRow();
    for (const name of header) head.append(make("th", { scope: "col", text: name }));
    for (const line of lines) {
      const row = this.table.insertRow();
      line.forEach((text, i) => row.append(make(i ? "td" : "th", { text })));
    }
    this.live.textContent = `Step ${state.step} of ${runs.steps}. Loss: ${said.join(", ")}.`;
  },
});
