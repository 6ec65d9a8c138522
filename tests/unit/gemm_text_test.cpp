// Gemm texts compiled by the host compiler and compared with sums in double, within the bound that gemm_text.h states.
#include "codegen/cpu/gemm_text.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "runtime/host_compiler.h"
#include "runtime/processor.h"
#include "scalar/pieces.h"
#include "scalar/text.h"

namespace tilewright {
namespace {

constexpr VectorFeatures kPortable{};
constexpr VectorFeatures kAvx2{.avx2 = true, .fma = true, .f16c = true};
constexpr VectorFeatures kAvx512{.avx2 = true, .fma = true, .f16c = true, .avx512 = true};
constexpr VectorFeatures kNative{true, true, true, true, true, true, true};

// Features that the processor lacks are left out: the test then repeats a smaller set.
VectorFeatures available(VectorFeatures wanted) {
  const runtime::ProcessorFeatures has = runtime::detect_processor();
  return {wanted.avx2 && has.avx2,
          wanted.fma && has.fma,
          wanted.f16c && has.f16c,
          wanted.avx512 && has.avx512,
          wanted.avx512_bf16 && has.avx512_bf16,
          wanted.avx512_vnni && has.avx512_vnni,
          wanted.amx && has.amx};
}

std::vector<std::string> flags_for(const VectorFeatures& f, bool optimized) {
  runtime::ProcessorFeatures processor{f.avx2, f.fma, f.f16c, f.avx512, f.avx512_bf16, f.avx512_vnni};
  processor.amx = f.amx;
  std::vector<std::string> flags = runtime::kernel_flags();
  for (const std::string& flag : processor.compiler_flags()) flags.push_back(flag);
  // The kernels' -O3 takes three times as long to compile; LongSums and RealTiles keep it.
  if (!optimized) flags.push_back("-O1");
  return flags;
}

class Library {
 public:
  Library(const std::string& text, const VectorFeatures& features, bool optimized) {
    const std::string bytes = runtime::compile_shared_object(
        runtime::host_compiler(),
        {.text = text, .flags = flags_for(features, optimized), .dump_name = "gemm_text_test"});
    char path[] = "/tmp/tilewright_gemm_test_XXXXXX";
    const int file = mkstemp(path);
    EXPECT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(file);
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
    unlink(path);
  }
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  template <typename Function>
  Function* symbol(const std::string& name) const {
    auto* function = reinterpret_cast<Function*>(dlsym(handle_, name.c_str()));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

 private:
  void* handle_ = nullptr;
};

// Bytes that end where no page is mapped: reading or writing past the end dies.
class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t size) : size_(size) {
    const int64_t page = sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page;
    mapped_ = (pages + 1) * page;
    base_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + pages * page, page, PROT_NONE);
    data_ = base_ + pages * page - size;
    std::memset(data_, 0xff, size);
  }
  ~GuardedBytes() { munmap(base_, mapped_); }
  GuardedBytes(const GuardedBytes&) = delete;
  uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  uint8_t *base_, *data_;
  int64_t size_, mapped_;
};

