// The command line tool: what it understands, and how errors leave it.
#include <CLI/CLI.hpp>

#include "driver/tool/commands.h"
#include "target/gpu.h"
#include "tilewright/diagnostic.h"
#include "tilewright/version.h"

namespace tilewright::tool {
namespace {

struct Commands {
  DoctorOptions doctor;
  CheckArguments check;
  CompileArguments compile;
  BuildArguments build;
  OptArguments opt;
  RunArguments run;
  ExplainArguments explain;
  PlotArguments plot;
  FuzzArguments fuzz;
  SimulateArguments simulate;
};

void add_doctor(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("doctor", "What this machine offers: compiler, processor, cache, switches");
  sub->add_flag("--json", c.doctor.json, "A JSON object");
  sub->callback([&] { chosen = [&] { return doctor(c.doctor); }; });
}

void add_check(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("check", "Run a program on random tensors on every engine, and compare them");
  sub->add_option("file", c.check.file, "A .tile file; - is standard input")->required();
  sub->add_option("values", c.check.set, "Symbols and numbers: M=17");
  sub->add_option("--seed", c.check.seed, "Of the random tensors");
  sub->add_flag("--json", c.check.json, "A JSON object");
  sub->callback([&] { chosen = [&] { return check(c.check); }; });
}

void add_compile(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("compile", "Compile a program, or show a stage of it");
  sub->add_option("file", c.compile.file, "A .tile file; - is standard input")->required();
  sub->add_option("--stage", c.compile.stage, "Print this stage")
      ->check(CLI::IsMember(
          {"tiles", "canonical", "loops", "source", "launch_plan", "plan", "planned", "threads", "cuda"}));
  sub->add_option("--engine", c.compile.engine, "For which engine")->check(CLI::IsMember({"cpu"}));
  sub->add_option("--arch", c.compile.arch, "The GPU of the stages plan, planned, threads and cuda")
      ->check(CLI::IsMember(target::gpu_names()));
  sub->add_option("--plan", c.compile.plan, "A file of lines that the plan is to have, as --stage plan prints them");
  sub->add_flag("--times", c.compile.times, "The milliseconds of every step, on standard error");
  sub->add_flag("--json", c.compile.json, "JSON instead of text, errors included");
  sub->callback([&] { chosen = [&] { return compile_file(c.compile); }; });
}

void add_build(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("build", "Compile a program ahead of time: a C header, an object and JSON");
  sub->add_option("file", c.build.file, "A .tile file; - is standard input")->required();
  sub->add_option("--arch", c.build.arch,
                  "For what: cpu, cpu:avx2, cpu:avx512, cpu:amx, cpu:portable, or GPUs by their architecture: sm_90a")
      ->delimiter(',')
      ->required();
  sub->add_option("-o,--out", c.build.out, "A folder, in which each architecture has one")->required();
  sub->add_option("--name", c.build.name, "Of the function; {arch} in it is the architecture's name");
  sub->callback([&] { chosen = [&] { return build(c.build); }; });
}

void add_opt(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("opt", "Run passes: text in, text out");
  sub->add_option("file", c.opt.file, "A .tile file; - is standard input");
  sub->add_option("--passes", c.opt.passes, "Which, in this order")->delimiter(',');
  sub->add_option("--until", c.opt.until, "All passes of the road to this one");
  sub->add_option("--arch", c.opt.arch, "For which GPU")->check(CLI::IsMember(target::gpu_names()));
  sub->add_option("--cpu", c.opt.cpu, "For which vectors")->check(CLI::IsMember({"portable", "avx2", "avx512", "amx"}));
  sub->add_flag("--list", c.opt.list, "Say which passes there are");
  sub->add_flag("--locations", c.opt.locations, "With the place of every statement");
  sub->add_flag("--diff", c.opt.diff, "Only the lines that changed");
  sub->callback([&] { chosen = [&] { return opt(c.opt); }; });
}

void add_run(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("run", "Run a program on random or given inputs");
  sub->add_option("file", c.run.call.file, "A .tile file; - is standard input")->required();
  sub->add_option("--engine", c.run.engine, "On which engine")
      ->check(CLI::IsMember({"cpu", "interpreter", "simulator", "auto"}));
  sub->add_option("-D,--set", c.run.call.set, "A symbol or a scalar: M=17")->expected(1)->take_all();
  sub->add_option("--input", c.run.call.inputs, "A tensor from a file: A=a.npy")->expected(1)->take_all();
  sub->add_option("--output", c.run.outputs, "A tensor to a file afterwards: C=c.npy")->expected(1)->take_all();
  sub->add_option("--seed", c.run.call.seed, "Of the random inputs");
  sub->add_option("--repeat", c.run.repeat, "Run so often; the times of all but the first count")
      ->check(CLI::PositiveNumber);
  sub->add_flag("--compare", c.run.compare, "Run on the interpreter and on the CPU, and compare");
  sub->add_option("--tolerance", c.run.tolerance, "Of --compare: difference over the largest value; 0: bit for bit");
  sub->add_flag("--json", c.run.json, "A JSON object; what the program prints goes to standard error");
  sub->callback([&] { chosen = [&] { return run(c.run); }; });
}

void add_explain(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("explain", "What becomes of each tile operation, and what it costs");
  sub->add_option("file", c.explain.file, "A .tile file; - is standard input")->required();
  sub->add_option("symbols,--set", c.explain.set, "Symbols: M=4096 N=64")->take_all();
  sub->add_option("--arch", c.explain.arch, "On a GPU instead of the CPU")->check(CLI::IsMember(target::gpu_names()));
  sub->add_flag("!--no-compile", c.explain.compile, "Without the device compiler, which knows registers and spills");
  sub->add_flag("--json", c.explain.json, "A JSON object");
  sub->callback([&] { chosen = [&] { return explain(c.explain); }; });
}

void add_plot(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("plot-layout", "Draw where the elements of a tile are");
  sub->add_option("layout", c.plot.layout, "A layout's text, of a fragment or of memory (docs/layouts.md)");
  sub->add_option("--file", c.plot.file, "Instead: the on-chip buffers of a .tile file; - is standard input");
  sub->add_option("--buffer", c.plot.buffer, "Only the one of this name");
  sub->add_option("--arch", c.plot.arch, "For which GPU")->check(CLI::IsMember(target::gpu_names()));
  sub->add_option("--limit", c.plot.limit, "Rows and columns at most")->check(CLI::Range(1, 1024));
  sub->add_flag("--svg", c.plot.svg, "SVG instead of text");
  sub->add_option("--out", c.plot.out, "A folder for the pictures, a file each");
  sub->callback([&] { chosen = [&] { return plot_layout(c.plot); }; });
}

void add_fuzz(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("fuzz", "Random programs through every engine");
  sub->add_option("--seeds", c.fuzz.seeds, "A range: 1..1000");
  sub->add_option("--seed", c.fuzz.seed, "One seed")->check(CLI::NonNegativeNumber);
  sub->add_option("--seconds", c.fuzz.seconds, "Start nothing new after so many")->check(CLI::NonNegativeNumber);
  sub->add_option("--jobs", c.fuzz.jobs, "Processes at a time")->check(CLI::Range(1, 1024));
  sub->add_option("--engine", c.fuzz.engine, "Beside the interpreter: cpu, simulator, cuda; interpreter: none")
      ->check(CLI::IsMember({"interpreter", "cpu", "simulator", "cuda"}));
  sub->add_flag_callback(
      "--simulator", [&] { c.fuzz.engine = "simulator"; }, "As --engine simulator");
  sub->add_flag("--invalid", c.fuzz.invalid, "Programs that must be refused");
  sub->add_flag("--quick", c.fuzz.quick, "Let the host compiler optimize less");
  sub->add_flag("--minimize", c.fuzz.minimize, "Make every finding small");
  sub->add_option("--out", c.fuzz.out, "A directory for the programs of the findings");
  sub->add_flag("--json", c.fuzz.json, "A JSON object");
  sub->callback([&] { chosen = [&] { return fuzz(c.fuzz); }; });
}

void add_simulate(CLI::App& app, Commands& c, std::function<int()>& chosen) {
  CLI::App* sub = app.add_subcommand("simulate", "Run a program on a simulated GPU and count what its memories do");
  sub->add_option("file", c.simulate.call.file, "A .tile file; - is standard input")->required();
  sub->add_option("-D,--set", c.simulate.call.set, "A symbol or a scalar: M=17")->expected(1)->take_all();
  sub->add_option("--input", c.simulate.call.inputs, "A tensor from a file: A=a.npy")->expected(1)->take_all();
  sub->add_option("--seed", c.simulate.call.seed, "Of the random inputs and of the order of the warps");
  sub->add_option("--arch", c.simulate.arch, "Which GPU")->check(CLI::IsMember(target::gpu_names()));
  sub->add_option("--trace", c.simulate.trace, "A file for its timeline, which ui.perfetto.dev shows");
  sub->add_flag("--json", c.simulate.json, "A JSON object");
  sub->callback([&] { chosen = [&] { return simulate(c.simulate); }; });
}

int main(int argc, char** argv) {
  CLI::App app("Tilewright: tile programs in text form, for CPUs and GPUs", "tilewright");
  app.set_version_flag("--version", "tilewright " TILEWRIGHT_VERSION);
  app.require_subcommand(1);
  Commands commands;
  std::function<int()> chosen;
  add_doctor(app, commands, chosen);
  add_check(app, commands, chosen);
  add_compile(app, commands, chosen);
  add_build(app, commands, chosen);
  add_opt(app, commands, chosen);
  add_run(app, commands, chosen);
  add_explain(app, commands, chosen);
  add_plot(app, commands, chosen);
  add_fuzz(app, commands, chosen);
  add_simulate(app, commands, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kOk : kUsage;  // --help is no mistake
  }
  try {
    return chosen();
  } catch (const UsageError& e) {
    fmt::print(stderr, "tilewright: {}\n", e.what());
    return kUsage;
  } catch (const Error& e) {
    const bool json = commands.compile.json || commands.run.json || commands.explain.json || commands.fuzz.json ||
                      commands.simulate.json || commands.check.json;
    if (json) {
      fmt::print("{{\"error\": {}}}\n", e.diagnostic().to_json());
    } else {
      fmt::print(stderr, "{}\n", e.what());
    }
    return kWrong;
  } catch (const std::exception& e) {
    fmt::print(stderr, "tilewright: this is a mistake of Tilewright's own, please report it: {}\n", e.what());
    return kWrong;
  }
}

}  // namespace
}  // namespace tilewright::tool

int main(int argc, char** argv) { return tilewright::tool::main(argc, argv); }
