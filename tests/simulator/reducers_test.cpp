// Reducers on GPUs: every point contributes once, whatever holds what it contributes, and nothing is an atomic where
// registers can hold it.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "simulator/against_interpreter.h"

namespace tilewright::simulator {
namespace {

// The text of its threads on an sm_80, after both GPUs gave what the interpreter gives.
std::string threads_of(const std::string& text) {
  SCOPED_TRACE(text);
  const ir::TileProgram tiles = ir::parse(text, "reducer.tile");
  ir::check_valid(tiles);
  expect_interpreted(tiles);
  return ir::print(passes::lower_to_threads(passes::canonicalize(tiles), target::GpuTarget::of(80)).threads);
}

std::string program(const std::string& type, int64_t rows, int64_t columns, int64_t threads, const std::string& body) {
  return fmt::format(
      "program p {{\n  param A: {0}[{1}, {2}]\n  param B: {0}[{1}]\n  param C: {0}[{1}]\n"
      "  launch l(bx: 1) threads(tx: {3}) {{\n    fragment r: {0}[{1}] reducer=sum\n    fragment m: {0}[{1}] "
      "reducer=max\n"
      "{4}\n    finalize_reducer buffer=r\n    finalize_reducer buffer=m\n    copy from=r to=B\n    copy from=m to=C\n"
      "  }}\n}}\n",
      type, rows, columns, threads, body);
}

const char* kBegin = "    fill to=r value=3\n    fill to=m value=-2\n";

TEST(Reducers, PointsContributeInRegisters) {
  const std::string forms[] = {
      "map i in R, j in K {\n atomic add to=r[i] value=A[i, j]\n atomic max to=m[i] value=A[i, j] * 2\n }",
      "map j in K, i in R {\n atomic add to=r[i] value=A[i, j]\n atomic max to=m[i] value=A[i, j]\n }",
      "for k in 0..3 {\n map i in R, j in K {\n if 0 < A[i, j] {\n atomic add to=r[i] value=A[i, j]\n }\n"
      " for n in 0..2 {\n atomic add to=r[i] value=n\n atomic max to=m[i] value=A[i, j] + n\n }\n }\n }",
      "map i in R {\n atomic add to=r[i] value=A[i, 0]\n }\n map a in 2, i in R, j in K {\n"
      " atomic add to=r[i] value=A[i, j] + a\n atomic max to=m[i] value=i - j * a\n }",
      "map i in R, j in K {\n atomic max to=m[i] value=A[i, j]\n A[i, j] = A[i, j] + 1\n atomic add to=r[i] value=i\n "
      "}"};
  for (const std::string& form : forms)
    for (const auto& [rows, columns, threads] :
         {std::tuple{16, 32, 64}, std::tuple{33, 5, 128}, std::tuple{3, 96, 96}, std::tuple{64, 1, 32}}) {
      std::string body = form;
      for (const auto& [name, value] : {std::pair{"in R", rows}, std::pair{"in K", columns}})
        for (size_t at = body.find(name); at != std::string::npos; at = body.find(name))
          body.replace(at, 4, fmt::format("in {}", value));
      const std::string threads_text = threads_of(program("int32", rows, columns, threads, kBegin + body));
      EXPECT_EQ(threads_text.find("atomic"), std::string::npos) << threads_text;
    }
}

// By several roles, at elements that are looked up, by threads: where an atomic is what there is.
TEST(Reducers, OthersAreAtomics) {
  for (const char* body : {"map i in 16, j in 8 {\n atomic add to=r[15 - i] value=A[i, j]\n }",
                           "map i in 16, j in 8 {\n atomic add to=r[A[i, j] % 16] value=1\n }",
                           "role 0..32 {\n map i in 16, j in 8 {\n atomic add to=r[i] value=A[i, j]\n }\n }\n"
                           "role 32..64 {\n map i in 16, j in 8 {\n atomic add to=r[i] value=j\n }\n }",
                           "for k in 0..16 {\n map j in 8 {\n atomic add to=r[k] value=A[k, j]\n }\n }"})
    EXPECT_NE(threads_of(program("int32", 16, 8, 64, kBegin + std::string(body))).find("atomic"), std::string::npos);
}

// Points that use variables of their threads are dealt in order; those that meet in one element are summed by threads.
TEST(Reducers, PointsThatMeetAreSummedByThreads) {
  const std::string text = threads_of(
      program("int32", 4, 200, 64,
              kBegin + std::string("    local v: int32\n    for k in 0..3 {\n map j in 200 {\n v = A[1, j] + k\n"
                                   " atomic add to=r[2] value=v * v\n atomic max to=m[3] value=v\n }\n }")));
  const size_t first = text.find("atomic add");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find("shuffle xor"), std::string::npos) << text;
  EXPECT_LT(text.find("shuffle xor"), first) << "the atomic is of what a warp has summed";
}

}  // namespace
}  // namespace tilewright::simulator
