// The model of a widget in a page: the interface of an anywidget model, over the data in the page.
//
// A page alone keeps what is set. Where there is a kernel, a model of ipywidgets that is never shown
// (bridge.js) and this one exchange events of the window, by the id of the output; either may come
// first.

/** Bytes of a text in base64.
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>} */
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export class PageModel {
  /** @param {Record<string, any>} stored the values of the traits
   * @param {string} place the id of the output; "" where there is never a kernel */
  constructor(stored, place = "") {
    this.stored = stored;
    this.place = place;
    this.alive = false;
    /** Whether there was a kernel, which is gone now. */
    this.orphaned = false;
    this.isStatic = !place;
    /** @type {Map<string, Set<Function>>} */
    this.listeners = new Map();
    /** @type {Record<string, any>} */
    this.changed = {};
    if (!place) return;
    const held = new WeakRef(this); // the window outlives the page of an output
    const listen = (/** @type {any} */ event) => {
      const model = held.deref();
      if (model) model.receive(event.detail);
      else window.removeEventListener(`ol-page:${place}`, listen);
    };
    window.addEventListener(`ol-page:${place}`, listen);
    this.disconnect = () => window.removeEventListener(`ol-page:${place}`, listen);
    this.post({ hello: true });
  }

  /** @param {any} detail */
  post(detail) {
    window.dispatchEvent(new CustomEvent(`ol-kernel:${this.place}`, { detail }));
  }

  /** @param {any} detail */
  receive({ hello, values, message, buffers, gone }) {
    if (gone) {
      this.orphaned ||= this.alive;
      this.alive = false;
      this.emit("alive");
      return;
    }
    if (!this.alive) {
      this.alive = true;
      this.orphaned = false;
      if (!hello) this.post({ hello: true });
      this.emit("alive");
    }
    for (const [name, value] of Object.entries(values || {})) {
      if (JSON.stringify(this.stored[name]) === JSON.stringify(value)) continue;
      this.stored[name] = value;
      this.emit(`change:${name}`);
    }
    if (message !== undefined) this.emit("msg:custom", message, buffers || []);
  }

  /** @param {string} event
   * @param {...any} given */
  emit(event, ...given) {
    for (const listener of this.listeners.get(event) || []) listener(...given);
  }

  /** @param {string} name
   * @returns {any} */
  get(name) {
    return this.stored[name];
  }

  /** @param {string} name
   * @param {any} value */
  set(name, value) {
    this.stored[name] = value;
    this.changed[name] = value;
  }

  save_changes() {
    const { changed } = this;
    this.changed = {};
    if (this.alive) this.post({ values: changed });
  }

  /** @param {any} message */
  send(message) {
    if (this.alive) this.post({ message });
  }

  /** @param {string} event
   * @param {Function} listener */
  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }

  /** @param {string} event
   * @param {Function} listener */
  off(event, listener) {
    this.listeners.get(event)?.delete(listener);
  }

  close() {
    if (this.disconnect) this.disconnect();
    this.listeners.clear();
  }
}

/** Open a widget in an element of a page.
 * @param {(given: {model: PageModel, el: HTMLElement}) => () => void} render
 * @param {HTMLElement} el
 * @param {Record<string, any>} stored bytes are texts in base64, below `bytes`
 * @param {string} [place]
 * @returns {() => void} what closes it */
export function openIn(render, el, stored, place = "") {
  const { bytes = {}, ...values } = stored;
  for (const [name, text] of Object.entries(bytes)) values[name] = new DataView(bytesOf(text).buffer);
  const model = new PageModel(values, place);
  const close = render({ model, el });
  return () => {
    close();
    model.close();
  };
}