template <typename T>
T at(const uint8_t* data, int64_t offset) {
  T value;
  std::memcpy(&value, data + offset * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void put(uint8_t* data, int64_t offset, T value) {
  std::memcpy(data + offset * sizeof(T), &value, sizeof(T));
}

uint8_t nibble(const uint8_t* data, int64_t offset) { return data[offset / 2] >> (offset % 2 * 4) & 15; }

// Integers of up to 53 bits are exact here; the tests keep 64-bit ones small.
double read(DType type, const uint8_t* data, int64_t offset) {
  if (type == f64) return at<double>(data, offset);
  if (type == f32) return at<float>(data, offset);
  if (type == tf32) return scalar::round_tf32(at<float>(data, offset));
  if (type == f16) return scalar::load_f16(at<uint16_t>(data, offset));
  if (type == bf16) return scalar::load_bf16(at<uint16_t>(data, offset));
  if (type == e4m3) return scalar::load_e4m3(data[offset]);
  if (type == e5m2) return scalar::load_e5m2(data[offset]);
  if (type == e8m0) return scalar::load_e8m0(data[offset]);
  if (type == e2m1) return scalar::load_e2m1(nibble(data, offset));
  if (type == u4) return nibble(data, offset);
  if (type == i4) return (nibble(data, offset) ^ 8) - 8;
  if (type.is_bool() || type == u8) return data[offset];
  if (type == i8) return at<int8_t>(data, offset);
  if (type == i16) return at<int16_t>(data, offset);
  if (type == u16) return at<uint16_t>(data, offset);
  if (type == i32) return at<int32_t>(data, offset);
  if (type == u32) return at<uint32_t>(data, offset);
  return static_cast<double>(at<int64_t>(data, offset));
}

void write_value(DType type, uint8_t* data, int64_t offset, double value) {
  if (type == f64) return put(data, offset, value);
  if (type == f32 || type == tf32) return put(data, offset, static_cast<float>(value));
  const float x = static_cast<float>(value);
  if (type == f16) return put(data, offset, scalar::store_f16(x));
  if (type == bf16) return put(data, offset, scalar::store_bf16(x));
  if (type == e4m3) return put(data, offset, scalar::store_e4m3(x));
  if (type == e5m2) return put(data, offset, scalar::store_e5m2(x));
  if (type == e8m0) return put(data, offset, scalar::store_e8m0(x));
  const int64_t whole = static_cast<int64_t>(value);
  if (type.is_packed()) {
    const uint8_t code = type == e2m1 ? scalar::store_e2m1(x) : static_cast<uint8_t>(whole & 15);
    const int shift = offset % 2 * 4;
    data[offset / 2] = static_cast<uint8_t>((data[offset / 2] & ~(15 << shift)) | code << shift);
    return;
  }
  if (type.storage_bits() == 8) return put(data, offset, static_cast<uint8_t>(whole));
  if (type.bits == 16) return put(data, offset, static_cast<uint16_t>(whole));
  if (type.bits == 32) return put(data, offset, static_cast<uint32_t>(whole));
  put(data, offset, whole);
}

// A value that `type` holds: the whole range of small integers, floats around 1.
double random_value(DType type, std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return static_cast<double>(std::uniform_int_distribution<int64_t>(low, high)(random));
  };
  if (type.is_bool()) return pick(0, 1);
  if (type == e8m0) return std::exp2(pick(-2, 2));
  if (type.is_int()) {
    const int bits = std::min<int>(type.bits, 20);  // products of longer ones are summed modulo 2^32 below
    return type.is_signed() ? pick(-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1)
                            : pick(0, (int64_t{1} << bits) - 1);
  }
  uint8_t bits[8] = {};
  write_value(type, bits, 0, std::uniform_real_distribution<double>(-2, 2)(random));
  return read(type, bits, 0);
}

// Relative error of one rounding to the type, and what a subnormal may lose.
double last_rounding(DType type, double value) {
  if (type == f16) return std::abs(value) * 0x1p-11 + 0x1p-25;
  if (type == bf16) return std::abs(value) * 0x1p-8;
  if (type == tf32) return std::abs(value) * 0x1p-11;
  if (type == e4m3) return std::abs(value) * 0x1p-4 + 0x1p-10;
  if (type == e5m2) return std::abs(value) * 0x1p-3 + 0x1p-17;
  return 0;
}

struct Operand {
  DType type;
  OperandLayout layout;
  int64_t rows, columns;
  std::vector<double> values;
  std::unique_ptr<GuardedBytes> bytes;
  std::vector<bool> owned;  // offsets that are elements

  double& value(int64_t row, int64_t column) { return values[row * columns + column]; }
};

constexpr int64_t kOpenStride = 403;  // what a layout with a run-time row stride gets

Operand make_operand(DType type, OperandLayout layout, int64_t rows, int64_t columns, std::mt19937& random) {
  if (layout.form == OperandLayout::Form::Strided && layout.row_stride == 0) layout.row_stride = kOpenStride;
  const int64_t elements = layout_elements(layout, rows, columns);
  Operand operand{type,
                  layout,
                  rows,
                  columns,
                  std::vector<double>(rows * columns),
                  std::make_unique<GuardedBytes>(bytes_of(layout.stored, elements)),
                  std::vector<bool>(elements)};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t offset = layout_offset(layout, rows, columns, r, c);
      operand.value(r, c) = random_value(type, random);
      operand.owned[offset] = true;
      write_value(layout.stored, operand.bytes->data(), offset, operand.value(r, c));
    }
  }
  return operand;
}

