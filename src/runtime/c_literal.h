// Values as literals of C.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::runtime {

// Any bytes, in quotes.
std::string c_string(std::string_view bytes);
// Of type long long.
std::string c_integer(int64_t value);

}  // namespace tilewright::runtime
