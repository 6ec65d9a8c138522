#include "simulator/mutant_subjects.h"

#include "driver/arguments.h"
#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "driver/simulator_engine.h"
#include "example.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "simulator/hopper_programs.h"
#include "simulator/lowered_programs.h"
#include "simulator/simulate.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

using namespace ir;

// Float arrays get other values; of integers programs expect what they are.
std::vector<NDArray> other_inputs(std::vector<NDArray> arrays, int input) {
  for (size_t i = 0; i < arrays.size() && input > 0; ++i)
    if (arrays[i].dtype().is_float()) fill_random(arrays[i], static_cast<uint64_t>(1000 * input) + i);
  return arrays;
}

template <class Run>
std::string guarded(const ThreadProgram& program, const Run& run) {
  try {
    check_valid(program);
  } catch (const Error& e) {
    return "refused: " + e.diagnostic().code_text();
  }
  try {
    return run() ? "" : "wrong result";
  } catch (const LaunchError& e) {
    return e.diagnostic().code_text();
  }
}

bool same_bits(const NDArray& a, const NDArray& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(bytes_of(a.dtype(), a.size()))) == 0;
}

// ---- examples

TileProgram canonical(const TileProgram& program) {
  return passes::run_passes(order_symbols(program), passes::all_passes(),
                            [](const char*, const TileProgram&, double) {});
}

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

std::optional<MutantSubject> subject_of(const std::string& name, const examples::Case& c, int arch) {
  auto tiles = std::make_shared<TileProgram>(canonical(c.program.box().program));
  MutantSubject out;
  try {
    out.threads = passes::lower_to_threads(*tiles, target::GpuTarget::of(arch)).threads;
  } catch (const CompileError&) {
    return std::nullopt;
  }
  const SimulateOptions options{.target = target::GpuTarget::of(arch)};
  out.name = fmt::format("{} {} on sm_{}", name, c.shape, arch);
  out.run = [c, tiles, options](const ThreadProgram& program, int input) {
    const Executable executable =
        runtime::make_executable(build_plan(*tiles), simulator_callee(program, options), "simulator", "");
    std::vector<NDArray> arrays = other_inputs(examples::make_arrays(c), input);
    examples::call_case(c, executable, arrays);
    return arrays;
  };
  // What is elementwise has one right result, bit for bit.
  const std::vector<NDArray> right = c.elementwise ? out.run(out.threads, 0) : std::vector<NDArray>();
  out.finding = [c, right, run = out.run](const ThreadProgram& program) {
    return guarded(program, [&] {
      const std::vector<NDArray> got = run(program, 0);
      for (size_t i = 0; i < right.size(); ++i)
        if (!same_bits(got[i], right[i])) return false;
      return c.check(got, INT64_MAX).ok();
    });
  };
  return out;
}

// ---- Hopper

void run_threads(const ThreadProgram& program, const std::vector<NDArray>& arrays) {
  interpreter::Binding binding;
  for (size_t i = 0; i < program.params.size(); ++i)
    binding.buffers.push_back({program.params[i].buffer, arrays[i].data()});
  simulate(program, binding, {});
}

MutantSubject by_hand(const char* name, const HopperGemm& gemm) {
  MutantSubject out;
  out.name = name, out.threads = parse_thread_program(gemm.text(), "gemm.tile"), out.every_place = true;
  out.run = [gemm](const ThreadProgram& program, int input) {
    std::vector<NDArray> arrays = other_inputs(gemm.arrays().list(), input);
    run_threads(program, arrays);
    return arrays;
  };
  out.finding = [gemm](const ThreadProgram& program) {
    return guarded(program, [&] {
      const HopperGemm::Arrays arrays = gemm.arrays();
      run_threads(program, arrays.list());
      return gemm.error(arrays) <= 0.004;
    });
  };
  return out;
}

// Turns of g and h come to the same tile of C: the last that does has its say.
const char* const kStoredAgain = R"(
program stored_again {
  param A: float16[64, 64]
  param B: float16[64, 64]
  param C: float32[256, 64]
  launch main(bx: 1) threads(tx: 128) {
    shared A_s: float16[64, 32]
    shared B_s: float16[32, 64]
    fragment c: float32[64, 64]
    for g in 0..2 {
      for h in 0..3 {
        fill to=c value=float32(g * 3 + h)
        for k in 0..2 pipelined(stages=2) {
          copy from=A[0 : 64, k * 32 : 32] to=A_s
          copy from=B[k * 32 : 32, 0 : 64] to=B_s
          gemm a=A_s b=B_s c=c
        }
        copy from=c to=C[(g + h) * 64 : 64, 0 : 64]
      }
    }
  }
}
)";

// What the compiler makes of a tile program, against what the interpreter says of it.
MutantSubject lowered(const char* name, const std::string& text) {
  const TileProgram tiles = parse(text, "lowered.tile");
  MutantSubject out;
  out.name = name, out.every_place = true;
  out.threads = passes::lower_to_threads(canonical(tiles), target::GpuTarget::of(90)).threads;
  const auto inputs = [tiles](int input) {
    std::mt19937 random(static_cast<unsigned>(input + 1));
    return arrays_of(tiles, random);
  };
  const std::vector<NDArray> want = inputs(0);
  interpreter::Binding binding;
  for (size_t i = 0; i < tiles.params.size(); ++i) binding.buffers.push_back({tiles.params[i].buffer, want[i].data()});
  interpreter::interpret(tiles, binding);
  out.run = [inputs](const ThreadProgram& program, int input) {
    std::vector<NDArray> arrays = inputs(input);
    run_threads(program, arrays);
    return arrays;
  };
  out.finding = [want, run = out.run](const ThreadProgram& program) {
    return guarded(program, [&] {
      const NDArray got = run(program, 0).back();
      for (int64_t i = 0; i < got.shape(0); ++i)
        for (int64_t j = 0; j < got.shape(1); ++j)
          if (!(std::abs(want.back().get_float({i, j}) - got.get_float({i, j})) < 0.02)) return false;
      return true;
    });
  };
  return out;
}

}  // namespace

std::vector<MutantSubject> example_subjects() {
  std::vector<MutantSubject> out;
  for (const examples::Example& example : examples::all_examples()) {
    const std::vector<examples::Case> cases = example.cases(examples::Size::Odd);
    std::string before;
    for (const int arch : {80, 90}) {
      auto subject = subject_of(example.name, largest(cases), arch);
      if (!subject) continue;
      // Most programs are the same on both.
      if (std::string text = print(subject->threads); text == std::exchange(before, text)) continue;
      out.push_back(std::move(*subject));
    }
  }
  return out;
}

std::vector<MutantSubject> hopper_subjects() {
  const Product product{200, 128, 264, 128, 64, 64, 256, 2, false, false, false, false, "bfloat16", "float32"};
  return {by_hand("two warpgroups that share a tile, by hand", {.m = 250, .n = 64, .k = 264, .stages = 2, .tiles = 2}),
          by_hand("two warpgroups that take turns, by hand",
                  {.m = 250, .n = 64, .k = 264, .stages = 3, .tiles = 4, .ping_pong = true}),
          lowered("a product with a loader and a ring", product.text()),
          lowered("attention with a loader and two rings", Attention{100, 200, 64, 64, 64, 128, 2}.text()),
          lowered("attention in which two teams take iterations in turn", kLatentAttention),
          lowered("a user's roles and mbarriers", kUserSchedule),
          lowered("results stored to one place after the other, in order", kStoredAgain)};
}

}  // namespace tilewright::simulator
