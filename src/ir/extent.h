// How much memory a buffer on chip takes.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Elements from the first to the last, strides counted. The shape and strides are constants.
int64_t elements_on_chip(const Buffer& b);
int64_t bytes_on_chip(const Buffer& b);

}  // namespace tilewright::ir
