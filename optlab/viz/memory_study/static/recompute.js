// A memory study, one run at a time. Numbers and texts come from Python; this code draws them and
// changes the selected run.

import { between, linearTicks, markerOutline, placeLabel } from "../../browser/static/drawing.js";
import { classes, fill, make, makeButton, put } from "../../browser/static/elements.js";
import { Widget } from "../../browser/static/widget.js";

const PAD = { left: 46, right: 10, top: 20, bottom: 22 };

// The canvas interface of `markerOutline`, recorded as an SVG path.
class PathPen {
  constructor() { this.d = ""; }
  closePath() { this.d += "Z"; }
  moveTo(x, y) { this.d += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.d += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  arc(x, y, r) { this.d = `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`; }
}

function markerShape(marker, x, y, size) {
  const pen = new PathPen();
  markerOutline(pen, marker, x, y, size);
  return pen.d;
}

const plainNumber = (value) => String(Number(value.toPrecision(4))).replace("-", "−");

class RecomputeExplorer extends Widget {
  constructor(model, element) {
    super(model);
    this.view = model.get("view");
    this.last = this.view.runs.length - 1;
    this.selected = Math.max(0, Math.min(this.last, model.get("selected")));
    this.ruler = make("canvas").getContext("2d");
    this.id = `optlab-${Math.random().toString(36).slice(2)}`;
    this.build(element);
    this.listen();
    this.onModel("change:selected", () => this.go(this.model.get("selected")));
    this.paint(this.view.palette);
    this.resize();
  }

  build(element) {
    const { view } = this;
    const button = (text, label, click) => makeButton(text, label, click, { class: "round small" });
    this.slider = make("input", { type: "range", min: "0", max: this.last, step: "1", "aria-label": "the run that is shown", on: { input: () => this.go(Number(this.slider.value)) } });
    this.label = make("span", { class: "stage" });
    const transport = make("div", { class: "transport" }, button("◀\uFE0E", "the run before", () => this.go(this.selected - 1)), this.slider, button("▶\uFE0E", "the next run", () => this.go(this.selected + 1)), this.label);
    this.said = make("p", { class: "said", "aria-live": "polite" });
    const plot = (label) => make("div", { class: "plot", tabindex: "0", role: "group", "aria-label": `${label}: left and right arrows choose a run` });
    this.timeline = plot("memory of the run over its events");
    this.plane = plot("memory against time");
    this.peakTitle = make("h4");
    this.shares = make("table", { class: "shares" });
    this.legend = make("div", { class: "legend" }, ...view.roles.map(([role, name, color]) => make("span", {}, make("i", { style: `background: ${color}` }), name)));
    this.rows = view.runs.map((run, i) => make("tr", { on: { click: () => this.go(i) } }, ...run.texts.map((text) => make("td", { text }))));
    const table = make("table", { class: "rows" }, make("thead", {}, make("tr", {}, ...view.heads.map((text) => make("th", { scope: "col", text })))), make("tbody", {}, ...this.rows));
    this.root = make(
      "div", { class: "optlab-recompute", role: "group", "aria-label": view.title },
      make("h3", { text: view.title }), make("p", { class: "headline", text: view.headline }),
      transport, this.said,
      make(
        "div", { class: "columns" },
        make("div", {}, make("h4", {}, "Memory of the run", make("span", { class: "quiet", text: "MiB above the start, over its events; dotted: the plain peak" })), this.timeline, this.legend),
        make("div", {}, make("h4", {}, "Memory against time", make("span", { class: "quiet", text: "MiB; % beyond the plain time" })), this.plane),
      ),
      make("div", { class: "peak" }, this.peakTitle, this.shares),
      make("details", {}, make("summary", { tabindex: "0", text: "All runs as a table" }), make("div", { class: "wide" }, table)),
      make("p", { class: "note", text: view.note }),
    );
    this.root.explorer = this;
    this.mount(element, STYLE);
  }

  themed() {
    this.paint(this.view.palette);
    this.update();
  }

  resized(width) {
    this.root.classList.toggle("ol-narrow", width < 780);
    this.update();
  }

  go(run) {
    const to = Math.max(0, Math.min(this.last, run));
    if (to === this.selected) return;
    this.selected = to;
    this.update();
    this.tell("selected", to);
  }

