"use strict";
/* The timeline: a row for each thread, with nested events below each other; the wheel zooms, a drag moves, a click shows an event. */

const ROW = 17, HEAD = 20, GAP = 10;

class Timeline {
  constructor(host, found) {
    this.found = found;
    host.appendChild(element("p", "quiet", tr("Zoom with the wheel or + and -, move with a drag or the arrow keys, press f to see everything, and click an event to see its details.")));
    this.canvas = host.appendChild(element("canvas"));
    this.canvas.id = "timeline";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", tr("Timeline"));
    this.details = host.appendChild(element("pre", "quiet"));
    this.details.id = "event";
    this.first = found.start;
    this.last = Math.max(found.end, found.start + 1);
    this.selected = -1;
    this.rows = this.placed();
    this.byRow = this.rows.map(() => []);
    found.events.thread.forEach((thread, n) => this.byRow[thread].push(n));
    this.listen();
    themed.push(() => this.draw());
    addEventListener("resize", () => this.draw());
    this.draw();
  }

  /** The top of each thread's rows. */
  placed() {
    let at = HEAD;
    const made = this.found.threads.map((thread) => {
      const row = { top: at, title: thread.name };
      at += ROW * (thread.depth + 1) + ROW + GAP;
      return row;
    });
    this.height = Math.max(at, 60);
    return made;
  }

  x(at) { return ((at - this.first) / (this.last - this.first)) * this.width; }

  draw() {
    const ratio = devicePixelRatio || 1, events = this.found.events, pen = this.canvas.getContext("2d");
    this.width = this.canvas.parentElement.clientWidth - 32;
    this.canvas.style.height = this.height + "px";
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    pen.scale(ratio, ratio);
    pen.font = "11px sans-serif";
    this.drawAxis(pen);
    const fills = this.found.phases.map((phase) => colour(phase)), ink = colour("ink"), soft = colour("soft");
    this.rows.forEach((row, thread) => {
      pen.fillStyle = soft;
      pen.fillText(row.title, 2, row.top + 12);
      const until = [];          // of each depth the last pixel that is drawn: what is narrower than one is drawn once
      for (const n of this.byRow[thread]) {
        const start = events.start[n], left = this.x(start), right = this.x(start + events.span[n]);
        if (right < 0 || left > this.width) continue;
        const depth = events.depth[n];
        if (right < (until[depth] || -1)) continue;
        const from = Math.max(left, 0), wide = Math.max(Math.min(right, this.width) - from, 0.7), top = row.top + ROW * (depth + 1);
        until[depth] = from + wide;
        pen.fillStyle = fills[events.phase[n]] || soft;
        pen.globalAlpha = n === this.selected ? 1 : 0.72;
        pen.fillRect(from, top, wide, ROW - 2);
        pen.globalAlpha = 1;
        if (wide > 34) {
          pen.fillStyle = ink;
          const name = this.found.names[events.name[n]], room = Math.floor((wide - 6) / 6);
          pen.fillText(name.length > room ? "…" + name.slice(Math.max(0, name.length - room + 1)) : name, from + 3, top + 11);
        }
      }
    });
  }

  drawAxis(pen) {
    pen.fillStyle = colour("soft");
    pen.strokeStyle = colour("line");
    for (const at of ticks(this.first - this.found.start, this.last - this.found.start, 8)) {
      const x = this.x(at + this.found.start);
      pen.beginPath();
      pen.moveTo(x, HEAD - 4);
      pen.lineTo(x, this.height);
      pen.stroke();
      pen.fillText(time(at), x + 3, 12);
    }
  }

  /** The event at a place of the canvas, -1 where there is none. */
  at(x, y) {
    const events = this.found.events, when = this.first + (x / this.width) * (this.last - this.first), near = (this.last - this.first) / this.width;
    const thread = this.rows.findIndex((row, n) => y >= row.top && (n + 1 === this.rows.length || y < this.rows[n + 1].top));
    if (thread < 0) return -1;
    const depth = Math.floor((y - this.rows[thread].top) / ROW) - 1;
    return this.byRow[thread].find((n) => events.depth[n] === depth && events.start[n] - near <= when && when <= events.start[n] + events.span[n] + near) ?? -1;
  }

  told(n) {
    const events = this.found.events, phase = this.found.phases[events.phase[n]];
    const span = time(events.span[n]) + (phase ? ", " + (NAMED[phase] || phase) : "");
    return `${this.found.names[events.name[n]]}\n${tr("%0, at %1", span, time(events.start[n] - this.found.start))}`;
  }

  listen() {
    let from = null;
    const canvas = this.canvas;
    canvas.onwheel = (event) => {
      event.preventDefault();
      const at = this.first + (event.offsetX / this.width) * (this.last - this.first), by = event.deltaY > 0 ? 1.25 : 0.8;
      this.show(at - (at - this.first) * by, at + (this.last - at) * by);
    };
    canvas.onpointerdown = (event) => { from = { x: event.offsetX, first: this.first, last: this.last, moved: false }; canvas.setPointerCapture(event.pointerId); };
    canvas.onpointermove = (event) => {
      if (from && Math.abs(event.offsetX - from.x) > 2) {
        from.moved = true;
        const by = ((from.x - event.offsetX) / this.width) * (from.last - from.first);
        this.show(from.first + by, from.last + by);
      } else if (!from) {
        const n = this.at(event.offsetX, event.offsetY);
        tell(event, n < 0 ? "" : this.told(n));
      }
    };
    canvas.onpointerup = (event) => {
      if (from && !from.moved) this.select(this.at(event.offsetX, event.offsetY));
      from = null;
    };
    canvas.onpointerleave = () => { tip.hidden = true; };
    canvas.onkeydown = (event) => {
      const span = this.last - this.first, parts = { ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.1, -0.1], "-": [-0.125, 0.125] }[event.key];
      if (!parts) return;
      event.preventDefault();
      this.show(this.first + parts[0] * span, this.last + parts[1] * span);
    };
    addEventListener("keydown", (event) => {
      if (event.key === "f" && event.target.tagName !== "INPUT") this.show(this.found.start, this.found.end);
    });
  }

  select(n) {
    this.selected = n;
    this.details.textContent = n < 0 ? "" : this.told(n);
    this.draw();
  }

  show(first, last) {
    const least = 0.05;
    if (last - first < least) last = first + least;
    this.first = first;
    this.last = last;
    this.draw();
  }
}
