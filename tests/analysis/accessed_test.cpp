// What statements read, write, and write whole.
#include "analysis/accessed.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace tilewright::analysis {
namespace {

using namespace ir;

// The statements of a launch with these buffers, and their names.
struct Statements {
  explicit Statements(const std::string& text)
      : program(parse("program p {\n  param A: float32[64, 32]\n  param S: float32[64]\n"
                      "  launch main(bx: 1) threads(tx: 128) {\n    shared T: float32[64, 32]\n"
                      "    shared V: float32[32] view=T offset=32\n    fragment r: float32[64]\n"
                      "    barrier b: int64[1] arrive=[1]\n" +
                          text + "  }\n}\n",
                      "p.tile")) {}
  const Body& body() const { return program.launches[0].body; }
  std::string names(const Buffers& buffers) const {
    std::string out;
    for (BufferId id : buffers) out += (out.empty() ? "" : " ") + program.buffer(id).name;
    return out;
  }
  // Whether the first statement writes all of the buffer of this name.
  bool writes_all(const char* name) const { return writes_whole(body()[0], id(name), program); }
  BufferId id(const std::string& name) const {
    for (uint32_t i = 0; i < program.buffers.size(); ++i)
      if (program.buffers[i].name == name) return BufferId{i};
    ADD_FAILURE() << name;
    return {};
  }
  TileProgram program;
};

TEST(Accessed, ByWhatStatementsDo) {
  const auto accesses = [](const std::string& text) {
    const Statements s(text);
    return fmt::format("{} | {} | {}", s.names(read_by(s.body(), s.program)), s.names(written_by(s.body(), s.program)),
                       s.names(accessed_by(s.body(), s.program)));
  };
  EXPECT_EQ(accesses("copy from=A to=T\n"), "A | T | A T");
  EXPECT_EQ(accesses("fill to=T value=0.0\n"), " | T | T");
  EXPECT_EQ(accesses("atomic add to=S[tx] value=1.0\n"), "S | S | S") << "an update is both";
  EXPECT_EQ(accesses("map i in 32 {\n V[i] = A[0, i]\n}\n"), "A | T | A T") << "a view is who owns its memory";
  EXPECT_EQ(accesses("sync block\n"), " |  | ") << "order alone";
}

TEST(Accessed, MeetWhereBothMayHaveOne) {
  const Statements s("global W: float32[64] address=address(A[0, 0])\nfill to=W value=0.0\n");
  const BufferId a = s.id("A"), of_s = s.id("S"), t = s.id("T"), w = s.id("W");
  EXPECT_TRUE(meet({a, t}, {t, of_s}, s.program));
  EXPECT_FALSE(meet({a}, {of_s}, s.program)) << "parameters do not lie over each other";
  EXPECT_TRUE(meet({w}, {of_s}, s.program)) << "an address may lead anywhere in global memory";
  EXPECT_FALSE(meet({w}, {t}, s.program)) << "and nowhere else";
  EXPECT_FALSE(meet({}, {t}, s.program));
}

TEST(Accessed, WhatIsWrittenWhole) {
  EXPECT_TRUE(Statements("fill to=T value=0.0\n").writes_all("T"));
  EXPECT_FALSE(Statements("fill to=T[0 : 32, 0 : 32] value=0.0\n").writes_all("T"));
  EXPECT_FALSE(Statements("fill to=T value=0.0\n").writes_all("r"));
  EXPECT_TRUE(Statements("copy from=A to=T\n").writes_all("T"));
  EXPECT_FALSE(Statements("copy from=T to=A combine=add\n").writes_all("A")) << "it adds to what is there";
  EXPECT_TRUE(Statements("reduce max from=T to=r dim=1\n").writes_all("r"));
  EXPECT_FALSE(Statements("reduce max from=T to=r dim=1 clear=false\n").writes_all("r"));
  EXPECT_TRUE(Statements("map i in 64, j in 32 {\n T[i, j] = 1.0\n}\n").writes_all("T"));
  EXPECT_FALSE(Statements("map i in 32, j in 32 {\n T[i, j] = 1.0\n}\n").writes_all("T"));
  EXPECT_FALSE(Statements("map i in 64, j in 32 {\n T[i, 0] = 1.0\n}\n").writes_all("T"));
  EXPECT_FALSE(Statements("map i in 64, j in 32 {\n if i < 3 {\n T[i, j] = 1.0\n }\n}\n").writes_all("T"));
}

}  // namespace
}  // namespace tilewright::analysis
