"use strict";
/* A stage as a tree: operators are leaves; scopes, and graphs inside graphs, are groups. Groups that are too wide are cut into runs. */

const WIDEST = 48;      // children of one group; more are put into groups of RUN neighbours
const RUN = 32;
const FIRST = 44;       // boxes that are open at first
const FEWEST = 12;      // where fewer are seen, one more group is opened
const MOST_OPEN = 420;  // boxes that may be open at once: beyond, layout takes longer than a second

/** The stage that holds the graph of the stage at `place`: itself, or the one that it is the same as. */
function holder(compilation, place) {
  const stage = compilation.stages[place];
  return stage.same === undefined ? place : stage.same;
}

/** The tree of a stage: {nodes: name -> leaf, root, edges, total, left}. Made once for each stage. */
function treeOf(compilation, place) {
  const stage = compilation.stages[holder(compilation, place)];
  if (!stage.tree) stage.tree = makeTree(compilation, stage);
  return stage.tree;
}

function makeTree(compilation, stage) {
  const root = { id: "", kind: "group", label: "", children: [], parent: null };
  const tree = { nodes: new Map(), groups: new Map([["", root]]), root, edges: [], inputs: new Map(), total: stage.total, cost: 0 };
  for (const given of stage.inputs || []) {
    tree.inputs.set(given.n, given);
    if (!given.p) leaf(tree, root, { id: given.n, kind: "input", label: given.t, type: given.k });
  }
  const records = stage.nodes.map((index) => compilation.records[index]), times = compilation.times || {};
  // Times are those of the graph that runs; operators of inner graphs (`branch_a:mul`) are in the time of the operator that runs them.
  tree.isMeasured = records.length > 0 && records.every((record) => record.n.includes(":") || record.n in times);
  for (const record of records) {
    const node = { id: record.n, kind: "op", label: record.c || shortName(record.o), type: typeOf(record), record, cost: (tree.isMeasured ? times[record.n] : record.e) || 0 };
    tree.cost += node.cost;
    leaf(tree, groupFor(tree, record.s), node);
  }
  leaf(tree, root, { id: "return", kind: "output", label: "Return", type: "", reads: stage.outputs || [] });
  readersOf(tree);
  merge(tree, root);
  cut(tree, root);
  measure(root);
  tree.left = stage.total - stage.nodes.length;
  return tree;
}

/** What stands under the name: the kernel, where the name is that of mindspore's operator, and the type of the result. */
function typeOf(record) {
  const kernel = record.c ? shortName(record.o) + "  " : "";
  return kernel + (record.k && record.k !== "null" ? record.k : "");
}

function shortName(target) {
  return target.slice(target.lastIndexOf(".") + 1);
}

function leaf(tree, group, node) {
  node.parent = group;
  node.order = tree.nodes.size;
  node.readers = [];
  node.weights = [];
  group.children.push(node);
  tree.nodes.set(node.id, node);
}

function groupFor(tree, path) {
  const id = "/" + path;
  const known = tree.groups.get(id);
  if (known) return known;
  const step = path.lastIndexOf("/");
  const parent = step < 0 ? tree.root : groupFor(tree, path.slice(0, step));
  const made = { id, kind: "group", label: path.slice(step + 1), children: [], parent };
  parent.children.push(made);
  tree.groups.set(id, made);
  return made;
}

/** Who reads what: edges between leaves, and the Parameters that a leaf reads as words on it. */
function readersOf(tree) {
  for (const node of tree.nodes.values()) {
    for (const name of node.reads || (node.record && node.record.r) || []) {
      const given = tree.inputs.get(name), from = tree.nodes.get(name);
      if (given && given.p) node.weights.push(given);
      else if (from) { tree.edges.push([from, node]); from.readers.push(node); }
    }
  }
}

