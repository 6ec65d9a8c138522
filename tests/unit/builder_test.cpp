// What the builder decides: extents of copies, negative indices, steps of loops, the points of Persistent, chains of
// ElseIf, views. Programs are run by the interpreter; some decisions are read off the statements.
#include <numeric>

#include "interpreter/run.h"
#include "ir/rewrite.h"

namespace tilewright {
namespace {

using interpreter::range_array;
using interpreter::run;

template <class T>
std::vector<T> all_of(const Program& p) {
  std::vector<T> out;
  ir::walk(p.box().program.launches.at(0).body, [&](const ir::Stmt& s) {
    if (const T* op = s.as<T>()) out.push_back(*op);
  });
  return out;
}

std::vector<int64_t> constants(const std::vector<ir::Expr>& list) {
  std::vector<int64_t> out;
  for (const ir::Expr& e : list) out.push_back(ir::constant_int(e).value_or(-1));
  return out;
}

using Extents = std::vector<int64_t>;

// The extents of the first copy of a kernel with these parameters.
std::pair<Extents, Extents> copy_extents(std::initializer_list<Parameter> parameters,
                                         const std::function<void(const Value& bx)>& body) {
  const Program p = prim_func("program", parameters, [&] {
    for (auto bx : Kernel(4, {.threads = 32})) body(bx);
  });
  const ir::Copy copy = all_of<ir::Copy>(p).at(0);
  return {constants(copy.from.extent), constants(copy.to.extent)};
}

// ---- copy

TEST(CopyExtents, HeadTakesTheTileFromTheRight) {
  Tensor Q("Q", {4, 128, 16, 64}, f32);  // (batch, sequence, head, feature)
  // The tile covers heads and features, not the sequence: the last two dimensions.
  EXPECT_EQ(copy_extents({Q},
                         [&](const Value& bx) {
                           auto S = alloc_shared({16, 64}, f32);
                           copy(Q(bx, 32, 0, 0), S);
                         }),
            (std::pair<Extents, Extents>{{1, 1, 16, 64}, {16, 64}}));
  // Leading extents of 1 of the tile need no dimension of the tensor.
  Tensor M("M", {64, 64}, f32);
  EXPECT_EQ(copy_extents({M},
                         [&](const Value& bx) {
                           auto S = alloc_shared({1, 1, 8, 64}, f32);
                           copy(S, M(bx * 8, 0));
                         }),
            (std::pair<Extents, Extents>{{1, 1, 8, 64}, {8, 64}}));
}

TEST(CopyExtents, SlicesMatchInOrderPastExtentsOfOne) {
  Tensor Q("Q", {4, 128, 16, 64}, f32);
  EXPECT_EQ(copy_extents({Q},
                         [&](const Value& bx) {
                           auto S = alloc_shared({32, 64}, f32);
                           copy(Q(bx, slice(bx * 32, bx * 32 + 32), 3, all), S);
                         }),
            (std::pair<Extents, Extents>{{1, 32, 1, 64}, {32, 64}}));
}

TEST(CopyExtents, TheSideNearerToRegistersDecides) {
  const Value n = dynamic("n");
  Tensor A("A", {n, 64}, f32);
  EXPECT_EQ(copy_extents({A},
                         [&](const Value&) {
                           auto S = alloc_shared({32, 64}, f32);
                           copy(A, S);
                         }),
            (std::pair<Extents, Extents>{{32, 64}, {32, 64}}));
  EXPECT_EQ(copy_extents({A},
                         [&](const Value&) {
                           auto F = alloc_fragment({32, 64}, f32);
                           copy(F, A(slice(0, n), all));
                         }),
            (std::pair<Extents, Extents>{{32, 64}, {32, 64}}));
}

TEST(CopySemantics, BoxesOfOtherRanks) {
  Tensor Q("Q", {3, 6, 2, 8}, f32), O("O", {3, 6, 8}, f32);
  const Program p = prim_func("program", {Q, O}, [&] {
    for (auto bx : Kernel(3, {.threads = 32})) {
      auto S = alloc_shared({6, 8}, f32);
      copy(Q(bx, slice(0, 6), 1, all), S);
      copy(S, O(bx, 0, 0));
    }
  });
  const NDArray q = range_array({3, 6, 2, 8}, f32), o = NDArray::zeros({3, 6, 8}, f32);
  run(p, {q, o});
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t s = 0; s < 6; ++s)
      for (int64_t d = 0; d < 8; ++d) EXPECT_EQ(o.get_float({b, s, d}), q.get_float({b, s, 1, d}));
}

TEST(CopySemantics, FewerDimensionsRepeat) {
  Tensor A("A", {8}, f32), O("O", {4, 8}, f32);
  const Program p = prim_func("program", {A, O}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto row = alloc_shared({8}, f32);
      auto F = alloc_fragment({4, 8}, f32);
      copy(A, row);
      copy(row, F);
      copy(F, O(bx, 0));
    }
  });
  const NDArray a = range_array({8}, f32), o = NDArray::zeros({4, 8}, f32);
  run(p, {a, o});
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(o.get_float({i, j}), a.get_float({j}));
}

