"use strict";
// Texts side by side: what comes from the same line of the source is lit together.

const CHUNK = 200; // lines that the browser may leave out while they are out of sight
const HUES = 12; // colors of the lines' edges, those of neighbours far apart: page.css has them

class Texts {
  constructor(texts, operations, counts) {
    this.columns = [];
    this.byPlace = new Map(); // "file:line" to the lines of all columns
    this.listeners = [];
    this.operations = new Map();
    for (const operation of operations) this.note(this.operations, `${operation.number}:${operation.line}`, operation);
    this.counts = new Map(counts.map((row) => [`${row.number}:${row.line}`, row]));
    this.frame = element("div", { class: "columns" });
    this.tools = element("div", { class: "tools", role: "toolbar", "aria-label": "Which texts are shown" });
    this.detail = element("div", { id: "detail", role: "status", "aria-live": "polite" },
      "Click a line, or go through a text by the arrow keys: what comes from the same line is lit in all of them.");
    for (const text of texts) this.add(text);
  }

  note(map, key, value) {
    if (!map.has(key)) map.set(key, []);
    map.get(key).push(value);
  }

  add(text) {
    const number = this.columns.length;
    const list = element("div", { class: "text", role: "listbox", tabindex: 0, "aria-label": text.name });
    const column = { text, list, lines: [], current: -1 };
    this.fill(column, number);
    colorWhenSeen(list, languageOf(text));
    column.frame = element("section", { class: "column" }, element("h3", {}, text.title || text.name), list);
    column.frame.hidden = Boolean(text.hidden);
    const pressed = { type: "button", "aria-pressed": String(!text.hidden), onclick: () => this.toggle(column) };
    const toggle = element("button", pressed, text.name);
    column.toggle = toggle;
    list.addEventListener("click", (event) => this.point(column, event, (index) => this.choose(column, index)));
    list.addEventListener("mousemove", (event) => this.point(column, event, (index) => this.hover(column.lines[index].key)));
    list.addEventListener("mouseleave", () => this.hover(null));
    list.addEventListener("keydown", (event) => this.press(column, event));
    this.columns.push(column);
    this.frame.append(column.frame);
    this.tools.append(toggle);
  }

  fill(column, number) {
    const { text, list } = column;
    const lines = text.text.replace(/\n$/, "").split("\n");
    let chunk = null;
    lines.forEach((line, index) => {
      if (index % CHUNK === 0) {
        chunk = element("div", { class: "chunk", role: "presentation" });
        chunk.style.containIntrinsicSize = `auto ${18.75 * Math.min(CHUNK, lines.length - index)}px`;
        list.append(chunk);
      }
      const place = text.places[index];
      const made = document.createElement("div");
      made.className = place ? `line placed hue${(7 * place[1]) % HUES}` : "line";
      made.setAttribute("role", "option");
      made.dataset.n = text.numbers ? text.numbers[index] || "" : index + 1;
      made.textContent = line;
      made.index = index;
      const key = place ? `${place[0]}:${place[1]}` : null;
      if (key) this.note(this.byPlace, key, { column: number, index });
      if (place && text.inlays) this.inlay(made, place);
      chunk.append(made);
      column.lines.push({ element: made, key });
    });
  }

  // What the operation on the line became, and why it is not better.
  inlay(made, place) {
    for (const operation of this.operations.get(`${place[0]}:${place[1]}`) || []) {
      if (operation.column !== place[2] || operation.shown) continue;
      operation.shown = true;
      if (operation.becomes) made.append(element("span", { class: "inlay" }, operation.becomes[0]));
      if (operation.rejected) made.append(element("span", { class: "inlay not" }, `not ${operation.rejected[0]}`));
    }
  }

  // Every text at the first line that comes from the source: kernels begin with functions of the library.
  begin() {
    for (const column of this.columns) {
      const first = column.lines.findIndex((line) => line.key);
      if (first > 0) this.reveal(column, first, true);
    }
  }

  toggle(column) {
    column.frame.hidden = !column.frame.hidden;
    column.toggle.setAttribute("aria-pressed", String(!column.frame.hidden));
    if (!column.frame.hidden && this.chosen) this.show(column, this.chosen);
  }

  point(column, event, action) {
    const line = event.target.closest(".line");
    if (line) action(line.index);
  }

  // ---- lighting

  elements(key) {
    return (this.byPlace.get(key) || []).map((at) => this.columns[at.column].lines[at.index].element);
  }

