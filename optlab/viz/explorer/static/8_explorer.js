// The explorer: state, kernel, playback, and the order of drawing.

class Explorer extends Widget {
  constructor(model, element) {
    super(model);
    this.isStatic = Boolean(model.isStatic);
    this.element = element;
    this.due = new Set();
    this.frame = 0;
    this.timers = new Map();
    this.playing = false;
    this.generation = 0;
    this.inFlight = 0;
    this.waiting = null;
    this.landSerial = 0;
    this.frameTimes = [];
    this.options = model.get("options");
    this.map = null;
    this.controls = new Controls(this);
    this.panels = [];
    this.adopt(true);
    this.build();
    this.listen();
    this.updateAll();
  }

  build() {
    const c = this.controls;
    this.left = make("div", { class: "left" });
    this.right = make("div", { class: "right" });
    this.map = this.runs.network ? null : new MapPanel(this);
    const what = this.runs.network ? ["loss", "slot", "length", "gradient"] : ["loss", "slot", "length", "angle"];
    this.panels = what.map((name) => new SeriesPanel(this, name));
    if (this.map) this.left.append(this.map.element, c.startRow);
    this.left.append(c.transport, c.rows);
    const beside = this.map ? this.panels : this.panels.slice(2);
    if (!this.map) this.left.prepend(...this.panels.slice(0, 2).map((panel) => panel.element));
    this.right.append(...beside.map((panel) => panel.element), c.panel);
    this.root = make("div", { class: "optlab-explorer", role: "group", "aria-label": "optlab explorer" }, c.bar, c.says, c.message, make("div", { class: "columns" }, this.left, this.right), c.footer, c.more, c.live, c.table);
    this.element.append(this.root);
    this.root.explorer = this;
  }

  listen() {
    super.listen();
    this.onModel("change:answer", () => this.onAnswer());
    this.onModel("msg:custom", (content, buffers) => this.onMessage(content, buffers));
  }

  destroy() {
    this.pause();
    cancelAnimationFrame(this.frame);
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.dead = true;
    super.destroy();
    delete this.root.explorer;
    this.runs = this.landNumbers = this.map = null;
    this.panels = [];
  }

  // State ----------------------------------------------------------------------------------------

  // Apply the data of the kernel; `all`: including fields that this view may have changed meanwhile.
  adopt(all) {
    const { model } = this;
    const sent = structuredClone(model.get("state"));
    const mine = this.state;
    this.state = sent;
    if (mine && !all) {
      for (const name of ["step", "slot", "coordinate", "theme", "text_size", "mode", "equal_rate"]) sent[name] = mine[name];
      for (const entry of sent.optimizers) {
        const own = mine.optimizers.find((one) => one.name === entry.name);
        if (own) entry.rate = own.rate;
      }
      if (sent.optimizers.some((entry) => entry.name === mine.selected)) sent.selected = mine.selected;
    }
    const header = model.get("data");
    if (header.serial !== this.runsSerial) {
      this.runs = new Runs(header, model.get("buffers"));
      this.runsSerial = header.serial;
    }
    const land = model.get("land");
    if (land.serial !== this.landSerial) {
      this.land = land.box ? land : null;
      const bytes = model.get("land_buffers");
      this.landNumbers = new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
      this.landSerial = land.serial;
    }
    this.state.step = Math.max(0, Math.min(this.state.step, this.runs.steps));
    this.fixed = this.isStatic || this.runs.network;
  }

  set(changes) {
    Object.assign(this.state, changes);
    if ("selected" in changes) this.followSelected();
    this.updateAll();
    this.sync();
  }

  get selected() {
    return this.runs.byName.get(this.state.selected) || this.runs.optimizers[0];
  }

  // A slot that the selected optimizer lacks would leave it out of the panel.
  followSelected() {
    const { slots, terms } = this.selected;
    const own = ["gradient", ...slots.map((name) => `new.${name}`), ...terms.map((name) => `term.${name}`)];
    if (!own.includes(this.slot)) this.state.slot = own[1] || own[0];
  }

