// Base class of the widgets: an element in a shadow root that follows theme and width, stops its key
// events, and cleans up after itself. Subclasses define `build`, which creates `root`, and `resized`,
// `themed`, `onKey`.

import { make } from "./elements.js";

/** The colors of a theme, by name.
 * @typedef {Record<string, string>} Palette */

/** Whether the page around is dark: JupyterLab's theme, that of a Sphinx page, else the system's. */
export function pageIsDark() {
  const lab = document.body.dataset.jpThemeLight;
  if (lab) return lab === "false";
  const site = document.documentElement.dataset.theme;
  if (site === "dark" || site === "light") return site === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

// What outlives a widget may know it weakly only. These are functions of their own because closures of
// one scope share what any of them holds.

/** Call a method of a widget at an event of something that outlives it.
 * @param {EventTarget} target
 * @param {string} event
 * @param {any} widget
 * @param {string} method
 * @returns {() => void} what ends it */
export function listenWeakly(target, event, widget, method) {
  const held = new WeakRef(widget);
  const undo = () => target.removeEventListener(event, listener);
  const listener = () => {
    const one = held.deref();
    if (one && one.model) one[method]();
    else undo();
  };
  target.addEventListener(event, listener);
  return undo;
}

/** @param {any} widget
 * @returns {() => void} */
function watchSize(widget) {
  const held = new WeakRef(widget);
  const observer = new ResizeObserver(() => held.deref()?.resize());
  observer.observe(widget.root);
  return () => observer.disconnect();
}

/** @param {any} widget
 * @returns {() => void} */
function watchTheme(widget) {
  const held = new WeakRef(widget);
  const watcher = new MutationObserver(() => {
    const one = held.deref();
    if (one && one.model) one.themed();
    else watcher.disconnect();
  });
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
  watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const undo = listenWeakly(window.matchMedia("(prefers-color-scheme: dark)"), "change", widget, "themed");
  return () => {
    watcher.disconnect();
    undo();
  };
}

export class Widget {
  /** @param {any} model the interface of an anywidget model */
  constructor(model) {
    this.model = model;
    /** @type {(() => void)[]} */
    this.cleanup = [];
    /** @type {any} */
    this.root = null;
    this.theme = "light";
    /** @type {Palette} */
    this.palette = {};
    this.seenWidth = 0;
    this.seenRatio = 0;
    /** Where each pointer went down. @type {Map<number, EventTarget>} */
    this.pressed = new Map();
    /** What has the focus, also while it is on its way to another place. @type {any} */
    this.holder = null;
  }

  /** Put the root into a shadow root with the style sheet, where no other style sheet reaches.
   * @param {HTMLElement} element
   * @param {string} style */
  mount(element, style) {
    // JupyterLab sees the host in place of the focused element inside.
    const host = make("div", { "data-lm-suppress-shortcuts": "true" });
    const shadow = host.attachShadow({ mode: "open" });
    shadow.append(make("style", { text: style }), this.root);
    element.append(host);
    this.host = host;
    this.on(host, "ol-moved", () => this.moved());
    this.cleanup.push(() => host.remove());
  }

  /** The focused element inside the shadow root. */
  get focused() {
    return this.root.getRootNode().activeElement || null;
  }

  listen() {
    this.on(this.root, "keydown", (event) => {
      event.stopPropagation(); // keys of the widget must not trigger commands of the notebook
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (this.onKey(event)) event.preventDefault();
    });
    this.on(this.root, "pointerdown", (event) => this.pressed.set(event.pointerId, event.target), true);
    for (const name of ["pointerup", "pointercancel"]) this.on(this.root, name, (event) => this.pressed.delete(event.pointerId), true);
    this.on(this.root, "focusin", ({ target }) => (this.holder = target));
    // Of an element that is taken out of the page it is still the holder.
    this.on(this.root, "focusout", () => queueMicrotask(() => {
      if (this.root.isConnected) this.holder = this.focused;
    }));
    // A page that is zoomed, or moved to a finer screen, need not have another width.
    this.cleanup.push(watchSize(this), watchTheme(this), listenWeakly(window, "resize", this, "resize"));
  }

  /** The page has been moved within its document (`_BOOT`): a drag has ended, the focus stays. */
  moved() {
    for (const [pointerId, target] of this.pressed) target.dispatchEvent(new PointerEvent("pointercancel", { pointerId, bubbles: true }));
    if (this.holder) this.holder.focus({ preventScroll: true });
  }

  /** @param {EventTarget} target
   * @param {string} event
   * @param {(event: any) => void} listener
   * @param {any} [options] */
  on(target, event, listener, options) {
    target.addEventListener(event, listener, options);
    this.cleanup.push(() => target.removeEventListener(event, listener, options));
  }

  /** Listen to the kernel.
   * @param {string} event
   * @param {(...given: any[]) => void} listener */
  onModel(event, listener) {
    const { model } = this;
    model.on(event, listener);
    this.cleanup.push(() => model.off(event, listener));
  }

  /** Send to the kernel.
   * @param {string} name
   * @param {any} value */
  tell(name, value) {
    if (this.model.get(name) === value) return;
    this.model.set(name, value);
    this.model.save_changes();
  }

  /** Once per width and sharpness: the observer also fires if only the height changed.
   * @param {boolean} [force] */
  resize(force) {
    const width = this.root.clientWidth, ratio = window.devicePixelRatio;
    if (!width || (width === this.seenWidth && ratio === this.seenRatio && !force)) return;
    this.seenWidth = width;
    this.seenRatio = ratio;
    this.resized(width);
  }

  /** "auto" is the theme of the page around.
   * @param {Record<string, Palette>} palettes
   * @param {string} wanted */
  paint(palettes, wanted = "auto") {
    this.theme = wanted === "auto" ? (pageIsDark() ? "dark" : "light") : wanted;
    this.palette = palettes[this.theme];
    for (const [part, color] of Object.entries(this.palette)) this.root.style.setProperty(`--${part}`, color);
    this.root.style.colorScheme = this.theme;
  }

  /** @param {number} width */
  resized(width) {}

  themed() {}

  /** @param {KeyboardEvent} event
   * @returns {boolean} whether the key was for this widget */
  onKey(event) {
    return false;
  }

  destroy() {
    for (const undo of this.cleanup) undo();
    this.cleanup = [];
    this.root.remove();
    this.model = null;
  }
}
