"use strict";
/* The page of a plan: the graph in the colours of its splits with what is sent, a table of operators, the memory of a device. */

const COLOURS = ["#a9b5c3", "#2f7fd1", "#2b9a68", "#c98512", "#7a56d0", "#cf4a66", "#12908e", "#8a6d3b", "#5566cc", "#b0489c"];
const rows = new Map(data.rows.map((row) => [row.id, row]));

// ---- which colour a split has: that of the axes of the grid along which results are cut

const kinds = new Map([[tr("whole"), COLOURS[0]]]);
function kindOf(row) {
  if (!row.axes.length) return tr("whole");
  return tr("along %0", row.axes.map((axis) => tr("axis %0 (%1)", axis, data.sizes[axis])).join(tr(" and ")));
}
for (const row of data.rows) {
  const kind = kindOf(row);
  if (!kinds.has(kind)) kinds.set(kind, COLOURS[1 + ((kinds.size - 1) % (COLOURS.length - 1))]);
}
const colourOf = (row) => kinds.get(kindOf(row));
function chip(colour) {
  const made = element("i", "chip");
  made.style.background = colour;
  return made;
}

// ---- the sums

const total = data.memory.reduce((sum, [, size]) => sum + size, 0);
cards(section(tr("A step on each device"), true), [
  [tr("devices"), figure(data.devices)], [tr("grid"), data.sizes.join(" x ")], [tr("received"), bytes(data.received)],
  [tr("exchanges"), time(data.sending)], [tr("computing"), time(data.computing)], [tr("peak memory"), bytes(total)],
]);
document.querySelector("section").appendChild(element("p", "quiet", data.speeds));

const held = section(tr("Peak memory of a device"), true), bar = held.appendChild(element("div", "held"));
data.memory.forEach(([name, size], place) => {
  const part = bar.appendChild(element("i"));
  part.style.background = COLOURS[place + 1];
  part.style.width = (100 * size) / (total || 1) + "%";
  part.onmousemove = (event) => tell(event, name + ": " + bytes(size));
  part.onmouseleave = () => tell(null, "");
});
table(held, [
  ["name", tr("kind"), (name, row) => { const cell = element("span"); cell.append(chip(row.colour), name); return cell; }],
  ["size", tr("bytes"), bytes, "number"], ["part", tr("share"), share],
], data.memory.map(([name, size], place) => ({ name, size, part: size / (total || 1), colour: COLOURS[place + 1] })), 20).id = "memory";

// ---- the graph

const around = section(tr("Graph"), true), keys = around.appendChild(element("div", "keys"));
for (const [kind, colour] of kinds) {
  const key = keys.appendChild(element("span"));
  key.append(chip(colour), kind);
}
keys.appendChild(element("span", "warn", tr("⇄ redistribution or sum, with what each device receives")));
const drawing = around.appendChild(element("div"));
drawing.id = "drawing";
const host = drawing.appendChild(element("div")), details = drawing.appendChild(element("div"));
host.id = "panes";
details.id = "details";

/** The rows as the drawing reads a stage. */
function compilation() {
  const records = data.rows.map((row) => ({
    n: row.id, o: row.operator, k: row.split, r: row.reads, b: row.gradient, e: row.sending + row.computing,
    s: [row.gradient ? "Gradients" : "", row.scope].filter(Boolean).join("/") || "Program", f: row.scope,
  }));
  return { records, times: {}, stages: [{ title: "plan", total: data.total, nodes: records.map((_, place) => place), inputs: [], outputs: data.outputs }] };
}

class PlanPane extends Pane {
  card(placed, worst, marks) {
    super.card(placed, worst, marks);
    const shape = this.shapes.get(placed.box.id), row = rows.get(placed.box.id);
    if (placed.box.sent) shape.classList.add("sends");
    if (!row) return;
    const side = shape.querySelector(".side");
    side.style.fill = colourOf(row);
    side.setAttribute("width", 8);
    shape.dataset.kind = kindOf(row);
  }
}

/** Notes on boxes what they send; groups, what all in them send. Gives the bytes. */
function note(box) {
  let sent = 0;
  if (box.kind === "group") for (const child of box.children) sent += note(child);
  const row = rows.get(box.id);
  if (row) sent = row.bytes;
  box.sent = sent > 0 || Boolean(row && row.exchanges.length);
  if (box.sent) box.weights = [{ t: "⇄ " + (row ? row.sends + " · " : "") + bytes(sent) }];
  return sent;
}

