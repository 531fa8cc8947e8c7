// The lines of a step, filled with its numbers as Python fills them: optlab.viz.explorer.step_formulas is
// the language, step_rules the table that a page receives as plain lists.

import { numberText } from "./numbers.js";

const DIGITS = 4, MOST = 6;

/** @type {Record<string, (...given: number[]) => number>} */
const OPERATORS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => (b ? a / b : NaN),
  "^": (a, b) => a ** b,
  "%": (a, b) => a % b,
  ">": (a, b) => Number(a > b),
  "<": (a, b) => Number(a < b),
  not: (a) => Number(!a),
  sqrt: (a) => Math.sqrt(a),
  neg: (a) => -a,
  abs: (a) => Math.abs(a),
  sign: (a) => Number(a > 0) - Number(a < 0),
  max: (a, b) => (a >= b || Number.isNaN(a) ? a : b),
  min: (a, b) => (a <= b || Number.isNaN(a) ? a : b),
};

/** @param {any} expression a number, a name, or an operator and its arguments
 * @param {(name: string) => number} lookUp
 * @param {((name: string) => number)[]} [coordinates] the same for every coordinate, for norms
 * @returns {number} */
export function evaluate(expression, lookUp, coordinates = []) {
  if (typeof expression === "string") return lookUp(expression);
  if (typeof expression === "number" || typeof expression === "boolean") return Number(expression);
  const [operator, ...parts] = expression;
  if (operator === "if") return evaluate(evaluate(parts[0], lookUp, coordinates) ? parts[1] : parts[2], lookUp, coordinates);
  if (operator === "norm") {
    const each = coordinates.map((one) => evaluate(parts[0], one, coordinates));
    return Math.sqrt(each.reduce((sum, x) => sum + x * x, 0));
  }
  if (operator === "product") {
    const [name, most, factor] = parts;
    let found = 1;
    for (let k = 1; k <= evaluate(most, lookUp, coordinates); k++) found *= evaluate(factor, (one) => (one === name ? k : lookUp(one)), coordinates);
    return found;
  }
  return OPERATORS[operator](...parts.map((/** @type {any} */ part) => evaluate(part, lookUp, coordinates)));
}

/** For each coordinate a function that reads a number of the step by its name; derived ones are computed.
 * @param {any} rule
 * @param {Record<string, number>[]} values
 * @returns {((name: string) => number)[]} */
export function readersOf(rule, values) {
  /** @type {((name: string) => number)[]} */
  const found = values.map((known) => {
    /** @param {string} name
     * @returns {number} */
    const lookUp = (name) => {
      if (name.startsWith("d.")) return evaluate(rule.derived[name.slice(2)], lookUp, found);
      if (name in known) return known[name];
      return name in rule.computed ? evaluate(rule.computed[name], lookUp, found) : NaN;
    };
    return lookUp;
  });
  return found;
}

/** @param {number} value */
const exponentOf = (value) => (value ? Number(Math.abs(value).toExponential(6).split("e")[1]) : -99);

/** Write numbers and their sum with the same decimals, so that what is written adds up: the largest
 * part takes what is left by rounding.
 * @param {number[]} parts
 * @param {number} total
 * @param {boolean} [fine] every number has its digits, not the sum alone
 * @returns {string[]} of the parts, then of the sum */
export function writtenSum(parts, total, fine = false) {
  const numbers = [...parts, total];
  const largest = Math.max(...numbers.map(Math.abs));
  if (!numbers.every(Number.isFinite) || !(largest > 1e-290 && largest < 1e290)) return numbers.map((one) => numberText(one, DIGITS));
  const top = exponentOf(largest);
  const least = Math.min(...(fine ? numbers : [total]).map((one) => (one ? exponentOf(one) : top)));
  const decimals = Math.max(DIGITS - 1 - top, Math.min(DIGITS - 1 - least, MOST - (fine ? 2 : 0) - top));
  const power = top > 4 || top < -4 ? top : 0;
  const places = Math.max(0, decimals + power);
  const unit = places >= power ? 10 ** (places - power) : 1 / 10 ** (power - places);
  const units = numbers.map((one) => Math.floor(one * unit + 0.5));
  let at = 0;
  parts.forEach((part, i) => {
    if (Math.abs(part) > Math.abs(parts[at])) at = i;
  });
  units[at] += units[units.length - 1] - units.slice(0, -1).reduce((a, b) => a + b, 0);
  return units.map((one) => ofUnits(one, places, power));
}

