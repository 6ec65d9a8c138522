// Kernels that were compiled ahead of time beside the executables of the same plans: what they refuse, and what a call
// puts on a stream, through a stand-in for the driver's library.
#include "runtime/aot_text.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "runtime/cuda_kernel.h"
#include "runtime/cuda_test_driver.h"
#include "runtime/host_compiler.h"
#include "runtime/processor.h"
#include "runtime/shared_object.h"
#include "support/c_words.h"
#include "tilewright/cuda.h"

namespace tilewright::runtime {
namespace {

using cuda::BufferParameter, cuda::FakeDriver, cuda::KernelLaunch, cuda::TensorMapParameter, cuda::TensorMapPlan,
    cuda::ValueParameter;

constexpr Device kCuda0{2, 0}, kCuda1{2, 1};

// The kernel and its runtime as a library; `code` beside them defines what they call.
class Library {
 public:
  explicit Library(const AotKernel& kernel, const std::string& code = "typedef int nothing;\n")
      : object_(compiled(kernel, code), "aot") {}

  template <class... T>
  int operator()(const char* function, T... arguments) const {
    return reinterpret_cast<int (*)(T...)>(object_.symbol(function))(arguments...);
  }
  std::string error() const { return reinterpret_cast<const char* (*)()>(object_.symbol("tilewright_error_text"))(); }

