// The command line tool as its users meet it: output, exit status, JSON.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/npy.h"

namespace tilewright {
namespace {

using Json = nlohmann::json;

constexpr const char* kGemm = R"(program relu_gemm {
  symbol M: int32
  param A: float32[M, 64]
  param B: float32[64, 32]
  param C: float32[M, 32]
  launch main(bx: 1, by: (M + 15) // 16) threads(tx: 128) {
    shared A_s: float32[16, 32]
    shared B_s: float32[32, 32]
    fragment C_l: float32[16, 32]
    fill to=C_l value=0.0
    for k in 0..2 pipelined(stages=2) {
      copy from=A[by * 16 : 16, k * 32 : 32] to=A_s
      copy from=B[k * 32 : 32, 0 : 32] to=B_s
      gemm a=A_s b=B_s c=C_l
    }
    map i in 16, j in 32 {
      C_l[i, j] = max(C_l[i, j] * 2.0 + 1.0, 0.0)
    }
    copy from=C_l to=C[by * 16 : 16, 0 : 32]
  }
}
)";

constexpr const char* kProduct = R"(program product {
  param A: bfloat16[512, 512]
  param B: bfloat16[512, 512]
  param C: bfloat16[512, 512]
  launch main(bx: 4, by: 4) threads(tx: 256) {
    shared A_s: bfloat16[128, 64]
    shared B_s: bfloat16[64, 128]
    fragment C_l: float32[128, 128]
    fill to=C_l value=0.0
    for k in 0..8 pipelined(stages=3) {
      copy from=A[by * 128 : 128, k * 64 : 64] to=A_s
      copy from=B[k * 64 : 64, bx * 128 : 128] to=B_s
      gemm a=A_s b=B_s c=C_l
    }
    copy from=C_l to=C[by * 128 : 128, bx * 128 : 128]
  }
}
)";

constexpr const char* kBarriers = R"(program barriers {
  param A: float32[64]
  launch main(bx: 1) threads(tx: 64) {
    barrier ready: uint64[1] arrive=[64]
    arrive barrier=ready[0]
    wait barrier=ready[0] parity=0
    A[tx] = 1.0
  }
}
)";

constexpr const char* kWrong = R"(program wrong {
  param A: float32[4]
  launch main(bx: 1) threads(tx: 32) {
    A[0] = missing
  }
}
)";

struct Result {
  int status = -1;
  std::string out;  // both streams
};

class Tool : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tilewright_tool_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    write("gemm.tile", kGemm);
    write("wrong.tile", kWrong);
  }
  void TearDown() override { shell("rm -rf " + folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static Result shell(const std::string& command) {
    Result result;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
  }
  Result tool(const std::string& arguments) const {
    return shell("cd " + folder_ + " && " TILEWRIGHT_TOOL " " + arguments);
  }
  Json json(const std::string& arguments, int status = 0) const {
    const Result r = tool(arguments);
    EXPECT_EQ(r.status, status) << r.out;
    return Json::parse(r.out, nullptr, false);
  }

  std::string folder_;
};

TEST_F(Tool, BuildWritesAFolderForEachArchitecture) {
  const Result r = tool("build gemm.tile --arch cpu,cpu:portable -o " + path("a/b"));
  ASSERT_EQ(r.status, 0) << r.out;
  for (const std::string folder : {"cpu", "cpu_portable"}) {
    EXPECT_NE(r.out.find(path("a/b/" + folder + "/relu_gemm.o\n")), std::string::npos) << r.out;
    const Json facts = Json::parse(read("a/b/" + folder + "/relu_gemm.json"));
    EXPECT_EQ(facts["signature"], "int relu_gemm(const float* A, const float* B, float* C, int64_t M, void* stream)");
    EXPECT_NE(read("a/b/" + folder + "/relu_gemm.h").find(facts["signature"].get<std::string>() + ";"),
              std::string::npos);
  }
  EXPECT_EQ(Json::parse(read("a/b/cpu_portable/relu_gemm.json"))["processor"], "portable");
}

TEST_F(Tool, BuildRefusesWhatCannotStandAlone) {
  write("barriers.tile", kBarriers);
  const Result r = tool("build barriers.tile --arch cpu -o " + path("out"));
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out.find("error TW7006 tool: 'barriers' cannot be compiled ahead of time: on a CPU, some of its threads "
                       "wait for others, as roles and barriers do\n"),
            0u)
      << r.out;
  EXPECT_EQ(tool("build gemm.tile -o out").status, 2) << "without an architecture";
  EXPECT_NE(tool("build gemm.tile --arch cpu -o out --name 1st").out.find("error TW1080"), std::string::npos);
  EXPECT_NE(tool("build gemm.tile --arch cpu -o /proc/none").out.find("error TW7004"), std::string::npos);
}

