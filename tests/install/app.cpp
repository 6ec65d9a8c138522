// A program of somebody else's, against what is installed: C = A + B on the CPU.
#include <tilewright/compile.h>
#include <tilewright/language.h>
#include <tilewright/version.h>

#include <cstdio>

using namespace tilewright;

int main() {
  Tensor A("A", {100}, f32), B("B", {100}, f32), C("C", {100}, f32);
  const Program program = prim_func("sum", {A, B, C}, [&] {
    for (auto block : Kernel(ceildiv(100, 32), {.threads = 32}))
      for (auto i : Parallel(32)) C(block * 32 + i) = A(block * 32 + i) + B(block * 32 + i);
  });
  NDArray a = NDArray::zeros({100}, f32), b = NDArray::zeros({100}, f32), c = NDArray::zeros({100}, f32);
  auto *x = static_cast<float*>(a.data()), *y = static_cast<float*>(b.data());
  for (int i = 0; i < 100; ++i) x[i] = static_cast<float>(i), y[i] = 1;
  compile(program, {Engine::Interpreter})(a, b, c);
  const auto* z = static_cast<const float*>(c.data());
  for (int i = 0; i < 100; ++i)
    if (z[i] != static_cast<float>(i + 1)) return 1;
  std::printf("right, with tilewright %s\n", TILEWRIGHT_VERSION);
}
