"use strict";
/* One drawing: a stage, its groups open and shut, moved with the mouse and the wheel. */

function svg(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

/** Lets the keyboard and a screen reader use a shape as a button. */
function asButton(shape, label, action) {
  for (const [name, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": label })) shape.setAttribute(name, value);
  shape.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    action();
  });
}

const READABLE = 0.85;    // the scale below which the texts of boxes are too small to read

class Pane {
  /** `app` is told of selections and of groups that open and shut. */
  constructor(host, app) {
    this.app = app;
    this.element = document.createElement("div");
    this.element.className = "pane";
    this.bar = this.element.appendChild(document.createElement("div"));
    this.bar.className = "bar";
    this.choice = this.bar.appendChild(document.createElement("select"));
    this.choice.setAttribute("aria-label", tr("Stage"));
    this.choice.onchange = () => app.show(this, Number(this.choice.value));
    const gap = this.bar.appendChild(document.createElement("span"));
    gap.className = "gap";
    this.button("−", tr("Shut all groups"), () => app.openOnly(new Set([""])));
    this.button("+", tr("Open the next groups"), () => app.openMore(this));
    this.button(tr("Fit"), tr("The whole graph (f)"), () => this.fit());
    this.canvas = svg("svg", { role: "group", "aria-label": tr("Drawing of the graph") }, this.element);
    this.view = { x: 0, y: 0, scale: 1 };
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.fingers = new Map();
    for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, (event) => this.fingers.delete(event.pointerId));
    window.addEventListener("pointermove", (event) => this.pinch(event));
    host.appendChild(this.element);
  }

  button(text, title, action) {
    const made = this.bar.appendChild(document.createElement("button"));
    made.textContent = text;
    made.title = title;
    made.onclick = action;
  }

  /** Draws the stage at `place` with the groups in `open` open; `marks` says which operators differ. */
  draw(compilation, place, open, marks) {
    this.place = place;
    this.tree = treeOf(compilation, place);
    this.choice.replaceChildren(...compilation.stages.map((stage, n) => new Option(stage.title + (stage.part ? " · " + stage.part : ""), n, false, n === place)));
    this.laid = layout(this.tree, open);
    const focused = this.canvas.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
    this.canvas.replaceChildren();
    const defs = svg("defs", {}, this.canvas);
    const marker = svg("marker", { id: "arrow" + this.number, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, defs);
    svg("path", { d: "M0,0.5 L8,4 L0,7.5 z", class: "arrow" }, marker);
    this.world = svg("g", {}, this.canvas);
    this.shapes = new Map();
    for (const around of this.laid.clusters) this.cluster(around);
    this.lines = this.laid.edges.map((edge) => {
      const line = svg("path", { d: curve(edge.points), class: "edge", "marker-end": `url(#arrow${this.number})` }, this.world);
      line.style.strokeWidth = 1.1 + Math.min(3, Math.log2(edge.count));
      return { edge, line };
    });
    const worst = Math.max(...this.laid.boxes.map(({ box }) => box.cost || 0), 1e-9);
    for (const placed of this.laid.boxes) this.card(placed, worst, marks);
    const shape = this.shapes.get(focused);
    if (shape) (shape.querySelector("[tabindex]") || shape).focus({ preventScroll: true });
  }

  get number() { return this.app.panes.indexOf(this); }

  cluster(around) {
    const shape = svg("g", { class: "cluster" }, this.world);
    svg("rect", { x: around.x, y: around.y, width: around.width, height: around.height, rx: 10 }, shape);
    const label = svg("text", { x: around.x + 11, y: around.y + 17, "data-name": around.group.id }, shape, "− " + fitting(around.group.label, around.width - 36, BOLD));
    svg("title", {}, label, around.group.id.slice(1) + "\n" + tr("click to shut"));
    label.addEventListener("click", () => this.app.toggle(around.group.id, this));
    asButton(label, `${around.group.label}: ${tr("click to shut")}`, () => this.app.toggle(around.group.id, this));
    this.shapes.set(around.group.id, shape);
  }

  card(placed, worst, marks) {
    const { box, x, y, width, height } = placed;
    const kind = box.kind !== "op" ? box.kind : box.record.m ? "made" : box.record.b ? "backward" : "forward";
    const mark = marks && (box.kind === "group" ? markIn(box, marks) : marks.get(box.id));
    const names = ["card", kind, box.backward ? "backward" : "", mark ? "is-" + mark : ""].filter(Boolean).join(" ");
    const shape = svg("g", { class: names, transform: `translate(${x},${y})`, "data-name": box.id }, this.world);
    svg("rect", { class: "body", width, height, rx: 7 }, shape);
    svg("rect", { class: "side", x: 0.5, y: 6, width: 4, height: height - 12, rx: 2 }, shape);
    const lines = linesOf(box);
    const first = (box.kind === "group" ? "+ " : "") + lines[0];
    svg("text", { x: 13, y: 19 }, shape, fitting(first, width - 22, BOLD));
    lines.slice(1).forEach((line, n) => {
      const isWeight = n === 1 || (box.kind !== "group" && !box.type);
      svg("text", { class: isWeight ? "weight" : "kind", x: 13, y: 35 + 16 * n }, shape, fitting(line, width - 22, CODE));
    });
    if (box.cost) svg("rect", { class: "heat", x: 8, y: height - 4, width: Math.max(1, (width - 16) * (box.cost / worst)), height: 2.5, rx: 1 }, shape);
    const hint = box.kind === "group" ? box.id.slice(1) + "\n" + tr("click to open") : (box.record ? box.record.f : box.label) + "\n" + (box.type || "");
    svg("title", {}, shape, hint);
    const action = () => { if (box.kind === "group") this.app.toggle(box.id, this); else this.app.select(box.id); };
    shape.addEventListener("click", () => { if (!this.moved) action(); });
    shape.addEventListener("focus", () => { if (shape.matches(":focus-visible") && !this.isSeen(placed)) this.center(placed); });
    asButton(shape, `${lines[0]}\n${hint}`, action);
    this.shapes.set(box.id, shape);
  }

  /** Marks the box of an operator, and the edges at it. */
  highlight(name) {
    for (const shape of this.shapes.values()) shape.classList.remove("selected");
    const node = name === null ? null : this.tree.nodes.get(name);
    const box = node && boxOf(node, this.app.open);
    const shape = box && this.shapes.get(box.id);
    if (shape) shape.classList.add("selected");
    for (const { edge, line } of this.lines) line.classList.toggle("lit", Boolean(box) && (edge.from === box.id || edge.to === box.id));
    this.showKept(box);
    return box ? this.laid.boxes.find((placed) => placed.box === box) : null;
  }

  /** Draws the edges between the forward part and its gradient at one box. */
  showKept(box) {
    if (this.keptLines) this.keptLines.remove();
    this.keptLines = svg("g", {}, this.world);
    const at = (one) => this.laid.boxes.find((placed) => placed.box === one);
    for (const { from, to } of this.laid.kept.filter((edge) => edge.from === box || edge.to === box)) {
      const a = at(from), b = at(to), x = a.x + a.width / 2, y = a.y + a.height, u = b.x + b.width / 2, v = b.y;
      const bend = Math.max(40, Math.abs(v - y) / 2);
      svg("path", { class: "edge kept", d: `M${x},${y}C${x},${y + bend} ${u},${v - bend} ${u},${v}`, "marker-end": `url(#arrow${this.number})` }, this.keptLines);
    }
  }

  // ---- moving

  apply() { this.world.setAttribute("transform", `translate(${this.view.x},${this.view.y}) scale(${this.view.scale})`); }

  /** Shows the whole graph. */
  fit() {
    const width = this.canvas.clientWidth || 800, height = this.canvas.clientHeight || 600;
    const scale = Math.min(width / this.laid.width, height / this.laid.height, 1.15) * 0.98;
    this.view = { scale, x: (width - this.laid.width * scale) / 2, y: (height - this.laid.height * scale) / 2 };
    this.apply();
  }

  /** Shows as much of the graph as can be read: all of it, or the part around the first operator that differs, otherwise its beginning. */
  frame() {
    const width = this.canvas.clientWidth || 800, height = this.canvas.clientHeight || 600;
    if (Math.min(width / this.laid.width, height / this.laid.height) >= READABLE) { this.fit(); return; }
    const inOrder = [...this.laid.boxes].sort((a, b) => a.y - b.y);
    const marked = inOrder.find(({ box }) => this.shapes.get(box.id).classList.value.includes("is-"));
    const first = marked || inOrder.find(({ box }) => box.kind !== "input") || inOrder[0];
    const room = (size, seen, at) => (size * READABLE <= seen ? (seen - size * READABLE) / 2 : Math.min(6, Math.max(seen - size * READABLE - 6, at)));
    this.view = {
      scale: READABLE, x: room(this.laid.width, width, width / 2 - (first.x + first.width / 2) * READABLE),
      y: room(this.laid.height, height, (marked ? height / 2 : 60) - first.y * READABLE),
    };
    this.apply();
  }

  /** Moves a box to the middle if it is outside, and so near that it can be read. */
  center(placed) {
    const width = this.canvas.clientWidth || 800, height = this.canvas.clientHeight || 600;
    const scale = Math.max(this.view.scale, 0.75);
    const x = placed.x + placed.width / 2, y = placed.y + placed.height / 2;
    this.view = { scale, x: width / 2 - x * scale, y: height / 2 - y * scale };
    this.apply();
  }

  isSeen(placed) {
    const x = this.view.x + (placed.x + placed.width / 2) * this.view.scale, y = this.view.y + (placed.y + placed.height / 2) * this.view.scale;
    return this.view.scale >= 0.45 && x > 60 && y > 40 && x < this.canvas.clientWidth - 60 && y < this.canvas.clientHeight - 40;
  }

  wheel(event) {
    event.preventDefault();
    this.zoom(event.clientX, event.clientY, Math.exp(-event.deltaY * 0.0016));
  }

  /** Two fingers zoom: by as much as they move apart. */
  pinch(event) {
    if (!this.fingers.has(event.pointerId)) return;
    const apart = () => { const [a, b] = [...this.fingers.values()]; return Math.hypot(a.x - b.x, a.y - b.y) || 1; };
    const before = this.fingers.size === 2 ? apart() : 0;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!before) return;
    const [a, b] = [...this.fingers.values()];
    this.zoom((a.x + b.x) / 2, (a.y + b.y) / 2, apart() / before);
  }

  /** Zooms by a factor; what is at (left, top) of the window stays there. */
  zoom(left, top, factor) {
    const at = this.canvas.getBoundingClientRect(), x = left - at.left, y = top - at.top;
    const scale = Math.min(4, Math.max(0.03, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio };
    this.apply();
  }

  down(event) {
    const start = { x: event.clientX, y: event.clientY }, before = { ...this.view };
    this.fingers.set(event.pointerId, start);
    this.moved = false;
    const move = (now) => {
      if (this.fingers.size > 1) { this.moved = true; return; }
      const x = now.clientX - start.x, y = now.clientY - start.y;
      if (Math.abs(x) + Math.abs(y) > 4) { this.moved = true; this.canvas.classList.add("moving"); }
      this.view = { ...before, x: before.x + x, y: before.y + y };
      this.apply();
    };
    const up = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", up);
      this.canvas.classList.remove("moving");
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up);
  }
}

/** Whether anything in a group differs: "changed" if several ways. */
function markIn(group, marks) {
  let found;
  for (const child of group.children) {
    const mark = child.kind === "group" ? markIn(child, marks) : marks.get(child.id);
    if (mark && found && mark !== found) return "changed";
    found = found || mark;
  }
  return found;
}
