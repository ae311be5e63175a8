"use strict";
/* The column at the right: what is known of the operator that is selected, or how to read the drawing. */

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function heading(host, text) { host.appendChild(element("h3", "", text)); }

/** Fills the column for `name` in the last stage shown that has it. */
function showDetails(host, app, name) {
  host.replaceChildren();
  const trees = app.panes.map((pane) => pane.tree).reverse();
  const tree = trees.find((one) => name !== null && one.nodes.has(name));
  if (!tree) { legend(host, app); return; }
  const node = tree.nodes.get(name);
  host.appendChild(element("h2", "", node.label));
  if (node.kind !== "op") { endPoint(host, app, tree, node); return; }
  const record = node.record;
  const tags = host.appendChild(element("p"));
  tags.appendChild(element("span", "tag", record.o));
  tags.appendChild(element("span", "tag " + (record.b ? "backward" : "forward"), record.b ? "backward" : "forward"));
  if (record.m) tags.appendChild(element("span", "tag made", "made by " + record.m));
  app.panes.forEach((pane) => { if (!pane.tree.nodes.has(name)) tags.appendChild(element("span", "tag removed", "not in " + app.title(pane.place))); });
  heading(host, "Result");
  host.appendChild(element("p", "mono", record.k || "none"));
  earlier(host, app, record);
  if (record.u) {
    heading(host, "One kernel for");
    host.appendChild(element("p", "mono", record.u.join(" → ")));
  }
  sources(host, app, record);
  heading(host, "Scope");
  host.appendChild(element("p", "mono", record.f));
  share(host, tree, node);
  values(host, app, tree, node);
  argumentsOf(host, tree, record);
}

/** How the operator was in the stage on the left, where it was another. */
function earlier(host, app, record) {
  const pane = app.panes[0], node = pane.tree.nodes.get(record.n);
  if (app.panes.length < 2 || !node || node.record === record) return;
  heading(host, "In " + app.title(pane.place));
  host.appendChild(element("p", "mono", node.record.o + given(node.record)));
  if (node.record.k !== record.k) host.appendChild(element("p", "mono", node.record.k || "none"));
}

function endPoint(host, app, tree, node) {
  host.appendChild(element("p", "quiet", node.kind === "input" ? "an input of the graph" : "what the graph gives back"));
  if (node.type) host.appendChild(element("p", "mono", node.type));
  values(host, app, tree, node);
}

/** The user's lines, the innermost first, with the call marked. */
function sources(host, app, record) {
  const lines = (record.l || []).slice().reverse();
  if (!lines.length) return;
  heading(host, "Source");
  lines.slice(0, 6).forEach((line, depth) => {
    const box = host.appendChild(element("div", "source"));
    box.appendChild(element("span", "place", (depth ? "called from " : "") + line));
    const text = app.compilation.sources[line] || "";
    const indent = text.length - text.trimStart().length, code = box.appendChild(element("code"));
    if (depth === 0 && record.x) {
      code.append(text.slice(indent, record.x[0]));
      code.appendChild(element("mark", "", text.slice(record.x[0], record.x[1])));
      code.append(text.slice(record.x[1]));
    } else code.textContent = text.trim();
  });
}

function share(host, tree, node) {
  const part = tree.cost ? node.cost / tree.cost : 0;
  heading(host, tree.isMeasured ? "Time share, measured" : "Time share, estimated from the shapes");
  const bar = host.appendChild(element("div", "share"));
  bar.appendChild(element("i")).style.width = (100 * part).toFixed(2) + "%";
  host.appendChild(element("p", "quiet", percent(part) + " of this graph; " + (tree.isMeasured ? microseconds(node.cost) + ", run by itself" : "not measured")));
}

/** A type; of several results only the first. */
function brief(type) {
  const place = type.indexOf("], ");
  return place < 0 ? type : type.slice(0, place + 1) + ", …";
}

function microseconds(time) { return time < 1000 ? time.toFixed(1) + " µs" : (time / 1000).toFixed(2) + " ms"; }

function percent(part) { return (100 * part).toFixed(part < 0.01 ? 2 : 1) + " %"; }

/** What an operator reads and who reads it, each a link. */
function values(host, app, tree, node) {
  const names = [...new Set(node.reads || (node.record && node.record.r) || [])];
  list(host, "Reads", names.map((name) => tree.inputs.get(name) && tree.inputs.get(name).p ? tree.inputs.get(name) : tree.nodes.get(name)), app);
  list(host, "Read by", [...new Set(node.readers || [])], app);
}

function list(host, title, items, app) {
  const found = items.filter(Boolean);
  if (!found.length) return;
  heading(host, title);
  const ul = host.appendChild(element("ul", "values"));
  for (const item of found.slice(0, 40)) {
    const li = ul.appendChild(element("li"));
    if (item.p) li.appendChild(element("span", "parameter", item.t));
    else li.appendChild(element("button", "", item.label)).onclick = () => app.select(item.id);
    li.appendChild(element("span", "mono", brief(item.p ? item.k : item.type || "")));
  }
  if (found.length > 40) host.appendChild(element("p", "quiet", "and " + (found.length - 40) + " more"));
}

function argumentsOf(host, tree, record) {
  heading(host, "Arguments");
  const named = given(record).replace(/%([\w.]+)/g, (whole, name) => (tree.inputs.has(name) ? tree.inputs.get(name).t : whole));
  host.appendChild(element("p", "mono", named));
}

function given(record) {
  return "(" + [...(record.g || []), ...Object.entries(record.a || {}).map(([name, value]) => name + "=" + value)].join(", ") + ")";
}

/** How to read the drawing, and what takes most of the estimated time. */
function legend(host, app) {
  const compilation = app.compilation, tree = app.panes[0].tree;
  host.appendChild(element("h2", "", compilation.name));
  host.appendChild(element("p", "quiet", `compiled in ${compilation.seconds.toFixed(2)} s for ${compilation.line}`));
  heading(host, "Compile options");
  const options = host.appendChild(element("ul", "values"));
  for (const [name, value] of Object.entries(compilation.settings)) {
    const li = options.appendChild(element("li"));
    li.append(name, element("span", "mono", value));
  }
  heading(host, "Colours");
  const keys = host.appendChild(element("div"));
  for (const [text, colour] of [["forward", "forward"], ["gradient", "backward"], ["put in by a step", "made"], ["input", "input"], ["time", "heat"]]) {
    const key = keys.appendChild(element("span", "key"));
    key.appendChild(element("i")).style.background = `var(--${colour})`;
    key.append(text);
  }
  host.appendChild(element("p", "quiet", "Edges from the forward part to its gradient, and the many into one box, are drawn when one end is selected."));
  heading(host, tree.isMeasured ? "Longest, measured" : "Longest, estimated from the shapes");
  const ops = [...tree.nodes.values()].filter((node) => node.kind === "op").sort((a, b) => b.cost - a.cost).slice(0, 8);
  const ul = host.appendChild(element("ul", "values"));
  for (const node of ops) {
    const li = ul.appendChild(element("li"));
    li.appendChild(element("button", "", node.type ? node.label + " · " + brief(node.type) : node.label)).onclick = () => app.select(node.id);
    li.appendChild(element("span", "mono", percent(node.cost / (tree.cost || 1))));
  }
  heading(host, "Keys");
  const help = host.appendChild(element("p", "quiet"));
  for (const [key, text] of [["↑ ↓", "stages"], ["c", "compare"], ["f", "fit"], ["/", "find"], ["Esc", "nothing selected"]]) {
    help.append(element("kbd", "", key), " " + text + "   ");
  }
}
