// What a hand does to the map: drag the start or the ground, zoom, and choose a step on a path.

import { MapDrawing } from "./map.js";

export class MapPanel extends MapDrawing {
  /** @param {any} explorer */
  constructor(explorer) {
    super(explorer);
    this.moved = false;
    const { top } = this;
    top.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => this.onDown(event));
    top.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"]) top.addEventListener(name, (/** @type {PointerEvent} */ event) => this.onUp(event));
    top.addEventListener("pointerleave", () => this.leave());
    top.addEventListener("dblclick", () => this.fit());
    top.addEventListener("wheel", (/** @type {WheelEvent} */ event) => this.onWheel(event), { passive: false });
    top.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.onKey(event));
  }

  /** @param {PointerEvent | WheelEvent} event */
  at(event) {
    const bounds = this.top.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  }

  /** @param {number[]} point */
  rounded(point) {
    const digits = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(this.box[1] - this.box[0]))));
    return point.slice(0, this.explorer.state.start.length).map((value) => Number(value.toFixed(digits)));
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (event.button !== 0) return;
    const { explorer } = this;
    const at = this.at(event);
    this.fingers.set(event.pointerId, at);
    this.top.focus({ preventScroll: true });
    this.top.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (this.fingers.size > 1) {
      this.drag = "pinch";
      return;
    }
    const start = this.startPlace();
    this.pointer = at;
    if (Math.hypot(at.x - start[0], at.y - start[1]) < (event.pointerType === "touch" ? 28 : 18)) this.drag = "start";
    else {
      const near = this.nearest();
      if (near) explorer.set({ selected: near.one.entry.name, step: near.step });
      else if (event.pointerType !== "touch") this.drag = "pan";
    }
    this.moved = false;
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const { explorer } = this;
    const at = this.at(event), before = this.fingers.get(event.pointerId);
    this.pointer = at;
    if (this.drag === "pinch" && before) this.pinch(event.pointerId, at);
    if (before) this.fingers.set(event.pointerId, at);
    if (this.drag === "start") {
      const [x, y] = this.pointAt(Math.max(0, Math.min(this.width, at.x)), Math.max(0, Math.min(this.height, at.y)));
      explorer.moveStart(this.rounded([x, y]));
    } else if (this.drag === "pan" && before) {
      const [x0, x1, y0, y1] = this.box;
      const dx = ((before.x - at.x) / this.width) * (x1 - x0), dy = ((at.y - before.y) / this.height) * (y1 - y0);
      this.show([x0 + dx, x1 + dx, y0 + dy, y1 + dy]);
      this.top.style.cursor = "grabbing";
    } else {
      const start = this.startPlace();
      this.top.style.cursor = Math.hypot(at.x - start[0], at.y - start[1]) < 18 ? "grab" : this.nearest() ? "pointer" : "crosshair";
      explorer.later("top");
    }
  }

  /** @param {number} finger
   * @param {{x: number, y: number}} at */
  pinch(finger, at) {
    const [other] = [...this.fingers].filter(([id]) => id !== finger).map(([, place]) => place);
    const before = this.fingers.get(finger);
    if (!other || !before) return;
    const scale = Math.hypot(before.x - other.x, before.y - other.y) / Math.max(8, Math.hypot(at.x - other.x, at.y - other.y));
    this.zoom(scale, (at.x + other.x) / 2, (at.y + other.y) / 2);
  }

  /** @param {PointerEvent} event */
  onUp(event) {
    this.fingers.delete(event.pointerId);
    if (this.drag === "start") this.explorer.startMoved();
    if (event.pointerType === "touch") this.pointer = null;
    this.drag = "";
    this.explorer.later("top");
  }

  leave() {
    this.pointer = null;
    this.explorer.later("top");
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    event.preventDefault();
    const at = this.at(event);
    this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), at.x, at.y);
  }

  /** @param {number} scale below 1 comes nearer
   * @param {number} px
   * @param {number} py */
  zoom(scale, px, py) {
    const [x, y] = this.pointAt(px, py);
    const [x0, x1, y0, y1] = this.box;
    const size = (x1 - x0) * scale;
    if (!(size > 1e-9 * Math.max(1e-6, Math.abs(x)) && size < 1e7)) return;
    this.show([x - (x - x0) * scale, x + (x1 - x) * scale, y - (y - y0) * scale, y + (y1 - y) * scale]);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { explorer } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, number[]>} */
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (["+", "=", "-", "0"].includes(event.key)) {
      if (event.key === "0") this.fit();
      else this.zoom(event.key === "-" ? 1.25 : 0.8, this.width / 2, this.height / 2);
    } else if (event.key in arrows) {
      const [x0, x1, y0, y1] = this.box;
      const unit = 10 ** Math.floor(Math.log10((x1 - x0) / 20)) * (event.shiftKey ? 0.1 : 1);
      const [right, up] = arrows[event.key];
      const now = explorer.state.start;
      const limit = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) => Math.max(low, Math.min(high, Number(value.toPrecision(12))));
      const next = [limit(now[0] + right * unit, x0, x1)];
      if (now.length > 1) next.push(limit(now[1] + up * unit, y0, y1));
      explorer.moveStart(next);
      explorer.startMoved();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
