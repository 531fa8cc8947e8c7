// The run of an optimizer on a surface, step by step, in the order of operations of optlab.

const decoded = new Map();

/** The numbers of a table, from base64: after the number of bytes of each come float64, the lowest byte
 * first, or the first two and then by how many units in the last place each is off the one that follows
 * from the two before it. They are read again in every run, of which a moved start needs dozens. */
function numbersOf(text) {
  let numbers = decoded.get(text);
  if (!numbers) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer), width = bytes[0];
    const whole = width === 8 ? (bytes.length - 1) / 8 : 2;
    numbers = new Float64Array(whole + (bytes.length - 1 - 8 * whole) / width);
    const bits = new BigInt64Array(numbers.buffer);
    const off = { 1: "getInt8", 2: "getInt16", 4: "getInt32" }[width];
    for (let i = 0; i < numbers.length; i++) {
      if (i < whole) {
        numbers[i] = view.getFloat64(1 + 8 * i, true);
        continue;
      }
      numbers[i] = numbers[i - 1] * (numbers[i - 1] / numbers[i - 2]);
      bits[i] += BigInt(view[off](17 + width * (i - 2), true));
    }
    decoded.set(text, numbers);
  }
  return numbers;
}

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** A part of an optimizer with these settings, ready to take steps. */
function prepared(part, given, p) {
  const h = { ...part.settings };
  for (const name of Object.keys(h)) if (name in given) h[name] = given[name];
  const schedule = typeof h.learning_rate === "string" ? part.rates[h.learning_rate] : null;
  if (schedule === undefined) {
    throw new RangeError(`${part.title} was written for the schedules ` +
      `${Object.keys(part.rates).join(", ") || "of none"}, not ${h.learning_rate}`);
  }
  const refused = (names) => new RangeError(names.map((name) =>
    `${part.title} was written for ${name} = ${JSON.stringify(part.notches[name])}, ` +
    `not ${JSON.stringify(h[name])}`).join("; "));
  const variant = part.variants.find((one) =>
    Object.entries(one.settings).every(([name, value]) => same(value, h[name])));
  if (!variant) throw refused(Object.keys(part.variants[0].settings));
  const table = {};
  for (const [name, { settings, rows }] of Object.entries(variant.tables)) {
    const row = rows.find(([values]) => values.every((x, i) => same(x, h[settings[i]])));
    if (!row) throw refused(settings);
    table[name] = numbersOf(row[1]);
  }
  const slots = {};
  for (const name of Object.keys(variant.slots)) slots[name] = new Float64Array(p.length);
  const reset = (p) => {
    for (const [name, start] of Object.entries(variant.slots)) {
      if (start === null) slots[name].set(p);
      else slots[name].fill(typeof start === "string" ? h[start] : start);
    }
  };
  reset(p);
  const rates = given.rates ?? (schedule && numbersOf(schedule));
  return {
    slots,
    evaluated: part.evaluated && slots[part.evaluated],
    /** Begin again at p. */
    reset,
    /** Step t, from 0: changes p, the gradient's own array and the slots. */
    step(t, p, g) {
      if (rates) h.learning_rate = rates[t];
      variant.forms[variant.formOfStep ? parseInt(variant.formOfStep[t], 36) : 0](
        p, g, slots, h, table, t);
    },
  };
}

/**
 * Run an optimizer.
 *
 * @param {string} name Of the optimizer.
 * @param {object} options
 * @param {string} [options.surface] Its name; by default the first.
 * @param {ArrayLike<number>} options.start
 * @param {number} options.steps
 * @param {object} [options.settings] Those that differ from the optimizer's own.
 * @param {ArrayLike<number>} [options.rates] The learning rate of each step.
 * @param {ArrayLike<number>} [options.noise] Unit normal numbers, a row of them for each step.
 * @param {number} [options.sigma] What they are multiplied by before the gradient gets them.
 * @returns {{path: Float64Array, loss: Float64Array, gradient: Float64Array,
 *   slots: Object<string, Float64Array>, fast: Float64Array | null, finalLoss: number,
 *   stopped: number}}
 *   One row a step, in `path` and `loss` one more: that of the start. `stopped` is the step at which
 *   the loss was no longer finite, or -1; later rows are NaN. `finalLoss` is that of the averaged
 *   weights if the optimizer averages. `fast` are the weights that the optimizer's own rule gave, before
 *   its wrappers changed them; null if there are none.
 */
