// HTML elements, and the controls shared by all widgets.

/** Names of classes with the prefix that keeps the style sheets of others away from them.
 * @param {string} names */
export const classes = (names) => names.split(" ").filter(Boolean).map((name) => (/^(ol|optlab)-/.test(name) ? name : `ol-${name}`)).join(" ");

/** Create an element: make("button", {text, class, on: {click}, ...attributes}, ...children).
 *
 * Class names get the prefix `ol-`.
 * @param {string} tag
 * @param {Record<string, any>} options
 * @param {...any} children
 * @returns {any} */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "class" && value) element.setAttribute("class", classes(value));
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  // JupyterLab intercepts keys of widgets unless the focused element itself opts out.
  if (["BUTTON", "SELECT", "INPUT"].includes(element.tagName) || "tabindex" in options) element.setAttribute("data-lm-suppress-shortcuts", "true");
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A button with a symbol: the label is its accessible name and its tooltip.
 * @param {string} text
 * @param {string} label
 * @param {(event: Event) => void} click
 * @param {Record<string, any>} options
 * @returns {HTMLButtonElement} */
export function makeButton(text, label, click, options = {}) {
  return make("button", { type: "button", text, "aria-label": label, title: label, on: { click }, ...options });
}

/** @param {HTMLElement} button
 * @param {boolean} playing */
export function showPlaying(button, playing) {
  button.textContent = playing ? "❚❚" : "▶\uFE0E";
  button.setAttribute("aria-label", playing ? "pause" : "play");
}

/** Color the track of a slider before its thumb.
 * @param {HTMLInputElement} slider */
export function fill(slider) {
  const share = (Number(slider.value) - Number(slider.min)) / (Number(slider.max) - Number(slider.min) || 1);
  slider.style.setProperty("--share", `${100 * share}%`);
}

/** Set the text of a live region only if it changes, since screen readers announce every write.
 * @param {HTMLElement} element
 * @param {string} text */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
