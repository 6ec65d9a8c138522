// Which instructions a gemm uses, from its types and the features it may use.
#include "codegen/cpu/gemm_kernel.h"

#include <fmt/format.h>

#include "embedded_text.h"

namespace tilewright {
namespace {

// Every value fits int16_t, so that products of pairs are summed exactly in 32 bits.
bool fits_int16(DType t) { return t.is_bool() || (t.is_int() && (t.bits <= 8 || t == i16)); }

void choose_step(const GemmSpec& spec, GemmKernel& kernel) {
  const VectorFeatures& features = spec.features;
  const bool wide = features.avx512 || features.avx2;
  kernel.bytes = features.avx512 ? 64 : features.avx2 ? 32 : 16;
  if (spec.c.is_float()) {
    kernel.accumulator = kernel.element = spec.c == f64 ? f64 : f32;
    kernel.step = wide && (features.fma || features.avx512) ? GemmStep::Fma : GemmStep::Multiply;
    if (spec.a == bf16 && spec.b == bf16 && spec.c != f64 && features.avx512 && features.avx512_bf16) {
      kernel.step = GemmStep::Bf16Pairs;
      kernel.element = bf16;
      kernel.interleave = 2;
    }
    if (kernel.step == GemmStep::Bf16Pairs && features.amx && spec.k % (kTileSteps * 2) == 0)
      kernel.step = GemmStep::Bf16Tiles;
    return;
  }
  kernel.accumulator = kernel.element = spec.c.bits == 64 ? u64 : u32;
  if (kernel.accumulator == u32 && features.amx && spec.a == spec.b && (spec.a == i8 || spec.a == u8) &&
      spec.k % (kTileSteps * 4) == 0) {
    kernel.step = GemmStep::Int8Tiles;
    kernel.element = spec.a;
    kernel.interleave = 4;
    return;
  }
  if (kernel.accumulator == u32 && wide && fits_int16(spec.a) && fits_int16(spec.b)) {
    kernel.step = GemmStep::Int16Pairs;
    kernel.element = i16;
    kernel.interleave = 2;
    kernel.vnni = features.avx512 && features.avx512_vnni;
  }
}

std::string tile_definitions(const std::string& step, std::string_view product) {
  return fmt::format("{0}#ifndef {1}\n#define {1}(c, a, b) tw_tile_product({2}, c, a, b)\n#endif\n",
                     text::codegen_cpu_tiles, step, product);
}

}  // namespace

GemmKernel choose_kernel(const GemmSpec& spec, VectorAxis axis) {
  GemmKernel kernel;
  choose_step(spec, kernel);
  kernel.vectors = (axis == VectorAxis::N ? spec.n : spec.m) <= kernel.lanes() ? 1 : 2;
  // 32 registers hold 28 accumulators, two vectors and a broadcast; 16 hold 12. With one vector a row, 12 rows hide the
  // latency of an fma (4 cycles) and more only lengthen the text.
  const bool many = kernel.bytes == 64;
  kernel.rows = many ? (kernel.vectors == 2 ? 14 : 16) : kernel.vectors == 2 ? 6 : 12;
  if (kernel.step == GemmStep::Int16Pairs && many && kernel.vectors == 2) kernel.rows = 13;
  if (kernel.tiles()) kernel.rows = 2 * kTileRows;  // four of the eight tiles have sums, two each are of an operand
  return kernel;
}

VectorAxis vector_axis(const GemmSpec& spec) {
  const OperandLayout& c = spec.c_layout;
  if (c.form == OperandLayout::Form::Panels) return c.axis == 0 ? VectorAxis::M : VectorAxis::N;
  return c.column_stride != 1 && c.row_stride == 1 ? VectorAxis::M : VectorAxis::N;
}

std::string GemmKernel::code() const {
  const char* set = bytes == 64 ? "avx512" : bytes == 32 ? "avx2" : "plain";
  const char* steps[] = {"", "_fma", "_bf16", vnni ? "_vnni" : "_pairs", "_amx", element == u8 ? "_amx_u8" : "_amx_i8"};
  return fmt::format("{}{}", set, steps[static_cast<int>(step)]);
}

std::string kernel_types(const GemmKernel& kernel) {
  const int bytes = kernel.bytes;
  if (kernel.tiles()) return "";
  const std::string lane = storage_type(kernel.accumulator);
  std::string text;
  text += fmt::format("  typedef {} vec __attribute__((vector_size({})));\n", lane, bytes);
  text += fmt::format("  typedef {} loose __attribute__((vector_size({}), aligned({}), may_alias));\n", lane, bytes,
                      kernel.accumulator.bits / 8);
  if (kernel.interleave == 1) {
    text += fmt::format("  typedef {} word __attribute__((may_alias));\n", lane);
    return text + "  typedef vec words;\n  typedef loose loose_words;\n";
  }
  text += "  typedef uint32_t word __attribute__((aligned(2), may_alias));\n";
  text += fmt::format("  typedef uint32_t words __attribute__((vector_size({})));\n", bytes);
  text +=
      fmt::format("  typedef uint32_t loose_words __attribute__((vector_size({}), aligned(2), may_alias));\n", bytes);
  if (kernel.step == GemmStep::Int16Pairs) {
    text += fmt::format("  typedef short pairs __attribute__((vector_size({})));\n", bytes);
    return text + fmt::format("  typedef int sums __attribute__((vector_size({})));\n", bytes);
  }
  // GCC before 13 has no __bf16 on x86 and gives the builtin vectors of short.
  return text +
         "#if __GNUC__ >= 13\n"
         "  typedef __bf16 pairs __attribute__((vector_size(64)));\n"
         "#else\n"
         "  typedef short pairs __attribute__((vector_size(64)));\n"
         "#endif\n";
}

std::string step_definition(const GemmKernel& kernel) {
  const auto either = [&](std::string_view gcc, std::string_view clang) {
    return fmt::format("#ifdef __clang__\n#define {0}(c, x, y) {2}\n#else\n#define {0}(c, x, y) {1}\n#endif\n",
                       step_name(kernel), gcc, clang);
  };
  // Newer clangs have one builtin for all. Mask -1: all lanes; 4: the current rounding mode.
  const auto fma = [&](std::string_view text) {
    return fmt::format(
        "#if __has_builtin(__builtin_elementwise_fma)\n#define {0}(c, x, y) __builtin_elementwise_fma(x, y, c)\n"
        "#else\n#define {0}(c, x, y) {1}\n#endif\n",
        step_name(kernel), text);
  };
  switch (kernel.step) {
    case GemmStep::Multiply: return fmt::format("#define {}(c, x, y) ((c) + (x) * (y))\n", step_name(kernel));
    case GemmStep::Fma: {
      const char type = kernel.accumulator == f64 ? 'd' : 's';
      // Written with vector operators it would not become an fma under -ffp-contract=off.
      if (kernel.bytes == 32) {
        return fma(fmt::format("__builtin_ia32_vfmaddp{}256(x, y, c)", type));
      }
      return fma(fmt::format("__builtin_ia32_vfmaddp{}512_mask(x, y, c, -1, 4)", type));
    }
    case GemmStep::Bf16Pairs:
      return either("__builtin_ia32_dpbf16ps_v16sf(c, (pairs)(x), (pairs)(y))",
                    "({ vec sum = c; asm(\"vdpbf16ps %2, %1, %0\" : \"+v\"(sum) : \"v\"(x), \"v\"(y)); sum; })");
    case GemmStep::Bf16Tiles: return tile_definitions(step_name(kernel), "tdpbf16ps");
    case GemmStep::Int8Tiles: return tile_definitions(step_name(kernel), kernel.element == u8 ? "tdpbuud" : "tdpbssd");
    case GemmStep::Int16Pairs: break;
  }
  if (kernel.vnni) {
    return either("(vec)__builtin_ia32_vpdpwssd_v16si((sums)(c), (sums)(x), (sums)(y))",
                  "(vec)__builtin_ia32_vpdpwssd512((sums)(c), (sums)(x), (sums)(y))");
  }
  if (kernel.bytes == 32) {
    const std::string text = "((c) + (vec)__builtin_ia32_pmaddwd256((pairs)(x), (pairs)(y)))";
    return either(text, text);
  }
  return either("((c) + (vec)__builtin_ia32_pmaddwd512_mask((pairs)(x), (pairs)(y), (sums){}, -1))",
                "((c) + (vec)__builtin_ia32_pmaddwd512((pairs)(x), (pairs)(y)))");
}

std::string step_name(const GemmKernel& kernel) {
  return fmt::format("gemm_step_{}_{}", kernel.code(), kernel.accumulator.name());
}

}  // namespace tilewright
