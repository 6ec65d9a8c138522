// Which engine runs which operation: docs/engines.md, from facts. An engine runs an operation if a tiny program with it
// runs there. With TILEWRIGHT_UPDATE set the file is written again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "dsl/recording.h"
#include "files.h"
#include "tilewright/compile.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

// The parameters of every tiny program.
struct Scene {
  Tensor A{"A", {64, 64}, f32}, O{"O", {64, 64}, f32}, I{"I", {64}, i32}, X{"X", {1, 8, 8, 4}, f32};
  Tensor half{"half", {64, 64}, f16};
};

struct Operation {
  const char* name;
  void (*body)(const Scene&);
  // Foreign text is for one engine only.
  bool may_be_missing = false;
};

Buffer tile_of(const Buffer& source) {
  auto S = alloc_shared({64, 64}, f32);
  copy(source, S);
  return S;
}

// Those that may be missing come last.
const std::vector<Operation>& operations() {
  static const std::vector<Operation> list = {
      {"loads, stores, values",
       [](const Scene& s) {
         Value x = s.A(0, 1);
         s.O(0, 0) = x + 1;
       }},
      {"serial and unrolled loops",
       [](const Scene& s) {
         for (auto i : serial(0, 8, 2)) s.O(i, 0) = 1;
         for (auto i : unroll(4)) s.O(i, 1) = 1;
       }},
      {"vectorized loops",
       [](const Scene& s) {
         for (auto i : vectorized(4)) s.O(0, i) = s.A(0, i);
       }},
      {"While, break, continue",
       [](const Scene& s) {
         auto i = alloc_var(i32, 0);
         While(i < 8, [&] {
           i += 1;
           If(i == 2, [] { continue_loop(); });
           If(i > 5, [] { break_loop(); });
           s.O(i, 0) = 1;
         });
       }},
      {"If, Else, thread_return",
       [](const Scene& s) {
         const Value t = get_thread_binding();
         If(t < 7, [&] { s.O(t, 0) = 1; }).Else([] { thread_return(); });
       }},
      {"local buffers and variables",
       [](const Scene& s) {
         auto L = alloc_local({2}, f32);
         L(0) = 1;
         s.O(get_thread_binding() % 64, 0) = L(0);
       }},
      {"Parallel",
       [](const Scene& s) {
         for (auto [i, j] : Parallel(64, 64)) s.O(i, j) = exp(s.A(i, j));
       }},
      {"Pipelined",
       [](const Scene& s) {
         auto S = alloc_shared({8, 64}, f32);
         for (auto k : Pipelined(8, {.num_stages = 2})) {
           copy(s.A(k * 8, 0), S);
           copy(S, s.O(k * 8, 0));
         }
       }},
      {"Persistent",
       [](const Scene& s) {
         for (auto [i, j] : Persistent({4, 4}, 1, 0)) s.O(i, j) = 1;
       }},
      {"copy", [](const Scene& s) { copy(tile_of(s.A), s.O); }},
      {"copy that converts", [](const Scene& s) { copy(s.A, s.half); }},
      {"fill, clear",
       [](const Scene& s) {
         auto F = alloc_fragment({64, 64}, f32);
         fill(F, 2);
         copy(F, s.O);
       }},
      {"gemm",
       [](const Scene& s) {
         auto F = alloc_fragment({64, 64}, f32);
         auto S = tile_of(s.A);
         gemm(S, S, F, {.transpose_B = true, .clear_accum = true});
         copy(F, s.O);
       }},
      {"reduce_sum, reduce_max, ...",
       [](const Scene& s) {
         auto R = alloc_fragment({64}, f32);
         reduce_sum(tile_of(s.A), R);
         copy(R, s.O(0, 0));
       }},
      {"cumsum, cummax",
       [](const Scene& s) {
         auto S = tile_of(s.A);
         cumsum(S, S);
         copy(S, s.O);
       }},
      {"im2col",
       [](const Scene& s) {
         auto S = alloc_shared({4, 4}, f32);
         im2col(s.X, S, 0, 0, {.kernel = 3, .pad = 1});
         copy(S, s.O(slice(0, 4), slice(0, 4)));
       }},
      {"reshape, view",
       [](const Scene& s) {
         copy(reshape(tile_of(s.A), {32, 128}), reshape(s.O, {32, 128}));
       }},
      {"alloc_reducer",
       [](const Scene& s) {
         auto R = alloc_reducer({1}, f32);
         clear(R);
         for (auto i : Parallel(64)) R(0) += s.A(0, i);
         finalize_reducer(R);
         s.O(0, 0) = R(0);
       }},
      {"atomics on elements", [](const Scene& s) { atomic_add(s.I(get_thread_binding() % 2), 1); }},
      {"atomics on tiles", [](const Scene& s) { atomic_add(s.O, tile_of(s.A)); }},
      {"alloc_global",
       [](const Scene& s) {
         auto W = alloc_global({64, 64}, f32);
         copy(s.A, W);
         copy(W, s.O);
       }},
      {"annotate_layout, use_swizzle",
       [](const Scene& s) {
         use_swizzle(4);
         auto S = alloc_shared({64, 64}, f32);
         annotate_layout(S, make_swizzled_layout(S));
         copy(s.A, S);
         copy(S, s.O);
       }},
      {"shuffles", [](const Scene& s) { s.I(get_thread_binding() % 64) = shfl_xor(get_lane_idx(), 1); }},
      {"warp reductions", [](const Scene& s) { s.I(get_warp_idx()) = warp_reduce_sum(get_lane_idx()); }},
      {"votes of a warp", [](const Scene& s) { s.I(get_warp_idx()) = cast(ballot_sync(get_lane_idx() < 3), i32); }},
      {"votes of a block", [](const Scene& s) { s.I(0) = syncthreads_count(get_thread_binding() < 9); }},
      {"sync_threads, sync_warp",
       [](const Scene& s) {
         s.O(0, get_thread_binding() % 64) = 1;
         sync_warp();
         sync_threads();
       }},
      {"print", [](const Scene& s) { If(get_thread_binding() == 0, [&] { print(s.I(0), "zero"); }); }},
      {"device_assert, assume",
       [](const Scene& s) {
         assume(s.I(0) >= 0);
         device_assert(s.I(0) < 100, "small");
       }},
      {"pdl_sync, pdl_trigger: nothing to do",
       [](const Scene&) {
         pdl_sync();
         pdl_trigger();
       }},
      {"set_max_nreg, fence_proxy_async",
       [](const Scene&) {
         set_max_nreg(64);
         fence_proxy_async();
       }},
      {"roles: ws, on_threads", [](const Scene& s) { on_threads(0, 64, [&] { s.O(0, 0) = 1; }); }},
      {"barriers: arrive, expect, wait",
       [](const Scene&) {
         auto barrier = alloc_barrier({128});
         barrier_arrive(barrier);
         barrier_wait(barrier, 0);
       }},
      {"named barriers", [](const Scene&) { sync_threads(1, 128); }},
      {"sync_grid", [](const Scene&) { sync_grid(); }},
      {"async_copy, cp_async_wait",
       [](const Scene& s) {
         auto S = alloc_shared({64, 64}, f32);
         async_copy(s.A, S);
         cp_async_wait(0);
       }},
      {"tma_copy, tma_store",
       [](const Scene& s) {
         auto S = alloc_shared({64, 64}, f32);
         auto barrier = alloc_barrier({1});
         If(get_thread_binding() == 0, [&] { mbarrier_arrive_expect_tx(barrier, 64 * 64 * 4); });
         tma_copy(s.A, S, barrier);
         barrier_wait(barrier, 0);
         tma_store(S, s.O);
         tma_store_wait();
       }},
      {"wgmma_gemm, wait_wgmma",
       [](const Scene&) {
         auto F = alloc_fragment({64, 64}, f32);
         auto S = alloc_shared({64, 64}, f16);
         clear(S);
         wgmma_gemm(S, S, F, {.clear_accum = true});
         wait_wgmma(0);
       }},
      {"calls of foreign text",
       [](const Scene&) {
         ir::Call call;
         call.function = "their_function";
         recording("a call", Location::current()).call(std::move(call), {});
       },
       true},
  };
  return list;
}

