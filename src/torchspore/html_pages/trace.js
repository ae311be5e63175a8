"use strict";
/* The page of a trace: figures, steps, the timeline, operators, memory. */

const PHASES = ["data", "forward", "backward", "sync", "update", "other"];
const NAMED = {
  data: tr("waits for data"), forward: tr("forward"), backward: tr("backward"), sync: tr("gradient sync"), update: tr("update"), other: tr("other"),
};

function keys(host) {
  const row = host.appendChild(element("div", "keys"));
  for (const phase of PHASES) {
    const key = row.appendChild(element("span")), mark = key.appendChild(element("i"));
    mark.style.background = `var(--${phase})`;
    key.append(NAMED[phase]);
  }
}

function summary() {
  const host = section(tr("This trace"), true);
  const found = [[tr("events"), figure(data.total)], [tr("from first to last"), time(data.end - data.start)]];
  if (data.steps.length) {
    const own = data.steps.map((step) => step.total).sort((a, b) => a - b);
    found.push([tr("steps"), figure(data.steps.length)], [tr("a step, median"), time(own[Math.floor(own.length / 2)])]);
  }
  if (data.flops) found.push([tr("floating-point operations"), scaled(data.flops, "FLOP", 1000)]);
  if (data.rate) found.push([tr("while these operators ran"), scaled(data.rate, "FLOP/s", 1000)]);
  if (data.peak) found.push([tr("of the machine's measured peak"), ((data.rate / data.peak) * 100).toFixed(1) + "%"]);
  if (data.memory.length) found.push([tr("peak memory"), bytes(Math.max(...data.memory.map(([, value]) => value)))]);
  cards(host, found);
  for (const fact of data.facts) host.appendChild(element("p", "quiet", fact));
}

function steps() {
  if (!data.steps.length) return;
  const host = section(tr("Where a step's time goes"), true), most = Math.max(...data.steps.map((step) => step.total)) || 1;
  keys(host);
  const shown = data.steps.slice(0, 60);
  const left = 14 + LETTER * Math.max(...shown.map((step) => tr("step %0", step.number).length));
  const right = 14 + LETTER * Math.max(...shown.map((step) => time(step.total).length));
  const sum = (key) => data.steps.reduce((all, step) => all + (step[key] || 0), 0);
  const label = PHASES.filter((phase) => sum(phase) > 0).map((phase) => `${NAMED[phase]} ${((sum(phase) / (sum("total") || 1)) * 100).toFixed(1)}%`);
  chart(host, 20 * shown.length + 4, label.join(", "), (made, width) => shown.forEach((step, row) => {
    made.appendChild(drawn("text", { x: left - 8, y: row * 20 + 15, "text-anchor": "end" }, tr("step %0", step.number)));
    let at = left;
    for (const phase of PHASES) {
      const wide = (step[phase] / most) * (width - left - right);
      if (!(wide > 0)) continue;
      const bar = made.appendChild(drawn("rect", { x: at, y: row * 20 + 3, width: Math.max(wide, 0.5), height: 15, rx: 2 }));
      bar.style.fill = `var(--${phase})`;
      bar.dataset.phase = phase;
      bar.onmousemove = (event) => tell(event, `${tr("step %0", step.number)}\n${NAMED[phase]}: ${time(step[phase])}, ${((step[phase] / step.total) * 100).toFixed(1)}%`);
      bar.onmouseleave = () => tip.hidden = true;
      at += wide;
    }
    made.appendChild(drawn("text", { x: at + 8, y: row * 20 + 15 }, time(step.total)));
  })).id = "split";
  if (data.steps.length > shown.length) host.appendChild(element("p", "quiet", tr("and %0 more steps", data.steps.length - shown.length)));
}

function operators() {
  const host = section(tr("Operators"), true), bar = host.appendChild(element("div", "bar"));
  const search = bar.appendChild(element("input"));
  search.type = "search";
  search.placeholder = tr("Find an operator");
  search.setAttribute("aria-label", tr("Find an operator"));
  const least = data.operators.reduce((sum, row) => sum + row.self, 0) || 1;
  const columnsOf = [
    ["name", tr("operator"), null, "name"], ["kind", tr("type")], ["phase", tr("phase"), (value) => NAMED[value] || ""],
    ["count", tr("calls"), figure, "number"], ["total", tr("total"), time, "number"], ["self", tr("self"), time, "number"],
    ["share", tr("share of self"), (value, row) => share(row.self / least)],
  ];
  data.operators.forEach((row) => { row.share = row.self; });
  if (data.operators.some((row) => row.flops)) columnsOf.push(
    ["flops", "FLOP", (value) => (value ? scaled(value, "", 1000) : ""), "number"],
    ["rate", "FLOP/s", (value) => (value ? scaled(value, "", 1000) : ""), "number"],
    ["ofPeak", tr("of peak"), (value) => (value ? (value * 100).toFixed(1) + "%" : ""), "number"],
  );
  const made = table(host, columnsOf, data.operators, 200);
  made.id = "operators";
  search.oninput = () => made.filter((row) => row.name.toLowerCase().includes(search.value.toLowerCase()));
}

function memory() {
  if (!data.memory.length) return;
  const host = section(tr("Memory"), true);
  host.appendChild(element("p", "quiet", data.memoryMeaning || ""));
  curve(host, data.memory.map(([at, value]) => [at - data.start, value]), bytes, time, true);
  host.querySelector("svg").id = "memory";
}

summary();
steps();
const timeline = new Timeline(section(tr("Timeline"), true), data);
operators();
memory();
markReady();
