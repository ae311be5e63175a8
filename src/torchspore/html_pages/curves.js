"use strict";
/* The page of a training: curves, histograms, images, what it was made of, the network. */

for (const [name, points] of Object.entries(data.scalars)) {
  const host = section(name), good = points.filter(([, value]) => value !== null);
  host.dataset.kind = "scalar";
  if (good.length) host.appendChild(element("p", "quiet", `last ${figure(good[good.length - 1][1])} at step ${good[good.length - 1][0]}, least ${figure(Math.min(...good.map(([, v]) => v)))}`));
  curve(host, points, figure);
}

for (const [name, rows] of Object.entries(data.histograms)) {
  const host = section(name), choice = host.appendChild(element("div", "bar")), place = host.appendChild(element("div"));
  host.dataset.kind = "histogram";
  const slider = choice.appendChild(element("input")), told = choice.appendChild(element("span", "quiet"));
  slider.type = "range";
  slider.max = rows.length - 1;
  slider.value = rows.length - 1;
  slider.setAttribute("aria-label", "Step");
  const draw = () => {
    const row = rows[slider.value];
    place.replaceChildren();
    told.textContent = `step ${row.step}` + (row.counts ? `: mean ${figure(row.mean)}, deviation ${figure(row.deviation)}` : "") + (row.bad ? `; ${row.bad} are no numbers` : "");
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
    picture.alt = `${name} at step ${step}`;
    one.appendChild(element("span", "", `step ${step}`));
  }
}

for (const [name, text] of Object.entries(data.texts)) section(name, true).appendChild(element("pre", "", text));

if (data.graph.length) {
  const host = section("Network", true);
  host.dataset.kind = "graph";
  host.appendChild(element("p", "quiet", data.graphAbout));
  table(host, [["name", "name", null, "name"], ["kind", "type"], ["about", "shape", null, "name"], ["reads", "reads", (names) => names.join(", "), "name"]], data.graph, 400);
}
if (!document.querySelector("section")) section("Nothing was recorded", true);
markReady();
