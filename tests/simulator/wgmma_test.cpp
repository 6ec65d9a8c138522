// wgmma: what it computes from every kind of operand, and every mistake with its operands, registers and groups.
#include "layout/memory.h"
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

constexpr int64_t kM = 64, kN = 32, kK = 64;

struct Matrices {
  NDArray a, b, c = NDArray::zeros({kM, kN}, f32);
  DType type;
  bool transpose_a, transpose_b;
  Matrices(DType t, bool ta, bool tb)
      : a(ta ? NDArray::zeros({kK, kM}, t) : NDArray::zeros({kM, kK}, t)),
        b(tb ? NDArray::zeros({kK, kN}, t) : NDArray::zeros({kN, kK}, t)),
        type(t),
        transpose_a(ta),
        transpose_b(tb) {
    if (t.is_int()) c = NDArray::zeros({kM, kN}, i32);
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t k = 0; k < kK; ++k) set(a, ta ? k : m, ta ? m : k, a_value(m, k));
    for (int64_t n = 0; n < kN; ++n)
      for (int64_t k = 0; k < kK; ++k) set(b, tb ? k : n, tb ? n : k, b_value(n, k));
  }
  static int64_t a_value(int64_t m, int64_t k) { return (m * 3 + k * 5) % 7 - 2; }
  static int64_t b_value(int64_t n, int64_t k) { return (n * 5 + k * 3 + 1) % 8 - 4; }
  static void set(NDArray& x, int64_t i, int64_t j, int64_t value) {
    if (x.dtype().is_int())
      x.set_int({i, j}, value);
    else
      x.set_float({i, j}, static_cast<double>(value));
  }
  void expect_product() const {
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t n = 0; n < kN; ++n) {
        int64_t sum = 0;
        for (int64_t k = 0; k < kK; ++k) sum += a_value(m, k) * b_value(n, k);
        const double got = type.is_int() ? static_cast<double>(c.get_int({m, n})) : c.get_float({m, n});
        ASSERT_EQ(got, static_cast<double>(sum)) << m << " " << n;
      }
  }
};

struct Kernel {
  DType type = bf16;
  bool transpose_a = false, transpose_b = false;
  int64_t span = 128;  // of the swizzle, in bytes
  std::string name = "bf16";
  int threads = 128;
  // Parts that a test spoils.
  std::string wait = "    wait barrier=full[0] parity=0\n", fence = "    fence wgmma registers=[acc[0 : 16]]\n";
  std::string commit = "    commit wgmma\n", drain = "    drain wgmma registers=[acc[0 : 16]]\n";
  bool cleared = false;  // memory first, so that a race is no read of what is not written yet
  std::string before = "", between = "", after = "";
  std::string operand_a = "";

