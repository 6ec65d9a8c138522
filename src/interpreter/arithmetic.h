// What the pure operators give for operands that are there: shared by the evaluator and by constant folding.
#pragma once
#include <span>

#include "interpreter/code.h"

namespace tilewright::interpreter {

// `out` has room for a value a lane; an array result is always written there. Select and the right side of Logical are
// the caller's: it knows which lanes may evaluate what.
Value combine(const Node& node, std::span<const Value> args, LaneShape shape, Arena& arena, void* out);

// a where the condition holds, else b; both have the node's type.
Value blend(const Value& condition, const Value& a, const Value& b, LaneShape shape, Arena& arena, void* out);

// Every lane of the value as an array: the value's own, or a copy in the arena.
const void* lanes_of(const Value& value, LaneShape shape, Arena& arena);

// Converts lanes as Cast does.
Value cast_value(const Value& value, DType from, DType to, LaneShape shape, Arena& arena, void* out);

// The first lane (of those of the mask) that divides by zero, or the least integer by -1; -1: none does.
int64_t bad_divisor(const Node& node, const Value& a, const Value& b, LaneShape shape, const Mask& mask);

}  // namespace tilewright::interpreter