TEST_F(Tool, SimulateCountsWhatEachLineMoves) {
  const Result r = tool("simulate " + path("gemm.tile") + " -D M=17 --json");
  ASSERT_EQ(r.status, 0) << r.out;
  const Json j = Json::parse(r.out);
  const Json& launch = j["launches"][0];
  EXPECT_EQ(launch["blocks"], 2);
  EXPECT_EQ(launch["threads"], 128);
  int64_t moved = 0, barriers = 0;
  for (const Json& line : launch["lines"]) {
    moved += line["bytes_moved"].get<int64_t>(), barriers += line["barriers"].get<int64_t>();
    if (line["line"] == 12) {
      EXPECT_EQ(line["bytes_used"], 17 * 64 * 4) << "every element of A once";
    }
  }
  EXPECT_EQ(launch["total"]["bytes_moved"], moved);
  EXPECT_GT(barriers, 0);
  EXPECT_EQ(tool("simulate " + path("gemm.tile")).status, 2) << "M has no value";
  EXPECT_NE(tool("simulate " + path("gemm.tile") + " -D M=17").out.find("bytes moved"), std::string::npos);
}

TEST_F(Tool, UsageMistakesAreStatusTwo) {
  EXPECT_EQ(tool("").status, 2);
  EXPECT_EQ(tool("fly").status, 2);
  EXPECT_EQ(tool("compile").status, 2);
  EXPECT_EQ(tool("compile gemm.tile --stage nowhere").status, 2);
  EXPECT_EQ(tool("run gemm.tile --repeat 0 --set M=8").status, 2);
  EXPECT_EQ(tool("--help").status, 0);
  EXPECT_EQ(tool("opt gemm.tile --passes=nothing").out,
            "tilewright: there is no pass 'nothing'; opt --list names them\n");
  EXPECT_EQ(tool("run gemm.tile").out, "tilewright: give a value to M: --set M=...\n");
  EXPECT_EQ(tool("run gemm.tile").status, 2);
  EXPECT_EQ(tool("run gemm.tile --set M=8 --set Q=1").out,
            "tilewright: --set: the program has no symbol or scalar 'Q'\n");
  EXPECT_EQ(tool("fuzz --seeds 5..4").out, "tilewright: --seeds: the range is empty\n");
}

TEST_F(Tool, ValuesThatNoCallCouldHaveAreRefused) {
  for (const char* command : {"explain", "run", "simulate"}) {
    const auto said = [&](const char* set) { return tool(fmt::format("{} gemm.tile --set {}", command, set)); };
    EXPECT_NE(said("M=4294967306").out.find("error TW4010"), std::string::npos) << command;
    EXPECT_NE(said("M=-5").out.find("error TW4016"), std::string::npos) << command;
    EXPECT_EQ(said("M=-5").status, 1) << command;
    EXPECT_EQ(said("M=99999999999999999999").status, 2) << command;
  }
  EXPECT_NE(tool("explain gemm.tile --set Q=5").out.find("error TW1080"), std::string::npos);
}