  onKey(event) {
    if (["INPUT", "SUMMARY"].includes(event.target.tagName)) return false;
    if (event.key === "ArrowRight") this.go(this.selected + 1);
    else if (event.key === "ArrowLeft") this.go(this.selected - 1);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.last);
    else return false;
    return true;
  }

  update() {
    const { view, selected } = this;
    const run = view.runs[selected];
    this.slider.value = selected;
    fill(this.slider);
    this.slider.setAttribute("aria-valuetext", run.name);
    this.label.replaceChildren(make("span", { class: "quiet", text: `${selected + 1} / ${this.last + 1}` }), make("b", { text: run.name }));
    put(this.said, run.said);
    this.rows.forEach((row, i) => row.setAttribute("class", classes(i === selected ? "chosen" : "")));
    this.drawTimeline(run);
    this.drawPlane();
    this.tellPeak(run);
  }

  // Axes of a plot: the map from values to pixels, and the lines and numbers of the grid.
  axes(box, x0, x1, y0, y1, height, x_unit = "") {
    const width = Math.max(220, box.clientWidth);
    const x = (value) => PAD.left + ((value - x0) / (x1 - x0)) * (width - PAD.left - PAD.right);
    const y = (value) => height - PAD.bottom - ((value - y0) / (y1 - y0)) * (height - PAD.top - PAD.bottom);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
    for (const value of linearTicks(y0, y1, 5)) svg.append(make("line", { class: value === 0 ? "zero" : "grid", x1: x(x0), x2: x(x1), y1: y(value), y2: y(value) }), make("text", { x: PAD.left - 6, y: y(value) + 4, "text-anchor": "end", text: plainNumber(value) }));
    for (const value of linearTicks(x0, x1, 6)) svg.append(make("line", { class: value === 0 ? "zero" : "grid", x1: x(value), x2: x(value), y1: y(y0), y2: y(y1) }), make("text", { x: x(value), y: height - 6, "text-anchor": "middle", text: plainNumber(value) + x_unit }));
    return { svg, x, y, width };
  }

  patterns() {
    const defs = make("defs");
    for (const [role, , color, pattern] of this.view.roles) {
      const lines = { "/": "M-1 1L1 -1M0 7L7 0M6 8L8 6", x: "M0 0L7 7M7 0L0 7", ".": "M3 3h1v1h-1z" }[pattern] || "";
      defs.append(make("pattern", { id: `${this.id}-${role}`, width: 7, height: 7, patternUnits: "userSpaceOnUse" }, make("rect", { width: 7, height: 7, fill: color }), make("path", { d: lines, stroke: "#1f2328", "stroke-opacity": 0.35, "stroke-width": 0.9, fill: "none" })));
    }
    return defs;
  }

  drawTimeline(run) {
    const { view } = this;
    const { svg, x, y, width } = this.axes(this.timeline, 0, view.events, 0, view.top, 290);
    const { line } = run;
    svg.prepend(this.patterns());
    svg.setAttribute("aria-label", run.said);
    if (line) {
      const low = line.edges.slice(1).map(() => 0);
      for (const [role] of view.roles) {
        const high = low.map((value, i) => value + line.bands[role][i]);
        if (line.bands[role].some((value) => value > 0)) {
          const there = [], back = [];
          high.forEach((value, i) => {
            const left = x(line.edges[i]).toFixed(1), right = x(line.edges[i + 1]).toFixed(1);
            there.push(`${left} ${y(value).toFixed(1)}L${right} ${y(value).toFixed(1)}`);
            back.unshift(`${right} ${y(low[i]).toFixed(1)}L${left} ${y(low[i]).toFixed(1)}`);
          });
          svg.append(make("path", { d: `M${there.join("L")}L${back.join("L")}Z`, fill: `url(#${this.id}-${role})`, "data-role": role }));
        }
        high.forEach((value, i) => { low[i] = value; });
      }
      svg.append(make("line", { class: "ghost", x1: x(0), x2: x(view.events), y1: y(view.plain), y2: y(view.plain) }));
      const [at, height] = line.peak, right = at > view.events / 2;
      svg.append(make("path", { d: markerShape("triangle-down", x(at), y(height) - 5, 10), fill: "var(--ink)" }));
      svg.append(make("text", { class: "strong peak", x: x(at) + (right ? -10 : 10), y: y(height) - 4, "text-anchor": right ? "end" : "start", text: line.peakText }));
      const hover = make("title");
      const cover = make("rect", { x: x(0), y: y(view.top), width: x(view.events) - x(0), height: y(0) - y(view.top), fill: "transparent" }, hover);
      cover.addEventListener("pointermove", (event) => {
        const box = svg.getBoundingClientRect();
        const event_at = ((event.clientX - box.left) * (width / box.width) - x(0)) / ((x(view.events) - x(0)) / view.events);
        const i = line.edges.findIndex((edge, k) => event_at >= edge && event_at < line.edges[k + 1]);
        hover.textContent = i < 0 ? "" : line.tips[i].join("\n");
      });
      svg.append(cover);
    } else {
      svg.append(make("text", { class: "strong", x: width / 2, y: 140, "text-anchor": "middle", text: run.instead }));
    }
    this.timeline.replaceChildren(svg);
  }

