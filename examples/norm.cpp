// Normalizations along rows: RMSNorm, RMSNorm and SiLU in one program for rows of any length, LayerNorm.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

constexpr double epsilon = 1e-6;
constexpr double log2_e = 1.4426950408889634;  // GPUs have an instruction for powers of two, not for those of e

Program rms_norm(Value M, int64_t N, int64_t block_M, DType dtype) {
  Tensor X("X", {M, N}, dtype), W("W", {N}, dtype), Y("Y", {M, N}, dtype);
  return prim_func("rms_norm", {X, W, Y}, [&] {
    for (auto by : Kernel(ceildiv(M, block_M), {.threads = 128})) {
      auto x = alloc_fragment({block_M, N}, f32);
      auto square = alloc_fragment({block_M, N}, f32);
      auto w = alloc_fragment({N}, f32);
      auto scale = alloc_fragment({block_M}, f32);
      copy(X(by * block_M, 0), x);
      copy(W, w);
      for (auto [i, j] : Parallel(block_M, N)) square(i, j) = x(i, j) * x(i, j);
      reduce_sum(square, scale, {.dim = 1});
      for (auto i : Parallel(block_M)) scale(i) = rsqrt(scale(i) / N + epsilon);
      for (auto [i, j] : Parallel(block_M, N)) x(i, j) = x(i, j) * scale(i) * w(j);
      copy(x, Y(by * block_M, 0));
    }
  });
}

// Two passes over tiles of a row: C may be anything, and known only at the call.
Program rms_norm_silu(Value M, Value C, int64_t block_M, int64_t block_C, DType dtype) {
  Tensor X("X", {M, C}, dtype), W("W", {C}, dtype), Y("Y", {M, C}, dtype);
  return prim_func("rms_norm_silu", {X, W, Y}, [&] {
    for (auto by : Kernel(ceildiv(M, block_M), {.threads = 128})) {
      auto x = alloc_fragment({block_M, block_C}, f32);
      auto w = alloc_fragment({block_C}, f32);
      auto scale = alloc_fragment({block_M}, f32);
      clear(scale);
      for (auto k : Pipelined(ceildiv(C, block_C), {.num_stages = 2})) {
        copy(X(by * block_M, k * block_C), x);
        for (auto [i, j] : Parallel(block_M, block_C)) x(i, j) = x(i, j) * x(i, j);
        reduce_sum(x, scale, {.dim = 1, .clear = false});
      }
      for (auto i : Parallel(block_M)) scale(i) = rsqrt(scale(i) / cast(C, f32) + epsilon);
      for (auto k : Pipelined(ceildiv(C, block_C), {.num_stages = 2})) {
        copy(X(by * block_M, k * block_C), x);
        copy(W(k * block_C), w);
        for (auto [i, j] : Parallel(block_M, block_C)) {
          Value normal = x(i, j) * scale(i) * w(j);
          x(i, j) = normal / (1 + exp2(normal * -log2_e));
        }
        copy(x, Y(by * block_M, k * block_C));
      }
    }
  });
}

Program layer_norm(Value M, int64_t N, int64_t block_M, DType dtype) {
  Tensor X("X", {M, N}, dtype), W("W", {N}, dtype), B("B", {N}, dtype), Y("Y", {M, N}, dtype);
  return prim_func("layer_norm", {X, W, B, Y}, [&] {
    for (auto by : Kernel(ceildiv(M, block_M), {.threads = 128})) {
      auto x = alloc_fragment({block_M, N}, f32);
      auto square = alloc_fragment({block_M, N}, f32);
      auto w = alloc_fragment({N}, f32);
      auto b = alloc_fragment({N}, f32);
      auto mean = alloc_fragment({block_M}, f32);
      auto scale = alloc_fragment({block_M}, f32);
      copy(X(by * block_M, 0), x);
      copy(W, w);
      copy(B, b);
      reduce_sum(x, mean, {.dim = 1});
      for (auto i : Parallel(block_M)) mean(i) = mean(i) / N;
      for (auto [i, j] : Parallel(block_M, N)) {
        x(i, j) = x(i, j) - mean(i);
        square(i, j) = x(i, j) * x(i, j);
      }
      reduce_sum(square, scale, {.dim = 1});
      for (auto i : Parallel(block_M)) scale(i) = rsqrt(scale(i) / N + epsilon);
      for (auto [i, j] : Parallel(block_M, N)) x(i, j) = x(i, j) * scale(i) * w(j) + b(j);
      copy(x, Y(by * block_M, 0));
    }
  });
}

