// Statements have numbers by which tables speak of them.
#include "ir/number_statements.h"

#include <gtest/gtest.h>

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::ir {
namespace {

Stmt store(int64_t value) { return make_stmt(Store{{BufferId{0}, {constant(0)}}, constant(value)}); }

std::vector<uint32_t> numbers(const Launch& launch) {
  std::vector<uint32_t> out;
  walk(launch.body, [&](const Stmt& s) { out.push_back(s->id.index); });
  return out;
}

TEST(NumberStatements, OneNodeAtTwoPlacesIsTwoStatements) {
  const Stmt shared = store(1);
  Launch launch;
  launch.body = {make_stmt(Role{0, 32, {shared}}), make_stmt(Role{32, 64, {shared}})};
  number_statements(launch);
  EXPECT_EQ(numbers(launch), (std::vector<uint32_t>{1, 2, 3, 4}));
  EXPECT_TRUE(equal(launch.body[0].as<Role>()->body[0], launch.body[1].as<Role>()->body[0]));
  EXPECT_NO_THROW(check_numbered(launch));
}

TEST(NumberStatements, WhoHasANumberKeepsItAndNoneIsGivenTwice) {
  Launch launch;
  launch.body = {store(1), store(2), store(3)};
  number_statements(launch);
  const Stmt second = launch.body[1];
  launch.body = {store(4), second, second};
  number_statements(launch);
  EXPECT_EQ(numbers(launch), (std::vector<uint32_t>{4, 2, 5}));
  EXPECT_TRUE(launch.body[1].same(second));
}

TEST(NumberStatements, WhatIsRewrittenKeepsItsNumber) {
  Launch launch;
  launch.body = {make_stmt(Role{0, 32, {store(1)}})};
  number_statements(launch);
  launch.body = rewrite_exprs(launch.body, [](const Expr& e) -> std::optional<Expr> {
    return e.as<Const>() ? std::optional(constant(e->type, int64_t{7})) : std::nullopt;
  });
  EXPECT_EQ(numbers(launch), (std::vector<uint32_t>{1, 2}));
}

TEST(NumberStatements, TablesAreMadeOfNumberedStatementsAlone) {
  Launch launch;
  launch.body = {store(1)};
  EXPECT_THROW(check_numbered(launch), InternalError);
  number_statements(launch);
  launch.body.push_back(launch.body[0]);
  EXPECT_THROW(check_numbered(launch), InternalError);
}

}  // namespace
}  // namespace tilewright::ir
