"use strict";
// Small helpers. Nothing here or elsewhere makes elements from text: names and sources are only ever text.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

// A table; `heads` is a list of names, those of numbers with "#" before. Cells are texts, numbers or elements.
function table(heads, rows, caption) {
  const kind = heads.map((head) => (head.startsWith("#") ? "number" : ""));
  const head = heads.map((name, i) => element("th", { scope: "col", class: kind[i] }, name.replace(/^#/, "")));
  const body = rows.map((row) => element("tr", {}, ...row.map((cell, i) => element("td", { class: kind[i] }, shown(cell)))));
  return element("div", { class: "wide" }, element("table", {}, caption ? element("caption", {}, caption) : null,
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body)));
}

function shown(cell) {
  if (cell == null) return "?";
  return typeof cell === "number" ? cell.toLocaleString("en-US", { maximumFractionDigits: 3 }) : cell;
}

// Three digits are what models are good for.
function rounded(number) {
  return Number(number.toPrecision(3)).toLocaleString("en-US");
}

function plural(number, what) {
  return `${shown(number)} ${what}${number === 1 ? "" : "s"}`;
}

// A color for a number, neighbours far apart.
function hue(number) {
  return (number * 137) % 360;
}

function tint(number) {
  return `hsl(${hue(number)}, 55%, var(--tint))`;
}

function percent(part, whole) {
  return `${(100 * part) / whole}%`;
}
