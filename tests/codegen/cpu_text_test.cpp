// The C++ text of small programs, whole: TILEWRIGHT_UPDATE=1 rewrites the files beside this one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "codegen/cpu_kernel.h"

namespace tilewright {
namespace {

// From the first function of the program on: what stands before is the business of other tests.
std::string program_text(const Program& program, const target::CpuFeatures& features = {}) {
  const std::string text = cpu_text_of(program, features);
  EXPECT_EQ(text, cpu_text_of(program, features));
  return text.substr(text.find("static void tw_"));
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string here = __FILE__;
  const std::string path = here.substr(0, here.find_last_of('/')) + "/golden/" + name + ".cpp.txt";
  if (std::getenv("TILEWRIGHT_UPDATE")) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str()) << "TILEWRIGHT_UPDATE=1 rewrites " << name;
}

TEST(CpuText, AddWithRaggedTail) {
  Value n = dynamic("n");
  Tensor A("A", {n}, f32), B("B", {n}, f32), C("C", {n}, f32);
  expect_golden("add", program_text(prim_func("add", {A, B, C}, [&] {
                  for (auto bx : Kernel(ceildiv(n, 128), {.threads = 128}))
                    for (auto i : Parallel(128)) C(bx * 128 + i) = A(bx * 128 + i) + B(bx * 128 + i);
                })));
}

TEST(CpuText, MatmulRelu) {
  const int64_t M = 512, N = 512, K = 256, bm = 128, bn = 128, bk = 64;
  Tensor A("A", {M, K}, f16), B("B", {K, N}, f16), C("C", {M, N}, f16);
  expect_golden("matmul_relu", program_text(prim_func("matmul_relu", {A, B, C}, [&] {
                  for (auto [bx, by] : Kernel({ceildiv(N, bn), ceildiv(M, bm)}, {.threads = 128})) {
                    auto A_shared = alloc_shared({bm, bk}, f16);
                    auto B_shared = alloc_shared({bk, bn}, f16);
                    auto C_local = alloc_fragment({bm, bn}, f32);
                    clear(C_local);
                    for (auto k : Pipelined(ceildiv(K, bk), {.num_stages = 3})) {
                      copy(A(by * bm, k * bk), A_shared);
                      copy(B(k * bk, bx * bn), B_shared);
                      gemm(A_shared, B_shared, C_local);
                    }
                    for (auto [i, j] : Parallel(bm, bn)) C_local(i, j) = max(C_local(i, j), 0);
                    copy(C_local, C(by * bm, bx * bn));
                  }
                })));
}

TEST(CpuText, ThreadsExchange) {
  Tensor A("A", {64}, bf16), B("B", {64}, bf16);
  expect_golden("exchange", program_text(prim_func("exchange", {A, B}, [&] {
                  for (auto bx : Kernel(1, {.threads = 64})) {
                    (void)bx;
                    auto s = alloc_shared({64}, bf16);
                    auto sum = alloc_var(f32, 0);
                    Value tx = get_thread_binding();
                    s(tx) = A(tx) * 2 + 1;
                    sync_threads();
                    for (auto k : serial(3)) sum += s(floormod(tx + k, 64));
                    If(any_sync(sum > 100), [&] { B(tx) = sum; });
                  }
                })));
}

}  // namespace
}  // namespace tilewright
