// Two teams that take iterations in turn: what is decided, what is refused, and that the interpreter computes the same,
// to the bit, from the planned program as from the plain one.
#include "ir/rewrite.h"
#include "passes/planned.h"

namespace tilewright {
namespace {

// Decoding with a shared history: KV serves as keys and as values.
std::string mla_text(const std::string& keys, int stages = 2, int64_t dim = 64) {
  const std::string d = std::to_string(dim);
  return "program mla {\n" + std::string(keys == "n" ? "  symbol n: int32\n" : "") + "  param Q: float16[70, " + d +
         "]\n  param R: float16[70, 16]\n  param KV: float16[" + keys + ", " + d + "]\n  param K: float16[" + keys +
         ", 16]\n  param O: float16[70, " + d +
         "]\n  param L: float32[70]\n  launch mla(bx: 2) threads(tx: 256) {\n"
         "    shared Qs: float16[64, " +
         d + "]\n    shared Rs: float16[64, 16]\n    shared KVs: float16[32, " + d +
         "]\n"
         "    shared Ks: float16[32, 16]\n    shared Ps: float16[64, 32]\n    fragment S: float32[64, 32]\n"
         "    fragment acc: float32[64, " +
         d +
         "]\n    fragment most: float32[64]\n    fragment before: float32[64]\n"
         "    fragment scale: float32[64]\n    fragment part: float32[64]\n    fragment sum: float32[64]\n"
         "    copy from=Q[bx * 64 : 64, 0 : " +
         d +
         "] to=Qs\n    copy from=R[bx * 64 : 64, 0 : 16] to=Rs\n"
         "    fill to=acc value=0.0\n    fill to=sum value=0.0\n    fill to=most value=-inf\n    for k in 0..(" +
         keys + " + 31) // 32 pipelined(stages=" + std::to_string(stages) +
         ") {\n      copy from=KV[k * 32 : 32, 0 : " + d +
         "] to=KVs\n      copy from=K[k * 32 : 32, 0 : 16] to=Ks\n"
         "      fill to=S value=0.0\n      gemm a=Qs b=KVs c=S transpose_b=true policy=full_col\n"
         "      gemm a=Rs b=Ks c=S transpose_b=true policy=full_col\n      map i in 64, j in 32 {\n"
         "        S[i, j] = select(k * 32 + j < " +
         keys +
         ", S[i, j] * 0.0625, -inf)\n      }\n      copy from=most to=before\n"
         "      reduce max from=S to=most dim=1 clear=false\n      map i in 64 {\n"
         "        scale[i] = exp2(before[i] - most[i])\n      }\n      map i in 64, j in 32 {\n"
         "        S[i, j] = exp2(S[i, j] - most[i])\n      }\n      reduce sum from=S to=part dim=1\n"
         "      copy from=S to=Ps\n      map i in 64 {\n        sum[i] = sum[i] * scale[i] + part[i]\n      }\n"
         "      map i in 64, j in " +
         d +
         " {\n        acc[i, j] = acc[i, j] * scale[i]\n      }\n"
         "      gemm a=Ps b=KVs c=acc policy=full_col\n    }\n    map i in 64, j in " +
         d +
         " {\n"
         "      acc[i, j] = acc[i, j] / sum[i] + float32(j)\n    }\n    copy from=acc to=O[bx * 64 : 64, 0 : " +
         d +
         "]\n"
         "    copy from=sum to=L[bx * 64 : 64]\n  }\n}\n";
}

std::vector<NDArray> inputs(int64_t keys, int64_t dim = 64) {
  return {numbers({70, dim}, f16, 1), numbers({70, 16}, f16, 2), numbers({keys, dim}, f16, 3),
          numbers({keys, 16}, f16, 4)};
}

// Both results; the interpreter sums in the order of the program.
void expect_same(const Planned& p, int64_t keys, const std::map<std::string, int64_t>& symbols,
                 std::vector<NDArray> arguments = {}) {
  if (arguments.empty()) arguments = inputs(keys);
  const size_t results = arguments.size();
  arguments.resize(results + 2);
  auto run = [&](const ir::TileProgram& program) {
    arguments[results] = numbers({70, arguments[0].shape(1)}, f16, 99), arguments[results + 1] = numbers({70}, f32, 98);
    const Program boxed(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{program}));
    interpreter::run(boxed, arguments, {.ints = symbols});
    std::vector<double> out = arguments[results].to_floats();
    for (double x : arguments[results + 1].to_floats()) out.push_back(x);
    return out;
  };
  EXPECT_EQ(run(p.program), run(p.plain)) << keys;
}

// The first `from` of the text, which must have one, becomes `to`.
void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

TEST(IterationTeams, EveryNumberOfIterationsMeansTheSame) {
  for (const int stages : {2, 3, 4}) {
    const Planned p = planned(mla_text("n", stages));
    ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn))
        << p.plan.why_no_loader() << p.plan.why_no_iteration_teams();
    EXPECT_EQ(p.plan.rings.size(), 3u);
    for (const int64_t keys : {1, 32, 33, 64, 90, 128, 150, 190, 300}) expect_same(p, keys, {{"n", keys}});
  }
}

