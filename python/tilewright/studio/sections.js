"use strict";
// What stands below the texts: operations, launches with their plan, memory and rings, counts, passes.

function goTo(texts, number, line) {
  return element("button", { type: "button", class: "go", onclick: () => {
    texts.light(`${number}:${line}`);
    document.getElementById("texts").scrollIntoView();
  } }, String(line));
}

function operationTable(texts, operations) {
  const all = [
    ["line", (o) => goTo(texts, o.number, o.line)],
    ["operation", (o) => o.operation],
    ["what it became", (o) => (o.becomes || []).join("; ")],
    ["why not better", (o) => (o.rejected || []).map((r) => `not ${r}`).join("; ")],
    ["warnings", (o) => (o.warnings || []).join("; ")],
    ["#times", (o) => o.executions],
    ["#flops each", (o) => (o.flops === 0 ? "" : o.flops)],
    ["#bytes each", (o) => (o.bytes === 0 ? "" : o.bytes)],
    ["#innermost loops", (o) => o.innermost_loops || ""],
    ["#vectorized", (o) => (o.innermost_loops ? o.vectorized_loops : "")],
  ];
  const columns = all.filter(([, cell]) => operations.some((o) => cell(o) !== ""));
  return table(columns.map(([name]) => name), operations.map((o) => columns.map(([, cell]) => cell(o))));
}

// ---- the plan

function planOf(launch) {
  const plan = launch.plan;
  const parts = [element("h3", {}, "Plan")];
  if (plan.lines.length) parts.push(element("pre", { class: "plan" }, plan.lines.join("\n")));
  if (plan.why_not) parts.push(element("p", {}, `No warp only loads: ${plan.why_not}`));
  for (const what of ["fitted", "no_teams"]) if (plan[what]) parts.push(element("p", { class: "faint" }, plan[what]));
  if (plan.price) parts.push(...priceOf(plan.price, plan.next || []));
  return parts;
}

const UNITS = { matrix: "matrix unit", shared: "shared memory", l2: "L2 cache", issue: "elementwise code", results: "results",
  memory: "device memory" };

function priceOf(price, next) {
  const clocks = price.clocks_of_a_tile;
  const most = Math.max(1, ...Object.values(clocks));
  const bars = Object.entries(clocks).map(([unit, count]) => {
    const bar = element("div", {});
    bar.style.width = percent(count, most);
    return element("div", { class: "bar" }, element("span", {}, UNITS[unit]), bar, element("span", {}, shown(Math.round(count))));
  });
  const said = `About ${rounded(price.us)} us by the model of the device; what decides: ${UNITS[price.limit]}. ` +
    `${plural(price.waves, "wave")} of tiles, ${rounded(price.memory_us)} us for the device's memory. Clocks of a tile:`;
  return [element("p", {}, said), ...bars, nextPlans(price, next)];
}

function nextPlans(price, next) {
  if (!next.length) return element("p", { class: "faint" }, "No plan that differs by one line is known to fit.");
  const row = (line, of) => [line, rounded(of.us), UNITS[of.limit]];
  return table(["plans with another line", "#us", "decides"],
    [row("(this one)", price), ...next.map((plan) => row(plan.line, plan.price))]);
}

// ---- shared memory

function memoryOf(launch, openLayout) {
  const used = launch.shared.reduce((most, range) => Math.max(most, range.begin + range.bytes), 0);
  if (!used) return [];
  const says = element("p", { role: "status", "aria-live": "polite" });
  const label = "Shared memory: bytes to the right, time downwards";
  const frame = element("div", { class: "memory", role: "group", "aria-label": label });
  const pressed = (range) => () => {
    says.textContent = saidOfRange(range);
    openLayout(range.name);
  };
  launch.shared.forEach((range, i) => frame.append(rangeOf(range, used, tint(i + 1), pressed(range))));
  return [
    element("h3", {}, `Shared memory: ${shown(launch.shared_bytes)} bytes`),
    element("p", { class: "faint" }, "Bytes from left to right; downwards the part of its role's statements in which a buffer " +
      "is in use. A click says more, and shows its layout."),
    frame, says, ...resourcesOf(launch)];
}

