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
  tags.appendChild(element("span", "tag " + (record.b ? "backward" : "forward"), record.b ? tr("backward") : tr("forward")));
  if (record.m) tags.appendChild(element("span", "tag made", tr("made by %0", record.m)));
  app.panes.forEach((pane) => { if (!pane.tree.nodes.has(name)) tags.appendChild(element("span", "tag removed", tr("not in %0", app.title(pane.place)))); });
  heading(host, tr("Result"));
  host.appendChild(element("p", "mono", record.k || tr("none")));
  earlier(host, app, record);
  if (record.u) {
    heading(host, tr("One kernel for"));
    host.appendChild(element("p", "mono", record.u.join(" → ")));
  }
  sources(host, app, record);
  heading(host, tr("Scope"));
  host.appendChild(element("p", "mono", record.f));
  share(host, tree, node);
  values(host, app, tree, node);
  argumentsOf(host, tree, record);
}

/** How the operator was in the stage on the left, where it was another. */
function earlier(host, app, record) {
  const pane = app.panes[0], node = pane.tree.nodes.get(record.n);
  if (app.panes.length < 2 || !node || node.record === record) return;
  heading(host, tr("In %0", app.title(pane.place)));
  host.appendChild(element("p", "mono", node.record.o + given(node.record)));
  if (node.record.k !== record.k) host.appendChild(element("p", "mono", node.record.k || tr("none")));
}

function endPoint(host, app, tree, node) {
  host.appendChild(element("p", "quiet", node.kind === "input" ? tr("an input of the graph") : tr("what the graph gives back")));
  if (node.type) host.appendChild(element("p", "mono", node.type));
  values(host, app, tree, node);
}

/** The user's lines, the innermost first, with the call marked. */
function sources(host, app, record) {
  const lines = (record.l || []).slice().reverse();
  if (!lines.length) return;
  heading(host, tr("Source"));
  lines.slice(0, 6).forEach((line, depth) => {
    const box = host.appendChild(element("div", "source"));
    box.appendChild(element("span", "place", depth ? tr("called from %0", line) : line));
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
  heading(host, tree.isMeasured ? tr("Time share, measured") : tr("Time share, estimated from the shapes"));
  const bar = host.appendChild(element("div", "share"));
  bar.appendChild(element("i")).style.width = (100 * part).toFixed(2) + "%";
  host.appendChild(element("p", "quiet", tree.isMeasured ? tr("%0 of this graph; %1, run by itself", percent(part), microseconds(node.cost)) : tr("%0 of this graph; not measured", percent(part))));
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
  list(host, tr("Reads"), names.map((name) => tree.inputs.get(name) && tree.inputs.get(name).p ? tree.inputs.get(name) : tree.nodes.get(name)), app);
  list(host, tr("Read by"), [...new Set(node.readers || [])], app);
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
  if (found.length > 40) host.appendChild(element("p", "quiet", tr("and %0 more", found.length - 40)));
}

function argumentsOf(host, tree, record) {
  heading(host, tr("Arguments"));
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
  host.appendChild(element("p", "quiet", tr("compiled in %0 s for %1", compilation.seconds.toFixed(2), compilation.line)));
  heading(host, tr("Compile options"));
  const options = host.appendChild(element("ul", "values"));
  for (const [name, value] of Object.entries(compilation.settings)) {
    const li = options.appendChild(element("li"));
    li.append(name, element("span", "mono", value));
  }
  heading(host, tr("Colours"));
  const keys = host.appendChild(element("div"));
  for (const [text, colour] of [[tr("forward"), "forward"], [tr("gradient"), "backward"], [tr("put in by a step"), "made"], [tr("input"), "input"], [tr("time"), "heat"]]) {
    const key = keys.appendChild(element("span", "key"));
    key.appendChild(element("i")).style.background = `var(--${colour})`;
    key.append(text);
  }
  host.appendChild(element("p", "quiet", tr("Edges from the forward part to its gradient, and the many into one box, are drawn when one end is selected.")));
  heading(host, tree.isMeasured ? tr("Longest, measured") : tr("Longest, estimated from the shapes"));
  const ops = [...tree.nodes.values()].filter((node) => node.kind === "op").sort((a, b) => b.cost - a.cost).slice(0, 8);
  const ul = host.appendChild(element("ul", "values"));
  for (const node of ops) {
    const li = ul.appendChild(element("li"));
    li.appendChild(element("button", "", node.type ? node.label + " · " + brief(node.type) : node.label)).onclick = () => app.select(node.id);
    li.appendChild(element("span", "mono", percent(node.cost / (tree.cost || 1))));
  }
  heading(host, tr("Keys"));
  const help = host.appendChild(element("p", "quiet"));
  for (const [key, text] of [["↑ ↓", tr("stages")], ["c", tr("compare")], ["f", tr("fit")], ["/", tr("find")], ["Esc", tr("nothing selected")]]) {
    help.append(element("kbd", "", key), " " + text + "   ");
  }
}
