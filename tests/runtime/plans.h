// Launch plans and checks that the runtime tests share.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/launch_plan.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {

inline Parameter tensor_parameter(std::string name, DType dtype, std::vector<IntProgram> shape,
                                  std::vector<IntProgram> strides = {}) {
  Parameter p;
  p.name = std::move(name);
  p.dtype = dtype;
  p.shape = std::move(shape);
  p.strides = std::move(strides);
  return p;
}

inline Parameter scalar_parameter(std::string name, DType dtype) {
  Parameter p;
  p.kind = Parameter::Kind::Scalar;
  p.name = std::move(name);
  p.dtype = dtype;
  return p;
}

inline Symbol shape_symbol(std::string name, int parameter, int dim) {
  Symbol s;
  s.name = std::move(name);
  s.parameter = parameter;
  s.dim = dim;
  return s;
}

// matmul_relu(A[M, K], B[K, N], C[M, N]).
inline LaunchPlan matmul_plan() {
  LaunchPlan plan;
  plan.name = "matmul_relu";
  plan.parameters = {tensor_parameter("A", f16, {symbol(0), symbol(1)}),
                     tensor_parameter("B", f16, {symbol(1), symbol(2)}),
                     tensor_parameter("C", f32, {symbol(0), symbol(2)})};
  plan.symbols = {shape_symbol("M", 0, 0), shape_symbol("K", 0, 1), shape_symbol("N", 1, 1)};
  return plan;
}

// Runs `act`, which must throw an Error with this code and this message.
template <class Act>
void expect_refusal(Code code, const std::string& message, Act&& act) {
  try {
    act();
    FAIL() << "accepted; expected: " << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(code)) << e.what();
    EXPECT_EQ(e.diagnostic().message, message);
  }
}

// Sets an environment variable (null: removes it) until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~ScopedVariable() { set(old_ ? old_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  void set(const char* value) { value ? setenv(name_, value, 1) : unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace tilewright::runtime
