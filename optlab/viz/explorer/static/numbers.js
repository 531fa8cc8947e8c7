// Numbers as text, as in Python (optlab.viz.style.text.format_number), and choices.

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

/** A number of steps as text. @param {number} count */
export const stepsText = (count) => `${count} ${count === 1 ? "step" : "steps"}`;

/** Even ticks as text, each with as many digits as tell it from the next one.
 * @param {number[]} ticks
 * @returns {string[]} */
export function tickTexts(ticks) {
  const power = (/** @type {number} */ size) => Math.floor(Math.log10(size) + 1e-6);
  const largest = power(Math.max(...ticks.map(Math.abs))), step = power(Math.abs(ticks[1] - ticks[0]));
  const digits = ticks.length > 1 ? Math.max(3, Math.min(15, largest - step + 1)) : 3;
  return ticks.map((tick) => numberText(tick, digits));
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
