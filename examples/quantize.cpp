// Quantization to 8-bit floats: a scale per 1x128 or 128x128 block, and SwiGLU fused with the former.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr double e4m3_largest = 448;
constexpr double amax_floor = 1e-4;  // of the largest magnitude of a block
constexpr int64_t group = 128;       // columns per scale

// The scale `sf` and its inverse for the largest magnitude of a block. Rounded up to a power of two, both are exact;
// else they are two divisions, which do not multiply to one exactly.
std::pair<Value, Value> scales(const Operand& largest, bool power_of_two) {
  Value amax = max(largest, amax_floor);
  if (!power_of_two) {
    Value sf = amax / e4m3_largest;
    Value inverse = e4m3_largest / amax;
    return {sf, inverse};
  }
  Value exponent = ((reinterpret(amax / e4m3_largest, i32) - 1) >> 23) + 1 - 127;
  Value sf = reinterpret((exponent + 127) << 23, f32);
  Value inverse = reinterpret((127 - exponent) << 23, f32);
  return {sf, inverse};
}

Program per_token_cast(Value T, Value H, int64_t block_T, DType dtype, bool power_of_two) {
  Tensor X("X", {T, H}, dtype), Q("Q", {T, H}, e4m3), SF("SF", {T, ceildiv(H, group)}, f32);
  return prim_func("per_token_cast", {X, Q, SF}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(H, group), ceildiv(T, block_T)}, {.threads = 128})) {
      auto x = alloc_fragment({block_T, group}, f32);
      auto largest = alloc_fragment({block_T}, f32);
      copy(X(by * block_T, bx * group), x);
      reduce_absmax(x, largest, {.dim = 1});
      for (auto i : Parallel(block_T)) {
        auto [sf, inverse] = scales(largest(i), power_of_two);
        SF(by * block_T + i, bx) = sf;
        largest(i) = inverse;
      }
      for (auto [i, j] : Parallel(block_T, group)) x(i, j) = x(i, j) * largest(i);
      copy(x, Q(by * block_T, bx * group));
    }
  });
}

Program per_block_cast(Value T, Value H, int64_t threads, DType dtype, bool power_of_two) {
  Tensor X("X", {T, H}, dtype), Q("Q", {T, H}, e4m3), SF("SF", {ceildiv(T, group), ceildiv(H, group)}, f32);
  return prim_func("per_block_cast", {X, Q, SF}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(H, group), ceildiv(T, group)}, {.threads = threads})) {
      auto x = alloc_fragment({group, group}, f32);
      auto row_largest = alloc_fragment({group}, f32);
      auto largest = alloc_fragment({1}, f32);
      copy(X(by * group, bx * group), x);
      reduce_absmax(x, row_largest, {.dim = 1});
      reduce_max(row_largest, largest, {.dim = 0});
      auto [sf, inverse] = scales(largest(0), power_of_two);
      SF(by, bx) = sf;
      for (auto [i, j] : Parallel(group, group)) x(i, j) = x(i, j) * inverse;
      copy(x, Q(by * group, bx * group));
    }
  });
}

// X = [gate | up]; act = silu(min(gate, limit)) * clamp(up, -limit, limit) stays in float32.
Program swiglu_quantize(Value T, Value H, int64_t block_T, DType dtype) {
  Tensor X("X", {T, H * 2}, dtype), Q("Q", {T, H}, e4m3), SF("SF", {T, ceildiv(H, group)}, f32);
  Value limit = Scalar("limit", f32);
  return prim_func("swiglu_quantize", {X, limit, Q, SF}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(H, group), ceildiv(T, block_T)}, {.threads = 128})) {
      auto act = alloc_fragment({block_T, group}, f32);
      auto largest = alloc_fragment({block_T}, f32);
      for (auto [i, j] : Parallel(block_T, group)) {
        Value t = by * block_T + i;
        Value h = bx * group + j;
        Value gate = min(cast(X(t, h), f32), limit);
        Value up = clamp(cast(X(t, h + H), f32), -limit, limit);
        act(i, j) = if_then_else(h < H, gate / (1 + exp(-gate)) * up, 0.0);
      }
      reduce_absmax(act, largest, {.dim = 1});
      for (auto i : Parallel(block_T)) {
        auto [sf, inverse] = scales(largest(i), false);
        SF(by * block_T + i, bx) = sf;
        largest(i) = inverse;
      }
      for (auto [i, j] : Parallel(block_T, group)) act(i, j) = act(i, j) * largest(i);
      copy(act, Q(by * block_T, bx * group));
    }
  });
}

