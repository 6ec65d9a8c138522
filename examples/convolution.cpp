// Two-dimensional convolution of an NHWC image as a matrix product over its patches.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

struct Filter {
  int64_t kernel, stride, dilation, pad;
  int64_t output(int64_t size) const { return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; }
};

// Weights are (kernel * kernel * channels, filters), the output is (image * row * column, filters).
Program convolution(Value N, int64_t H, int64_t W, int64_t C, int64_t F, Filter f, int64_t block_M, int64_t block_N,
                    int64_t block_K, DType dtype) {
  const int64_t pixels = f.output(H) * f.output(W), depth = f.kernel * f.kernel * C;
  Tensor image("image", {N, H, W, C}, dtype), weights("weights", {depth, F}, dtype), out("out", {N * pixels, F}, dtype);
  return prim_func("convolution", {image, weights, out}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(F, block_N), ceildiv(N * pixels, block_M)}, {.threads = 256})) {
      auto patches = alloc_shared({block_M, block_K}, dtype);
      auto filters = alloc_shared({block_K, block_N}, dtype);
      auto sums = alloc_fragment({block_M, block_N}, f32);
      clear(sums);
      for (auto k : Pipelined(ceildiv(depth, block_K), {.num_stages = 3})) {
        im2col(image, patches, by, k, {.kernel = f.kernel, .stride = f.stride, .dilation = f.dilation, .pad = f.pad});
        copy(weights(k * block_K, bx * block_N), filters);
        gemm(patches, filters, sums);
      }
      copy(sums, out(by * block_M, bx * block_N));
    }
  });
}

struct Sum {
  double value = 0, magnitude = 0;
};
Sum one_output(const Elements& image, const Elements& weights, const std::vector<NDArray>& arrays, Filter f,
               int64_t at) {
  const int64_t H = arrays[0].shape(1), W = arrays[0].shape(2), C = arrays[0].shape(3), F = arrays[1].shape(1);
  const int64_t pixel = at / F, n = pixel / (f.output(H) * f.output(W)), y = pixel / f.output(W) % f.output(H),
                x = pixel % f.output(W);
  Sum sum;
  for (int64_t ky = 0; ky < f.kernel; ++ky) {
    for (int64_t kx = 0; kx < f.kernel; ++kx) {
      const int64_t row = y * f.stride + ky * f.dilation - f.pad, column = x * f.stride + kx * f.dilation - f.pad;
      if (row < 0 || row >= H || column < 0 || column >= W) continue;
      for (int64_t c = 0; c < C; ++c) {
        const double product =
            image[((n * H + row) * W + column) * C + c] * weights[((ky * f.kernel + kx) * C + c) * F + at % F];
        sum.value += product;
        sum.magnitude += std::abs(product);
      }
    }
  }
  return sum;
}

// Bound: as of a matrix product over kernel * kernel * channels.
Check check_convolution(const std::vector<NDArray>& arrays, Filter f, int64_t max_elements) {
  const Elements image(arrays[0]), weights(arrays[1]), out(arrays[2]);
  Check check;
  for (const int64_t at : sample(out.size(), max_elements)) {
    const Sum sum = one_output(image, weights, arrays, f, at);
    const double bound = static_cast<double>(arrays[1].shape(0)) * unit_roundoff(f32) * sum.magnitude;
    check.compare(out[at], sum.value, bound + rounding_error(arrays[2].dtype(), std::abs(sum.value) + bound), [&] {
      return element_name("out", {arrays[2].shape(0), arrays[2].shape(1)}, at);
    });
  }
  return check;
}

struct Shape {
  int64_t N, H, W, C, F;
};
struct Tiles {
  int64_t m, n, k;
};

Case convolution_case(Shape s, Filter f, Tiles tiles, DType dtype, bool is_dynamic, Data data = Data::Uniform) {
  const int64_t rows = s.N * f.output(s.H) * f.output(s.W), depth = f.kernel * f.kernel * s.C;
  std::string shape = std::to_string(s.N) + "x" + std::to_string(s.H) + "x" + std::to_string(s.W) + "x" +
                      std::to_string(s.C) + " " + std::to_string(f.kernel) + "x" + std::to_string(f.kernel) + " to " +
                      std::to_string(s.F) + " " + dtype.name() + (is_dynamic ? " dynamic" : "");
  Case c{.shape = std::move(shape),
         .program = convolution(is_dynamic ? dynamic("N") : Value(s.N), s.H, s.W, s.C, s.F, f, tiles.m, tiles.n,
                                tiles.k, dtype),
         .arguments = {input_array({s.N, s.H, s.W, s.C}, dtype, 1, data), input_array({depth, s.F}, dtype, 2, data),
                       output_array({rows, s.F}, dtype)},
         .check = [f](const auto& arrays, int64_t max_elements) { return check_convolution(arrays, f, max_elements); }};
  c.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(s.F);
  c.bytes = static_cast<double>(s.N * s.H * s.W * s.C + depth * s.F + rows * s.F) * dtype.storage_bits() / 8;
  c.peer = Peer::openblas(rows, s.F, depth);
  return c;
}

}  // namespace

std::vector<Case> convolution_cases(Size size) {
  if (size == Size::Gpu) {
    return {convolution_case({128, 64, 64, 128, 128}, {3, 1, 1, 1}, {128, 128, 64}, f16, false, Data::Normal)};
  }
  if (size == Size::Benchmark) {
    return {convolution_case({2, 64, 64, 128, 128}, {3, 1, 1, 1}, {512, 128, 192}, f32, false)};
  }
  std::vector<Case> out;
  for (const bool is_dynamic : {false, true}) {
    out.push_back(convolution_case({2, 9, 7, 5, 3}, {3, 1, 1, 1}, {32, 16, 16}, f32, is_dynamic));
    out.push_back(convolution_case({1, 13, 17, 3, 33}, {3, 2, 2, 2}, {32, 16, 16}, bf16, is_dynamic));
  }
  out.push_back(convolution_case({1, 1, 1, 1, 1}, {1, 1, 1, 0}, {16, 16, 16}, f32, false));
  out.push_back(convolution_case({3, 8, 8, 16, 17}, {1, 1, 1, 0}, {32, 16, 16}, f16, true));
  return out;
}

}  // namespace examples