export function run(name, options) {
  const { steps, noise = null, sigma = 0 } = options;
  const { evaluate, parts, p } = begun(name, options);
  const n = p.length;
  const rows = (count) => new Float64Array(count).fill(NaN);
  const path = rows((steps + 1) * n), loss = rows(steps + 1), gradient = rows(steps * n);
  const slots = {};
  for (const part of parts) for (const slot of Object.keys(part.slots)) slots[slot] = rows(steps * n);
  const fast = parts.length > 1 ? rows(steps * n) : null;
  let stopped = -1;
  for (let t = 0; ; t++) {
    const found = evaluate(p), value = found[0];
    path.set(p, t * n);
    loss[t] = value;
    if (!Number.isFinite(value)) {
      stopped = t;
      break;
    }
    if (t === steps) break;
    const g = new Float64Array(n);
    for (let i = 0; i < n; i++) g[i] = noise ? found[i + 1] + sigma * noise[t * n + i] : found[i + 1];
    gradient.set(g, t * n);
    for (const part of parts) {
      part.step(t, p, g);
      if (fast && part === parts[0]) fast.set(p, t * n);
      for (const [slot, values] of Object.entries(part.slots)) slots[slot].set(values, t * n);
    }
  }
  const averaged = parts.map((part) => part.evaluated).filter(Boolean).pop();
  const finalLoss = stopped < 0 && steps > 0 && averaged ? evaluate(averaged)[0] : loss[steps];
  return { path, loss, gradient, slots, fast, finalLoss, stopped };
}

/**
 * Run an optimizer from many starts, and keep where it ends.
 *
 * @param {string} name Of the optimizer.
 * @param {object} options As of `run`; `start` is any point of the surface.
 * @returns {(start: ArrayLike<number>, end: Float64Array) => number} Takes the steps from a start,
 *   writes where they end, and returns the loss there; NaN if it diverges.
 */
export function ends(name, options) {
  const { steps, noise = null, sigma = 0 } = options;
  const { evaluate, parts, p } = begun(name, options);
  const n = p.length, g = new Float64Array(n);
  const averaged = parts.map((part) => part.evaluated).filter(Boolean).pop();
  return (start, end) => {
    p.set(start);
    for (const part of parts) part.reset(p);
    for (let t = 0; t < steps; t++) {
      const found = evaluate(p);
      if (!Number.isFinite(found[0])) return NaN;
      for (let i = 0; i < n; i++) g[i] = found[i + 1] + (noise ? sigma * noise[t * n + i] : 0);
      for (const part of parts) part.step(t, p, g);
    }
    end.set(averaged && steps > 0 ? averaged : p);
    const [value] = evaluate(end);
    return Number.isFinite(value) ? value : NaN;
  };
}

/** An optimizer at a start: its parts, the function, and the point that they move. */
function begun(name, options) {
  const { start, steps, settings = {}, rates = null } = options;
  const optimizer = optimizers[name];
  if (!optimizer) {
    throw new RangeError(`there is no optimizer ${name}; there is ${Object.keys(optimizers)}`);
  }
  const surface = options.surface ?? Object.keys(surfaces)[0];
  if (!(surface in surfaces)) {
    throw new RangeError(`there is no surface ${surface}; there is ${Object.keys(surfaces)}`);
  }
  const { dimension, evaluate } = surfaces[surface];
  if (start.length !== dimension) {
    throw new RangeError(`a start on ${surface} has ${dimension} numbers, not ${start.length}`);
  }
  if (optimizer.dimension && optimizer.dimension !== dimension) {
    throw new RangeError(`${name} was written for ${optimizer.dimension} numbers`);
  }
  if (!(steps <= optimizer.steps)) {
    throw new RangeError(`${name} was written for at most ${optimizer.steps} steps, not ${steps}`);
  }
  for (const setting of Object.keys(settings)) {
    if (!optimizer.parts.some((part) => setting in part.settings)) {
      throw new RangeError(`${name} has no setting ${setting}`);
    }
  }
  const p = Float64Array.from(start);
  const given = rates ? { ...settings, rates } : settings;
  const parts = optimizer.parts.map((part) => prepared(part, given, p));
  return { evaluate, parts, p };
}