// ---- references

// The nearest value of the format, ties to the even mantissa, beyond the largest the largest.
double nearest_e4m3(double x) {
  if (x == 0 || std::isnan(x)) return x;
  const int exponent = std::max(std::ilogb(x), -6);  // below 2^-6 the step stays 2^-9
  const double step = std::ldexp(1, exponent - 3);
  return std::clamp(std::nearbyint(x / step) * step, -e4m3_largest, e4m3_largest);
}

// The formula in float32, one rounding per operation.
std::pair<float, float> reference_scales(float largest, bool power_of_two) {
  const float amax = std::max(largest, static_cast<float>(amax_floor));
  if (!power_of_two) return {amax / 448.0F, 448.0F / amax};
  int exponent = 0;
  const float fraction = std::frexp(amax / 448.0F, &exponent);  // in [0.5, 1)
  if (fraction == 0.5F) --exponent;
  return {std::ldexp(1.0F, exponent), std::ldexp(1.0F, -exponent)};
}

// Exact: maxima have no rounding, and the other operations round once, as the formula says.
Check check_cast(const std::vector<NDArray>& arrays, int64_t max_elements, int64_t block_rows, bool power_of_two) {
  const Elements X(arrays[0]), Q(arrays[1]), SF(arrays[2]);
  const int64_t T = arrays[0].shape(0), H = arrays[0].shape(1), columns = arrays[2].shape(1);
  Check check;
  for (const int64_t at : sample(SF.size(), std::max<int64_t>(1, max_elements / (group * block_rows)))) {
    const int64_t t0 = at / columns * block_rows, t1 = std::min(T, t0 + block_rows);
    const int64_t h0 = at % columns * group, h1 = std::min(H, h0 + group);
    double largest = 0;
    for (int64_t t = t0; t < t1; ++t) {
      for (int64_t h = h0; h < h1; ++h) largest = std::max(largest, std::abs(X[t * H + h]));
    }
    const auto [sf, inverse] = reference_scales(static_cast<float>(largest), power_of_two);
    check.compare(SF[at], sf, 0, [&] { return element_name("SF", {arrays[2].shape(0), columns}, at); });
    for (int64_t t = t0; t < t1; ++t) {
      for (int64_t h = h0; h < h1; ++h) {
        const float scaled = static_cast<float>(X[t * H + h]) * inverse;
        check.compare(Q[t * H + h], nearest_e4m3(scaled), 0, [&] { return element_name("Q", {T, H}, t * H + h); });
      }
    }
  }
  return check;
}

// Bound with u = 2^-24: exp within 0.9 ulp (2 u), a sum, a division and a product make 5 u of an activation, and so of
// the largest. A scale adds a division. A quantized value adds those of the two and a product: 12 u, then one rounding.
Check check_swiglu(const std::vector<NDArray>& arrays, int64_t max_elements, double limit) {
  const Elements X(arrays[0]), Q(arrays[1]), SF(arrays[2]);
  const int64_t T = arrays[1].shape(0), H = arrays[1].shape(1), columns = arrays[2].shape(1);
  const double u = unit_roundoff(f32);
  Check check;
  for (const int64_t at : sample(SF.size(), std::max<int64_t>(1, max_elements / group))) {
    const int64_t t = at / columns, h0 = at % columns * group, h1 = std::min(H, h0 + group);
    std::vector<double> act;
    double largest = amax_floor;
    for (int64_t h = h0; h < h1; ++h) {
      const double gate = std::min(X[t * 2 * H + h], limit), up = std::clamp(X[t * 2 * H + H + h], -limit, limit);
      act.push_back(gate / (1 + std::exp(-gate)) * up);
      largest = std::max(largest, std::abs(act.back()));
    }
    check.compare(SF[at], largest / e4m3_largest, 6 * u * largest / e4m3_largest, [&] {
      return element_name("SF", {T, columns}, at);
    });
    for (int64_t h = h0; h < h1; ++h) {
      const double scaled = act[static_cast<size_t>(h - h0)] * e4m3_largest / largest;
      const double bound = 12 * u * std::abs(scaled);
      check.compare(Q[t * H + h], scaled, bound + rounding_error(e4m3, std::abs(scaled) + bound), [&] {
        return element_name("Q", {T, H}, t * H + h);
      });
    }
  }
  return check;
}

// ---- cases

std::string shape_text(int64_t T, int64_t H, DType dtype, const char* note) {
  return std::to_string(T) + "x" + std::to_string(H) + " " + dtype.name() + note;
}

