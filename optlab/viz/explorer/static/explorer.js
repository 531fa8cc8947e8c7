// The explorer: its state, what a hand changes, the kernel where there is one, and the order of drawing.

import { make } from "../../browser/static/elements.js";
import { bytesOf } from "../../browser/static/page_model.js";
import { listenWeakly } from "../../browser/static/widget.js";
import { TakeApart } from "./apart.js";
import { Beside } from "./beside.js";
import { Changes } from "./changes.js";
import { putClaim } from "./headline.js";
import { Controls } from "./controls.js";
import { Examples } from "./examples.js";
import { MapPanel } from "./hands.js";
import { FormulaField } from "./formula_field.js";
import { validOf } from "./kept.js";
import { Menu, download, pythonOf } from "./menu.js";
import { numberText } from "./numbers.js";
import { PathMap } from "./path_map.js";
import { Plot } from "./plot.js";

/** Pixels; with narrower notches every slider has its own places. */
const LEAST_NOTCH = 8;
const ORPHANED = "The kernel of this page is gone. What it has computed stays alive; run the cell again for the rest.";
const NAMED_KEYS = ["loss", "memory", "length", "angle", "plane", "beside"];
/** @param {string} color
 * @param {string} other
 * @param {number} share of the other */
function mixed(color, other, share) {
  const part = (/** @type {string} */ text, /** @type {number} */ i) => parseInt(text.slice(i, i + 2), 16);
  return `rgb(${[1, 3, 5].map((i) => Math.round(part(color, i) * (1 - share) + part(other, i) * share)).join(" ")})`;
}

export class Explorer extends Changes {
  /** @param {any} model
   * @param {HTMLElement} element */
  constructor(model, element) {
    super(model);
    this.due = new Set();
    this.frame = 0;
    /** @type {Map<string, any>} */
    this.timers = new Map();
    this.playing = this.pressedInside = this.restored = false;
    this.generation = 0;
    this.asked = this.unsaid = 0;
    /** @type {number[]} */
    this.frameTimes = [];
    /** Problems of the reader's own that were shown, with their titles. @type {Map<string, string>} */
    this.ownTitles = new Map();
    this.problemKey = this.lastHeights = this.claimText = this.asking = "";
    this.map = this.network ? null : new MapPanel(this);
    this.pathMap = this.network && model.get("given").plane ? new PathMap(this, model.get("given").plane) : null;
    this.plot = new Plot(this);
    this.apart = new TakeApart(this);
    this.beside = new Beside(this);
    this.formula = this.map ? new FormulaField(this) : null;
    this.controls = new Controls(this);
    this.menu = new Menu(this);
    this.build(element);
    this.listen();
    this.restore();
    this.opening = this.take(model.get("given")).then(() => this.sync());
  }

  /** @param {HTMLElement} element */
  build(element) {
    this.claim = make("h3", { class: "claim" });
    this.modes = [["look", "Look"], ["apart", "Take apart"]].map(([view, text]) => make("button", { type: "button", class: "mode", text, on: { click: () => this.setView(view) } }));
    this.switch = make("div", { class: "modes", role: "group", "aria-label": "mode", hidden: this.network }, ...this.modes);
    this.header = make("div", { class: "header" }, make("div", { class: "claim-box" }, this.claim), this.switch, this.menu.button);
    this.examples = new Examples(this);
    this.problem = make("select", { class: "problem", "aria-label": "what is shown", on: { change: () => (this.problem.value === "w:" ? this.formula?.open() : this.chooseScene(this.problem.value)) } });
    if (this.map) this.map.element.append(this.problem, this.formula.element);
    this.plot.element.append(this.beside.element);
    this.message = make("p", { class: "message", role: "alert", hidden: true });
    this.left = make("div", { class: "left" }, this.map ? this.map.element : this.pathMap && this.pathMap.element);
    this.right = make("div", { class: "right" }, this.plot.element, this.apart.element);
    this.body = make("div", { class: "body" }, this.left, this.right);
    this.live = make("div", { class: "hidden", "aria-live": "polite" });
    this.table = make("table", { class: "hidden" });
    this.root = make("div", { class: "optlab-explorer", role: "group", "aria-label": "optlab explorer", tabindex: "-1" }, this.header, this.examples.element, this.menu.panel, this.menu.help, this.message, this.body, this.controls.element, this.live, this.table);
    this.root.explorer = this;
    this.mount(element, STYLE);
  }