// A buffer: as wide as its bytes, as high as the part of the statements that it lives for.
function rangeOf(range, used, color, onclick) {
  const said = saidOfRange(range);
  const button = element("button", { type: "button", title: said, "aria-label": said, onclick }, element("span", {}, range.name));
  const from = range.lives.length ? Math.min(...range.lives.map((life) => life.begin / life.of)) : 0;
  const to = range.lives.length ? Math.max(...range.lives.map((life) => life.end / life.of)) : 1;
  if (range.bytes < used / 40) button.className = "thin";
  Object.assign(button.style, { left: percent(range.begin, used), width: percent(range.bytes, used), background: color,
    top: percent(from, 1), height: percent(Math.max(0.04, to - from), 1) });
  return button;
}

function saidOfRange(range) {
  const slots = range.slots > 1 ? `, ${plural(range.slots, "slot")}` : "";
  const lives = range.lives.map((life) =>
    `; threads ${life.threads[0]} to ${life.threads[1] - 1}: statements ${life.begin + 1} to ${life.end} of ${life.of}`);
  return `${range.name}: bytes ${shown(range.begin)} to ${shown(range.begin + range.bytes)}${slots}${lives.join("")}`;
}

function resourcesOf({ occupancy, resources }) {
  const said = [];
  if (occupancy)
    said.push(`${plural(occupancy.blocks, "block")}, ${occupancy.warps} of ${occupancy.most_warps} warps on a multiprocessor; ` +
      `what limits: ${occupancy.limit}.`);
  if (resources)
    said.push(`${resources.registers} registers a thread, ${resources.spill_store_bytes} bytes of spills stored, ` +
      `${resources.spill_load_bytes} loaded.`);
  return said.map((text) => element("p", {}, text));
}

// ---- rings and roles

function ringsOf(plan) {
  const rings = (plan.rings || []).filter((ring) => ring.slots > 1);
  if (!rings.length) return [];
  const said = "Which slot is filled and which is used, where using one takes twice as long as filling it.";
  return [element("h3", {}, "Rings in time"), element("p", { class: "faint" }, said), ...rings.map(ringOf)];
}

function ringOf(ring) {
  const name = `${ring.tiles.join(" and ")}: ${ring.slots} slots of ${shown(ring.slot_bytes)} bytes`;
  const grid = element("div", { class: "ring", role: "img", "aria-label": `Ring of ${name}` });
  const put = (row, from, to, text, attributes) => {
    const cell = element("span", attributes, text);
    cell.style.gridRow = row;
    cell.style.gridColumn = `${from + 2} / ${to + 2}`;
    grid.append(cell);
    return cell;
  };
  ["", "filled", "used"].forEach((text, i) => put(i + 1, -1, 0, text, { class: "name" }));
  const end = ring.turns[ring.turns.length - 1].used[1];
  for (let time = 0; time < end; ++time) put(1, time, time + 1, time, { class: "faint" });
  for (const turn of ring.turns) {
    for (const [row, what] of [[2, "filled"], [3, "used"]]) {
      const [from, to] = turn[what];
      const title = `slot ${turn.slot} is ${what} from ${from} to ${to}`;
      put(row, from, to, turn.slot, { class: "slot", title }).style.background = tint(turn.slot + 1);
    }
  }
  return element("div", {}, element("p", {}, name), element("div", { class: "wide" }, grid));
}

function rolesOf(launch) {
  if (!launch.roles || !launch.roles.length) return [];
  return [element("h3", {}, "Roles"), ...launch.roles.map((role) => element("details", {},
    element("summary", {}, `${role.name}, threads ${role.begin} to ${role.end - 1}: ${plural(role.steps.length, "step")}`),
    element("pre", {}, role.steps.join("\n"))))];
}

