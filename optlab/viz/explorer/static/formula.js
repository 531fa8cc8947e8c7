// A formula typed by the reader, as value and slopes. The grammar is the one of
// optlab.lab.problems.formula: Python's expressions, of which a list of operations is taken. Nothing of
// the text is run: what is compiled is written anew from the names of operations.

import { curveViewOf } from "./curve.js";
import { FORMULA_CONSTANTS, FORMULA_FUNCTIONS, FORMULA_OPERATIONS, FORMULA_OVER_VECTOR } from "./formula_operations.js";

const MOST_CHARACTERS = 2000, DEEPEST = 180;
const MODULES = ["np", "numpy", "math"];
/** @type {Record<string, any>} */
const FUNCTIONS = FORMULA_FUNCTIONS;
/** @type {Record<string, number>} */
const CONSTANTS = FORMULA_CONSTANTS;
/** @type {Record<string, any>} */
const OPERATIONS = FORMULA_OPERATIONS;
const OVER_VECTOR = FORMULA_OVER_VECTOR;

/** A node of the text: its kind, its span, and its parts.
 * @typedef {{kind: string, start: number, end: number, [more: string]: any}} Node
 * A part of a formula: a number, or an operation on parts ("x" and "y" have none).
 * @typedef {number | {op: string, of: any[], exponent?: number}} Part */

/** What is wrong with a formula, and where. */
export class FormulaError extends Error {
  /** @param {string} message
   * @param {number} start
   * @param {number} end
   * @param {string} [instead] the text to write instead */
  constructor(message, start, end, instead = "") {
    super(message);
    this.start = start;
    this.end = end;
    this.instead = instead;
  }
}

/** All functions that a formula may have, for a hint. */
export const functionsSaid = () => [...Object.keys(FUNCTIONS), ...OVER_VECTOR].join(", ");

/** A text as Python shows it.
 * @param {string} text */