 private:
  // The runtime is C99, of which compilers have nothing to say.
  static std::string compiled(const AotKernel& kernel, const std::string& code) {
    const std::string host = aot_host_text(kernel), runtime = aot_runtime_text();
    CompilerRun run;
    run.files = {{"runtime.c", runtime}, {"host.c", host}, {"code.c", code}};
    for (size_t i = 0; i < kernel.versions.size(); ++i)
      run.files.emplace_back(aot_image_file(i), kernel.versions[i].cubin);
    run.arguments = {"-std=c99", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", "aot.so"};
    for (const char* file : {"host.c", "code.c", "runtime.c"})  // g++ forgets the language after a file
      run.arguments.insert(run.arguments.end(), {"-x", "c", file});
    run.result = "aot.so", run.dump_name = "aot";
    return run_compiler(host_compiler(), run);
  }
  SharedObject object_;
};

AotKernel kernel_of(const LaunchPlan& plan, cuda::CudaPlan cuda = {}) {
  AotKernel kernel;
  kernel.function = plan.name, kernel.arch = plan.memory == LaunchPlan::Memory::Cuda ? "sm_90a" : "cpu";
  kernel.plan = plan;
  kernel.versions.push_back({plan, std::move(cuda), "\177ELF"});
  return kernel;
}

// ---- on the processor: what executables refuse is refused with the same number

constexpr const char* kEntry =
    "struct tw_call;\nint tw_entry_%(const struct tw_call* call);\n"
    "int tw_entry_%(const struct tw_call* call) { return call == 0; }\n";
std::string entry_of(const std::string& function) {
  std::string text = kEntry;
  for (size_t at; (at = text.find('%')) != std::string::npos;) text.replace(at, 1, function);
  return text;
}

struct Nothing final : Callee {
  void run(const BoundCall&, CallReport&) override {}
};

// 0, or the number of the error.
template <class Call>
int number_of(Call&& call) {
  try {
    call();
    return 0;
  } catch (const Error& e) {
    return e.diagnostic().code;
  }
}

// X[M, N] with strides (S, 1) is written, Y[M, 2 * N + 1] is read, if 16 divides n; f is any number.
LaunchPlan strided_plan() {
  LaunchPlan plan;
  plan.name = "strided";
  const IntProgram two_n = combine(IntOp::Kind::Mul, constant(2), symbol(1));
  plan.parameters = {tensor_parameter("X", f32, {symbol(0), symbol(1)}, {symbol(2), constant(1)}),
                     tensor_parameter("Y", f32, {symbol(0), combine(IntOp::Kind::Add, two_n, constant(1))}),
                     scalar_parameter("n", i32), scalar_parameter("f", f64)};
  plan.parameters[0].written = true;
  plan.symbols = {shape_symbol("M", 0, 0), shape_symbol("N", 0, 1), shape_symbol("S", 0, 0)};
  plan.symbols[0].dtype = i32;
  plan.symbols[2].source = Equation::Source::Stride;
  plan.assumes = {{combine(IntOp::Kind::Equal, combine(IntOp::Kind::FloorMod, scalar(0), constant(16)), constant(0)),
                   "n % 16 == 0",
                   {}}};
  return plan;
}

TEST(AheadOfTime, RefusesWhatExecutablesRefuse) {
  const Library library(kernel_of(strided_plan()), entry_of("strided"));
  const Executable executable = make_executable(strided_plan(), std::make_unique<Nothing>(), "cpu", "");
  alignas(64) static char memory[1 << 16];
  std::mt19937 random(1);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  std::map<int, int> seen;
  for (int i = 0; i < 4000; ++i) {
    const int64_t m = below(6), n = below(6), s = below(2) ? n : below(12);
    const int32_t number = static_cast<int32_t>(below(4) ? 16 * below(9) : below(99));
    char* const x = memory + (below(8) ? 4 * below(200) : below(800));
    char* const y = memory + 16384 * below(2) + (below(8) ? 4 * below(200) : below(800));
    const int64_t shape[] = {m, n}, strides[] = {s, 1};
    const NDArray a = NDArray::borrow(x, shape, f32, strides), b = NDArray::borrow(y, {m, 2 * n + 1}, f32);
    const int wanted = number_of([&] { executable(a, b, number, 0.5); });
    const int found = library("strided", x, y, number, 0.5, m, n, s, static_cast<void*>(nullptr));
    ASSERT_EQ(found, wanted) << i << ": " << m << " x " << n << " by " << s << ", " << number << ", " << x - memory
                             << ", " << y - memory << ": " << library.error();
    ++seen[found];
  }
  EXPECT_GT(seen[0], 500);
  for (Code code : {Code::ArgumentAlignment, Code::ArgumentsOverlap, Code::AssumptionFailed})
    EXPECT_GT(seen[static_cast<int>(code)], 50) << static_cast<int>(code);
}

TEST(AheadOfTime, SaysWhatIsWrong) {
  const Library library(kernel_of(strided_plan()), entry_of("strided"));
  alignas(64) static float memory[4096];
  float* const x = memory;
  const float* const y = memory + 2048;
  void* const stream = nullptr;
  const auto refused = [&](Code code, const std::string& message, auto... arguments) {
    EXPECT_EQ(library("strided", arguments..., stream), static_cast<int>(code));
    EXPECT_EQ(library.error(), fmt::format("TW{:04}: strided: {}", static_cast<int>(code), message));
  };
  using L = int64_t;
  EXPECT_EQ(library("strided", x, y, 16, 0.5, L{4}, L{4}, L{8}, stream), 0) << library.error();
  float* const none = nullptr;
  refused(Code::ArgumentNull, "argument 0 'X' is null, but the program uses it", none, y, 16, 0.5, L{4}, L{4}, L{8});
  EXPECT_EQ(library("strided", none, y, 16, 0.5, L{0}, L{4}, L{8}, stream), 0) << "without elements";
  refused(Code::SymbolUnsolvable, "M = -1 is negative, but is a dimension of type int32", x, y, 16, 0.5, L{-1}, L{4},
          L{8});
  refused(Code::SymbolUnsolvable, "M = 2147483600 leaves no room to round it up in int32", x, y, 16, 0.5, L{2147483600},
          L{4}, L{8});
  refused(Code::SymbolUnsolvable, "M = 4294967296 does not fit int32", x, y, 16, 0.5, L{1} << 32, L{4}, L{8});
  refused(Code::AssumptionFailed, "Assume: n % 16 == 0 does not hold (n = 3)", x, y, 3, 0.5, L{4}, L{4}, L{8});
  refused(Code::ExpressionOverflow, "2 * N + 1 has no value in its type (N = 6917529027641081856)", x, y, 16, 0.5, L{0},
          L{3} << 61, L{8});
  refused(Code::ArgumentAlignment, "argument 1 'Y' lies 2 bytes past a multiple of 4, the size of its elements", x,
          reinterpret_cast<const float*>(reinterpret_cast<const char*>(y) + 2), 16, 0.5, L{4}, L{4}, L{8});
  refused(Code::ArgumentsOverlap,
          "argument 0 'X', which the program writes, shares part of its memory with argument 1 'Y'", memory + 2040, y,
          16, 0.5, L{4}, L{4}, L{8});
}

TEST(AheadOfTime, ShapesThatASymbolMakesNegative) {
  LaunchPlan plan;
  plan.name = "inner";
  plan.parameters = {tensor_parameter("X", f32, {combine(IntOp::Kind::Sub, symbol(0), constant(4))})};
  plan.symbols = {shape_symbol("N", 0, 0)};
  const Library library(kernel_of(plan), entry_of("inner"));
  static float memory[16];
  void* const stream = nullptr;
  EXPECT_EQ(library("inner", memory, int64_t{5}, stream), 0);
  EXPECT_EQ(library("inner", memory, int64_t{3}, stream), static_cast<int>(Code::ArgumentShape));
  EXPECT_EQ(library.error(), "TW4007: inner: argument 0 'X' has a negative dimension 0: N - 4 = -1 (N = 3)");
}

TEST(AheadOfTime, RefusesProcessorsThatLackInstructions) {
  AotKernel kernel = kernel_of(strided_plan());
  kernel.features = 1u << 31 | detect_processor().bits();  // which none has
  const Library library(kernel, entry_of("strided"));
  static float memory[64];
  void* const stream = nullptr;
  EXPECT_EQ(library("strided", memory, memory, 16, 0.5, int64_t{0}, int64_t{0}, int64_t{0}, stream),
            static_cast<int>(Code::ProcessorUnfit));
  EXPECT_NE(library.error().find("TW5507: strided: compiled for a processor with"), std::string::npos);
}

TEST(AheadOfTime, NamesThatAreNoneOfC) {
  LaunchPlan plan = strided_plan();
  plan.parameters[0].name = "float", plan.parameters[1].name = "a b", plan.parameters[2].name = "a_b";
  plan.parameters[3].name = "stream";
  EXPECT_EQ(aot_signature(kernel_of(plan)),
            "int strided(float* float_, const float* a_b, int32_t a_b_, double stream_, int64_t M, int64_t N, "
            "int64_t S, void* stream)");
  Library(kernel_of(plan), entry_of("strided"));
  plan.symbols[0].name = "a*/b", plan.name = "*/";
  AotKernel kernel = kernel_of(plan);
  kernel.function = "strided";
  EXPECT_NE(aot_header_text(kernel).find("float_: float32[a* /b, N], strides (S, 1), written"), std::string::npos)
      << aot_header_text(kernel);
  EXPECT_EQ(aot_header_text(kernel).find("*/\n"), aot_header_text(kernel).find("*/"));
}

// Workspaces are there for the call, scalars and symbols are handed on, and a failed assertion is an error.
TEST(AheadOfTime, HandsBuffersAndIntegersOn) {
  LaunchPlan plan = strided_plan();
  plan.workspaces = {{"scratch", f64, combine(IntOp::Kind::Mul, symbol(0), symbol(1))}};
  Site site;
  site.kind = Site::Kind::Assert, site.message = "n is small", site.location = {"p.tile", 7, 3};
  site.operands = {{"n", i32}, {"f", f32}};
  plan.sites = {site};
  const std::string code = aot_kernel_abi_text() + R"(
int tw_entry_strided(const struct tw_call* call);
int tw_entry_strided(const struct tw_call* call) {
  double* scratch = (double*)call->buffers[2];
  float* x = (float*)call->buffers[0];
  if (((unsigned long long)scratch & 63) != 0) return 1;
  for (int i = 0; i < call->integers[0] * call->integers[1]; ++i) scratch[i] = i;
  x[0] = (float)scratch[5] + (float)call->integers[3];
  if (call->integers[3] > 32) {
    const long long place[6] = {1, 0, 0, 9, 0, 0}, before[6] = {0, 0, 0, 2, 0, 0};
    const unsigned long long values[2] = {(unsigned long long)call->integers[3], 0x3fc00000u};
    call->report(call->host, 0, place, values, 2);
    call->report(call->host, 0, before, values, 2);
    return 1;
  }
  return call->max_threads < 1;
}
)";
  const Library library(kernel_of(plan), code);
  alignas(64) static float memory[4096];
  void* const stream = nullptr;
  EXPECT_EQ(library("strided", memory, memory + 1024, 32, 0.5, int64_t{2}, int64_t{3}, int64_t{3}, stream), 0);
  EXPECT_EQ(memory[0], 37);
  EXPECT_EQ(library("strided", memory, memory + 1024, 48, 0.5, int64_t{2}, int64_t{3}, int64_t{3}, stream),
            static_cast<int>(Code::AssertionFailed));
  EXPECT_EQ(library.error(),
            "TW4015: strided: assertion failed in block (0, 0, 0), thread (2, 0, 0): n is small (n = 48, f = 1.5) "
            "(p.tile:7)");
}

// ---- on a device: what executables put on a stream is put there

LaunchPlan cuda_matmul_plan() {
  LaunchPlan plan = matmul_plan();
  plan.memory = LaunchPlan::Memory::Cuda;
  return plan;
}

TensorMapPlan matrix_map(std::string name, int buffer, IntProgram rows, IntProgram columns) {
  TensorMapPlan map;
  map.name = std::move(name), map.buffer = buffer, map.dtype = f16;
  map.dims = {columns, rows}, map.strides = {columns}, map.box = {64, 64};
  map.swizzle = TensorMapPlan::Swizzle::Bytes128;
  return map;
}

cuda::CudaPlan matmul_cuda() {
  KernelLaunch launch;
  launch.function = "matmul";
  const auto blocks = [](const IntProgram& extent, int64_t tile) {
    return combine(IntOp::Kind::FloorDiv, combine(IntOp::Kind::Add, extent, constant(tile - 1)), constant(tile));
  };
  launch.grid = {blocks(symbol(2), 128), blocks(symbol(0), 64), constant(1)};
  launch.block = {384, 1, 1}, launch.dynamic_shared_bytes = 100000;
  launch.parameters = {BufferParameter{2}, ValueParameter{symbol(0), 4}, TensorMapParameter{0},
                       ValueParameter{combine(IntOp::Kind::Mul, symbol(1), symbol(2)), 8}, TensorMapParameter{1}};
  return {{matrix_map("A", 0, symbol(0), symbol(1)), matrix_map("B", 1, symbol(1), symbol(2))}, {launch}};
}

Executable load(const LaunchPlan& plan, const cuda::CudaPlan& launches) {
  DeviceBinary binary;
  binary.cubin = "\177ELF";
  return make_executable(plan, cuda::load_cuda({plan.name, "", "sm_90a", launches}, binary, plan), "cuda", "");
}

// What a call left in the stand-in, without what is counted there.
std::string recorded(FakeDriver& driver) {
  std::string out;
  for (const fake_cuda::Launch& l : driver->launches) {
    out += fmt::format("{} grid ({}) block ({}) shared {} stream {}", l.function, fmt::join(l.config.grid, ", "),
                       fmt::join(l.config.block, ", "), l.config.dynamic_shared_bytes,
                       static_cast<void*>(l.config.stream));
    for (const cuda::LaunchAttribute& a : l.attributes)
      out += fmt::format(" attribute {}: {}", static_cast<int>(a.id), fmt::join(a.value, " "));
    for (const std::vector<char>& p : l.parameters)
      if (p.size() <= 8) out += fmt::format(" [{:02x}]", fmt::join(p, " "));
    for (size_t i = 0; i < l.parameters.size(); ++i)
      if (l.parameters[i].size() == 128)
        out += fmt::format(" map {} {}", i, reinterpret_cast<uintptr_t>(l.parameter_places[i]) % 64);
    out += "\n";
  }
  for (const fake_cuda::EncodedMap& m : driver->maps)
    out += fmt::format("map {} {} {} {} {} at {} ({}) ({}) ({}) ({})\n", m.type, m.interleave, m.swizzle,
                       m.l2_promotion, m.oob_fill, m.dims[0] > 1 ? m.address : 0, fmt::join(m.dims, ", "),
                       fmt::join(m.strides, ", "), fmt::join(m.box, ", "), fmt::join(m.element_strides, ", "));
  for (const auto& [attribute, value] : driver->function_settings) out += fmt::format("set {} {}\n", attribute, value);
  driver->launches.clear(), driver->maps.clear(), driver->function_settings.clear();
  return out;
}

struct Matrices {
  int64_t m, n, k;
  NDArray a, b, c;
  Matrices(int64_t rows, int64_t columns, int64_t inner, Device device = kCuda0)
      : m(rows),
        n(columns),
        k(inner),
        a(NDArray::zeros({m, k}, f16, device)),
        b(NDArray::zeros({k, n}, f16, device)),
        c(NDArray::zeros({m, n}, f32, device)) {}
};
int call(const Library& library, const Matrices& x, void* stream = nullptr) {
  return library("matmul_relu", x.a.data(), x.b.data(), x.c.data(), x.m, x.k, x.n, stream);
}

void expect_same_launches(FakeDriver& driver, const LaunchPlan& plan, const cuda::CudaPlan& cuda,
                          const std::vector<int>& bytes, const std::vector<Matrices>& calls) {
  driver->parameter_bytes = bytes;
  const Library library(kernel_of(plan, cuda));
  const Executable executable = load(plan, cuda);
  std::string ours, theirs = recorded(driver);  // what is set when it is loaded
  const tilewright::cuda::StreamScope scope(reinterpret_cast<void*>(0x77));
  for (const Matrices& x : calls) {
    const int number = call(library, x, reinterpret_cast<void*>(0x77));
    EXPECT_EQ(number, 0) << library.error();
    ours += recorded(driver);
    executable(x.a, x.b, x.c);
    theirs += recorded(driver);
  }
  const auto sorted = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  EXPECT_EQ(sorted(ours), sorted(theirs));
  EXPECT_NE(ours.find("matmul grid"), std::string::npos);
}

TEST(AheadOfTimeOnDevices, LaunchesWhatExecutablesLaunch) {
  FakeDriver driver;
  std::vector<Matrices> calls;
  for (const auto& [m, n, k] : {std::array{100, 256, 64}, {1, 8, 8}, {100, 32768, 64}, {100, 32776, 64}, {100, 256, 0}})
    calls.emplace_back(m, n, k);
  expect_same_launches(driver, cuda_matmul_plan(), matmul_cuda(), {8, 4, 128, 8, 128}, calls);
}

TEST(AheadOfTimeOnDevices, SetsAttributesOfSeveralLaunches) {
  FakeDriver driver;
  cuda::CudaPlan cuda = matmul_cuda();
  cuda.tensor_maps.clear();
  cuda.launches[0].parameters = {BufferParameter{0}, ValueParameter{symbol(1), 4}};
  KernelLaunch second = cuda.launches[0], none = cuda.launches[0];
  second.function = "second", second.cluster = {2, 1, 1}, second.grid[0] = constant(4), second.cooperative = true;
  none.function = "none", none.grid[2] = constant(0);
  cuda.launches[0].programmatic_serialization = true;
  cuda.launches.push_back(none), cuda.launches.push_back(second);
  std::vector<Matrices> calls;
  calls.emplace_back(64, 256, 64);
  expect_same_launches(driver, cuda_matmul_plan(), cuda, {8, 4}, calls);
}

TEST(AheadOfTimeOnDevices, LoadsOncePerDevice) {
  FakeDriver driver;
  const Library library(kernel_of(cuda_matmul_plan(), matmul_cuda()));
  const Matrices x(100, 256, 64), y(100, 256, 64, kCuda1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call(library, x), 0) << library.error();
    EXPECT_EQ(call(library, y), 0) << library.error();
  }
  EXPECT_EQ(driver->loads_of_context[0], 1);
  EXPECT_EQ(driver->loads_of_context[1], 1);
}

TEST(AheadOfTimeOnDevices, ChoosesTheVersionThatFits) {
  FakeDriver driver;
  AotKernel kernel = kernel_of(cuda_matmul_plan(), matmul_cuda());
  const auto version = [&](const char* name, bool assumes, int alignment) {
    AotVersion v = kernel.versions[0];
    v.cuda.launches[0].function = name, v.cuda.launches[0].parameters = {BufferParameter{2}};
    v.cuda.tensor_maps.clear();
    if (assumes)
      v.plan.assumes.push_back(
          {combine(IntOp::Kind::Equal, combine(IntOp::Kind::FloorMod, symbol(1), constant(8)), constant(0)),
           "K % 8 == 0",
           {}});
    for (Parameter& p : v.plan.parameters) p.alignment = alignment;
    return v;
  };
  kernel.versions = {version("fast", true, 16), version("aligned", false, 16), version("anywhere", false, 0)};
  const Library library(kernel);
  driver->parameter_bytes = {8};
  const auto taken = [&](int64_t k, int64_t skip) {
    const Matrices x(64, 64, k + 8);
    EXPECT_EQ(library("matmul_relu", static_cast<char*>(x.a.data()) + skip, x.b.data(), x.c.data(), x.m, k, x.n,
                      static_cast<void*>(nullptr)),
              0)
        << library.error();
    const std::string function = driver->launches.at(0).function;
    driver->launches.clear();
    return function;
  };
  EXPECT_EQ(taken(64, 0), "fast");
  EXPECT_EQ(taken(60, 0), "aligned");
  EXPECT_EQ(taken(64, 2), "anywhere");
  kernel.versions.pop_back();
  const Library demanding(kernel);
  const Matrices x(64, 64, 72);
  EXPECT_EQ(demanding("matmul_relu", static_cast<char*>(x.a.data()) + 2, x.b.data(), x.c.data(), x.m, int64_t{64}, x.n,
                      static_cast<void*>(nullptr)),
            static_cast<int>(Code::ArgumentAlignment));
  EXPECT_EQ(demanding.error(),
            "TW4009: matmul_relu: argument 0 'A' lies 2 bytes past a multiple of 16, but must be aligned to 16 bytes");
}

TEST(AheadOfTimeOnDevices, LendsWorkspacesOfTheStream) {
  FakeDriver driver;
  LaunchPlan plan = cuda_matmul_plan();
  plan.workspaces = {{"scratch", f32, combine(IntOp::Kind::Mul, symbol(0), symbol(2))}};
  cuda::CudaPlan cuda = matmul_cuda();
  cuda.tensor_maps.clear(), cuda.launches[0].parameters = {BufferParameter{3}};
  const Library library(kernel_of(plan, cuda));
  driver->parameter_bytes = {8};
  EXPECT_EQ(call(library, Matrices(64, 256, 64)), 0) << library.error();
  EXPECT_EQ(driver.count("cuMemAllocAsync"), 1);
  EXPECT_EQ(driver.count("cuMemFreeAsync"), 1);
  void* lent = nullptr;
  std::memcpy(&lent, driver->launches.at(0).parameters.at(0).data(), sizeof lent);
  EXPECT_NE(lent, nullptr);
  driver->failing = "cuLaunchKernelEx", driver->failing_result = 700;
  EXPECT_EQ(call(library, Matrices(64, 256, 64)), static_cast<int>(Code::CudaCallFailed));
  EXPECT_EQ(library.error(),
            "TW8104: matmul_relu: cannot launch: CUDA_ERROR_ILLEGAL_ADDRESS (700): something is wrong");
  EXPECT_EQ(driver.count("cuMemAllocAsync"), driver.count("cuMemFreeAsync"));
}

TEST(AheadOfTimeOnDevices, RefusesWhatDevicesCannotDo) {
  FakeDriver driver;
  const auto refused = [&](Code code, const std::string& message, const LaunchPlan& plan, const cuda::CudaPlan& cuda,
                           const Matrices& x) {
    const Library library(kernel_of(plan, cuda));
    EXPECT_EQ(call(library, x), static_cast<int>(code));
    EXPECT_NE(library.error().find(message), std::string::npos) << library.error();
  };
  const LaunchPlan plan = cuda_matmul_plan();
  const cuda::CudaPlan cuda = matmul_cuda();
  const Matrices x(64, 128, 64);
  driver->compute_major = 8;
  refused(Code::CudaDeviceUnfit, "compiled for sm_90a, but cuda:0 is sm_80", plan, cuda, x);
  driver->compute_major = 9, driver->max_threads = 256;
  refused(Code::CudaDeviceUnfit, "has 384 threads, but with its 40 registers cuda:0 runs at most 256", plan, cuda, x);
  driver->max_threads = 1024, driver->static_shared_bytes = 200000;
  refused(Code::CudaDeviceUnfit, "takes 300000 bytes of shared memory, but cuda:0 gives at most 232448", plan, cuda, x);
  driver->static_shared_bytes = 0;
  refused(Code::TensorMapInvalid, "no tensor map of 'A': elements of a stride (60)", plan, cuda, Matrices(64, 128, 60));
  cuda::CudaPlan odd = cuda;
  odd.launches[0].grid[1] = constant(65536);
  refused(Code::LaunchGridInvalid, "has 65536 blocks in dimension 1 of its grid, but must have 0 to 65535", plan, odd,
          x);
  odd.launches[0].grid[1] = constant(1);
  odd.launches[0].parameters[1] = ValueParameter{constant(int64_t{1} << 40), 4};
  refused(Code::LaunchValueRange, "parameter 1 of kernel 'matmul' does not fit its type", plan, odd, x);
  Matrices mixed = x;
  mixed.b = Matrices(64, 128, 64, kCuda1).b;
  refused(Code::ArgumentDevice, "argument 1 'B' is on cuda:1, but 'A' is on cuda:0", plan, cuda, mixed);
  mixed.b = NDArray::zeros({64, 128}, f16);
  refused(Code::PointerNotOnDevice, "argument 1 'B' is not in the memory of a CUDA device", plan, cuda, mixed);
}

TEST(AheadOfTimeOnDevices, SaysWhatIsMissing) {
  const Library library(kernel_of(cuda_matmul_plan(), matmul_cuda()));
  const ScopedVariable nowhere("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so");
  static char memory[64];
  const auto run = [&] {
    return library("matmul_relu", memory, memory, memory, int64_t{1}, int64_t{0}, int64_t{1},
                   static_cast<void*>(nullptr));
  };
  EXPECT_EQ(run(), static_cast<int>(Code::CudaDriverMissing));
  EXPECT_NE(library.error().find("no CUDA driver: /nowhere/libcuda.so"), std::string::npos) << library.error();
  FakeDriver driver;
  driver->devices = 0;
  EXPECT_EQ(run(), static_cast<int>(Code::CudaDeviceMissing));
}

// ---- names

// Names of the macros that the standard headers define, or the compiler does.
std::set<std::string> macros(const char* language, const char* standard) {
  std::string text;
  for (const char* header : {"assert", "ctype",  "errno",  "fenv",   "float",  "inttypes", "iso646", "limits",
                             "locale", "math",   "setjmp", "signal", "stdarg", "stdbool",  "stddef", "stdint",
                             "stdio",  "stdlib", "string", "time",   "uchar",  "wchar",    "wctype"})
    text += fmt::format("#include <{}.h>\n", header);
  if (std::string_view(language) == "c") text += "#include <complex.h>\n#include <tgmath.h>\n";
  CompilerRun run;
  run.files = {{"headers.c", text}};
  run.arguments = {"-x", language, standard, "-dM", "-E", "headers.c", "-o", "macros.txt"};
  run.result = "macros.txt", run.dump_name = "macros";
  std::istringstream lines(run_compiler(host_compiler(), run));
  std::set<std::string> out;
  for (std::string define, name, rest; lines >> define >> name; std::getline(lines, rest))
    if (name = name.substr(0, name.find('(')); name[0] != '_') out.insert(name);
  return out;
}

TEST(AotNames, EveryMacroOfTheHeadersIsKnown) {
  for (const auto& [language, standard] : {std::pair("c", "-std=c99"), {"c", "-std=gnu17"}, {"c++", "-std=gnu++20"}})
    for (const std::string& name : macros(language, standard))
      EXPECT_TRUE(c_word(name) != CWord::None) << name << " of " << standard;
}

TEST(AotNames, OtherNamesAreFree) {
  for (const char* name : {"gemm", "A", "M", "softmax", "scale", "INT8", "EXP", "x", "CPU", "max", "rows", ""})
    EXPECT_EQ(c_word(name), CWord::None) << name;
}

}  // namespace
}  // namespace tilewright::runtime
