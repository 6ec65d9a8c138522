// Which values and statements of a program are uniform.
#include "analysis/uniformity.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/number_statements.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {
namespace {

using ir::Builder;
using ir::constant;
using ir::Expr;
using ir::TileRef;

TileRef at(ir::BufferId buffer, std::vector<Expr> indices) {
  TileRef ref;
  ref.buffer = buffer, ref.whole = false;
  for (Expr& i : indices) ref.indices.push_back({i, {}, false});
  return ref;
}

// A launch of 4 blocks; the body gets the thread index along x. Every Store to A is a question.
struct Case {
  Builder b{"p"};
  ir::BufferId a = b.tensor("A", {constant(4096)}, i32);
  Expr bx, tx;
  ir::TileProgram program;

  Case(std::vector<int64_t> threads, const std::function<void(Case&)>& body) {
    bx = b.open_launch({constant(4)}, ir::LaunchOptions{std::move(threads), {}, {"bx"}})[0];
    tx = b.thread_index(0);
    body(*this);
    b.close_launch();
    program = b.finish();
  }
  void ask(const Expr& value) { b.store(at(a, {bx}), value); }
  Expr global(const Expr& index) { return b.load(at(a, {index})); }

  // The answers in program order: of the stored value, and 1 if the store happens once.
  std::vector<Agreement> values() const {
    std::vector<Agreement> out;
    each([&](const Uniformity& u, const ir::Stmt& s, const ir::Store& op) { out.push_back(u.agreement(op.value, s)); });
    return out;
  }
  std::vector<int> once() const {
    std::vector<int> out;
    each([&](const Uniformity& u, const ir::Stmt& s, const ir::Store&) { out.push_back(u.happens_once(s)); });
    return out;
  }
  void each(const std::function<void(const Uniformity&, const ir::Stmt&, const ir::Store&)>& f) const {
    const ir::Launch launch = ir::numbered(program.launches[0]);
    Uniformity u(program, launch);
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      const auto* op = s.as<ir::Store>();
      if (op && op->to.buffer == a) f(u, s, *op);
    });
  }
};

using Answers = std::vector<Agreement>;
constexpr auto None = Agreement::None, Warp = Agreement::Warp, All = Agreement::All;

Expr div(const Expr& a, int64_t b) { return ir::apply(ir::Operator::FloorDiv, a, constant(b)); }
Expr less(const Expr& a, const Expr& b) { return ir::cast(ir::apply(ir::Operator::Lt, a, b), i32); }

// What a tensor at an address holds is as uniform as the address, seen through a view too.
TEST(Uniformity, TensorsAtAddresses) {
  Case c({128}, [](Case& c) {
    for (const Expr& where : {c.bx, c.tx}) {
      const ir::BufferId tensor = c.b.tensor_at("T", ir::bitcast(ir::cast(where, i64), pointer), {constant(8)}, i32);
      c.ask(c.b.load(at(tensor, {constant(0)})));
      c.ask(c.b.load(at(c.b.view("V", tensor, {constant(2), constant(4)}, i32), {constant(1), constant(0)})));
    }
  });
  EXPECT_EQ(c.values(), (Answers{All, All, None, None}));
}

