#include "compare.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <mutex>

#include "example.h"

namespace bench::gpu {
namespace {

using tilewright::DType;
using tilewright::NDArray;

constexpr int64_t kStretch = 1024;

bool same_bits(const NDArray& a, const NDArray& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(tilewright::bytes_of(a.dtype(), a.size()))) == 0;
}

struct Squares {
  double difference = 0, want = 0;
};

Squares squares(const examples::Elements& got, const examples::Elements& want, int64_t begin, int64_t end) {
  Squares s;
  for (int64_t i = begin; i < end; ++i) {
    const double a = got[i], b = want[i];
    const bool both = std::isnan(a) && std::isnan(b);  // what neither writes is NaN from the beginning
    const double d = a == b || both ? 0 : a - b;       // infinities agree
    s.difference += d * d, s.want += both ? 0 : b * b;
  }
  return s;
}

Agreement first_difference(const NDArray& got, const NDArray& want, Agreement out) {
  const examples::Elements a(got), b(want);
  for (int64_t i = 0; i < got.size(); ++i)
    if (a[i] != b[i]) {
      out.first_bad = fmt::format("element {} is {:.9g} instead of {:.9g}", i, a[i], b[i]);
      return out;
    }
  out.first_bad = "elements that compare equal have other bits";  // -0 and 0, or NaNs
  return out;
}

}  // namespace

Agreement compare_stretches(const NDArray& got, const NDArray& want, double allowed) {
  Agreement out;
  out.elements = got.size(), out.same_bits = same_bits(got, want);
  if (out.same_bits) return out;
  if (!got.dtype().is_float()) return first_difference(got, want, out);
  const examples::Elements a(got), b(want);
  std::vector<Squares> stretches(static_cast<size_t>(tilewright::ceildiv(got.size(), kStretch)));
  examples::for_each_part(got.size(), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kStretch)
      stretches[static_cast<size_t>(at / kStretch)] = squares(a, b, at, std::min(end, at + kStretch));
  });
  Squares all;
  for (const Squares& s : stretches) all.difference += s.difference, all.want += s.want;
  out.norm = all.difference == 0 ? 0 : std::sqrt(all.difference / all.want);
  const double floor = 1e-6 * all.want / static_cast<double>(stretches.size());
  for (size_t i = 0; i < stretches.size(); ++i) {
    const Squares& s = stretches[i];
    const double off = s.difference == 0 ? 0 : std::sqrt(s.difference / std::max(s.want, floor));
    if (!(off <= out.stretch)) out.stretch = off;
    if (!(off <= allowed) && out.first_bad.empty())
      out.first_bad = fmt::format("elements from {} on are off by {:.2g} of their norm, allowed is {:.2g}",
                                  static_cast<int64_t>(i) * kStretch, off, allowed);
  }
  return out;
}

Agreement compare_elements(const NDArray& got, const NDArray& want,
                           const std::function<double(int64_t i, double want)>& bound) {
  Agreement out;
  out.elements = got.size(), out.same_bits = same_bits(got, want);
  if (out.same_bits) return out;
  const examples::Elements a(got), b(want);
  std::mutex mutex;
  int64_t first = INT64_MAX;
  double difference = 0, norm = 0;
  examples::for_each_part(got.size(), [&](int64_t begin, int64_t end) {
    double share = 0;
    int64_t bad = INT64_MAX;
    for (int64_t i = begin; i < end; ++i) {
      const double x = a[i], y = b[i], error = x == y ? 0 : std::abs(x - y), most = error == 0 ? 1 : bound(i, y);
      if (!(error <= most)) bad = std::min(bad, i);
      if (!(error / most <= share)) share = error / most;
    }
    const Squares s = squares(a, b, begin, end);
    const std::lock_guard lock(mutex);
    if (!(share <= out.share)) out.share = share;
    first = std::min(first, bad), difference += s.difference, norm += s.want;
  });
  out.norm = difference == 0 ? 0 : std::sqrt(difference / norm);
  if (first != INT64_MAX)
    out.first_bad = fmt::format("element {} is {:.9g} instead of {:.9g} within {:.3g}", first, a[first], b[first],
                                bound(first, b[first]));
  return out;
}

double allowed_difference(DType result, DType operand) {
  const auto narrow = [](DType t) { return t.is_float() && t.storage_bits() <= 16; };
  if (!narrow(result) && !narrow(operand)) return 1e-4;
  return result.is_float8() ? 4e-2 : 1e-2;
}

}  // namespace bench::gpu
