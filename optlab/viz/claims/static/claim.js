// A claim figure: a sentence, a map, a chart, and a slider through positions that were computed before.
// It is an inline module of its output: no imports, no requests, nothing global.
// @ts-check

const ID = "OPTLAB_CLAIM_ID";
/** Steps of the slider; it snaps to the positions, which need not be evenly spaced. */
const STEPS = 1000;
const SVG = "http://www.w3.org/2000/svg";
const MARKERS = {
  circle: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  square: (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  diamond: (r) => `M0 ${-1.3 * r}l${1.3 * r} ${1.3 * r}l${-1.3 * r} ${1.3 * r}l${-1.3 * r} ${-1.3 * r}z`,
  "triangle-up": (r) => `M0 ${-1.2 * r}l${1.2 * r} ${2.1 * r}h${-2.4 * r}z`,
  "triangle-down": (r) => `M0 ${1.2 * r}l${1.2 * r} ${-2.1 * r}h${-2.4 * r}z`,
};
const STAR = "M0-9l2.6 5.6 6.1.7-4.5 4.2 1.2 6L0 3.5-5.4 6.5l1.2-6-4.5-4.2 6.1-.7z";

/** Make an element with attributes, and children or text. */
function make(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "text", "tspan", "clipPath", "rect", "circle"].includes(name);
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

const pen = document.createElement("canvas").getContext("2d");
/** The width of a text in pixels. */
function measured(text, font) {
  pen.font = `${font} Inter, "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif`;
  return pen.measureText(text).width;
}

/** The theme of the page: JupyterLab's, a site's, or the system's. */
function pageTheme() {
  const lab = document.body.getAttribute("data-jp-theme-light");
  if (lab) return lab === "true" ? "light" : "dark";
  const site = document.documentElement.getAttribute("data-theme");
  if (site === "light" || site === "dark") return site;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

class ClaimFigure {
  constructor(host, data, style) {
    this.data = data;
    this.at = data.at;
    try {
      const kept = Number(sessionStorage.getItem(ID));
      if (sessionStorage.getItem(ID) !== null && kept >= 0 && kept < data.labels.length) this.at = kept;
    } catch { /* a page without storage forgets the position */ }
    const shadow = host.attachShadow({ mode: "open" });
    const sheet = document.createElement("style");
    sheet.textContent = style;
    this.root = make("section", { class: "optlab-claim" });
    shadow.append(sheet, this.root);
    this.build();
    new ResizeObserver(() => this.resize()).observe(this.root);
    this.followTheme();
    this.recolor();
  }

  /** Follow the page's theme as long as the figure is on it: a cell that runs again leaves nothing behind. */
  followTheme() {
    const weak = new WeakRef(this);
    const system = matchMedia("(prefers-color-scheme: dark)");
    const themed = new MutationObserver(changed);
    function changed() {
      const figure = weak.deref();
      if (figure && figure.root.isConnected) return figure.recolor();
      themed.disconnect();
      system.removeEventListener("change", changed);
      return undefined;
    }
    themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    system.addEventListener("change", changed);
  }

  build() {
    const { data } = this;
    this.sentence = make("p", { class: "optlab-claim-sentence", role: "heading", "aria-level": "3" });
    for (const [text, who] of data.sentence) {
      this.sentence.append(who === null ? text : make("span", { "data-who": who }, text));
    }
    this.title = make("p", { class: "optlab-claim-head" });
    this.map = make("svg", { role: "img" });
    this.chart = make("svg", { class: "optlab-claim-chart", "aria-hidden": "true" });
    this.input = make("input", { type: "range", min: 0, max: STEPS, step: 1, value: STEPS * data.places[this.at],
      "aria-label": data.question || data.measured, "data-lm-suppress-shortcuts": "true" });
    this.stops = make("div", { class: "optlab-claim-stops", "aria-hidden": "true" });
    this.said = make("div", { class: "optlab-claim-said", "aria-live": "polite" });
    const asks = make("div", { class: "optlab-claim-asks" }, make("b", {}, `${data.question || "Another position?"} Drag.`),
      make("span", {}, data.setting));
    this.root.append(this.sentence, make("div", { class: "optlab-claim-body" },
      make("div", {}, this.title, this.map),
      make("div", {}, make("p", { class: "optlab-claim-head" }, data.measured), this.chart), asks,
      make("div", { class: "optlab-claim-slider" }, this.input, this.stops)), this.said);
    if (data.note) this.root.append(make("p", { class: "optlab-claim-note" }, data.note));
    this.input.addEventListener("input", () => this.go(this.nearest(Number(this.input.value) / STEPS)));
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    for (const kind of ["keydown", "keyup"]) this.root.addEventListener(kind, (event) => event.stopPropagation());
    this.chart.addEventListener("pointerdown", (event) => {
      this.chart.setPointerCapture(event.pointerId);
      this.drag(event);
      event.preventDefault();
      this.input.focus({ preventScroll: true });
    });
    this.chart.addEventListener("pointermove", (event) => {
      if (event.buttons && this.chart.hasPointerCapture(event.pointerId)) this.drag(event);
    });
  }

  drag(event) {
    const box = this.chart.getBoundingClientRect();
    this.go(this.nearest((event.clientX - box.left - this.left) / (this.right - this.left)));
  }

  /** The position nearest to a place along the slider, from 0 to 1. */
  nearest(part) {
    const { places } = this.data;
    let best = 0;
    places.forEach((place, i) => { if (Math.abs(place - part) < Math.abs(places[best] - part)) best = i; });
    return best;
  }

  onKey(event) {
    const last = this.data.labels.length - 1;
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -3, PageUp: 3, Home: -last, End: last };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.go(Math.min(last, Math.max(0, this.at + moves[event.key])));
  }

  go(at) {
    this.input.value = String(STEPS * this.data.places[at]);
    if (at === this.at) return;
    this.at = at;
    try { sessionStorage.setItem(ID, String(at)); } catch { /* forgotten */ }
    this.draw();
  }

  recolor() {
    this.page = pageTheme();
    this.root.setAttribute("data-page", this.page);
    for (const span of this.sentence.querySelectorAll("[data-who]")) span.style.color = this.color(Number(span.dataset.who));
    this.resize();
  }

  color(who) { return this.data.styles[who][this.page]; }

  resize() {
    const width = this.root.clientWidth;
    if (!width) return;
    this.root.toggleAttribute("data-narrow", width < 600);
    const room = this.chart.parentElement.clientWidth;
    this.width = room;
    this.height = width < 600 ? 220 : Math.round((this.map.clientWidth * this.data.size[1]) / this.data.size[0]) + 30;
    this.left = 16 + Math.max(...this.data.ticks.map(([, text]) => measured(text, "13px")));
    this.right = room - Math.max(14, measured(this.data.labels[this.data.labels.length - 1], "13px") / 2);
    this.input.style.marginLeft = `${this.left - 12}px`;
    this.input.style.width = `${this.right - this.left + 24}px`;
    this.draw();
  }

  draw() {
    const { data, at } = this;
    this.drawMap(data.maps[at]);
    this.drawChart();
    const part = 100 * data.places[at];
    this.input.style.setProperty("--filled", `linear-gradient(to right, var(--ink) ${part}%, var(--track) ${part}%)`);
    const said = `${data.labels[at]}: ${data.names.map((name, i) => `${name} ${data.texts[i][at]}`).join(", ")}`;
    this.input.setAttribute("aria-valuetext", said);
    this.said.textContent = said;
    this.drawStops();
  }

  drawStops() {
    let shown = this.data.majors;
    const wide = 16 + Math.max(...shown.map((i) => measured(this.data.labels[i], "13px")));
    const close = (i, k) => k && (this.data.places[i] - this.data.places[shown[k - 1]]) * (this.right - this.left) < wide;
    while (shown.length > 2 && shown.some(close)) shown = shown.filter((_, k) => k % 2 === 0 || k === shown.length - 1);
    if (shown.length > 2 && close(shown[shown.length - 1], shown.length - 1)) shown = shown.filter((_, k) => k !== shown.length - 2);
    this.stops.replaceChildren(...shown.map((i) => {
      const stop = make("span", {}, this.data.labels[i]);
      stop.style.left = `${this.across(i)}px`;
      return stop;
    }));
  }

  drawMap(one) {
    const [width, height, units] = this.data.size;
    this.title.textContent = one.title;
    this.map.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const scale = width / (this.map.clientWidth || width);
    this.map.setAttribute("aria-label", `${one.title}: ${this.data.names.join(", ")}`);
    const clip = `optlab-claim-clip`;
    const inner = make("g", { "clip-path": `url(#${clip})` }, make("rect", { width, height, fill: "var(--ground)" }));
    const lines = make("g", { transform: `scale(${1 / units})`, fill: "none" });
    for (const d of one.regions) {
      lines.append(make("path", { d, fill: "var(--band)", "fill-opacity": 0.08, "fill-rule": "evenodd", stroke: "var(--line)",
        "stroke-width": 0.7, "vector-effect": "non-scaling-stroke" }));
    }
    one.paths.forEach((d, i) => {
      const thin = one.dense[i];
      if (!thin) lines.append(make("path", { d, stroke: "var(--ground)", "stroke-width": 5, "stroke-opacity": 0.8, "vector-effect": "non-scaling-stroke" }));
      lines.append(make("path", { d, stroke: this.color(i), "stroke-width": thin ? 1 : 2.2, "stroke-linejoin": "round",
        "stroke-dasharray": this.data.styles[i].dash.join(" ") || null, "vector-effect": "non-scaling-stroke" }));
    });
    inner.append(lines);
    one.dots.forEach((dots, i) => {
      for (let k = 0; k < dots.length; k += 2) {
        inner.append(make("circle", { cx: dots[k] / units, cy: dots[k + 1] / units, r: 2.6 * scale, fill: this.color(i) }));
      }
    });
    for (const [x, y] of one.minima) {
      inner.append(make("path", { d: STAR, fill: "var(--ink)", stroke: "var(--paper)", "stroke-width": 1,
        transform: `translate(${x / units} ${y / units}) scale(${scale})` }));
    }
    const [x, y] = [one.start[0] / units, one.start[1] / units];
    inner.append(make("circle", { cx: x, cy: y, r: 6 * scale, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2.4 * scale }));
    const mark = make("text", { class: "optlab-claim-mark", x, y: y - 12 * scale, "text-anchor": x < 40 ? "start" : x > width - 40 ? "end" : "middle" }, "start");
    mark.style.fontSize = `${14 * scale}px`;
    mark.style.strokeWidth = `${4 * scale}px`;
    inner.append(mark);
    this.map.replaceChildren(make("clipPath", { id: clip }, make("rect", { width, height, rx: 6 })), inner);
  }

  /** The place of a value on the chart, from its upper edge. */
  up(value) {
    const [low, high] = this.data.range;
    const part = this.data.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return 8 + (this.height - 16) * (1 - part);
  }

  across(i) { return this.left + (this.right - this.left) * this.data.places[i]; }

  drawChart() {
    const { data, at, width, height } = this;
    this.chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.chart.style.height = `${height}px`;
    const parts = [];
    for (const [value, text] of data.ticks) {
      const y = this.up(value);
      if (y < 4 || y > height - 2) continue;
      parts.push(make("line", { x1: this.left, x2: this.right, y1: y, y2: y, stroke: "var(--rule)" }));
      parts.push(make("text", { x: this.left - 10, y: y + 4.5, "text-anchor": "end" }, text));
    }
    const x = this.across(at);
    parts.push(make("line", { x1: x, x2: x, y1: 0, y2: height, stroke: "var(--ink)", "stroke-width": 1.4 }));
    const dense = [];
    data.values.forEach((row, i) => {
      let d = "";
      row.forEach((value, k) => {
        if (value === null) return;
        d += `${k && row[k - 1] !== null ? "L" : "M"}${this.across(k).toFixed(1)} ${this.up(value).toFixed(1)}`;
        if (k && row[k - 1] !== null) {
          const [x0, y0, x1, y1] = [this.across(k - 1), this.up(row[k - 1]), this.across(k), this.up(value)];
          for (let s = 0; s <= 12; s++) dense.push([x0 + ((x1 - x0) * s) / 12, y0 + ((y1 - y0) * s) / 12]);
        }
      });
      parts.push(make("path", { d, fill: "none", stroke: this.color(i), "stroke-width": 2.6, "stroke-linejoin": "round",
        "stroke-dasharray": data.styles[i].dash.join(" ") || null }));
    });
    const taken = [];
    const order = data.values.map((row, i) => i).filter((i) => data.values[i][at] !== null);
    for (const i of order) {
      const y = this.up(data.values[i][at]);
      const shape = (MARKERS[data.styles[i].marker] || MARKERS.circle)(7);
      parts.push(make("path", { d: shape, transform: `translate(${x} ${y})`, fill: this.color(i), stroke: "var(--paper)", "stroke-width": 1.5 }));
      taken.push([x - 9, y - 9, x + 9, y + 9]);
    }
    const heights = order.map((i) => this.up(data.values[i][at]));
    const asked = order.map((i, k) => {
      const prefers = order.length < 2 ? 0 : heights[k] === Math.min(...heights) ? -1 : heights[k] === Math.max(...heights) ? 1 : 0;
      return { i, y: heights[k], prefers };
    });
    // The first takes the best place: which one is first decides how well all of them stand.
    const tried = [asked, [...asked].reverse()].map((turn) => {
      const placed = [];
      for (const one of turn) placed.push({ ...one, ...this.placed(one, x, dense, taken, placed, heights) });
      return placed;
    });
    const costs = tried.map((placed) => placed.reduce((sum, one) => sum + one.cost, 0));
    for (const one of tried[costs[1] < costs[0] ? 1 : 0]) parts.push(this.label(one));
    this.chart.replaceChildren(...parts);
  }

  /** Where a name and its value cover least of the curves and of each other; the upper curve has the upper one. */
  placed({ i, y, prefers }, x, dense, taken, placed, others) {
    const widest = (rows) => Math.max(...rows.map((row) => measured(row, "700 15px")));
    let rows = [this.data.names[i], this.data.texts[i][this.at]];
    // On a small chart a name of several words takes several lines.
    if (widest(rows) > 0.42 * (this.right - this.left)) rows = [...rows[0].split(" "), rows[1]];
    const wide = widest(rows), tall = 19 * rows.length;
    let best = null;
    for (const side of [1, -1]) {
      for (const shift of [10, -tall - 10, 24, -tall - 24, -tall / 2, 44, -tall - 44, 66, -tall - 66, -tall - 90]) {
        const left = side > 0 ? x + 14 : x - 14 - wide;
        const top = y + shift;
        const box = [left, top, left + wide, top + tall];
        let cost = Math.abs(shift + tall / 2) / 40 + (prefers * (shift + tall / 2) < 0 ? 12 : 0);
        cost += Math.max(0, this.left - left) + 10 * Math.max(0, box[2] - this.width);
        cost += 20 * (Math.max(0, -top) + Math.max(0, box[3] - this.height));
        for (const [px, py] of dense) if (px > box[0] - 3 && px < box[2] + 3 && py > box[1] - 2 && py < box[3] + 2) cost += 2;
        for (const other of [...taken, ...placed.map((one) => one.box)]) if (box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]) cost += 40;
        for (const other of placed) if ((y - other.y) * (top + box[3] - other.box[1] - other.box[3]) < 0) cost += 60;
        // Behind the point of another curve it would seem to belong to that one.
        for (const other of others) if ((other - y) * (top + tall / 2 - other) > 0) cost += 25;
        if (best === null || cost < best.cost) best = { cost, box, side, rows };
      }
    }
    return best;
  }

  label({ i, box, side, rows }) {
    const end = side > 0 ? box[0] : box[2];
    const text = make("text", { class: "optlab-claim-value", "text-anchor": side > 0 ? "start" : "end" });
    rows.forEach((row, k) => text.append(make("tspan", { x: end, y: box[1] + 14 + 19 * k }, row)));
    text.style.fill = this.color(i);
    return text;
  }
}

for (const place of document.querySelectorAll(`[data-ol="${ID}"]:not([data-live])`)) {
  place.setAttribute("data-live", "");
  const read = (kind) => JSON.parse(place.querySelector(`script.optlab-claim-${kind}`).textContent);
  const host = document.createElement("div");
  new ClaimFigure(host, read("data"), read("style"));
  place.querySelector("img").replaceWith(host);
  place.querySelector("p.optlab-claim-still").remove();
}
