// @ts-nocheck
// Written by optlab.viz.explorer.formula_operations from the derivative rules of the engine: of
// each operation its value, and its slopes, given the gradient g that arrives. Do not edit.

/** Each function of a formula: its operation, and how many arguments it takes. */
export const FORMULA_FUNCTIONS = { exp: ["exp", 1], expm1: ["expm1", 1], log: ["log", 1], ln: ["log", 1], log2: ["log2", 1], log10: ["log10", 1], log1p: ["log1p", 1], sqrt: ["sqrt", 1], cbrt: ["cbrt", 1], square: ["square", 1], sin: ["sin", 1], cos: ["cos", 1], tan: ["tan", 1], arcsin: ["arcsin", 1], arccos: ["arccos", 1], arctan: ["arctan", 1], asin: ["arcsin", 1], acos: ["arccos", 1], atan: ["arctan", 1], sinh: ["sinh", 1], cosh: ["cosh", 1], tanh: ["tanh", 1], abs: ["absolute", 1], fabs: ["absolute", 1], sign: ["sign", 1], maximum: ["maximum", 2], max: ["maximum", 2], minimum: ["minimum", 2], min: ["minimum", 2], hypot: ["hypot", 2], arctan2: ["arctan2", 2], atan2: ["arctan2", 2], where: ["where", 3] };
export const FORMULA_CONSTANTS = { pi: 3.141592653589793, e: 2.718281828459045 };
export const FORMULA_OVER_VECTOR = ["sum", "mean", "prod"];