TEST_F(Tool, AWrongProgramIsStatusOneWithItsDiagnostic) {
  for (const char* command : {"compile", "opt", "run", "explain"}) {
    const Result r = tool(fmt::format("{} wrong.tile", command));
    EXPECT_EQ(r.status, 1) << command;
    EXPECT_TRUE(r.out.starts_with("error TW2")) << r.out;
    EXPECT_NE(r.out.find("wrong.tile:4:12"), std::string::npos) << r.out;
  }
  const Json error = json("compile wrong.tile --json", 1)["error"];
  EXPECT_EQ(error["area"], "parse");
  EXPECT_EQ(error["line"], 4);
  EXPECT_EQ(error["file"], "wrong.tile");
  EXPECT_EQ(tool("compile nowhere.tile").status, 1);
  EXPECT_EQ(tool("compile nowhere.tile").out, "error TW7003 tool: nowhere.tile: No such file or directory\n");
}

TEST_F(Tool, StagesOfCompile) {
  EXPECT_EQ(tool("compile gemm.tile --stage tiles").out, kGemm);
  write("product.tile", kProduct);
  EXPECT_NE(tool("compile gemm.tile --stage canonical").out.find("fma("), std::string::npos);
  EXPECT_NE(tool("compile product.tile --stage planned --arch sm_90a").out.find("role 0..256 {"), std::string::npos);
  EXPECT_EQ(tool("compile product.tile --stage plan --arch sm_90a").out,
            "launch main\n  clear in gemms\n  work one_tile\n  role load warps=8..12 registers=40\n"
            "  role compute warps=0..8 registers=232 all_tiles\n  ring A_s, B_s slots=7 bytes=32768 ahead\n"
            "  overlap yes\n  order overlapped of k\n  epilogue whole by_columns of C_l\n");
  write("fewer.plan", "ring A_s slots=2\n");
  EXPECT_NE(tool("compile product.tile --stage plan --plan fewer.plan").out.find("ring A_s, B_s slots=2"),
            std::string::npos);
  write("many.plan", "ring A_s slots=40\n");
  EXPECT_EQ(tool("compile product.tile --stage plan --plan many.plan").status, 1);
  EXPECT_NE(tool("compile gemm.tile --stage loops").out.find("grid"), std::string::npos);
  EXPECT_NE(tool("compile gemm.tile --stage source").out.find("tw_entry"), std::string::npos);
  const Json plan = json("compile gemm.tile --stage launch_plan");
  EXPECT_EQ(plan["symbols"][0]["name"], "M");
  EXPECT_EQ(plan["symbols"][0]["from"], "A.shape[0]");
  EXPECT_EQ(plan["parameters"][2]["shape"], (Json{"M", "32"}));
  const Json whole = json("compile gemm.tile --json");
  EXPECT_EQ(whole["engine"], "cpu");
  EXPECT_GT(whole["source_bytes"], 1000);
  EXPECT_TRUE(whole["milliseconds"].contains("canonicalize"));
  EXPECT_NE(tool("compile gemm.tile --times").out.find(" ms  build\n"), std::string::npos);
  EXPECT_EQ(shell("cat " + path("gemm.tile") + " | " TILEWRIGHT_TOOL " compile - --stage tiles").out, kGemm);
}

TEST_F(Tool, OptRunsNamedPasses) {
  EXPECT_EQ(tool("opt gemm.tile").out, kGemm);
  EXPECT_EQ(tool("opt gemm.tile --passes=canonicalize").out, tool("compile gemm.tile --stage canonical").out);
  EXPECT_EQ(tool("opt gemm.tile --passes=canonicalize --diff").out,
            "  17 -       C_l[i, j] = max(C_l[i, j] * 2.0 + 1.0, 0.0)\n"
            "  17 +       C_l[i, j] = max(fma(C_l[i, j], 2.0, 1.0), 0.0)\n");
  EXPECT_NE(tool("opt gemm.tile --locations").out.find("@ \"gemm.tile\":10:5"), std::string::npos);
  EXPECT_TRUE(tool("opt --list").out.starts_with("for every engine\n  canonicalize "));
  EXPECT_NE(tool("opt gemm.tile --until place_sync --arch sm_80").out.find("sync block"), std::string::npos);
  EXPECT_EQ(tool("opt gemm.tile --until wrap_sums --arch sm_80").out,
            tool("compile gemm.tile --stage threads --arch sm_80").out);
  EXPECT_EQ(tool("opt gemm.tile --until lower_to_loops").out,
            tool("opt gemm.tile --passes=canonicalize,lower_to_loops").out);
  EXPECT_EQ(tool("opt gemm.tile --passes=place_sync").out, "tilewright: place_sync needs place_fragments before it\n");
  EXPECT_EQ(tool("opt gemm.tile --passes=lower_to_loops,place_sync").status, 2);
}

