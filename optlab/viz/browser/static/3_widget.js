// Base class of the widgets: an element that follows theme and width, stops its key events, and cleans
// up after itself. Subclasses define `build`, which creates `root`, and `resized`, `themed`, `onKey`.

class Widget {
  constructor(model) {
    this.model = model;
    this.cleanup = [];
  }

  listen() {
    this.on(this.root, "keydown", (event) => {
      event.stopPropagation(); // keys of the widget must not trigger commands of the notebook
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.onKey(event)) event.preventDefault();
    });
    const resize = new ResizeObserver(() => this.resize());
    resize.observe(this.root);
    const theme = () => this.themed();
    const watcher = new MutationObserver(theme);
    watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
    this.on(window.matchMedia("(prefers-color-scheme: dark)"), "change", theme);
    this.cleanup.push(() => resize.disconnect(), () => watcher.disconnect());
  }

  on(target, event, listener) {
    target.addEventListener(event, listener);
    this.cleanup.push(() => target.removeEventListener(event, listener));
  }

  // Listen to the kernel.
  onModel(event, listener) {
    this.model.on(event, listener);
    this.cleanup.push(() => this.model.off(event, listener));
  }

  // Send to the kernel.
  tell(name, value) {
    if (this.model.get(name) === value) return;
    this.model.set(name, value);
    this.model.save_changes();
  }

  // Once per width: the observer also fires if only the height changed.
  resize(force) {
    const width = this.root.clientWidth;
    if (!width || (width === this.seenWidth && !force)) return;
    this.seenWidth = width;
    this.resized(width);
  }

  // "auto" is JupyterLab's theme, and the system's outside JupyterLab.
  paint(palettes, wanted = "auto") {
    const lab = document.body.dataset.jpThemeLight;
    const dark = lab === undefined ? window.matchMedia("(prefers-color-scheme: dark)").matches : lab === "false";
    this.theme = wanted === "auto" ? (dark ? "dark" : "light") : wanted;
    this.palette = palettes[this.theme];
    for (const [part, color] of Object.entries(this.palette)) this.root.style.setProperty(`--${part}`, color);
    this.root.style.colorScheme = this.theme;
  }

  destroy() {
    for (const undo of this.cleanup) undo();
    this.cleanup = [];
    this.root.remove();
    this.model = null;
  }
}
