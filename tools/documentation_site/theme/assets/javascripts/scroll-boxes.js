// Boxes that scroll sideways (code, tables, charts) can be focused, so that the arrow keys scroll them.
const boxes = ".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset p:has(> img)";
const update = () => {
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; else box.removeAttribute("tabindex");
  }
};

// On a phone a row of a table that is wider than the screen is a list: each cell is a line with the heading of its column before it.
const phone = matchMedia("(max-width: 48em)");
// Not on the pages of thousands of names: their layout would take too long, so their tables scroll.
const listRows = () => {
  if (document.querySelectorAll(".md-typeset tr").length > 2000) return;
  const tables = [...document.querySelectorAll(".md-typeset table:not([class])")];
  for (const table of tables) delete table.dataset.rows;
  const isWide = tables.map((table) => phone.matches && table.offsetWidth > table.parentElement.parentElement.clientWidth);
  for (const table of tables.filter((_, number) => isWide[number])) {
    const headings = [...table.querySelectorAll("thead th")].map((heading) => heading.textContent);
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, column) => { cell.dataset.heading = headings[column]; });
    table.dataset.rows = "lists";
  }
};
let width = 0;
const follow = () => {
  if (document.body.clientWidth !== width) { width = document.body.clientWidth; listRows(); }
  update();
};
new ResizeObserver(follow).observe(document.body);
addEventListener("load", follow);
