// How much memory a buffer on chip takes, and how much of it a region is.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Elements from the first to the last, strides counted. The shape and strides are constants.
int64_t elements_on_chip(const Buffer& b);
int64_t bytes_on_chip(const Buffer& b);

// All of a buffer, and whether a region is that.
Region whole(BufferId id, const ProgramTables& program);
bool is_whole(const Region& region, const Buffer& b);

}  // namespace tilewright::ir
