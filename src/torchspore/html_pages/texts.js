"use strict";
/* The language of the reader. */

const texts = JSON.parse((document.getElementById("texts") || { textContent: "{}" }).textContent);

/** A text in the reader's language; the values replace %0, %1 and so on. */
function tr(text, ...values) {
  return (texts[text] || text).replace(/%(\d)/g, (field, place) => values[place] ?? field);
}
