#include "driver/build_kernel.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/hand_in_plan.h"
#include "driver/plan_json.h"
#include "driver/versions.h"
#include "passes/assume_fast_calls.h"
#include "runtime/aot_text.h"
#include "runtime/host_compiler.h"
#include "runtime/process.h"
#include "support/c_words.h"
#include "support/diagnostic.h"
#include "tilewright/version.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using runtime::AotKernel, runtime::AotVersion;

constexpr const char* kInProcess = "run it from Python or C++ instead, or leave that out of the program";

// ---- what stands alone

void refuse(const AotKernel& kernel, const std::string& why, const SourceLocation& at = {}) {
  fail(Code::AheadOfTime, at, fmt::format("'{}' cannot be compiled ahead of time: {}", kernel.plan.name, why),
       kInProcess);
}

void refuse_reports(const AotKernel& kernel, const std::vector<runtime::Site>& sites, bool on_cpu) {
  for (const runtime::Site& s : sites) {
    if (s.is_print()) refuse(kernel, "it prints", s.location);
    if (!on_cpu) refuse(kernel, "an assertion on a GPU, for which its call would have to wait", s.location);
  }
}

void refuse_scalars(const AotKernel& kernel) {
  for (const runtime::Parameter& p : kernel.plan.parameters)
    if (p.kind == runtime::Parameter::Kind::Scalar && p.dtype.is_float() && p.dtype != f32 && p.dtype != f64)
      refuse(kernel, fmt::format("C has no type for its parameter '{}' of {}", p.name, p.dtype.name()));
}

// A library, of those that programs are linked with, that has something of the name.
const char* library_with(const std::string& name) {
  for (const char* library : {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libgomp.so.1"})
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL))
      if (dlsym(handle, name.c_str())) return library;
  return nullptr;
}

// Why a function of C cannot have the name; empty: it can. The linker gives every call of a name to the one function
// that has it, so a function of a library that the object or its program calls would be lost.
std::string taken_by(const std::string& name) {
  switch (c_word(name)) {
    case CWord::Keyword: return "it is a word of C or C++";
    case CWord::Type: return "headers of C have a type of this name";
    case CWord::Macro: return "headers of C have a macro of this name";
    case CWord::MathFunction:
    case CWord::Function: return "the C library has a function of this name, whose calls would come here";
    case CWord::None: break;
  }
  if (name == "main" || name == "std") return "it is a word of C or C++";
  if (name.starts_with("tw_") || name.starts_with("tilewright_"))
    return "names with tw_ and tilewright_ are the runtime's";
  if (name.starts_with("__") ||
      (name[0] == '_' && name.size() > 1 && std::isupper(static_cast<unsigned char>(name[1]))))
    return "names that begin so are the compiler's";
  if (const char* library = library_with(name))
    return fmt::format("{} has a function of this name, whose calls would come here", library);
  return "";
}

std::string function_name(std::string wish, const std::string& arch) {
  constexpr std::string_view kArch = "{arch}";
  for (size_t at; (at = wish.find(kArch)) != std::string::npos;) wish.replace(at, kArch.size(), arch);
  std::string letters;  // of a name that there is
  for (char c : wish) letters += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  const bool is_name = letters == wish && !wish.empty() && !std::isdigit(static_cast<unsigned char>(wish[0]));
  const std::string why = is_name ? taken_by(wish) : "it is no name";
  if (!why.empty())
    fail(Code::BadOption, {}, fmt::format("'{}' cannot be the name of a function in C: {}", wish, why),
         fmt::format("choose another: --name my_{}", letters.empty() ? "kernel" : letters));
  return wish;
}

// ---- versions

runtime::ProcessorFeatures features_of_arch(const std::string& arch) {
  if (arch == "cpu") return runtime::processor_features();
  const std::string level = arch.substr(4);
  if (level != "portable" && level != "avx2" && level != "avx512" && level != "amx")
    fail(Code::BadOption, {}, fmt::format("'{}' is no level of processors", arch),
         "it is cpu, for this machine's, cpu:portable, cpu:avx2, cpu:avx512 or cpu:amx");
  return runtime::features_of_level(level);
}

// The text, as its only version.
std::string take_cpu(AotKernel& kernel, const ir::TileProgram& tiles, const runtime::ProcessorFeatures& features,
                     Dump& dump) {
  CpuKernel written = write_cpu(tiles, features, dump);
  if (written.waits) refuse(kernel, "on a CPU, some of its threads wait for others, as roles and barriers do");
  refuse_reports(kernel, written.sites, true);
  kernel.plan.sites = std::move(written.sites), kernel.features = features.bits();
  kernel.versions.push_back({kernel.plan, {}, {}});
  return std::move(written.text);
}