TEST(Uniformity, LeavesAndOperators) {
  Case c({128}, [](Case& c) {
    c.ask(constant(1));
    c.ask(c.bx);
    c.ask(c.tx);
    c.ask(ir::add(c.tx, c.bx));
    c.ask(div(c.tx, 32));
    c.ask(div(ir::add(c.tx, constant(64)), 64));
    c.ask(div(ir::add(c.tx, constant(1)), 32));
    c.ask(div(c.tx, 16));
    c.ask(less(c.tx, constant(96)));
    c.ask(less(c.tx, constant(95)));
    c.ask(c.global(c.bx));
    c.ask(c.global(c.tx));
  });
  EXPECT_EQ(c.values(), (Answers{All, All, None, None, Warp, Warp, None, None, Warp, None, All, None}));
  EXPECT_EQ(c.once(), (std::vector<int>{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
}

TEST(Uniformity, ThreadsAlongYAgreeInAWarp) {
  Case wide({64, 4}, [](Case& c) { c.ask(c.b.thread_index(1)); });
  EXPECT_EQ(wide.values(), (Answers{Warp}));
  Case narrow({16, 4}, [](Case& c) { c.ask(c.b.thread_index(1)); });
  EXPECT_EQ(narrow.values(), (Answers{None}));
  Case one_warp({32}, [](Case& c) { c.ask(div(c.tx, 32)); });  // all threads are one warp
  EXPECT_EQ(one_warp.values(), (Answers{All}));
}

TEST(Uniformity, LetsAndControl) {
  Case c({128}, [](Case& c) {
    Expr same = c.b.let("same", c.global(c.bx)), other = c.b.let("other", c.global(c.tx));
    c.ask(same);
    c.ask(other);
    c.b.open_if(ir::as_condition(same));
    c.ask(same);  // under uniform control
    c.b.close();
    c.b.open_if(ir::as_condition(c.tx));
    c.ask(same);
    Expr inner = c.b.let("inner", c.global(ir::add(c.bx, constant(1))));
    c.ask(inner);  // bound under control that not all threads share
    c.b.close();
    c.ask(same);
  });
  EXPECT_EQ(c.values(), (Answers{All, None, All, All, None, All}));
  EXPECT_EQ(c.once(), (std::vector<int>{1, 0, 1, 0, 0, 1}));
}

TEST(Uniformity, LoopsWithBreaks) {
  Case c({128}, [](Case& c) {
    Expr i = c.b.open_for("i", constant(0), c.global(c.bx));
    c.ask(i);
    c.b.close();
    Expr j = c.b.open_for("j", constant(0), c.tx);
    c.ask(j);
    c.b.close();
    Expr k = c.b.open_for("k", constant(0), constant(8));
    c.ask(k);  // not all threads come to the second iteration
    c.b.open_if(ir::as_condition(c.tx));
    c.b.break_loop();
    c.b.close();
    c.ask(constant(1));
    c.b.close();
    Expr l = c.b.open_for("l", constant(0), constant(8));
    c.ask(l);
    c.b.open_if(ir::as_condition(c.tx));
    c.b.continue_loop();
    c.b.close();
    c.ask(constant(2));
    c.b.close();
    c.ask(constant(3));
  });
  EXPECT_EQ(c.values(), (Answers{All, None, None, All, All, All, All}));
  EXPECT_EQ(c.once(), (std::vector<int>{1, 0, 0, 0, 1, 0, 1}));
}

TEST(Uniformity, ReturnsLeaveTheRestOfTheLaunch) {
  Case c({128}, [](Case& c) {
    c.ask(constant(1));
    c.b.open_if(ir::as_condition(c.tx));
    c.b.return_thread();
    c.b.close();
    c.ask(constant(2));
  });
  EXPECT_EQ(c.once(), (std::vector<int>{1, 0}));
}

TEST(Uniformity, LocalVariables) {
  Case c({128}, [](Case& c) {
    auto v = c.b.alloc(ir::Space::Local, "v", {}, i32), w = c.b.alloc(ir::Space::Local, "w", {}, i32);
    TileRef rv = at(v, {}), rw = at(w, {});
    c.b.store(rv, constant(0));
    c.b.store(rw, constant(0));
    c.b.open_for("i", constant(0), constant(4));
    c.ask(c.b.load(rv));
    c.ask(c.b.load(rw));
    c.b.store(rv, ir::add(c.b.load(rv), c.bx));
    c.b.store(rw, ir::add(c.b.load(rw), c.tx));  // seen by the read before it, one iteration later
    c.b.close();
  });
  EXPECT_EQ(c.values(), (Answers{All, None}));
}

TEST(Uniformity, RolesHaveTheirOwnSet) {
  Case c({256}, [](Case& c) {
    auto v = c.b.alloc(ir::Space::Local, "v", {}, i32);
    TileRef rv = at(v, {});
    c.b.store(rv, constant(0));
    c.b.open_role({0}, {128});
    c.b.store(rv, constant(1));
    c.ask(c.b.load(rv));
    c.b.close();
    c.b.open_role({128}, {256});
    c.ask(c.b.load(rv));  // what the other role wrote is not this one's
    c.b.close();
    c.ask(c.b.load(rv));  // some threads have 1
    c.b.open_role({0}, {32});
    c.ask(div(c.tx, 32));  // one warp
    c.b.close();
  });
  EXPECT_EQ(c.values(), (Answers{All, All, None, All}));
}

TEST(Uniformity, PointsOfAMap) {
  Case c({128}, [](Case& c) {
    auto v = c.b.alloc(ir::Space::Local, "v", {}, i32);
    c.b.store(at(v, {}), constant(0));
    Expr i = c.b.open_map({"i"}, {constant(512)})[0];
    c.ask(i);
    c.ask(c.bx);
    c.b.store(at(v, {}), constant(1));  // not every thread has a point
    c.b.close();
    c.ask(c.b.load(at(v, {})));
  });
  EXPECT_EQ(c.values(), (Answers{None, All, None}));
  EXPECT_EQ(c.once(), (std::vector<int>{0, 0, 0}));  // points each have their turn
}

TEST(Uniformity, ResultsOfWarpAndBlockOperations) {
  Case c({128}, [](Case& c) {
    Expr yes = ir::as_condition(c.tx);
    c.ask(ir::cast(c.b.vote(ir::VoteKind::BlockAny, yes), i32));
    c.ask(ir::cast(c.b.vote(ir::VoteKind::Any, yes), i32));
    c.ask(c.b.shuffle(ir::ShuffleKind::Xor, c.tx, constant(1), 32));
    c.ask(c.b.atomic(ir::AtomicOp::Add, at(c.a, {c.bx}), constant(1), true));
    c.ask(c.b.atomic(ir::AtomicOp::Add, at(c.a, {c.bx}), c.tx, true));
  });
  EXPECT_EQ(c.values(), (Answers{All, Warp, None, All, None}));
}

}  // namespace
}  // namespace tilewright::analysis