using Product = void(const void*, const void*, void*);

void expect_product(const GemmSpec& s, Product* run, const std::string& name) {
  std::mt19937 random(7);
  Operand a = make_operand(s.a, s.a_layout, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, random);
  Operand b = make_operand(s.b, s.b_layout, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, random);
  Operand c = make_operand(s.c, s.c_layout, s.m, s.n, random);
  run(a.bytes->data(), b.bytes->data(), c.bytes->data());
  const double unit = s.c == f64 ? 0x1p-52 : 0x1p-23;
  int wrong = 0;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = s.clear ? 0 : c.value(i, j), size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double product =
            (s.transpose_a ? a.value(k, i) : a.value(i, k)) * (s.transpose_b ? b.value(j, k) : b.value(k, j));
        sum += product;
        size += std::abs(product);
      }
      const int64_t offset = layout_offset(c.layout, s.m, s.n, i, j);
      const double got = read(c.layout.stored, c.bytes->data(), offset);
      double bound = 0;
      if (s.c.is_float()) {
        bound = (s.k + 2) * unit * size + (s.clear ? 0 : std::abs(c.value(i, j)) * unit);
        bound += last_rounding(s.c, sum) * 1.001;
      } else {
        uint8_t wrapped[8];
        write_value(s.c, wrapped, 0, sum);
        sum = read(s.c, wrapped, 0);
      }
      if (!(std::abs(got - sum) <= bound) && ++wrong < 4) {
        ADD_FAILURE() << name << ": C(" << i << ", " << j << ") = " << got << ", expected " << sum << " within "
                      << bound;
      }
    }
  }
  // What a strided C leaves out belongs to others.
  if (c.layout.form == OperandLayout::Form::Strided && !c.layout.stored.is_packed()) {
    const int bytes = c.layout.stored.storage_bits() / 8;
    for (int64_t e = 0; e < static_cast<int64_t>(c.owned.size()); ++e) {
      for (int byte = 0; byte < bytes && !c.owned[e]; ++byte)
        ASSERT_EQ(c.bytes->data()[e * bytes + byte], 0xff) << name;
    }
  }
}

bool has_open_stride(const OperandLayout& layout) {
  return layout.form == OperandLayout::Form::Strided && layout.row_stride == 0;
}

// What the instructions of AMX do (Intel SDM), for processors that have none: rows and bytes of each tile from its
// configuration, what is beyond them zero; pairs of bf16 as two sums, each by one rounding a product.
constexpr std::string_view kTilesInSoftware = R"text(
#include <math.h>
#include <string.h>
static __thread struct { uint8_t shape[64]; uint8_t at[8][16][64]; } tw_tiles;
static inline int tw_tile_rows(int n) { return tw_tiles.shape[48 + n]; }
static inline int tw_tile_bytes(int n) { return tw_tiles.shape[16 + 2 * n]; }
static inline void tw_tile_move(int n, char* at, int64_t stride, bool to) {
  if (!tw_tile_rows(n) || tw_tiles.shape[0] != 1) __builtin_trap();
  if (!to) memset(tw_tiles.at[n], 0, sizeof tw_tiles.at[n]);
  for (int r = 0; r < tw_tile_rows(n); ++r) {
    char* row = at + r * stride;
    if (to) memcpy(row, tw_tiles.at[n][r], tw_tile_bytes(n)); else memcpy(tw_tiles.at[n][r], row, tw_tile_bytes(n));
  }
}
static inline float tw_of_bf16(const uint8_t* at) {
  uint16_t half; uint32_t bits; float out;
  memcpy(&half, at, 2), bits = (uint32_t)half << 16, memcpy(&out, &bits, 4);
  return out;
}
enum { tdpbf16ps, tdpbssd, tdpbuud };
static inline void tw_tile_multiply(int what, int c, int a, int b) {
  if (tw_tile_rows(c) != tw_tile_rows(a) || tw_tile_bytes(a) / 4 != tw_tile_rows(b) || tw_tile_bytes(b) != tw_tile_bytes(c))
    __builtin_trap();
  for (int i = 0; i < tw_tile_rows(c); ++i)
    for (int j = 0; j < tw_tile_bytes(c) / 4; ++j) {
      float sum, pair[2] = {0, 0}; uint32_t whole;
      memcpy(&sum, &tw_tiles.at[c][i][4 * j], 4), memcpy(&whole, &tw_tiles.at[c][i][4 * j], 4);
      for (int k = 0; k < tw_tile_bytes(a) / 4; ++k) {
        const uint8_t *x = &tw_tiles.at[a][i][4 * k], *y = &tw_tiles.at[b][k][4 * j];
        for (int e = 0; e < 2; ++e)
          pair[e] = fmaf(tw_of_bf16(x + 2 * e), tw_of_bf16(y + 2 * e), pair[e]);
        for (int e = 0; e < 4; ++e)
          whole += what == tdpbuud ? (uint32_t)x[e] * y[e] : (uint32_t)((int8_t)x[e] * (int8_t)y[e]);
      }
      sum += pair[0] + pair[1];
      if (what == tdpbf16ps) memcpy(&tw_tiles.at[c][i][4 * j], &sum, 4);
      else memcpy(&tw_tiles.at[c][i][4 * j], &whole, 4);
    }
}
#define tw_tile_configure(from) memcpy(tw_tiles.shape, from, 64)
#define tw_tile_zero(n) memset(tw_tiles.at[n], 0, sizeof tw_tiles.at[n])
#define tw_tile_load(n, from, bytes) tw_tile_move(n, (char*)(from), bytes, false)
#define tw_tile_store(n, to, bytes) tw_tile_move(n, (char*)(to), bytes, true)
#define tw_tile_product(name, c, a, b) tw_tile_multiply(name, c, a, b)
#define tw_tile_release() memset(&tw_tiles, 0, sizeof tw_tiles)
)text";