export const FORMULA_OPERATIONS = (() => {
// The size of a with the sign of b.
const copysign = (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a));
// A product as two numbers, the rounded one and its error (T. J. Dekker 1971).
const product = (a, b) => {
  const p = a * b;
  const s = 134217729 * a, t = 134217729 * b;
  const high = s - (s - a), other = t - (t - b);
  const low = a - high, rest = b - other;
  return [p, low * rest - (p - high * other - low * other - high * rest)];
};
// A power. Whole exponents up to 64 are multiplied out with twice the digits, because Math.pow may
// be off in the last one.
const power = (x, y) => {
  if (y === 2) return x * x;
  if (y === 0.5) return Math.sqrt(x);
  if (y === 1 || y === -1) return y === 1 ? x : 1 / x;
  const plain = y === 0 || x === 1 ? 1 : Math.pow(x, y);
  const n = Math.abs(y);
  if (!(n <= 64) || n % 1 !== 0 || n < 2) return plain;
  if (!(Math.abs(plain) < 1e200 && Math.abs(plain) > 1e-200)) return plain;
  let high = 1, low = 0;
  for (let square = x, error = 0, k = n; ; ) {
    if (k % 2 === 1) {
      const [p, d] = product(high, square);
      const e = d + (high * error + low * square);
      high = p + e;
      low = e - (high - p);
    }
    k = Math.floor(k / 2);
    if (k === 0) break;
    const [p, d] = product(square, square);
    const e = d + 2 * square * error;
    square = p + e;
    error = e - (square - p);
  }
  if (y > 0) return high;
  const q = 1 / high;
  const [p, d] = product(q, high);
  return q + q * (1 - p - d - q * low);
};
// The larger number, as np.maximum: NaN wins, and of two zeros the second.
const maximum = (a, b) => (a > b || a !== a ? a : b);
// The smaller number, as np.minimum: NaN wins, and of two zeros the second.
const minimum = (a, b) => (a < b || a !== a ? a : b);
// -1, 0 or 1, as np.sign: the sign of -0 is 0.
const sign = (x) => (x > 0 ? 1 : x < 0 ? -1 : x === 0 ? 0 : x);
// The length of (a, b), without overflow on the way; the error of the root is taken out once.
const hypot = (a, b) => {
  if (Math.abs(a) === Infinity || Math.abs(b) === Infinity) return Infinity;
  const [large, small] = Math.abs(a) > Math.abs(b) ? [Math.abs(a), Math.abs(b)]
    : [Math.abs(b), Math.abs(a)];
  if (small === 0 || large !== large || small !== small) return large + small;
  const [u, v, unit] = large > 1e150 ? [large * 1e-200, small * 1e-200, 1e200]
    : small < 1e-150 ? [large * 1e200, small * 1e200, 1e-200] : [large, small, 1];
  if (v < u * 1e-10) return large;
  const root = Math.sqrt(u * u + v * v);
  const [uu, du] = product(u, u);
  const [vv, dv] = product(v, v);
  const [rr, dr] = product(root, root);
  return (root - (rr - uu - vv + (dr - du - dv)) / (2 * root)) * unit;
};
// The hyperbolic tangent, for small x by Lambert"s continued fraction: Math.tanh may be 2 units of
// the last place away from the true value there.
const tanh = (x) => {
  const a = Math.abs(x);
  if (a < 1e-9) return x;
  if (!(a < 0.6)) return copysign(1 - 2 / (Math.expm1(2 * a) + 2), x);
  let u = 0;
  for (let k = 17; k > 1; k -= 2) u = (x * x) / (k + u);
  return x - (x * u) / (1 + u);
};
return {
  power,
  add: {
    value: (a, b) => { const v3 = a + b; return v3; },
    slopes: [
      (g, a, b) => g,
      (g, a, b) => g,
    ],
  },
  sub: {
    value: (a, b) => { const v3 = a - b; return v3; },
    slopes: [
      (g, a, b) => g,
      (g, a, b) => { const v7 = -g; return v7; },
    ],
  },
  mul: {
    value: (a, b) => { const v3 = a * b; return v3; },
    slopes: [
      (g, a, b) => { const v7 = g * b; return v7; },
      (g, a, b) => { const v8 = g * a; return v8; },
    ],
  },
  div: {
    value: (a, b) => { const v3 = a / b; return v3; },
    slopes: [
      (g, a, b) => { const v7 = g !== 0 ? b : 1; const v8 = g / v7; return v8; },
      (g, a, b) => { const v3 = a / b; const v9 = g !== 0 ? v3 : 0; const v10 = g * v9; const v11 = v10 !== 0 ? b : 1; const v12 = v10 / v11; const v13 = -v12; return v13; },
    ],
  },
  neg: {
    value: (a) => { const v2 = -a; return v2; },
    slopes: [
      (g, a) => { const v6 = -g; return v6; },
    ],
  },
  pow: {
    value: (a, b) => { const v3 = power(a, b); return v3; },
    slopes: [
      (g, a, b) => { const v7 = a === 0; const v8 = b === 0; const v9 = v7 && v8; const v10 = v9 ? 1 : a; const v11 = b - 1; const v12 = power(v10, v11); const v13 = b !== 0 ? v12 : 0; const v14 = b * v13; const v15 = g !== 0 ? v14 : 0; const v16 = g * v15; return v16; },
      (g, a, b) => { const v3 = power(a, b); const v7 = a === 0; const v18 = v7 ? 1 : a; const v19 = Math.log(v18); const v20 = v19 !== 0 ? v3 : 0; const v21 = v19 * v20; const v22 = g !== 0 ? v21 : 0; const v23 = g * v22; return v23; },
    ],
  },
  exp: {
    value: (a) => { const v2 = Math.exp(a); return v2; },
    slopes: [
      (g, a) => { const v2 = Math.exp(a); const v6 = g !== 0 ? v2 : 0; const v7 = g * v6; return v7; },
    ],
  },
  expm1: {
    value: (a) => { const v2 = Math.expm1(a); return v2; },
    slopes: [
      (g, a) => { const v2 = Math.expm1(a); const v6 = v2 + 1; const v7 = g !== 0 ? v6 : 0; const v8 = g * v7; return v8; },
    ],
  },
  log: {
    value: (a) => { const v2 = Math.log(a); return v2; },
    slopes: [
      (g, a) => { const v6 = g !== 0 ? a : 1; const v7 = g / v6; return v7; },
    ],
  },
  log2: {
    value: (a) => { const v2 = Math.log2(a); return v2; },
    slopes: [
      (g, a) => { const v6 = a * 0.6931471805599453; const v7 = g !== 0 ? v6 : 1; const v8 = g / v7; return v8; },
    ],
  },
  log10: {
    value: (a) => { const v2 = Math.log10(a); return v2; },
    slopes: [
      (g, a) => { const v6 = a * 2.302585092994046; const v7 = g !== 0 ? v6 : 1; const v8 = g / v7; return v8; },
    ],
  },
  log1p: {
    value: (a) => { const v2 = Math.log1p(a); return v2; },
    slopes: [
      (g, a) => { const v6 = a + 1; const v7 = g !== 0 ? v6 : 1; const v8 = g / v7; return v8; },
    ],
  },
  sqrt: {
    value: (a) => { const v2 = Math.sqrt(a); return v2; },
    slopes: [
      (g, a) => { const v2 = Math.sqrt(a); const v6 = v2 + v2; const v7 = g !== 0 ? v6 : 1; const v8 = g / v7; return v8; },
    ],
  },
  cbrt: {
    value: (a) => { const v2 = Math.cbrt(a); return v2; },
    slopes: [
      (g, a) => { const v2 = Math.cbrt(a); const v6 = 3 * v2; const v7 = v6 * v2; const v8 = g !== 0 ? v7 : 1; const v9 = g / v8; return v9; },
    ],
  },
  square: {
    value: (a) => { const v2 = a * a; return v2; },
    slopes: [
      (g, a) => { const v6 = a + a; const v7 = g * v6; return v7; },
    ],
  },
  sin: {
    value: (a) => { const v2 = Math.sin(a); return v2; },
    slopes: [
      (g, a) => { const v6 = Math.cos(a); const v7 = g * v6; return v7; },
    ],
  },
  cos: {
    value: (a) => { const v2 = Math.cos(a); return v2; },
    slopes: [
      (g, a) => { const v6 = -g; const v7 = Math.sin(a); const v8 = v6 * v7; return v8; },
    ],
  },
  tan: {
    value: (a) => { const v2 = Math.tan(a); return v2; },
    slopes: [
      (g, a) => { const v2 = Math.tan(a); const v6 = v2 * v2; const v7 = 1 + v6; const v8 = g * v7; return v8; },
    ],
  },
  arcsin: {
    value: (a) => { const v2 = Math.asin(a); return v2; },
    slopes: [
      (g, a) => { const v6 = 1 - a; const v7 = 1 + a; const v8 = v6 * v7; const v9 = Math.sqrt(v8); const v10 = g !== 0 ? v9 : 1; const v11 = g / v10; return v11; },
    ],
  },
  arccos: {
    value: (a) => { const v2 = Math.acos(a); return v2; },
    slopes: [
      (g, a) => { const v6 = 1 - a; const v7 = 1 + a; const v8 = v6 * v7; const v9 = Math.sqrt(v8); const v10 = g !== 0 ? v9 : 1; const v11 = g / v10; const v12 = -v11; return v12; },
    ],
  },
  arctan: {
    value: (a) => { const v2 = Math.atan(a); return v2; },
    slopes: [
      (g, a) => { const v6 = a * a; const v7 = 1 + v6; const v8 = g / v7; return v8; },
    ],
  },
  sinh: {
    value: (a) => { const v2 = Math.sinh(a); return v2; },
    slopes: [
      (g, a) => { const v6 = Math.cosh(a); const v7 = g !== 0 ? v6 : 0; const v8 = g * v7; return v8; },
    ],
  },
  cosh: {
    value: (a) => { const v2 = Math.cosh(a); return v2; },
    slopes: [
      (g, a) => { const v6 = Math.sinh(a); const v7 = g !== 0 ? v6 : 0; const v8 = g * v7; return v8; },
    ],
  },
  tanh: {
    value: (a) => { const v2 = tanh(a); return v2; },
    slopes: [
      (g, a) => { const v2 = tanh(a); const v6 = v2 * v2; const v7 = 1 - v6; const v8 = g * v7; return v8; },
    ],
  },
  absolute: {
    value: (a) => { const v2 = Math.abs(a); return v2; },
    slopes: [
      (g, a) => { const v6 = sign(a); const v7 = v6 !== 0 ? g : 0; const v8 = v6 * v7; return v8; },
    ],
  },
  sign: {
    value: (a) => { const v2 = sign(a); return v2; },
    slopes: [
      (g, a) => { const v7 = false ? g : 0; return v7; },
    ],
  },
  maximum: {
    value: (a, b) => { const v3 = maximum(a, b); return v3; },
    slopes: [
      (g, a, b) => { const v7 = a >= b; const v8 = b >= a; const v9 = v7 && v8; const v10 = 0.5 * g; const v11 = v9 ? v10 : g; const v12 = v7 ? v11 : 0; return v12; },
      (g, a, b) => { const v7 = a >= b; const v8 = b >= a; const v9 = v7 && v8; const v10 = 0.5 * g; const v11 = v9 ? v10 : g; const v13 = v8 ? v11 : 0; return v13; },
    ],
  },
  minimum: {
    value: (a, b) => { const v3 = minimum(a, b); return v3; },
    slopes: [
      (g, a, b) => { const v7 = a <= b; const v8 = b <= a; const v9 = v7 && v8; const v10 = 0.5 * g; const v11 = v9 ? v10 : g; const v12 = v7 ? v11 : 0; return v12; },
      (g, a, b) => { const v7 = a <= b; const v8 = b <= a; const v9 = v7 && v8; const v10 = 0.5 * g; const v11 = v9 ? v10 : g; const v13 = v8 ? v11 : 0; return v13; },
    ],
  },
  hypot: {
    value: (a, b) => { const v3 = hypot(a, b); return v3; },
    slopes: [
      (g, a, b) => { const v3 = hypot(a, b); const v7 = a !== 0 ? v3 : 1; const v8 = a / v7; const v9 = g * v8; return v9; },
      (g, a, b) => { const v3 = hypot(a, b); const v10 = b !== 0 ? v3 : 1; const v11 = b / v10; const v12 = g * v11; return v12; },
    ],
  },
  arctan2: {
    value: (a, b) => { const v3 = Math.atan2(a, b); return v3; },
    slopes: [
      (g, a, b) => { const v7 = a * a; const v8 = b * b; const v9 = v7 + v8; const v10 = b !== 0 ? v9 : 1; const v11 = b / v10; const v12 = g * v11; return v12; },
      (g, a, b) => { const v7 = a * a; const v8 = b * b; const v9 = v7 + v8; const v13 = -g; const v17 = a !== 0 ? v9 : 1; const v18 = a / v17; const v19 = v13 * v18; return v19; },
    ],
  },
  where_lt: {
    value: (a, b, c, d) => { const v5 = a < b; const v6 = v5 ? c : d; return v6; },
    slopes: [
      null,
      null,
      (g, a, b, c, d) => { const v5 = a < b; const v10 = v5 ? g : 0; return v10; },
      (g, a, b, c, d) => { const v5 = a < b; const v11 = !v5; const v12 = v11 ? g : 0; return v12; },
    ],
  },
  where_le: {
    value: (a, b, c, d) => { const v5 = a <= b; const v6 = v5 ? c : d; return v6; },
    slopes: [
      null,
      null,
      (g, a, b, c, d) => { const v5 = a <= b; const v10 = v5 ? g : 0; return v10; },
      (g, a, b, c, d) => { const v5 = a <= b; const v11 = !v5; const v12 = v11 ? g : 0; return v12; },
    ],
  },
  where_gt: {
    value: (a, b, c, d) => { const v5 = a > b; const v6 = v5 ? c : d; return v6; },
    slopes: [
      null,
      null,
      (g, a, b, c, d) => { const v5 = a > b; const v10 = v5 ? g : 0; return v10; },
      (g, a, b, c, d) => { const v5 = a > b; const v11 = !v5; const v12 = v11 ? g : 0; return v12; },
    ],
  },
  where_ge: {
    value: (a, b, c, d) => { const v5 = a >= b; const v6 = v5 ? c : d; return v6; },
    slopes: [
      null,
      null,
      (g, a, b, c, d) => { const v5 = a >= b; const v10 = v5 ? g : 0; return v10; },
      (g, a, b, c, d) => { const v5 = a >= b; const v11 = !v5; const v12 = v11 ? g : 0; return v12; },
    ],
  },
};
})();
