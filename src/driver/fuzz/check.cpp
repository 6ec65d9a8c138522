#include "driver/fuzz/check.h"

#include "codegen/cuda_functions.h"
#include "driver/fuzz/kernels.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "support/diagnostic.h"
#include "tilewright/compile.h"
#include "tilewright/cuda.h"

namespace tilewright::fuzz {
namespace {

constexpr Device kHost{}, kCuda0{2, 0};

// On the device of the arrays; the results come back.
std::vector<NDArray> run(const Executable& executable, const std::vector<Argument>& arguments, Device device = kHost) {
  std::vector<NDArray> arrays;
  for (const Argument& a : arguments)
    arrays.push_back(device != kHost && !a.is_scalar ? a.array.to(device) : a.is_output ? a.array.clone() : a.array);
  std::vector<tilewright::Argument> list;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_scalar) {
      list.emplace_back(arguments[i].integer);
    } else {
      list.emplace_back(arrays[i]);
    }
  }
  executable.call(list);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].is_scalar) arrays[i] = arrays[i].to(kHost);
  return arrays;
}

// The largest relative error of one rounding.
double rounding_of(DType type) {
  return type == f64 ? 0x1p-53 : type == f32 ? 0x1p-24 : type == f16 ? 0x1p-11 : type == bf16 ? 0x1p-8 : 0x1p-3;
}

// `roundings`: how many of them elements may be apart besides the tolerance, behind a function of float32 or of the
// elements' own type, whichever is coarser. Behind such a function what is no normal float32 may be 0, too.
std::optional<std::string> difference(const std::string& name, const NDArray& a, const NDArray& b, double tolerance,
                                      double roundings) {
  if (a.dtype().is_float()) {
    const double apart = roundings * std::max(rounding_of(a.dtype()), rounding_of(f32));  // of the element
    const double least = roundings > 0 ? std::numeric_limits<float>::min() : 0;
    const std::vector<double> x = a.to_floats(), y = b.to_floats();
    for (size_t i = 0; i < x.size(); ++i) {
      const bool same =
          (x[i] == y[i] && std::signbit(x[i]) == std::signbit(y[i])) || (std::isnan(x[i]) && std::isnan(y[i]));
      if (!same && !(std::abs(x[i] - y[i]) <= tolerance + least + apart * std::abs(x[i])))
        return fmt::format("{}[{}]: interpreter {:.9g}, the other {:.9g}", name, i, x[i], y[i]);
    }
    return std::nullopt;
  }
  const std::vector<int64_t> x = a.to_ints(), y = b.to_ints();
  // Behind such a function a number may be cut off one lower. A difference of integers could wrap around.
  const auto near = [&](int64_t a, int64_t b) {
    const auto one = static_cast<double>(a), other = static_cast<double>(b);
    return roundings > 0 && std::abs(one - other) <= 1 + roundings * rounding_of(f32) * std::abs(one);
  };
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !near(x[i], y[i]))
      return fmt::format("{}[{}]: interpreter {}, the other {}", name, i, x[i], y[i]);
  return std::nullopt;
}

std::optional<Finding> check_text(const ir::TileProgram& program) {
  try {
    ir::check_valid(program);
  } catch (const Error& e) {
    return Finding{Finding::Kind::Invalid, e.what()};
  }
  const std::string text = ir::print(program);
  try {
    const std::string again = ir::print(ir::parse(text, "fuzz.tile"));
    if (again != text)
      return Finding{Finding::Kind::RoundTrip, "the text differs after print -> parse -> print:\n" + again};
  } catch (const Error& e) {
    return Finding{Finding::Kind::RoundTrip, e.what()};
  }
  return std::nullopt;
}

std::optional<Finding> check_interpreter(const ir::TileProgram& program, const std::vector<Argument>& arguments,
                                         std::vector<NDArray>& results) {
  try {
    const Program handle(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{program}));
    results = run(compile(handle, {Engine::Interpreter}), arguments);
  } catch (const std::exception& e) {
    return Finding{Finding::Kind::Interpreter, e.what()};
  }
  return std::nullopt;
}