TEST_F(Tool, RunIsDeterministicAndComparesEngines) {
  const Json a = json("run gemm.tile -D M=17 --engine interpreter --json");
  const Json b = json("run gemm.tile --set M=17 --engine interpreter --json");
  EXPECT_EQ(a["outputs"], b["outputs"]);
  EXPECT_EQ(a["outputs"].size(), 1u);
  EXPECT_EQ(a["outputs"][0]["shape"], (Json{17, 32}));
  EXPECT_EQ(a["outputs"][0]["min"], 0.0);
  EXPECT_NE(json("run gemm.tile --set M=17 --engine interpreter --seed 5 --json")["outputs"], a["outputs"]);
  const Json both = json("run gemm.tile --set M=17 --compare --repeat 3 --json");
  EXPECT_EQ(both["times"].size(), 2u);
  EXPECT_EQ(both["comparison"][0]["name"], "C");
  EXPECT_TRUE(both["comparison"][0]["ok"]);
  EXPECT_NE(tool("run gemm.tile --set M=17 --compare").out.find("C: the engines agree"), std::string::npos);
}

TEST_F(Tool, RunReadsAndWritesArrays) {
  const NDArray a = NDArray::zeros({3, 64}, f32), b = NDArray::zeros({64, 32}, f32);
  for (int64_t i = 0; i < 3; ++i) a.set_float({i, i}, static_cast<double>(i + 1));
  for (int64_t k = 0; k < 64; ++k)
    for (int64_t j = 0; j < 32; ++j) b.set_float({k, j}, static_cast<double>(k + j));
  write("a.npy", to_npy(a));
  write("b.npy", to_npy(b));
  // The rows of A say what M is.
  const Result r = tool("run gemm.tile --engine interpreter --input A=a.npy --input B=b.npy --output C=c.npy");
  ASSERT_EQ(r.status, 0) << r.out;
  const NDArray c = from_npy(read("c.npy"), "c.npy");
  ASSERT_EQ(c.shape(0), 3);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 32; ++j) EXPECT_EQ(c.get_float({i, j}), 2 * static_cast<double>((i + 1) * (i + j)) + 1);
  EXPECT_EQ(tool("run gemm.tile --input D=a.npy").status, 2);
  EXPECT_NE(tool("run gemm.tile --set M=1 --output C=/nowhere/c.npy").out.find("error TW7004 tool: /nowhere/c.npy: "),
            std::string::npos);
  EXPECT_EQ(tool("run gemm.tile --input A=gemm.tile").out, "error TW7005 tool: gemm.tile: not an .npy file\n");
}