TEST(IterationTeams, EachTeamKeepsHalfOfTheColumns) {
  const Planned p = planned(mla_text("100"));
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  EXPECT_FALSE(p.plan.is_persistent());
  EXPECT_EQ(p.program.launches[0].threads[0], 384);
  ASSERT_EQ(p.plan.epilogue.staged.size(), 1u);
  std::map<std::string, int> rings;
  for (const plan::Ring& r : p.plan.rings) rings[names_of(r, p.program)[0]] = static_cast<int>(r.bytes);
  EXPECT_EQ(rings, (std::map<std::string, int>{{"KVs_left", 2048}, {"KVs_right", 2048}, {"Ks", 1024}}));
  int products = 0;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* g = s.as<ir::Gemm>();
    if (!g) return;
    ++products;
    EXPECT_EQ(g->completion.queue, ir::Queue::Wgmma);
    const ir::Buffer& c = p.program.buffer(g->c.buffer);
    EXPECT_EQ(ir::constant_int(c.shape[1]), 32) << c.name;
  });
  // Of three products of scores and two of values: one team's first iteration, both teams' pairs and last ones.
  EXPECT_EQ(products, 3 + 1 + 2 * (3 + 2 + 1));
  // What the other team does not wait for is done while the product runs: the sums of the scores are behind it.
  std::string order;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* reduce = s.as<ir::Reduce>();
    if (const auto* g = s.as<ir::Gemm>()) order += p.program.buffer(g->c.buffer).name == "acc" ? "P" : "s";
    if (reduce) order += reduce->op == ir::ReduceOp::Max ? "m" : "+";
  });
  EXPECT_EQ(order,
            "sssmP+"    // the first iteration
            "sssPmP+P"  // pairs, and the last
            "sssPmP+P");
  // The rows' sums are one team's to store.
  int stores = 0;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* copy = s.as<ir::Copy>();
    stores += copy && p.program.buffer(copy->to.buffer).name == "L";
  });
  EXPECT_EQ(stores, 1);
}

// What the program brings through a tile of its own: teams bring halves of the result away, and hand on the scores.
TEST(IterationTeams, DetoursThroughSharedMemoryAreLeftOut) {
  std::string text = mla_text("n");
  replace(text, "    shared Ps", "    shared Os: float16[64, 64]\n    fragment Pf: float16[64, 32]\n    shared Ps");
  replace(text, "    copy from=acc to=O", "    copy from=acc to=Os\n    copy from=Os to=O");
  replace(text, "      copy from=S to=Ps\n", "      copy from=S to=Ps\n      copy from=Ps to=Pf\n");
  replace(text, "gemm a=Ps b=KVs", "gemm a=Pf b=KVs");
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  std::set<std::string> used;
  for (ir::BufferId id : ir::used_buffers(p.program.launches[0].body)) used.insert(p.program.buffer(id).name);
  EXPECT_FALSE(used.contains("Os") || used.contains("Ps"));
  for (const int64_t keys : {1, 32, 33, 64, 90, 150}) expect_same(p, keys, {{"n", keys}});
  // Somebody reads the scores there: they stay.
  replace(text, "    copy from=acc to=Os\n", "    copy from=acc to=Os\n    copy from=Os to=acc\n");
  const Planned other = planned(text);
  EXPECT_FALSE(other.plan.takes(plan::Role::Takes::IterationsInTurn));
  EXPECT_NE(other.plan.why_no_iteration_teams().find("'Os'"), std::string::npos) << other.plan.why_no_iteration_teams();
}

