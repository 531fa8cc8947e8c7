// A canvas that writes down what is drawn on it, for tests without a browser.

class RecordedPen {
  constructor(drawn) {
    this.drawn = drawn;
    this.canvas = { width: 0, height: 0 };
    this.look = { strokeStyle: "", fillStyle: "", lineWidth: 1, globalAlpha: 1, dash: [], at: [0, 0], scaled: [1, 1] };
    this.kept = [];
    this.path = [];
    for (const name of ["strokeStyle", "fillStyle", "lineWidth", "globalAlpha"]) {
      Object.defineProperty(this, name, { get: () => this.look[name], set: (value) => (this.look[name] = value) });
    }
  }
  save() { this.kept.push({ ...this.look }); }
  restore() { this.look = this.kept.pop(); }
  setLineDash(dash) { this.look.dash = dash; }
  translate(x, y) { this.look.at = [this.look.at[0] + x, this.look.at[1] + y]; }
  scale(x, y) { this.look.scaled = [x, y]; }
  rotate() {}
  clip() {}
  beginPath() { this.path = []; }
  moveTo(x, y) { this.path.push([[x, y]]); }
  lineTo(x, y) { (this.path.length ? this.path[this.path.length - 1] : this.path[this.path.push([]) - 1]).push([x, y]); }
  rect(x, y, w, h) { this.path.push([[x, y], [x + w, y], [x + w, y + h], [x, y + h]]); }
  roundRect(x, y, w, h) { this.rect(x, y, w, h); }
  arc(x, y) { this.path.push([[x, y]]); }
  closePath() {}
  note(kind, more) { this.drawn.push({ kind, alpha: this.look.globalAlpha, width: this.look.lineWidth, dash: this.look.dash, ...more }); }
  stroke() { this.note("stroke", { color: this.look.strokeStyle, path: this.path.map((piece) => [...piece]) }); }
  fill() { this.note("fill", { color: this.look.fillStyle, path: this.path.map((piece) => [...piece]) }); }
  strokeText(text) { this.note("halo", { color: this.look.strokeStyle, text, at: this.look.at }); }
  fillText(text, x, y) { this.note("text", { color: this.look.fillStyle, text, at: [this.look.at[0] + x, this.look.at[1] + y] }); }
  measureText(text) { return { width: 6 * text.length }; }
  createImageData(width, height) { return { width, height, data: new Uint8ClampedArray(4 * width * height) }; }
  putImageData(image) { this.canvas.image = image; }
  drawImage(canvas) { this.note("image", { at: this.look.at, scaled: this.look.scaled, pixels: Array.from(canvas.image.data) }); }
  createPattern(tile) { return { pattern: tile.pen.drawn[0].color, setTransform() {} }; }
}

globalThis.window = { devicePixelRatio: 1 };
globalThis.DOMMatrix = class {};
globalThis.document = {
  createElement() {
    const pen = new RecordedPen([]);
    return Object.assign(pen.canvas, { pen, getContext: () => pen });
  },
};