  get slot() {
    const known = this.runs.quantities().map(([value]) => value);
    const wanted = this.state.slot;
    for (const name of [wanted, `new.${wanted}`, `term.${wanted}`]) if (known.includes(name)) return name;
    const { slots, terms } = this.selected;
    if (slots.length) return `new.${slots[0]}`;
    return terms.length ? `term.${terms[0]}` : "gradient";
  }

  entryState(entry) {
    return this.state.optimizers.find((one) => one.name === entry.name) || { rate: null };
  }

  isCustom(entry) {
    return !this.runs.network && this.state.mode === "custom" && this.entryState(entry).rate !== null;
  }

  rateIndex(entry) {
    if (this.runs.network) return 0;
    if (this.state.mode === "equal") {
      const rate = this.state.equal_rate === null ? this.runs.header.equal : this.state.equal_rate;
      return Math.max(0, entry.rates.indexOf(rate));
    }
    const { rate } = this.entryState(entry);
    if (this.state.mode === "custom" && rate !== null) return Math.max(0, entry.rates.indexOf(rate));
    return entry.best;
  }

  hasEnded(entry) {
    const stopped = entry.stopped[this.rateIndex(entry)];
    return stopped >= 0 && this.state.step >= stopped;
  }

  setRate(index) {
    if (this.state.mode === "equal") {
      // Only rates common to all: an extra rate of this optimizer is skipped.
      const { rates } = this.selected;
      const shared = (at) => this.runs.optimizers.every((entry) => entry.rates.includes(rates[at]));
      const by = index >= this.rateIndex(this.selected) ? 1 : -1;
      while (rates[index] !== undefined && !shared(index)) index += by;
      if (rates[index] === undefined) return;
    }
    const rate = this.selected.rates[index];
    if (this.state.mode === "equal") this.state.equal_rate = rate;
    else {
      this.entryState(this.selected).rate = rate;
      this.state.mode = "custom";
    }
    this.later("rate");
    this.sync();
  }

  setMode(mode) {
    if (mode === "best") for (const entry of this.state.optimizers) entry.rate = null;
    this.set({ mode });
  }

  selectNext(by) {
    const names = this.runs.optimizers.map((entry) => entry.name);
    const at = names.indexOf(this.state.selected);
    this.set({ selected: names[(at + by + names.length) % names.length] });
  }

  drawingOrder() {
    return [...this.runs.optimizers].sort((a, b) => (a.name === this.state.selected) - (b.name === this.state.selected));
  }

  color(entry) {
    return entry.style[this.theme];
  }

  conditions() {
    const { state, runs, options } = this;
    if (runs.network) return `Same initial weights, same ${runs.steps} steps, seed ${state.seed}. The runs are as they were recorded: their rates are fixed.`;
    const start = runs.header.start.map((c) => numberText(c)).join(", ");
    const how = options.conditions[state.mode];
    const edge = runs.optimizers.filter((entry) => this.rateIndex(entry) === entry.best && entry.best === entry.rates.length - 1 && state.mode !== "equal");
    const note = edge.length ? ` ${edge.map((entry) => entry.name).join(" and ")}: the ladder's end, a larger rate may be better.` : "";
    const around = runs.optimizers.filter((entry) => entry.around && entry.around.kind).map((entry) => {
      const settings = Object.entries(entry.around).filter(([name]) => name !== "kind").map(([name, value]) => `${settingName(name)} ${numberText(value)}`);
      return ` Around ${entry.name}: ${entry.around.kind} (${settings.join(", ")}).`;
    });
    return `Same start (${start}), same ${runs.steps} steps, seed ${state.seed}. Rates: ${how}.${around.join("")}${note}`;
  }

  // The kernel -----------------------------------------------------------------------------------

  // One request is pending at a time; of the waiting ones, only the newest start is kept.
  request(action, value) {
    if (this.isStatic) {
      this.say("This page has no kernel: rate, play and scrub work; for more, run ol.explore() in a notebook.");
      return;
    }
    const one = { action, value };
    if (this.inFlight) {
      const queue = this.waiting || [];
      const place = queue.findIndex((other) => other.action === action && action === "start");
      if (place >= 0) queue[place] = one;
      else queue.push(one);
      this.waiting = queue;
      return;
    }
    this.inFlight = ++this.generation;
    this.asked = action;
    this.askedAt = performance.now();
    this.root.setAttribute("aria-busy", "true");
    this.model.send({ generation: this.inFlight, action, value, state: this.state });
  }

