// Draw the figures of plotly that notebooks have left in the page; plotly itself lies beside this file.
const SMALLEST = 0.7; // of the size of a figure: its letters can still be read
const figures = document.querySelectorAll(".site-figure");
if (figures.length) {
  const script = document.createElement("script");
  script.src = `${document.documentElement.dataset.content_root ?? "./"}_static/plotly.js`;
  script.onload = () => {
    for (const place of figures) {
      const figure = JSON.parse(place.querySelector("script").textContent);
      const width = figure.layout.width ?? 0, scale = width ? Math.min(1, place.clientWidth / width) : 1;
      const picture = place.querySelector("img");
      if (picture && scale < SMALLEST) continue; // a picture can be smaller
      const drawn = document.createElement("div");
      place.append(drawn);
      Plotly.newPlot(drawn, { ...figure, config: { ...figure.config, displaylogo: false } });
      if (scale < 1 && scale >= SMALLEST) { // narrower: it keeps its size and scrolls
        drawn.style.cssText = `width: ${width}px; transform: scale(${scale}); transform-origin: 0 0`;
        place.style.height = `${Math.ceil(scale * drawn.clientHeight)}px`;
      }
      picture?.remove();
    }
  };
  document.head.append(script);
}