// Reads past an edge give zero, or the safe value; writes past an edge do nothing.
TEST(CopySemantics, EdgesOfTensors) {
  const Value n = Scalar("n", i32);
  Tensor A("A", {5, 7}, f16), B("B", {5, 7}, f16), O("O", {3, 8, 8}, f32), P("P", {5, 7}, f32);
  const Program p = prim_func("program", {A, B, O, P, n}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      annotate_safe_value(B, -1);
      auto S = alloc_shared({8, 8}, f32), T = alloc_shared({8, 8}, f16), U = alloc_shared({8, 8}, f32);
      copy(A(n, 0), S);  // rows -2 to 5
      copy(B(slice(0, 8), slice(0, 8)), T);
      copy(A(slice(2, 10), slice(4, 12)), U);
      copy(S, O(0, 0, 0));
      copy(T, O(1, 0, 0));
      copy(U, O(2, 0, 0));
      copy(S, P(n, bx));
    }
  });
  const NDArray a = range_array({5, 7}, f16, 1, 1), b = range_array({5, 7}, f16, 1, 1);
  const NDArray o = NDArray::zeros({3, 8, 8}, f32), q = NDArray::zeros({5, 7}, f32);
  run(p, {a, b, o, q}, {.ints = {{"n", -2}}});
  const auto at = [](const NDArray& x, int64_t i, int64_t j, double outside) {
    return i >= 0 && i < 5 && j >= 0 && j < 7 ? x.get_float({i, j}) : outside;
  };
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 8; ++j) {
      EXPECT_EQ(o.get_float({0, i, j}), at(a, i - 2, j, 0));
      EXPECT_EQ(o.get_float({1, i, j}), at(b, i, j, -1));
      EXPECT_EQ(o.get_float({2, i, j}), at(a, i + 2, j + 4, 0));
    }
  EXPECT_EQ(q.to_floats(), a.to_floats());
}

TEST(CopySemantics, ElementToElementIsAStore) {
  Tensor A("A", {4}, f32), O("O", {4}, i32);
  const Program p = prim_func("program", {A, O}, [&] {
    for (auto bx : Kernel(4, {.threads = 32})) copy(A(bx), O(3 - bx));
  });
  EXPECT_TRUE(all_of<ir::Copy>(p).empty());
  const NDArray a = range_array({4}, f32, 1.75), o = NDArray::zeros({4}, i32);
  run(p, {a, o});
  EXPECT_EQ(o.to_ints(), (std::vector<int64_t>{5, 3, 1, 0}));
}

// ---- indices