const app = {
  panes: [], open: new Set([""]), selected: null, compilation: compilation(),
  show() {},
  refresh(fits) {
    const [pane] = this.panes;
    pane.draw(this.compilation, 0, this.open, null);
    if (fits) pane.fit(); else pane.apply();
    pane.highlight(this.selected);
  },
  toggle(id, pane) {
    if (this.open.has(id)) this.open.delete(id);
    else if (boxesOf(pane.tree, this.open).length + pane.tree.groups.get(id).children.length <= MOST_OPEN) this.open.add(id);
    this.refresh(false);
  },
  openOnly(open) { this.open = open; this.refresh(true); },
  openMore(pane) {
    for (const group of boxesOf(pane.tree, this.open).filter((box) => box.kind === "group")) {
      if (boxesOf(pane.tree, this.open).length + group.children.length <= MOST_OPEN) this.open.add(group.id);
    }
    this.refresh(true);
  },
  /** Selects an operator: opens the groups around it, moves there, shows its details. */
  select(id) {
    this.selected = id;
    const [pane] = this.panes;
    for (let box = pane.tree.nodes.get(id).parent; box; box = box.parent) this.open.add(box.id);
    this.refresh(false);
    const placed = pane.highlight(id);
    if (placed && !pane.isSeen(placed)) pane.center(placed);
    tellOf(rows.get(id));
  },
};

function tellOf(row) {
  details.replaceChildren();
  if (!row) return;
  details.appendChild(element("h3", "", row.operator));
  const list = details.appendChild(element("dl"));
  const say = (name, value) => { if (value) list.append(element("dt", "", name), element("dd", "", value)); };
  say(tr("stage"), row.stage);
  say(tr("split"), row.split);
  say(tr("cut"), kindOf(row) + (row.partial ? tr(", terms of a sum") : ""));
  say(tr("exchanges"), row.exchanges.map((one) => `${tr("%0 over %1", one.kind, one.devices)}: ${bytes(one.bytes)}`).join("\n"));
  say(tr("time of exchanges"), row.exchanges.length ? time(row.sending) : "");
  say(tr("time of computing"), time(row.computing));
  say(tr("rule"), row.whole ? tr("no rule splits it: each device runs it unsplit") : "");
  say("Parameters", row.parameters.join(", "));
  say("Cell", row.scope);
  say(tr("line"), row.line);
}

details.appendChild(element("p", "quiet", tr("Click an operator, here or in the table, to see its details; click a group to open it.")));
app.panes.push(new PlanPane(host, app));
const tree = treeOf(app.compilation, 0);
note(tree.root);
app.open = firstOpen(tree);
app.refresh(true);

// ---- the tables

const operators = section(tr("Operators"), true), search = operators.appendChild(element("div", "bar")).appendChild(element("input"));
search.placeholder = tr("an operator, split, exchange or line");
search.setAttribute("aria-label", search.placeholder);
const listed = table(operators, [
  ["operator", tr("operator"), (name, row) => { const cell = element("span"); cell.append(chip(colourOf(row)), name + (row.whole ? tr(" (whole)") : "")); return cell; }],
  ...(data.rows.some((row) => row.stage) ? [["stage", tr("stage"), null, "name"]] : []),
  ["split", tr("split"), null, "name"], ["sends", tr("exchanges")], ["bytes", tr("received"), (size) => (size ? bytes(size) : ""), "number"],
  ["sending", tr("exchange time"), (us) => (us ? time(us) : ""), "number"], ["computing", tr("compute time"), (us) => (us ? time(us) : ""), "number"],
  ["line", tr("line"), null, "name"],
], data.rows, 400);
listed.id = "operators";
listed.onrow = (line, row) => { line.onclick = () => { app.select(row.id); around.scrollIntoView(); }; };
listed.filter(() => true);
search.oninput = () => {
  const wanted = search.value.toLowerCase();
  listed.filter((row) => [row.operator, row.split, row.sends, row.line, row.scope].join("\n").toLowerCase().includes(wanted));
};
table(section(tr("Parameters and the state of optimizers"), true), [
  ["name", tr("name"), null, "name"], ["shape", tr("shape"), null, "name"], ["split", tr("split"), null, "name"],
  ["own", tr("a device's part"), null, "name"], ["bytes", tr("bytes of a device"), bytes, "number"], ["kind", tr("kind")],
], data.parameters, 400).id = "parameters";
markReady();