  static std::string shape(int64_t i, int64_t j) { return std::to_string(i) + ", " + std::to_string(j); }
  std::string tile(const char* buffer, int64_t rows, int64_t columns, int64_t place) const {
    const MemoryLayout layout = MemoryLayout::panels({rows, columns}, type.storage_bits(), span);
    return "    shared " + std::string(buffer) + ": " + type.name() + "[" + shape(rows, columns) +
           "] place=" + std::to_string(place) + " memory=\"" + layout.text() + "\"\n";
  }
  // One copy a panel.
  std::string load(const char* from, const char* to, int64_t rows, int64_t columns) const {
    const int64_t width = span * 8 / type.storage_bits();
    std::string text;
    for (int64_t c = 0; c < columns; c += width)
      text += "      copy from=" + std::string(from) + "[0 : " + std::to_string(rows) + ", " + std::to_string(c) +
              " : " + std::to_string(std::min(width, columns)) + "] to=" + to + "[0 : " + std::to_string(rows) + ", " +
              std::to_string(c) + " : " + std::to_string(std::min(width, columns)) + "] completion=(barrier=full[0])\n";
    return text;
  }
  std::string multiply() const {
    const int64_t k = 256 / type.storage_bits();
    std::string text;
    for (int64_t i = 0; i < kK; i += k) {
      const std::string ks = std::to_string(i) + " : " + std::to_string(k), sum = type.is_int() ? "s32" : "f32";
      const std::string a = operand_a.empty() ? transpose_a ? "As[" + ks + ", 0 : 64]" : "As[0 : 64, " + ks + "]"
                                              : "words[" + std::to_string(i / k * 4) + " : 4]";
      text += "    wgmma instruction=\"m64n32k" + std::to_string(k) + "." + sum + "." + name + "." + name +
              "\" a=" + a + " b=" + (transpose_b ? "Bs[" + ks + ", 0 : 32]" : "Bs[0 : 32, " + ks + "]") +
              " c=acc[0 : 16]" + (transpose_a ? " transpose_a=true" : "") + (transpose_b ? " transpose_b=true" : "") +
              (i == 0 ? " clear=true\n" : "\n");
    }
    return text;
  }
  static std::string clear() {
    return "    for i in 0..32 {\n      As[i * 2 + tx // 64, tx % 64] = bfloat16(0.0)\n    }\n    for i in 0..16 {\n"
           "      Bs[i * 2 + tx // 64, tx % 64] = bfloat16(0.0)\n    }\n    fence async\n";
  }
  std::string text() const {
    const int64_t ar = transpose_a ? kK : kM, ac = transpose_a ? kM : kK, br = transpose_b ? kK : kN,
                  bc = transpose_b ? kN : kK;
    const int64_t bytes = (kM + kN) * kK * type.storage_bits() / 8;
    const std::string sum = type.is_int() ? "int32" : "float32";
    return "thread program p {\n  param A: " + std::string(type.name()) + "[" + shape(ar, ac) +
           "] alignment=16\n  param B: " + type.name() + "[" + shape(br, bc) + "] alignment=16\n  param C: " + sum +
           "[" + shape(kM, kN) + "]\n  launch p(bx: 1) threads(tx: " + std::to_string(threads) +
           ") {\n    barrier full: uint64[1] arrive=[1]\n" + tile("As", ar, ac, 0) + tile("Bs", br, bc, 32768) +
           "    local acc: " + sum + "[16]\n" + (operand_a.empty() ? "" : "    local words: uint32[16]\n") +
           "    if tx == 0 {\n      init_barriers barriers=full\n    }\n" + (cleared ? clear() : "") +
           "    sync block\n    if tx == 0 {\n      expect barrier=full[0] bytes=" + std::to_string(bytes) +
           " arrive=true\n" + load("A", "As", ar, ac) + load("B", "Bs", br, bc) + "    }\n" + wait + operand_a +
           before + fence + multiply() + between + commit + after + drain +
           "    for i in 0..16 {\n      C[tx // 32 * 16 + tx % 32 // 4 + i // 2 % 2 * 8, i // 4 * 8 + tx % 4 * 2 + i % "
           "2] = "
           "acc[i]\n    }\n  }\n}\n";
  }
  Matrices run_right() const {
    Matrices m(type, transpose_a, transpose_b);
    run(text(), {m.a, m.b, m.c});
    return m;
  }
  std::string error() const {
    return error_of_text(text(), [this] {
      const Matrices m(type, transpose_a, transpose_b);
      return std::vector<NDArray>{m.a, m.b, m.c};
    });
  }
};

// ---- values

TEST(Wgmma, MultipliesTilesOfEveryMajorAndSwizzle) {
  for (const int64_t span : {128, 64, 32})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        SCOPED_TRACE(fmt::format("span {} a {} b {}", span, ta, tb));
        Kernel k;
        k.span = span, k.transpose_a = ta, k.transpose_b = tb;
        if (tb && span == 128) k.span = 64;  // a row of 32 columns
        k.run_right().expect_product();
      }
}

TEST(Wgmma, MultipliesEveryType) {
  const std::pair<DType, const char*> types[] = {{f16, "f16"},   {bf16, "bf16"}, {tf32, "tf32"},
                                                 {e4m3, "e4m3"}, {e5m2, "e5m2"}, {i8, "s8"}};
  for (const auto& [type, name] : types) {
    SCOPED_TRACE(name);
    Kernel k;
    k.type = type, k.name = name;
    if (type.storage_bits() == 8) k.span = 64;  // a row of 64
    k.run_right().expect_product();
  }
}

