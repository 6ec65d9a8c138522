#include "runtime/aot_text.h"

#include <set>

#include "embedded_text.h"
#include "runtime/c_literal.h"
#include "runtime/cuda_tensor_map.h"
#include "support/c_words.h"
#include "support/diagnostic.h"
#include "support/symbol_room.h"
#include "tilewright/version.h"

#include "runtime/kernel_abi.text.h"

#include "runtime/aot_abi.text.h"

namespace tilewright::runtime {
namespace {

static_assert(TW_OP_CONSTANT == static_cast<int>(IntOp::Kind::Constant));
static_assert(TW_OP_SCALAR == static_cast<int>(IntOp::Kind::Scalar));
static_assert(TW_OP_FLOOR_MOD == static_cast<int>(IntOp::Kind::FloorMod));
static_assert(TW_OP_NOT_EQUAL == static_cast<int>(IntOp::Kind::NotEqual));
static_assert(TW_OP_FITS == static_cast<int>(IntOp::Kind::Fits));
static_assert(TW_MAX_DEPTH == kIntProgramDepth && TW_MAX_BUFFERS == kMaxBuffers && TW_MAX_INTEGERS == kMaxIntegers);
static_assert(TW_MAX_RANK == NDArray::max_rank);

// ---- names and types of C

// Whether a parameter of that name would be something else where the header or the function stands: what prefixes and
// headers have, or the function's own names.
bool is_taken(const std::string& name) {
  static const std::set<std::string> own = {"stream", "main", "tensors", "integers"};
  const CWord word = c_word(name);
  if (word == CWord::Keyword || word == CWord::Type || word == CWord::Macro || own.contains(name)) return true;
  const auto starts = [&](const char* with) { return name.starts_with(with); };
  return starts("tw_") || starts("TW_") || starts("tilewright_") || starts("__") ||
         (name.size() > 1 && name[0] == '_' && std::isupper(static_cast<unsigned char>(name[1])));
}

// The name itself where it is one of C that nobody has.
std::string c_name(const std::string& name, std::set<std::string>& taken) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "_" + out;
  if (is_taken(out)) out = is_taken(out + "_") ? "the_" + out : out + "_";
  while (!taken.insert(out).second) out += "_";
  return out;
}

std::string c_integer_type(DType type) { return fmt::format("{}int{}_t", type.is_signed() ? "" : "u", type.bits); }

std::string element_type(DType type) {
  if (type == f32 || type == tf32) return "float";
  if (type == f64) return "double";
  if (type.is_bool()) return "uint8_t";
  return type.is_int() && !type.is_packed() ? c_integer_type(type) : "void";
}

std::string scalar_type(DType type) {
  if (type.is_pointer()) return "void*";
  if (type.is_float()) return type == f64 ? "double" : "float";
  return type.is_bool() ? "int" : c_integer_type(type);
}

// ---- plans as tables of C

class HostText {
 public:
  explicit HostText(const AotKernel& kernel) : kernel_(kernel) {
    for (const Symbol& s : kernel.plan.symbols) symbols_.push_back(s.name);
    for (const Parameter& p : kernel.plan.parameters)
      if (p.kind == Parameter::Kind::Scalar) scalars_.push_back(p.name);
  }

  std::string write() {
    std::vector<std::string> versions;
    for (size_t i = 0; i < kernel_.versions.size(); ++i) versions.push_back(version(i));
    const LaunchPlan& plan = kernel_.plan;
    std::vector<std::string> parameters, symbols, grids;
    for (const Parameter& p : plan.parameters) parameters.push_back(parameter(p));
    for (const Symbol& s : plan.symbols) symbols.push_back(symbol(s));
    for (const IntProgram& e : plan.grids) grids.push_back(expression(e));
    const std::string lists =
        fmt::format("{}, {}, {}, {}, {}, {}", list("tw_parameter", parameters), list("tw_symbol", symbols),
                    assumptions(plan, 0), list("tw_expression", grids), sites(plan), list("tw_version", versions));
    out_ += fmt::format("static const struct tw_aot_kernel tw_kernel = {{{}, {}, {}, {}, {}}};\n",
                        c_string(kernel_.plan.name), c_string(kernel_.on_cpu() ? "cpu" : kernel_.arch), lists,
                        kernel_.features, kernel_.on_cpu() ? aot_entry_name(kernel_) : "0");
    return out_ + function();
  }

