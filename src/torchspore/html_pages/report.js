"use strict";
/* The page of a run: its end, the loss, what each option did, what the machine is. */

const top_ = section(tr("This run"), true);
cards(top_, [
  [tr("exit code"), String(data.code)], [tr("duration"), time(data.seconds * 1e6)], [tr("device"), data.device],
  [tr("training steps"), figure(data.steps)],
  [tr("peak memory of the process"), bytes(data.peak)],
  ...Object.entries(data.devicePeaks).map(([name, value]) => [tr("peak memory of Tensors on %0", name), bytes(value)]),
]);
top_.appendChild(element("p", "quiet", tr("started %0", data.started)));
top_.appendChild(element("pre", "", data.about));
if (data.error) section(tr("How it ended"), true).appendChild(element("pre", "", data.error));
if (data.losses.length) {
  const host = section(tr("Loss"), true);
  const every = data.every > 1 ? tr("; every %0th step is drawn", data.every) : "";
  host.appendChild(element("p", "quiet", tr("first %0, last %1", figure(data.losses[0][1]), figure(data.losses[data.losses.length - 1][1])) + every));
  curve(host, data.losses, figure, (step) => (Number.isInteger(step) ? tr("step %0", step) : ""));
  host.querySelector("svg") && (host.querySelector("svg").id = "loss");
}
const options_ = section(tr("What each option did"), true);
if (data.options.length) {
  table(options_, [
    ["option", tr("option"), null, "name"], ["value", tr("value"), null, "name"], ["source", tr("from"), null, "name"], ["outcome", tr("outcome")],
  ], data.options, 300).id = "options";
} else options_.appendChild(element("p", "quiet", tr("No option of the context was set; all are at their defaults.")));
for (const { name, lines } of data.sections) section(name, true).appendChild(element("pre", "", lines.join("\n")));
table(section(tr("Versions and machine"), true), [["section", tr("of")], ["name", tr("what")], ["value", tr("value"), null, "name"]], data.facts, 300);
markReady();
