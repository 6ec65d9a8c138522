// SHA-256 (FIPS 180-4).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::runtime {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
std::string hex(const Digest& digest);

}  // namespace tilewright::runtime