// What a GPU's block cannot hold or do.
bool is_refusal(const Diagnostic& d) {
  return d.code / 100 == static_cast<int>(Code::GpuUnsupported) / 100 ||
         d.code == static_cast<uint16_t>(Code::SimulatorRefuses);
}

std::optional<Finding> check_other(const ir::TileProgram& program, const std::vector<Argument>& arguments,
                                   const std::vector<NDArray>& want, function_ref<Executable()> build,
                                   Finding::Kind kind) {
  try {
    const std::vector<NDArray> got = run(build(), arguments, kind == Finding::Kind::Cuda ? kCuda0 : kHost);
    const double roundings = kind == Finding::Kind::Cuda ? codegen::device_units(program) : 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].is_output) continue;
      const std::string& name = program.buffer(program.params[i].buffer).name;
      if (auto d = difference(name, want[i], got[i], arguments[i].tolerance, roundings))
        return Finding{Finding::Kind::Mismatch, *d};
    }
  } catch (const Error& e) {
    return Finding{kind != Finding::Kind::Cpu && is_refusal(e.diagnostic()) ? Finding::Kind::Refused : kind, e.what()};
  } catch (const std::exception& e) {
    return Finding{kind, e.what()};
  }
  return std::nullopt;
}

}  // namespace

const char* name_of(Finding::Kind kind) {
  static constexpr const char* kNames[] = {"invalid", "round trip", "interpreter", "cpu",  "simulator", "cuda",
                                           "refused", "mismatch",   "crash",       "hang", "accepted",  "unlocated"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<Finding> check(const ir::TileProgram& program, const std::vector<Argument>& arguments, Engines engines) {
  const Sample sample{program, arguments};
  return check_all({&sample, 1}, engines)[0];
}

std::vector<std::optional<Finding>> check_all(std::span<const Sample> samples, Engines engines) {
  std::vector<std::optional<Finding>> findings(samples.size());
  std::vector<std::vector<NDArray>> want(samples.size());
  std::vector<size_t> rest;  // those that run on the interpreter
  std::vector<const ir::TileProgram*> programs;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& s = samples[i];
    findings[i] = check_text(s.program);
    if (!findings[i]) findings[i] = check_interpreter(s.program, s.arguments, want[i]);
    if (!findings[i]) rest.push_back(i), programs.push_back(&s.program);
  }
  if (engines == Engines::Interpreter || rest.empty()) return findings;
  if (engines == Engines::Simulator || engines == Engines::Cuda) {
    const bool on_device = engines == Engines::Cuda;
    const CompileOptions options =
        on_device ? CompileOptions{Engine::Cuda} : CompileOptions{Engine::Simulator, "sm_90a"};
    for (const size_t i : rest) {
      const Sample& s = samples[i];
      const Program handle(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{s.program}));
      findings[i] = check_other(
          s.program, s.arguments, want[i], [&] { return compile(handle, options); },
          on_device ? Finding::Kind::Cuda : Finding::Kind::Simulator);
      if (on_device && samples.size() > 1) cuda::synchronize();  // throws after a kernel that failed
    }
    return findings;
  }
  Kernels kernels(programs, engines == Engines::BothQuickly ? Optimize::Little : Optimize::AsAlways);
  for (size_t i = 0; i < rest.size(); ++i) {
    const Sample& s = samples[rest[i]];
    findings[rest[i]] = check_other(
        s.program, s.arguments, want[rest[i]], [&] { return kernels.build(i); }, Finding::Kind::Cpu);
  }
  return findings;
}

std::optional<Finding> check_refused(const std::string& text, const std::string& what) {
  try {
    ir::check_valid(ir::parse(text, "spoiled.tile"));
  } catch (const CompileError& e) {
    const Diagnostic& d = e.diagnostic();
    if (d.code < 1000 || !d.location.known()) return Finding{Finding::Kind::Unlocated, what + ": " + e.what()};
    return std::nullopt;
  } catch (const std::exception& e) {
    return Finding{Finding::Kind::Unlocated, what + ": " + e.what()};
  }
  return Finding{Finding::Kind::Accepted, what};
}

}  // namespace tilewright::fuzz