 private:
  // A table and its length, or none.
  std::string list(const std::string& type, const std::vector<std::string>& rows) {
    if (rows.empty()) return "0, 0";
    return fmt::format("{}, {}", table("struct " + type, rows), rows.size());
  }
  // The name of a new table.
  std::string table(const std::string& type, const std::vector<std::string>& rows) {
    const std::string name = fmt::format("tw_table_{}", tables_++);
    out_ += fmt::format("static const {} {}[] = {{\n    {}}};\n", type, name, fmt::join(rows, ",\n    "));
    return name;
  }
  template <class Number>
  std::string numbers(const std::string& type, const std::vector<Number>& values) {
    if (values.empty()) return "0";
    std::vector<std::string> rows;
    for (Number v : values) rows.push_back(std::to_string(v));
    return table(type, rows);
  }
  std::string expression(const IntProgram& e) {
    std::string rows;
    for (const IntOp& op : e.ops) rows += fmt::format("{{{}, {}}},", static_cast<int>(op.kind), c_integer(op.value));
    std::string& name = expressions_[rows];  // shapes repeat
    if (name.empty()) {
      name = fmt::format("tw_ops_{}", expressions_.size());
      out_ += fmt::format("static const struct tw_op {}[] = {{{}}};\n", name, rows);
    }
    return fmt::format("{{{}, {}, {}}}", name, e.ops.size(), c_string(to_string(e, symbols_, scalars_)));
  }
  std::string expressions(const std::vector<IntProgram>& list_of) {
    std::vector<std::string> rows;
    for (const IntProgram& e : list_of) rows.push_back(expression(e));
    return rows.empty() ? "0" : table("struct tw_expression", rows);
  }
  std::string parameter(const Parameter& p) {
    if (p.kind == Parameter::Kind::Scalar) return fmt::format("{{{}, 0, 0, 0, 0, 0, 0, 0}}", c_string(p.name));
    const std::string shape = expressions(p.shape), strides = expressions(p.strides);
    return fmt::format("{{{}, 1, {}, {}, {}, {}, {:d}, {:d}}}", c_string(p.name), p.dtype.storage_bits(),
                       p.shape.size(), shape, strides, p.nullable, p.written);
  }
  std::string symbol(const Symbol& s) {
    bool extent = s.source == Equation::Source::Shape;
    for (const Equation& e : s.others) extent = extent || e.source == Equation::Source::Shape;
    return fmt::format("{{{}, {}, {}, {:d}, {:d}}}", c_string(s.name), c_string(s.dtype.name()), s.dtype.bits,
                       s.dtype.is_signed(), extent);
  }
  // Those of the plan from `first` on.
  std::string assumptions(const LaunchPlan& plan, size_t first) {
    std::vector<std::string> rows;
    for (size_t i = first; i < plan.assumes.size(); ++i)
      rows.push_back(fmt::format("{{{}, {}}}", expression(plan.assumes[i].condition), c_string(plan.assumes[i].text)));
    return list("tw_assumption", rows);
  }
  static int operand_type(DType type) {
    if (type.is_bool()) return 2;
    if (type.is_float()) return type == f64 ? 4 : 3;
    return type.is_signed() ? 0 : 1;
  }
  std::string sites(const LaunchPlan& plan) {
    std::vector<std::string> rows;
    for (const Site& s : plan.sites) {
      std::vector<std::string> operands;
      for (const Site::Operand& o : s.operands)
        operands.push_back(fmt::format("{{{}, {}}}", c_string(o.name), operand_type(o.dtype)));
      const std::string place = s.location.known() ? fmt::format("{}:{}", s.location.file, s.location.line) : "";
      const std::string of = list("tw_operand", operands);
      rows.push_back(fmt::format("{{{}, {}, {}}}", c_string(s.message), c_string(place), of));
    }
    return list("tw_site", rows);
  }
  std::string workspaces(const LaunchPlan& plan) {
    std::vector<std::string> rows;
    for (const Workspace& w : plan.workspaces)
      rows.push_back(fmt::format("{{{}, {}, {}, {}}}", c_string(w.name), w.dtype.storage_bits(), expression(w.size),
                                 w.zeroed ? 1 : 0));
    return list("tw_workspace", rows);
  }
  std::string map(const cuda::TensorMapPlan& m) {
    const std::string dims = expressions(m.dims), strides = expressions(m.strides);
    const std::string box = numbers("unsigned", m.box), steps = numbers("unsigned", m.element_strides);
    return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", c_string(m.name), m.buffer,
                       cuda::tensor_map_type(m.dtype), m.dtype.storage_bits(), c_integer(m.byte_offset), m.dims.size(),
                       dims, strides, box, steps, static_cast<int>(m.swizzle), static_cast<int>(m.interleave),
                       static_cast<int>(m.l2_promotion), static_cast<int>(m.oob_fill));
  }
  std::string launch_parameter(const cuda::KernelParameter& p) {
    constexpr const char* kNone = "{0, 0, \"\"}";
    if (const auto* buffer = std::get_if<cuda::BufferParameter>(&p))
      return fmt::format("{{TW_BUFFER_PARAMETER, {}, 8, {}}}", buffer->buffer, kNone);
    if (const auto* value = std::get_if<cuda::ValueParameter>(&p))
      return fmt::format("{{TW_VALUE_PARAMETER, 0, {}, {}}}", value->bytes, expression(value->value));
    const auto* of_map = std::get_if<cuda::TensorMapParameter>(&p);
    check_internal(of_map, "a kernel that reports, compiled ahead of time");
    return fmt::format("{{TW_MAP_PARAMETER, {}, 128, {}}}", of_map->map, kNone);
  }
  std::string launch(const cuda::KernelLaunch& l) {
    std::vector<std::string> parameters, grid;
    for (const cuda::KernelParameter& p : l.parameters) parameters.push_back(launch_parameter(p));
    for (const IntProgram& e : l.grid) grid.push_back(expression(e));
    const std::string rows = list("tw_launch_parameter", parameters);
    return fmt::format("{{{}, {{{}}}, {{{}}}, {{{}}}, {}, {:d}, {:d}, {}}}", c_string(l.function),
                       fmt::join(grid, ", "), fmt::join(l.block, ", "), fmt::join(l.cluster, ", "),
                       l.dynamic_shared_bytes, l.cooperative, l.programmatic_serialization, rows);
  }
  std::string image(size_t number) {
    const std::string name = fmt::format("tw_image_{}_{}", kernel_.function, number);
    out_ += fmt::format(
        "__asm__(\".pushsection .rodata\\n.balign 64\\n{0}:\\n.incbin \\\"{1}\\\"\\n.popsection\\n\");\n"
        "extern const char {0}[] __attribute__((visibility(\"hidden\")));\n"
        "static void* tw_modules_{2}[TW_MAX_DEVICES];\n",
        name, aot_image_file(number), number);
    return name;
  }
  std::string version(size_t number) {
    const AotVersion& v = kernel_.versions[number];
    std::vector<int> alignments;
    for (const Parameter& p : v.plan.parameters)
      if (p.kind == Parameter::Kind::Tensor) alignments.push_back(p.alignment);
    std::vector<std::string> maps, launches;
    for (const cuda::TensorMapPlan& m : v.cuda.tensor_maps) maps.push_back(map(m));
    for (const cuda::KernelLaunch& l : v.cuda.launches) launches.push_back(launch(l));
    const bool gpu = !kernel_.on_cpu();
    const std::string parts[] = {numbers("int", alignments), assumptions(v.plan, kernel_.plan.assumes.size()),
                                 workspaces(v.plan),         gpu ? image(number) : "0",
                                 list("tw_map", maps),       list("tw_launch", launches)};
    return fmt::format("{{{}, {}}}", fmt::join(parts, ", "),
                       gpu ? fmt::format("tw_modules_{}", number) : std::string("0"));
  }

