// All controls as HTML elements: menus, presets, transport, rows, the step panel, More.

class Controls {
  constructor(explorer) {
    this.explorer = explorer;
    this.problem = make("select", { "aria-label": "problem", on: { change: () => explorer.request("problem", this.problem.value) } });
    this.presets = make("div", { class: "pills", role: "group", "aria-label": "presets" });
    this.mode = make("select", { "aria-label": "race mode", on: { change: () => explorer.setMode(this.mode.value) } });
    this.exports = make("select", { "aria-label": "export", class: "menu", on: { change: () => this.onExport() } });
    fillSelect(this.exports, [["", "Export"], ["html", "HTML page"], ["png", "PNG picture"], ["json", "state as JSON"]], "");
    this.bar = make("div", { class: "bar" }, make("span", { class: "brand", text: "optlab" }), this.problem, this.presets, make("span", { class: "race" }, make("label", { class: "quiet" }, "Race ", this.mode), this.exports));
    this.says = make("p", { class: "says" });
    this.message = make("p", { class: "message", role: "alert", hidden: true });

    this.first = makeButton("❙◀\uFE0E", "first step", () => explorer.go(0), { class: "round" });
    this.back = makeButton("◀\uFE0E", "one step back", () => explorer.go(explorer.state.step - 1), { class: "round small" });
    this.play = makeButton("▶\uFE0E", "play", () => explorer.toggle(), { class: "round main" });
    this.forward = makeButton("▶\uFE0E", "one step forward", () => explorer.go(explorer.state.step + 1), { class: "round small" });
    this.last = makeButton("▶\uFE0E❙", "last step", () => explorer.go(explorer.runs.steps), { class: "round" });
    this.scrub = make("input", { type: "range", min: "0", step: "1", "aria-label": "step", class: "scrub", on: { input: () => explorer.go(Number(this.scrub.value)) } });
    this.count = make("span", { class: "count" });
    this.transport = make("div", { class: "transport" }, this.first, this.back, this.play, this.forward, this.last, this.scrub, this.count);

    const typed = () => this.typedStart();
    this.startBoxes = [0, 1].map((i) => make("input", { type: "number", step: "any", "aria-label": `start ${"xy"[i]}0`, on: { change: typed } }));
    this.startLabels = this.startBoxes.map((box, i) => make("label", {}, ["x₀ ", "y₀ "][i], box));
    this.startRow = make("div", { class: "start" }, make("span", { class: "quiet", text: "start" }), ...this.startLabels, this.hint = make("span", { class: "quiet hint" }));
    this.rows = make("div", { class: "rows", role: "radiogroup", "aria-label": "optimizers" });
    this.panelTitle = make("h4");
    this.panelRows = make("table", { class: "happened" });
    this.panel = make("div", { class: "panel" }, this.panelTitle, this.panelRows);
    this.conditions = make("span", { class: "conditions" });
    this.add = make("select", { "aria-label": "add optimizer", class: "menu", on: { change: () => {
      if (this.add.value) explorer.request("add", this.add.value);
      this.add.value = "";
    } } });
    this.moreButton = make("button", { type: "button", text: "More", class: "link", "aria-expanded": "false", on: { click: () => this.toggleMore() } });
    this.more = make("div", { class: "more", hidden: true });
    this.footer = make("div", { class: "footer" }, this.conditions, make("span", { class: "tools" }, this.add, this.moreButton));
    this.live = make("div", { class: "hidden", "aria-live": "polite" });
    this.table = make("table", { class: "hidden" });
  }

  onExport() {
    const what = this.exports.value;
    this.exports.value = "";
    if (what === "json") download("optlab-explorer.json", "application/json", [JSON.stringify(this.explorer.state)]);
    else if (what) this.explorer.request(what, null);
  }

  typedStart() {
    const { explorer } = this;
    const n = explorer.runs.header.start.length;
    const start = this.startBoxes.slice(0, n).map((box) => (box.value.trim() === "" ? NaN : Number(box.value)));
    if (start.every(Number.isFinite)) {
      explorer.map.wantedStart = start;
      explorer.request("start", start);
    } else explorer.state.start.forEach((value, i) => (this.startBoxes[i].value = value));
  }

  showStart(start) {
    start.forEach((value, i) => {
      if (document.activeElement !== this.startBoxes[i]) this.startBoxes[i].value = value;
    });
  }

  toggleMore() {
    this.more.hidden = !this.more.hidden;
    this.moreButton.setAttribute("aria-expanded", String(!this.more.hidden));
  }

