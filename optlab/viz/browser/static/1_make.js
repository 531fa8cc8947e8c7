// Elements of HTML and SVG, and the small controls that all widgets share.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = ["svg", "g", "rect", "text", "path", "marker", "defs", "title", "pattern", "line"];

// An element in one line: make("button", {text, class, on: {click}, ...attributes}, ...children).
function make(tag, options = {}, ...children) {
  const element = SVG_TAGS.includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  // JupyterLab takes keys from widgets unless the focused element itself says that it must not.
  if (["BUTTON", "SELECT", "INPUT"].includes(element.tagName) || "tabindex" in options) element.setAttribute("data-lm-suppress-shortcuts", "true");
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A button whose sign is no word: the label says it aloud, and to the mouse.
function makeButton(text, label, click, options = {}) {
  return make("button", { type: "button", text, "aria-label": label, title: label, on: { click }, ...options });
}

function showPlaying(button, playing) {
  button.textContent = playing ? "❚❚" : "▶\uFE0E";
  button.setAttribute("aria-label", playing ? "pause" : "play");
}

// Paint the part of a slider's track that lies before its thumb.
function fill(slider) {
  const share = (Number(slider.value) - Number(slider.min)) / (Number(slider.max) - Number(slider.min) || 1);
  slider.style.setProperty("--share", `${100 * share}%`);
}

// Text that is read aloud when it changes is set only then.
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
