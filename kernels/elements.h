// Tensors of any number of dimensions, some of which a tensor may lack: it is repeated along them.
#pragma once
#include <string>
#include <vector>

#include "tilewright/language.h"

namespace tilewright::kernels {

constexpr size_t kMostDimensions = 4;

// A parameter of these extents, or of one element.
inline Tensor tensor_of(const std::string& name, const std::vector<Value>& e, DType type) {
  switch (e.size()) {
    case 0: return Tensor(name, {1}, type);
    case 1: return Tensor(name, {e[0]}, type);
    case 2: return Tensor(name, {e[0], e[1]}, type);
    case 3: return Tensor(name, {e[0], e[1], e[2]}, type);
    default: return Tensor(name, {e[0], e[1], e[2], e[3]}, type);
  }
}

inline Ref&& element_of(const Buffer& x, const std::vector<Value>& i) {
  switch (i.size()) {
    case 0: return x(0);
    case 1: return x(i[0]);
    case 2: return x(i[0], i[1]);
    case 3: return x(i[0], i[1], i[2]);
    default: return x(i[0], i[1], i[2], i[3]);
  }
}

// Of all values those whose letter in `dimensions` is 1.
inline std::vector<Value> those_of(const std::vector<Value>& all, const std::string& dimensions) {
  std::vector<Value> out;
  for (size_t d = 0; d < all.size(); ++d)
    if (dimensions[d] == '1') out.push_back(all[d]);
  return out;
}

}  // namespace tilewright::kernels