  // After new data, another selection or another mode: everything but the numbers of the cursor.
  update() {
    const { explorer } = this;
    const { state, runs, options, fixed } = explorer;
    const names = options.problems.map(([value, text]) => [value, text]);
    if (!names.some(([value]) => value === state.problem)) names.unshift([state.problem, runs.header.title]);
    fillSelect(this.problem, names, state.problem);
    this.problem.title = (names.find(([value]) => value === state.problem) || ["", ""])[1];
    this.problem.disabled = fixed;
    if (!this.presets.childElementCount && !runs.network) {
      for (const name of Object.keys(options.presets)) {
        this.presets.append(make("button", { type: "button", class: "pill", text: name, on: { click: () => explorer.request("preset", name) } }));
      }
    }
    for (const pill of this.presets.children) {
      pill.setAttribute("aria-pressed", String(pill.textContent === state.preset));
      pill.disabled = fixed;
    }
    this.says.textContent = state.preset ? options.presets[state.preset] : (explorer.land || {}).shows || "";
    this.says.hidden = !this.says.textContent;
    this.scrub.max = runs.steps;
    this.startRow.hidden = runs.network;
    this.startLabels[1].hidden = runs.header.start.length < 2;
    this.startBoxes.forEach((box) => (box.disabled = fixed));
    const plain = explorer.isStatic ? "a new start or problem needs a kernel: ol.explore() in a notebook" : explorer.land ? explorer.land.note : "";
    this.hint.textContent = [this.boldText(), plain].filter(Boolean).join("; ");
    if (!runs.network) this.showStart(state.start || runs.header.start);
    this.buildRows();
    fillSelect(this.add, [["", "+ add optimizer"], ...options.classes.map((name) => [name, name])], "");
    this.add.hidden = fixed;
    this.buildMore();
  }

  // The meaning of the bold lines on the map.
  boldText() {
    const { runs } = this.explorer;
    if (runs.network || runs.header.start.length < 2) return "";
    const kinds = new Set(runs.optimizers.map((entry) => (entry.around || {}).kind).filter(Boolean).map((kind) => (kind === "LookAhead" ? "slow weights" : "averages")));
    return kinds.size ? `bold: ${[...kinds].sort().join(", ")}` : "";
  }

  updateMode() {
    const { explorer } = this;
    const { state, runs } = explorer;
    const modes = [["best", "each at its best rate"], ["equal", "equal rates"]];
    if (state.mode === "custom") modes.push(["custom", "custom rates"]);
    fillSelect(this.mode, runs.network ? [["best", "rates as recorded"]] : modes, runs.network ? "best" : state.mode);
    this.mode.disabled = runs.network;
    this.conditions.textContent = explorer.conditions();
  }

  buildRows() {
    const { explorer } = this;
    const inside = this.rows.contains(document.activeElement) ? document.activeElement : null;
    const focused = inside ? inside.className : "";
    const label = inside && inside.getAttribute("aria-label");
    this.rows.textContent = "";
    this.cells = new Map();
    this.rows.append(make("div", { class: "row head quiet", "aria-hidden": "true" }, make("span", { text: "optimizer" }), make("span"), make("span", { class: "number", text: "rate" }), make("span", { class: "number", text: "loss here" })));
    for (const entry of explorer.runs.optimizers) {
      const chosen = entry.name === explorer.state.selected;
      const sample = make("canvas", { class: "sample", "aria-hidden": "true" });
      const radio = make("button", { type: "button", class: "name", role: "radio", "aria-checked": String(chosen), tabindex: chosen ? "0" : "-1", on: { click: () => explorer.set({ selected: entry.name }), keydown: (event) => this.onRowKey(event) } }, sample, make("span", { text: entry.name }));
      const rate = make("span", { class: "number rate" });
      const loss = make("span", { class: "number loss" });
      const middle = make("span", { class: "middle" });
      const row = make("div", { class: chosen ? "row chosen" : "row", on: { click: (event) => {
        if (!chosen && event.target.tagName !== "BUTTON") explorer.set({ selected: entry.name });
      } } }, radio, middle, rate, loss);
      if (chosen && entry.rates.length > 1) {
        this.slider = make("input", { type: "range", min: "0", max: entry.rates.length - 1, step: "1", class: "slider", "aria-label": `learning rate of ${entry.name}`, on: { input: () => explorer.setRate(Number(this.slider.value)) } });
        middle.append(make("span", { class: "quiet", text: explorer.state.mode === "equal" ? "rate of all" : "rate" }), this.slider);
      } else {
        if (entry.around && entry.around.kind) middle.append(make("span", { class: "quiet", text: `${entry.around.kind} around it` }));
        middle.append(make("span", { class: "quiet fate" }));
      }
      if (!explorer.fixed && explorer.runs.optimizers.length > 1) {
        row.append(make("button", { type: "button", class: "remove", text: "×", "aria-label": `remove ${entry.name}`, title: `remove ${entry.name}`, on: { click: () => explorer.request("remove", entry.name) } }));
      }
      this.cells.set(entry.name, { entry, rate, loss, sample, middle, row });
      this.rows.append(row);
      if (chosen) this.rows.append(this.wrapperLine(entry));
    }
    if (inside) {
      const same = [...this.rows.querySelectorAll("[aria-label]")].find((one) => label && one.getAttribute("aria-label") === label);
      const again = same || (focused && this.rows.querySelector(`.chosen .${focused.split(" ")[0]}`));
      if (again) again.focus({ preventScroll: true });
    }
  }