  // The 64 bits that stand for a scalar.
  static std::string word(DType type, const std::string& name) {
    if (type.is_pointer()) return fmt::format("(long long)(uintptr_t){}", name);
    if (type == f64) return fmt::format("tw_bits_of_double({})", name);
    if (type.is_float()) return fmt::format("tw_bits_of_float({})", name);
    return type.is_bool() ? name + " != 0" : "(long long)" + name;
  }
  std::string function() const {
    const std::vector<AotParameter> names = aot_parameters(kernel_);
    std::vector<std::string> tensors, integers;
    for (size_t i = 0; i < kernel_.plan.symbols.size(); ++i)
      integers.push_back("(long long)" + names[kernel_.plan.parameters.size() + i].c_name);
    for (size_t i = 0; i < kernel_.plan.parameters.size(); ++i) {
      const Parameter& p = kernel_.plan.parameters[i];
      if (p.kind == Parameter::Kind::Tensor)
        tensors.push_back("(void*)" + names[i].c_name);
      else
        integers.push_back(word(p.dtype, names[i].c_name));
    }
    if (tensors.empty()) tensors.push_back("0");
    if (integers.empty()) integers.push_back("0");
    return fmt::format(
        "\n{} {{\n  void* const tensors[] = {{{}}};\n  const long long integers[] = {{{}}};\n"
        "  return tilewright_call_1(&tw_kernel, tensors, integers, stream);\n}}\n",
        aot_signature(kernel_), fmt::join(tensors, ", "), fmt::join(integers, ", "));
  }