  drawPlane() {
    const { view, selected } = this;
    const [x0, x1, y0, y1] = view.box;
    const { svg, x, y, width } = this.axes(this.plane, x0, x1, y0, y1, 290, "%");
    const path = (points) => {
      let d = "", broken = true;
      for (const [a, b] of points) {
        if (a === null || b === null) broken = true;
        else {
          d += `${broken ? "M" : "L"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`;
          broken = false;
        }
      }
      return d;
    };
    const taken = [], along = [];
    for (const bound of view.bounds) {
      svg.append(make("path", { class: "bound", d: path(bound.points), "stroke-dasharray": bound.dash.join(" ") || false }));
      along.push(...between(bound.points.map(([a, b]) => (a === null || b === null ? null : [x(a), y(b)]))));
    }
    const steps = view.front.flatMap(([a, b], i) => (i ? [[view.front[i - 1][0], b], [a, b]] : [[a, b]]));
    svg.append(make("path", { class: "front", d: path(steps) }));
    along.push(...between(steps.map(([a, b]) => [x(a), y(b)])));
    const order = view.runs.map((_, i) => i).sort((a, b) => Number(a === selected) - Number(b === selected));
    for (const i of order) {
      const run = view.runs[i], chosen = i === selected;
      if (!run.point) continue;
      const [px, py] = [x(run.point[0]), y(run.point[1])];
      taken.push([px - 8, py - 8, px + 8, py + 8]);
      svg.append(make("path", { class: `run${chosen ? " chosen" : ""}`, d: markerShape(run.marker, px, py, chosen ? 15 : 10), fill: run.color[this.theme], stroke: chosen ? "var(--ink)" : "var(--paper)", "stroke-width": 1.4, "data-run": i, on: { click: () => this.go(i) } }, make("title", { text: run.said })));
    }
    // The selected run is labeled first, in the best position.
    const name = (text, px, py, distance, options) => {
      const spot = placeLabel(this.ruler, text, px, py, 12, width, 290 - PAD.bottom, taken, distance, along);
      svg.append(make("text", { x: spot.cx, y: spot.cy + 4, "text-anchor": "middle", text, ...options }));
    };
    for (const i of order.reverse()) {
      const run = view.runs[i];
      if (run.point) name(run.name, x(run.point[0]), y(run.point[1]), i === selected ? 13 : 8, i === selected ? { class: "strong" } : { class: "named", style: `fill: ${run.color[this.theme]}` });
    }
    for (const bound of view.bounds) if (bound.label) name(bound.name, x(bound.label[0]), y(bound.label[1]), 4, { class: "named" });
    this.plane.replaceChildren(svg);
  }

  tellPeak(run) {
    const { line } = run;
    this.peakTitle.replaceChildren();
    if (line) this.peakTitle.append("At its peak", make("span", { class: "quiet", text: `in ${line.where}: whose arrays are alive that were not at the start` }));
    const colors = Object.fromEntries(this.view.roles.map(([role, , color]) => [role, color]));
    this.shares.replaceChildren(...(line ? line.shares : []).map(([text, size, part, role]) => make("tr", {}, make("td", { text }), make("td", { text: size }), make("td", {}, make("i", { style: `width: ${(100 * part).toFixed(1)}%; background: ${colors[role] || "var(--frame)"}` })))));
  }

  destroy() {
    super.destroy();
    delete this.root.explorer;
    this.view = null;
  }
}

/** @param {{model: any, el: HTMLElement}} given */
export function render({ model, el }) {
  const explorer = new RecomputeExplorer(model, el);
  return () => explorer.destroy();
}
