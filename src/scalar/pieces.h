// The scalar texts cut into pieces, one function each, so that a generated kernel contains only what it calls.
#pragma once
#include <set>
#include <span>
#include <string>
#include <vector>

namespace tilewright {

// The text of the named pieces and of all they need, in an order that compiles, each once; without includes. A name may
// carry template arguments ("floordiv<int32_t>"). The fixed-width integer types always come first. An unknown name is
// an internal error: names come from functions.h and convert.h.
std::string pieces_text(const std::set<std::string>& names);
// The same where a target has pieces of its own: texts like ours, a piece of which takes the place of the one of that
// name, if there is one. Later texts come before earlier ones.
std::string pieces_text(const std::set<std::string>& names, std::span<const char* const> own);

// Every piece, in the order of the texts.
std::vector<std::string> piece_names();

}  // namespace tilewright
