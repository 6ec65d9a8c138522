// What bounds a program and what keeps it from the bound, in a sentence.
#pragma once
#include <string>

#include "driver/explain.h"

namespace tilewright {

// "bound by the matrix and vector units, about 174 us, 80% of the floor; 1 of 4 copies is not TMA: line 14, ..."
std::string headline(const Explanation& explanation);

}  // namespace tilewright
