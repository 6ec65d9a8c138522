// Matrix products of a batch, C[b] = A[b] * B[b], with either operand stored transposed, for every type that matrix
// instructions multiply.
#include "product.h"

namespace examples {
namespace {

using namespace tilewright;

// What is multiplied, what it is summed in, what is stored.
struct Types {
  DType in, sum, out;
};

struct Config {
  int64_t block_M, block_N, block_K, stages = 3, threads = 128;
};

// `form` as BLAS has it: "NT" is A * B^T.
struct Form {
  bool transpose_A, transpose_B;
  std::string name() const { return std::string(transpose_A ? "T" : "N") + (transpose_B ? "T" : "N"); }
};

Program batched_matmul(Value batch, Value M, int64_t N, int64_t K, Form form, Config c, Types t) {
  Tensor A = form.transpose_A ? Tensor("A", {batch, K, M}, t.in) : Tensor("A", {batch, M, K}, t.in);
  Tensor B = form.transpose_B ? Tensor("B", {batch, N, K}, t.in) : Tensor("B", {batch, K, N}, t.in);
  Tensor C("C", {batch, M, N}, t.out);
  return prim_func("batched_matmul", {A, B, C}, [&] {
    for (auto [bx, by, b] : Kernel({ceildiv(N, c.block_N), ceildiv(M, c.block_M), batch}, {.threads = c.threads})) {
      auto A_shared = form.transpose_A ? alloc_shared({c.block_K, c.block_M}, t.in, "A_shared")
                                       : alloc_shared({c.block_M, c.block_K}, t.in, "A_shared");
      auto B_shared = form.transpose_B ? alloc_shared({c.block_N, c.block_K}, t.in, "B_shared")
                                       : alloc_shared({c.block_K, c.block_N}, t.in, "B_shared");
      auto C_local = alloc_fragment({c.block_M, c.block_N}, t.sum);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, c.block_K), {.num_stages = c.stages})) {
        if (form.transpose_A)
          copy(A(b, k * c.block_K, by * c.block_M), A_shared);
        else
          copy(A(b, by * c.block_M, k * c.block_K), A_shared);
        if (form.transpose_B)
          copy(B(b, bx * c.block_N, k * c.block_K), B_shared);
        else
          copy(B(b, k * c.block_K, bx * c.block_N), B_shared);
        gemm(A_shared, B_shared, C_local, {.transpose_A = form.transpose_A, .transpose_B = form.transpose_B});
      }
      copy(C_local, C(b, by * c.block_M, bx * c.block_N));
    }
  });
}

// Tensor cores multiply float32 as tf32, whose last 13 bits they do not read, and sum 8-bit floats with 13 bits behind
// the point of the largest product.
double error_of_inputs(DType in, double magnitude) {
  if (in == tf32) return 2 * std::ldexp(magnitude, -10);
  if (in == e4m3 || in == e5m2) return 8 * std::ldexp(magnitude, -13);
  return 0;
}

Check check_batched(const std::vector<NDArray>& arrays, int64_t max_elements, Form form, Types t) {
  const Elements A(arrays[0]), B(arrays[1]), C(arrays[2]);
  const int64_t batch = arrays[2].shape(0), M = arrays[2].shape(1), N = arrays[2].shape(2);
  const int64_t K = arrays[0].shape(form.transpose_A ? 1 : 2);
  Check check;
  for (const int64_t at : sample(batch * M * N, max_elements)) {
    const int64_t b = at / N / M, m = at / N % M, n = at % N;
    const ProductElement e = product_element(
        K, [&](int64_t k) { return A[b * M * K + (form.transpose_A ? k * M + m : m * K + k)]; },
        [&](int64_t k) { return B[b * N * K + (form.transpose_B ? n * K + k : k * N + n)]; });
    check.compare(C[at], e.value, product_bound(e, K, t.out, t.sum) + error_of_inputs(t.in, e.magnitude), [&] {
      return element_name("C", {batch, M, N}, at);
    });
  }
  return check;
}