Program program_of(std::span<const Operation> list) {
  const Scene s;
  return prim_func("operations", {s.A, s.O, s.I, s.X, s.half}, [&] {
    for (const Operation& o : list)
      for (auto bx : Kernel(1, {.threads = 128})) {
        (void)bx;
        o.body(s);
      }
  });
}

// Empty if it runs; else the code of what refuses it.
std::string refusal(std::span<const Operation> list, Engine engine) {
  const NDArray A = NDArray::zeros({64, 64}, f32), O = A.clone(), I = NDArray::zeros({64}, i32);
  const NDArray X = NDArray::zeros({1, 8, 8, 4}, f32), half = NDArray::zeros({64, 64}, f16);
  try {
    compile(program_of(list), {.engine = engine, .arch = "sm_90a"})(A, O, I, X, half);
  } catch (const Error& e) {
    EXPECT_STRNE(e.diagnostic().area(), "internal") << e.what();
    return e.diagnostic().code_text();
  }
  return "";
}

// For each operation, empty or the code that refuses it. A run of the host compiler takes a second, so all that an
// engine must run is one program; only if that fails are its operations tried one by one.
std::vector<std::string> refusals(Engine engine) {
  const std::vector<Operation>& all = operations();
  const auto optional = std::find_if(all.begin(), all.end(), [](const Operation& o) { return o.may_be_missing; });
  const auto required = static_cast<size_t>(optional - all.begin());
  const bool together = refusal(std::span(all).first(required), engine).empty();
  std::vector<std::string> out;
  for (size_t i = 0; i < all.size(); ++i)
    out.push_back(together && i < required ? "" : refusal(std::span(all).subspan(i, 1), engine));
  return out;
}

