"use strict";
/* Where boxes and edges go: dagre lays out what is open, groups as clusters around their members. */

const LEAST_WIDTH = 84, MOST_WIDTH = 260, HEAD = 22;
const BOLD = "600 12.5px ", CODE = "400 11px ";      // the fonts of drawing.css
const MANY = 8;         // edges into one box that are drawn at most

const pen = document.createElement("canvas").getContext("2d"), families = {};

/** The width of a text in a font: BOLD has the page's sans family, CODE its mono family. */
function widthOf(text, font) {
  if (!families[font]) families[font] = getComputedStyle(document.documentElement).getPropertyValue(font === BOLD ? "--sans" : "--mono").trim();
  pen.font = font + families[font];
  return pen.measureText(text).width;
}

/** The text of a box, cut so that it fits. */
function fitting(text, width, font) {
  if (widthOf(text, font) <= width) return text;
  let low = 1, high = text.length;
  while (low < high) {
    const most = Math.ceil((low + high) / 2);
    if (widthOf(text.slice(0, most) + "…", font) <= width) low = most; else high = most - 1;
  }
  return text.slice(0, low) + "…";
}

function linesOf(box) {
  const lines = [box.label];
  if (box.kind === "group") lines.push(box.size === 1 ? tr("1 operator") : tr("%0 operators", box.size));
  else if (box.type) lines.push(box.type);
  if (box.weights && box.weights.length) lines.push(box.weights.length > 2 ? tr("%0 Parameters", box.weights.length) : box.weights.map((w) => w.t).join(", "));
  return lines;
}

function sizeOf(box) {
  const lines = linesOf(box);
  const wide = Math.max(widthOf((box.kind === "group" ? "+ " : "") + lines[0], BOLD), ...lines.slice(1).map((line) => widthOf(line, CODE))) + 26;
  return { width: Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, wide)), height: 12 + 16 * lines.length + (box.kind === "group" ? 4 : 0) };
}

/** {boxes: [{box, x, y, width, height}], clusters: [{group, x, y, width, height}], edges: [{from, to, points, count}], width, height}. */
function layout(tree, open) {
  const boxes = boxesOf(tree, open);
  const graph = new dagre.graphlib.Graph({ compound: true, multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 20, ranksep: 34, edgesep: 8, marginx: 18, marginy: 18 });
  graph.setDefaultEdgeLabel(() => ({}));
  const clusters = new Set();
  for (const box of boxes) {
    graph.setNode(box.id || "return", { ...sizeOf(box), box });
    for (let inner = box.id, around = box.parent; around && around.id; inner = around.id, around = around.parent) {
      if (!clusters.has(around.id)) { clusters.add(around.id); graph.setNode(around.id, { group: around, paddingTop: HEAD }); }
      graph.setParent(inner, around.id);
    }
  }
  const { drawn, kept } = edgesOf(tree, open);
  for (const { from, to, count } of drawn) graph.setEdge(from.id, to.id, { count, weight: Math.min(4, count) });
  dagre.layout(graph);
  return { ...gathered(graph, clusters), kept };
}

/**
 * The edges between boxes: those that are laid out, and those that would pull all boxes into one long diagonal, which are shown when one of
 * their ends is selected. These are the edges from the forward part to a gradient that has another reason to stand where it stands, and of
 * the many into one box (an optimizer's) all but the last.
 */
function edgesOf(tree, open) {
  const counts = new Map();
  for (const [a, b] of tree.edges) {
    const from = boxOf(a, open), to = boxOf(b, open), key = from.id + "\u0000" + to.id;
    if (from === to) continue;
    if (counts.has(key)) counts.get(key).count++;
    else counts.set(key, { from, to, count: 1 });
  }
  const all = [...counts.values()], crosses = (edge) => isBackward(edge.to) && !isBackward(edge.from);
  const follows = new Set(all.filter((edge) => !crosses(edge)).map((edge) => edge.to));
  const into = new Map();
  for (const edge of all) into.set(edge.to, [...(into.get(edge.to) || []), edge]);
  const last = (edge) => into.get(edge.to).length <= MANY || into.get(edge.to).every((other) => other.from.order <= edge.from.order);
  const isDrawn = (edge) => (!crosses(edge) || !follows.has(edge.to)) && last(edge);
  return { drawn: all.filter(isDrawn), kept: all.filter((edge) => !isDrawn(edge)) };
}

function gathered(graph, clusters) {
  const at = (id) => { const { x, y, width, height } = graph.node(id); return { x: x - width / 2, y: y - height / 2, width, height }; };
  const boxes = [], around = [];
  for (const id of graph.nodes()) {
    if (!clusters.has(id)) { boxes.push({ box: graph.node(id).box, ...at(id) }); continue; }
    const place = at(id);
    around.push({ group: graph.node(id).group, ...place, y: place.y - HEAD + 6, height: place.height + HEAD - 6 });
  }
  around.sort((a, b) => b.width * b.height - a.width * a.height);
  const edges = graph.edges().map((edge) => ({ from: edge.v, to: edge.w, points: graph.edge(edge).points, count: graph.edge(edge).count }));
  return { boxes, clusters: around, edges, width: graph.graph().width || 1, height: (graph.graph().height || 1) + HEAD };
}

/** A smooth path through points. */
function curve(points) {
  if (points.length < 3) return "M" + points.map((p) => p.x + "," + p.y).join("L");
  let path = `M${points[0].x},${points[0].y}`;
  for (let i = 1; i < points.length - 1; i++) {
    const a = points[i], b = points[i + 1], last = i === points.length - 2;
    const x = last ? b.x : (a.x + b.x) / 2, y = last ? b.y : (a.y + b.y) / 2;
    path += `Q${a.x},${a.y} ${x},${y}`;
  }
  return path;
}
