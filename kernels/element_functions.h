// The table of functions of elements: what each computes, and the slope along its first operand.
#pragma once
#include <span>
#include <vector>

#include "tilewright/language.h"

namespace tilewright::kernels {

using Operands = std::vector<Value>;

// What a function is computed on, and in.
enum class Computes : uint8_t {
  Floats,    // float32, of float64 in float64
  Numbers,   // the same, and integers in their own type
  Integers,  // integers and bools in their own type
  Any,       // any type in itself: moves, comparisons, questions
};

struct ElementFunction {
  const char* name;
  size_t operands;
  Value (*value)(const Operands&);
  Value (*slope)(const Operands&) = nullptr;
  Computes computes = Computes::Floats;
};

std::span<const ElementFunction> element_functions();

}  // namespace tilewright::kernels