// Bounds with u = 2^-24. A sum of N squares, each rounded once, errs by (N + 1) u relative in any order; the division
// and the addition of epsilon add 2 u; the inverse root halves that and adds its own 1.5 ulp (3 u); two products 2 u.
double rms_relative(int64_t N) { return unit_roundoff(f32) * ((static_cast<double>(N) + 3) / 2 + 5); }

Check check_rms_norm(const std::vector<NDArray>& arrays, int64_t max_elements, bool silu) {
  const Elements X(arrays[0]), W(arrays[1]), Y(arrays[2]);
  const int64_t M = arrays[0].shape(0), N = arrays[0].shape(1);
  const double u = unit_roundoff(f32);
  Check check;
  for (const int64_t row : sample(M, std::max<int64_t>(1, max_elements / N))) {
    double squares = 0;
    for (int64_t j = 0; j < N; ++j) squares += X[row * N + j] * X[row * N + j];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(N) + epsilon);
    for (int64_t j = 0; j < N; ++j) {
      double expected = X[row * N + j] * scale * W[j];
      double bound = rms_relative(N) * std::abs(expected);
      if (silu) {
        // silu's slope is at most 1.1; exp2 is within 2 ulp (4 u) of an argument of which log2(e) and the product are
        // rounded (2 |x| u), then a sum and a division.
        const double x = expected;
        expected = x / (1 + std::exp(-x));
        bound = 1.1 * bound + (7 + 2 * std::abs(x)) * u * std::abs(expected);
      }
      check.compare(Y[row * N + j], expected, bound + rounding_error(arrays[2].dtype(), std::abs(expected) + bound),
                    [&] {
                      return element_name("Y", {M, N}, row * N + j);
                    });
    }
  }
  return check;
}

Check check_layer_norm(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements X(arrays[0]), W(arrays[1]), B(arrays[2]), Y(arrays[3]);
  const int64_t M = arrays[0].shape(0), N = arrays[0].shape(1);
  const double u = unit_roundoff(f32), n = static_cast<double>(N);
  Check check;
  for (const int64_t row : sample(M, std::max<int64_t>(1, max_elements / N))) {
    double sum = 0, magnitude = 0, squares = 0;
    for (int64_t j = 0; j < N; ++j) {
      sum += X[row * N + j];
      magnitude += std::abs(X[row * N + j]);
    }
    const double mean = sum / n;
    for (int64_t j = 0; j < N; ++j) squares += (X[row * N + j] - mean) * (X[row * N + j] - mean);
    const double variance = squares / n + epsilon, scale = 1 / std::sqrt(variance);
    // The mean errs by N u times the mean magnitude. That enters each difference directly, and the variance only
    // by its square, as the differences sum to zero. A difference is rounded once (u), so its square errs by 3 u.
    const double mean_error = u * magnitude;
    const double scale_relative = ((n + 5) * u + mean_error * mean_error / variance) / 2 + 3 * u;
    for (int64_t j = 0; j < N; ++j) {
      const double difference = X[row * N + j] - mean, factor = std::abs(scale * W[j]);
      const double expected = difference * scale * W[j] + B[j];
      const double bound = (mean_error + u * std::abs(difference)) * factor * (1 + scale_relative) +
                           std::abs(difference) * factor * (scale_relative + 3 * u) + u * std::abs(expected);
      check.compare(Y[row * N + j], expected, bound + rounding_error(arrays[3].dtype(), std::abs(expected) + bound),
                    [&] {
                      return element_name("Y", {M, N}, row * N + j);
                    });
    }
  }
  return check;
}

