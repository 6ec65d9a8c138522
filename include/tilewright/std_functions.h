// std::exp(x) and std::max(x, 0.f) of what only the running program has are exp(x) and max(x, 0.f): who writes 'std::',
// or 'using namespace std;', means these. They stand in std because no argument of theirs is of another type than ours.
#pragma once
#include "tilewright/language.h"

namespace std {

using tilewright::abs, tilewright::acos, tilewright::acosh, tilewright::asin, tilewright::asinh, tilewright::atan,
    tilewright::atan2, tilewright::atanh, tilewright::ceil, tilewright::copysign, tilewright::cos, tilewright::cosh,
    tilewright::erf, tilewright::exp, tilewright::exp2, tilewright::expm1, tilewright::floor, tilewright::fma,
    tilewright::fmod, tilewright::isfinite, tilewright::isinf, tilewright::isnan, tilewright::log, tilewright::log10,
    tilewright::log1p, tilewright::log2, tilewright::nearbyint, tilewright::pow, tilewright::round, tilewright::sin,
    tilewright::sinh, tilewright::sqrt, tilewright::tan, tilewright::tanh, tilewright::trunc;

// Two of one type: nearer than the template of std, which would branch on a comparison.
template <class T>
requires tilewright::OfTheProgram<T> tilewright::Expression && max(const T& a, const T& b) {
  return tilewright::max(tilewright::Operand(a, {}), tilewright::Operand(b, {}));
}
template <class T>
requires tilewright::OfTheProgram<T> tilewright::Expression && min(const T& a, const T& b) {
  return tilewright::min(tilewright::Operand(a, {}), tilewright::Operand(b, {}));
}
template <class T>
requires tilewright::OfTheProgram<T> tilewright::Expression && clamp(const T& x, const T& low, const T& high) {
  return tilewright::clamp(tilewright::Operand(x, {}), tilewright::Operand(low, {}), tilewright::Operand(high, {}));
}

template <class A, class B>
requires tilewright::OneOfTheProgram<A, B> tilewright::Expression &&
    max(const A& a, const B& b, tilewright::Location at = tilewright::Location::current()) {
  return tilewright::max(tilewright::Operand(a, at), tilewright::Operand(b, at));
}
template <class A, class B>
requires tilewright::OneOfTheProgram<A, B> tilewright::Expression &&
    min(const A& a, const B& b, tilewright::Location at = tilewright::Location::current()) {
  return tilewright::min(tilewright::Operand(a, at), tilewright::Operand(b, at));
}
template <tilewright::OfTheProgram T, class A, class B>
requires(!std::same_as<T, A> || !std::same_as<T, B>) tilewright::Expression &&
    clamp(const T& x, const A& low, const B& high, tilewright::Location at = tilewright::Location::current()) {
  return tilewright::clamp(tilewright::Operand(x, at), tilewright::Operand(low, at), tilewright::Operand(high, at));
}

}  // namespace std