function launchOf(launch, openLayout) {
  const blocks = launch.blocks == null ? launch.grid.join(" x ") : shown(launch.blocks);
  const threads = [launch.threads].flat().join(" x ");
  const head = `Launch ${launch.name}: ${blocks} blocks of ${threads} threads, ${shown(launch.bytes_on_chip)} bytes on chip`;
  const buffers = table(["tile", "space", "dtype", "shape", "#bytes"],
    launch.buffers.map((b) => [b.name, b.space, b.dtype, b.shape.join(" x "), b.view ? "a view" : b.bytes]));
  const parts = [element("p", {}, head), buffers];
  if (launch.plan)
    parts.push(...planOf(launch), ...memoryOf(launch, openLayout), ...ringsOf(launch.plan), ...rolesOf(launch));
  for (const why of launch.in_memory || []) parts.push(element("p", { class: "inlay not" }, why));
  return element("div", {}, ...parts.filter(Boolean));
}

// ---- what the simulator counted

const COUNTED = [["shared_wavefronts", "wavefronts"], ["shared_wavefronts_ideal", "least"], ["global_sectors", "sectors"],
  ["global_sectors_ideal", "least"], ["bytes_moved", "bytes moved"], ["bytes_used", "bytes used"], ["atomics", "atomics"],
  ["barriers", "barriers"]];

function saidOf(row) {
  const some = COUNTED.filter(([key]) => row[key] && !key.endsWith("ideal"));
  return some.map(([key, name]) => `${shown(row[key])} ${name}`).join(", ") || "nothing";
}

function countsOf(texts, simulated, files) {
  if (simulated.error) return [element("p", { class: "inlay not" }, `The simulator ends with ${simulated.error}`)];
  return [element("p", { class: "faint" }, simulated.about), ...simulated.launches.map((l) => countsOfLaunch(texts, l, files))];
}

function countsOfLaunch(texts, launch, files) {
  const cells = (row) => COUNTED.map(([key]) => row[key]);
  const line = (row) => (files.includes(row.file) ? goTo(texts, files.indexOf(row.file), row.line) : "?");
  const rows = [...launch.lines.map((row) => [line(row), ...cells(row)]), ["all", ...cells(launch.total)]];
  return element("div", {},
    element("p", {}, `Launch ${launch.launch}: ${plural(launch.blocks, "block")} of ${launch.threads} threads`),
    table(["line", ...COUNTED.map(([, name]) => `#${name}`)], rows));
}

// ---- passes

function passesOf(passes) {
  const changed = passes.filter((pass) => pass.changed || pass.decided);
  const others = passes.filter((pass) => !pass.changed && !pass.decided).map((pass) => pass.name);
  return [...changed.map(passOf), element("p", { class: "faint" }, `Changed nothing: ${others.join(", ") || "none"}.`)];
}

function passOf(pass) {
  const count = (kind) => (pass.diff || []).filter((line) => line[0] === kind).length;
  const does = [];
  if (pass.changed) does.push(`+${count("+")} -${count("-")}`);
  if (pass.decided) does.push(`decides ${pass.decided.length}`);
  const made = element("details", { class: "pass" }, element("summary", {},
    element("strong", {}, pass.name), ` ${does.join(", ")}`, element("span", { class: "faint" }, ` ${pass.what}`)));
  made.addEventListener("toggle", () => made.open && made.children.length === 1 && fillPass(made, pass));
  return made;
}

// When it is opened: most never are.
function fillPass(made, pass) {
  if (pass.decided) made.append(element("pre", {}, pass.decided.join("\n")));
  const kinds = { "+": "added", "-": "removed", "=": "" };
  const lines = (pass.diff || []).map(([kind, number, text]) => {
    if (kind === "...") return element("div", { class: "gap" }, `... ${plural(number, "line")}`);
    return element("div", { class: kinds[kind] }, `${kind === "=" ? " " : kind} ${text}`);
  });
  if (lines.length) made.append(element("pre", { class: "diff" }, ...lines));
}
