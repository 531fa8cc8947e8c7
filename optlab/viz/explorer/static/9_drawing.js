// Drawing of the explorer: parts marked as changed are drawn, once per frame.

Object.assign(Explorer.prototype, {
  later(what) {
    this.due.add(what);
    if (this.frame || this.dead) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.dead) this.draw();
    });
  },

  updateAll() {
    if (!this.root) return;
    this.later("all");
  },

  resized() {
    this.later("size");
  },

  themed() {
    this.later("theme");
  },

  layOut() {
    const width = this.root.clientWidth;
    if (!width) return false;
    this.root.classList.toggle("narrow", width < 760 * Math.max(1, this.state.text_size * 0.85));
    this.root.style.setProperty("--size", `${this.state.text_size}`);
    this.root.classList.toggle("tight", this.left.clientWidth < 560 * this.state.text_size);
    if (this.map) this.map.resize(this.left.clientWidth);
    const tall = this.runs.network ? 150 : width < 760 ? 104 : Math.max(78, Math.min(104, width / 12.5));
    this.panels.forEach((panel, i) => {
      panel.resize(panel.element.clientWidth, tall + (this.isLowest(i) ? 18 : 0));
    });
    return true;
  },

  // The lowest panel of a column shows the step numbers.
  isLowest(i) {
    return i === this.panels.length - 1 || (!this.map && i === 1);
  },

  draw() {
    const whole = ["all", "size", "theme"].some((what) => this.due.has(what)) || !this.laidOut;
    const paths = whole || this.due.has("rate");
    const cursor = paths || this.due.has("cursor");
    const top = cursor || this.due.has("top");
    this.due.clear();
    if (whole) {
      this.paint(this.options.palette, this.state.theme);
      this.controls.update();
      this.fillQuantities();
      if (!this.layOut()) return; // not on the page yet; the observer fires again
      this.laidOut = true;
      this.controls.drawSamples();
      this.controls.updateWords();
    }
    if (paths) {
      if (this.map) this.map.drawBase();
      this.panels.forEach((panel, i) => panel.drawBase(this.isLowest(i)));
      this.controls.updateMode();
      if (!whole) this.wordsLater();
    }
    if (top && this.map) {
      this.map.drawTop();
      this.map.top.setAttribute("aria-label", this.mapLabel());
    }
    if (cursor) {
      for (const panel of this.panels) panel.drawTop();
      this.controls.updateCursor();
    }
    this.drawn = (this.drawn || 0) + 1;
  },

  fillQuantities() {
    const panel = this.panels.find((one) => one.choice);
    fillSelect(panel.choice, this.runs.quantities(), this.slot);
    const axes = this.runs.header.axes;
    fillSelect(panel.axis, axes.map((name, i) => [String(i), `coordinate ${name}`]), String(Math.min(this.state.coordinate, axes.length - 1)));
    panel.axis.hidden = axes.length < 2;
  },

  mapLabel() {
    const start = (this.state.start || this.runs.header.start).map((c) => numberText(c)).join(", ");
    const kind = this.land.curve ? "Curve" : "Map";
    return `${kind} of ${this.runs.header.title} with the paths of ${this.runs.optimizers.length} optimizers. Start (${start}); the arrow keys move it, with shift in small steps.`;
  },

  onKey(event) {
    const { tagName, type } = event.target;
    const typing = tagName === "SELECT" || (tagName === "INPUT" && type !== "range");
    if (typing) return false;
    const slides = tagName === "INPUT";
    const { step } = this.state;
    if (event.key === " " && tagName !== "BUTTON") this.toggle();
    else if (slides) return false;
    else if (event.key === "ArrowRight") this.go(step + (event.shiftKey ? 10 : 1));
    else if (event.key === "ArrowLeft") this.go(step - (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.runs.steps);
    else if (event.key === "ArrowDown") this.selectNext(1);
    else if (event.key === "ArrowUp") this.selectNext(-1);
    else return false;
    return true;
  },
});

function render({ model, el }) {
  const explorer = new Explorer(model, el);
  return () => explorer.destroy();
}