  onAnswer() {
    const answer = this.model.get("answer");
    const mine = answer.generation === this.inFlight && this.inFlight > 0;
    if (answer.generation && !mine) return; // an old generation, or of another view
    if (mine) this.inFlight = 0;
    const action = mine ? this.asked : "api";
    this.say(answer.error || "");
    const next = this.waiting && this.waiting.shift();
    if (this.waiting && !this.waiting.length) this.waiting = null;
    if (!answer.error) {
      this.adopt(!["start", "steps", "seed", "setting", "fit"].includes(action));
      if (this.map && !next) this.map.wantedStart = null;
      if (action === "preset" || action === "problem") this.pause();
      this.resize(true);
      this.updateAll();
    } else if (this.map && !next) {
      this.map.wantedStart = null;
      this.updateAll();
    }
    this.answeredIn = mine ? performance.now() - this.askedAt : 0;
    this.finish(next);
  }

  // After an answer: send the waiting request, or the state changed meanwhile.
  finish(next) {
    if (!this.inFlight) this.root.removeAttribute("aria-busy");
    if (next) this.request(next.action, next.value);
    else this.sync();
  }

  onMessage(content, buffers) {
    if (!content || !content.file || content.generation !== this.inFlight) return;
    this.inFlight = 0;
    const next = this.waiting && this.waiting.shift();
    if (this.waiting && !this.waiting.length) this.waiting = null;
    this.finish(next);
    download(content.file, content.type, buffers.map((view) => view.buffer ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : view));
  }

  say(text) {
    const { message, more, footer, says } = this.controls;
    // In the user's view: beside the fields being edited, else above the map.
    (more.contains(document.activeElement) ? footer : says).after(message);
    message.textContent = text;
    message.hidden = !text;
  }

  // Send the state to the kernel, at most every 100 ms.
  sync() {
    if (this.isStatic || this.timers.has("sync")) return;
    this.timers.set("sync", setTimeout(() => {
      this.timers.delete("sync");
      if (this.dead || this.inFlight) return;
      this.model.set("state", structuredClone(this.state));
      this.model.save_changes();
    }, 100));
  }

  // Time -----------------------------------------------------------------------------------------

  go(step) {
    const to = Math.max(0, Math.min(this.runs.steps, step));
    if (to === this.state.step) return;
    this.state.step = to;
    this.later("cursor");
    this.sync();
    this.wordsLater();
  }

  wordsLater() {
    clearTimeout(this.timers.get("words"));
    this.timers.set("words", setTimeout(() => !this.dead && this.controls.updateWords(), 300));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.start();
  }

  start() {
    if (this.state.step >= this.runs.steps) this.go(0);
    this.playing = true;
    showPlaying(this.controls.play, this.playing);
    const jump = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (jump) {
      const stride = Math.max(1, Math.round(this.runs.steps / 10));
      this.timers.set("play", setInterval(() => this.advance(this.state.step + stride), 700));
      return;
    }
    const speed = Math.max(12, this.runs.steps / 10); // steps per second
    let at = this.state.step, before = null;
    this.frameTimes = [];
    const tick = (now) => {
      if (!this.playing) return;
      if (before !== null) {
        this.frameTimes.push(now - before);
        at += ((now - before) / 1000) * speed;
        if (Math.abs(at - this.state.step) > speed / 2 + 2) at = this.state.step; // moved by hand
      }
      before = now;
      this.advance(Math.floor(at));
      this.playFrame = requestAnimationFrame(tick);
    };
    this.playFrame = requestAnimationFrame(tick);
  }

  advance(step) {
    this.go(step);
    if (step >= this.runs.steps) this.pause();
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.playFrame);
    clearInterval(this.timers.get("play"));
    if (this.root) showPlaying(this.controls.play, this.playing);
  }
}
