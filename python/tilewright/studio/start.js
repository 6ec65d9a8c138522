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
  const made = element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), ...parts);
  document.getElementById("main").append(made);
  document.getElementById("sections").append(element("a", { href: `#${id}` }, title));
  return made;
}

function head(facts, explanation) {
  document.getElementById("name").textContent = explanation.program;
  document.getElementById("engine").textContent = explanation.arch ? `${explanation.arch}, rates of an ${explanation.device}` : `cpu: ${explanation.processor}`;
  document.getElementById("headline").textContent = explanation.headline;
  const warnings = [...explanation.warnings, ...(explanation.refused ? [explanation.refused] : [])];
  for (const warning of warnings) {
    const where = warning.line ? `line ${warning.line}: ` : "";
    document.getElementById("warnings").append(element("p", {}, `${warning.code || ""} ${where}${warning.message}${warning.help ? ` (${warning.help})` : ""}`));
  }
  if ((explanation.assumptions || []).length) {
    const what = explanation.general ? "The general version; of this call it does not hold that" : "Assumed of a call, which else takes a general version:";
    document.getElementById("warnings").append(element("p", { class: "faint" }, `${what} ${explanation.assumptions.join(", ")}`));
  }
}

function start() {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const { explanation, files, simulated } = facts;
  head(facts, explanation);
  const operations = explanation.launches.flatMap((launch) => launch.operations.map((o) => ({ ...o, number: files.indexOf(o.file) })));
  const counted = simulated && !simulated.error ? simulated.launches.flatMap((launch) => launch.lines) : [];
  const counts = counted.map((row) => ({ number: files.indexOf(row.file), line: row.line, said: saidOf(row) }));
  const texts = new Texts(facts.texts, operations, counts);
  texts.files = files;
  section("texts", "Source and what it becomes", texts.tools, texts.frame, texts.detail);
  section("operations", "Operations", operationTable(texts, operations));
  const layouts = facts.layouts.length ? new Layouts(facts.layouts) : null;
  const openLayout = (name) => layouts && layouts.place(name) >= 0 && layouts.choose(layouts.place(name));
  section("launches", explanation.launches.length > 1 ? "Launches" : "Launch", ...explanation.launches.map((launch) => launchOf(launch, openLayout)));
  if (layouts) section("layouts", "Layouts", layouts.frame);
  if (simulated) section("counts", "What the simulator counted", ...countsOf(texts, simulated, files));
  section("passes", "Passes", ...passesOf(facts.passes));
  if ((explanation.plans || []).length) section("plans", "Plans that were tried, best first", element("pre", {}, explanation.plans.join("\n")));
  useTheme(THEMES.includes(kept()) ? kept() : "auto", () => layouts && layouts.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => layouts && layouts.draw());
  texts.begin();
  document.documentElement.dataset.ready = "yes";
}

start();
