// Boxes that scroll sideways (code, tables, charts) can be focused, so that the arrow keys scroll them.
const boxes = ".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset p:has(> img)";
const update = () => {
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; else box.removeAttribute("tabindex");
  }
};
new ResizeObserver(update).observe(document.body);
addEventListener("load", update);
