// The menu from which optimizers and reference methods are added, and what such methods pay.

import { make } from "../../browser/static/elements.js";

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
  const group = (/** @type {string} */ label, /** @type {string[]} */ names) => make("optgroup", { label }, ...names.map((value) => make("option", { value, text: value })));
  const paying = [...options.references, ...(model.alive ? [] : options.paying.filter((/** @type {string} */ name) => !options.references.includes(name)))];
  select.replaceChildren(make("option", { value: "", text: "+ add" }),
    ...(optimizers.length ? [group("optimizers", optimizers)] : []),
    group(model.alive ? "reference methods, which pay for each gradient" : "with a kernel: methods that search", paying));
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
    parts.push(`${entry.name}: ${steps} steps paid by ${gradients} gradients · `);
  }
  return parts.join("");
}
