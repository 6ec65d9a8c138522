"use strict";
// Where the elements of a tile are: a cell for each, drawn when it is looked at.

class Layouts {
  constructor(layouts, launches) {
    this.layouts = layouts;
    this.pick = element("select", { "aria-label": "Which tile", onchange: () => this.choose(Number(this.pick.value)) });
    layouts.forEach((layout, i) => {
      const launch = launches.length > 1 ? `, launch ${launches[layout.launch].name}` : "";
      this.pick.append(element("option", { value: i }, `${layout.name} in ${layout.space}${launch}`));
    });
    this.about = element("p", { class: "faint" });
    this.says = element("p", { role: "status", "aria-live": "polite" });
    this.canvas = element("canvas", { tabindex: 0, role: "img" });
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.frame = element("div", {}, element("div", { class: "tools" }, this.pick), this.about, this.says,
      element("div", { class: "picture" }, this.canvas));
    this.choose(0);
  }

  choose(number) {
    this.pick.value = String(number);
    this.layout = this.layouts[number];
    const { layout } = this;
    this.row = this.column = 0;
    this.registers = layout.space === "registers";
    this.numbers = this.registers ? layout.thread : layout.bank;
    const part = layout.cut ? "; a part of the tile is drawn" : "";
    const color = this.registers ? "thread" : "bank of shared memory";
    this.about.textContent = `${layout.layout}, decided by ${layout.decided_by}${part}. A color is a ${color}. ` +
      "The mouse or the arrow keys show a cell.";
    this.size = Math.max(6, Math.min(22, Math.floor(1100 / layout.columns)));
    this.canvas.setAttribute("aria-label", `Elements of ${layout.name}: ${layout.rows} rows of ${layout.columns}`);
    this.draw();
    this.say();
  }

  // Shows the layout of a shared buffer of a launch, if it has one.
  open(name, launch) {
    const wanted = (layout) => layout.name === name && layout.launch === launch && layout.space === "shared";
    const found = this.layouts.findIndex(wanted);
    if (found >= 0) this.choose(found);
  }

  draw() {
    const { canvas, layout, size } = this;
    canvas.width = layout.columns * size;
    canvas.height = layout.rows * size;
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const light = style.getPropertyValue("--tint").trim();
    const here = this.numbers[this.at()];
    for (let row = 0; row < layout.rows; ++row) {
      for (let column = 0; column < layout.columns; ++column) {
        const number = this.numbers[row * layout.columns + column];
        pen.fillStyle = `hsl(${hue(number)}, 55%, ${light})`;
        pen.fillRect(column * size, row * size, size - 1, size - 1);
        if (number !== here) continue;
        pen.strokeStyle = style.getPropertyValue("--text");
        pen.strokeRect(column * size + 0.5, row * size + 0.5, size - 2, size - 2);
      }
    }
    pen.lineWidth = 2;
    pen.strokeStyle = style.getPropertyValue("--bad");
    pen.strokeRect(this.column * size, this.row * size, size - 1, size - 1);
  }

  at() {
    return this.row * this.layout.columns + this.column;
  }

  go(row, column) {
    if (row === this.row && column === this.column) return;
    this.row = Math.min(Math.max(row, 0), this.layout.rows - 1);
    this.column = Math.min(Math.max(column, 0), this.layout.columns - 1);
    this.draw();
    this.say();
  }

  say() {
    const { layout } = this;
    const index = [...layout.shape.slice(0, -2).map(() => 0), ...(layout.shape.length > 1 ? [this.row] : []), this.column];
    const where = this.registers
      ? `thread ${layout.thread[this.at()]}, register ${layout.register[this.at()]}` +
        (layout.copies > 1 ? `, and ${layout.copies - 1} copies` : "")
      : `byte ${layout.byte[this.at()]}, bank ${layout.bank[this.at()]}`;
    this.says.textContent = `${layout.name}[${index.join(", ")}]: ${where}`;
  }

  point(event) {
    this.go(Math.floor(event.offsetY / this.size), Math.floor(event.offsetX / this.size));
  }

  press(event) {
    const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    this.go(this.row + step[0], this.column + step[1]);
  }
}