  listen() {
    super.listen();
    this.onModel("change:state", () => this.adopt(this.model.get("state")));
    this.onModel("msg:custom", (message) => this.onAnswer(message));
    this.onModel("alive", () => {
      this.say(this.model.orphaned ? ORPHANED : "");
      if (this.model.alive) this.sync();
      this.later("all");
    });
    this.on(this.root, "pointerdown", (event) => {
      const path = event.composedPath();
      this.pressedInside = true;
      if (!this.menu.panel.hidden && !path.includes(this.menu.panel) && !path.includes(this.menu.button)) this.menu.toggle(false);
    });
    this.cleanup.push(listenWeakly(document, "fullscreenchange", this, "resized"), listenWeakly(document, "pointerdown", this, "pressedSomewhere"));
  }

  /** A press outside closes the menu, too; what was pressed has the focus. */
  pressedSomewhere() {
    if (!this.pressedInside && this.menu.open) this.menu.toggle(false, false);
    this.pressedInside = false;
  }

  destroy() {
    this.pause();
    cancelAnimationFrame(this.frame);
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.beside.stop();
    this.dead = true;
    delete this.root.explorer;
    super.destroy();
    this.shown = [];
  }

  /** Take runs, surfaces and rules, from the page or from the kernel.
   * @param {any} given */
  async take(given) {
    await this.engine.take(given);
    if (this.dead) return;
    this.heights = given.heights ? { ...given.heights, values: new Float32Array(bytesOf(given.heights.values).buffer) } : null;
    this.generation++;
    // An address may name a formula that is none, a function or a setting that this page has not, and a start of
    // another function.
    const surface = this.network ? null : this.engine.surface(this.state.problem);
    if (surface && this.state.start && this.state.start.length !== surface.start.length) this.state.start = [...surface.start];
    if (!this.network && !this.model.alive && (!surface || (this.restored && this.model.isStatic && this.missing()))) this.state = structuredClone(this.opened);
    this.refresh();
    this.ready = true;
    this.later("all");
  }

  // The kernel -------------------------------------------------------------------------------------

  /** Ask the kernel. A newer question replaces one that waits.
   * @param {string} action
   * @param {any} value */
  ask(action, value) {
    if (!this.model.alive) {
      this.say("That needs a kernel: run the cell again.");
      return;
    }
    if (this.inFlight) {
      this.waiting = { action, value };
      return;
    }
    this.inFlight = ++this.asked;
    this.asking = action;
    this.root.setAttribute("aria-busy", "true");
    this.model.send({ generation: this.inFlight, action, value, state: this.state });
    clearTimeout(this.timers.get("slow"));
    this.timers.set("slow", setTimeout(() => this.inFlight && this.waitingSaid(action, value), 500));
  }

  /** @param {string} action
   * @param {any} value */
  waitingSaid(action, value) {
    // One that has a rule here, but no run, is asked for with the whole state.
    const added = action === "add" ? value : this.shown.filter(({ run }) => !run).map(({ entry }) => entry.name).join(", ");
    this.say(`${added ? `Adding ${added}` : "The kernel is computing"} …`);
    this.message.append(make("progress", { "aria-label": "the kernel is computing" }), make("button", { type: "button", class: "link", text: "cancel", on: { click: () => {
      this.inFlight = 0; // its answer will be one that nobody waits for
      this.waiting = null;
      this.root.removeAttribute("aria-busy");
      this.say("");
      if (action === "compute") this.undo(); // the others change nothing before the answer
    } } }));
  }