// Compiles all specs in one file and checks each.
void check(const std::vector<GemmSpec>& specs, const VectorFeatures& features, bool optimized = false,
           std::string_view before = "") {
  std::set<std::string> pieces, names;
  std::string definitions, callers;
  for (size_t i = 0; i < specs.size(); ++i) {
    const GemmSpec& s = specs[i];
    const GemmText text = gemm_text(s);
    pieces.insert(text.pieces.begin(), text.pieces.end());
    if (names.insert(text.name).second) definitions += text.definition;
    callers += fmt::format(
        "extern \"C\" __attribute__((visibility(\"default\"))) void run_{}(const void* a, const void* b, void* c) {{\n "
        " {}{}((const {}*)a, (const {}*)b, ({}*)c",
        i, text.tiles ? "const tw_use_tiles tiles;\n  " : "", text.name, storage_type(s.a_layout.stored),
        storage_type(s.b_layout.stored), storage_type(s.c_layout.stored));
    for (const OperandLayout& layout : {s.a_layout, s.b_layout, s.c_layout}) {
      if (has_open_stride(layout)) callers += fmt::format(", {}", kOpenStride);
    }
    callers += ");\n}\n";
  }
  const Library library(pieces_text(pieces) + std::string(before) + definitions + callers, features, optimized);
  for (size_t i = 0; i < specs.size(); ++i) {
    Product* run = library.symbol<Product>(fmt::format("run_{}", i));
    ASSERT_NE(run, nullptr);
    expect_product(specs[i], run, gemm_text(specs[i]).name);
  }
}

GemmSpec make_spec(int64_t m, int64_t n, int64_t k, DType a, DType b, DType c, const VectorFeatures& features) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  spec.a = a, spec.b = b, spec.c = c;
  spec.features = available(features);
  return spec;
}

GemmSpec with_preferred(GemmSpec spec, VectorAxis axis) {
  const PreferredLayouts preferred = preferred_layouts(spec, axis);
  spec.a_layout = preferred.a, spec.b_layout = preferred.b, spec.c_layout = preferred.c;
  return spec;
}

// Row-major as a program without layouts has it, rows one element apart from touching.
GemmSpec with_rows(GemmSpec spec) {
  spec.a_layout = OperandLayout::strided(spec.a, (spec.transpose_a ? spec.m : spec.k) + 1);
  spec.b_layout = OperandLayout::strided(spec.b, (spec.transpose_b ? spec.k : spec.n) + 1);
  spec.c_layout = OperandLayout::strided(spec.c, spec.n + 1);
  return spec;
}

class GemmTextTest : public testing::TestWithParam<VectorFeatures> {};
class GemmTextTypesTest : public GemmTextTest {};
class GemmTextLayoutsTest : public GemmTextTest {};

