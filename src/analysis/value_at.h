// What an integer expression is at one point of a launch, exactly as it is computed there: sums wrap.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ir/rewrite.h"

namespace tilewright::analysis {

// The value of each variable that has one, and what names stand for.
struct Point {
  std::unordered_map<ir::VarId, int64_t> values;
  const ir::Substitution* names = nullptr;
};

// What the names of a body stand for.
ir::Substitution names_in(const ir::Body& body);

// None: it depends on memory, on a variable without a value, or is no integer that fits 64 bits.
std::optional<int64_t> value_at(const ir::Expr& e, const Point& point);
// Of an index, or of the begin of a tile, which are computed in 64 bits.
std::optional<int64_t> index_at(const ir::Expr& e, const Point& point);

}  // namespace tilewright::analysis