  hover(key) {
    if (key === this.hovered) return;
    for (const line of this.elements(this.hovered)) line.classList.remove("near");
    this.hovered = key;
    for (const line of this.elements(key)) line.classList.add("near");
  }

  // A line that has no place lights nothing.
  choose(column, index) {
    this.move(column, index);
    this.light(column.lines[index].key, column);
  }

  light(key, from = null) {
    for (const line of this.elements(this.chosen)) {
      line.classList.remove("lit");
      line.removeAttribute("aria-selected");
    }
    this.chosen = key;
    for (const line of this.elements(key)) {
      line.classList.add("lit");
      line.setAttribute("aria-selected", "true");
    }
    for (const column of this.columns) if (column !== from && key) this.show(column, key);
    this.describe(key);
  }

  // Scrolls a column to its first line of that place.
  show(column, key) {
    const number = this.columns.indexOf(column);
    const first = (this.byPlace.get(key) || []).find((at) => at.column === number);
    if (first) this.reveal(column, first.index, true);
  }

  // Scrolls to a line: as little as need be, or, where it leads, to have what is around it in sight. Lines that were not laid
  // out before may turn out higher than was thought, so it looks twice.
  reveal(column, index, leads) {
    const { list } = column;
    for (let turn = 0; turn < 2; ++turn) {
      const frame = list.getBoundingClientRect();
      const line = column.lines[index].element.getBoundingClientRect();
      const above = line.top - frame.top;
      const below = frame.top + list.clientHeight - line.bottom;
      const margin = leads ? line.height : 0;
      if (above >= margin && below >= margin) return;
      list.scrollTop += leads ? above - list.clientHeight / 6 : above < 0 ? above : -below;
    }
  }

  describe(key) {
    this.detail.replaceChildren();
    if (!key) return void this.detail.append("This line comes from no line of the source.");
    const [number, line] = key.split(":").map(Number);
    const lines = [element("p", {}, element("strong", {}, `${this.fileName(number)}, line ${line}`))];
    for (const operation of this.operations.get(key) || []) lines.push(...described(operation));
    const counted = this.counts.get(key);
    if (counted) lines.push(element("p", {}, `simulated: ${counted.said}`));
    if (lines.length === 1)
      lines.push(element("p", { class: "faint" }, `${plural(this.elements(key).length, "line")} of the texts come from it.`));
    this.detail.append(...lines);
  }

  fileName(number) {
    return (this.files[number] || "").replace(/^.*\//, "");
  }

  // ---- keys

  move(column, index) {
    if (column.current >= 0) column.lines[column.current].element.classList.remove("current");
    column.current = index;
    const line = column.lines[index].element;
    line.classList.add("current");
    line.id = line.id || `line-${this.columns.indexOf(column)}-${index}`;
    column.list.setAttribute("aria-activedescendant", line.id);
    this.reveal(column, index, false);
  }

  press(column, event) {
    const page = Math.max(1, Math.floor(column.list.clientHeight / 18.75) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const last = column.lines.length - 1;
    if (event.key in steps) {
      event.preventDefault();
      this.choose(column, Math.min(last, Math.max(0, column.current + steps[event.key])));
    } else if (event.key === "Escape") {
      this.light(null);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const shown = this.columns.filter((other) => !other.frame.hidden);
      const next = shown[shown.indexOf(column) + (event.key === "ArrowRight" ? 1 : -1)];
      if (!next || event.shiftKey) return;
      event.preventDefault();
      next.list.focus();
    }
  }
}

function described(operation) {
  const facts = [];
  if (operation.executions != null) facts.push(`${operation.conditional ? "at most " : ""}${shown(operation.executions)} times`);
  if (operation.flops) facts.push(`${shown(operation.flops)} flops each`);
  if (operation.bytes) facts.push(`${shown(operation.bytes)} bytes each`);
  if (operation.innermost_loops)
    facts.push(`innermost loops ${operation.innermost_loops}, vectorized ${operation.vectorized_loops}`);
  const lines = [element("p", {}, `${operation.operation}: ${facts.join(", ")}`)];
  for (const what of operation.becomes || []) lines.push(element("p", { class: "inlay" }, what));
  for (const what of operation.rejected || []) lines.push(element("p", { class: "inlay not" }, `not ${what}`));
  for (const what of operation.warnings || []) lines.push(element("p", { class: "inlay not" }, `warning: ${what}`));
  return lines;
}
