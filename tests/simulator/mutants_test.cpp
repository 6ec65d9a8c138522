// Proof of the checkers: the code of threads of every example, spoiled in one place at a time, must be found wrong: by
// an error of the simulator, or by wrong results.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "driver/simulator_engine.h"
#include "example.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/pipeline.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

using namespace ir;

enum class Way : uint8_t { DropBarrier, WarpForBlock, DropGuard, GuardOffByOne, ShiftStore };
constexpr const char* kWays[] = {"barrier dropped", "block barrier made one of the warp", "guard dropped",
                                 "guard off by one", "store shifted by one"};

// When this was written 43 of 57, 40 of 57, 40 of 67, 41 of 64 and 55 of 56 were found.
constexpr int kLeastPercent[] = {70, 65, 55, 60, 95};

bool has_jump(const Body& body) {
  bool found = false;
  walk(body, [&](const Stmt& s) { found = found || s.as<Break>() || s.as<Continue>() || s.as<Return>(); });
  return found;
}

// The first comparison of a condition, taken one further.
std::optional<Expr> one_further(const Expr& condition) {
  bool done = false;
  const Expr changed = rewrite(condition, [&](const Expr& e) -> std::optional<Expr> {
    const auto* b = e.as<Binary>();
    if (done || !b || !b->a->type.is_int()) return std::nullopt;
    if (b->op != BinaryOp::Lt && b->op != BinaryOp::Le) return std::nullopt;
    done = true;
    return binary(b->op, b->a, add(b->b, constant(b->b->type, int64_t{1})));
  });
  return done ? std::optional(changed) : std::nullopt;
}

// What the statement becomes; none: it is not one to spoil this way.
std::optional<Body> spoiled(const ThreadProgram& p, const Stmt& s, Way way) {
  if (const auto* n = s.as<Sync>()) {
    if (way == Way::DropBarrier) return Body{};
    if (way == Way::WarpForBlock && n->scope == SyncScope::Block)
      return Body{make_stmt(Sync{SyncScope::Warp, {}, 0, false}, s->location)};
  }
  if (const auto* n = s.as<ir::If>(); n && !has_jump(n->then_body)) {
    if (way == Way::DropGuard && n->else_body.empty()) return n->then_body;
    if (way == Way::GuardOffByOne)
      if (const auto further = one_further(n->condition))
        return Body{make_stmt(ir::If{*further, n->then_body, n->else_body}, s->location)};
  }
  if (const auto* n = s.as<Store>(); n && way == Way::ShiftStore && !n->to.indices.empty()) {
    if (p.buffer(p.root(n->to.buffer)).space == Space::Local) return std::nullopt;
    Store shifted = *n;
    Expr& last = shifted.to.indices.back();
    last = add(last, constant(last->type, int64_t{1}));
    return Body{make_stmt(std::move(shifted), s->location)};
  }
  return std::nullopt;
}

int count_places(const ThreadProgram& p, Way way) {
  int n = 0;
  for (const Launch& l : p.launches) walk(l.body, [&](const Stmt& s) { n += spoiled(p, s, way).has_value(); });
  return n;
}

ThreadProgram mutant(const ThreadProgram& p, Way way, int place) {
  ThreadProgram out = p;
  int n = 0;
  for (Launch& l : out.launches)
    l.body = rewrite(l.body, [&](const Stmt& s) -> std::optional<Body> {
      auto change = spoiled(p, s, way);
      return change && n++ == place ? change : std::nullopt;
    });
  return out;
}

struct Subject {
  const examples::Case& c;
  TileProgram tiles;
  ThreadProgram threads;

  bool is_found_wrong(const ThreadProgram& program) const {
    try {
      const Executable executable =
          runtime::make_executable(build_plan(tiles), simulator_callee(program, {}), "simulator", "");
      return !c.check(examples::run_case(c, executable), INT64_MAX).ok();
    } catch (const LaunchError&) {
      return true;
    }
  }
};

std::optional<Subject> subject_of(const examples::Case& c) {
  TileProgram tiles = passes::run_passes(order_symbols(c.program.box().program), passes::all_passes(),
                                         [](const char*, const TileProgram&, double) {});
  try {
    ThreadProgram threads = lower_cuda(tiles, {}).program;
    return Subject{c, std::move(tiles), std::move(threads)};
  } catch (const CompileError&) {
    return std::nullopt;
  }
}

struct Score {
  int caught = 0, all = 0;
};

// The case with the most elements: in small ones many places are never reached twice.
const examples::Case& largest(const std::vector<examples::Case>& cases) {
  auto size = [](const examples::Case& c) {
    int64_t elements = 0;
    for (const auto& a : c.arguments)
      if (const auto* array = std::get_if<examples::LazyArray>(&a)) elements += array->size();
    return elements;
  };
  return *std::max_element(cases.begin(), cases.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
}

TEST(Mutants, AreFound) {
  constexpr int kPerProgram = 4;  // of a way: spread over the program
  std::array<Score, std::size(kWays)> scores;
  std::string survivors;
  for (const examples::Example& example : examples::all_examples()) {
    const std::vector<examples::Case> cases = example.cases(examples::Size::Odd);
    const auto subject = subject_of(largest(cases));
    if (!subject) continue;
    ASSERT_FALSE(subject->is_found_wrong(subject->threads)) << example.name;
    for (size_t w = 0; w < scores.size(); ++w) {
      const auto way = static_cast<Way>(w);
      const int places = count_places(subject->threads, way), tried = std::min(places, kPerProgram);
      for (int i = 0; i < tried; ++i) {
        const int place = places * i / tried;
        const bool caught = subject->is_found_wrong(mutant(subject->threads, way, place));
        scores[w].all += 1, scores[w].caught += caught;
        if (!caught) survivors += fmt::format("{}: {} {}\n", example.name, kWays[w], place);
      }
    }
  }
  // Who survives changes nothing that can be observed. Barriers: before the first use of the scratch of a reduction,
  // which protects it in loops and after an earlier one. Guards: of reads whose value nobody uses, of rows of shared
  // memory that exist beyond the tensor, or that hold for every thread at this shape.
  for (size_t w = 0; w < scores.size(); ++w) {
    EXPECT_GE(scores[w].all, 40) << kWays[w];
    EXPECT_GE(scores[w].caught, scores[w].all * kLeastPercent[w] / 100)
        << kWays[w] << ": " << scores[w].caught << " of " << scores[w].all << " found; not found:\n"
        << survivors;
  }
}

}  // namespace
}  // namespace tilewright::simulator