/** @param {number} units a whole number of the last decimal's units
 * @param {number} places
 * @param {number} power */
function ofUnits(units, places, power) {
  const digits = String(Math.abs(units)).padStart(places + 1, "0");
  let text = places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits;
  if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  if (units && power) text += `e${power}`;
  return units < 0 ? `−${text}` : text;
}

/** A piece of a line: its text, the name of its number if it is one, and how it stands.
 * @typedef {{text: string, name?: string, bold?: boolean, raised?: boolean}} Piece
 * A row of the table that appears in a step, with its pieces for each coordinate and its note.
 * @typedef {{row: any, label: string, cells: Piece[][], note: Piece[]}} Line */

/** @param {string} template
 * @param {(name: string) => number} lookUp
 * @param {string} axis
 * @param {any} row whose parts add up, or null
 * @returns {Piece[]} */
function filled(template, lookUp, axis, row) {
  /** @type {Record<string, string>} */
  const together = {};
  if (row && row.parts.length) {
    const names = row.parts.map((/** @type {string[]} */ [name]) => name);
    const texts = writtenSum(names.map(lookUp), lookUp(row.result), row.role === "position");
    [...names, row.result].forEach((name, i) => (together[name] = texts[i]));
  }
  /** @type {Piece[]} */
  const pieces = [];
  for (const part of template.split(/(\*\*[^*]*\*\*|\^\[[^\]]*\])/)) {
    const bold = part.startsWith("**"), raised = part.startsWith("^[");
    const inside = bold ? part.slice(2, -2) : raised ? part.slice(2, -1) : part;
    for (const piece of inside.split(/(\{[^}]+\})/)) {
      if (!piece) continue;
      const gap = piece.match(/^\{([+%~]?)([^}]+)\}$/);
      if (!gap || gap[2] === "axis") {
        pieces.push({ text: gap ? axis : piece, bold, raised });
        continue;
      }
      const [, how, name] = gap;
      const value = lookUp(name);
      let text = how === "%" ? numberText(100 * value, 2) : how === "~" ? numberText(value, 2) : together[name] || numberText(value, DIGITS);
      if (how === "+") text = text.startsWith("−") ? `− ${text.slice(1)}` : `+ ${text}`;
      pieces.push({ text, name, bold, raised });
    }
  }
  return pieces;
}

/** The lines that appear in a step.
 * @param {any} rule
 * @param {((name: string) => number)[]} readers
 * @param {string[]} axes
 * @returns {Line[]} */
export function linesOf(rule, readers, axes) {
  return rule.rows.filter((/** @type {any} */ row) => evaluate(row.where, readers[0], readers)).map((/** @type {any} */ row) => ({
    row,
    label: row.label.replace("{axis}", axes.join(", ")),
    cells: axes.map((axis, c) => filled(row.template, readers[c], axis, row)),
    note: filled(row.note, readers[0], "", null),
  }));
}

/** Sentences about the whole step.
 * @param {any} rule
 * @param {((name: string) => number)[]} readers
 * @returns {string[]} */
export function tipsOf(rule, readers) {
  const found = rule.tips.filter((/** @type {any[]} */ [on]) => evaluate(on, readers[0], readers));
  return found.map((/** @type {any[]} */ [, tip]) => filled(tip, readers[0], "", null).map(({ text }) => text).join(""));
}
