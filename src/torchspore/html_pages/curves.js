"use strict";
/* The page of a training: curves, histograms, images, what it was made of, the network. */

for (const [name, points] of Object.entries(data.scalars)) {
  const host = section(name), good = points.filter(([, value]) => value !== null);
  host.dataset.kind = "scalar";
  if (good.length) host.appendChild(element("p", "quiet", tr(
    "last %0 at step %1, smallest %2", figure(good[good.length - 1][1]), good[good.length - 1][0], figure(Math.min(...good.map(([, v]) => v))))));
  curve(host, points, figure);
}

for (const [name, rows] of Object.entries(data.histograms)) {
  const host = section(name), choice = host.appendChild(element("div", "bar")), place = host.appendChild(element("div"));
  host.dataset.kind = "histogram";
  const slider = choice.appendChild(element("input")), told = choice.appendChild(element("span", "quiet"));
  slider.type = "range";
  slider.max = rows.length - 1;
  slider.value = rows.length - 1;
  slider.setAttribute("aria-label", tr("Step"));
  const draw = () => {
    const row = rows[slider.value];
    place.replaceChildren();
    told.textContent = tr("step %0", row.step) + (row.counts ? tr(": mean %0, deviation %1", figure(row.mean), figure(row.deviation)) : "") +
      (row.bad ? tr("; %0 are not finite", row.bad) : "");
    if (row.counts) columns(place, row.edges, row.counts);
  };
  slider.oninput = draw;
  draw();
}

for (const [name, rows] of Object.entries(data.images)) {
  const host = section(name), row = host.appendChild(element("div", "cards"));
  host.dataset.kind = "image";
  for (const { step, png } of rows) {
    const one = row.appendChild(element("div")), picture = one.appendChild(element("img", "picture"));
    picture.src = png;
    picture.alt = tr("%0 at step %1", name, step);
    one.appendChild(element("span", "", tr("step %0", step)));
  }
}

for (const [name, text] of Object.entries(data.texts)) section(name, true).appendChild(element("pre", "", text));

if (data.graph.length) {
  const host = section(tr("Network"), true);
  host.dataset.kind = "graph";
  host.appendChild(element("p", "quiet", data.graphAbout));
  table(host, [
    ["name", tr("name"), null, "name"], ["kind", tr("type")], ["about", tr("shape"), null, "name"],
    ["reads", tr("reads"), (names) => names.join(", "), "name"],
  ], data.graph, 400);
}
if (!document.querySelector("section")) section(tr("Nothing was recorded"), true);
markReady();