  /** @param {any} message */
  async onAnswer(message) {
    if (!message || message.page) return;
    if (message.file) {
      this.answered(message);
      download(message.file, message.type, [bytesOf(message.content)]);
      return;
    }
    if (message.generation && message.generation !== this.inFlight) { // nobody waits for it any more
      if (!this.inFlight) this.sync(); // and the kernel is told what is shown instead
      return;
    }
    const mine = Boolean(message.generation);
    const newer = mine && this.waiting, added = !newer && this.asking === "add";
    if (message.given) await this.take(message.given);
    if (this.dead) return;
    if (message.hello) this.greeted = true;
    if (message.state && !newer && !this.ahead) this.state = { ...message.state, ...(mine ? { step: this.state.step, theme: this.state.theme, text_size: this.state.text_size, view: this.state.view, tab: this.state.tab, beside: this.state.beside } : {}) };
    if (mine) this.answered(message);
    if (message.error) {
      this.mention(message.error);
      const before = this.past.pop();
      if (before) this.state = JSON.parse(before);
    }
    this.refresh();
    if (mine && !message.error && added && this.state.mode === "custom") this.sayAdded(this.state.selected);
    if (message.error && this.menu.open) this.menu.build(); // its fields have what was refused
    this.later("all");
    if (this.greeted) this.ahead = false;
    if (!message.error) this.sync();
  }

  /** @param {any} message */
  answered(message) {
    this.inFlight = 0;
    clearTimeout(this.timers.get("slow"));
    this.root.removeAttribute("aria-busy");
    if (!message.error) this.say("");
    const next = this.waiting;
    this.waiting = null;
    if (next) this.ask(next.action, next.value);
  }

  /** Python has set the state.
   * @param {any} state */
  adopt(state) {
    if (this.inFlight || this.ahead || JSON.stringify(state) === JSON.stringify(this.state)) return;
    const before = this.state;
    this.state = structuredClone(state);
    if (!this.network && (!this.engine.surface(state.problem) || this.missing())) {
      this.state = before; // its runs come with a message
      return;
    }
    if (this.map && before.problem !== state.problem) this.map.fitted = "";
    this.hint = false;
    this.refresh();
    this.later("all");
  }

  /** Bars and headline follow a start that is dragged once it rests: the paths come first. */
  rowsLater() {
    clearTimeout(this.timers.get("rows"));
    this.timers.set("rows", setTimeout(() => this.later("all"), 90));
  }

  /** @param {string} text */
  say(text) {
    this.message.textContent = text;
    this.message.hidden = !text;
  }

  /** Say what the next change makes old; in the menu while it is open, which hides the place above the picture.
   * @param {string} text
   * @param {any} [wanted] a state that only a notebook can show: it is offered as Python */
  mention(text, wanted) {
    if (this.menu.open) this.menu.say(text);
    else this.say(text);
    if (wanted) (this.menu.open ? this.menu.said : this.message).append(" ", make("button", { type: "button", class: "link", text: "copy as Python", on: { click: () => this.copyPython(wanted) } }));
  }

  /** What was said of a change is over with the next one. What is true still stays, and what waits for a hand or
   * for the kernel. */
  unsay() {
    this.menu.say("");
    if (this.message.hidden || this.inFlight || this.message.querySelector("textarea")) return;
    this.say(this.model.orphaned ? ORPHANED : "");
  }

  /** Tell the kernel, the page's address and the tab what is shown: once changes rest for 100 ms, and every
   * 400 ms while they go on. */
  sync() {
    const now = performance.now();
    if (this.timers.has("sync")) clearTimeout(this.timers.get("sync"));
    else this.unsaid = now;
    this.timers.set("sync", setTimeout(() => {
      this.timers.delete("sync");
      if (this.dead || this.inFlight) return;
      const state = structuredClone(this.state);
      this.model.set("state", state);
      this.model.save_changes();
      this.keep(state);
    }, Math.max(0, Math.min(100, this.unsaid + 400 - now))));
  }

