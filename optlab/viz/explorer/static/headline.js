// The headline of the explorer: its sentence, and the size in which it fits.

import { make } from "../../browser/static/elements.js";

/** The sentence above the picture: of the preset while nothing was changed, of the step, or the title.
 * @param {any} explorer */
export function putClaim(explorer) {
  const { state, options, engine } = explorer;
  const preset = options.presets[state.preset];
  const surface = engine.surface(state.problem);
  let text = "", muted = false;
  if (explorer.view === "apart" && explorer.map) text = explorer.apart.claim();
  else if (preset) text = preset.claim;
  else {
    muted = true;
    text = explorer.network ? engine.given.title : surface?.shows || surface?.title || "";
  }
  const key = `${text}|${explorer.selected?.color}`;
  if (explorer.claimText !== key) {
    explorer.claimText = key;
    explorer.claim.replaceChildren(...sentences(text).flatMap(([sentence, apart]) => (apart ? [make("span", { class: "sentence" }, ...colored(sentence, explorer)), " "] : colored(sentence, explorer))));
  }
  explorer.claim.classList.toggle("ol-muted", muted);
  fitClaim(explorer, text);
}

/** Short sentences break between each other, not within.
 * @param {string} text
 * @returns {[string, boolean][]} */
function sentences(text) {
  const found = text.split(/(?<=[.?!]) /);
  const apart = found.length > 1 && found.every((one) => one.length <= 44);
  return apart ? found.map((one) => [one, true]) : [[text, false]];
}

/** A sentence on one step has the optimizer's name in its color: it may begin with a small letter.
 * @param {string} text
 * @param {any} explorer */
function colored(text, { view, selected }) {
  const name = selected?.entry.name, at = view === "apart" && name ? text.indexOf(name) : -1;
  if (at < 0) return [text];
  const word = make("span", { text: name });
  word.style.color = selected.color;
  return [text.slice(0, at), word, text.slice(at + name.length)];
}

/** The largest size with which a claim has two lines: the header never changes its height. In one column
 * it is as high as it needs to be.
 * @param {any} explorer
 * @param {string} text */
function fitClaim(explorer, text) {
  const { claim, state } = explorer;
  const width = claim.parentElement.clientWidth;
  const key = `${text}|${width}|${state.text_size}|${explorer.layout}|${claim.className}`;
  if (!width || explorer.claimKey === key) return;
  explorer.claimKey = key;
  const room = claim.parentElement.clientHeight, most = claim.classList.contains("ol-muted") ? 16 : 21;
  for (const size of [21, 19, 17, 16, 15, 14, 13.5]) {
    if (size > most || (explorer.layout === "narrow" && size > (text.length > 80 ? 16 : 17))) continue;
    claim.style.fontSize = `calc(${size}px * var(--size))`;
    if (explorer.layout === "narrow" || claim.offsetHeight <= room) break;
  }
}