/** A group whose only child is a group takes it in: `Default/network`. */
function merge(tree, group) {
  for (let place = 0; place < group.children.length; place++) {
    let child = group.children[place];
    while (child.kind === "group" && child.children.length === 1 && child.children[0].kind === "group") {
      const only = child.children[0];
      only.label = child.label + "/" + only.label;
      only.parent = group;
      tree.groups.delete(child.id);
      group.children[place] = child = only;
    }
    if (child.kind === "group") merge(tree, child);
  }
}

/** Puts neighbours together until no group has more than WIDEST children. */
function cut(tree, group) {
  for (const child of group.children) if (child.kind === "group") cut(tree, child);
  while (group.children.length > WIDEST) {
    const kept = group.children.filter((child) => child.kind === "input" || child.kind === "output");
    const rest = group.children.filter((child) => child.kind !== "input" && child.kind !== "output");
    if (rest.length <= WIDEST) break;
    const runs = [];
    for (let start = 0; start < rest.length; start += RUN) runs.push(run(tree, group, rest.slice(start, start + RUN)));
    group.children = [...kept, ...runs];
  }
}

function run(tree, group, members) {
  if (members.length === 1) return members[0];
  const name = (child) => (child.kind === "group" ? child.label.split(" … ")[0] : child.label);
  const made = {
    id: group.id + "#" + members[0].id, kind: "group", label: name(members[0]) + " … " + name(members[members.length - 1]),
    children: members, parent: group,
  };
  for (const member of members) member.parent = made;
  tree.groups.set(made.id, made);
  return made;
}

/** How many operators are in each group, what they cost, and whether all are of a gradient. */
function measure(group) {
  group.size = 0; group.cost = 0; group.backward = true; group.order = 0;
  for (const child of group.children) {
    if (child.kind === "group") measure(child);
    group.size += child.kind === "group" ? child.size : child.kind === "op" ? 1 : 0;
    group.cost += child.cost || 0;
    group.order = Math.max(group.order, child.order);
    if (child.kind === "group" ? !child.backward : child.kind === "op" && !child.record.b) group.backward = false;
  }
}

/** Which groups to open at first: level by level, as long as all of a level fit into FIRST boxes; the largest alone where few are seen. */
function firstOpen(tree) {
  const open = new Set([""]);
  for (;;) {
    const boxes = boxesOf(tree, open), shut = boxes.filter((box) => box.kind === "group");
    const after = shut.reduce((sum, group) => sum + group.children.length - 1, boxes.length);
    if (!shut.length) return open;
    if (after <= FIRST) { shut.forEach((group) => open.add(group.id)); continue; }
    const largest = shut.sort((a, b) => b.size - a.size).find((group) => boxes.length + group.children.length <= FIRST);
    if (boxes.length >= FEWEST || !largest) return open;
    open.add(largest.id);
  }
}

/** The boxes that are to be seen while the groups in `open` are open. */
function boxesOf(tree, open) {
  const found = [];
  const walk = (group) => {
    for (const child of group.children) {
      if (child.kind === "group" && open.has(child.id)) walk(child);
      else found.push(child);
    }
  };
  walk(tree.root);
  return found;
}

/** The box that stands for a leaf or group: itself, or the outermost shut group around it. */
function boxOf(node, open) {
  let box = node;
  for (let around = node.parent; around; around = around.parent) if (!open.has(around.id)) box = around;
  return box;
}

/** Whether all of a box belongs to a gradient. */
function isBackward(box) {
  return box.kind === "group" ? box.backward : box.kind === "op" && Boolean(box.record.b);
}

/** What became of each operator between two trees: name -> "added", "removed" or "changed". */
function differences(before, after) {
  const found = new Map();
  for (const [name, node] of after.nodes) {
    if (node.kind !== "op") continue;
    const old = before.nodes.get(name);
    if (!old) found.set(name, "added");
    else if (old.record !== node.record) found.set(name, "changed");
  }
  for (const [name, node] of before.nodes) if (node.kind === "op" && !after.nodes.has(name)) found.set(name, "removed");
  return found;
}