  // The wrapper of the selected optimizer: LookAhead or an average, with a slider for each setting.
  wrapperLine(entry) {
    const { explorer } = this;
    const around = entry.around || {};
    const known = explorer.options.around || {};
    const line = make("div", { class: "around" });
    if (explorer.runs.network || (explorer.fixed && !around.kind)) return line;
    const choice = make("select", { "aria-label": `around ${entry.name}`, on: { change: () => explorer.request("around", [entry.name, choice.value]) } });
    fillSelect(choice, [["", "nothing"], ...Object.keys(known).map((kind) => [kind, kind])], around.kind || "");
    choice.disabled = explorer.fixed;
    line.append(make("label", { class: "quiet" }, "around it ", choice));
    for (const [name, [low, high, step]] of Object.entries(known[around.kind] || {})) {
      const value = around[name];
      const fits = Math.abs((value - low) / step - Math.round((value - low) / step)) < 1e-9;
      const shown = make("span", { class: "value", text: numberText(value) });
      const box = make("input", { type: "range", min: Math.min(low, value), max: Math.max(high, value), step: fits ? step : "any", value, "aria-label": `${name} of ${entry.name}`, on: {
        input: () => {
          shown.textContent = numberText(Number(box.value));
          fill(box);
        },
        change: () => explorer.request("around", [entry.name, { ...around, [name]: Number(box.value) }]),
      } });
      box.disabled = explorer.fixed;
      fill(box);
      line.append(make("label", { class: "quiet" }, `${settingName(name)} `, box, shown));
    }
    return line;
  }

  onRowKey(event) {
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!down) return;
    event.preventDefault();
    event.stopPropagation();
    this.explorer.selectNext(down);
  }

  buildMore() {
    const { explorer } = this;
    const { state, runs, fixed } = explorer;
    if (this.more.contains(document.activeElement) && document.activeElement.tagName === "INPUT") {
      this.moreWanted = document.activeElement.getAttribute("aria-label");
    }
    this.more.textContent = "";
    const field = (label, value, change, kind = "number") => {
      const box = make("input", { type: kind, step: "any", value, "aria-label": label, on: { change: () => change(kind === "checkbox" ? box.checked : Number(box.value)) } });
      if (kind === "checkbox") box.checked = value;
      this.more.append(make("label", {}, `${label} `, box));
    };
    if (!fixed) {
      for (const [name, value] of Object.entries(explorer.selected.settings)) {
        const kind = typeof value === "boolean" ? "checkbox" : "number";
        field(name, value, (v) => explorer.request("setting", [state.selected, name, v]), kind);
      }
      field("steps", runs.steps, (v) => explorer.request("steps", v));
      field("seed", state.seed, (v) => explorer.request("seed", v));
    }
    const text = make("select", { "aria-label": "text size", on: { change: () => explorer.set({ text_size: Number(text.value) }) } });
    fillSelect(text, [["1", "normal"], ["1.25", "large"], ["1.6", "projector"]], String(state.text_size));
    const theme = make("select", { "aria-label": "theme", on: { change: () => explorer.set({ theme: theme.value }) } });
    fillSelect(theme, [["auto", "auto"], ["light", "light"], ["dark", "dark"]], state.theme);
    this.more.append(make("label", {}, "text ", text), make("label", {}, "theme ", theme));
    if (!fixed) this.more.append(make("button", { type: "button", class: "link", text: "fit the view to the paths", on: { click: () => explorer.request("fit", null) } }));
    if (this.moreWanted) {
      const again = this.more.querySelector(`[aria-label="${this.moreWanted}"]`);
      if (again) again.focus({ preventScroll: true });
      this.moreWanted = null;
    }
  }
}

function settingName(name) {
  return { average_window_rate: "window rate", min_average_window: "least window" }[name] || name;
}

function download(name, type, parts) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
