// Sums of two tensors, and several elementwise steps in one pass.
#include "example.h"

namespace examples {
namespace {

using namespace tilewright;

Program add(Value M, Value N, int64_t block_M, int64_t block_N, DType dtype) {
  Tensor A("A", {M, N}, dtype), B("B", {M, N}, dtype), C("C", {M, N}, dtype);
  return prim_func("add", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M)}, {.threads = 256})) {
      for (auto [i, j] : Parallel(block_M, block_N)) {
        C(by * block_M + i, bx * block_N + j) =
            A(by * block_M + i, bx * block_N + j) + B(by * block_M + i, bx * block_N + j);
      }
    }
  });
}

// Y = silu(X) * gate + residual, with the steps in float32.
Program gated_residual(Value M, Value N, int64_t block_M, int64_t block_N, DType dtype) {
  Tensor X("X", {M, N}, dtype), G("G", {M, N}, dtype), R("R", {M, N}, dtype), Y("Y", {M, N}, dtype);
  return prim_func("gated_residual", {X, G, R, Y}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, block_N), ceildiv(M, block_M)}, {.threads = 256})) {
      auto tile = alloc_fragment({block_M, block_N}, f32);
      copy(X(by * block_M, bx * block_N), tile);
      for (auto [i, j] : Parallel(block_M, block_N)) {
        tile(i, j) = tile(i, j) / (1 + exp(-tile(i, j))) * G(by * block_M + i, bx * block_N + j) +
                     R(by * block_M + i, bx * block_N + j);
      }
      copy(tile, Y(by * block_M, bx * block_N));
    }
  });
}

// Bound: one rounding.
Check check_add(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements A(arrays[0]), B(arrays[1]), C(arrays[2]);
  Check check;
  for (const int64_t at : sample(C.size(), max_elements)) {
    const double expected = A[at] + B[at];
    check.compare(C[at], expected, rounding_error(arrays[2].dtype(), expected), [&] {
      return element_name("C", {arrays[2].shape(0), arrays[2].shape(1)}, at);
    });
  }
  return check;
}

// Bound: exp within 2 ulp (4 roundoffs), then a sum, a quotient, a product and a sum with one rounding each, relative
// to the larger of the two terms; then the rounding to Y's type.
Check check_gated_residual(const std::vector<NDArray>& arrays, int64_t max_elements) {
  const Elements X(arrays[0]), G(arrays[1]), R(arrays[2]), Y(arrays[3]);
  Check check;
  for (const int64_t at : sample(Y.size(), max_elements)) {
    const double term = X[at] / (1 + std::exp(-X[at])) * G[at];
    const double expected = term + R[at];
    const double bound = 8 * unit_roundoff(f32) * (std::abs(term) + std::abs(R[at]));
    check.compare(Y[at], expected, bound + rounding_error(arrays[3].dtype(), std::abs(expected) + bound), [&] {
      return element_name("Y", {arrays[3].shape(0), arrays[3].shape(1)}, at);
    });
  }
  return check;
}

struct Form {
  Program (*build)(Value, Value, int64_t, int64_t, DType);
  Check (*check)(const std::vector<NDArray>&, int64_t);
  int inputs;
};
constexpr Form add_form{add, check_add, 2}, gated_form{gated_residual, check_gated_residual, 3};

Case elementwise_case(const Form& form, int64_t M, int64_t N, int64_t block_M, int64_t block_N, DType dtype,
                      bool is_dynamic) {
  Case c{.shape = std::to_string(M) + "x" + std::to_string(N) + " " + dtype.name() + (is_dynamic ? " dynamic" : ""),
         .program = is_dynamic ? form.build(dynamic("M"), dynamic("N"), block_M, block_N, dtype)
                               : form.build(M, N, block_M, block_N, dtype),
         .arguments = {},
         .check = form.check,
         .elementwise = true};
  for (int i = 0; i < form.inputs; ++i) {
    c.arguments.push_back(random_array({M, N}, dtype, static_cast<uint64_t>(i) + 1, -4, 4));
  }
  c.arguments.push_back(output_array({M, N}, dtype));
  c.bytes = static_cast<double>(M * N * (form.inputs + 1)) * dtype.storage_bits() / 8;
  c.flops = static_cast<double>(M * N) * (form.inputs == 2 ? 1 : 5);
  c.peer = Peer::copy();
  return c;
}

std::vector<Case> odd_cases(const Form& form) {
  std::vector<Case> out;
  for (const DType dtype : {f32, bf16, f16}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {17, 1}, {127, 65}, {3, 1023}}) {
      out.push_back(elementwise_case(form, m, n, 16, 64, dtype, true));
    }
  }
  out.push_back(elementwise_case(form, 1, 1, 16, 64, f32, false));
  out.push_back(elementwise_case(form, 127, 65, 16, 64, f32, false));
  out.push_back(elementwise_case(form, 17, 33, 16, 64, f16, false));
  return out;
}

}  // namespace

// Blocks of whole rows: consecutive memory for the copies and the hardware's prefetching.
std::vector<Case> add_cases(Size size) {
  if (size == Size::Gpu) {
    return {elementwise_case(add_form, 32768, 4096, 4, 2048, bf16, false),
            elementwise_case(add_form, 16384, 4096, 4, 1024, f32, true)};
  }
  if (size == Size::Odd) return odd_cases(add_form);
  return {elementwise_case(add_form, 4096, 4096, 4, 4096, f32, false),
          elementwise_case(add_form, 4096, 4096, 4, 4096, bf16, true)};
}

std::vector<Case> gated_residual_cases(Size size) {
  if (size == Size::Gpu) return {elementwise_case(gated_form, 32768, 4096, 4, 1024, bf16, false)};
  if (size == Size::Odd) return odd_cases(gated_form);
  return {elementwise_case(gated_form, 4096, 4096, 4, 1024, f32, false)};
}

}  // namespace examples