// Words of A in the order of PTX ISA 9.7.15.5.1, "Register Fragments", A: rows g and g + 8, then the later half of k.
std::string words_of_a() {
  const std::string row = "tx // 32 * 16 + tx % 32 // 4 + i % 2 * 8",
                    column = "i // 4 * 16 + i // 2 % 2 * 8 + tx % 4 * 2";
  return "    for i in 0..16 {\n      words[i] = uint32(bitcast(uint16, As[" + row + ", " + column +
         "])) + uint32(bitcast(uint16, As[" + row + ", " + column + " + 1])) * 65536\n    }\n";
}

TEST(Wgmma, TakesAFromRegisters) {
  Kernel k;
  k.operand_a = words_of_a();
  k.fence = "    fence wgmma registers=[acc[0 : 16], words[0 : 16]]\n";
  k.run_right().expect_product();
  EXPECT_EQ(k.error(), kNoError);
  k.after = "    words[5] = uint32(0)\n";
  expect_error(k.error(), "TW9010", "registers of 'words' are touched while");
  k.after = "", k.fence = Kernel().fence;
  expect_error(k.error(), "TW9010", "uses registers of 'words' that other code has touched");
}

TEST(Wgmma, RightOnesAreFoundRight) { EXPECT_EQ(Kernel().error(), kNoError); }

// ---- registers

TEST(Wgmma, RegistersAreItsOwnUntilTheGroupIsDrained) {
  Kernel k;
  k.drain = "";
  expect_error(k.error(), "TW9010", "registers of 'acc' are touched while a wgmma may still use them");
  k.drain = "    drain wgmma pending=1 registers=[acc[0 : 16]]\n";
  expect_error(k.error(), "TW9010", "are touched while");
  k = {}, k.after = "    acc[3] = 0.0\n";
  expect_error(k.error(), "TW9010", "are touched while");
  k = {}, k.commit = "";
  expect_error(k.error(), "TW9010", "are touched while");
}

TEST(Wgmma, TheDrainNamesTheRegisters) {
  Kernel k;
  k.drain = "    drain wgmma\n";
  expect_error(k.error(), "TW9010", "behind a drain of wgmma that does not name them");
  k.drain = "    drain wgmma registers=[acc[0 : 15]]\n";
  expect_error(k.error(), "TW9010", "that does not name them");
  k.drain = "    drain wgmma\n    drain wgmma registers=[acc[0 : 16]]\n";
  EXPECT_EQ(k.error(), kNoError);
}

TEST(Wgmma, RegistersAreFencedBeforeIt) {
  Kernel k;
  k.fence = "";
  expect_error(k.error(), "TW9010", "other code has touched since they were fenced");
  k = {}, k.fence = "    fence wgmma registers=[acc[0 : 8]]\n";
  expect_error(k.error(), "TW9010", "since they were fenced");
  k = {}, k.fence += "    acc[0] = 1.0\n";
  expect_error(k.error(), "TW9010", "since they were fenced");
  k = {}, k.before = "    acc[0] = 1.0\n";
  EXPECT_EQ(k.error(), kNoError);
}

TEST(Wgmma, AnotherOneWaitsForTheRegistersUnlessItGoesOn) {
  Kernel k;
  const std::string one =
      "    wgmma instruction=\"m64n16k16.f32.bf16.bf16\" a=As[0 : 64, 0 : 16] b=Bs[0 : 16, 0 : 16] "
      "c=acc[0 : 8]\n";
  k.between = one;
  expect_error(k.error(), "TW9010", "given to a wgmma while another one may still use them");
  k.between = "    commit wgmma\n    drain wgmma registers=[acc[0 : 16]]\n" + one;
  EXPECT_EQ(k.error(), kNoError);
}

// ---- operands in shared memory