const shown = (text) => (text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`);

const TOKEN = /[ \t\f]+|#[^\n]*|(0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)([jJ]?)|([\p{L}_][\p{L}\p{N}_]*)|(\*\*|\/\/|==|!=|<=|>=|<<|>>|:=|->|[-+*/%@&|~^<>()[\]{},:.;=])|("[^"\n]*"|'[^'\n]*')|(\r?\n)/uy;

/** @typedef {{type: string, text: string, start: number, end: number}} Token */

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text.trim();
    /** @type {Record<string, Node>} */
    this.names = {};
    /** @type {Token[]} */
    this.tokens = [];
    this.at = 0;
    this.depth = 0;
    if (!this.text) throw new FormulaError('the formula is empty; write one such as "x**2 + 3*y**2".', 0, 0);
    if (this.text.length > MOST_CHARACTERS) throw new FormulaError(`the formula has ${this.text.length} characters, more than ${MOST_CHARACTERS}; write a function f(x, y) in Python.`, 0, this.text.length);
    this.refuseOtherNotations();
    this.tokenize();
    this.tree = this.expression();
    if (this.peek().text === ",") this.tree = this.list();
    if (this.peek().type !== "end") this.unreadable();
  }

  // Errors -----------------------------------------------------------------------------------------

  /** @param {Node | null} node
   * @param {string} why
   * @param {string} [instead]
   * @returns {FormulaError} */
  refusal(node, why, instead = "") {
    const { text } = this;
    const part = node ? text.slice(node.start, node.end) : "";
    const whole = text.length <= 80 ? text : `${text.slice(0, 77)}...`;
    const where = part && part !== text && part.length <= 60 ? `at ${shown(part)}: ` : "";
    const message = `the formula "${whole}" cannot be used: ${where}${why}${why.endsWith("?") ? "" : "."}`;
    return new FormulaError(message, node ? node.start : 0, node ? node.end : text.length, instead);
  }

  /** An error at a place of the text, whose part the sentence names itself.
   * @param {number} start
   * @param {number} end
   * @param {string} why
   * @param {string} [instead] */
  refusalAt(start, end, why, instead = "") {
    const error = this.refusal(null, why, instead);
    [error.start, error.end] = [start, end];
    return error;
  }

  refuseOtherNotations() {
    const { text } = this;
    let match = /[²³⁴⁵√·×÷−]/u.exec(text);
    if (match) {
      const sign = match[0];
      const plain = /** @type {Record<string, string>} */ ({ "√": "sqrt(x)", "·": "*", "×": "*", "÷": "/", "−": "-" })[sign] || "x**2";
      throw this.refusalAt(match.index, match.index + 1, `write ${plain} in place of ${sign}`);
    }
    if (text.includes("^")) {
      const at = text.indexOf("^");
      const instead = text.replaceAll("^", "**");
      throw this.refusalAt(at, at + 1, `^ is no power in Python: write x**2, here ${instead.length <= 60 ? instead : "** in place of ^"}`, instead);
    }
    match = /(?<![<>=!])=(?!=)|lambda|return/.exec(text);
    if (match) throw this.refusalAt(match.index, match.index + match[0].length, "write what stands after the equals sign alone, x**2 + 3*y**2");
    if (text.split("|").length > 2) throw this.refusalAt(text.indexOf("|"), text.lastIndexOf("|") + 1, "write abs(x) in place of |x|");
  }

  /** Say why the text is no expression, at the token that cannot stand where it does.
   * @param {number} [at]
   * @returns {never} */
  unreadable(at = this.peek().start) {
    const { text } = this;
    const match = /(?<![\w.])(\d+\.?\d*|\))\s*(?=[A-Za-z(])/.exec(text);
    if (match) {
      const rest = text.slice(match.index, match.index + 8);
      throw this.refusalAt(match.index, match.index + match[0].length + 1, `at ${shown(rest)}: write a product with a sign, 2*x`);
    }
    const opening = text.split("(").length - 1, closing = text.split(")").length - 1;
    if (opening !== closing) throw this.refusalAt(unpaired(text), text.length, `it has ${opening} opening and ${closing} closing parentheses`);
    const rest = text.slice(at, at + 8);
    const ends = "+-*/(,".includes(text[text.length - 1]) || !rest.trim();
    const where = ends ? "it ends too early" : `Python cannot read it at ${shown(rest)}`;
    throw this.refusalAt(ends ? text.length : at, ends ? text.length : at + 1, `${where}; a formula is written as in x**2 + 3*y**2`);
  }

  /** What to write in place of a name that is not known.
   * @param {string} name */
  close(name) {
    const match = /^(x|y)(\d)$/.exec(name);
    if (match) return `write ${match[1]}**${match[2]} for a power${"12".includes(match[2]) ? `, ${"xy"[Number(match[2]) - 1]} for a variable` : ""}`;
    if (/^[xy]{2,}$/.test(name)) return `write a product with a sign, ${[...name].join("*")}`;
    const near = closest(name, [...Object.keys(FUNCTIONS), ...OVER_VECTOR, ...Object.keys(CONSTANTS)]);
    return near ? `did you mean ${near}?` : `${shown(name)} is not known. Functions are ${functionsSaid()}`;
  }

  // The text as a tree -----------------------------------------------------------------------------

  tokenize() {
    const { text } = this;
    let depth = 0;
    TOKEN.lastIndex = 0;
    for (let start = 0; start < text.length; start = TOKEN.lastIndex) {
      TOKEN.lastIndex = start;
      const match = TOKEN.exec(text);
      if (!match) this.unreadable(start);
      const [all, number, imaginary, name, sign, string, line] = match;
      const end = start + all.length;
      if (number) this.tokens.push({ type: imaginary ? "string" : "number", text: number, start, end });
      else if (name || sign || string) this.tokens.push({ type: name ? "name" : sign ? "sign" : "string", text: all, start, end });
      else if (line && !depth) this.unreadable(start);
      if (number && !imaginary && /^0\d*[1-9]\d*$/.test(number)) this.unreadable(start); // 01 is no number in Python
      if (sign && "([{".includes(sign)) depth++;
      else if (sign && ")]}".includes(sign)) depth--;
    }
    this.tokens.push({ type: "end", text: "", start: text.length, end: text.length });
  }

  peek() {
    return this.tokens[this.at];
  }

  /** Take the next token if it is this sign or word.
   * @param {...string} wanted
   * @returns {string} */
  take(...wanted) {
    const { type, text } = this.peek();
    if ((type !== "sign" && type !== "name") || !wanted.includes(text)) return "";
    this.at++;
    return text;
  }

  /** @param {string} wanted */
  expect(wanted) {
    if (!this.take(wanted)) this.unreadable();
  }

  get last() {
    return this.tokens[this.at - 1].end;
  }

  /** Operators of one precedence, from the left to the right.
   * @param {string[]} signs
   * @param {() => Node} inner
   * @returns {Node} */
  chain(signs, inner) {
    const { start } = this.peek();
    let left = inner();
    for (let sign = this.take(...signs); sign; sign = this.take(...signs)) {
      const right = inner();
      left = { kind: "binary", sign, left, right, start, end: this.last };
    }
    return left;
  }

  /** @returns {Node} */
  expression() {
    if (++this.depth > DEEPEST) throw this.refusal(null, "it cannot be read; write it with fewer parentheses");
    const { start } = this.peek();
    let node = this.disjunction();
    if (this.take("if")) {
      this.disjunction();
      this.expect("else");
      this.expression();
      node = { kind: "if", start, end: this.last };
    }
    this.depth--;
    return node;
  }

  /** What stands between commas, which is no formula: f(x), y.
   * @returns {Node} */
  list() {
    while (this.take(",") && this.peek().type !== "end") this.expression();
    return { kind: "other", start: 0, end: this.last };
  }

  /** @returns {Node} */
  disjunction() {
    const not = () => {
      const { start } = this.peek();
      if (!this.take("not")) return this.comparison();
      while (this.take("not"));
      this.comparison();
      return { kind: "other", start, end: this.last };
    };
    return this.chain(["or"], () => this.chain(["and"], not));
  }

  /** @returns {Node} */
  comparison() {
    const { start } = this.peek();
    const left = this.bits();
    const rights = [], signs = [];
    for (;;) {
      let sign = this.take("<", ">", "<=", ">=", "==", "!=", "in", "is");
      if (!sign && this.peek().text === "not" && this.tokens[this.at + 1].text === "in") [sign, this.at] = ["not in", this.at + 2];
      if (!sign) break;
      if (sign === "is") this.take("not");
      signs.push(sign);
      rights.push(this.bits());
    }
    return signs.length ? { kind: "compare", left, signs, rights, start, end: this.last } : left;
  }

  /** @returns {Node} */
  bits() {
    const sums = () => this.chain(["+", "-"], () => this.chain(["*", "/", "//", "%", "@"], () => this.factor()));
    return this.chain(["|"], () => this.chain(["&"], () => this.chain(["<<", ">>"], sums)));
  }

  /** @returns {Node} */
  factor() {
    const { start } = this.peek();
    const sign = this.take("-", "+", "~");
    if (!sign) return this.power();
    if (++this.depth > DEEPEST) throw this.refusal(null, "it cannot be read; write it with fewer parentheses");
    const inner = this.factor();
    this.depth--;
    return { kind: "sign", sign, inner, start, end: this.last };
  }

  /** @returns {Node} */
  power() {
    const { start } = this.peek();
    const left = this.primary();
    if (!this.take("**")) return left;
    const right = this.factor();
    return { kind: "binary", sign: "**", left, right, start, end: this.last };
  }

  /** @returns {Node} */
  primary() {
    const { start } = this.peek();
    let node = this.atom();
    for (;;) {
      if (this.take(".")) {
        const { type, text } = this.peek();
        if (type !== "name") this.unreadable();
        this.at++;
        node = { kind: "attribute", of: node, name: text, start, end: this.last };
      } else if (this.take("(")) node = this.call(node, start);
      else if (this.take("[")) {
        const index = this.expression();
        this.expect("]");
        node = { kind: "item", of: node, index, start, end: this.last };
      } else return node;
    }
  }

  /** @param {Node} of
   * @param {number} start
   * @returns {Node} */
  call(of, start) {
    const args = [];
    let plain = true;
    while (this.peek().text !== ")") {
      if (this.take("*", "**")) plain = false;
      args.push(this.expression());
      if (!this.take(",")) break;
    }
    this.expect(")");
    return { kind: plain ? "call" : "other", of, args, start, end: this.last };
  }

  /** @returns {Node} */
  atom() {
    const { type, text, start, end } = this.peek();
    if (type === "number") {
      this.at++;
      return { kind: "number", value: Number(text.replaceAll("_", "")), start, end };
    }
    if (type === "string") {
      this.at++;
      return { kind: "other", start, end };
    }
    if (type === "name") {
      if (["if", "else", "and", "or", "not", "in", "is", "for"].includes(text)) this.unreadable();
      this.at++;
      return { kind: ["True", "False", "None"].includes(text) ? "other" : "name", name: text, start, end };
    }
    const opened = this.take("(", "[", "{");
    if (!opened) this.unreadable();
    const closing = { "(": ")", "[": "]", "{": "}" }[opened];
    let tuple = opened !== "(", inner = null;
    while (this.peek().text !== closing) {
      inner = this.expression();
      if (!this.take(",")) break;
      tuple = true;
    }
    this.expect(/** @type {string} */ (closing));
    if (inner && !tuple) return inner;
    return { kind: "other", start, end: this.last };
  }

  // The tree as operations -------------------------------------------------------------------------

  /** How many numbers the function takes, and what it does.
   * @returns {{dimension: number, part: Part}} */
  meaning() {
    const part = this.part(this.tree);
    if (Array.isArray(part)) throw this.refusal(this.tree, "it gives two numbers; add them up with sum(...)");
    if ("p" in this.names && ("x" in this.names || "y" in this.names)) throw this.refusal(this.names.p, "use either x and y, or p[0] and p[1]");
    if (typeof part === "number") throw this.refusal(null, "there is no x or y in it");
    return { dimension: ["y", "p", "p[1]"].some((name) => name in this.names) ? 2 : 1, part };
  }

  /** @param {Node} node
   * @returns {any} a part, or two of them for a vector */
  part(node) {
    const { kind } = node;
    if (kind === "number") {
      if (!(Math.abs(node.value) <= 1e300)) throw this.refusal(node, "it is too large a number");
      return node.value;
    }
    if (kind === "name") return this.name(node);
    if (kind === "attribute" && node.of.kind === "name" && MODULES.includes(node.of.name) && node.name in CONSTANTS) return CONSTANTS[node.name];
    if (kind === "sign" && node.sign === "-") return this.apply(node, "neg", this.part(node.inner));
    if (kind === "sign" && node.sign === "+") return this.part(node.inner);
    /** @type {Record<string, string>} */
    const binary = { "+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow" };
    if (kind === "binary" && node.sign in binary) {
      const parts = [this.part(node.left), this.part(node.right)];
      return this.apply(node, binary[node.sign], ...parts);
    }
    if (kind === "item" && node.of.kind === "name" && node.of.name === "p" && node.index.kind === "number" && Number.isInteger(node.index.value) && !this.text.slice(node.index.start, node.index.end).match(/[.eE]/)) {
      const place = node.index.value;
      if (place !== 0 && place !== 1) throw this.refusal(node, "a surface has two numbers, p[0] and p[1]");
      this.names[place ? "p[1]" : "p[0]"] = node;
      return { op: "xy"[place], of: [] };
    }
    if (kind === "call") return this.called(node);
    if (kind === "if") throw this.refusal(node, "write where(x > 0, a, b) in place of a if x > 0 else b");
    if (kind === "compare") throw this.refusal(node, "a comparison stands inside where(x > 0, a, b)");
    throw this.refusal(node, `it is not among what a formula may have: + - * / **, numbers, pi, e, x, y, and the functions ${functionsSaid()}`);
  }

  /** @param {Node} node
   * @returns {any} */
  name(node) {
    const { name } = node;
    if (Object.hasOwn(CONSTANTS, name)) return CONSTANTS[name];
    if (name === "x" || name === "y") {
      this.names[name] = node;
      return { op: name, of: [] };
    }
    if (name === "p") {
      this.names.p = node;
      return [{ op: "x", of: [] }, { op: "y", of: [] }];
    }
    if (Object.hasOwn(FUNCTIONS, name) || OVER_VECTOR.includes(name)) throw this.refusal(node, `${name} is a function: write ${name}(x)`);
    throw this.refusal(node, `the variables are x and y (or p[0] and p[1]); ${this.close(name)}`);
  }

  /** @param {Node} node
   * @returns {any} */
  called(node) {
    const { of, args } = node;
    let name = "";
    if (of.kind === "name") name = of.name;
    else if (of.kind === "attribute" && of.of.kind === "name" && MODULES.includes(of.of.name)) name = of.name;
    else name = this.text.slice(of.start, of.end);
    const known = Object.hasOwn(FUNCTIONS, name);
    if (!known && !OVER_VECTOR.includes(name)) {
      if (["x", "y", "p", ...Object.keys(CONSTANTS)].includes(name) || of.kind === "number" || of.kind === "binary") throw this.refusal(of, "write a product with a sign: 2*(x + 1)");
      throw this.refusal(of, `there is no function ${name}; ${this.close(name)}`);
    }
    if (!known) return this.overVector(node, name);
    const [op, count] = FUNCTIONS[name];
    if (args.length !== count) throw this.refusal(node, `${name} takes ${count} argument${count > 1 ? "s" : ""}`);
    if (op !== "where") return this.apply(node, op, ...args.map((/** @type {Node} */ one) => this.part(one)));
    const [test] = args;
    const compare = test.kind === "compare" && test.signs.length === 1 && /** @type {Record<string, string>} */ ({ "<": "lt", "<=": "le", ">": "gt", ">=": "ge" })[test.signs[0]];
    if (!compare) throw this.refusal(test, "where takes a comparison first: where(x > 0, a, b)");
    return this.apply(node, `where_${compare}`, this.part(test.left), this.part(test.rights[0]), this.part(args[1]), this.part(args[2]));
  }

  /** @param {Node} node
   * @param {string} name
   * @returns {any} */
  overVector(node, name) {
    const inner = node.args.length === 1 ? this.part(node.args[0]) : null;
    if (!Array.isArray(inner)) throw this.refusal(node, `${name} takes an expression of the vector p: ${name}((p - 1)**2)`);
    const total = this.apply(node, name === "prod" ? "mul" : "add", ...inner);
    return name === "mean" ? this.apply(node, "div", total, 2) : total;
  }

  /** An operation on parts; of numbers alone, its value.
   * @param {Node} node
   * @param {string} op
   * @param {...any} parts
   * @returns {any} */
  apply(node, op, ...parts) {
    if (parts.some(Array.isArray)) return [0, 1].map((i) => this.apply(node, op, ...parts.map((part) => (Array.isArray(part) ? part[i] : part))));
    if (parts.every((part) => typeof part === "number")) {
      const value = OPERATIONS[op].value(...parts);
      if (!Number.isFinite(value)) throw this.refusal(node, "its value is not a finite number");
      return value;
    }
    return { op, of: parts };
  }
}

/** Where the parenthesis is that has no other one.
 * @param {string} text */
function unpaired(text) {
  const open = [];
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") open.push(i);
    else if (text[i] === ")" && open.pop() === undefined) return i;
  }
  return open.length ? open[open.length - 1] : 0;
}

/** The name of a list that is most like a word, as Python's difflib.get_close_matches finds it.
 * @param {string} word
 * @param {string[]} names */
export function closest(word, names) {
  /** @type {(a: string, b: string) => number} */
  const matches = (a, b) => {
    let best = [0, 0, 0];
    for (let i = 0; i < a.length; i++) {
      for (let j = 0; j < b.length; j++) {
        let k = 0;
        while (i + k < a.length && a[i + k] === b[j + k]) k++;
        if (k > best[2]) best = [i, j, k];
      }
    }
    const [i, j, k] = best;
    return k ? k + matches(a.slice(0, i), b.slice(0, j)) + matches(a.slice(i + k), b.slice(j + k)) : 0;
  };
  let found = "", highest = 0.6;
  for (const name of names) {
    const ratio = (2 * matches(name, word)) / (name.length + word.length);
    if (ratio > highest || (ratio === highest && name > found)) [found, highest] = [name, ratio];
  }
  return found;
}

/** A number as JavaScript reads it. @param {number} value */
const literal = (value) => (value < 0 || Object.is(value, -0) ? `(${Object.is(value, -0) ? "-0" : value})` : String(value));

/** x to a whole power, by repeated squaring, in the engine's order.
 * @param {number} x
 * @param {number} n
 * @returns {number} */
function wholePower(x, n) {
  if (n < 0) return 1 / wholePower(x, -n);
  if (n === 0) return 1;
  if (n < 4) return n === 1 ? x : n === 2 ? x * x : x * (x * x);
  let result = 0, square = x;
  for (let first = true; n; ) {
    if (n & 1) [result, first] = [first ? square : result * square, false];
    n >>= 1;
    if (n) square *= square;
  }
  return result;
}

/** Powers with an exponent that is a number, as optlab.autograd.tensor.powers chooses among them. */
const POWERS = {
  whole: wholePower,
  /** @type {(g: number, x: number, n: number) => number} */
  wholeSlope: (g, x, n) => (n < 0 ? (g === 0 ? 0 : n * (g / wholePower(x, 1 - n))) : g * (n * wholePower(x, n - 1))),
  /** @type {(x: number, n: number) => number} */
  any: (x, n) => OPERATIONS.power(x, n),
  /** @type {(g: number, x: number, n: number) => number} */
  anySlope: (g, x, n) => (n === 0 || g === 0 ? 0 : n < 1 ? n * (g / OPERATIONS.power(x, 1 - n)) : g * (n * OPERATIONS.power(x, n - 1))),
};

/** Value and slopes of a part, as the source of a function of o (operations), w (powers) and p.
 * Operations are numbered as the engine records them; the gradient goes back from the latest one.
 * @param {Part} root
 * @param {number} dimension */
function source(root, dimension) {
  /** @type {string[]} */
  const lines = [];
  /** @type {{id: string, op: string, of: any[], exponent: number}[]} */
  const nodes = [];
  /** @type {(part: any) => string} */
  const write = (part) => {
    if (typeof part === "number") return literal(part);
    if (part.op === "x" || part.op === "y") return part.op;
    let { op, of } = part, exponent = NaN;
    if (op === "pow" && typeof of[1] === "number") {
      [, exponent] = of;
      op = exponent === 1 ? "same" : exponent === 2 ? "square" : exponent === 0.5 ? "sqrt" : exponent && Math.abs(exponent) <= 64 && exponent % 1 === 0 ? "whole" : "any";
      of = [of[0]];
    }
    const texts = of.map(write);
    const id = `v${nodes.length}`;
    /** @type {Record<string, string>} */
    const plain = { add: "+", sub: "-", mul: "*", div: "/" };
    const value = op in plain ? texts.join(` ${plain[op]} `) : op === "neg" ? `-${texts[0]}` : op === "same" ? texts[0] : op === "square" ? `${texts[0]} * ${texts[0]}`
      : op === "whole" || op === "any" ? `w.${op}(${texts[0]}, ${literal(exponent)})` : `o.${op}.value(${texts.join(", ")})`;
    lines.push(`const ${id} = ${value};`);
    nodes.push({ id, op, of: texts, exponent });
    return id;
  };
  const value = write(root);
  /** @type {Map<string, string>} */
  const arrived = new Map([[value, "1"]]);
  let count = 0;
  for (const { id, op, of, exponent } of [...nodes].reverse()) {
    const g = arrived.get(id);
    if (!g) continue;
    of.forEach((to, i) => {
      if (!/^[vxy]/.test(to)) return; // a number
      const own = op === "whole" || op === "any";
      if (!own && OPERATIONS[op] && !OPERATIONS[op].slopes[i]) return;
      /** @type {Record<string, string>} */
      const plain = { add: g, sub: i ? `-${g}` : g, mul: `${g} * ${of[1 - i]}`, neg: `-${g}`, same: g, square: `${g} * (${to} + ${to})` };
      const slope = op in plain ? plain[op] : own ? `w.${op}Slope(${g}, ${to}, ${literal(exponent)})` : `o.${op}.slopes[${i}](${[g, ...of].join(", ")})`;
      const before = arrived.get(to);
      const name = `g${count++}`;
      lines.push(`const ${name} = ${before ? `${before} + ` : ""}${before && slope.startsWith("-") ? `(${slope})` : slope};`);
      arrived.set(to, name);
    });
  }
  const results = [value, ...["x", "y"].slice(0, dimension).map((name) => arrived.get(name) || "0")];
  return `return (p) => {\nconst x = p[0], y = p[1];\n${lines.join("\n")}\nreturn [${results.join(", ")}];\n};`;
}

/** A formula as a function of a point, which returns value and slopes; throws a FormulaError.
 * @param {string} text
 * @returns {{text: string, dimension: number, evaluate: (point: ArrayLike<number>) => number[]}} */
export function compiledFormula(text) {
  const reader = new Reader(text);
  const { dimension, part } = reader.meaning();
  return { text: reader.text, dimension, evaluate: new Function("o", "w", source(part, dimension))(OPERATIONS, POWERS) };
}

/** Whether a text is meant as a formula, and not as the name of a problem.
 * @param {string} text */
export function looksLikeFormula(text) {
  const words = text.match(/[A-Za-z_]\w*/g) || [];
  const known = ["x", "y", "p", ...MODULES, ...Object.keys(CONSTANTS), ...Object.keys(FUNCTIONS), ...OVER_VECTOR];
  return /[+*/^()[\]=<>²³√]/u.test(text) || (words.length > 0 && words.every((word) => known.includes(word)));
}

/** What a page shows of a formula: the usual domain, and a start at which it is defined.
 * @param {{text: string, dimension: number, evaluate: (point: ArrayLike<number>) => number[]}} formula */
export function formulaSurface({ text, dimension, evaluate }) {
  const domain = Array.from({ length: dimension }, () => [-3, 3]);
  const isDefined = (/** @type {number[]} */ point) => evaluate(point).every(Number.isFinite);
  const wanted = [-2, 2].slice(0, dimension);
  let start = isDefined(wanted) ? wanted : null;
  if (!start) {
    const grid = Array.from({ length: 41 }, (_, i) => 0.15 * i - 3);
    const [across, up] = wanted.map((at) => [...new Set([at, ...grid])].sort((a, b) => a - b));
    const points = up ? up.flatMap((y) => across.map((x) => [x, y])) : across.map((x) => [x]);
    const apart = (/** @type {number[]} */ point) => point.reduce((sum, value, i) => sum + Math.abs(value - wanted[i]) / 6, 0);
    start = points.sort((a, b) => apart(a) - apart(b)).map((point) => point.map((value) => Number(value.toFixed(12)))).find(isDefined) || null;
  }
  if (!start) throw new FormulaError(`"${text}" has no value and slope anywhere between -3 and 3.`, 0, text.length);
  const view = dimension === 1 ? { view: curveViewOf(evaluate, domain[0]) } : {};
  return { ...view, title: text.length <= 80 ? text : `${text.slice(0, 79)}…`, shows: "", domain, start, minima: /** @type {number[][]} */ ([]), minimum: /** @type {number | null} */ (null), noise: 0 };
}