std::string features_name(const testing::TestParamInfo<VectorFeatures>& info) {
  const VectorFeatures& features = info.param;
  return features.avx512_bf16 ? "native" : features.avx512 ? "avx512" : features.avx2 ? "avx2" : "portable";
}

// Types and layouts do not ask which set of 512 bits; leaving one out halves the time.
INSTANTIATE_TEST_SUITE_P(Features, GemmTextTest, testing::Values(kPortable, kAvx2, kAvx512, kNative), features_name);
INSTANTIATE_TEST_SUITE_P(Features, GemmTextTypesTest, testing::Values(kPortable, kAvx2, kNative), features_name);
INSTANTIATE_TEST_SUITE_P(Features, GemmTextLayoutsTest, testing::Values(kPortable, kNative), features_name);

TEST_P(GemmTextTest, EveryShapeInThePreferredLayouts) {
  std::vector<GemmSpec> specs;
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 127, 17}, {17, 1, 127}, {127, 17, 1}, {64, 96, 33}, {29, 50, 40}}) {
    for (DType type : {f32, bf16}) {
      GemmSpec spec = make_spec(m, n, k, type, type, f32, GetParam());
      specs.push_back(with_preferred(spec, VectorAxis::N));
      spec.clear = true;
      specs.push_back(with_preferred(spec, VectorAxis::M));
    }
  }
  check(specs, available(GetParam()));
}

TEST_P(GemmTextLayoutsTest, EveryTransposition) {
  std::vector<GemmSpec> specs;
  for (int bits = 0; bits < 4; ++bits) {
    for (DType type : {f32, bf16, i8}) {
      GemmSpec spec = make_spec(19, 37, 21, type, type, type == i8 ? i32 : f32, GetParam());
      spec.transpose_a = bits & 1, spec.transpose_b = bits & 2;
      specs.push_back(with_preferred(spec, VectorAxis::N));
      specs.push_back(type == bf16 ? with_preferred(spec, VectorAxis::M) : with_rows(spec));
    }
  }
  check(specs, available(GetParam()));
}

TEST_P(GemmTextTypesTest, EveryType) {
  const std::vector<std::array<DType, 3>> types = {
      {f16, f16, f32},   {f16, f16, f16},  {bf16, bf16, bf16}, {bf16, f16, f32},  {e4m3, e4m3, f32}, {e5m2, e4m3, f32},
      {e2m1, e2m1, f32}, {f16, i4, f32},   {bf16, u4, f32},    {tf32, tf32, f32}, {f64, f64, f64},   {f32, bf16, f64},
      {i8, i8, i32},     {u8, u8, i32},    {u8, i8, i32},      {i4, i4, i32},     {u4, i8, i32},     {boolean, i8, i32},
      {i16, i16, i32},   {u16, i8, i32},   {i32, i32, i32},    {i32, i32, i64},   {u32, u8, u32},    {i8, i8, i8},
      {e4m3, f16, e4m3}, {f32, f32, e5m2}, {f32, f32, tf32},   {i8, f16, f32},    {e8m0, f32, f32},  {i8, i16, i64}};
  std::vector<GemmSpec> specs;
  for (const auto& [a, b, c] : types) {
    ASSERT_FALSE(gemm_unsupported(a, b, c));
    const GemmSpec spec = make_spec(18, 35, 23, a, b, c, GetParam());
    specs.push_back(with_preferred(spec, specs.size() / 2 % 2 ? VectorAxis::N : VectorAxis::M));
    specs.push_back(with_rows(spec));
  }
  check(specs, available(GetParam()));
}

