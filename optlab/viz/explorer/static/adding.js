// The menu from which optimizers and reference methods are added, and what such methods pay.

import { make } from "../../browser/static/elements.js";
import { stepsText } from "./numbers.js";

/** Fill the menu, in groups; what needs a kernel says so where there is none.
 * @param {HTMLSelectElement & {filledWith?: string}} select
 * @param {any} explorer */
export function fillAdd(select, explorer) {
  const { options, model } = explorer;
  const here = explorer.addable();
  const others = options.classes.filter((/** @type {string} */ name) => !options.references.includes(name));
  const optimizers = model.alive ? others : here.filter((/** @type {string} */ name) => others.includes(name));
  const key = JSON.stringify([optimizers, model.alive]);
  if (select.filledWith === key) return;
  select.filledWith = key;
  const option = (/** @type {string} */ value) => make("option", { value, text: options.titles[value] || value });
  const group = (/** @type {string} */ label, /** @type {string[]} */ names) => make("optgroup", { label }, ...names.map(option));
  /** @type {[string, string[]][]} */
  const families = Object.entries(options.families);
  const groups = families.map(([label, members]) => [label, members.filter((kind) => optimizers.includes(kind))]);
  const known = groups.flatMap(([, members]) => members);
  groups.push(["others", optimizers.filter((/** @type {string} */ kind) => !known.includes(kind))]);
  const paying = [...options.references, ...(model.alive ? [] : options.paying.filter((/** @type {string} */ name) => !options.references.includes(name)))];
  groups.push([model.alive ? "reference methods, which pay for each gradient" : "with a kernel: methods that search", paying]);
  select.replaceChildren(make("option", { value: "", text: "+ add", hidden: true }),
    ...groups.filter(([, members]) => members.length).map(([label, members]) => group(String(label), /** @type {string[]} */ (members))));
  select.value = "";
}

/** How many steps the methods that search have taken, and the gradients that they paid; "" of none.
 * @param {any[]} shown
 * @param {string[]} paying the classes of such methods */
export function paidSaid(shown, paying) {
  const parts = [];
  for (const { entry, run } of shown) {
    if (!paying.includes(entry.kind) || !run || !run.paid) continue;
    const [steps, gradients] = run.paid;
    parts.push(`${entry.name}: ${stepsText(steps)} paid by ${gradients} gradients · `);
  }
  return parts.join("");
}
