#include "driver/check_engine.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

#include "codegen/cuda_functions.h"
#include "driver/arguments.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/rewrite.h"
#include "runtime/executable.h"
#include "support/diagnostic.h"
#include "support/warning.h"
#include "tilewright/check.h"
#include "tilewright/cuda.h"

namespace tilewright {
namespace {

constexpr Device kHost{}, kDevice{2, 0};
constexpr double kUnitsOfSums = 64;  // in the last place of the largest value of a tensor
// What the bytes of outputs hold before anybody wrote them: of floats a NaN that no operation gives, as 16 bits are
// few.
std::byte nobody(DType type) { return type.is_float() ? std::byte{0xff} : std::byte{0xa5}; }

// ---- what is compared

double unit_of(DType type) {
  switch (type.kind) {
    case Kind::BFloat: return 0x1p-8;
    case Kind::Float: return type.bits == 16 ? 0x1p-11 : type.bits == 32 ? 0x1p-24 : 0x1p-53;
    case Kind::TFloat: return 0x1p-11;
    default: return 0x1p-3;  // float8 and float4
  }
}

// Of the coarsest type of sums whose order is an engine's own, the half of a last place; 0: there are none.
double unit_of_sums(const ir::TileProgram& p) {
  double unit = 0;
  const auto add_to = [&](ir::BufferId id) {
    if (const DType type = p.buffer(id).type; type.is_float()) unit = std::max(unit, unit_of(type));
  };
  const auto is_sum = [](ir::ReduceOp op) { return op == ir::ReduceOp::Sum || op == ir::ReduceOp::AbsSum; };
  for (const ir::Launch& launch : p.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      if (const auto* n = s.as<ir::Gemm>()) add_to(n->c.buffer);
      if (const auto* n = s.as<ir::Mma>()) add_to(n->c.buffer);
      ir::match(s->op, [&]<class Op>(const Op& n) {
        if constexpr (ir::CombinesAlong<Op>)
          if (is_sum(n.op)) add_to(n.to.buffer);
      });
      if (const auto* n = s.as<ir::Atomic>(); n && n->op == ir::AtomicOp::Add) add_to(n->to.buffer);
      if (const auto* n = s.as<ir::Copy>(); n && n->combine == ir::Combine::Add) add_to(n->to.buffer);
    });
  return unit;
}

// Whether numbers are rounded to fewer bits on chip, and what comes of them is used: half a last place of the fewest. A
// sum that engines make in orders of their own may come to the other neighbour there, as before a second product.
double rounded_on_chip(const ir::TileProgram& p) {
  double unit = 0;
  const auto on_chip = [&](ir::BufferId id) {
    const ir::Buffer& b = p.buffer(p.root(id));
    return b.space != ir::Space::Global && p.buffer(id).type.is_float();
  };
  const auto narrows = [](DType from, DType to) {
    return from.is_float() && to.is_float() && unit_of(from) < unit_of(to);
  };
  for (const ir::Launch& launch : p.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      if (const auto* n = s.as<ir::Copy>(); n && on_chip(n->to.buffer)) {
        const DType to = p.buffer(n->to.buffer).type;
        if (narrows(p.buffer(n->from.buffer).type, to)) unit = std::max(unit, unit_of(to));
      }
      const auto* store = s.as<ir::Store>();
      if (!s.as<ir::Let>() && !(store && on_chip(store->to.buffer))) return;
      ir::for_each_expr(s, [&](const ir::Expr& whole) {
        ir::walk(whole, [&](const ir::Expr& e) {
          const auto* cast = e.as<ir::Cast>();
          if (cast && narrows(cast->value->type, e->type)) unit = std::max(unit, unit_of(e->type));
        });
      });
    });
  return unit;
}