// Integers are drawn from their range, so that sums of products reach far.
LazyArray operand(std::initializer_list<int64_t> shape, DType dtype, uint64_t seed, Data data) {
  if (dtype.is_integral()) return random_array(shape, dtype, seed, dtype == u8 ? 0 : -128, dtype == u8 ? 256 : 128);
  return input_array(shape, dtype, seed, data);
}

Case batched_case(std::array<int64_t, 4> extents, Form form, Config config, Types t, bool is_dynamic,
                  Data data = Data::Uniform) {
  const auto [batch, M, N, K] = extents;
  const Value batches = is_dynamic ? dynamic("batch") : Value(batch), rows = is_dynamic ? dynamic("M") : Value(M);
  Case c{.shape = std::to_string(batch) + "x" + std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) +
                  " " + form.name() + " " + t.in.name() + (is_dynamic ? " dynamic" : ""),
         .program = batched_matmul(batches, rows, N, K, form, config, t),
         .arguments = {form.transpose_A ? operand({batch, K, M}, t.in, 1, data) : operand({batch, M, K}, t.in, 1, data),
                       form.transpose_B ? operand({batch, N, K}, t.in, 2, data) : operand({batch, K, N}, t.in, 2, data),
                       output_array({batch, M, N}, t.out)},
         .check = [form, t](const auto& arrays, int64_t max_elements) {
           return check_batched(arrays, max_elements, form, t);
         }};
  c.flops = 2.0 * static_cast<double>(batch * M) * static_cast<double>(N) * static_cast<double>(K);
  c.bytes = static_cast<double>(batch * (M * K + K * N)) * t.in.storage_bits() / 8 +
            static_cast<double>(batch * M * N) * t.out.storage_bits() / 8;
  return c;
}

constexpr Form kForms[] = {{false, false}, {false, true}, {true, false}, {true, true}};

}  // namespace

std::vector<Case> batched_gemm_cases(Size size) {
  if (size == Size::Benchmark)
    return {batched_case({8, 512, 512, 512}, kForms[0], {256, 512, 256}, {f32, f32, f32}, false)};
  std::vector<Case> out;
  if (size == Size::Gpu) {
    for (const Form form : kForms)
      out.push_back(
          batched_case({1, 4096, 4096, 4096}, form, {128, 256, 64, 3, 256}, {bf16, f32, bf16}, false, Data::Normal));
    out.push_back(
        batched_case({16, 2048, 2048, 2048}, kForms[1], {128, 256, 64, 3, 256}, {bf16, f32, bf16}, true, Data::Normal));
    out.push_back(
        batched_case({1, 4096, 4096, 4096}, kForms[1], {128, 128, 32, 4, 256}, {tf32, f32, f32}, false, Data::Normal));
    out.push_back(batched_case({1, 4096, 4096, 4096}, kForms[1], {128, 256, 128, 3, 256}, {e4m3, f32, bf16}, false,
                               Data::Normal));
    out.push_back(batched_case({1, 4096, 4096, 4096}, kForms[1], {128, 256, 128, 3, 256}, {i8, i32, i32}, false));
    out.push_back(
        batched_case({1, 2048, 2048, 2048}, kForms[0], {64, 64, 16, 2, 128}, {f64, f64, f64}, false, Data::Normal));
    return out;
  }
  for (const Types t :
       {Types{f16, f32, f16}, {bf16, f32, f32}, {tf32, f32, f32}, {e4m3, f32, f16}, {i8, i32, i32}, {f64, f64, f64}}) {
    for (const Form form : kForms) {
      const int64_t block_K = t.in.storage_bits() == 8 ? 32 : 16;
      out.push_back(batched_case({2, 67, 33, 45}, form, {64, 32, block_K}, t, true));
    }
    out.push_back(batched_case({2, 67, 48, 64}, kForms[1], {64, 32, 32}, t, true));
  }
  out.push_back(batched_case({3, 1, 1, 1}, kForms[0], {16, 16, 16}, {f32, f32, f32}, true));
  return out;
}

}  // namespace examples
