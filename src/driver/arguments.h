// Arguments for a program that nobody gave any: random, the same from one seed everywhere.
#pragma once
#include <map>
#include <string>

#include "ir/program.h"
#include "ir/rewrite.h"
#include "tilewright/tensor.h"

namespace tilewright {

// Values of symbols and integer scalars by name.
using NamedValues = std::map<std::string, int64_t>;

// Of symbols that are a dimension of a tensor by themselves, from the shapes of the tensor parameters, in order.
NamedValues symbol_values(const ir::TileProgram& program, const std::vector<std::vector<int64_t>>& shapes);

// Refuses what no call could give: names that the program does not have, values beyond their types, dimensions that are
// negative or cannot be computed, assumptions that do not hold. Names may be missing.
void check_values(const ir::TileProgram& program, const NamedValues& values);

ir::Substitution known_values(const ir::TileProgram& program, const NamedValues& values);

// An expression of symbols and integer scalars; empty if it mentions one that has no value.
std::optional<int64_t> value_of(const ir::Expr& e, const ir::TileProgram& program, const NamedValues& values);

// The parameters that some launch reads, or writes. A view and its root are one.
std::set<ir::BufferId> read_parameters(const ir::TileProgram& program);
std::set<ir::BufferId> written_parameters(const ir::TileProgram& program);
// Those of which every change counts on what is there: no statement writes an element that does not read or update it.
std::set<ir::BufferId> added_to_parameters(const ir::TileProgram& program);

// Floats from -1 to 1, signed integers from -8 to 7, unsigned from 0 to 7, bools.
void fill_random(const NDArray& array, uint64_t seed);

// One array per tensor parameter in order: random if the program reads it, else zeros.
std::vector<NDArray> random_arguments(const ir::TileProgram& program, const NamedValues& values, uint64_t seed);

}  // namespace tilewright
