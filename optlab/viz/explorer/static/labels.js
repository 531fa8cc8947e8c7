// The labels of a picture. All that stands in it is known here, whichever canvas or element it is on, and
// every label asks here for its place: none covers another.

import { FONTS, OUTSIDE, between, isFar, leaderOf, placeLabel } from "../../browser/static/drawing.js";
import { leaderMarks, textMark } from "../../browser/static/marks.js";

/** @typedef {import("../../browser/static/marks.js").Mark} Mark */
/** @typedef {import("../../browser/static/marks.js").TextMark} TextMark */

const FARTHER = [0, 9, 21, 36, 60, 96]; // more pixels from its point, where beside it there is no room
const DEAR = 0.3; // what a pixel farther costs
const TOUCHING = 60; // what it costs to cover another, beside how much
const CROSSING = 25; // what it costs that the line to it crosses another
const GAP = 4; // between what is drawn at its point and the line to it, which would else seem to be a part of that
const SMALL = 0.85; // of its size a text has where it would cover another
const ENOUGH = 12; // of a place that costs less no box is touched: no better one is looked for

/** By how much two boxes overlap across and along; below zero, how far they are apart.
 * @param {number[]} one
 * @param {number[]} other */
const overlap = (one, other) => [0, 1].map((c) => Math.min(one[c + 2], other[c + 2]) - Math.max(one[c], other[c]));

/** How far a point is from a box.
 * @param {number[]} box
 * @param {number} x
 * @param {number} y */
const gapTo = ([x0, y0, x1, y1], x, y) => Math.hypot(Math.max(x0 - x, 0, x - x1), Math.max(y0 - y, 0, y - y1));

/** Points along a line to a label.
 * @param {{x: number[], y: number[]} | null} line */
const along = (line) => (line ? between([[line.x[0], line.y[0]], [line.x[1], line.y[1]]], 5, 60) : []);

export class Labels {
  /** @param {CanvasRenderingContext2D} pen that measures
   * @param {number} width
   * @param {number} height
   * @param {Labels | null} [below] the labels of what lies under this */
  constructor(pen, width, height, below = null) {
    this.pen = pen;
    this.width = width;
    this.height = height;
    /** @type {number[][]} */
    this.boxes = below ? [...below.boxes] : [];
    /** Where lines are, which a label rather does not cross. @type {number[][]} */
    this.points = below ? [...below.points] : [];
    /** The color of lines to labels; "" for that of their texts. */
    this.leader = below ? below.leader : "";
  }

  /** Keep a box free of labels.
   * @param {number} x its middle
   * @param {number} y
   * @param {number} half half its width
   * @param {number} [tall] half its height */
  keepFree(x, y, half, tall = half) {
    this.boxes.push([x - half, y - tall, x + half, y + tall]);
  }

  /** Keep the box of an element over the picture free.
   * @param {HTMLElement} element */
  keepElement({ offsetLeft: x, offsetTop: y, offsetWidth: wide, offsetHeight: tall }) {
    if (wide) this.boxes.push([x, y, x + wide, y + tall]);
  }

  /** Keep labels off a line, where they can.
   * @param {number[][]} points along it
   * @param {number} [times] as much */
  keepOff(points, times = 1) {
    for (let k = 0; k < times; k++) this.points.push(...points);
  }

  /** How far a box is from all others; 0 where it touches one.
   * @param {number[]} box */
  room(box) {
    let least = Infinity;
    for (const other of this.boxes) {
      const [across, along] = overlap(box, other).map((by) => Math.max(0, -by));
      least = Math.min(least, Math.hypot(across, along));
    }
    return least;
  }

  /** How many boxes a line to a label runs through, beside the one of its point. Of a mark that reaches as far as
   * that point it is the middle, and counts twice: the line would seem to belong to it.
   * @param {{x: number[], y: number[]} | null} line
   * @param {number} px
   * @param {number} py */
  crossed(line, px, py) {
    if (!line) return 0;
    const places = along(line);
    let count = 0;
    for (const [x0, y0, x1, y1] of this.boxes) {
      const holds = (/** @type {number} */ x, /** @type {number} */ y) => x > x0 && x < x1 && y > y0 && y < y1;
      if (!holds(px, py)) count += Number(places.some(([x, y]) => holds(x, y)));
      else {
        const cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
        if (Math.hypot(cx - px, cy - py) > 3 && places.some(([x, y]) => Math.hypot(cx - x, cy - y) < 8)) count += 2;
      }
    }
    return count;
  }

  /** The width of a text.
   * @param {string} text
   * @param {{size: number, bold?: boolean}} look */
  wide(text, { size, bold }) {
    this.pen.font = `${bold ? "bold " : ""}${size}px ${FONTS}`;
    return this.pen.measureText(text).width;
  }