// The tile that a slot gets next is asked for while the slot is in use: of two blocks that bring the same panels, each
// asks for one.
TEST(IterationTeams, WhatASlotGetsNextComesNear) {
  const Planned p = planned(mla_text("n", 2, 256));
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  std::vector<std::string> asked;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* choice = s.as<ir::If>();
    for (const ir::Body* of : {choice ? &choice->then_body : nullptr, choice ? &choice->else_body : nullptr}) {
      std::string list;
      for (const ir::Stmt& x : of ? *of : ir::Body{})
        if (const auto* copy = x.as<ir::Copy>(); copy && copy->completion.queue == ir::Queue::Prefetch)
          list +=
              p.program.buffer(copy->to.buffer).name + std::to_string(*ir::constant_int(copy->from.min.back())) + " ";
      if (!list.empty()) asked.push_back(list);
    }
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"KVs_left0 ", "KVs_left64 ", "KVs_right128 ", "KVs_right192 ", "Ks0 "}));
  // One block alone brings them: memory is the limit.
  std::string text = mla_text("n", 2, 256);
  text.replace(text.find("(bx: 2)"), 7, "(bx: 1)");
  const Planned alone = planned(text);
  ASSERT_TRUE(alone.plan.takes(plan::Role::Takes::IterationsInTurn)) << alone.plan.why_no_iteration_teams();
  ir::walk(alone.program.launches[0].body, [](const ir::Stmt& s) {
    EXPECT_FALSE(s.as<ir::Copy>() && s.as<ir::Copy>()->completion.queue == ir::Queue::Prefetch);
  });
}

// The scores begin with the first panel of a tile that is there: each has an mbarrier of its own.
TEST(IterationTeams, PanelsAreWaitedForOneByOne) {
  const Planned p = planned(mla_text("n", 2, 256));
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  std::map<std::string, size_t> barriers;
  for (const ir::Buffer& b : p.program.buffers) barriers[b.name] = b.arrive_counts.size();
  EXPECT_EQ(barriers["KVs_left_full"], 4u);  // two slots of two panels
  EXPECT_EQ(barriers["KVs_left_empty"], 2u);
  EXPECT_EQ(barriers["Ks_full"], 2u);
  for (const int64_t keys : {1, 33, 70, 128, 150}) expect_same(p, keys, {{"n", keys}}, inputs(keys, 256));
}

// Values that no scores read are waited for by whoever multiplies them.
TEST(IterationTeams, ValuesMayComeInATileOfTheirOwn) {
  std::string text = mla_text("n");
  replace(text, "    shared Ps", "    shared Vs: float16[32, 64]\n    shared Ps");
  replace(text, "      fill to=S", "      copy from=KV[k * 32 : 32, 0 : 64] to=Vs\n      fill to=S");
  replace(text, "gemm a=Ps b=KVs", "gemm a=Ps b=Vs");
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  EXPECT_EQ(p.plan.rings.size(), 4u);
  EXPECT_TRUE(p.plan.epilogue.staged.empty());  // no tile has the halves of the result
  for (const int64_t keys : {1, 32, 33, 64, 90, 128, 150}) expect_same(p, keys, {{"n", keys}});
}

// Rows that lie anywhere: a list says where, of which each iteration takes a part.
TEST(IterationTeams, RowsAreGathered) {
  std::string text = mla_text("n");
  replace(text, "  param O", "  param list: int32[n]\n  param O");
  replace(text, "    shared Ps", "    shared rows: int32[32]\n    shared Ps");
  replace(text, "      copy from=KV[k * 32 : 32, 0 : 64] to=KVs\n      copy from=K[k * 32 : 32, 0 : 16] to=Ks\n",
          "      map j in 32 {\n        rows[j] = select(k * 32 + j < n, list[k * 32 + j], -1)\n      }\n"
          "      map j in 32, d in 64 {\n        KVs[j, d] = KV[max(rows[j], 0), d]\n      }\n"
          "      map j in 32, d in 16 {\n        Ks[j, d] = K[max(rows[j], 0), d]\n      }\n");
  replace(text, "k * 32 + j < n, S[i, j]", "rows[j] >= 0, S[i, j]");
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  ASSERT_EQ(p.plan.rings.size(), 4u);
  for (const int64_t keys : {1, 32, 33, 70, 128, 150}) {
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < keys; ++i) rows.push_back(i % 7 == 3 ? -1 : i * 37 % keys);
    NDArray list = NDArray::zeros({keys}, i32);
    list.assign_ints(rows);
    std::vector<NDArray> arguments = inputs(keys);
    arguments.push_back(list);
    expect_same(p, keys, {{"n", keys}}, arguments);
  }
}

