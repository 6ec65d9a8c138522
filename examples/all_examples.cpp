// The table of all examples, in the order in which the demo shows them.
#include "example.h"

namespace examples {

std::vector<Case> gemm_cases(Size size);
std::vector<Case> gemm_relu_cases(Size size);

const std::vector<Example>& all_examples() {
  static const std::vector<Example> table = {
      {"gemm", "matrix product", gemm_cases},
      {"gemm_relu", "matrix product and ReLU", gemm_relu_cases},
  };
  return table;
}

}  // namespace examples
