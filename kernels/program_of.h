// Programs whose parameters depend on options.
#pragma once
#include <functional>
#include <vector>

#include "tilewright/language.h"

namespace tilewright::kernels {

inline Program program_of(const char* name, const std::vector<Parameter>& p, const std::function<void()>& body) {
  switch (p.size()) {
    case 2: return prim_func(name, {p[0], p[1]}, body);
    case 3: return prim_func(name, {p[0], p[1], p[2]}, body);
    case 4: return prim_func(name, {p[0], p[1], p[2], p[3]}, body);
    case 5: return prim_func(name, {p[0], p[1], p[2], p[3], p[4]}, body);
    case 6: return prim_func(name, {p[0], p[1], p[2], p[3], p[4], p[5]}, body);
    default: return prim_func(name, {p[0], p[1], p[2], p[3], p[4], p[5], p[6]}, body);
  }
}

}  // namespace tilewright::kernels