TEST(Wgmma, ReadsWhatIsThereForIt) {
  Kernel k;
  k.cleared = true, k.wait = "";
  expect_error(k.error(), "TW9001", "is read by a wgmma while a TMA load of thread (0) may still write it");
  k.wait = "    if tx < 96 {\n      wait barrier=full[0] parity=0\n    }\n";
  expect_error(k.error(), "TW9001", "may still write it");
  const std::string rewrite = "    Bs[tx // 64, tx % 64] = Bs[tx // 64, tx % 64]\n";
  k = {}, k.before = rewrite + "    fence async\n    sync block\n";
  EXPECT_EQ(k.error(), kNoError);
  k.before = rewrite + "    sync block\n";
  expect_error(k.error(), "TW9008", "'Bs' is read by a wgmma, but thread");
  k.before = rewrite + "    sync block\n    fence async\n";
  expect_error(k.error(), "TW9008", "without a fence for asynchronous readers");
  k.before = rewrite + "    fence async\n";
  expect_error(k.error(), "TW9001", "'Bs' is read by a wgmma while thread");
}

// Whoever of the warpgroup wrote a row of it: all warps must know.
TEST(Wgmma, ReadsTheWholeTileOfA) {
  Kernel k;
  const std::string own =
      "    for i in 0..8 {\n      As[tx // 32 * 16 + tx % 2 * 8 + i, tx % 32 // 2] = bfloat16(1.0)\n    }\n"
      "    fence async\n";
  k.before = own + "    sync named barrier=1 count=128\n";
  EXPECT_EQ(k.error(), kNoError);
  k.before = own + "    sync warp\n";
  expect_error(k.error(), "TW9001", "'As' is");
}

TEST(Wgmma, OperandsStayUntilTheGroupIsDrained) {
  const std::string write = "    Bs[tx // 64, tx % 64] = bfloat16(0.0)\n", drain = Kernel().drain;
  Kernel k;
  k.after = "    sync block\n" + write;
  expect_error(k.error(), "TW9001", "'Bs' is written while a wgmma of thread");
  k.after = drain + "    sync block\n" + write;
  EXPECT_EQ(k.error(), kNoError);
  // Another warpgroup's: its drain, then a barrier.
  k.after = "    drain wgmma pending=1 registers=[acc[0 : 16]]\n    sync block\n" + write;
  expect_error(k.error(), "TW9001", "'Bs' is written while a wgmma of thread");
}

// One thread of the warpgroup tells for all of it that the operands are free.
TEST(Wgmma, TheEndOfAGroupIsTheWholeWarpgroups) {
  Kernel k;
  k.threads = 256;
  const auto split = [](const std::string& text, const std::string& other) {
    const size_t body = text.find("    wait barrier=full[0]");
    std::string math = text.substr(body, text.size() - body - 6);
    return text.substr(0, body) + "    role 0..128 {\n" + math + "    }\n    role 128..256 {\n" + other +
           "    }\n  }\n}\n";
  };
  const auto with_free = [](std::string text) {
    text.insert(text.find("    shared As"), "    barrier free: uint64[1] arrive=[1]\n");
    text.insert(text.find("      init_barriers"), "      init_barriers barriers=free\n");
    return text;
  };
  const auto arrays = [] {
    const Matrices m(bf16, false, false);
    return std::vector<NDArray>{m.a, m.b, m.c};
  };
  const std::string arrive = "    if tx == 0 {\n      arrive barrier=free[0]\n    }\n",
                    reuse = "    wait barrier=free[0] parity=0\n    Bs[0, tx % 64] = bfloat16(1.0)\n";
  k.drain += arrive;
  EXPECT_EQ(error_of_text(with_free(split(k.text(),
                                          "    wait barrier=free[0] parity=0\n    if tx < 192 {\n      Bs[0, tx % 64] "
                                          "= bfloat16(1.0)\n    }\n")),
                          arrays),
            kNoError);
  k = {}, k.threads = 256, k.after = arrive;
  expect_error(error_of_text(with_free(split(k.text(), reuse)), arrays), "TW9001", "a wgmma of thread");
}

// ---- who comes by