TEST_F(Tool, ExplainCountsWhatIsStatic) {
  const Json e = json("explain gemm.tile M=32 --json");
  EXPECT_EQ(json("explain gemm.tile --set M=32 --json"), e);
  const Json& launch = e["launches"][0];
  EXPECT_EQ(launch["blocks"], 2);
  EXPECT_EQ(launch["bytes_on_chip"], (16 * 32 + 32 * 32 + 16 * 32) * 4);
  ASSERT_EQ(launch["operations"].size(), 6u);
  const Json& gemm = launch["operations"][3];
  EXPECT_EQ(gemm["operation"], "gemm");
  EXPECT_EQ(gemm["line"], 14);
  EXPECT_EQ(gemm["executions"], 2 * 2);
  EXPECT_EQ(gemm["flops"], 2 * 16 * 32 * 32);
  EXPECT_EQ(gemm["becomes"].size(), 2u);
  const Json& copy = launch["operations"][1];
  EXPECT_EQ(copy["bytes"], 16 * 32 * 4);
  const Json& map = launch["operations"][4];
  EXPECT_EQ(map["flops"], 16 * 32 * 3);  // fma and max
  EXPECT_EQ(e["flops"], 4 * 2 * 16 * 32 * 32 + 2 * 16 * 32 * 3);
  EXPECT_EQ(e["moved_bytes"], 4 * (16 * 32 + 32 * 32) * 4 + 2 * 16 * 32 * 4);
  EXPECT_EQ(e["tensor_bytes"], (32 * 64 + 64 * 32 + 32 * 32) * 4);
  const Json open = json("explain gemm.tile --json");
  EXPECT_TRUE(open["flops"].is_null());
  EXPECT_EQ(open["launches"][0]["grid"][0], "1");
}

TEST_F(Tool, ExplainOfAGpuNamesInstructionsAndReasons) {
  write("product.tile", kProduct);
  write("barriers.tile", kBarriers);
  const Json e = json("explain product.tile --arch sm_90a --no-compile --json");
  EXPECT_EQ(e["engine"], "cuda");
  const Json& launch = e["launches"][0];
  const auto operation = [&](const char* name) {
    for (const Json& op : launch["operations"])
      if (op["operation"] == name) return op;
    return Json();
  };
  EXPECT_EQ(operation("gemm")["becomes"][0],
            "wgmma.mma_async m64n128k16.f32.bf16.bf16, 2 x 1 warpgroups, a from shared memory");
  EXPECT_EQ(operation("copy")["becomes"][0], "TMA load into a ring of 7 slots, completes on an mbarrier");
  EXPECT_TRUE(launch["plan"]["loader_role"]);
  EXPECT_EQ(launch["plan"]["rings"][0]["tiles"], (Json{"A_s", "B_s"}));
  EXPECT_EQ(launch["plan"]["rings"][0]["slots"], 7);
  ASSERT_EQ(launch["roles"].size(), 3u);
  EXPECT_EQ(launch["roles"][2]["name"], "math");
  // 2 * 512^3 operations at 989 TFLOP/s; three matrices of 512 KB at 4.8 TB/s.
  EXPECT_NEAR(e["compute_floor_us"], 2.0 * 512 * 512 * 512 / 989e12 * 1e6, 1e-3);
  EXPECT_NEAR(e["memory_floor_us"], 3.0 * 512 * 512 * 2 / 4.8e12 * 1e6, 1e-3);
  // The map of shared memory ends where it says. The result alone lies over something, the rings that it comes after.
  int64_t end = 0;
  for (const Json& range : launch["shared"]) {
    const auto begin = range["begin"].get<int64_t>();
    EXPECT_TRUE(begin >= end || range["name"] == "C_l_staged" || begin == 0) << range;
    end = std::max(end, begin + range["bytes"].get<int64_t>());
  }
  EXPECT_EQ(launch["shared_bytes"], end);

  const std::string old = tool("explain product.tile --arch sm_80 --no-compile").out;
  for (const char* line : {"mma.sync m16n8k16", "not wgmma: sm_80 has none", "not TMA: sm_80 has none",
                           "cp.async into a ring of 4 slots", "decided by the accumulator of mma.sync, line 13"})
    EXPECT_NE(old.find(line), std::string::npos) << line << "\n" << old;
  const Json refused = json("explain barriers.tile --arch sm_80 --no-compile --json");
  EXPECT_EQ(refused["refused"]["code"], "TW8201");
  EXPECT_EQ(tool("explain product.tile --arch sm_75").status, 2);
}

