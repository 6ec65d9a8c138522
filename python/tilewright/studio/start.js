"use strict";
// The page from its facts.

const THEMES = ["auto", "light", "dark"];

function kept(value) {
  try {
    if (value) localStorage.setItem("tilewright-theme", value);
    return localStorage.getItem("tilewright-theme");
  } catch {
    return null; // pages of files may have no storage
  }
}

function useTheme(name, redraw) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = `theme: ${name}`;
  button.setAttribute("aria-label", `Theme: ${name}. Changes it.`);
  button.onclick = () => {
    const next = THEMES[(THEMES.indexOf(name) + 1) % THEMES.length];
    kept(next);
    useTheme(next, redraw);
  };
  redraw();
}

function section(id, title, ...parts) {
  const named = { id, "aria-labelledby": `${id}-title` };
  const made = element("section", named, element("h2", { id: `${id}-title` }, title), ...parts);
  document.getElementById("main").append(made);
  document.getElementById("sections").append(element("a", { href: `#${id}` }, title));
}

function head(explanation) {
  const { arch, device, processor, program, headline } = explanation;
  const say = (id, text) => (document.getElementById(id).textContent = text);
  say("name", program);
  say("engine", arch ? `${arch}, rates of ${/^[AEFHILMNORSX]/.test(device) ? "an" : "a"} ${device}` : `cpu: ${processor}`);
  say("headline", headline);
  const warn = (text, kind = "") => document.getElementById("warnings").append(element("p", { class: kind }, text));
  for (const warning of [...explanation.warnings, ...(explanation.refused ? [explanation.refused] : [])]) {
    const where = warning.line ? `line ${warning.line}: ` : "";
    warn(`${warning.code || ""} ${where}${warning.message}${warning.help ? ` (${warning.help})` : ""}`);
  }
  if (!(explanation.assumptions || []).length) return;
  const assumed = explanation.assumptions.join(", ");
  warn(explanation.general ? `The general version; of this call it does not hold that ${assumed}`
    : `Assumed of a call, which else takes a general version: ${assumed}`, "faint");
}

// What one looks for first, as large numbers: of the launch that takes longest.
function figuresOf(explanation) {
  const { launches, compute_floor_us: compute, memory_floor_us: memory } = explanation;
  const priced = launches.filter((launch) => launch.plan && launch.plan.price);
  const model = priced.length === launches.length ? priced.reduce((sum, launch) => sum + launch.plan.price.us, 0) : 0;
  const floor = Math.max(compute || 0, memory || 0);
  const longest = priced.sort((a, b) => b.plan.price.us - a.plan.price.us)[0] || launches[0] || {};
  const { occupancy, resources, shared_bytes: shared } = longest;
  return [
    floor ? ["floor", `${rounded(floor)} us`] : null,
    model ? ["by the model", `${rounded(model)} us`] : null,
    model && floor ? ["of the floor's speed", `${Math.min(100, Math.round((100 * floor) / model))}%`] : null,
    longest.plan && longest.plan.price ? ["what decides", UNITS[longest.plan.price.limit]] : null,
    occupancy ? ["warps at a time", `${occupancy.warps} of ${occupancy.most_warps}`] : null,
    resources ? ["registers a thread", shown(resources.registers)] : null,
    resources ? ["bytes of spills", shown(resources.spill_store_bytes + resources.spill_load_bytes)] : null,
    shared ? ["bytes of shared memory", shown(shared)] : null,
  ].filter(Boolean);
}

function showFigures(explanation) {
  for (const [name, value] of figuresOf(explanation))
    document.getElementById("figures").append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
}

// The operations of all launches, with the numbers of their files.
function operationsOf(explanation, files) {
  return explanation.launches.flatMap((launch) => launch.operations.map((o) => ({ ...o, number: files.indexOf(o.file) })));
}

function countsByLine(simulated, files) {
  const rows = simulated && !simulated.error ? simulated.launches.flatMap((launch) => launch.lines) : [];
  return rows.map((row) => ({ number: files.indexOf(row.file), line: row.line, said: saidOf(row) }));
}

function start() {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const { explanation, files, simulated } = facts;
  head(explanation);
  showFigures(explanation);
  const operations = operationsOf(explanation, files);
  const texts = new Texts(facts.texts, operations, countsByLine(simulated, files));
  texts.files = files;
  section("texts", "Source and what it becomes", texts.tools, texts.frame, texts.detail);
  section("operations", "Operations", operationTable(texts, operations));
  const layouts = facts.layouts.length ? new Layouts(facts.layouts, explanation.launches) : null;
  const openLayout = (launch) => (name) => layouts && layouts.open(name, launch);
  const launches = explanation.launches.map((launch, number) => launchOf(launch, openLayout(number)));
  section("launches", launches.length > 1 ? "Launches" : "Launch", ...launches);
  if (layouts) section("layouts", "Layouts", layouts.frame);
  if (simulated) section("counts", "What the simulator counted", ...countsOf(texts, simulated, files));
  section("passes", "Passes", ...passesOf(facts.passes));
  const plans = explanation.plans || [];
  if (plans.length) section("plans", "Plans that were tried, best first", element("pre", {}, plans.join("\n")));
  const redraw = () => layouts && layouts.draw();
  useTheme(THEMES.includes(kept()) ? kept() : "auto", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  texts.begin();
  document.documentElement.dataset.ready = "yes";
}

start();
