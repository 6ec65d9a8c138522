// How much memory a buffer on chip takes, and how much of it a region is.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Elements from the first to the last, strides counted. The shape and strides are constants.
int64_t elements_on_chip(const Buffer& b);
int64_t bytes_on_chip(const Buffer& b);
// Of a region of constant extents.
int64_t bytes_in(const Region& region, const ProgramTables& program);

// All of a buffer, and whether a region is that.
Region whole(BufferId id, const ProgramTables& program);
bool is_whole(const Region& region, const Buffer& b);

// The dimensions along which a region has other than one element, in order: of both sides of a copy, those that belong
// to each other.
std::vector<size_t> moving_dims(const Region& region);

// c^T = b^T a^T, of a gemm that is not sparse.
Gemm transpose_of(const Gemm& gemm);

// The number of the launch's blocks, in 64 bits.
Expr blocks_of(const Launch& launch);

// The dimension of `from` that each dimension of `to` is; -1: none, its extent is 1. Either may have more of them in
// front, of extent 1: the slot of a ring, say.
std::vector<int> kept_dims(const Reduce& reduce);

}  // namespace tilewright::ir