TEST_P(GemmTextLayoutsTest, EveryMixtureOfLayouts) {
  std::vector<GemmSpec> specs;
  for (DType type : {f32, bf16}) {
    GemmSpec spec = make_spec(32, 64, 30, type, type, f32, GetParam());
    const PreferredLayouts n = preferred_layouts(spec, VectorAxis::N), m = preferred_layouts(spec, VectorAxis::M);
    const OperandLayout rows_a = OperandLayout::strided(type, 30), rows_b = OperandLayout::strided(type, 64);
    const OperandLayout columns_a = OperandLayout::strided(type, 1, 33), columns_b = OperandLayout::strided(f32, 1, 30);
    const OperandLayout odd = OperandLayout::panels(type, 1, 5, 3);
    for (const OperandLayout& c : {n.c, m.c, OperandLayout::strided(f32, 64), OperandLayout::strided(f32, 1, 32),
                                   OperandLayout::strided(f32, 130, 2), OperandLayout::panels(f32, 1, 7, 2)}) {
      int turn = static_cast<int>(specs.size());
      const std::vector<std::array<OperandLayout, 2>> operands = {
          {n.a, n.b}, {m.a, m.b}, {rows_a, rows_b}, {columns_a, columns_b}, {odd, n.b}, {m.a, odd}};
      for (int i = 0; i < 3; ++i, turn += 2) {
        spec.a_layout = operands[(turn + i) % 6][0], spec.b_layout = operands[(turn + i) % 6][1], spec.c_layout = c;
        specs.push_back(spec);
      }
    }
  }
  check(specs, available(GetParam()));
}

TEST_P(GemmTextTest, RowStridesKnownOnlyAtRunTime) {
  GemmSpec spec = make_spec(21, 34, 15, f32, f16, f32, GetParam());
  spec.a_layout = OperandLayout::strided(f32, 0), spec.b_layout = OperandLayout::strided(f16, 0);
  spec.c_layout = OperandLayout::strided(f32, 0);
  GemmSpec only_b = with_rows(spec);
  only_b.b_layout = spec.b_layout;
  check({spec, only_b}, available(GetParam()));
}

// Long sums are cut into runs; C is then read between them.
TEST_P(GemmTextTest, LongSums) {
  std::vector<GemmSpec> specs;
  for (bool clear : {false, true}) {
    GemmSpec spec = make_spec(15, 32, 1100, f32, f32, f32, GetParam());
    spec.clear = clear;
    specs.push_back(with_preferred(spec, VectorAxis::N));
    spec.a = spec.b = bf16;
    spec.k = 1101;
    specs.push_back(with_preferred(spec, VectorAxis::N));
    spec.k = 1100;
    specs.push_back(with_preferred(spec, VectorAxis::M));
  }
  check(specs, available(GetParam()), true);
}

TEST_P(GemmTextTest, RealTiles) {
  GemmSpec square = make_spec(128, 128, 64, f16, f16, f32, GetParam());
  GemmSpec scores = make_spec(64, 128, 64, bf16, bf16, f32, GetParam());
  scores.transpose_b = scores.clear = true;
  const GemmSpec output = make_spec(64, 64, 128, bf16, bf16, f32, GetParam());
  check({with_preferred(square, VectorAxis::N), with_preferred(scores, VectorAxis::M),
         with_preferred(output, VectorAxis::M)},
        available(GetParam()), true);
}

// Without vdpbf16ps subnormals count; with it they may read as zero, as the header says.
// On any processor: the loops over tiles with instructions in software.
TEST(GemmTilesTest, AreRightInSoftware) {
  VectorFeatures features = available(kAvx2);
  std::vector<GemmSpec> specs;
  const auto add = [&](int64_t m, int64_t n, int64_t k, DType type, DType sum) {
    GemmSpec spec = make_spec(m, n, k, type, type, sum, kPortable);
    spec.features = features;
    spec.features.avx512 = spec.features.avx512_bf16 = spec.features.avx512_vnni = spec.features.amx = true;
    for (VectorAxis axis : {VectorAxis::N, VectorAxis::M})
      for (bool clear : {false, true}) {
        spec.clear = clear;
        specs.push_back(with_preferred(spec, axis));
        EXPECT_NE(gemm_text(specs.back()).kernel.find("_amx"), std::string::npos) << gemm_text(specs.back()).kernel;
      }
    spec.transpose_a = true;
    specs.push_back(with_preferred(spec, VectorAxis::N));
    spec.transpose_b = true;
    specs.push_back(with_rows(spec));
    spec.fetch_lines = 0;
  };
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{1, 16, 32}, {64, 96, 64}, {49, 50, 32}, {33, 17, 96}})
    add(m, n, k, bf16, f32);
  add(40, 64, 1152, bf16, f32);  // in runs along k
  add(31, 40, 64, bf16, bf16);
  for (DType type : {i8, u8}) add(37, 40, 128, type, i32), add(16, 16, 64, type, i32);
  check(specs, features, false, kTilesInSoftware);
}

