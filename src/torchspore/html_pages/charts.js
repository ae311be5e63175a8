"use strict";
/* Curves and columns as SVG. */

const HIGH = 190, BELOW = 22, ABOVE = 8, RIGHT = 12;
const LETTER = 6.6;      // the width of a character of an axis, at most

/**
 * A chart as wide as its host, in CSS pixels, so that texts have their size on every screen; drawn again when that changes. A screen reader
 * reads `label` in its place.
 */
function chart(host, high, label, draw) {
  const made = host.appendChild(drawn("svg", { height: high, role: "img", "aria-label": label }));
  let before = 0;
  const again = () => {
    const wide = Math.max(220, Math.floor(made.getBoundingClientRect().width) || 560);
    if (wide === before || !made.isConnected) return;
    before = wide;
    made.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    made.replaceChildren();
    draw(made, wide);
  };
  again();
  new ResizeObserver(again).observe(made);          // a section becomes narrower when the next one is added beside it
  return made;
}

/** Round numbers between two, about `count` of them. */
function ticks(low, high, count) {
  const span = high - low || 1, raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((one) => one >= raw) || raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9 && found.length < 50; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

/** The axes of a chart that is `wide`; labels stay inside of it, and those that would lie over another one are left out. */
function axes(host, wide, low, high, first, last, show, across) {
  const marks = ticks(low, high, 4), left = Math.min(wide / 3, 12 + LETTER * Math.max(3, ...marks.map((at) => show(at).length)));
  const y = (value) => ABOVE + (HIGH - ABOVE - BELOW) * (1 - (value - low) / (high - low || 1));
  const x = (value) => left + (wide - left - RIGHT) * ((value - first) / (last - first || 1));
  for (const at of marks) {
    host.appendChild(drawn("line", { class: "grid", x1: left, x2: wide - RIGHT, y1: y(at), y2: y(at) }));
    host.appendChild(drawn("text", { x: left - 6, y: Math.max(y(at) + 4, 10), "text-anchor": "end" }, show(at)));
  }
  let until = 0;
  for (const at of ticks(first, last, Math.max(4, Math.min(8, Math.floor(wide / 90))))) {
    const text = across(at), half = (LETTER * text.length) / 2, middle = Math.min(Math.max(x(at), half + 1), wide - half - 1);
    if (!text || middle - half < until) continue;
    until = middle + half + 8;
    host.appendChild(drawn("text", { x: middle, y: HIGH - 6, "text-anchor": "middle" }, text));
  }
  return { x, y };
}

/** A curve through points [x, y]; those that are no numbers are left out and told. `filled` draws the area below from 0. */
function curve(host, points, show, across, filled) {
  const good = points.filter(([, y]) => y !== null), bad = points.length - good.length;
  if (good.length) {
    let low = Infinity, high = -Infinity;
    for (const [, y] of good) { low = Math.min(low, y); high = Math.max(high, y); }
    const label = tr("curve: first %0, last %1, smallest %2, largest %3", ...[good[0][1], good[good.length - 1][1], low, high].map(show));
    if (filled) low = Math.min(low, 0);
    if (low === high) { const by = Math.abs(low) * 0.05 || 1; low -= filled ? 0 : by; high += by; }
    chart(host, HIGH, label, (made, wide) => {
      const { x, y } = axes(made, wide, low, high, good[0][0], good[good.length - 1][0], show, across || figure);
      const path = "M" + good.map(([a, b]) => x(a).toFixed(1) + "," + y(b).toFixed(1)).join("L");
      if (filled) made.appendChild(drawn("path", { class: "area", d: path + `L${x(good[good.length - 1][0])},${y(low)}L${x(good[0][0])},${y(low)}Z` }));
      made.appendChild(drawn("path", { class: "curve", d: path }));
      if (good.length < 3) good.forEach(([a, b]) => made.appendChild(drawn("circle", { class: "dot", cx: x(a), cy: y(b), r: 3 })));
      made.onmousemove = (event) => {
        const box = made.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * wide;
        const near = good.reduce((best, point) => (Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best));
        tell(event, (across || figure)(near[0]) + ": " + show(near[1]));
      };
      made.onmouseleave = () => tip.hidden = true;
    });
  }
  if (bad) host.appendChild(element("p", "quiet", tr("%0 values are not finite (nan or infinity)", bad)));
}

/** Counts between edges as columns. */
function columns(host, edges, counts, show) {
  const ends = [edges[0], edges[edges.length - 1]].map(show || figure);
  chart(host, HIGH, tr("histogram from %0 to %1, highest column %2", ...ends, figure(Math.max(...counts))), (made, wide) => {
    const { x, y } = axes(made, wide, 0, Math.max(1, ...counts), edges[0], edges[edges.length - 1], figure, show || figure);
    counts.forEach((count, place) => {
      const left = x(edges[place]), right = x(edges[place + 1]);
      made.appendChild(drawn("rect", { class: "dot", x: left + 0.5, width: Math.max(0.5, right - left - 1), y: y(count), height: y(0) - y(count) }));
    });
  });
}
