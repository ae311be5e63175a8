"use strict";
/* The page of a run: its end, the loss, what each option did, what the machine is. */

const top_ = section("This run", true);
cards(top_, [
  ["exit code", String(data.code)], ["it took", time(data.seconds * 1e6)], ["device", data.device], ["training steps", figure(data.steps)],
  ["memory of the process, most", bytes(data.peak)], ...Object.entries(data.devicePeaks).map(([name, value]) => [`Tensors on ${name}, most`, bytes(value)]),
]);
top_.appendChild(element("p", "quiet", `started ${data.started}`));
top_.appendChild(element("pre", "", data.about));
if (data.error) section("How it ended", true).appendChild(element("pre", "", data.error));
if (data.losses.length) {
  const host = section("Loss", true);
  const every = data.every > 1 ? `; every ${data.every}th step is drawn` : "";
  host.appendChild(element("p", "quiet", `first ${figure(data.losses[0][1])}, last ${figure(data.losses[data.losses.length - 1][1])}${every}`));
  curve(host, data.losses, figure, (step) => (Number.isInteger(step) ? `step ${step}` : ""));
  host.querySelector("svg") && (host.querySelector("svg").id = "loss");
}
const options_ = section("What each option did", true);
if (data.options.length) {
  table(options_, [["option", "option", null, "name"], ["value", "value", null, "name"], ["source", "from", null, "name"], ["outcome", "outcome"]], data.options, 300).id = "options";
} else options_.appendChild(element("p", "quiet", "No option of the context was set; all are at their defaults."));
for (const { name, lines } of data.sections) section(name, true).appendChild(element("pre", "", lines.join("\n")));
table(section("Versions and machine", true), [["section", "of"], ["name", "what"], ["value", "value", null, "name"]], data.facts, 300);
markReady();
