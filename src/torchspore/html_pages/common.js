"use strict";
/* What every page uses: elements made of text, tables, figures as people write them, light and dark. */

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** An element with a class and a text; a text is never read as HTML. */
function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined && text !== null) made.textContent = text;
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A section of the page with its title. */
function section(title, wide) {
  const made = element("section", wide ? "wide" : "");
  made.appendChild(element("h2", "", title));
  return document.getElementById("main").appendChild(made);
}

function cards(host, figures) {
  const row = host.appendChild(element("div", "cards"));
  for (const [name, value] of figures) {
    const card = row.appendChild(element("div"));
    card.append(element("b", "", value), element("span", "", name));
  }
}

const three = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2));

/** 1234 us as `1.23 ms`. */
function time(us) {
  if (us === null || us === undefined) return "";
  const size = Math.abs(us);
  return size >= 6e7 ? three(us / 6e7) + " min" : size >= 1e6 ? three(us / 1e6) + " s" : size >= 1e3 ? three(us / 1e3) + " ms" : three(us) + " us";
}

function scaled(value, unit, step) {
  if (value === null || value === undefined) return "";
  const steps = step === 1024 ? ["", "Ki", "Mi", "Gi", "Ti"] : ["", "k", "M", "G", "T", "P"];
  let place = 0;
  while (Math.abs(value) >= step && place < steps.length - 1) { value /= step; place++; }
  return (place ? three(value) : String(Math.round(value))) + " " + steps[place] + unit;
}
const bytes = (value) => scaled(value, "B", 1024);
const figure = (value) => (value === null || value === undefined ? "" : Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(5)).toString());

/**
 * A table of rows (objects). Columns are [key, title, how it is shown, "number"]; a click on a title sorts. Only `most` rows are drawn,
 * and a line says how many are not.
 */
function table(host, columns, rows, most) {
  const made = host.appendChild(element("div", "scrolls")).appendChild(element("table")), left = host.appendChild(element("p", "quiet"));
  let by = null, down = true, shown = rows;
  const head = made.appendChild(element("thead")).appendChild(element("tr")), body = made.appendChild(element("tbody"));
  const draw = () => {
    body.replaceChildren();
    const ordered = by === null ? shown : [...shown].sort((a, b) => {
      const x = a[by], y = b[by], order = typeof x === "string" ? x.localeCompare(y) : (x || 0) - (y || 0);
      return down ? -order : order;
    });
    for (const row of ordered.slice(0, most)) {
      const line = body.appendChild(element("tr"));
      for (const [key, title, show, kind] of columns) {
        const cell = line.appendChild(element("td", kind || ""));
        cell.dataset.title = title;          // a phone shows it beside the value
        const found = show ? show(row[key], row) : row[key];
        if (found instanceof Node) cell.appendChild(found); else cell.textContent = found === null || found === undefined ? "" : found;
      }
      if (made.onrow) made.onrow(line, row);
    }
    left.textContent = shown.length > most ? tr("and %0 more rows", (shown.length - most).toLocaleString("en")) : "";
  };
  columns.forEach(([key, title, , kind]) => {
    const cell = head.appendChild(element("th", "sorts" + (kind === "number" ? " number" : "")));
    cell.appendChild(element("button", "", title));
    cell.onclick = () => {
      down = by === key ? !down : true;
      by = key;
      head.querySelectorAll("th").forEach((other) => {
        other.classList.toggle("sorted", other === cell);
        if (other === cell) other.setAttribute("aria-sort", down ? "descending" : "ascending"); else other.removeAttribute("aria-sort");
      });
      draw();
    };
  });
  made.filter = (keeps) => { shown = rows.filter(keeps); draw(); };
  draw();
  return made;
}

/** A bar as long as the share. */
function share(value) {
  const made = element("span"), bar = made.appendChild(element("i", "share"));
  bar.style.width = Math.max(1, Math.min(1, value || 0) * 80) + "px";
  made.append(" " + ((value || 0) * 100).toFixed(1) + "%");
  return made;
}

const tip = document.body.appendChild(element("div"));
tip.id = "tip";
tip.hidden = true;
function tell(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
}

/** A colour of the page's style, for a canvas. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

/** Marks the page as ready after two frames: a ResizeObserver redraws the charts at the end of the first one. */
function markReady() {
  requestAnimationFrame(() => requestAnimationFrame(() => { document.body.dataset.ready = "1"; }));
}

const themed = [];
function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  themed.forEach((draw) => draw());
}
document.getElementById("theme").onclick = () => theme(document.documentElement.dataset.theme !== "dark");
theme(new URLSearchParams(location.search).get("theme") === "dark" ||
  (!location.search && matchMedia("(prefers-color-scheme: dark)").matches));

document.getElementById("about").textContent = data.about || "";
if (data.notes && data.notes.length) {
  document.getElementById("note").hidden = false;
  document.getElementById("note").textContent = data.notes.join("\n");
}