TEST(GemmTilesTest, OtherShapesAndTypesHaveOtherKernels) {
  const auto kernel = [](int64_t k, DType a, DType b, DType c) {
    GemmSpec spec = make_spec(32, 32, k, a, b, c, kPortable);
    spec.features = kNative;
    return gemm_text(with_preferred(spec, VectorAxis::N)).kernel;
  };
  EXPECT_EQ(kernel(64, bf16, bf16, f32), "avx512_amx, 32 x 32");
  EXPECT_EQ(kernel(48, bf16, bf16, f32), "avx512_bf16, 11 x 32");
  EXPECT_EQ(kernel(64, f16, f16, f32), "avx512_fma, 11 x 32");
  EXPECT_EQ(kernel(64, i8, i8, i32), "avx512_amx_i8, 32 x 32");
  EXPECT_EQ(kernel(32, i8, i8, i32), "avx512_vnni, 11 x 32");
  EXPECT_EQ(kernel(64, u8, i8, i32), "avx512_vnni, 11 x 32");
}

TEST_P(GemmTextTest, SubnormalOperands) {
  GemmSpec spec = make_spec(1, 1, 1, bf16, bf16, f32, GetParam());
  spec.clear = true;
  spec = with_rows(spec);
  const GemmText text = gemm_text(spec);
  const Library library(pieces_text(text.pieces) + text.definition +
                            fmt::format("extern \"C\" __attribute__((visibility(\"default\"))) void run(const void* a, "
                                        "const void* b, void* c) {{ {}((const uint16_t*)a, (const uint16_t*)b, "
                                        "(float*)c); }}",
                                        text.name),
                        spec.features, false);
  const uint16_t a = scalar::store_bf16(0x1p-130f), b = scalar::store_bf16(0x1p100f);
  float c = 1;
  library.symbol<Product>("run")(&a, &b, &c);
  if (spec.features.avx512_bf16) {
    EXPECT_TRUE(c == 0x1p-30f || c == 0);
  } else {
    EXPECT_EQ(c, 0x1p-30f);
  }
}

TEST(GemmTextReportTest, SaysWhichPathsAreSlow) {
  GemmSpec spec = make_spec(26, 64, 32, f16, f16, f32, {});
  spec.features = kNative;
  const GemmText fast = gemm_text(with_preferred(spec, VectorAxis::N));
  EXPECT_EQ(fast.kernel, "avx512_fma, 13 x 32");
  EXPECT_FALSE(fast.packs_a || fast.packs_b || fast.updates_elements);
  const GemmText slow = gemm_text(with_rows(spec));
  EXPECT_TRUE(slow.packs_a && slow.packs_b);
  EXPECT_FALSE(slow.updates_elements);  // f32 in rows of whole panels
  spec.n = 63;
  EXPECT_TRUE(gemm_text(with_rows(spec)).updates_elements);
}

// S = Q K^T written as panels along m is the A of P V without a copy.
TEST_P(GemmTextTest, ChainedGemmsShareALayout) {
  GemmSpec scores = make_spec(64, 96, 40, f32, f32, f32, GetParam());
  scores.transpose_b = true;
  const GemmSpec output = make_spec(64, 40, 96, f32, f32, f32, GetParam());
  EXPECT_EQ(preferred_layouts(scores, VectorAxis::M).c, preferred_layouts(output, VectorAxis::M).a);
  // K and V keep their rows.
  EXPECT_EQ(preferred_layouts(scores, VectorAxis::M).b.form, OperandLayout::Form::Strided);
  EXPECT_EQ(preferred_layouts(output, VectorAxis::M).b.form, OperandLayout::Form::Strided);
}

// AMX reads rows along k alone: V comes to it tile by tile, and no product transposes it.
TEST(GemmLayoutTest, WhatTilesReadAcrossRowsLiesTileByTile) {
  VectorFeatures amx;
  amx.avx2 = amx.fma = amx.avx512 = amx.avx512_bf16 = amx.amx = true;
  GemmSpec output = make_spec(64, 40, 96, bf16, bf16, f32, {});
  output.features = amx;  // the text alone is looked at, whatever this machine has
  const OperandLayout v = preferred_layouts(output, VectorAxis::M).b;
  EXPECT_EQ(v, OperandLayout::panels(bf16, 1, 16, 32));
  const GemmText text = gemm_text(with_preferred(output, VectorAxis::M));
  EXPECT_TRUE(text.tiles && uses_tiles(with_preferred(output, VectorAxis::M)));
  EXPECT_FALSE(text.packs_a || text.packs_b);
}

