// Executable: a compiled program that can be called.
#pragma once
#if __cplusplus < 202002L
#error "Tilewright's headers are C++20: compile with -std=c++20 or newer"
#endif
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tilewright/tensor.h"

namespace tilewright {
namespace runtime {
struct LoadedProgram;
}

// One argument of a call. It refers to the array, which must live until the call returns.
class Argument {
 public:
  enum class Kind : uint8_t { Tensor, Int, Float, Null };
  Argument(const NDArray& array) : kind_(array.is_null() ? Kind::Null : Kind::Tensor) { value_.tensor = &array; }
  Argument(std::nullptr_t) : kind_(Kind::Null) { value_.integer = 0; }
  template <std::integral T>
  Argument(T value) : kind_(Kind::Int), unsigned_(std::unsigned_integral<T>) {
    value_.integer = static_cast<int64_t>(value);
  }
  template <std::floating_point T>
  Argument(T value) : kind_(Kind::Float) {
    value_.number = static_cast<double>(value);
  }
  template <class T>
  requires(!std::is_arithmetic_v<T> && !std::convertible_to<const T&, NDArray>) Argument(const T&) {
    static_assert(!std::same_as<T, T>,
                  "an argument is an NDArray or a number: NDArray::borrow(v.data(), {size}, f32) of a vector's memory");
  }

  Kind kind() const { return kind_; }
  const NDArray& tensor() const { return *value_.tensor; }
  int64_t integer() const { return value_.integer; }
  double number() const { return value_.number; }
  bool is_huge() const { return unsigned_ && value_.integer < 0; }  // an unsigned value of 2^63 or more

 private:
  union {
    const NDArray* tensor;
    int64_t integer;
    double number;
  } value_;
  Kind kind_;
  bool unsigned_ = false;
};

// A handle; copies are the same program. A call checks its arguments first: count, dtypes, ranks, shapes, strides,
// alignment and device, and throws a LaunchError that names the argument. Threads may call at the same time.
class Executable {
 public:
  explicit Executable(std::shared_ptr<runtime::LoadedProgram> program) : program_(std::move(program)) {}

  template <class... Args>
  void operator()(const Args&... args) const {
    const std::array<Argument, sizeof...(Args)> list{Argument(args)...};
    call(list);
  }
  void call(std::span<const Argument> arguments) const;

  const std::string& name() const;
  const std::string& engine() const;  // "cpu", "interpreter"
  const std::string& source() const;  // the text that was compiled; empty where the engine has none
  // What source() assumes of a call beside the program's own rules: "N % 8 == 0". A call of which it does not hold runs
  // a general version, which the first such call compiles; how many calls did.
  const std::vector<std::string>& assumptions() const;
  int64_t general_calls() const;
  const runtime::LoadedProgram& program() const { return *program_; }

 private:
  std::shared_ptr<runtime::LoadedProgram> program_;
};

}  // namespace tilewright
