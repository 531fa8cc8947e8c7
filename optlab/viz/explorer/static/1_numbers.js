// Numbers as text, and the rows of the step panel, as in Python: optlab.viz.style.text.format_number and
// optlab.viz.explorer.step_formulas, the source of the table of rows.

function numberText(value, digits = 3) {
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

const OPERATORS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => (b ? a / b : NaN),
  "^": (a, b) => a ** b,
  if: (condition, a, b) => (condition ? a : b),
};

function evaluateExpression(expression, lookUp) {
  if (typeof expression === "string") return lookUp(expression);
  if (typeof expression === "number") return expression;
  const [operator, ...parts] = expression;
  return OPERATORS[operator](...parts.map((part) => evaluateExpression(part, lookUp)));
}

// Fill the rows of a rule: a list of [label, marked text].
function writtenRows(rule, values, axis) {
  const lookUp = (name) =>
    name.startsWith("d.")
      ? evaluateExpression(rule.derived[name.slice(2)], lookUp)
      : name in values
        ? values[name]
        : NaN;
  // Some rows appear only in steps where a number is not 0 (with a ! before its name: is 0).
  const holds = (where) => !where || Boolean(lookUp(where.replace("!", ""))) !== where.startsWith("!");
  return rule.rows.filter(([, , where]) => holds(where)).map(([label, template]) => {
    const text = template.replace(/\{([^}]+)\}/g, (_, name) => {
      if (name === "axis") return axis;
      const bare = name.replace(/[()]/g, "");
      const value = lookUp(bare);
      const shown = numberText(value, 4);
      return bare !== name && value < 0 ? `(${shown})` : shown;
    });
    return [label.replace("{axis}", axis), text];
  });
}

// Put marked text into an element: **bold** and ^[raised].
function putMarked(element, text) {
  element.textContent = "";
  for (const piece of text.split(/(\*\*[^*]*\*\*|\^\[[^\]]*\])/)) {
    if (piece.startsWith("**")) {
      element.append(make("strong", { text: piece.slice(2, -2) }));
    } else if (piece.startsWith("^[")) {
      element.append(make("sup", { text: piece.slice(2, -1) }));
    } else if (piece) {
      element.append(piece);
    }
  }
}

function fillSelect(select, choices, chosen) {
  const key = JSON.stringify(choices);
  if (select.filledWith === key) {
    if (select.value !== chosen) select.value = chosen;
    return;
  }
  select.filledWith = key;
  select.textContent = "";
  for (const [value, text, disabled] of choices) {
    select.append(make("option", { value, text, disabled: Boolean(disabled) }));
  }
  select.value = chosen;
}
