// A model of ipywidgets that is never shown: the bridge between the page of an output and its kernel.
// In a box of ipywidgets it is shown: then it asks the kernel for the page.

/** @param {string} name
 * @param {any} detail */
const told = (name, detail) => window.dispatchEvent(new CustomEvent(name, { detail }));

/** @param {string} text */
const unpacked = async (text) => {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
};

export default {
  /** @param {{model: any}} given */
  initialize({ model }) {
    const place = model.get("place");
    const names = /** @type {string[]} */ (model.get("shared"));
    const values = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const tell = (/** @type {any} */ detail) => told(`ol-page:${place}`, detail);
    // Of a model, anywidget shows neither whether its kernel is there nor in what way that has changed.
    let live = true;
    const missed = () => {
      live = false;
      tell({ gone: true });
      try {
        model.send({ hello: true }); // a kernel that is there after all will answer
      } catch {
        // there is none
      }
    };
    const heard = (/** @type {any} */ detail) => {
      live = true;
      tell(detail);
    };
    const listen = (/** @type {any} */ { detail }) => {
      if (!live) return;
      if (detail.hello) {
        tell({ hello: true, values: values() });
        model.send({ hello: true });
      }
      for (const [name, value] of Object.entries(detail.values || {})) model.set(name, value);
      if (detail.values) model.save_changes();
      if (detail.message !== undefined) model.send(detail.message);
    };
    window.addEventListener(`ol-kernel:${place}`, listen);
    for (const name of names) model.on(`change:${name}`, () => live && tell({ values: { [name]: model.get(name) } }));
    model.on("msg:custom", (/** @type {any} */ message, /** @type {any} */ buffers) => message.page || heard({ message, buffers }));
    model.on("comm_live_update", missed);
    tell({ values: values() });
    return () => {
      window.removeEventListener(`ol-kernel:${place}`, listen);
      tell({ gone: true });
    };
  },
  /** @param {{model: any, el: HTMLElement}} given */
  render({ model, el }) {
    let close = () => {};
    const open = async (/** @type {any} */ { page }) => {
      if (!page || el.dataset.live) return;
      el.dataset.live = "true";
      const source = new Blob([await unpacked(page.app)], { type: "text/javascript" });
      const { open: shown } = await import(URL.createObjectURL(source));
      close = shown(el, JSON.parse(await unpacked(page.stored)), model.get("place"));
    };
    model.on("msg:custom", open);
    model.send({ ask: "page" });
    return () => {
      model.off("msg:custom", open);
      close();
    };
  },
};
