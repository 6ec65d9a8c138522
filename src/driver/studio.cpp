#include "driver/studio.h"

#include <nlohmann/json.hpp>

#include "codegen/source_marks.h"
#include "driver/canonical.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/explain.h"
#include "driver/pass_road.h"
#include "driver/text_diff.h"
#include "ir/print_lines.h"
#include "layout/picture.h"
#include "passes/assume_fast_calls.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kDrawn = 128;  // rows and columns of a layout
constexpr size_t kContext = 2;   // lines that did not change around those that did

// The files that lines are of, by number.
class Files {
 public:
  Json place(const SourceLocation& at) {
    if (!at.known()) return 0;
    const auto found = numbers_.emplace(at.file, numbers_.size()).first;
    if (found->second == names_.size()) names_.push_back(at.file);
    return {found->second, at.line, at.column};
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> names_;
};

class Page {
 public:
  Page(const ir::TileProgram& program, const NamedValues& values, const std::string& arch)
      : program_(program), values_(values), arch_(arch) {}

  std::string json() {
    add_text("tile program", program_);
    last_ = ir::print(program_);
    const WarningSink loud = replace_warning_sink([](const Diagnostic&) {});  // explain() says them
    const std::shared_ptr<void> restore(nullptr, [&](void*) { replace_warning_sink(loud); });
    const Explanation e = arch_.empty() ? on_cpu() : on_gpu();
    Json out = {{"explanation", Json::parse(to_json(e))}};
    out["texts"] = std::move(texts_), out["passes"] = std::move(passes_), out["layouts"] = layouts(e);
    out["files"] = files_.names();
    return out.dump();
  }

 private:
  ir::TileProgram shared_passes() {
    return canonical(program_, [&](const char* name, const ir::TileProgram& p, double) {
      add_pass(name, passes::find_pass(name)->what, ir::print(p), {});
    });
  }

  Explanation on_cpu() {
    const runtime::ProcessorFeatures processor = runtime::processor_features();
    Explanation e = explain(program_, values_, processor);
    if (e.refused) return e;
    const ir::TileProgram tiles = shared_passes();
    const ir::LoopProgram lowered = lower_cpu(tiles, processor);
    add_pass(PassRoad::kToLoops, "every launch becomes a loop over blocks, every tile operation loops",
             ir::print(lowered), {});
    const ir::LoopProgram loops = passes::run_loop_passes(
        lowered, passes::loop_passes(), features_of(processor), [&](const char* name, const ir::LoopProgram& p) {
          add_pass(name, passes::find_loop_pass(name)->what, ir::print(p), {});
        });
    add_text("loops", loops);
    Dump dump(program_.name);
    const CpuKernel kernel = write_cpu(tiles, processor, dump);
    add_code("C++", kernel.text, kernel.marks);
    return e;
  }

  Explanation on_gpu() {
    std::vector<GpuStages::Stage> stages;
    Explanation e = explain_gpu(program_, values_, arch_, true, 2, [&](const DeviceChoice& choice) {
      stages = choice.stages.list();
      add_text("planned program", choice.lowering.planned);
      add_text("thread program", choice.lowering.threads);
      add_code("CUDA C++", choice.text.kernel.text, choice.text.marks);
    });
    const ir::TileProgram tiles = shared_passes();
    if (!e.refused && !e.gpu->general)
      add_pass("assume_fast_calls", "what most calls hold to is assumed; others take a general version",
               ir::print(passes::assume_fast_calls(tiles)), {});
    for (GpuStages::Stage& s : stages)
      add_pass(s.name.c_str(), passes::find_gpu_pass(s.name)->what, std::move(s.text), s.decisions);
    return e;
  }

  // ---- texts

  template <class Program>
  void add_text(const char* name, const Program& program) {
    const ir::PrintedLines printed = ir::print_lines(program);
    Json places = Json::array();
    for (const ir::PrintedPlace& p : printed.places) places.push_back(files_.place(program.location(p.location)));
    texts_.push_back({{"name", name}, {"text", printed.text}, {"places", std::move(places)}});
  }
  void add_code(const char* name, const std::string& text, const std::vector<SourceLocation>& marks) {
    Json places = Json::array();
    for (const SourceLocation& at : codegen::places_of_lines(text, marks)) places.push_back(files_.place(at));
    texts_.push_back({{"name", name}, {"text", text}, {"places", std::move(places)}});
  }

  // ---- passes

  void add_pass(const char* name, const char* what, std::string text, const std::vector<std::string>& decisions) {
    Json row = {{"name", name}, {"what", what}, {"changed", text != last_}};
    if (text != last_) row["diff"] = changes(text_diff(last_, text));
    for (const std::string& line : decisions)
      if (known_.insert(line).second) row["decided"].push_back(line);
    last_ = std::move(text);
    passes_.push_back(std::move(row));
  }
  // [kind, number, text] of lines that changed and their neighbours; ["...", how many] for those between.
  static Json changes(const std::vector<DiffLine>& lines) {
    std::vector<bool> shown(lines.size());
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].kind != '=')
        for (size_t j = i - std::min(i, kContext); j < std::min(lines.size(), i + kContext + 1); ++j) shown[j] = true;
    Json out = Json::array();
    for (size_t i = 0; i < lines.size(); ++i) {
      size_t left_out = 0;
      for (; i < lines.size() && !shown[i]; ++i) ++left_out;
      if (left_out > 0) out.push_back({"...", left_out});
      if (i < lines.size()) out.push_back({std::string(1, lines[i].kind), lines[i].number, lines[i].text});
    }
    return out;
  }

  // ---- layouts

  static Json layouts(const Explanation& e) {
    Json out = Json::array();
    if (!e.gpu) return out;
    for (size_t i = 0; i < e.gpu->launches.size(); ++i)
      for (const LayoutFacts& l : e.gpu->launches[i].layouts) {
        LayoutGrid grid = l.fragment ? fragment_grid(*l.fragment, kDrawn) : memory_grid(*l.memory, kDrawn);
        out.push_back({{"launch", i},
                       {"name", l.name},
                       {"space", l.fragment ? "registers" : "shared"},
                       {"layout", l.fragment ? l.fragment->text() : l.memory->text()},
                       {"shape", l.fragment ? l.fragment->shape() : l.memory->shape()},
                       {"copies", l.fragment ? l.fragment->copy_count() : 1},
                       {"decided_by", l.decided_by},
                       {"rows", grid.rows},
                       {"columns", grid.columns},
                       {"cut", grid.cut},
                       {l.fragment ? "thread" : "byte", std::move(grid.first)},
                       {l.fragment ? "register" : "bank", std::move(grid.second)}});
      }
    return out;
  }

  const ir::TileProgram& program_;
  const NamedValues& values_;
  const std::string& arch_;
  Files files_;
  Json texts_ = Json::array(), passes_ = Json::array();
  std::string last_;             // the text that the last pass left
  std::set<std::string> known_;  // what passes have decided
};

}  // namespace

std::string studio_json(const ir::TileProgram& program, const NamedValues& values, const std::string& arch) {
  return Page(program, values, arch).json();
}

}  // namespace tilewright
