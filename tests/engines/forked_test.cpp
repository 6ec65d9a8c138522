// A process that was forked, as workers of a data loader are, runs kernels as its parent does.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "passes/planned.h"
#include "tilewright/compile.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

Program squares() {
  Tensor A("A", {64, 64}, i32), B("B", {64, 64}, i32);
  return prim_func("squares", {A, B}, [&] {
    for (auto bx : Kernel(64, {.threads = 64}))
      for (auto i : Parallel(64)) B(bx, i) = A(bx, i) * A(bx, i);
  });
}

bool runs(Engine engine) {
  const NDArray a = numbers({64, 64}, i32, 1), b = NDArray::zeros({64, 64}, i32);
  compile(squares(), {.engine = engine})(a, b);
  const std::vector<int64_t> given = a.to_ints(), got = b.to_ints();
  for (size_t i = 0; i < given.size(); ++i)
    if (got[i] != given[i] * given[i]) return false;
  return true;
}

// Whether `body` returns true in a child, which is killed if it hangs.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << strsignal(WTERMSIG(status));
  return status == 0;
}

class Forked : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override { setenv("TILEWRIGHT_THREADS", "4", true); }
  void TearDown() override { unsetenv("TILEWRIGHT_THREADS"); }
};

TEST_P(Forked, ChildrenAndTheirChildrenRunWhatTheParentRuns) {
  ASSERT_TRUE(runs(GetParam()));
  EXPECT_TRUE(in_child([] {
    return runs(GetParam()) && runs(GetParam()) && in_child([] { return runs(GetParam()); }) && runs(GetParam());
  }));
  EXPECT_TRUE(runs(GetParam()));
}

TEST_P(Forked, AChildIsToldWhatFails) {
  ASSERT_TRUE(runs(GetParam()));
  EXPECT_TRUE(in_child([] {
    Tensor A("A", {64}, i32), B("B", {64}, i32);
    const Program program = prim_func("ones", {A, B}, [&] {
      for (auto bx : Kernel(64, {.threads = 32})) {
        device_assert(A(bx) == 1, "one");
        B(bx) = A(bx);
      }
    });
    try {
      compile(program, {.engine = GetParam()})(NDArray::zeros({64}, i32), NDArray::zeros({64}, i32));
    } catch (const Error&) {
      return runs(GetParam());
    }
    return false;
  }));
}

std::string name_of(const testing::TestParamInfo<Engine>& info) {
  return info.param == Engine::Cpu ? "Cpu" : info.param == Engine::Simulator ? "Simulator" : "Interpreter";
}
INSTANTIATE_TEST_SUITE_P(Engines, Forked, testing::Values(Engine::Cpu, Engine::Interpreter, Engine::Simulator),
                         name_of);

}  // namespace
}  // namespace tilewright