std::string index_text(const NDArray& array, int64_t element) {
  std::vector<int64_t> index(static_cast<size_t>(array.rank()));
  for (size_t d = index.size(); d-- > 0; element /= array.shape(static_cast<int>(d)))
    index[d] = element % array.shape(static_cast<int>(d));
  return fmt::format("[{}]", fmt::join(index, ", "));
}

[[noreturn]] void fail_differ(const std::string& name, const NDArray& array, size_t element, const std::string& engine,
                              const std::string& want, const std::string& got, const std::string& allowed) {
  fail(Code::EnginesDiffer, {},
       fmt::format("the engines differ: {}{} is {} on the interpreter and {} on {}{}", name,
                   index_text(array, static_cast<int64_t>(element)), want, got, engine, allowed),
       "the interpreter is what the language means: please report the program, unless it has a race");
}

// `units`: how many of the last place of the largest value elements may be apart; `rounded`: how much of that value.
void compare(const std::string& name, const NDArray& want, const NDArray& got, const std::string& engine, double units,
             double rounded) {
  if (!want.dtype().is_float()) {
    if (want.dtype().is_pointer()) return;
    const std::vector<int64_t> x = want.to_ints(), y = got.to_ints();
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] != y[i]) fail_differ(name, want, i, engine, fmt::format("{}", x[i]), fmt::format("{}", y[i]), "");
    return;
  }
  const std::vector<double> x = want.to_floats(), y = got.to_floats();
  double largest = 0;
  for (const double v : x)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  const double allowed = std::max(units * unit_of(want.dtype()), rounded) * largest;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool same = (std::isnan(x[i]) && std::isnan(y[i])) ||
                      (x[i] == y[i] && (units > 0 || std::signbit(x[i]) == std::signbit(y[i])));
    if (!same && !(std::abs(x[i] - y[i]) <= allowed))
      fail_differ(name, want, i, engine, fmt::format("{:.9g}", x[i]), fmt::format("{:.9g}", y[i]),
                  units > 0 ? fmt::format(", {:.3g} may lie between them", allowed) : "");
  }
}

// ---- copies of arguments

NDArray copy_of(const NDArray& array) {
  if (array.device() != kHost) return array.to(kHost);
  int64_t reach = 1;
  bool forward = true;
  for (int d = 0; d < array.rank(); ++d)
    reach += (array.shape(d) - 1) * array.stride(d), forward = forward && array.stride(d) >= 0;
  if (array.is_contiguous() || !forward || array.size() == 0) return array.clone();
  auto memory = std::make_shared<NDArray>(NDArray::empty({bytes_of(array.dtype(), reach)}, u8));
  std::memcpy(memory->data(), array.data(), static_cast<size_t>(memory->size()));
  return NDArray::borrow(memory->data(), array.shape(), array.dtype(), array.strides(), 0, memory);
}

// One that the call names twice is one here too.
std::vector<NDArray> copies_of(std::span<const Argument> arguments) {
  std::vector<NDArray> out(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind() != Argument::Kind::Tensor) continue;
    const NDArray& array = arguments[i].tensor();
    for (size_t before = 0; before < i && out[i].is_null(); ++before) {
      if (arguments[before].kind() != Argument::Kind::Tensor) continue;
      const NDArray& other = arguments[before].tensor();
      if (other.data() == array.data() && array.data() && std::ranges::equal(other.shape(), array.shape()))
        out[i] = out[before];
    }
    if (out[i].is_null()) out[i] = copy_of(array);
  }
  return out;
}

std::vector<Argument> with_arrays(std::span<const Argument> arguments, const std::vector<NDArray>& arrays) {
  std::vector<Argument> out;
  for (size_t i = 0; i < arguments.size(); ++i)
    out.push_back(arguments[i].kind() == Argument::Kind::Tensor ? Argument(arrays[i]) : arguments[i]);
  return out;
}