Case norm_case(Program program, int64_t M, int64_t N, DType dtype, const std::string& note) {
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + " " + dtype.name() + note,
         .program = std::move(program),
         .arguments = {random_array({M, N}, dtype, 21, -2, 3), random_array({N}, dtype, 22, 0.5, 1.5)},
         .check = {}};
  c.bytes = (2.0 * static_cast<double>(M * N) + static_cast<double>(N)) * dtype.storage_bits() / 8;
  c.peer = Peer::copy();
  return c;
}

Case rms_case(Program program, bool silu, int64_t M, int64_t N, DType dtype, const std::string& note) {
  Case c = norm_case(std::move(program), M, N, dtype, note);
  c.arguments.emplace_back(output_array({M, N}, dtype));
  c.check = [silu](const auto& arrays, int64_t n) { return check_rms_norm(arrays, n, silu); };
  return c;
}

Case layer_case(Program program, int64_t M, int64_t N, DType dtype, const std::string& note) {
  Case c = norm_case(std::move(program), M, N, dtype, note);
  c.arguments.emplace_back(random_array({N}, dtype, 23));
  c.arguments.emplace_back(output_array({M, N}, dtype));
  c.check = [](const auto& arrays, int64_t n) { return check_layer_norm(arrays, n); };
  return c;
}

constexpr std::array<std::array<int64_t, 2>, 5> odd_shapes = {{{1, 1}, {17, 33}, {127, 65}, {3, 100}, {8, 64}}};

}  // namespace

std::vector<Case> rms_norm_cases(Size size) {
  if (size == Size::Gpu) {
    return {rms_case(rms_norm(32768, 4096, 1, bf16), false, 32768, 4096, bf16, ""),
            rms_case(rms_norm(dynamic("M"), 8192, 1, f32), false, 32768, 8192, f32, " dynamic M")};
  }
  if (size == Size::Benchmark) return {rms_case(rms_norm(4096, 4096, 4, f32), false, 4096, 4096, f32, "")};
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& [M, N] : odd_shapes) {
      out.push_back(rms_case(rms_norm(M, N, 4, dtype), false, M, N, dtype, ""));
      out.push_back(rms_case(rms_norm(dynamic("M"), N, 4, dtype), false, M, N, dtype, " dynamic M"));
    }
  }
  return out;
}

std::vector<Case> rms_norm_silu_cases(Size size) {
  if (size == Size::Gpu) {
    return {rms_case(rms_norm_silu(dynamic("M"), dynamic("C"), 2, 1024, bf16), true, 32768, 4096, bf16, " dynamic")};
  }
  if (size == Size::Benchmark) {
    return {rms_case(rms_norm_silu(4096, 4100, 4, 512, f32), true, 4096, 4100, f32, ""),
            rms_case(rms_norm_silu(dynamic("M"), dynamic("C"), 4, 512, bf16), true, 4096, 4096, bf16, " dynamic")};
  }
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& [M, N] : odd_shapes) {
      out.push_back(rms_case(rms_norm_silu(M, N, 4, 32, dtype), true, M, N, dtype, ""));
      out.push_back(rms_case(rms_norm_silu(dynamic("M"), dynamic("C"), 4, 32, dtype), true, M, N, dtype, " dynamic"));
    }
  }
  return out;
}

std::vector<Case> layer_norm_cases(Size size) {
  if (size == Size::Gpu) return {layer_case(layer_norm(32768, 4096, 1, bf16), 32768, 4096, bf16, "")};
  if (size == Size::Benchmark) return {layer_case(layer_norm(4096, 4096, 4, f32), 4096, 4096, f32, "")};
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& [M, N] : odd_shapes) {
      out.push_back(layer_case(layer_norm(M, N, 4, dtype), M, N, dtype, ""));
      out.push_back(layer_case(layer_norm(dynamic("M"), N, 4, dtype), M, N, dtype, " dynamic M"));
    }
  }
  return out;
}

}  // namespace examples