// An index that leads outside is refused where it is surely taken, not where a condition may keep it from running.
TEST(NegativeIndices, OutsideIsNoMistakeWhereNobodyComes) {
  const Value n = Scalar("n", i32);
  Tensor O("O", {4}, i32);
  const Program p = prim_func("program", {O, n}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto S = alloc_shared({2, 2}, i32);
      fill(S, 5);
      for (int j = 0; j < 4; ++j) {
        If(n > j, [&] {
          S(1, j) = j;
          fill(S(0, slice(j, j + 1)), 7);
        });
      }
      for (auto [i, j] : Parallel(2, 2)) O(i * 2 + j) = S(i, j);
    }
  });
  NDArray o = NDArray::zeros({4}, i32);
  run(p, {o}, {.ints = {{"n", 2}}});
  EXPECT_EQ(o.to_ints(), (std::vector<int64_t>{7, 7, 0, 1}));
  EXPECT_THROW(run(p, {o}, {.ints = {{"n", 3}}}), Error);
}

TEST(NegativeIndices, CountFromTheEndWhateverExtentsAre) {
  const Value n = Scalar("n", i32);
  Tensor A("A", {6}, i32), O("O", {10}, i32);
  const Program p = prim_func("program", {A, O, n}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto S = alloc_shared({6}, i32);
      copy(A, S);
      O(0) = A(-1 + bx * 0);
      O(1) = S(-6);
      for (auto i : serial(4)) O(5 - i) = S(-1 - i);
      O(6) = A(n);  // unknown: -1 is outside, and reads 0
      O(n) = 100;   // and a store there is dropped
      O(7) = A(n + 1);
      O(8) = A(bx * 6 - 1);  // the only block is as the first of many
      for (auto i : serial(1)) O(9) = A(i - 1);
    }
  });
  const NDArray a = range_array({6}, i32, 10, 10), o = NDArray::zeros({10}, i32);
  run(p, {a, o}, {.ints = {{"n", -1}}});
  EXPECT_EQ(o.to_ints(), (std::vector<int64_t>{60, 10, 30, 40, 50, 60, 0, 10, 0, 0}));
}

// ---- loops

using Visit = std::function<void(const Value&)>;

// The values that a loop visits, in order. Two scalar parameters may take part.
std::vector<int64_t> visited(const std::function<void(const Visit&)>& loop, const Value& n = {}, const Value& step = {},
                             const interpreter::RunOptions& options = {}) {
  Tensor O("O", {32}, i32), N("N", {1}, i32);
  const auto body = [&] {
    for (auto bx : Kernel(1, {.threads = 1})) {
      auto count = alloc_var(i32, 0);
      loop([&](const Value& i) {
        O(count) = i;
        count += 1;
      });
      N(bx) = count;
    }
  };
  const Program p = n.node() ? prim_func("program", {O, N, n, step}, body) : prim_func("program", {O, N}, body);
  const NDArray o = NDArray::zeros({32}, i32), count = NDArray::zeros({1}, i32);
  run(p, {o, count}, options);
  std::vector<int64_t> out = o.to_ints();
  out.resize(static_cast<size_t>(count.get_int({0})));
  return out;
}

using Values = std::vector<int64_t>;
TEST(Loops, GoFromStartToStopByTheirStep) {
  const auto serial_of = [](int64_t start, int64_t stop, int64_t step) {
    return visited([=](const Visit& visit) {
      for (auto i : serial(start, stop, step)) visit(i);
    });
  };
  for (int64_t step : {1, 2, 3, 7, -1, -2, -3, -7})
    for (int64_t start : {-5, 0, 4})
      for (int64_t stop : {-4, 0, 1, 11}) {
        Values want;
        for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) want.push_back(i);
        EXPECT_EQ(serial_of(start, stop, step), want) << start << " " << stop << " " << step;
      }
}

TEST(Loops, OtherKinds) {
  EXPECT_EQ(visited([](const Visit& visit) {
              for (auto i : unroll(2, 6)) visit(i);
            }),
            (Values{2, 3, 4, 5}));
  EXPECT_EQ(visited([](const Visit& visit) {
              for (auto i : vectorized(4)) visit(i);
            }),
            (Values{0, 1, 2, 3}));
  EXPECT_EQ(visited([](const Visit& visit) {
              for (auto k : Pipelined(3, 6, {.num_stages = 2})) visit(k);
            }),
            (Values{3, 4, 5}));
}

