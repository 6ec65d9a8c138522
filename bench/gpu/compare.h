// Two arrays of results, all elements: how far they are apart, and whether that is too far.
#pragma once
#include <functional>
#include <string>

#include "tilewright/tensor.h"

namespace bench::gpu {

struct Agreement {
  int64_t elements = 0;
  bool same_bits = false;
  double norm = 0;        // ||got - want|| / ||want||
  double stretch = 0;     // the same for the worst stretch of 1024 elements
  double share = 0;       // the largest |got - want| / bound, where there is a bound
  std::string first_bad;  // a sentence; empty where all is well
  bool ok() const { return first_bad.empty(); }
};

// Float arrays agree if no stretch of 1024 elements is off by more than `allowed` times its norm: one wrong element of
// such a stretch moves it by about 3%. Stretches of almost nothing are held against a thousandth of the whole's norm.
// NaN agrees with nothing. Other arrays agree if their bits are the same. Of the processor's memory, row-major.
Agreement compare_stretches(const tilewright::NDArray& got, const tilewright::NDArray& want, double allowed);

// |got - want| <= bound(i), where `want` and the bound may differ from element to element.
Agreement compare_elements(const tilewright::NDArray& got, const tilewright::NDArray& want,
                           const std::function<double(int64_t i, double want)>& bound);

// What compare_stretches allows for results of this type: roundings of the type itself and of 16-bit operands on the
// way, which two right engines make at different places.
double allowed_difference(tilewright::DType result, tilewright::DType operand);

}  // namespace bench::gpu
