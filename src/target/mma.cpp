#include "target/mma.h"

namespace tilewright::target {
namespace {

constexpr MmaInstruction kInstructions[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 80, 16, 8, 16, f16, f16, f32},
    {"m16n8k8.row.col.f32.f16.f16.f32", 80, 16, 8, 8, f16, f16, f32},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 80, 16, 8, 16, bf16, bf16, f32},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 80, 16, 8, 8, bf16, bf16, f32},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 80, 16, 8, 8, tf32, tf32, f32},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 80, 16, 8, 4, tf32, tf32, f32},
    {"m16n8k32.row.col.s32.s8.s8.s32", 80, 16, 8, 32, i8, i8, i32},
    {"m16n8k16.row.col.s32.s8.s8.s32", 80, 16, 8, 16, i8, i8, i32},
    {"m16n8k32.row.col.s32.u8.u8.s32", 80, 16, 8, 32, u8, u8, i32},
    {"m16n8k16.row.col.s32.u8.u8.s32", 80, 16, 8, 16, u8, u8, i32},
    {"m16n8k32.row.col.s32.s8.u8.s32", 80, 16, 8, 32, i8, u8, i32},
    {"m16n8k16.row.col.s32.s8.u8.s32", 80, 16, 8, 16, i8, u8, i32},
    {"m16n8k32.row.col.s32.u8.s8.s32", 80, 16, 8, 32, u8, i8, i32},
    {"m16n8k16.row.col.s32.u8.s8.s32", 80, 16, 8, 16, u8, i8, i32},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 89, 16, 8, 32, e4m3, e4m3, f32},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 89, 16, 8, 32, e5m2, e5m2, f32},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 89, 16, 8, 32, e4m3, e5m2, f32},
    {"m16n8k32.row.col.f32.e5m2.e4m3.f32", 89, 16, 8, 32, e5m2, e4m3, f32},
    {"m16n8k16.row.col.f64.f64.f64.f64", 90, 16, 8, 16, f64, f64, f64},
    {"m16n8k8.row.col.f64.f64.f64.f64", 90, 16, 8, 8, f64, f64, f64},
    {"m16n8k4.row.col.f64.f64.f64.f64", 90, 16, 8, 4, f64, f64, f64},
    {"m8n8k4.row.col.f64.f64.f64.f64", 80, 8, 8, 4, f64, f64, f64},
    {"m16n8k32.row.col.f32.f16.f16.f32", 80, 16, 8, 32, f16, f16, f32, true},
    {"m16n8k32.row.col.f32.bf16.bf16.f32", 80, 16, 8, 32, bf16, bf16, f32, true},
    {"m16n8k16.row.col.f32.tf32.tf32.f32", 80, 16, 8, 16, tf32, tf32, f32, true},
    {"m16n8k64.row.col.s32.s8.s8.s32", 80, 16, 8, 64, i8, i8, i32, true},
    {"m16n8k64.row.col.s32.u8.u8.s32", 80, 16, 8, 64, u8, u8, i32, true},
    {"m16n8k64.row.col.f32.e4m3.e4m3.f32", 89, 16, 8, 64, e4m3, e4m3, f32, true},
    {"m16n8k64.row.col.f32.e5m2.e5m2.f32", 89, 16, 8, 64, e5m2, e5m2, f32, true},
};

}  // namespace

std::span<const MmaInstruction> mma_instructions() { return kInstructions; }

const MmaInstruction* mma_named(std::string_view name) {
  for (const MmaInstruction& i : kInstructions)
    if (i.name == name) return &i;
  return nullptr;
}

const MmaInstruction* mma_for(DType a, DType b, DType c, int arch, bool sparse, int64_t depth) {
  const MmaInstruction* last = nullptr;
  for (const MmaInstruction& i : kInstructions) {
    if (i.a != a || i.b != b || i.c != c || i.arch > arch || i.sparse != sparse) continue;
    if (depth % i.k == 0) return &i;
    last = &i;
  }
  return last;
}

MetadataHalf metadata_half(int64_t element_bits, int64_t lane, int64_t half) {
  if (element_bits >= 16) return {lane / 4 + half * 8, lane % 2};
  return {lane / 4 + lane % 2 * 8, lane % 4 / 2 * 2 + half};
}

}  // namespace tilewright::target