TEST(Loops, BoundsAndStepsMayBeKnownOnlyAtTheCall) {
  const Value n = Scalar("n", i32), step = Scalar("step", i32);
  for (int64_t by : {1, 2, 5}) {
    Values want;
    for (int64_t i = 3; i < 14; i += by) want.push_back(i);
    const auto got = visited(
        [&](const Visit& visit) {
          for (auto i : serial(3, n, step)) visit(i);
        },
        n, step, {.ints = {{"n", 14}, {"step", by}}});
    EXPECT_EQ(got, want);
  }
}

TEST(Loops, BreakAndContinueActAtRunTime) {
  EXPECT_EQ(visited([](const Visit& visit) {
              for (auto i : serial(20)) {
                If(i % 3 == 1, [] { continue_loop(); });
                If(i >= 9, [] { break_loop(); });
                visit(i);
              }
            }),
            (Values{0, 2, 3, 5, 6, 8}));
  EXPECT_EQ(visited([](const Visit& visit) {
              auto i = alloc_var(i32, 1);
              While(i < 20, [&] {
                visit(i);
                i *= 3;
              });
            }),
            (Values{1, 3, 9}));
}

TEST(Branches, ChainsTakeTheFirstThatHolds) {
  Tensor O("O", {6}, i32);
  const Program p = prim_func("program", {O}, [&] {
    for (auto bx : Kernel(6, {.threads = 32})) {
      If(bx < 1, [&] { O(bx) = 1; })
          .ElseIf(bx < 3, [&] { O(bx) = 2; })
          .ElseIf(bx < 2, [&] { O(bx) = 3; })
          .ElseIf(bx == 4, [&] { If(bx < 4, [&] { O(bx) = 4; }).Else([&] { O(bx) = 5; }); })
          .Else([&] { O(bx) = 6; });
      O(bx) += 10;
    }
  });
  const NDArray o = NDArray::zeros({6}, i32);
  run(p, {o});
  EXPECT_EQ(o.to_ints(), (Values{11, 12, 12, 16, 15, 16}));
}

// ---- Persistent

struct PersistentCase {
  std::vector<int64_t> domain;
  int64_t workers, group;
};

// By definition: tile id = wave * workers + worker counts the box (ceil(last / group), domain[0 .. n-2], group) with
// the last fastest; the last coordinate is outer * group + inner, and tiles past its extent are skipped.
std::vector<std::vector<int64_t>> tiles_of_worker(const PersistentCase& c, int64_t worker) {
  const int64_t last = c.domain.back(), group = std::max<int64_t>(1, std::min(c.group, last));
  std::vector<int64_t> box{(last + group - 1) / group};
  box.insert(box.end(), c.domain.begin(), c.domain.end() - 1);
  box.push_back(group);
  const int64_t total = std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
  std::vector<std::vector<int64_t>> tiles;
  for (int64_t id = worker; id < total; id += c.workers) {
    std::vector<int64_t> digits(box.size());
    int64_t rest = id;
    for (size_t d = box.size(); d-- > 0; rest /= box[d]) digits[d] = rest % box[d];
    std::vector<int64_t> tile(digits.begin() + 1, digits.end() - 1);
    tile.push_back(digits.front() * group + digits.back());
    if (tile.back() < last) tiles.push_back(tile);
  }
  return tiles;
}

