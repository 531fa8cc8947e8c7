// Every text that a page shows, on canvases and in elements, with its box: which of them collide.

(() => {
  const pens = CanvasRenderingContext2D.prototype, { fillText, clearRect } = pens, written = new WeakMap();
  pens.clearRect = function (x, y, wide, tall) {
    if (wide >= this.canvas.width && tall >= this.canvas.height) written.set(this.canvas, []);
    return clearRect.call(this, x, y, wide, tall);
  };
  pens.fillText = function (text, x, y, ...most) {
    const ink = this.measureText(text), at = this.getTransform();
    const ends = [[x - ink.actualBoundingBoxLeft, y - ink.actualBoundingBoxAscent],
      [x + ink.actualBoundingBoxRight, y + ink.actualBoundingBoxDescent]];
    const [[x0, y0], [x1, y1]] = ends.map(([a, b]) => [a * at.a + b * at.c + at.e, a * at.b + b * at.d + at.f]);
    if (this.globalAlpha > 0.1) {
      if (!written.has(this.canvas)) written.set(this.canvas, []);
      written.get(this.canvas).push({ text, box: [x0, y0, x1, y1].map((value) => value / devicePixelRatio) });
    }
    return fillText.call(this, text, x, y, ...most);
  };
  const blockOf = (of) => {
    while (getComputedStyle(of).display.startsWith("inline") && of.parentElement) of = of.parentElement;
    return of;
  };
  const seen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  globalThis.textsOf = (root) => {
    const found = [];
    for (const canvas of root.querySelectorAll("canvas")) {
      if (!seen(canvas)) continue;
      const { left, top, right, bottom } = canvas.getBoundingClientRect();
      for (const { text, box: [x0, y0, x1, y1] } of written.get(canvas) || []) {
        const cut = Math.max(-x0, -y0, x1 + left - right, y1 + top - bottom);
        found.push({ text, box: [x0 + left, y0 + top, x1 + left, y1 + top], drawn: true, cut, of: canvas });
      }
    }
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      const { parentElement: of } = node, text = node.data.trim();
      if (!text || ["OPTION", "STYLE", "SCRIPT", "CAPTION", "TD", "TH"].includes(of.tagName) || !seen(of)) continue;
      if (of.closest(".ol-hidden")) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const { left, top, right, bottom } of range.getClientRects()) {
        const box = [left, top, right, bottom];
        for (let up = of; up && up !== root; up = up.parentElement) {
          if (getComputedStyle(up).overflow === "visible") continue;
          const clip = up.getBoundingClientRect();
          box[0] = Math.max(box[0], clip.left);
          box[1] = Math.max(box[1], clip.top);
          box[2] = Math.min(box[2], clip.right);
          box[3] = Math.min(box[3], clip.bottom);
        }
        if (box[2] > box[0] && box[3] > box[1]) found.push({ text, box, drawn: false, cut: 0, of: blockOf(of) });
      }
    }
    for (const of of root.querySelectorAll("select")) {
      if (!seen(of)) continue;
      const { left, top, right, bottom } = of.getBoundingClientRect();
      found.push({ text: of.selectedOptions[0]?.text || "", box: [left, top, right, bottom], drawn: false, cut: 0, of });
    }
    return found;
  };
  // What is drawn is measured by its ink, and a pixel apart; lines of elements are taller than their ink.
  globalThis.collisionsOf = (root) => {
    const texts = globalThis.textsOf(root), said = [];
    const own = root.getBoundingClientRect();
    texts.forEach((one, i) => {
      const [left, top, right] = one.box;
      if (one.cut > 1) said.push(`${one.text} is cut by ${Math.round(one.cut)} px`);
      if (left < own.left - 1 || right > own.right + 1) said.push(`${one.text} leaves the explorer`);
      for (const other of texts.slice(0, i)) {
        if (!one.drawn && one.of === other.of) continue;
        const room = one.drawn && other.drawn ? -1 : one.drawn || other.drawn ? 0 : 3;
        const across = Math.min(right, other.box[2]) - Math.max(left, other.box[0]);
        const along = Math.min(one.box[3], other.box[3]) - Math.max(top, other.box[1]);
        if (across > Math.min(room, 1) && along > room) said.push(`${one.text} | ${other.text}`);
      }
    });
    return said;
  };
})();
