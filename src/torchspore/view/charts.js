"use strict";
/* Curves and columns as SVG. */

const HIGH = 190, LEFT = 62, BELOW = 22, ABOVE = 8;

let WIDE = 560;          // of the chart that is being drawn

/** Round numbers between two, about `count` of them. */
function ticks(low, high, count) {
  const span = high - low || 1, raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((one) => one >= raw) || raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9 && found.length < 50; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

function axes(chart, low, high, first, last, show, across) {
  const y = (value) => ABOVE + (HIGH - ABOVE - BELOW) * (1 - (value - low) / (high - low || 1));
  const x = (value) => LEFT + (WIDE - LEFT - 10) * ((value - first) / (last - first || 1));
  for (const at of ticks(low, high, 4)) {
    chart.appendChild(drawn("line", { class: "grid", x1: LEFT, x2: WIDE - 10, y1: y(at), y2: y(at) }));
    chart.appendChild(drawn("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, show(at)));
  }
  for (const at of ticks(first, last, 5)) chart.appendChild(drawn("text", { x: x(at), y: HIGH - 6, "text-anchor": "middle" }, across(at)));
  return { x, y };
}

/** A curve through points [x, y]; those that are no numbers are left out and told. `filled` draws the area below from 0. */
function curve(host, points, show, across, filled) {
  WIDE = host.closest("section.wide") ? 1120 : 560;
  const wide = WIDE;
  const good = points.filter(([, y]) => y !== null), bad = points.length - good.length;
  if (good.length) {
    let low = filled ? 0 : Infinity, high = -Infinity;
    for (const [, y] of good) { low = Math.min(low, y); high = Math.max(high, y); }
    if (low === high) { const by = Math.abs(low) * 0.05 || 1; low -= filled ? 0 : by; high += by; }
    const chart = host.appendChild(drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}` }));
    const { x, y } = axes(chart, low, high, good[0][0], good[good.length - 1][0], show, across || figure);
    const path = "M" + good.map(([a, b]) => x(a).toFixed(1) + "," + y(b).toFixed(1)).join("L");
    if (filled) chart.appendChild(drawn("path", { class: "area", d: path + `L${x(good[good.length - 1][0])},${y(low)}L${x(good[0][0])},${y(low)}Z` }));
    chart.appendChild(drawn("path", { class: "curve", d: path }));
    if (good.length < 3) good.forEach(([a, b]) => chart.appendChild(drawn("circle", { class: "dot", cx: x(a), cy: y(b), r: 3 })));
    chart.onmousemove = (event) => {
      const box = chart.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * wide;
      const near = good.reduce((best, point) => (Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best));
      tell(event, (across || figure)(near[0]) + ": " + show(near[1]));
    };
    chart.onmouseleave = () => tip.hidden = true;
  }
  if (bad) host.appendChild(element("p", "quiet", bad + " values are no numbers (nan or infinite)"));
}

/** Counts between edges as columns. */
function columns(host, edges, counts, show) {
  WIDE = host.closest("section.wide") ? 1120 : 560;
  const chart = host.appendChild(drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}` }));
  const { x, y } = axes(chart, 0, Math.max(1, ...counts), edges[0], edges[edges.length - 1], figure, show || figure);
  counts.forEach((count, place) => {
    const left = x(edges[place]), right = x(edges[place + 1]);
    chart.appendChild(drawn("rect", { class: "dot", x: left + 0.5, width: Math.max(0.5, right - left - 1), y: y(count), height: y(0) - y(count) }));
  });
}