  /** A text in lines that are so wide at most.
   * @param {string} text
   * @param {{size: number, bold?: boolean}} look
   * @param {number} most
   * @returns {string[]} */
  lines(text, look, most) {
    const found = [""];
    for (const word of text.split(" ")) {
      const line = `${found[found.length - 1]} ${word}`.trim();
      if (this.wide(line, look) > most && found[found.length - 1]) found.push(word);
      else found[found.length - 1] = line;
    }
    return found;
  }

  /** The box of a text.
   * @param {TextMark} mark
   * @returns {number[]} */
  boxOf(mark) {
    const { x, y, size, across } = mark, wide = this.wide(mark.text, mark);
    const left = across === "left" ? x : across === "right" ? x - wide : x - wide / 2;
    return [left - 3, y - 0.7 * size, left + wide + 3, y + 0.7 * size];
  }

  /** A text that stands where it is, whatever else does.
   * @param {TextMark} mark
   * @returns {Mark[]} */
  put(mark) {
    this.boxes.push(this.boxOf(mark));
    return [mark];
  }

  /** Whether a text may stand where it is: inside, and where neither another nor a line is.
   * @param {TextMark} mark */
  fits(mark) {
    const box = this.boxOf(mark), [x0, y0, x1, y1] = box;
    if (x0 < -5 || x1 > this.width + 5 || !(this.room(box) > 0)) return false;
    return !this.points.some(([x, y]) => x > x0 && x < x1 && y > y0 && y < y1);
  }

  /** The first of some texts that fits where it is; nothing where none does.
   * @param {TextMark[]} marks
   * @returns {TextMark[]} */
  offer(...marks) {
    const found = marks.find((mark) => this.fits(mark));
    if (found) this.boxes.push(this.boxOf(found));
    return found ? [found] : [];
  }

  /** The text of points: beside the one where there is most room. Where a label has to go far from its point,
   * a thin line leads to it.
   * @param {string} text
   * @param {number[][]} points
   * @param {{ink: string, size: number, bold?: boolean, opacity?: number}} look
   * @param {object} [how]
   * @param {number} [how.distance] from the point to the text
   * @param {number} [how.mark] the radius of what is drawn at the point
   * @param {number} [how.most] what its place may cost: above that, over another or far away it is not written;
   * without this it always is
   * @param {string} [how.leader] the color of the line that leads to it; "" has none
   * @param {boolean} [how.always] it is written even over another
   * @param {boolean} [how.small] it is as small as it may be
   * @returns {Mark[]} */
  beside(text, points, look, { distance = 12, mark = 9, most = Infinity, leader = this.leader || look.ink, always = true, small = false } = {}) {
    // What is placed is plain text: a bold one has the place of one that is as wide.
    const wide = this.wide(text, look), size = look.bold ? (look.size * wide) / Math.max(1, this.wide(text, { size: look.size })) : look.size;
    const within = (/** @type {number} */ x) => Math.max(wide / 2 + 8, Math.min(this.width - wide / 2 - 8, x));
    /** @type {any} */
    let best = null;
    // A long text that is cut on both sides of its point stands over or under it, and not in the middle.
    for (const shifted of [false, true]) {
      if (best && best.cost < OUTSIDE) break;
      for (const farther of FARTHER) {
        for (const [x, y] of points) {
          const spot = placeLabel(this.pen, text, shifted ? within(x) : x, y, size, this.width, this.height, this.boxes, distance + farther, this.points);
          this.boxes.pop(); // it is one of several
          const far = DEAR * Math.max(0, gapTo(spot.box, x, y) - distance) + CROSSING * this.crossed(leaderOf(spot, x, y, mark + GAP), x, y);
          const cost = spot.cost + far + (this.room(spot.box) > 0 ? 0 : TOUCHING);
          if (!best || cost < best.cost) best = { ...spot, cost, x, y };
        }
        if (best && best.cost < ENOUGH) break;
      }
    }
    if (!best) return [];
    const { box, cx, cy, x, y, cost } = best;
    // Between many others there may be room for a smaller one.
    if (!small && !(this.room(box) > 0)) return this.beside(text, points, { ...look, size: SMALL * look.size }, { distance, mark, most, leader, always, small: true });
    if (!always && !(this.room(box) > 0)) return [];
    if (cost > most || (most < Infinity && (!(this.room(box) > 0) || isFar(best, x, y, mark)))) return [];
    this.boxes.push(box);
    const line = leader ? leaderOf(best, x, y, mark + GAP) : null;
    this.keepOff(along(line));
    return [...leaderMarks(line, leader, look.opacity), textMark(cx, cy, text, { halo: true, ...look })];
  }
}