  /** Keep the state in the address of a page of its own, or in the tab for an output.
   * @param {any} state */
  keep(state) {
    const diff = Object.fromEntries(Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(this.opened[name])));
    const text = Object.keys(diff).length ? JSON.stringify(diff) : "";
    try {
      if (!this.model.isStatic) sessionStorage.setItem(`optlab ${this.model.place}`, text);
      else if (decodeURIComponent(location.hash.slice(1)) !== text) history.replaceState(null, "", text ? `#${encodeURIComponent(text)}` : location.pathname + location.search);
    } catch {
      // a page from a file or in a frame may not keep anything
    }
  }

  /** Take up the state that was kept. */
  restore() {
    try {
      const text = this.model.isStatic ? decodeURIComponent(location.hash.slice(1)) : sessionStorage.getItem(`optlab ${this.model.place}`);
      const kept = text && text.startsWith("{") ? validOf(JSON.parse(text), this.options, this.network) : {};
      Object.assign(this.state, kept);
      this.restored = Object.keys(kept).length > 0;
      if (this.restored) this.hint = false;
    } catch {
      // nothing was kept, or not by this version
    }
  }

  /** @param {any} [state] */
  async copyPython(state = this.state) {
    const text = pythonOf(state, this.options, this.engine.given.ownName);
    this.menu.toggle(false);
    try {
      await navigator.clipboard.writeText(text);
      this.say("Copied as Python.");
    } catch {
      this.say("");
    }
    this.message.hidden = false;
    this.message.append(make("textarea", { class: "code", readonly: true, rows: Math.min(9, text.split("\n").length), "aria-label": "the state as Python", text }), make("button", { type: "button", class: "link", text: "close", on: { click: () => this.say("") } }));
    this.message.querySelector("textarea").select();
  }

  /** Save a page that opens on what is shown now. */
  async savePage() {
    const outer = this.host.closest("[data-ol]");
    const data = outer && outer.querySelector('script[type="application/json"]');
    if (!data) {
      this.ask("html", null);
      return;
    }
    const boot = outer.querySelector('script[type="module"]').textContent;
    const stored = JSON.stringify({ state: this.state, options: this.options, given: this.engine.given });
    const stream = new Blob([stored]).stream().pipeThrough(new CompressionStream("gzip"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let binary = "";
    for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
    // No place: the saved page looks for no kernel.
    const packed = JSON.stringify({ app: JSON.parse(data.textContent).app, stored: btoa(binary) });
    const tag = (/** @type {string} */ type, /** @type {string} */ text) => `<script type="${type}">${text}</scr${"ipt"}>`;
    const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>optlab</title><style>body{margin:0;padding:12px;background:#eceef1}@media (prefers-color-scheme: dark){body{background:#0d1014}}</style></head><body><div data-ol="${outer.dataset.ol}">${tag("application/json", packed)}${tag("module", boot)}</div></body></html>`;
    download("optlab-explorer.html", "text/html", [page]);
  }

  get isFull() {
    return document.fullscreenElement === this.host;
  }

  fullScreen() {
    if (this.isFull) document.exitFullscreen();
    else this.host.requestFullscreen?.();
    this.menu.toggle(false);
  }

  // Time -----------------------------------------------------------------------------------------

  /** @param {number} step */
  go(step) {
    const to = Math.max(this.view === "apart" ? 1 : 0, Math.min(this.state.steps, step));
    if (to === this.state.step) return;
    const hinted = this.hint;
    this.forgetHint();
    this.state.step = to;
    if (!this.playing) this.unsay();
    this.goAhead();
    this.later(hinted ? "paths" : "cursor");
    this.sync();
    clearTimeout(this.timers.get("words"));
    this.timers.set("words", setTimeout(() => !this.dead && this.updateWords(), 300));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.start();
  }

  start() {
    if (this.state.step >= this.state.steps) this.go(0);
    this.playing = true;
    this.forgetHint();
    this.later("cursor");
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      const stride = Math.max(1, Math.round(this.state.steps / 10));
      this.timers.set("play", setInterval(() => this.advance(this.state.step + stride), 700));
      return;
    }
    let at = this.state.step, before = 0;
    this.frameTimes = [];
    const tick = (/** @type {number} */ now) => {
      if (!this.playing || this.dead) return;
      const speed = this.speed * Math.max(8, this.state.steps / 10); // steps per second
      if (before) {
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

  /** @param {number} step */
  advance(step) {
    if (step > this.state.step) this.go(step);
    if (step >= this.state.steps) this.pause();
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.playFrame);
    clearInterval(this.timers.get("play"));
    if (this.root && !this.dead) this.later("cursor");
  }

  // Drawing --------------------------------------------------------------------------------------

  /** Draw at the next frame: "all", "size", "theme", "paths" (the runs), "cursor" (the step), "top".
   * @param {string} what */
  later(what) {
    this.due.add(what);
    if (this.frame || this.dead) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.dead && this.ready) this.draw();
    });
  }

  resized() {
    this.later("size");
  }

  themed() {
    this.later("theme");
  }

  layOut() {
    const { root, state } = this;
    const width = root.clientWidth;
    if (width < 100) return false; // it is not shown, or there is no room yet
    const size = state.text_size;
    root.style.setProperty("--size", String(size));
    this.layout = width >= 860 * size ? "wide" : width >= 640 * size ? "middle" : "narrow";
    for (const name of ["wide", "middle", "narrow"]) root.classList.toggle(`ol-${name}`, name === this.layout);
    this.tight = this.layout === "middle" && width < 720 * size && !this.network; // the word "rate" stands in the caption alone
    root.classList.toggle("ol-tight", this.tight);
    root.classList.toggle("ol-apart-view", this.view === "apart");
    root.classList.toggle("ol-network", this.network && !this.pathMap);
    const room = this.body.clientWidth;
    this.room = room;
    let tall = this.layout === "wide" ? Math.max(300, Math.min(322, 0.342 * width)) : this.layout === "middle" ? 312 : Math.max(240, Math.min(420, 0.82 * room));
    if (this.layout !== "narrow") tall *= 0.7 + 0.3 * Math.max(1, size); // larger text needs room between the lines
    if (this.layout !== "narrow" && (this.isFull || (this.model.isStatic && size > 1))) {
      const fitting = window.innerHeight - (this.header.offsetHeight + this.examples.element.offsetHeight + this.controls.element.offsetHeight + 60);
      // A page of its own shows large text on a projector: all of it, where there is room for a picture.
      tall = this.isFull ? Math.max(tall, fitting) : Math.max(240, Math.min(tall, fitting - 24));
    }
    const apart = this.view === "apart" && this.map;
    // A step that is taken apart has the room of the examples too: what is below stays in place.
    if (apart && this.layout !== "narrow" && !this.isFull) tall += this.examples.room();
    tall = Math.round(tall);
    this.plot.element.hidden = Boolean(apart);
    this.apart.element.hidden = !apart;
    const narrow = this.layout === "narrow" || (this.network && !this.pathMap);
    const left = narrow ? room : Math.round(room * (apart ? 0.3 : this.layout === "wide" ? 0.6 : 0.54));
    this.body.style.gridTemplateColumns = narrow ? "minmax(0, 1fr)" : `${left}px minmax(0, 1fr)`;
    // The bottom bar keeps the columns of Look in both modes: it never moves.
    this.column = this.layout === "narrow" ? room : Math.round(room * (this.layout === "wide" ? 0.6 : 0.54));
    root.style.setProperty("--column", `${this.column}px`);
    // In one column play and scrubber stand below the map, within reach of a thumb.
    const { bar } = this.controls, place = narrow && (this.map || this.pathMap) ? this.left : this.controls.element;
    if (bar.parentElement !== place) {
      if (place === this.left) this.left.append(bar);
      else place.prepend(bar);
    }
    const row = this.layout === "narrow" ? this.header : this.root;
    if (this.examples.element.parentElement !== row) {
      if (row === this.header) row.append(this.examples.element);
      else this.header.after(this.examples.element);
    }
    if (this.map) this.map.resize(left, tall);
    else if (this.pathMap) this.pathMap.resize(left, tall);
    if (!apart) this.plot.resize(this.plot.element.clientWidth, narrow && !this.network ? Math.round(260 * Math.max(1, size * 0.9)) : tall);
    this.apart.resize(apart && !narrow ? tall : 0);
    return true;
  }

  /** The heights of all rows, which is that of three optimizers, and of a slider. Rows of chips, of networks and
   * in one column are as high as they need to be. */
  rowSizes() {
    const size = this.state.text_size, scale = Math.max(1, 0.85 * size), rows = Math.round(Math.max(114, 99.5 * size));
    const count = this.controls.inRows.length;
    const roomy = count < 3 && !this.network && this.controls.chips.hidden;
    const height = this.layout === "narrow" ? 44 * scale : count > 2 ? rows / 3 : roomy ? rows / 2 - 5 : 44 * scale;
    return { rows, roomy, height: Math.round(height) };
  }

  /** The width of a notch, one for all sliders, the height of a slider, the most notches of a rate and of a
   * second setting, and the rates of all, unless they are too many to stand below each other. */
  sliderSizes() {
    const { height } = this.rowSizes();
    const counts = [1, 1], rates = new Set();
    for (const made of this.controls.made.values()) {
      counts[0] = Math.max(counts[0], made.rates.length);
      counts[1] = Math.max(counts[1], made.seconds.length);
      for (const rate of made.rates) rates.add(rate);
    }
    /** @type {number[]} */
    const union = [...rates].sort((a, b) => a - b);
    const together = [Math.max(1, union.length), counts[1]];
    const fit = this.notchWidth(together) >= LEAST_NOTCH || union.length === counts[0];
    const most = fit ? together : counts;
    // In one column all values stand below each other.
    return { notch: this.notchWidth(most), height, most: this.layout === "narrow" ? most.map(() => Math.max(...most)) : most, union: fit ? union : null };
  }

  /** The width of a notch for so many rates and second settings: what the other parts of a row leave, as the
   * style sheet has them, with the gaps between them.
   * @param {number[]} counts */
  notchWidth(counts) {
    const size = this.state.text_size, middle = this.layout === "middle";
    if (this.layout === "narrow") return Math.min(30, (this.room - 150 * size - 12) / Math.max(...counts));
    const first = this.column - (this.tight ? 120 + 60 : middle ? 136 + 30 + 60 : 172 + 36 + 60) * size - (this.tight ? 12 : 18);
    const second = this.room - this.column - (middle ? 12 : 20) - (middle ? 76 + 42 : 92 + 44) * size - 44;
    return Math.max(6, Math.min(34 * size, first / counts[0], second / counts[1]));
  }

  draw() {
    const whole = ["all", "size", "theme"].some((what) => this.due.has(what)) || !this.laidOut;
    const paths = whole || this.due.has("paths");
    const cursor = paths || this.due.has("cursor");
    this.due.clear();
    if (whole) {
      this.repaint();
      this.findSensitive();
      this.updateHead();
      if (!this.layOut()) return; // not on the page yet; the observer fires again
      this.controls.update();
      this.plot.update();
      const heights = [this.header, this.plot.head, this.controls.element].map((part) => part.offsetHeight).join();
      if (!this.laidOut || this.lastHeights !== heights) {
        this.lastHeights = heights;
        this.layOut();
      }
      this.laidOut = true;
      putClaim(this);
      this.updateWords();
    }
    const apart = this.view === "apart" && this.map;
    if (apart && !cursor) {
      // a hovered line: only its arrow changes
    } else if (apart) {
      const box = this.apart.box(this.map);
      if (box && box.join() !== this.map.box.join()) {
        this.lookBox ??= this.map.chosen;
        this.map.box = box;
        this.map.field = null;
        this.map.drawBase();
      } else if (paths) this.map.drawBase();
    } else if (this.map && (paths || this.lookBox)) {
      if (this.lookBox) {
        this.map.chosen = this.lookBox;
        this.map.box = this.map.withAspect(this.lookBox);
        this.map.field = null;
        this.lookBox = null;
      }
      this.map.drawBase();
    }
    if (this.pathMap) {
      if (paths) this.pathMap.drawBase();
      this.pathMap.drawTop();
    }
    if (!apart && paths) this.plot.drawBase();
    if (this.map) {
      if (apart) this.apart.drawOn(this.map);
      else this.map.drawTop();
      this.map.top.setAttribute("aria-label", this.mapLabel());
    }
    if (cursor) {
      if (apart) {
        this.apart.draw();
        putClaim(this);
      } else this.plot.drawTop();
      this.controls.updateCursor();
    }
    this.drawn = (this.drawn || 0) + 1;
  }

  repaint() {
    this.paint(this.options.palette, this.state.theme);
    const dark = this.theme === "dark";
    /** Colors of losses in one hue, the optimizer's own; the best stands out most. @type {any} */
    const palette = this.palette;
    palette.ramp = (/** @type {string} */ color) => (/** @type {number} */ share) => (dark
      ? share < 0.7 ? mixed(this.palette.paper, color, 0.14 + (0.86 * share) / 0.7) : mixed(color, "#ffffff", (0.75 * (share - 0.7)) / 0.3)
      : share < 0.7 ? mixed("#ffffff", color, 0.1 + (0.9 * share) / 0.7) : mixed(color, "#000000", (0.55 * (share - 0.7)) / 0.3));
    this.colorAll();
  }

  updateHead() {
    const { state, options, engine } = this;
    putClaim(this);
    this.modes.forEach((button, i) => button.setAttribute("aria-pressed", String((i === 1) === (this.view === "apart"))));
    if (!this.map) return;
    const known = options.problems.filter((/** @type {string[]} */ [name]) => this.model.alive || name in engine.given.problems);
    const title = engine.surface(state.problem)?.title || state.problem;
    // One's own stay in the list: nobody finds the way back to them otherwise.
    if (!options.problems.some((/** @type {string[]} */ [name]) => name === state.problem)) this.ownTitles.set(state.problem, title);
    if (engine.surface("own")) this.ownTitles.set("own", engine.surface("own").title);
    const problems = [...[...this.ownTitles].filter(([name]) => name === state.problem || engine.surface(name)), ...known];
    this.examples.update();
    const key = JSON.stringify(problems);
    if (this.problemKey !== key) {
      this.problemKey = key;
      this.problem.replaceChildren(...problems.map((/** @type {string[]} */ [name, text]) => make("option", { value: `p:${name}`, text })), make("option", { value: "w:", text: "a formula of your own …" }));
    }
    const value = `p:${state.problem}`;
    if (this.problem.value !== value) this.problem.value = value;
  }

  mapLabel() {
    const start = (this.state.start || []).map((/** @type {number} */ c) => numberText(c)).join(", ");
    const title = this.engine.surface(this.state.problem)?.title;
    return `Map of ${title} with the paths of ${this.shown.length} optimizers. Start (${start}); the arrow keys move it, plus and minus zoom, 0 fits.`;
  }

  /** The same in words and as a table; once the cursor rests, not at every frame. */
  updateWords() {
    const { state } = this;
    const title = this.network ? "" : `${this.engine.surface(state.problem)?.title}, `;
    const lines = this.shown.map((one) => [one.entry.name, numberText(one.rate, 6), this.controls.lossText(one).replace("loss ", "")]);
    this.table.replaceChildren(make("caption", { text: `${title}step ${state.step} of ${state.steps}` }),
      make("tr", {}, ...["optimizer", "rate", "loss"].map((text) => make("th", { scope: "col", text }))),
      ...lines.map((line) => make("tr", {}, ...line.map((text, i) => make(i ? "td" : "th", { text })))));
    this.live.textContent = `Step ${state.step} of ${state.steps}. Loss: ${lines.map(([name, , loss]) => `${name} ${loss}`).join(", ")}.`;
  }

  /** @param {any} event */
  onKey(event) {
    const target = event.composedPath()[0];
    const { tagName, type } = target;
    if (event.key === "Escape") return this.menu.close();
    if (tagName === "SELECT" || tagName === "TEXTAREA" || (tagName === "INPUT" && type !== "range")) return false;
    if (target === this.plot.top && this.plot.onKey(event)) return true;
    const { step } = this.state;
    const number = Number(event.key);
    if (event.key === " " && tagName !== "BUTTON") this.toggle();
    else if (event.key === "?") this.menu.toggleHelp();
    else if (event.key === "t" || event.key === "T") this.map && this.setView(this.view === "apart" ? "look" : "apart");
    else if (event.key === "n" || event.key === "N") this.examples.next(event.shiftKey ? -1 : 1);
    else if (event.key === "u" || event.key === "U") this.undo();
    else if (event.key === "m" || event.key === "M") this.menu.toggle();
    else if (event.key === "f" || event.key === "F") this.fullScreen();
    else if (this.plot.tabsShown.includes(NAMED_KEYS[number - 1])) this.set({ tab: NAMED_KEYS[number - 1], view: "look" });
    else if (event.key === "ArrowRight") this.go(step + (event.shiftKey ? 10 : 1));
    else if (event.key === "ArrowLeft") this.go(step - (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.state.steps);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.selectNext(event.key === "ArrowDown" ? 1 : -1);
    else return false;
    return true;
  }

  /** @param {number} by */
  selectNext(by) {
    const names = this.shown.map(({ entry }) => entry.name);
    const at = names.indexOf(this.selected.entry.name);
    this.set({ selected: names[(at + by + names.length) % names.length] });
  }
}

/** @param {{model: any, el: HTMLElement}} given */
export function render({ model, el }) {
  const explorer = new Explorer(model, el);
  return () => explorer.destroy();
}