  const AotKernel& kernel_;
  std::vector<std::string> symbols_, scalars_;
  std::map<std::string, std::string> expressions_;
  std::string out_;
  int tables_ = 0;
};

// The floats of calls, in the words that kernel_abi.text.h speaks of.
constexpr const char* kBitsOfFloats = R"(
static inline long long tw_bits_of_float(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline long long tw_bits_of_double(double value) {
  long long bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
)";

// The errors of calls, as the runtime names them.
constexpr std::pair<const char*, Code> kCodes[] = {
    {"Internal", Code::Internal},
    {"ArgumentNull", Code::ArgumentNull},
    {"ArgumentDevice", Code::ArgumentDevice},
    {"ArgumentShape", Code::ArgumentShape},
    {"ArgumentAlignment", Code::ArgumentAlignment},
    {"SymbolUnsolvable", Code::SymbolUnsolvable},
    {"ExpressionOverflow", Code::ExpressionOverflow},
    {"AssumptionFailed", Code::AssumptionFailed},
    {"AssertionFailed", Code::AssertionFailed},
    {"OutOfMemory", Code::OutOfMemory},
    {"ArgumentsOverlap", Code::ArgumentsOverlap},
    {"ProcessorUnfit", Code::ProcessorUnfit},
    {"CudaDriverMissing", Code::CudaDriverMissing},
    {"CudaDriverTooOld", Code::CudaDriverTooOld},
    {"CudaDeviceMissing", Code::CudaDeviceMissing},
    {"CudaCallFailed", Code::CudaCallFailed},
    {"CudaDeviceUnfit", Code::CudaDeviceUnfit},
    {"LaunchGridInvalid", Code::LaunchGridInvalid},
    {"LaunchValueRange", Code::LaunchValueRange},
    {"TensorMapInvalid", Code::TensorMapInvalid},
    {"PointerNotOnDevice", Code::PointerNotOnDevice},
    {"SettingInvalid", Code::SettingInvalid},
};

// What stands in a comment of C, where names of programs may hold anything.
std::string in_comment(std::string text) {
  for (size_t at; (at = text.find("*/")) != std::string::npos;) text.replace(at, 2, "* /");
  return text;
}

// "float32[M, 64]", and what is asked of the address.
std::string describe(const AotKernel& kernel, const Parameter& p) {
  std::vector<std::string> symbols, scalars, extents;
  for (const Symbol& s : kernel.plan.symbols) symbols.push_back(s.name);
  for (const Parameter& q : kernel.plan.parameters)
    if (q.kind == Parameter::Kind::Scalar) scalars.push_back(q.name);
  if (p.kind == Parameter::Kind::Scalar) return p.dtype.name();
  for (const IntProgram& e : p.shape) extents.push_back(to_string(e, symbols, scalars));
  std::string out = fmt::format("{}[{}]", p.dtype.name(), fmt::join(extents, ", "));
  if (!p.strides.empty()) {
    extents.clear();
    for (const IntProgram& e : p.strides) extents.push_back(to_string(e, symbols, scalars));
    out += fmt::format(", strides ({})", fmt::join(extents, ", "));
  }
  return out + (p.nullable ? ", unused: may be null" : p.written ? ", written" : "");
}

}  // namespace