AotVersion cuda_version(const AotKernel& kernel, const ir::TileProgram& tiles, Dump& dump) {
  DeviceChoice choice = choose_by_compiler(tiles, kernel.arch, dump);
  refuse_reports(kernel, choice.text.sites, false);
  runtime::cuda::refuse_wrong_code(kernel.plan.name, choice.binary->cubin);
  AotVersion out{plan_of_text(choice.text, build_plan(tiles)), std::move(choice.text.kernel.plan),
                 std::move(choice.binary->cubin)};
  verify(out.plan);
  verify(out.cuda, out.plan);
  if (out.cuda.launches.size() > size_t{64})
    fail(Code::PlanTooLarge, {}, fmt::format("{}: {} launches; at most 64", kernel.plan.name, out.cuda.launches.size()),
         "split the program");
  return out;
}

// Whether it takes every call that fulfils the program's plan.
bool takes_all(const AotVersion& v, const runtime::LaunchPlan& plan) {
  if (v.plan.assumes.size() > plan.assumes.size()) return false;
  return std::ranges::all_of(v.plan.parameters,
                             [](const runtime::Parameter& p) { return p.alignment <= bytes_of(p.dtype, 1); });
}

// What LoadedProgram makes when a call needs it is made at once: fast calls, then aligned ones, then all others.
void take_cuda(AotKernel& kernel, const ir::TileProgram& tiles, Dump& dump) {
  kernel.plan.memory = runtime::LaunchPlan::Memory::Cuda;
  const auto add = [&](const ir::TileProgram& p) {
    if (!kernel.versions.empty() && takes_all(kernel.versions.back(), kernel.plan)) return;
    AotVersion version = cuda_version(kernel, p, dump);
    const auto same = [&](const AotVersion& v) {
      return v.cubin == version.cubin && v.plan.assumes.size() == version.plan.assumes.size() &&
             std::ranges::equal(v.plan.parameters, version.plan.parameters, {}, &runtime::Parameter::alignment,
                                &runtime::Parameter::alignment);
    };
    if (std::ranges::none_of(kernel.versions, same)) kernel.versions.push_back(std::move(version));
  };
  add(passes::assume_fast_calls(tiles));
  for_other_calls(tiles, add);
  for_other_calls(passes::assume_no_alignment(tiles), add);
}

// ---- objects

std::string compile_c(const runtime::HostCompiler& compiler, const std::string& name, const std::string& text,
                      const AotKernel* kernel) {
  runtime::CompilerRun run;
  run.files = {{"host.c", text}};
  for (size_t i = 0; kernel && i < kernel->versions.size() && !kernel->on_cpu(); ++i)
    run.files.emplace_back(runtime::aot_image_file(i), kernel->versions[i].cubin);
  run.arguments = {"-x", "c",     "-std=c99", "-O2", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-ident", "-w",
                   "-c", "-pipe", "host.c",   "-o",  "host.o"};
  run.result = "host.o", run.dump_name = name;
  return run_compiler(compiler, run);
}

std::string compile_kernel_text(const runtime::HostCompiler& compiler, const AotKernel& kernel, const std::string& text,
                                const runtime::ProcessorFeatures& features) {
  runtime::CompilerRun run;
  run.files = {{"kernel.cpp", text}};
  run.arguments = {"-x", "c++", fmt::format("-Dtw_entry={}", aot_entry_name(kernel))};
  for (const auto& flags : {runtime::kernel_flags(), features.compiler_flags()})
    run.arguments.insert(run.arguments.end(), flags.begin(), flags.end());
  run.arguments.insert(run.arguments.end(), {"-c", "kernel.cpp", "-o", "kernel.o"});
  run.result = "kernel.o", run.dump_name = kernel.plan.name;
  return run_compiler(compiler, run);
}

std::string join_objects(const runtime::HostCompiler& compiler, const AotKernel& kernel, const std::string& a,
                         const std::string& b) {
  runtime::CompilerRun run;
  run.files = {{"a.o", a}, {"b.o", b}};
  run.arguments = {"-r", "-nostdlib", "a.o", "b.o", "-o", "joined.o"};
  run.result = "joined.o", run.dump_name = kernel.plan.name;
  return run_compiler(compiler, run);
}

// ---- what is said of it