Case cast_case(bool per_token, int64_t T, int64_t H, DType dtype, bool power_of_two, bool is_dynamic,
               int64_t threads = 128) {
  const Value rows = is_dynamic ? dynamic("T") : Value(T), columns = is_dynamic ? dynamic("H") : Value(H);
  const int64_t block_rows = per_token ? 1 : group, sf_columns = ceildiv(H, group);
  // Magnitudes far apart, so that small values meet the small steps of the format.
  const LazyArray x({T, H}, dtype, [=](const NDArray& array) {
    random_array({T, H}, dtype, 51, -1, 1).fill(array);
    for_each_part(ceildiv(T * H, 7), [&](int64_t begin, int64_t end) {
      for (int64_t i = 7 * begin; i < std::min(T * H, 7 * end); i += 7)
        array.set_float({i / H, i % H}, 1e-3 * array.get_float({i / H, i % H}));
    });
  });
  Case c{.shape = shape_text(T, H, dtype, power_of_two ? " power of 2" : "") + (is_dynamic ? " dynamic" : ""),
         .program = per_token ? per_token_cast(rows, columns, 32, dtype, power_of_two)
                              : per_block_cast(rows, columns, threads, dtype, power_of_two),
         .arguments = {x, output_array({T, H}, e4m3), output_array({ceildiv(T, block_rows), sf_columns}, f32)},
         .check = [=](const auto& arrays, int64_t n) { return check_cast(arrays, n, block_rows, power_of_two); },
         .elementwise = true};
  c.bytes = static_cast<double>(T * H) * (dtype.storage_bits() / 8 + 1) +
            4.0 * static_cast<double>(ceildiv(T, block_rows) * sf_columns);
  c.peer = Peer::copy();
  return c;
}

Case swiglu_case(int64_t T, int64_t H, DType dtype, double limit, bool is_dynamic) {
  const Value rows = is_dynamic ? dynamic("T") : Value(T), columns = is_dynamic ? dynamic("H") : Value(H);
  Case c{.shape = shape_text(T, H, dtype, is_dynamic ? " dynamic" : ""),
         .program = swiglu_quantize(rows, columns, 32, dtype),
         .arguments = {random_array({T, 2 * H}, dtype, 52, -4, 4), limit, output_array({T, H}, e4m3),
                       output_array({T, ceildiv(H, group)}, f32)},
         .check = [limit](const auto& arrays, int64_t n) { return check_swiglu(arrays, n, limit); },
         .elementwise = true};
  c.bytes = static_cast<double>(T * H) * (dtype.storage_bits() / 4 + 1) + 4.0 * static_cast<double>(T * H / group);
  c.peer = Peer::copy();
  return c;
}

std::vector<Case> odd_casts(bool per_token) {
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16}) {
    for (const bool power_of_two : {false, true}) {
      for (const bool is_dynamic : {false, true}) {
        for (const auto& [T, H] : {std::pair<int64_t, int64_t>{1, 1}, {17, 129}, {127, 65}, {130, 256}}) {
          out.push_back(cast_case(per_token, T, H, dtype, power_of_two, is_dynamic));
        }
      }
    }
  }
  return out;
}

}  // namespace

std::vector<Case> per_token_cast_cases(Size size) {
  if (size == Size::Gpu) return {cast_case(true, 16384, 7168, bf16, false, false)};
  if (size == Size::Odd) return odd_casts(true);
  return {cast_case(true, 4096, 4096, bf16, false, false)};
}

std::vector<Case> per_block_cast_cases(Size size) {
  if (size == Size::Gpu) return {cast_case(false, 16384, 7168, bf16, true, false, 256)};
  if (size == Size::Odd) return odd_casts(false);
  return {cast_case(false, 4096, 4096, bf16, true, false)};
}

std::vector<Case> swiglu_quantize_cases(Size size) {
  if (size == Size::Gpu) return {swiglu_case(24576, 2048, bf16, 10, false)};
  if (size == Size::Benchmark) return {swiglu_case(4096, 2048, bf16, 10, false)};
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16}) {
    for (const bool is_dynamic : {false, true}) {
      for (const auto& [T, H] : {std::pair<int64_t, int64_t>{1, 1}, {17, 129}, {127, 65}, {33, 256}}) {
        out.push_back(swiglu_case(T, H, dtype, 1.5, is_dynamic));
      }
    }
  }
  return out;
}

}  // namespace examples
