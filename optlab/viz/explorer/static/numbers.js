// Numbers as text, and the rows of the step panel, as in Python: optlab.viz.style.text.format_number and
// optlab.viz.explorer.step_formulas, the source of the table of rows.

/** A number as text, with at most so many digits.
 * @param {number | null | undefined} value
 * @param {number} [digits]
 * @returns {string} */
export function numberText(value, digits = 3) {
  if (Number.isNaN(value) || value === null || value === undefined) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "minus infinite";
  if (Math.abs(value) > 3.4e38) return value > 0 ? "above 3.4e38" : "below −3.4e38";
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  let text;
  if (exponent >= -4 && exponent <= 4) {
    const places = Math.max(0, digits - 1 - exponent);
    const round = 10 ** Math.max(0, exponent - digits + 1);
    text = (Math.round(value / round) * round).toFixed(0);
    if (places > 0) text = value.toFixed(places);
    else if (round === 1) text = value.toFixed(0);
    if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  } else {
    const short = mantissa.includes(".") ? mantissa.replace(/0+$/, "").replace(/\.$/, "") : mantissa;
    text = `${short}e${exponent}`;
  }
  return text.startsWith("-") ? "−" + text.slice(1) : text;
}

/** @type {Record<string, (...given: number[]) => number>} */
const OPERATORS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => (b ? a / b : NaN),
  "^": (a, b) => a ** b,
  if: (condition, a, b) => (condition ? a : b),
  sqrt: (a) => Math.sqrt(a),
  neg: (a) => -a,
  "%": (a, b) => a % b,
};

/** @param {any} expression a number, a name, or an operator and its arguments
 * @param {(name: string) => number} lookUp
 * @returns {number} */
export function evaluateExpression(expression, lookUp) {
  if (typeof expression === "string") return lookUp(expression);
  if (typeof expression === "number") return expression;
  const [operator, ...parts] = expression;
  return OPERATORS[operator](...parts.map((/** @type {any} */ part) => evaluateExpression(part, lookUp)));
}

/** A piece of a line: its text, the name of its number if it is one, and how it stands.
 * @typedef {{text: string, name?: string, bold?: boolean, raised?: boolean}} Piece
 * A filled row: what it is called, its role, its pieces, and the name of its result.
 * @typedef {{label: string, role: string, pieces: Piece[], result: string}} Line */

/** Read a number of a step by its name; derived ones are computed.
 * @param {any} rule
 * @param {Record<string, number>} values */
export function reader(rule, values) {
  /** @param {string} name
   * @returns {number} */
  const lookUp = (name) => {
    if (name.startsWith("d.")) return evaluateExpression(rule.derived[name.slice(2)], lookUp);
    if (name in values) return values[name];
    return name in rule.computed ? evaluateExpression(rule.computed[name], lookUp) : NaN;
  };
  return lookUp;
}

/** Fill the rows of a rule.
 * @param {any} rule
 * @param {Record<string, number>} values
 * @param {string} axis
 * @returns {Line[]} */
export function writtenRows(rule, values, axis) {
  const lookUp = reader(rule, values);
  // Some rows appear only in steps where a number is not 0 (with a ! before its name: is 0).
  const holds = (/** @type {string} */ where) => !where || Boolean(lookUp(where.replace("!", ""))) !== where.startsWith("!");
  const rows = rule.rows.filter((/** @type {string[]} */ [, , where]) => holds(where));
  return rows.map((/** @type {string[]} */ [label, template, , role]) => {
    /** @type {Piece[]} */
    const pieces = [];
    let result = "";
    for (const part of template.split(/(\*\*[^*]*\*\*|\^\[[^\]]*\])/)) {
      const bold = part.startsWith("**"), raised = part.startsWith("^[");
      const inside = bold ? part.slice(2, -2) : raised ? part.slice(2, -1) : part;
      for (const piece of inside.split(/(\{[^}]+\})/)) {
        if (!piece) continue;
        const name = piece.startsWith("{") ? piece.slice(1, -1) : "";
        const bare = name.replace(/[()]/g, "");
        if (!name || name === "axis") {
          pieces.push({ text: name ? axis : piece, bold, raised });
          continue;
        }
        const value = lookUp(bare);
        const text = numberText(value, 4);
        pieces.push({ text: bare !== name && value < 0 ? `(${text})` : text, name: bare, bold, raised });
        if (bold) result = bare;
      }
    }
    return { label: label.replace("{axis}", axis), role, pieces, result };
  });
}

/** The values of a choice, with which a select is filled if they changed.
 * @param {HTMLSelectElement & {filledWith?: string}} select
 * @param {[string, string, boolean?][]} choices
 * @param {string} chosen */
export function fillSelect(select, choices, chosen) {
  const key = JSON.stringify(choices);
  if (select.filledWith !== key) {
    select.filledWith = key;
    select.replaceChildren(...choices.map(([value, text, disabled]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      option.disabled = Boolean(disabled);
      return option;
    }));
  }
  if (select.value !== chosen) select.value = chosen;
}
