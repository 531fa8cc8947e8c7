// The headline of the explorer: its sentence, and the size in which it fits.

import { make } from "../../browser/static/elements.js";
import { numberText, stepsText } from "./numbers.js";

const MOST_LETTERS = 70; // of names

/** Names for a sentence: all of them, or as many as fit; as Python's join_names.
 * @param {string[]} names */
function joinedNames(names) {
  const [last] = names.slice(-1), before = names.slice(0, -1);
  const said = before.length ? `${before.join(", ")} and ${last}` : last;
  if (said.length <= MOST_LETTERS || !before.length) return said;
  let count = 1;
  while (count < before.length && before.slice(0, count + 1).join(", ").length <= MOST_LETTERS) count++;
  return `${before.slice(0, count).join(", ")} and ${names.length - count} more`;
}

/** One sentence that names the winner of a race on a surface, as Python's race_headline, which figures have.
 * @param {[string, number | null][]} finals the loss of each optimizer after the last step; null of a run that ended
 * @param {number} steps
 * @param {number | null} minimum the loss at the minimum, where it is known */
export function raceSaid(finals, steps, minimum) {
  const finished = /** @type {[string, number][]} */ (finals.filter(([, loss]) => loss !== null && Number.isFinite(loss)));
  if (!finished.length) return "No run finished.";
  const best = Math.min(...finished.map(([, loss]) => loss)), first = finished.filter(([, loss]) => loss === best).map(([name]) => name);
  // A "minimum" that a run undercuts by more than rounding is not the minimum.
  const known = minimum !== null && best >= minimum - 1e-9 * Math.max(1, Math.abs(minimum)) ? minimum : 0;
  let loss = `loss ${numberText(best)}`;
  if (known) loss = best <= known ? `loss ${numberText(known)}, the known minimum` : `loss ${numberText(best - known)} above the minimum ${numberText(known)}`;
  if (finals.length === 1) return `After ${stepsText(steps)} ${first[0]} is at ${loss}.`;
  return `After ${stepsText(steps)} ${joinedNames(first)} ${first.length > 1 ? "are" : "is"} lowest, at ${loss}.`;
}

/** What is said of the runs that are shown; "" of those that the kernel still computes, and where a path depends
 * on the last bit, of which nothing is claimed.
 * @param {any} explorer */
function shownSaid({ network, shown, state, engine }) {
  if (network || shown.some((/** @type {any} */ { run, stale, sensitive }) => !run || stale || sensitive >= 0)) return "";
  const finals = shown.map((/** @type {any} */ { entry, run }) => [entry.name, run.stopped < 0 ? run.finalLoss : null]);
  return raceSaid(finals, state.steps, engine.surface(state.problem)?.minimum ?? null);
}

/** The sentence above the picture: of the preset while nothing was changed, of the step, of the race, or the title.
 * @param {any} explorer */
export function putClaim(explorer) {
  const { state, options, engine } = explorer;
  const preset = options.presets[state.preset];
  const surface = engine.surface(state.problem);
  let text = "", muted = false;
  if (explorer.view === "apart" && explorer.map) text = explorer.apart.claim();
  else if (preset) text = preset.claim;
  else {
    text = shownSaid(explorer);
    muted = !text;
    text ||= explorer.network ? engine.given.title : surface?.shows || surface?.title || "";
  }
  explorer.problem.title = surface?.shows || "";
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

/** A sentence as it stands in a line: none ends with the article that begins the next sentence.
 * @param {string} text
 * @returns {(string | HTMLElement)[]} */
function withArticles(text) {
  return text.split(/((?<=[.?!] )An? \S+)/).map((part, i) => (i % 2 ? make("span", { text: part, style: "white-space:nowrap" }) : part));
}

/** A sentence on one step has the optimizer's name in its color, with a capital letter where it begins one.
 * @param {string} text
 * @param {any} explorer */
function colored(text, { view, selected }) {
  const name = selected?.entry.name, at = view === "apart" && name ? text.indexOf(name) : -1;
  if (at < 0) return withArticles(text);
  const first = /(^|[.?!] )$/.test(text.slice(0, at));
  const word = make("span", { text: first ? name[0].toUpperCase() + name.slice(1) : name });
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