TEST(GemmLayoutTest, OffsetsAreDistinctAndTheTextAgrees) {
  struct Case {
    OperandLayout layout;
    int64_t rows, columns;
  };
  const std::vector<Case> cases = {
      {OperandLayout::strided(f32, 9), 7, 9},        {OperandLayout::strided(f32, 1, 7), 7, 9},
      {OperandLayout::strided(f32, 40, 3), 7, 9},    {OperandLayout::panels(f32, 1, 4), 7, 9},
      {OperandLayout::panels(f32, 0, 4), 7, 9},      {OperandLayout::panels(bf16, 1, 4, 2), 7, 9},
      {OperandLayout::panels(bf16, 0, 16, 2), 7, 9}, {OperandLayout::panels(i8, 0, 3, 4), 7, 9},
      {OperandLayout::strided(f32, 0), 7, 9}};
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    text += fmt::format(
        "extern \"C\" __attribute__((visibility(\"default\"))) long offset_{}(long r, long c) {{ const long ld = {}; "
        "(void)ld; return {}; }}\n",
        i, kOpenStride, layout_offset_text(cases[i].layout, 7, 9, "r + 1", "c - 1", "ld"));
  }
  const Library library(text, kPortable, false);
  for (size_t i = 0; i < cases.size(); ++i) {
    OperandLayout layout = cases[i].layout;
    if (has_open_stride(layout)) layout.row_stride = kOpenStride;
    auto* offset = library.symbol<long(long, long)>(fmt::format("offset_{}", i));
    std::set<int64_t> seen;
    for (int64_t r = 0; r < 7; ++r) {
      for (int64_t c = 0; c < 9; ++c) {
        const int64_t o = layout_offset(layout, 7, 9, r, c);
        EXPECT_EQ(o, offset(r - 1, c + 1)) << i;
        EXPECT_TRUE(seen.insert(o).second) << i;
        EXPECT_LT(o, layout_elements(layout, 7, 9)) << i;
      }
    }
  }
}

TEST(GemmTextNamesTest, EqualSpecsGiveEqualTextAndOthersOtherNames) {
  std::set<std::string> names;
  std::vector<GemmSpec> specs;
  for (const VectorFeatures& features : {kPortable, kAvx2, kAvx512, kNative}) {
    for (DType type : {f32, bf16}) {
      for (bool clear : {false, true}) {
        GemmSpec spec;
        spec.m = 64, spec.n = 64, spec.k = 32, spec.a = spec.b = type, spec.clear = clear, spec.features = features;
        specs.push_back(with_preferred(spec, VectorAxis::N));
        specs.push_back(with_preferred(spec, VectorAxis::M));
        specs.push_back(with_rows(spec));
      }
    }
  }
  for (const GemmSpec& spec : specs) {
    const GemmText one = gemm_text(spec), two = gemm_text(spec);
    EXPECT_EQ(one.definition, two.definition);
    EXPECT_EQ(one.name, two.name);
    names.insert(one.name);
  }
  // f32 does not use avx512_bf16: there the last two sets of features give one text.
  EXPECT_EQ(names.size(), specs.size() - 6);
}

TEST(GemmTypesTest, RefusesWhatItCannotAccumulate) {
  EXPECT_EQ(*gemm_unsupported(f16, f16, i32), "gemm cannot accumulate products of float16 in int32");
  EXPECT_EQ(*gemm_unsupported(i4, i4, i4), "gemm cannot accumulate in int4");
  EXPECT_EQ(*gemm_unsupported(f64, f64, f32), "gemm in float32 cannot hold every value of float64");
  EXPECT_EQ(*gemm_unsupported(i32, f32, f32), "gemm in float32 cannot hold every value of int32");
  EXPECT_EQ(*gemm_unsupported(pointer, f32, f64), "gemm cannot multiply pointers");
  EXPECT_FALSE(gemm_unsupported(f32, f32, f64));
}

}  // namespace
}  // namespace tilewright
