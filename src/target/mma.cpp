#include "target/mma.h"

namespace tilewright::target {
namespace {

constexpr MmaInstruction kInstructions[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 80, 16, 8, 16, f16, f16, f32},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 80, 16, 8, 16, bf16, bf16, f32},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 80, 16, 8, 8, tf32, tf32, f32},
    {"m16n8k32.row.col.s32.s8.s8.s32", 80, 16, 8, 32, i8, i8, i32},
    {"m16n8k32.row.col.s32.u8.u8.s32", 80, 16, 8, 32, u8, u8, i32},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 89, 16, 8, 32, e4m3, e4m3, f32},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 89, 16, 8, 32, e5m2, e5m2, f32},
};

}  // namespace

std::span<const MmaInstruction> mma_instructions() { return kInstructions; }

const MmaInstruction* mma_named(std::string_view name) {
  for (const MmaInstruction& i : kInstructions)
    if (i.name == name) return &i;
  return nullptr;
}

const MmaInstruction* mma_for(DType a, DType b, DType c, int arch) {
  for (const MmaInstruction& i : kInstructions)
    if (i.a == a && i.b == b && i.c == c && i.arch <= arch) return &i;
  return nullptr;
}

}  // namespace tilewright::target