TEST(Engines, TableOfOperations) {
  const std::vector<std::string> interpreter = refusals(Engine::Interpreter), cpu = refusals(Engine::Cpu),
                                 simulator = refusals(Engine::Simulator);
  const auto cell = [](const std::string& code) { return code.empty() ? std::string("yes") : code; };
  std::string text =
      "# Which engine runs what\n\nA code is what the engine refuses the operation with; "
      "[errors.md](errors.md) says what it means. Written by a test that runs a\ntiny program with each operation; "
      "`make "
      "update` writes it again. The simulator runs what the CUDA engine writes for an sm_90a.\n\n"
      "| Operation | interpreter | cpu | simulator |\n|---|---|---|---|\n";
  for (size_t i = 0; i < operations().size(); ++i) {
    const Operation& o = operations()[i];
    text += std::string("| ") + o.name + " | " + cell(interpreter[i]) + " | " + cell(cpu[i]) + " | " +
            cell(simulator[i]) + " |\n";
    const bool is_foreign_text = i + 1 == operations().size();
    EXPECT_TRUE(interpreter[i].empty() || is_foreign_text) << o.name << ": " << interpreter[i];
    EXPECT_TRUE(cpu[i].empty() || o.may_be_missing) << o.name << ": " << cpu[i];
  }
  const std::string path = TILEWRIGHT_SOURCE_DIR "/docs/engines.md";
  if (std::getenv("TILEWRIGHT_UPDATE")) std::ofstream(path) << text;
  EXPECT_EQ(text_of(path), text) << "run with TILEWRIGHT_UPDATE=1 to write docs/engines.md again";
}

}  // namespace
}  // namespace tilewright
