"use strict";
/* What is shown: a compilation, one stage or two, a selection. Everything that changes it goes through `app`. */

const app = {
  data: JSON.parse(document.getElementById("data").textContent),
  compilation: null, panes: [], open: new Set([""]), selected: null,

  /** Shows a compilation from its last distinct stage. */
  choose(place) {
    this.compilation = this.data.compilations[place];
    document.getElementById("compilation").value = place;
    document.getElementById("about").textContent = this.compilation.line;
    this.selected = null;
    while (this.panes.length > 1) this.drop();
    if (this.compilation.left_out || !this.compilation.stages.length) { this.empty(); return; }
    if (!this.panes.length) this.panes.push(new Pane(document.getElementById("panes"), this));
    const first = Object.keys(this.compilation.times || {}).length ? "execute" : "optimize";   // what was measured is what runs
    const start = Math.max(0, this.compilation.stages.findIndex((stage) => stage.title.endsWith(first)));
    this.open = firstOpen(treeOf(this.compilation, start));
    this.places = [start];
    this.refresh(true);
  },

  empty() {
    this.panes.splice(0).forEach((pane) => pane.element.remove());
    document.getElementById("stages").replaceChildren();
    document.getElementById("details").replaceChildren();
    this.note(tr("This page holds %0 compilations. Those from %1 on are left out; their .ir files are in %2.",
      this.data.compilations.length - 1, this.compilation.line, this.data.root));
  },

  title(place) { return this.compilation.stages[place].title; },

  /** Shows the stage at `place` in a pane. */
  show(pane, place) {
    this.places[this.panes.indexOf(pane)] = place;
    this.refresh(holder(this.compilation, pane.place) !== holder(this.compilation, place) && this.panes.length === 1 && !this.selected);
  },

  /** Opens a second pane, with the stage before that differs, or shuts it. */
  compare() {
    if (this.panes.length > 1) { this.drop(); this.places = this.places.slice(1); } else {
      this.panes.push(new Pane(document.getElementById("panes"), this));
      const first = this.places[0];
      this.places = [before(this.compilation, first), first];
    }
    this.refresh(true);
  },

  drop() { this.panes.pop().element.remove(); },

  /** Draws everything again; with `fits` the drawings are moved into view. */
  refresh(fits) {
    const trees = this.places.map((place) => treeOf(this.compilation, place));
    const marks = trees.length > 1 ? differences(trees[0], trees[1]) : null;
    this.panes.forEach((pane, n) => pane.draw(this.compilation, this.places[n], this.open, marks));
    this.panes.forEach((pane) => (fits || !pane.wasFit ? pane.frame() : pane.apply(), (pane.wasFit = true)));
    document.getElementById("compare").setAttribute("aria-pressed", String(this.panes.length > 1));
    listStages(this);
    this.note(leftOut(this.compilation, this.places));
    this.mark(false);
  },

  /** Selects an operator in all panes: opens the groups around it and moves there. */
  select(name) {
    this.selected = name;
    let changed = false;
    for (const pane of this.panes) {
      const node = name !== null && pane.tree.nodes.get(name);
      for (let around = node && node.parent; around; around = around.parent) {
        if (!this.open.has(around.id)) { this.open.add(around.id); changed = true; }
      }
    }
    if (changed) this.refresh(false);
    this.mark(true);
  },

  mark(moves) {
    for (const pane of this.panes) {
      const placed = pane.highlight(this.selected);
      if (placed && moves && !pane.isSeen(placed)) pane.center(placed);
    }
    showDetails(document.getElementById("details"), this, this.selected);
  },

  /** Opens or shuts a group, in all panes; what was seen in its place stays in view. */
  toggle(id, pane) {
    const shape = pane.laid.boxes.find(({ box }) => box.id === id) || pane.laid.clusters.find(({ group }) => group.id === id);
    const at = shape && { x: pane.view.x + shape.x * pane.view.scale, y: pane.view.y + shape.y * pane.view.scale };
    if (this.open.has(id)) this.open.delete(id);
    else if (boxesOf(pane.tree, this.open).length + pane.tree.groups.get(id).children.length > MOST_OPEN) {
      this.note(tr("More than %0 boxes would be open: shut some groups first.", MOST_OPEN));
      return;
    } else this.open.add(id);
    this.refresh(false);
    const now = pane.laid.boxes.find(({ box }) => box.id === id) || pane.laid.clusters.find(({ group }) => group.id === id);
    if (at && now) { pane.view.x = at.x - now.x * pane.view.scale; pane.view.y = at.y - now.y * pane.view.scale; pane.apply(); }
  },

  openOnly(open) { this.open = open; this.refresh(true); },

  /** Opens one more level of groups, as far as the limit allows. */
  openMore(pane) {
    const open = new Set(this.open);
    let boxes = boxesOf(pane.tree, open).length;
    for (const group of boxesOf(pane.tree, this.open).filter((box) => box.kind === "group")) {
      if (boxes + group.children.length <= MOST_OPEN) { open.add(group.id); boxes += group.children.length; }
    }
    this.openOnly(open);
  },

  note(text) {
    const place = document.getElementById("note");
    place.hidden = !text;
    place.textContent = text || "";
  },
};

