// What only the running program has is no number of C++ yet: what the C++ compiler says where it is used as one.
#pragma once
#include <concepts>
#include <cstddef>
#include <type_traits>

namespace tilewright {

class Buffer;
class Expression;
class Operand;
class Ref;
class Value;
class Var;

template <class T>
concept OfTheProgram = std::same_as<T, Expression> || std::same_as<T, Operand> || std::same_as<T, Ref> ||
    std::same_as<T, Value> || std::same_as<T, Var>;
template <class A, class B>
concept OneOfTheProgram = !std::same_as<A, B> && ((OfTheProgram<A> && (OfTheProgram<B> || std::is_arithmetic_v<B>)) ||
                                                  (OfTheProgram<B> && std::is_arithmetic_v<A>));

// Conversions that are refused in words.
class RunTimeOnly {
 public:
  template <class T>
  requires std::same_as<T, bool>
  explicit operator T() const {
    static_assert(!std::same_as<T, T>,
                  "only the running program knows this condition: write 'If(x > 0, [&] { ... });', 'While(...)' or "
                  "'if_then_else(x > 0, a, b)'");
    return false;
  }
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) explicit operator T() const {
    static_assert(!std::same_as<T, T>,
                  "only the running program knows this number: write 'cast(x, f32)' to convert it there");
    return T{};
  }
};
template <OfTheProgram T>
void operator++(const T&) {
  static_assert(!std::same_as<T, T>, "write 'v += 1', of an alloc_var or an element: a Value does not change");
}
template <OfTheProgram T>
void operator++(const T&, int) {
  static_assert(!std::same_as<T, T>, "write 'v += 1', of an alloc_var or an element: a Value does not change");
}
template <OfTheProgram T>
void operator--(const T&) {
  static_assert(!std::same_as<T, T>, "write 'v -= 1', of an alloc_var or an element: a Value does not change");
}
template <OfTheProgram T>
void operator--(const T&, int) {
  static_assert(!std::same_as<T, T>, "write 'v -= 1', of an alloc_var or an element: a Value does not change");
}

struct Brackets {
  template <class T, class Result>
  static Result&& of() {
    static_assert(!std::same_as<T, T>, "indices stand in parentheses: write 'A(i, j)'");
    return Result::make(0, {}, {});
  }
};

// std::cout << x
template <class Stream, class T>
requires((OfTheProgram<T> || std::derived_from<T, Buffer>)&&requires {
  typename Stream::char_type;
  typename Stream::traits_type;
}) Stream&
operator<<(Stream& out, const T&) {
  static_assert(!std::same_as<T, T>, "only the running program knows this value: write 'print(x)' to print it there");
  return out;
}

}  // namespace tilewright