// Blocks of the same history are neighbours, whichever way the program numbers them.
TEST(IterationTeams, BlocksThatBringTheSameRunSideBySide) {
  std::string text = mla_text("100");
  const std::string from = "launch mla(bx: 2)", to = "launch mla(batch: 3, bx: 2)";
  text.replace(text.find(from), from.size(), to);
  for (std::string tensor : {"KV", "K"}) {
    const std::string param = "param " + tensor + ": float16[", use = "from=" + tensor + "[";
    text.insert(text.find(param) + param.size(), "3, ");
    text.insert(text.find(use) + use.size(), "batch, ");
  }
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << p.plan.why_no_iteration_teams();
  const ir::Launch& launch = p.program.launches[0];
  EXPECT_EQ(p.program.var(launch.block[0]).name, "bx");
  EXPECT_EQ(ir::constant_int(launch.grid[1]), 3);
}

TEST(IterationTeams, WhatIsRefusedSaysWhy) {
  auto with = [&](const std::string& from, const std::string& to) {
    std::string t = mla_text("100");
    const size_t at = t.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    t.replace(at, from.size(), to);
    if (to.find("fill to=S") != std::string::npos) t.erase(t.rfind("      fill to=S value=0.0\n"), 26);
    const Planned p = planned(t);
    EXPECT_FALSE(p.plan.takes(plan::Role::Takes::IterationsInTurn)) << to;
    expect_same(p, 100, {});
    return p.plan.why_no_iteration_teams();
  };
  EXPECT_EQ(with("      gemm a=Ps", "      sync block\n      gemm a=Ps"), "sync belongs to all threads");
  EXPECT_EQ(with("acc[i, j] = acc[i, j] * scale[i]", "acc[i, 63 - j] = acc[i, 63 - j] * scale[i]"),
            "columns of 'acc' are not apart");
  EXPECT_EQ(with("      copy from=most",
                 "      map i in 64 {\n        most[i] = max(most[i], acc[i, 0])\n      }\n"
                 "      copy from=most"),
            "columns of 'acc' are not apart");
  EXPECT_EQ(with("S[i, j] * 0.0625", "S[i, j] * 0.0625 + float32(KVs[j, 0])"), "'KVs' is read by more than products");
  EXPECT_EQ(with("    fill to=acc value=0.0\n    fill to=sum",
                 "    fill to=acc value=0.0\n    fill to=S value=0.0\n    fill to=sum"),
            "'S' goes from one iteration to the next");
  EXPECT_EQ(with("      map i in 64, j in 64 {\n        acc[i, j] = acc[i, j] * scale[i]\n      }\n",
                 "      map i in 64, j in 64 {\n        acc[i, j] = acc[i, j] * scale[i]\n      }\n"
                 "      fill to=scale value=1.0\n"),
            "what scales the result is made twice");
  EXPECT_EQ(with("    }\n    map i in 64, j in 64 {\n      acc",
                 "      fill to=part value=0.0\n    }\n"
                 "    map i in 64, j in 64 {\n      acc"),
            "something follows the last product");
  const std::string sums = "    copy from=sum to=L";
  EXPECT_EQ(with(sums, "    copy from=acc to=O[bx * 64 : 64, 32 : 64]\n" + sums),
            "'O' may get elements again, of the other team");
  EXPECT_EQ(with(sums, "    map i in 64 {\n      sum[i] = sum[i] + float32(O[bx * 64 + i, 63])\n    }\n" + sums),
            "'O' is read and written after the loop");
  EXPECT_EQ(with("threads(tx: 256)", "threads(tx: 128)"), "");
  EXPECT_FALSE(planned(mla_text("100"), {.by_iteration = false}).plan.takes(plan::Role::Takes::IterationsInTurn));
}

}  // namespace
}  // namespace tilewright
