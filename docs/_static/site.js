// Draw the figures of plotly that notebooks have left in the page; plotly itself lies beside this file.
const figures = document.querySelectorAll(".site-figure");
if (figures.length) {
  const script = document.createElement("script");
  script.src = `${document.documentElement.dataset.content_root ?? "./"}_static/plotly.js`;
  script.onload = () => {
    for (const place of figures) {
      const figure = JSON.parse(place.querySelector("script").textContent);
      const picture = place.querySelector("img");
      if (picture && place.clientWidth < 0.8 * (figure.layout.width ?? 0)) continue; // too narrow
      const drawn = document.createElement("div");
      place.append(drawn);
      Plotly.newPlot(drawn, { ...figure, config: { ...figure.config, displaylogo: false } });
      picture?.remove();
    }
  };
  document.head.append(script);
}
