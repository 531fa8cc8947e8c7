// Which part of a surface is shown, as pictures choose it (optlab.viz.style.geometry.view_box).

/** A box close to the paths, and not far beyond the domain: it shows the start and the minima in any case, paths
 * within half the extent of the domain around it, and at least a third of the domain in each direction.
 * @param {number[][]} must points that are shown
 * @param {{x: ArrayLike<number>, y: ArrayLike<number>}[]} paths
 * @param {number[][]} domain
 * @returns {number[]} */
export function viewBox(must, paths, domain) {
  const across = domain.map(([low, high]) => high - low);
  const low = domain.map(([from], c) => Math.min(from - across[c] / 2, ...must.map((point) => point[c])));
  const high = domain.map(([, to], c) => Math.max(to + across[c] / 2, ...must.map((point) => point[c])));
  const near = [Infinity, Infinity], far = [-Infinity, -Infinity];
  const add = (/** @type {number} */ value, /** @type {number} */ c) => {
    near[c] = Math.min(near[c], value);
    far[c] = Math.max(far[c], value);
  };
  for (const point of must) point.forEach(add);
  for (const { x, y } of paths) {
    for (let i = 0; i < x.length; i++) {
      if (!(x[i] >= low[0] && x[i] <= high[0] && y[i] >= low[1] && y[i] <= high[1])) continue;
      add(x[i], 0);
      add(y[i], 1);
    }
  }
  return [0, 1].flatMap((c) => {
    const extent = Math.max(1.24 * (far[c] - near[c]), across[c] / 3), middle = (near[c] + far[c]) / 2;
    // A point on the limit, such as a start far outside, still needs space for its mark.
    return [Math.min(Math.max(middle - extent / 2, low[c]), near[c] - 0.06 * extent), Math.max(Math.min(middle + extent / 2, high[c]), far[c] + 0.06 * extent)];
  });
}
