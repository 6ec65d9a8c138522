// Sums of accumulators in scratch, in the order of columns that keeps the threads' stores in different banks.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A thread of a matrix instruction holds pairs of neighbouring columns. Stored as pairs to shared memory, in the rows
// of 128 swizzled bytes that TMA reads, neighbouring rows meet in every bank: two wavefronts for each that there need
// be. With the first four columns of each of a panel's eights before the others, a store of a pair of all lanes touches
// each bank twice, the least there is. Where rows are no whole panels, the even columns of each eight come before the
// odd ones: a store of one register touches each bank once. TMA adds such rows as well as others, and nobody else sees
// them: it is for scratch of the program that is read and written by elements otherwise, whose columns change with them
// (bench/results/2026-11-25-backward.json: a twentieth of attention's gradients). Needs tile programs behind
// copies_to_maps; leaves them so.
ir::TileProgram spread_pairs(ir::TileProgram program);

}  // namespace tilewright::passes