// What a program asks of the schedule and does not get is said.
TEST_F(Tool, ExplainNamesHintsThatAreNotTaken) {
  std::string hinted = kProduct;
  hinted.replace(hinted.find("stages=3"), 8, "stages=3, order=[0, 1, 2], stage=[0, 0, 1]");
  hinted.replace(hinted.find("to=A_s\n"), 7, "to=A_s prefer=\"ldmatrix\"\n");
  hinted.replace(hinted.find("to=B_s\n"), 7, "to=B_s prefer=\"tma\"\n");
  write("hinted.tile", hinted);
  const std::string page = tool("explain hinted.tile --arch sm_90a --no-compile").out;
  EXPECT_NE(page.find("warning: the order and the stages that its loop asks for are not taken"), std::string::npos)
      << page;
  EXPECT_NE(page.find("not ldmatrix, which the program prefers"), std::string::npos) << page;
  EXPECT_EQ(page.find("not tma, which the program prefers"), std::string::npos) << page;
}

TEST_F(Tool, PlansThatLostAreNamedWithTheReason) {
  std::string large = kProduct;  // 3 slots of 64 KB do not fit
  for (const auto& [from, to] : {std::pair{"shared A_s: bfloat16[128, 64]", "shared A_s: bfloat16[128, 128]"},
                                 {"shared B_s: bfloat16[64, 128]", "shared B_s: bfloat16[128, 128]"},
                                 {"0..8", "0..4"},
                                 {"k * 64 : 64", "k * 128 : 128"},
                                 {"k * 64 : 64", "k * 128 : 128"},
                                 {"stages=3", "stages=4"}})
    large.replace(large.find(from), std::string_view(from).size(), to);
  write("large.tile", large);
  const Json plans = json("explain large.tile --arch sm_90a --no-compile --json")["plans"];
  ASSERT_GE(plans.size(), 2u) << plans.dump();
  EXPECT_NE(plans[0].get<std::string>().find("lost: the block needs "), std::string::npos) << plans.dump();
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [](const Json& plan) {
    return plan.get<std::string>().ends_with(": taken");
  })) << plans.dump();
}

TEST_F(Tool, PlotLayout) {
  const std::string fragment = "\"(16, 8): [2:R(2) 8:L(4)] x [4:L(1) 2:R(1)]\"";
  EXPECT_EQ(
      tool("plot-layout " + fragment + " --limit 2").out,
      "(16, 8): [2:R(2) 8:L(4)] x [4:L(1) 2:R(1)]\n     0    1\n0  0:0  0:1\n1  4:0  4:1\n(a part of the tile)\n");
  EXPECT_TRUE(tool("plot-layout " + fragment + " --svg").out.starts_with("<svg "));
  EXPECT_NE(tool("plot-layout \"(8, 64): [8:64] x [64:1]; bits 16; swizzle (3, 4, 3)\" --limit 8").out.find("144/b4"),
            std::string::npos);
  write("product.tile", kProduct);
  const Result all = tool("plot-layout --file product.tile --limit 4");
  for (const char* name : {"C_l, decided by the accumulator of wgmma, line 13", "A_s, decided by", "B_s, decided by"})
    EXPECT_NE(all.out.find(name), std::string::npos) << all.out;
  EXPECT_EQ(tool("plot-layout --file product.tile --svg --out " + path("pictures")).status, 0);
  EXPECT_TRUE(read("pictures/A_s.svg").starts_with("<svg "));
  EXPECT_EQ(tool("plot-layout --file product.tile --buffer X").status, 2);
  EXPECT_EQ(tool("plot-layout").status, 2);
}

TEST_F(Tool, LayoutsThatAreNone) {
  const std::string rest =
      "\n  --> layout:1:1\nhelp: a fragment reads (64, 32): [4:W(1) 16:L(2)] x [16:R(1) 2:L(1)]; memory reads (64, "
      "32): "
      "[64:32] x [32:1]; bits 16\n";
  EXPECT_EQ(tool("plot-layout \"(8, 8)\"").out,
            "error TW2031 parse: column 7 of the layout '(8, 8)': ':' is expected" + rest);
  EXPECT_EQ(tool("plot-layout \"(16, 8): nonsense\"").out,
            "error TW2031 parse: column 10 of the layout '(16, 8): nonsense': '[' is expected" + rest);
}