/** The last stage before `place` that shows another graph; `place` itself where there is none. */
function before(compilation, place) {
  const own = holder(compilation, place);
  for (let n = place - 1; n >= 0; n--) {
    if (holder(compilation, n) !== own && compilation.stages[n].part === compilation.stages[place].part) return n;
  }
  return own;
}

function leftOut(compilation, places) {
  for (const place of places) {
    const tree = treeOf(compilation, place);
    if (tree.left > 0) {
      const stage = compilation.stages[holder(compilation, place)];
      return tr("%0 of %1 operators are left out of this page, the last ones; %2 holds them all.",
        tree.left.toLocaleString("en"), tree.total.toLocaleString("en"), stage.file);
    }
  }
  return "";
}

function listStages(app) {
  const host = document.getElementById("stages");
  host.replaceChildren();
  app.compilation.stages.forEach((stage, place) => {
    const button = host.appendChild(element("button", "stage" + (stage.same === undefined ? "" : " same")));
    if (place === app.places[app.places.length - 1]) button.classList.add("shown");
    else if (app.places.includes(place)) button.classList.add("other");
    const head = button.appendChild(element("b", "", stage.title + (stage.part ? " · " + stage.part : "")));
    if (stage.same === undefined) head.appendChild(element("span", "count", stage.total.toLocaleString("en")));
    button.appendChild(element("small", "", stage.same === undefined ? stage.about : tr("same as %0", app.title(stage.same))));
    if (stage.same === undefined) difference(button, app.compilation, place);
    button.onclick = () => app.show(app.panes[app.panes.length - 1], place);
  });
  const shown = host.querySelector(".shown");
  if (shown) host.scrollLeft = shown.offsetLeft - host.offsetLeft - (host.clientWidth - shown.offsetWidth) / 2;   // stages are in a row on a phone
}

/** How many operators a stage adds, takes away and changes. */
function difference(host, compilation, place) {
  const stage = compilation.stages[place], old = before(compilation, place);
  if (old === place) return;
  if (!stage.told) {
    const counts = { added: 0, removed: 0, changed: 0 };
    for (const mark of differences(treeOf(compilation, old), treeOf(compilation, place)).values()) counts[mark]++;
    stage.told = counts;
  }
  const line = host.appendChild(element("span", "difference"));
  for (const [mark, sign] of [["added", "+"], ["removed", "−"], ["changed", "~"]]) {
    if (stage.told[mark]) line.appendChild(element("i", mark, sign + stage.told[mark]));
  }
}

/** The operators that a word is found in, at most 60. */
function find(app, word) {
  const found = [];
  for (const node of app.panes[app.panes.length - 1].tree.nodes.values()) {
    const record = node.record;
    const text = record ? [record.n, record.o, record.f, ...(record.l || [])].join(" ") : node.label;
    if (text.toLowerCase().includes(word)) found.push(node);
    if (found.length === 60) break;
  }
  return found;
}

function searching(app) {
  const input = document.getElementById("search"), list = document.getElementById("found");
  const take = (node) => { list.hidden = true; input.blur(); app.select(node.id); };
  input.oninput = () => {
    const word = input.value.trim().toLowerCase(), found = word ? find(app, word) : [];
    list.replaceChildren(...found.map((node, n) => {
      const item = element("li", n ? "" : "first", node.label);
      item.appendChild(element("small", "", (node.record ? node.record.f : "") + "  " + (node.type || "")));
      item.onmousedown = () => take(node);
      return item;
    }));
    list.hidden = !found.length;
    input.onkeydown = (event) => { if (event.key === "Enter" && found.length) take(found[0]); };
  };
  input.onblur = () => { list.hidden = true; };
}

function keys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { document.activeElement.blur(); app.select(null); return; }
    if (/INPUT|SELECT/.test(document.activeElement.tagName) || event.ctrlKey || event.metaKey || !app.panes.length) return;
    const pane = app.panes[app.panes.length - 1], step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && app.compilation.stages[pane.place + step]) { event.preventDefault(); app.show(pane, pane.place + step); }
    if (event.key === "c") app.compare();
    if (event.key === "f") app.panes.forEach((one) => one.fit());
    if (event.key === "/") { event.preventDefault(); document.getElementById("search").focus(); }
  });
}

function theme() {
  const root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const asked = new URLSearchParams(location.search).get("theme") || kept();
  root.dataset.theme = asked || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.getElementById("theme").onclick = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a file:// page may have no storage */ }
  };
}

theme();
searching(app);
keys(app);
document.getElementById("compare").onclick = () => app.compare();
const choice = document.getElementById("compilation");
app.data.compilations.forEach((made, place) => choice.add(new Option(made.name + "  ·  " + made.line.split("/").pop(), place)));
choice.onchange = () => app.choose(Number(choice.value));
app.choose(0);
addEventListener("resize", () => app.panes.forEach((pane) => pane.frame()));
requestAnimationFrame(() => { document.body.dataset.ready = String(Math.round(performance.now())); });