Json version_json(const AotVersion& v, const AotKernel& kernel) {
  Json out = {{"assumes", Json::array()}, {"alignments", Json::object()}};
  for (size_t i = kernel.plan.assumes.size(); i < v.plan.assumes.size(); ++i)
    out["assumes"].push_back(v.plan.assumes[i].text);
  for (const runtime::Parameter& p : v.plan.parameters)
    if (p.kind == runtime::Parameter::Kind::Tensor)
      out["alignments"][p.name] = std::max<int64_t>(p.alignment, bytes_of(p.dtype, 1));
  if (kernel.on_cpu()) return out;
  out["code_bytes"] = v.cubin.size(), out["tensor_maps"] = v.cuda.tensor_maps.size();
  out["launches"] = Json::array();
  for (const runtime::cuda::KernelLaunch& l : v.cuda.launches) {
    Json grid = Json::array();
    for (const runtime::IntProgram& e : l.grid) grid.push_back(expression_text(e, v.plan));
    out["launches"].push_back({{"kernel", l.function},
                               {"grid", grid},
                               {"block", l.block},
                               {"cluster", l.cluster},
                               {"shared_bytes", l.dynamic_shared_bytes},
                               {"cooperative", l.cooperative}});
  }
  return out;
}

std::string json_of(const AotKernel& kernel, const std::string& features) {
  Json out = {{"tilewright", TILEWRIGHT_VERSION},
              {"function", kernel.function},
              {"signature", aot_signature(kernel)},
              {"arch", kernel.arch}};
  if (kernel.on_cpu()) out["processor"] = features;
  const bool clang = runtime::host_compiler().identity.find("clang") != std::string::npos;
  out["link"] = {"-lpthread", "-ldl"};
  if (kernel.on_cpu()) out["link"].push_back("-lm"), out["link"].push_back(clang ? "-lomp" : "-lgomp");
  Json plan = plan_json(kernel.plan);
  for (size_t i = 0; i < kernel.plan.parameters.size(); ++i) {
    const runtime::Parameter& p = kernel.plan.parameters[i];
    if (p.kind != runtime::Parameter::Kind::Tensor) continue;
    plan["parameters"][i]["written"] = p.written, plan["parameters"][i]["nullable"] = p.nullable;
  }
  for (size_t i = 0; i < kernel.plan.symbols.size(); ++i)
    plan["symbols"][i]["dtype"] = kernel.plan.symbols[i].dtype.name();
  out.update(plan);
  out["versions"] = Json::array();
  for (const AotVersion& v : kernel.versions) out["versions"].push_back(version_json(v, kernel));
  return out.dump(2) + "\n";
}

}  // namespace

KernelFiles build_kernel(const Program& program, const std::string& arch, const std::string& function) {
  const bool cpu = arch == "cpu" || arch.starts_with("cpu:");
  AotKernel kernel;
  KernelFiles out;
  out.folder = arch;
  std::ranges::replace(out.folder, ':', '_');
  kernel.function = function_name(function.empty() ? program.name() : function, out.folder), kernel.arch = arch;
  const runtime::ProcessorFeatures features = cpu ? features_of_arch(arch) : runtime::ProcessorFeatures();
  if (!cpu) gpu_target(arch);
  check_plans(program.box().program);
  Dump dump(program.name());
  const ir::TileProgram tiles = canonical(
      program.box().program, [&](const char* pass, const ir::TileProgram& p, double) { dump.write(pass, p); });
  kernel.plan = build_plan(tiles);
  refuse_scalars(kernel);
  const runtime::HostCompiler compiler = runtime::host_compiler();
  std::string object;
  if (cpu) {
    const std::string text = take_cpu(kernel, tiles, features, dump);
    object = join_objects(compiler, kernel, compile_kernel_text(compiler, kernel, text, features),
                          compile_c(compiler, kernel.plan.name, aot_host_text(kernel), &kernel));
  } else {
    take_cuda(kernel, tiles, dump);
    object = compile_c(compiler, kernel.plan.name, aot_host_text(kernel), &kernel);
  }
  out.files[kernel.function + ".h"] = aot_header_text(kernel);
  out.files[kernel.function + ".o"] = std::move(object);
  out.files[kernel.function + ".json"] = json_of(kernel, features.to_string());
  out.files[runtime::kAotRuntimeHeader] = runtime::aot_runtime_header_text();
  out.files["tilewright_runtime.o"] = compile_c(compiler, "runtime", runtime::aot_runtime_text(), nullptr);
  return out;
}

std::vector<std::string> write_files(const KernelFiles& kernel, const std::string& folder) {
  const std::string to = fmt::format("{}/{}", folder, kernel.folder);
  const auto refuse_path = [](const std::string& path) {
    fail(Code::FileNotWritten, {}, fmt::format("{}: {}", path, std::strerror(errno)));
  };
  for (size_t at = to.find('/', 1);; at = to.find('/', at + 1)) {
    const std::string part = to.substr(0, at);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) refuse_path(part);
    if (at == std::string::npos) break;
  }
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : kernel.files) {
    paths.push_back(fmt::format("{}/{}", to, name));
    std::FILE* file = std::fopen(paths.back().c_str(), "wb");
    const bool wrote = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    if ((file && std::fclose(file) != 0) || !wrote) refuse_path(paths.back());
  }
  return paths;
}

}  // namespace tilewright
