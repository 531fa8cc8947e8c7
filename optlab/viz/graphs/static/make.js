// Making elements of HTML and SVG: what the graph and the explorer of recomputation share.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, options = {}, ...children) {
  const svg = ["svg", "g", "rect", "text", "path", "marker", "defs", "title", "pattern", "line"].includes(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  // JupyterLab takes keys from widgets unless the focused element itself says that it must not.
  if (["BUTTON", "INPUT"].includes(element.tagName) || "tabindex" in options) element.setAttribute("data-lm-suppress-shortcuts", "true");
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