TEST(Wgmma, IsIssuedByWholeWarpgroups) {
  Kernel k;
  k.threads = 96;
  expect_error(k.error(), "TW9006", "no whole warpgroup");
  k = {}, k.fence += "    if tx < 32 {\n" + k.multiply().substr(0, k.multiply().find('\n') + 1) + "    }\n";
  expect_error(k.error(), "TW9006", "different wgmmas");
  k = {}, k.commit = "    if tx < 96 {\n      commit wgmma\n    }\n";
  EXPECT_NE(k.error(), kNoError);
}

TEST(Wgmma, GroupsAreDrainedBeforeTheEnd) {
  Kernel k;
  std::string text = k.text();
  text.erase(text.find("    drain wgmma"));
  expect_error(error_of_text(text + "  }\n}\n",
                             [] {
                               const Matrices m(bf16, false, false);
                               return std::vector<NDArray>{m.a, m.b, m.c};
                             }),
               "TW9012", "their wgmmas may be under way");
}

TEST(Wgmma, TilesAreThoseThatADescriptorSays) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = Kernel().text();
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return error_of_text(text, [] {
      const Matrices m(bf16, false, false);
      return std::vector<NDArray>{m.a, m.b, m.c};
    });
  };
  expect_error(error("b=Bs[0 : 32, 16 : 16]", "b=Bs[0 : 32, 24 : 16]"), kNoError, "");
  expect_error(error("b=Bs[0 : 32, 16 : 16]", "b=Bs[0 : 32, 20 : 16]"), "TW9011", "no multiple of 16");
  expect_error(error("m64n32k16.f32.bf16.bf16\" a=As[0 : 64, 16 : 16] b=Bs[0 : 32, 16 : 16] c=acc[0 : 16]",
                     "m64n24k16.f32.bf16.bf16\" a=As[0 : 64, 16 : 16] b=Bs[4 : 24, 16 : 16] c=acc[0 : 12]"),
               "TW9", "");
  expect_error(error("m64n32k16", "m64n40k16"), "TW9011", "");
  expect_error(error("m64n32k16", "m64n32k8"), "TW9090", "no wgmma 'm64n32k8");
}

// ---- cp.async: what it writes is the threads' own

TEST(Wgmma, ReadsWhatCpAsyncWroteOnceItHasLandedAndIsFenced) {
  const auto kernel = [](const std::string& order) {
    Kernel k;
    k.cleared = true;
    std::string text = k.text();
    const size_t first = text.find("    if tx == 0 {\n      expect"), last = text.find("    fence wgmma");
    std::string copies;
    const auto copy = [&](const char* from, const char* to, int rows) {
      copies += "    for i in 0.." + std::to_string(rows / 16) + " {\n      copy from=" + from +
                "[i * 16 + tx // 8, tx % 8 * 8 : 8] to=" + to +
                "[i * 16 + tx // 8, tx % 8 * 8 : 8] completion=(queue=cp_async)\n    }\n";
    };
    copy("A", "As", 64), copy("B", "Bs", 32);
    return text.substr(0, first) + copies + "    commit cp_async\n" + order + text.substr(last);
  };
  const auto arrays = [] {
    const Matrices m(bf16, false, false);
    return std::vector<NDArray>{m.a, m.b, m.c};
  };
  const std::string drain = "    drain cp_async\n", fence = "    fence async\n", sync = "    sync block\n";
  const Matrices m(bf16, false, false);
  run(kernel(drain + fence + sync), {m.a, m.b, m.c});
  m.expect_product();
  EXPECT_EQ(error_of_text(kernel(drain + fence + sync), arrays), kNoError);
  expect_error(error_of_text(kernel(drain + sync), arrays), "TW9008", "without a fence");
  expect_error(error_of_text(kernel(fence + drain + sync), arrays), "TW9008", "without a fence");
  expect_error(error_of_text(kernel(fence + sync), arrays), "TW9001", "copies to it asynchronously");
  expect_error(error_of_text(kernel(drain + fence), arrays), "TW9001", "is read by a wgmma while thread");
}

}  // namespace
}  // namespace tilewright::simulator
