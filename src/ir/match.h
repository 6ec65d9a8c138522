// Exhaustive dispatch: a new node without a case does not compile. Where exhaustiveness is not the point, write
// as<T>().
#pragma once
#include <variant>

namespace tilewright::ir {

template <size_t I = 0, class V, class F>
decltype(auto) match(const V& v, F&& f) {
  if constexpr (I + 1 < std::variant_size_v<V>) {
    if (v.index() != I) return match<I + 1>(v, f);
  }
  return f(*std::get_if<I>(&v));
}

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace tilewright::ir