std::string aot_kernel_abi_text() {
  constexpr std::string_view kOfCxx = "extern \"C\" ";
  std::string abi = text::runtime_kernel_abi;
  const size_t at = abi.find(kOfCxx);
  check_internal(at != std::string::npos, "kernel_abi.text.h declares no entry");
  return abi.erase(at, kOfCxx.size());
}

std::string aot_entry_name(const AotKernel& kernel) { return "tw_entry_" + kernel.function; }
std::string aot_image_file(size_t version) { return fmt::format("image_{}.cubin", version); }

std::vector<AotParameter> aot_parameters(const AotKernel& kernel) {
  std::set<std::string> taken{kernel.function};
  std::vector<AotParameter> out;
  for (const Parameter& p : kernel.plan.parameters) {
    const bool tensor = p.kind == Parameter::Kind::Tensor;
    const std::string type = !tensor     ? scalar_type(p.dtype)
                             : p.written ? element_type(p.dtype) + "*"
                                         : "const " + element_type(p.dtype) + "*";
    out.push_back({p.name, type, c_name(p.name, taken)});
  }
  for (const Symbol& s : kernel.plan.symbols) out.push_back({s.name, "int64_t", c_name(s.name, taken)});
  out.push_back({"stream", "void*", "stream"});
  return out;
}

std::string aot_signature(const AotKernel& kernel) {
  std::vector<std::string> list;
  for (const AotParameter& p : aot_parameters(kernel)) list.push_back(p.type + " " + p.c_name);
  return fmt::format("int {}({})", kernel.function, fmt::join(list, ", "));
}

std::string aot_header_text(const AotKernel& kernel) {
  const std::vector<AotParameter> names = aot_parameters(kernel);
  std::string parameters;
  for (size_t i = 0; i < kernel.plan.parameters.size(); ++i)
    parameters +=
        fmt::format("     {}: {}\n", names[i].c_name, in_comment(describe(kernel, kernel.plan.parameters[i])));
  for (size_t i = 0; i < kernel.plan.symbols.size(); ++i)
    parameters += fmt::format("     {}: the dimension {} above\n", names[kernel.plan.parameters.size() + i].c_name,
                              in_comment(kernel.plan.symbols[i].name));
  const std::string guard = "TW_HEADER_OF_" + kernel.function;  // which tells small letters from capitals
  return fmt::format(
      "/* {0} for {1}, by Tilewright {2}. Tensors are row-major without gaps where no strides stand:\n{3}"
      "   stream: {4}.\n   The result is 0, or the number of an error, whose text tilewright_error_text() has. */\n"
      "#ifndef {5}\n#define {5}\n#include <stdint.h>\n#include \"{6}\"\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{7};\n\n#ifdef __cplusplus\n}}\n#endif\n#endif\n",
      in_comment(kernel.plan.name), kernel.arch, TILEWRIGHT_VERSION, parameters,
      kernel.on_cpu() ? "NULL; the call returns when the work is done"
                      : "a CUstream or cudaStream_t, NULL for the default one; the call returns when the work is on it",
      guard, kAotRuntimeHeader, aot_signature(kernel));
}

std::string aot_host_text(const AotKernel& kernel) {
  std::string text = "#include <stdint.h>\n";
  text += aot_kernel_abi_text();
  text += text::runtime_aot_abi;
  text += kBitsOfFloats;
  if (kernel.on_cpu()) text += fmt::format("int {}(const struct tw_call* call);\n", aot_entry_name(kernel));
  return text + HostText(kernel).write();
}

std::string aot_runtime_header_text() { return text::runtime_aot_api; }

std::string aot_runtime_text() {
  std::string out = "#define _GNU_SOURCE\n";
  for (const char* header : {"dlfcn", "limits", "pthread", "stdarg", "stdint", "stdio", "stdlib", "string"})
    out += fmt::format("#include <{}.h>\n", header);
  out += "#if defined(__x86_64__)\n#include <cpuid.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n#endif\n";
  out += fmt::format("#define TW_SYMBOL_ROOM {}ll\n", kSymbolRoom);
  for (const auto& [name, code] : kCodes) out += fmt::format("#define TW_CODE_{} {}\n", name, static_cast<int>(code));
  out += text::runtime_aot_api + aot_kernel_abi_text() + text::runtime_aot_abi;
  out += text::runtime_aot_runtime;
  out += text::runtime_aot_cuda;
  return out;
}

}  // namespace tilewright::runtime