// What an engine, or this machine, does not have is no mistake of the program.
bool is_refusal(const Diagnostic& d) {
  return d.code / 100 == static_cast<int>(Code::CpuRole) / 100 ||
         d.code / 100 == static_cast<int>(Code::GpuUnsupported) / 100 ||
         d.code == static_cast<uint16_t>(Code::HostCompilerMissing) ||
         d.code == static_cast<uint16_t>(Code::SimulatorRefuses) ||
         d.code / 100 == static_cast<int>(Code::DeviceCompilerMissing) / 100;
}

}  // namespace

struct EngineCheck::Engines {
  explicit Engines(const Program& p) : program(p) {
    const ir::TileProgram& tiles = p.box().program;
    written = written_parameters(tiles), read = read_parameters(tiles);
    const double of_sums = unit_of_sums(tiles);  // stored as a finer type they are no better
    sums = of_sums > 0;
    rounded = sums ? std::max(2 * rounded_on_chip(tiles), kUnitsOfSums * of_sums) : 0;
    addresses =
        std::any_of(tiles.buffers.begin(), tiles.buffers.end(), [](const ir::Buffer& b) { return bool(b.address); });
    others = {{"cpu", {Engine::Cpu}},
              {"the simulator as sm_80", {Engine::Simulator, "sm_80"}},
              {"the simulator as sm_90a", {Engine::Simulator, "sm_90a"}}};
    if (cuda::device_count() > 0) others.push_back({"cuda", {Engine::Cuda}});
  }
  struct Other {
    std::string name;
    CompileOptions options;
    std::optional<Executable> executable = {};
    std::string refusal = {};
    double milliseconds = 0;
  };

  const ir::Buffer& buffer(size_t parameter) const { return tiles().buffer(tiles().params[parameter].buffer); }
  const ir::TileProgram& tiles() const { return program.box().program; }
  bool is_written(size_t parameter) const {
    const ir::Param& p = tiles().params[parameter];
    return p.is_tensor() && written.contains(p.buffer);
  }

  std::vector<NDArray> run(const Executable& executable, std::span<const Argument> arguments, bool on_device,
                           double& milliseconds) const {
    std::vector<NDArray> arrays = copies_of(arguments);
    mark(arrays);
    if (on_device)
      for (NDArray& a : arrays)
        if (!a.is_null()) a = a.to(kDevice);
    const auto begin = std::chrono::steady_clock::now();
    executable.call(with_arrays(arguments, arrays));
    for (NDArray& a : arrays)
      if (!a.is_null()) a = a.to(kHost);
    milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return arrays;
  }

  // What nobody reads and no element of which is anybody's yet.
  bool is_marked(size_t parameter, const NDArray& array) const {
    return is_written(parameter) && !read.contains(tiles().params[parameter].buffer) && array.is_contiguous() &&
           array.dtype().bits >= 16;
  }
  void mark(const std::vector<NDArray>& arrays) const {
    for (size_t i = 0; i < arrays.size(); ++i)
      if (!arrays[i].is_null() && is_marked(i, arrays[i]))
        std::memset(arrays[i].data(), std::to_integer<int>(nobody(arrays[i].dtype())),
                    static_cast<size_t>(bytes_of(arrays[i].dtype(), arrays[i].size())));
  }
  // Elements that were not written are a warning: a caller may mean it.
  void look_for_holes(const std::vector<NDArray>& arrays) const {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].is_null() || !is_marked(i, arrays[i])) continue;
      const auto* bytes = static_cast<const std::byte*>(arrays[i].data());
      const int64_t size = arrays[i].dtype().storage_bits() / 8;
      const std::byte mark = nobody(arrays[i].dtype());
      int64_t holes = 0, first = -1;
      for (int64_t e = 0; e < arrays[i].size(); ++e) {
        if (!std::all_of(bytes + e * size, bytes + (e + 1) * size, [&](std::byte b) { return b == mark; })) continue;
        first = first < 0 ? e : first, ++holes;
      }
      if (holes == 0) continue;
      const std::string& name = buffer(i).name;
      warn(make_diagnostic(
          Code::ElementsUnwritten, tiles().location(buffer(i).location),
          fmt::format("{}: {} of the {} elements of '{}' are not written, {}{} is the first", tiles().name, holes,
                      arrays[i].size(), name, name, index_text(arrays[i], first))));
    }
  }

  Program program;
  std::set<ir::BufferId> written, read;
  bool sums = false, addresses = false;
  double rounded = 0;
  std::optional<Executable> interpreter;
  double interpreter_milliseconds = 0;
  std::vector<Other> others;
  std::mutex mutex;
};