// Row w of the result: how many tiles worker w took, then their coordinates.
template <size_t N>
Program persistent(const PersistentCase& c) {
  Tensor O("O", {c.workers, 128}, i32);
  return prim_func("program", {O}, [&] {
    for (auto bx : Kernel(c.workers, {.threads = 1})) {
      auto count = alloc_var(i32, 0);
      const auto take = [&](const std::vector<Value>& tile) {
        for (const Value& x : tile) {
          O(bx, 1 + count) = x;
          count += 1;
        }
      };
      if constexpr (N == 1)
        for (auto i : Persistent({c.domain[0]}, c.workers, bx, c.group)) take({i});
      if constexpr (N == 2)
        for (auto [i, j] : Persistent({c.domain[0], c.domain[1]}, c.workers, bx, c.group)) take({i, j});
      if constexpr (N == 3)
        for (auto [i, j, k] : Persistent({c.domain[0], c.domain[1], c.domain[2]}, c.workers, bx, c.group))
          take({i, j, k});
      O(bx, 0) = count;
    }
  });
}

TEST(Persistent, EveryTileOnceInTheOrderOfItsWorker) {
  for (const PersistentCase& c : {PersistentCase{{10}, 3, 8},
                                  {{4, 6}, 5, 8},
                                  {{4, 10}, 3, 4},
                                  {{5, 7}, 4, 1},
                                  {{1, 1}, 4, 8},
                                  {{3, 2, 7}, 4, 3},
                                  {{2, 3, 5}, 1, 0},
                                  {{7, 3}, 40, 2}}) {
    const Program p = c.domain.size() == 1   ? persistent<1>(c)
                      : c.domain.size() == 2 ? persistent<2>(c)
                                             : persistent<3>(c);
    const NDArray o = NDArray::zeros({c.workers, 128}, i32);
    run(p, {o});
    std::set<std::vector<int64_t>> seen;
    for (int64_t w = 0; w < c.workers; ++w) {
      std::vector<int64_t> want;
      for (const std::vector<int64_t>& tile : tiles_of_worker(c, w)) {
        want.insert(want.end(), tile.begin(), tile.end());
        EXPECT_TRUE(seen.insert(tile).second);
      }
      ASSERT_EQ(o.get_int({w, 0}), static_cast<int64_t>(want.size())) << "worker " << w;
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_EQ(o.get_int({w, static_cast<int64_t>(i) + 1}), want[i]) << "worker " << w;
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()),
              std::accumulate(c.domain.begin(), c.domain.end(), int64_t{1}, std::multiplies<>()));
  }
}

// ---- views

TEST(Views, AreTheSameMemory) {
  Tensor A("A", {4, 6}, f32), R("R", {3, 8}, f32), W("W", {6, 4}, u16);
  const Program p = prim_func("program", {A, R, W}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto S = alloc_shared({4, 6}, f32);
      copy(A, S);
      auto flat = reshape(S, {24});
      auto wide = reshape(flat, {3, 8});  // a view of a view
      copy(wide, R);
      auto halves = view(S, {12, 4}, u16);
      copy(halves(slice(6, 12), all), W);
      flat(23 + bx) = -1.0;  // seen through the other view
      R(2, 7) = wide(2, 7) + S(3, 5);
    }
  });
  const NDArray a = range_array({4, 6}, f32, 0.75, 1), r = NDArray::zeros({3, 8}, f32), w = NDArray::zeros({6, 4}, u16);
  run(p, {a, r, w});
  for (int64_t i = 0; i < 23; ++i) EXPECT_EQ(r.get_float({i / 8, i % 8}), a.get_float({i / 6, i % 6}));
  EXPECT_EQ(r.get_float({2, 7}), -2.0);
  const auto* halves = static_cast<const uint16_t*>(a.data());
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(w.get_int({i / 4, i % 4}), halves[24 + i]);
}

TEST(Views, OfParameters) {
  Tensor A("A", {4, 6}, i32), O("O", {24}, i32);
  const Program p = prim_func("program", {A, O}, [&] {
    for (auto bx : Kernel(24, {.threads = 32})) {
      auto flat = reshape(A, {24});
      O(bx) = flat(23 - bx);
    }
  });
  const NDArray a = range_array({4, 6}, i32), o = NDArray::zeros({24}, i32);
  run(p, {a, o});
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(o.get_int({i}), 23 - i);
}

}  // namespace
}  // namespace tilewright