TEST_F(Tool, ChecksProgramsOnEveryEngine) {
  const Json c = json("check gemm.tile M=33 --json");
  EXPECT_EQ(c["program"], "relu_gemm");
  ASSERT_GE(c["engines"].size(), 4u);
  EXPECT_EQ(c["engines"][0]["engine"], "interpreter");
  for (const Json& engine : c["engines"]) EXPECT_TRUE(engine.contains("milliseconds")) << engine;
  EXPECT_TRUE(tool("check gemm.tile M=33").out.starts_with("relu_gemm: the engines agree: interpreter "));
  const Json lacking = Json::parse(tool("check gemm.tile --json").out, nullptr, false);
  EXPECT_EQ(lacking["error"]["code"], "TW4001");
  EXPECT_EQ(lacking["error"]["help"], "give a value: M=64");
  EXPECT_EQ(tool("check gemm.tile M").status, 2);
  const Json unknown = Json::parse(tool("check gemm.tile M=3 Q=1 --json").out, nullptr, false);
  EXPECT_EQ(unknown["error"]["code"], "TW1080");
}

TEST_F(Tool, SaysItsVersion) { EXPECT_EQ(tool("--version").out, "tilewright 0.1.0\n"); }

TEST_F(Tool, Doctor) {
  const Json d = json("doctor --json");
  EXPECT_EQ(d["engines"], (Json{"cpu", "interpreter", "simulator"}));
  EXPECT_TRUE(d["compiler"]["works"]);
  EXPECT_GE(d["threads"], 1);
  const Result none = shell("TILEWRIGHT_CXX=/nowhere " TILEWRIGHT_TOOL " doctor --json");
  EXPECT_EQ(none.status, 1);
  const Json broken = Json::parse(none.out, nullptr, false);
  EXPECT_EQ(broken["engines"], (Json{"interpreter", "simulator"}));
  EXPECT_FALSE(broken["compilers"].empty());  // those of PATH, whatever the variable says
  EXPECT_EQ(broken["switches"]["TILEWRIGHT_CXX"], "/nowhere");
  EXPECT_NE(tool("doctor").out.find("works"), std::string::npos);
}

TEST_F(Tool, DoctorLooksForCuda) {
  const Json d = json("doctor --json");
  EXPECT_TRUE(d["nvrtc"]["works"]) << d["nvrtc"];
  EXPECT_GE(d["nvrtc"]["architectures"].size(), 5u);
  const Result none = shell("TILEWRIGHT_NVRTC=/nowhere TILEWRIGHT_LIBCUDA=/nowhere " TILEWRIGHT_TOOL " doctor --json");
  EXPECT_EQ(none.status, 0);  // the other engines work
  const Json without = Json::parse(none.out, nullptr, false);
  EXPECT_FALSE(without["nvrtc"]["works"]);
  EXPECT_NE(without["nvrtc"]["help"].get<std::string>().find("nvidia-cuda-nvrtc"), std::string::npos);
  EXPECT_FALSE(without["driver"]["works"]);
  EXPECT_EQ(without["driver"]["devices"], Json::array());
  const Result shown = shell("TILEWRIGHT_NVRTC=/nowhere TILEWRIGHT_LIBCUDA=/nowhere " TILEWRIGHT_TOOL " doctor");
  EXPECT_NE(shown.out.find("cuda        no CUDA driver: /nowhere"), std::string::npos) << shown.out;
}

TEST_F(Tool, FuzzSaysWhatItDid) {
  const Json f = json("fuzz --seeds 1..20 --engine interpreter --json");
  EXPECT_EQ(f["programs"], 20);
  EXPECT_TRUE(f["findings"].empty());
  EXPECT_NE(tool("fuzz --invalid --seeds 1..40").out.find("40 invalid programs"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