bool wants_checks() {
  const char* text = std::getenv("TILEWRIGHT_CHECK");
  if (!text || !*text || std::string_view(text) == "0") return false;
  if (std::string_view(text) == "1") return true;
  fail(Code::SettingInvalid, {}, fmt::format("TILEWRIGHT_CHECK is '{}'", text), "it is 0 or 1");
}

EngineCheck::EngineCheck(const Program& program) : engines_(std::make_unique<Engines>(program)) {}
EngineCheck::~EngineCheck() = default;

void EngineCheck::operator()(std::span<const Argument> arguments) const {
  Engines& all = *engines_;
  std::lock_guard lock(all.mutex);
  if (all.addresses)
    return warn(make_diagnostic(
        Code::EnginesNotCompared, {},
        fmt::format("{}: not checked: it follows addresses, and what they lead to is not copied", all.tiles().name)));
  if (!all.interpreter) all.interpreter = compile_plainly(all.program, {Engine::Interpreter});
  const std::vector<NDArray> want = all.run(*all.interpreter, arguments, false, all.interpreter_milliseconds);
  all.look_for_holes(want);
  for (Engines::Other& other : all.others) {
    if (!other.refusal.empty()) continue;
    const bool on_device = other.options.engine == Engine::Cuda;
    std::vector<NDArray> got;
    try {
      if (!other.executable) other.executable = compile_plainly(all.program, other.options);
      got = all.run(*other.executable, arguments, on_device, other.milliseconds);
    } catch (const Error& e) {
      if (!is_refusal(e.diagnostic())) throw;
      other.refusal = e.diagnostic().message;
      continue;
    }
    const double functions = on_device ? codegen::device_units(all.tiles()) : 0;
    const double units = std::max(all.sums ? kUnitsOfSums : 0, functions);
    for (size_t i = 0; i < got.size(); ++i)
      if (!got[i].is_null() && all.is_written(i))
        compare(all.buffer(i).name, want[i], got[i], other.name, units, all.rounded);
  }
}

std::vector<EngineOutcome> EngineCheck::outcomes() const {
  std::lock_guard lock(engines_->mutex);
  if (!engines_->interpreter) return {};
  std::vector<EngineOutcome> out = {{"interpreter", "", engines_->interpreter_milliseconds}};
  for (const Engines::Other& other : engines_->others) out.push_back({other.name, other.refusal, other.milliseconds});
  return out;
}

namespace {

class CheckedCallee : public runtime::Callee {
 public:
  CheckedCallee(const Program& program, Executable executable) : check_(program), executable_(std::move(executable)) {}
  void run(const runtime::BoundCall& call, runtime::CallReport&) override {
    check_(call.arguments);
    executable_.call(call.arguments);
  }

 private:
  EngineCheck check_;
  Executable executable_;
};

}  // namespace

Executable with_checks(const Program& program, Executable executable) {
  runtime::LaunchPlan plan = executable.program().plan();
  plan.workspaces.clear();  // those that run have their own
  std::string engine = executable.engine(), source = executable.source();
  return runtime::make_executable(std::move(plan), std::make_unique<CheckedCallee>(program, std::move(executable)),
                                  std::move(engine), std::move(source));
}

Executable compile_checked(const Program& program, const CompileOptions& options) {
  return with_checks(program, compile_plainly(program, options));
}

}  // namespace tilewright
