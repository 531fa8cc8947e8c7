// The runs as sent by the kernel: a header of plain values and one buffer of float32.

class Runs {
  constructor(header, bytes) {
    this.header = header;
    this.steps = header.steps;
    this.network = header.network;
    this.numbers = new Float32Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
    );
    this.optimizers = header.optimizers.map((entry) => ({ ...entry, colorOf: entry.style }));
    this.byName = new Map(this.optimizers.map((entry) => [entry.name, entry]));
    this.derived = new Map();
  }

  // The rows of one rate of an array: {data, width, count}, or null if there is none.
  rows(entry, name, rate) {
    const place = entry.arrays[name];
    if (!place) return null;
    const [offset, count, width] = place;
    const size = count * width;
    const start = offset + rate * size;
    return { data: this.numbers.subarray(start, start + size), width, count };
  }

  // A series as an array over steps 0 to n, NaN where it has no value, for a panel.
  series(entry, what, rate, coordinate) {
    const key = `${entry.name}|${what}|${rate}|${coordinate}`;
    let found = this.derived.get(key);
    if (!found) {
      found = this.computeSeries(entry, what, rate, coordinate);
      this.derived.set(key, found);
    }
    return found;
  }

  computeSeries(entry, what, rate, coordinate) {
    const n = this.steps;
    const out = new Float64Array(n + 1).fill(NaN);
    if (what === "loss") {
      const loss = this.rows(entry, "loss", rate);
      out.set(loss.data.subarray(0, n + 1));
      return out;
    }
    if (what === "length" || what === "angle") {
      const update = this.rows(entry, "update", rate);
      const gradient = this.rows(entry, "gradient", rate);
      for (let k = 0; k < n; k++) {
        const u = [], g = [];
        for (let c = 0; c < update.width; c++) {
          u.push(update.data[k * update.width + c]);
          g.push(gradient.data[k * update.width + c]);
        }
        out[k + 1] = what === "length" ? Math.hypot(...u) : angleBetween(u, g.map((x) => -x));
      }
      return out;
    }
    const rows = this.rows(entry, what, rate);
    if (!rows) return null;
    const c = Math.min(coordinate, rows.width - 1);
    const shift = what === "point" ? 0 : 1;
    for (let k = 0; k + shift <= n && k < rows.count; k++) out[k + shift] = rows.data[k * rows.width + c];
    return out;
  }

  point(entry, rate, step) {
    const rows = this.rows(entry, "point", rate);
    if (!rows) return null;
    const found = [];
    for (let c = 0; c < rows.width; c++) found.push(rows.data[step * rows.width + c]);
    return found;
  }

  // The step of this run if the cursor is at `step`: it may have ended before.
  lastStep(entry, rate, step) {
    const stopped = entry.stopped[rate];
    return stopped < 0 ? step : Math.min(step, stopped);
  }

  lossAt(entry, rate, step) {
    const rows = this.rows(entry, "loss", rate);
    const value = rows.data[Math.min(step, rows.count - 1)];
    return value + this.header.base;
  }

  // Every number of step `step` (from 1), by its name in the rows.
  valuesOf(entry, rate, step, coordinate) {
    const at = step - 1;
    const one = (name, when = at) => {
      const rows = this.rows(entry, name, rate);
      return rows ? rows.data[when * rows.width + coordinate] : NaN;
    };
    const values = {
      t: step,
      raw: one("gradient"),
      g: one(entry.arrays["term.used_gradient"] ? "term.used_gradient" : "gradient"),
      p: one("point"),
      // The result of the rule; a wrapper may change it afterwards.
      "p.new": entry.arrays["term.fast"] ? one("term.fast") : one("point", step),
      update: one("update"),
    };
    for (const [name, value] of Object.entries({ ...entry.settings, ...entry.around })) values[`h.${name}`] = Number(value);
    values["h.learning_rate"] = entry.rates[rate];
    for (const slot of entry.slots) {
      values[`new.${slot}`] = one(`new.${slot}`);
      values[`old.${slot}`] = at ? one(`new.${slot}`, at - 1) : entry.initial[slot];
    }
    for (const term of entry.terms) values[`term.${term}`] = one(`term.${term}`);
    return values;
  }

  // Names of all slots and terms, as [array name, text].
  quantities() {
    const found = new Map();
    for (const entry of this.optimizers) {
      for (const slot of entry.slots) found.set(`new.${slot}`, slot);
      for (const term of entry.terms) found.set(`term.${term}`, term);
    }
    found.set("gradient", "gradient");
    found.set("update", "update");
    if (!this.network) found.set("point", "position");
    return [...found];
  }
}

function angleBetween(u, v) {
  const a = Math.max(...u.map(Math.abs));
  const b = Math.max(...v.map(Math.abs));
  if (!(a > 0) || !(b > 0)) return NaN;
  const p = u.map((x) => x / a);
  const q = v.map((x) => x / b);
  const dot = p.reduce((sum, x, i) => sum + x * q[i], 0);
  const cosine = dot / (Math.hypot(...p) * Math.hypot(...q));
  return (Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI;
}
