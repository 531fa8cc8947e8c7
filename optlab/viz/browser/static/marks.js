// Marks: what a canvas shows, as plain data. They are those of Python's optlab/viz/backends/scene.py, which
// says what each field means and draws the same marks with plotly and matplotlib; `canvas.js` draws them here.
// Coordinates are those of the data, in arrays without an object a point; sizes are in pixels.

/** @typedef {{color: string, width: number, dash?: number[], opacity?: number}} Pen */
/** @typedef {{name: string, size: number, face: string, edge?: string, edge_width?: number, opacity?: number}} Marker */
/** @typedef {{color: string, pattern?: string, ink?: string}} Fill */
/** @typedef {ArrayLike<number | null>} Numbers */

/** @typedef {{kind: "Line", x: Numbers, y: Numbers, pen: Pen, clip?: boolean, stepped?: boolean}} LineMark */
/** @typedef {{kind: "Points", x: Numbers, y: Numbers, marker: Marker | null, seen?: ArrayLike<any> | null, faces?: string[], clip?: boolean, text?: string, side?: string | null, ink?: string}} PointsMark */
/** @typedef {{kind: "Text", x: number, y: number, text: string, ink: string, size: number, across?: string, up?: string, shift?: number[], bold?: boolean, angle?: number, halo?: boolean, ground?: number, opacity?: number}} TextMark */
/** @typedef {{kind: "Rule", along: string, at: number, pen: Pen, below?: boolean}} RuleMark */
/** @typedef {{kind: "Area", x: Numbers, low: Numbers, high: Numbers, fill: Fill, edge?: Pen | null}} AreaMark */
/** @typedef {{kind: "Band", x: Numbers, low: Numbers, high: Numbers, color: string, opacity: number}} BandMark */
/** @typedef {{kind: "Bars", lengths: Numbers, places: Numbers, thickness: number, fills: Fill[], edge?: Pen | null}} BarsMark */
/** @typedef {{kind: "Boxes", x0: Numbers, y0: Numbers, x1: Numbers, y1: Numbers, fills: Fill[], edge?: Pen | null, opacity?: number}} BoxesMark */
/** @typedef {{kind: "Region", x: Numbers, y: Numbers, fill: Fill, edge?: Pen | null, opacity?: number}} RegionMark */
/** @typedef {{kind: "Arrow", x0: number, y0: number, x1: number, y1: number, pen: Pen, halo?: boolean}} ArrowMark */
/** @typedef {{kind: "Contour", x: Numbers, y: Numbers, height: Numbers, levels: Numbers, colors: string[], pen: Pen}} ContourMark */
/** @typedef {{kind: "HeatMap", x: Numbers, y: Numbers, values: Numbers, low: number, high: number, colors: string[], smooth?: boolean, blended?: boolean, opacity?: number}} HeatMapMark */

/** @typedef {LineMark | PointsMark | TextMark | RuleMark | AreaMark | BandMark | BarsMark | BoxesMark | RegionMark | ArrowMark | ContourMark | HeatMapMark} Mark */

/** An axis: its ends, the high one first if it points down or left; powers of ten on a log axis.
 * @typedef {{low: number, high: number, scale?: string}} Axis */

/** Where marks are drawn: a rectangle of the canvas in pixels, its axes, and the color of the paper, which
 * halos have.
 * @typedef {{left: number, top: number, width: number, height: number, x: Axis, y: Axis, paper: string}} Frame */

/** @param {Numbers} x
 * @param {Numbers} y
 * @param {Pen} pen
 * @returns {LineMark} */
export const lineMark = (x, y, pen) => ({ kind: "Line", x, y, pen });

/** One marker.
 * @param {number} x
 * @param {number} y
 * @param {string} name
 * @param {number} size
 * @param {string} face
 * @param {string} [edge]
 * @param {number} [width] of the edge
 * @returns {PointsMark} */
export const pointMark = (x, y, name, size, face, edge = "", width = 1.5) => ({ kind: "Points", x: [x], y: [y], marker: { name, size, face, edge, edge_width: width } });

/** A text whose middle, or end, is at a point.
 * @param {number} x
 * @param {number} y
 * @param {string} text
 * @param {{ink: string, size: number, across?: string, shift?: number[], bold?: boolean, halo?: boolean, ground?: number, opacity?: number}} look
 * @returns {TextMark} */
export const textMark = (x, y, text, look) => ({ kind: "Text", x, y, text, across: "center", halo: false, ...look });

/** @param {string} along
 * @param {number} at
 * @param {string} color
 * @param {number} [width]
 * @returns {RuleMark} */
export const ruleMark = (along, at, color, width = 1) => ({ kind: "Rule", along, at, pen: { color, width } });

/** The line from a point to its label, where `leaderOf` has one: as a list, to be put among marks.
 * @param {{x: number[], y: number[]} | null} leader
 * @param {string} color
 * @param {number} [opacity]
 * @returns {Mark[]} */
export const leaderMarks = (leader, color, opacity = 1) => (leader ? [lineMark(leader.x, leader.y, { color, width: 1, opacity })] : []);

/** Boxes of one fill.
 * @param {Numbers} x0
 * @param {Numbers} y0
 * @param {Numbers} x1
 * @param {Numbers} y1
 * @param {Fill} fill
 * @param {number} [opacity]
 * @returns {BoxesMark} */
export const boxesMark = (x0, y0, x1, y1, fill, opacity = 1) => ({ kind: "Boxes", x0, y0, x1, y1, fills: [fill], opacity });

/** A frame whose coordinates are the pixels of its canvas.
 * @param {number} width
 * @param {number} height
 * @param {string} paper
 * @returns {Frame} */
export const pixelFrame = (width, height, paper) => ({ left: 0, top: 0, width, height, x: { low: 0, high: width }, y: { low: height, high: 0 }, paper });

/** A copy of data in which colors of one palette are those of the same name in another.
 * @template T
 * @param {T} given
 * @param {Record<string, string>} from
 * @param {Record<string, string>} to
 * @returns {T} */
export function recolored(given, from, to) {
  const other = new Map(Object.entries(from).map(([name, color]) => [color, to[name]]));
  /** @param {any} one
   * @returns {any} */
  const copied = (one) => {
    if (typeof one === "string") return other.get(one) ?? one;
    if (Array.isArray(one)) return one.map(copied);
    return one && typeof one === "object" ? Object.fromEntries(Object.entries(one).map(([name, value]) => [name, copied(value)])) : one;
  };
  return copied(given);
}
