#include "target/wgmma.h"

#include <charconv>

#include <fmt/format.h>

namespace tilewright::target {
namespace {

constexpr WgmmaInstruction kInstructions[] = {
    {"f32.f16.f16", f16, f16, f32, true, false},      {"f32.bf16.bf16", bf16, bf16, f32, true, false},
    {"f32.tf32.tf32", tf32, tf32, f32, false, false}, {"f32.e4m3.e4m3", e4m3, e4m3, f32, false, false},
    {"f32.e4m3.e5m2", e4m3, e5m2, f32, false, false}, {"f32.e5m2.e4m3", e5m2, e4m3, f32, false, false},
    {"f32.e5m2.e5m2", e5m2, e5m2, f32, false, false}, {"s32.s8.s8", i8, i8, i32, false, false},
    {"s32.u8.u8", u8, u8, i32, false, false},         {"s32.s8.u8", i8, u8, i32, false, false},
    {"s32.u8.s8", u8, i8, i32, false, false},         {"f32.f16.f16", f16, f16, f32, true, true},
    {"f32.bf16.bf16", bf16, bf16, f32, true, true},   {"f32.tf32.tf32", tf32, tf32, f32, false, true},
    {"f32.e4m3.e4m3", e4m3, e4m3, f32, false, true},  {"f32.e4m3.e5m2", e4m3, e5m2, f32, false, true},
    {"f32.e5m2.e4m3", e5m2, e4m3, f32, false, true},  {"f32.e5m2.e5m2", e5m2, e5m2, f32, false, true},
    {"s32.s8.s8", i8, i8, i32, false, true},          {"s32.u8.u8", u8, u8, i32, false, true},
    {"s32.s8.u8", i8, u8, i32, false, true},          {"s32.u8.s8", u8, i8, i32, false, true},
};

}  // namespace

bool WgmmaInstruction::has_columns(int64_t n) const {
  if (n < 8 || n > 256 || n % 8 != 0) return false;
  return !a.is_int() || n <= 32 || n % 16 == 0;
}

int64_t WgmmaInstruction::most_columns(int64_t of) const {
  for (int64_t parts = 1; parts <= of / 8; ++parts)
    if (of % parts == 0 && has_columns(of / parts)) return of / parts;
  return 0;
}

std::string WgmmaInstruction::name(int64_t n) const { return fmt::format("m64n{}k{}.{}", n, k(), types); }

const WgmmaInstruction* wgmma_for(DType a, DType b, DType c, bool sparse) {
  for (const WgmmaInstruction& i : kInstructions)
    if (i.a == a && i.b == b && i.c == c && i.sparse == sparse) return &i;
  return nullptr;
}

std::optional<WgmmaShape> wgmma_named(std::string_view name) {
  constexpr std::string_view kBegin = "m64n";
  if (!name.starts_with(kBegin)) return std::nullopt;
  int64_t n = 0;
  std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), n);
  for (const WgmmaInstruction& i : kInstructions)
    if (i.has_columns(n) && i.name(n) == name) return WgmmaShape{&i, n};
  return std::nullopt;
}

uint64_t MatrixDescriptor::bits() const {
  return static_cast<uint64_t>(leading_bytes / 16) << 16 | static_cast<uint64_t>(stride_bytes / 16) << 32 |
         static_cast<uint64_t>(swizzle) << 62;
}

std::optional<MatrixDescriptor> matrix_descriptor(const MemoryLayout& memory, bool transposed) {
  const Swizzle s = memory.swizzle();
  if (memory.rank() < 2 || s.bits == 0 || !s.is_hardware()) return std::nullopt;
  const int64_t span = s.span(), row = span * 8 / memory.element_bits();  // elements of a panel's row
  const std::vector<Mode>&rows = memory.dim(memory.rank() - 2), &columns = memory.dim(memory.rank() - 1);
  // Rows of a panel lie one behind the other, the columns of one side by side.
  if (rows.size() != 1 || rows[0].stride != row || rows[0].extent % 8 != 0) return std::nullopt;
  if (columns.empty() || columns.size() > 2 || columns.back() != Mode{row, 1}) return std::nullopt;
  MatrixDescriptor d;
  d.stride_bytes = 8 * span;
  d.leading_bytes = transposed && columns.size() == 2 ? columns[0].stride * memory.element_bits() / 8 : 16;
  d.swizzle = 4 - s.bits;
  return d;
}

}  // namespace tilewright::target
