#include "analysis/anywhere.h"
#include "analysis/divisibility.h"
#include "analysis/wide_atomics.h"
#include "codegen/cuda_async.h"
#include "codegen/cuda_functions.h"
#include "codegen/guarded_loads.h"
#include "codegen/warp_join.h"
#include "embedded_text.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/threads/wrap_sums.h"
#include "scalar/convert.h"
#include "scalar/functions.h"
#include "scalar/pieces.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

constexpr int64_t kSharedAlignment = 1024;  // of the block's shared memory: what the widest swizzle repeats after

// Names of types that text compiled with the toolkit's headers has from there.
constexpr const char* kForeignHead =
    "typedef unsigned char uchar;\ntypedef unsigned short ushort;\ntypedef unsigned int uint;\n"
    "typedef unsigned long ulong;\n";

// Functions of CUDA's headers that programs call without their text.
constexpr const char* kHeaderFunctions[] = {"__float2half", "__float2half_rn", "__float2half_rz", "__float2half_rd",
                                            "__float2half_ru"};

// Names that a kernel's text uses itself.
const std::set<std::string>& reserved_names() {
  static const std::set<std::string> set = [] {
    std::set<std::string> names{"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "index", "old",
                                "reports",   "to",       "min",      "max",     "printf",   "clock"};
    for (const std::string& piece : piece_names()) names.insert(piece);
    return names;
  }();
  return set;
}

void replace_all(std::string& s, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
}

// The scalar texts are written for the host's compilers; the device's has other words for the same things. Roundings
// are spelled out, so that no option of the compiler changes them.
std::string device_spelling(std::string s) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"[[gnu::always_inline]] static inline ", "__device__ __forceinline__ "},
      {"__UINT8_TYPE__", "unsigned char"},
      {"__UINT16_TYPE__", "unsigned short"},
      {"__UINT32_TYPE__", "unsigned int"},
      {"__UINT64_TYPE__", "unsigned long long"},
      {"__INT8_TYPE__", "signed char"},
      {"__INT16_TYPE__", "short"},
      {"__INT32_TYPE__", "int"},
      {"__INT64_TYPE__", "long long"},
      {"__builtin_fmaf(", "__fmaf_rn("},
      {"__builtin_fma(", "__fma_rn("},
      {"__builtin_sqrtf(", "__fsqrt_rn("},
      {"__builtin_sqrt(", "__dsqrt_rn("},
      {"__builtin_inff()", "__int_as_float(0x7f800000)"},
      {"__builtin_inf()", "__longlong_as_double(0x7ff0000000000000ll)"},
      {"__builtin_nanf(\"\")", "__int_as_float(0x7fc00000)"},
      {"__builtin_nan(\"\")", "__longlong_as_double(0x7ff8000000000000ll)"},
      {"__builtin_popcountll(", "__popcll("},
      {"__builtin_clzll(", "__clzll("},
      {"__builtin_ffsll(", "__ffsll("},
  };
  for (const auto& [from, to] : kWords) replace_all(s, from, to);
  // What is left are functions of the C library, which the device has under their own names.
  for (size_t at = 0; (at = s.find("__builtin_", at)) != std::string::npos; at += 1)
    if (!s.substr(at).starts_with("__builtin_bit_cast") && !s.substr(at).starts_with("__builtin_bswap64"))
      s.erase(at, std::string_view("__builtin_").size());
  return s;
}

// The piece that converts two neighbours, which has the name of CUDA's own conversion of two if there is one.
const char* pair_conversion(DType from, DType to, const target::GpuFeatures& has) {
  if (to == f32) {
    if (from == e4m3) return has.fp8_conversions ? "tw_float2_of_e4m3" : nullptr;
    return from == f16 ? "__half22float2" : from == bf16 ? "__bfloat1622float2" : nullptr;
  }
  if (from != f32) return nullptr;
  if (to == f16) return "__float22half2_rn";
  if (to == bf16) return "__float22bfloat162_rn";
  if (!has.fp8_conversions) return nullptr;
  return to == e4m3 ? "__nv_cvt_float2_to_fp8x2_e4m3" : to == e5m2 ? "__nv_cvt_float2_to_fp8x2_e5m2" : nullptr;
}

class CudaText final : public CudaAsync {
 public:
  CudaText(const ThreadProgram& program, const target::GpuTarget& target, const std::string& report_head,
           CudaStyle style)
      : CudaAsync(program, reserved_names()), target_(target), report_head_(report_head), style_(style) {}

  CudaSource write() {
    for (const Launch& launch : program_.launches) kernel(launch);
    pieces_.insert("types");
    std::vector<const char*> own{text::codegen_cuda_scalar, text::codegen_cuda_hopper};
    if (target_.has.fp8_conversions) own.push_back(text::codegen_cuda_scalar_sm89);
    if (target_.has.tf32_rounding) own.push_back(text::codegen_cuda_scalar_sm90);
    std::string head = pieces_text(pieces_, own);
    if (uses_memory_) head += text::codegen_cuda_memory;
    head += "\n" + cuda_function_names(functions_) + made_helpers();
    if (!sites_.empty()) head += report_head_;
    return {device_spelling(head) + "\n" + foreign_text_ + device_spelling(out_), std::move(kernels_), std::move(maps_),
            std::move(sites_), std::move(marks_)};
  }

 private:
  // ---- memory
  std::string load_nibble(BufferId, const std::string& pointer, const std::string& offset) override {
    uses_memory_ = true;
    return fmt::format("tw_nibble({}, {})", pointer, offset);
  }
  // Neighbours of other threads share a byte; atomics on a thread's own memory are none that a GPU has.
  void store_nibble(BufferId b, const std::string& pointer, const std::string& offset,
                    const std::string& bits) override {
    uses_memory_ = true;
    if (program_.buffer(program_.root(b)).space == Space::Local)
      return line(fmt::format("tw_set_nibble({}, {}, {});", pointer, offset, bits));
    line(fmt::format("tw_update_nibble({}, {}, [&](uint8_t) -> uint8_t {{ return {}; }});", pointer, offset, bits));
  }
  // So many bytes in one access; null: there is none.
  static const char* word_of(int64_t bytes, bool floats) {
    return bytes == 16  ? floats ? "float4" : "uint4"
           : bytes == 8 ? floats ? "float2" : "uint2"
           : bytes == 4 ? "uint32_t"
           : bytes == 2 ? "uint16_t"
           : bytes == 1 ? "uint8_t"
                        : nullptr;
  }
  bool is_f32(BufferId id) const { return program_.buffer(id).type == f32; }
  // Neighbours in one access.
  void copy(const Copy& n) {
    if (n.combine != ir::Combine::None) return add(n);
    const int64_t bytes = bytes_of(n.to);
    const char* word = word_of(bytes, is_f32(n.from.buffer) && is_f32(n.to.buffer));
    check_internal(word != nullptr, "one access of {} bytes", bytes);
    if (n.completion.queue == Queue::CpAsync) return cp_async(n);
    const std::string to = pointer_to(n.to.buffer, n.to.min), from = pointer_to(n.from.buffer, n.from.min);
    if (bytes >= 8 && is_global(n.to.buffer))
      return line(fmt::format("{3}(({0}*){1}, *(const {0}*){2});", word, to, from, helper("tw_store")));
    line(fmt::format("*({0}*){1} = *(const {0}*){2};", word, to, from));
  }

  // Adds neighbours: of the types, and as many, as the device adds at once (PTX ISA 9.7.13.7), one after the other
  // else.
  void add(const Copy& n) {
    const DType type = program_.buffer(n.to.buffer).type;
    const int64_t bytes = bytes_of(n.to);
    const bool pairs = type == f16 || (type == bf16 && target_.has.vector_adds);
    if (type == f32 ? target_.has.vector_adds && bytes >= 8 : pairs && bytes >= 4) {
      const int64_t most = target_.has.vector_adds ? bytes : 4;
      static constexpr std::array<std::array<const char*, 3>, 3> kHelpers = {{
          {"", "tw_add_f32x2", "tw_add_f32x4"},
          {"tw_add_f16x2x1", "tw_add_f16x2x2", "tw_add_f16x2x4"},
          {"tw_add_bf16x2x1", "tw_add_bf16x2x2", "tw_add_bf16x2x4"},
      }};
      const char* name = kHelpers[type == f32 ? 0 : type == f16 ? 1 : 2][most == 16 ? 2 : most == 8 ? 1 : 0];
      for (int64_t at = 0; at < bytes; at += most)
        line(fmt::format("{}(&{}, &{});", helper(name), moved(n.to, at * 8 / type.bits),
                         moved(n.from, at * 8 / type.bits)));
      return;
    }
    for (int64_t i = 0; i < constant_int(n.to.extent.back()).value_or(0); ++i) {
      Atomic one;
      one.to = {n.to.buffer, shifted(n.to, i)}, one.value = ir::load(n.from.buffer, shifted(n.from, i), type);
      atomic(one);
    }
  }
  // The loads of a condition and of those in it, each by an instruction of its own that waits for nobody; what is read
  // where a condition is false stands there before. `around`: the condition that this one is in; empty: none.
  void guarded_loads(const If& n, const std::string& around) {
    const std::string inside = names_.fresh("inside");
    const std::string condition = in(value(n.condition), Binds::And);
    line(fmt::format("const bool {} = {}{};", inside, around.empty() ? "" : around + " && ", condition));
    if (!n.else_body.empty()) {
      if (!around.empty()) open(fmt::format("if ({}) {{", around));
      body(n.else_body);
      if (!around.empty()) close();
    }
    for (const Stmt& s : n.then_body) {
      if (const auto* inner = s.as<If>()) {
        guarded_loads(*inner, inside);
        continue;
      }
      note_source(s);
      const auto load = plain_load(s, program_);
      const char* word = word_of(load->bytes, is_f32(load->from.buffer) && is_f32(load->to.buffer));
      line(fmt::format("{0}<{1}>({2}, ({3}*){4}, (const {3}*){5});", helper("tw_load_if"),
                       constants_.contains(program_.root(load->from.buffer)), inside, word,
                       pointer_to(load->to.buffer, load->to.indices),
                       pointer_to(load->from.buffer, load->from.indices)));
    }
  }
  bool owns_locals(const If& n) const {
    return !locals_of(n.then_body).empty() || !locals_of(n.else_body).empty() ||
           std::ranges::any_of(n.then_body, [&](const Stmt& s) { return s.as<If>() && owns_locals(*s.as<If>()); });
  }

  static std::vector<Expr> shifted(const Region& r, int64_t by) {
    std::vector<Expr> index = r.min;
    index.back() = ir::add(index.back(), ir::constant(index.back()->type, by));
    return index;
  }
  std::string moved(const Region& r, int64_t by) { return element(r.buffer, shifted(r, by)); }

  int64_t bytes_of(const Region& r) const {
    return tilewright::bytes_of(program_.buffer(r.buffer).type, constant_int(r.extent.back()).value_or(0));
  }
  // What is not read is filled with zeros.
  void cp_async(const Copy& n) {
    const int64_t bytes = bytes_of(n.to);
    const Expr& read = n.from.extent.back();
    const bool all = constant_int(read) == constant_int(n.to.extent.back());
    const DType type = program_.buffer(n.to.buffer).type;
    const std::string in_bytes = type.is_packed() ? " / 2u" : fmt::format(" * {}u", type.storage_bits() / 8);
    const std::string some = all ? "" : fmt::format(", \"r\"((uint32_t)({}){})", text(read), in_bytes);
    const auto place = [&](const Region& r) {
      const std::string at = pointer_to(r.buffer, r.min);
      return at.front() == '&' ? at : fmt::format("&{}[0]", at);
    };
    line(
        fmt::format("asm volatile(\"cp.async.{}.shared.global [%0], [%1], {}{};\" ::\"r\"((uint32_t)"
                    "__cvta_generic_to_shared({})), \"l\"({}){} : \"memory\");",
                    bytes == 16 ? "cg" : "ca", bytes, some.empty() ? "" : ", %2", place(n.to), place(n.from), some));
  }

  // ---- matrices
  // Operands: a region of registers, or the words that narrower elements of a thread's array make.
  std::vector<std::string> words(const Region& r) {
    const int64_t bits = program_.buffer(r.buffer).type.bits, each = bits < 32 ? 32 / bits : 1;
    std::vector<std::string> out;
    for (int64_t i = 0; i < constant_int(r.extent.back()).value_or(0); i += each) {
      std::vector<Expr> index = r.min;
      index.back() = ir::add(index.back(), ir::constant(index.back()->type, i));
      const std::string first = element(r.buffer, index);
      out.push_back(each == 1 ? first : fmt::format("*(uint32_t*)&{}", first));
    }
    return out;
  }
  // "{%0, %1}", and how many have been numbered.
  static std::string numbered(size_t count, int& next) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += fmt::format("{}%{}", i ? ", " : "", next++);
    return "{" + out + "}";
  }
  void mma(const Mma& n) {
    const std::vector<std::string> a = words(n.a), b = words(n.b), c = words(n.c);
    const DType type = program_.buffer(n.c.buffer).type;
    const char* accumulator = type == f64 ? "+d" : type.is_float() ? "+f" : "+r";
    const char* word = type == f64 ? "d" : "r";
    int next = 0;
    const std::string cs = numbered(c.size(), next), as = numbered(a.size(), next), bs = numbered(b.size(), next);
    const std::string inputs = fmt::format("{}, {}", operands(a, word), operands(b, word));
    if (n.metadata.valid()) {
      line(fmt::format("asm(\"mma.sp::ordered_metadata.sync.aligned.{} {}, {}, {}, {}, %{}, 0x0;\"", n.instruction, cs,
                       as, bs, cs, next));
      line(fmt::format("    : {} : {}, {});", operands(c, accumulator), inputs, operands(words(n.metadata), "r")));
      return;
    }
    line(fmt::format("asm(\"mma.sync.aligned.{} {}, {}, {}, {};\"", n.instruction, cs, as, bs, cs));
    line(fmt::format("    : {} : {});", operands(c, accumulator), inputs));
  }
  void load_matrix(const LoadMatrix& n) {
    const std::vector<std::string> to = words(n.to);
    int next = 0;
    const std::string list = numbered(to.size(), next);
    line(fmt::format("asm volatile(\"ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%{}];\"", to.size(),
                     n.transpose ? ".trans" : "", list, next));
    line(fmt::format("    : {} : \"r\"((uint32_t)__cvta_generic_to_shared(&{})) : \"memory\");", operands(to, "=r"),
                     element(n.from.buffer, n.from.indices)));
  }
  void store_matrix(const StoreMatrix& n) {
    const size_t matrices = words(n.from).size();
    const std::string name = fmt::format("tw_store_matrices_{}{}", matrices, n.transpose ? "_transposed" : "");
    std::vector<std::string> each;
    for (size_t i = 0; i < matrices; ++i) each.push_back(fmt::format("words[{}]", i));
    int next = 1;
    make_helper(name, fmt::format("__device__ __forceinline__ void {}(void* row, const void* values) {{\n"
                                  "  const uint32_t* words = (const uint32_t*)values;\n"
                                  "  asm volatile(\"stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [%0], {};\"\n"
                                  "               ::\"r\"({}(row)), {} : \"memory\");\n}}\n",
                                  name, matrices, n.transpose ? ".trans" : "", numbered(matrices, next),
                                  helper("tw_shared_address"), operands(each, "r")));
    line(
        fmt::format("{}({}, {});", name, pointer_to(n.to.buffer, n.to.indices), pointer_to(n.from.buffer, n.from.min)));
  }

  // ---- atomics
  // The instruction's function, where there is one for the type.
  static const char* atomic_function(AtomicOp op, DType type) {
    const bool word = type.is_int() && (type.bits == 32 || type.bits == 64);
    switch (op) {
      case AtomicOp::Add: return word || type == f32 || type == f64 ? "atomicAdd" : nullptr;
      case AtomicOp::Max: return word ? "atomicMax" : nullptr;
      case AtomicOp::Min: return word ? "atomicMin" : nullptr;
      case AtomicOp::And: return word ? "atomicAnd" : nullptr;
      case AtomicOp::Or: return word ? "atomicOr" : nullptr;
      case AtomicOp::Xor: return word ? "atomicXor" : nullptr;
      case AtomicOp::Exchange: return word || type == f32 ? "atomicExch" : nullptr;
      default: return nullptr;
    }
  }
  // The helper that adds a float of 16 bits to global memory, where the device does that at once; none: it does not.
  const char* short_addition(const Atomic& n, DType type) const {
    if (n.op != AtomicOp::Add || !is_global(n.to.buffer)) return nullptr;
    if (type == f16) return n.result.valid() ? "tw_atomic_add_f16" : "tw_add_f16";
    if (type != bf16 || !target_.has.vector_adds) return nullptr;
    return n.result.valid() ? "tw_atomic_add_bf16" : "tw_add_bf16";
  }
  // The C type under which the functions know it.
  static std::string atomic_type(AtomicOp op, DType type) {
    if (type.is_float()) return type == f64 ? "double" : "float";
    const bool ordered = op == AtomicOp::Max || op == AtomicOp::Min;
    if (type.bits == 64) return ordered && type.is_signed() ? "long long" : "unsigned long long";
    return type.is_signed() ? "int" : "unsigned";
  }
  void atomic(const Atomic& n) {
    const DType type = program_.buffer(n.to.buffer).type;
    const bool releases = n.order != MemoryOrder::Relaxed && n.order != MemoryOrder::Acquire;
    const bool acquires = n.order != MemoryOrder::Relaxed && n.order != MemoryOrder::Release;
    if (releases) line("__threadfence();");
    std::string call;
    if (const char* function = atomic_function(n.op, type)) {
      const std::string c = atomic_type(n.op, type);
      call = fmt::format("{}(({}*)&{}, ({})({}))", function, c, element(n.to.buffer, n.to.indices), c, text(n.value));
      if (n.result.valid()) call = fmt::format("({})", fmt::format("({}){}", c_type(type), call));
    } else if (const char* addition = short_addition(n, type)) {
      call = fmt::format("{}(&{}, {})", helper(addition), element(n.to.buffer, n.to.indices), bits(n.value));
      if (n.result.valid()) call = value_of_bits(type, call);
    } else {
      call = generic_atomic(n, type);
    }
    if (!n.result.valid()) {
      line(call + ";");
    } else {
      const std::string name = names_.declare(n.result, program_.var(n.result).name);
      line(fmt::format("const {} {} = {};", c_type(type), name, call));
    }
    if (acquires) line("__threadfence();");
  }
  // Additions to neighbours at once, where the tensor is known to begin at whole vectors.
  size_t wide_additions(const Body& b, size_t at) {
    const auto wide = target_.has.vector_adds ? analysis::wide_atomic(b, at, program_) : std::nullopt;
    if (!wide) return 0;
    const Element& to = wide->lanes[0].to;
    if (program_.buffer(program_.root(to.buffer)).alignment < wide->bytes()) return 0;
    note_source(b[at]);
    if (wide->condition) open(fmt::format("if ({}) {{", text(wide->condition)));
    std::string values;
    for (const Atomic& n : wide->lanes) values += fmt::format("{}{}", values.empty() ? "" : ", ", text(n.value));
    const size_t count = wide->lanes.size();
    line(fmt::format("atomicAdd((float{0}*)&{1}, make_float{0}({2}));", count, element(to.buffer, to.indices), values));
    if (wide->condition) close();
    return wide->statements;
  }
  std::string generic_atomic(const Atomic& n, DType type) {
    uses_memory_ = true;
    const std::string bits_type = fmt::format("uint{}_t", std::max(type.storage_bits(), 8));
    const std::string now = updated(n, type, value_of_bits(type, "old"));
    const std::string change = fmt::format("[&]({} old) -> {} {{ return {}; }}", bits_type, bits_type, now);
    const std::string call =
        fmt::format("tw_update(({}*)&{}, {})", bits_type, element(n.to.buffer, n.to.indices), change);
    return n.result.valid() ? value_of_bits(type, call) : call;
  }

  // ---- lanes
  static const char* lanes(bool converged) { return converged ? "0xffffffffu" : "__activemask()"; }
  void shuffle(const Shuffle& n) {
    const char* function = n.kind == ShuffleKind::Index  ? "__shfl_sync"
                           : n.kind == ShuffleKind::Up   ? "__shfl_up_sync"
                           : n.kind == ShuffleKind::Down ? "__shfl_down_sync"
                                                         : "__shfl_xor_sync";
    const DType type = n.value->type;
    const bool small = type.is_bool() || (type.is_int() && type.bits < 32);
    const std::string v = small ? fmt::format("(int)({})", text(n.value)) : text(n.value);
    const std::string width = n.width == 32 ? "" : fmt::format(", {}", n.width);
    const std::string name = names_.declare(n.result, program_.var(n.result).name);
    line(fmt::format("const {0} {1} = ({0}){2}({3}, {4}, {5}{6});", c_type(type), name, function, lanes(n.converged), v,
                     text(n.lane), width));
  }
  // Of integers that all lanes of a warp join, one instruction in place of five exchanges.
  size_t joined_warp(const WarpJoin& n, const Stmt& s) {
    note_source(s);
    const auto joined = [&](const std::string& value) {
      const char* type = n.value->type.is_signed() ? "int32_t" : "uint32_t";
      return n.takes_signs ? fmt::format("{}(0xffffffffu, {})", n.function, value)
                           : fmt::format("({}){}(0xffffffffu, (uint32_t)({}))", type, n.function, value);
    };
    if (n.result.valid()) {
      const std::string value = joined(text(n.value));
      line(fmt::format("const {} {} = {};", c_type(n.value->type),
                       names_.declare(n.result, program_.var(n.result).name), value));
    }
    for (int64_t i = 0; i < n.registers; ++i) {
      const std::string place = element(n.place.buffer, {ir::constant(i)});
      line(fmt::format("{} = {};", place, joined(place)));
    }
    return n.statements;
  }
  void vote(const Vote& n) {
    const std::string name = names_.declare(n.result, program_.var(n.result).name);
    const std::string_view type = c_type(program_.var(n.result).type);
    const char* mask = lanes(n.converged);
    const std::string v = n.value ? text(n.value) : "";
    auto is = [&](const std::string& call) { line(fmt::format("const {} {} = {};", type, name, call)); };
    switch (n.kind) {
      case VoteKind::Any: return is(fmt::format("__any_sync({}, {}) != 0", mask, v));
      case VoteKind::All: return is(fmt::format("__all_sync({}, {}) != 0", mask, v));
      case VoteKind::Ballot: return is(fmt::format("__ballot_sync({}, {})", mask, v));
      case VoteKind::ActiveMask: return is("__activemask()");
      case VoteKind::BlockAny: return is(fmt::format("__syncthreads_or({}) != 0", v));
      case VoteKind::BlockAll: return is(fmt::format("__syncthreads_and({}) != 0", v));
      case VoteKind::BlockCount: return is(fmt::format("__syncthreads_count({})", v));
      case VoteKind::MatchAny: return is(fmt::format("__match_any_sync({}, {})", mask, bits_of(n.value->type, v)));
      case VoteKind::MatchAll: {
        const std::string all = names_.fresh("all_equal");
        line(fmt::format("int {};", all));
        return is(fmt::format("__match_all_sync({}, {}, &{})", mask, bits_of(n.value->type, v), all));
      }
    }
  }

  // ---- foreign text
  void call(const Call& n) {
    if (foreign_text_.empty()) foreign_text_ = kForeignHead;
    if (foreign_.insert(n.source).second) foreign_text_ += n.source + "\n";
    std::vector<std::string> arguments;
    for (const Expr& e : n.args) {
      const auto* pointer = e.as<Address>();
      arguments.push_back(pointer ? "&" + element(pointer->buffer, pointer->indices) : text(e));
    }
    for (const char* known : kHeaderFunctions)
      if (n.source.empty() && n.function == known) pieces_.insert(known);
    const std::string call = fmt::format("{}({})", n.function, fmt::join(arguments, ", "));
    if (!n.result.valid() || !kernel_vars_.contains(n.result)) return line(call + ";");
    const std::string name = names_.declare(n.result, program_.var(n.result).name);
    line(fmt::format("const {0} {1} = ({0}){2};", c_type(program_.var(n.result).type), name, call));
  }

  // ---- order
  void sync(const Sync& n) {
    switch (n.scope) {
      case SyncScope::Warp: return line("__syncwarp();");
      case SyncScope::Block: return line("__syncthreads();");
      case SyncScope::Named:
        return line(fmt::format("{}<{}>({});", helper(n.arrive_only ? "tw_arrive_threads" : "tw_sync_threads"), n.count,
                                text(n.barrier)));
      case SyncScope::Grid:
        cooperative_ = true;
        pieces_.insert("tw_sync_grid");
        return line("cooperative_groups::this_grid().sync();");
      case SyncScope::Launches: {
        const char* name = n.wait_only ? "cudaGridDependencySynchronize" : "cudaTriggerProgrammaticLaunchCompletion";
        waits_ = waits_ || n.wait_only;
        pieces_.insert(name);
        return line(fmt::format("{}();", name));
      }
      default: check_internal(false, "the CUDA text has no sync of {} scope", name_of(n.scope));
    }
  }
  void commit(const Commit& n) {
    check_internal(n.queue == Queue::CpAsync, "the CUDA text has no queue {}", name_of(n.queue));
    line("asm volatile(\"cp.async.commit_group;\" ::: \"memory\");");
  }
  void drain(const Drain& n) {
    check_internal(n.queue == Queue::CpAsync, "the CUDA text has no queue {}", name_of(n.queue));
    line(fmt::format("asm volatile(\"cp.async.wait_group {};\" ::: \"memory\");", n.pending));
  }
  void fence(const Fence& n) {
    if (n.proxy == FenceProxy::Async) return line(helper("tw_fence_async_shared") + "();");
    if (n.proxy == FenceProxy::AsyncAll) return line(helper("tw_fence_async") + "();");
    line(n.proxy == FenceProxy::Block ? "__threadfence_block();" : "__threadfence();");
  }
  // More or fewer than the block was launched with (PTX ISA, setmaxnreg).
  void set_registers(const SetRegisters& n) {
    if (!target_.has.set_registers) return;
    sets_registers_ = true;
    const int64_t each = target_.registers_at_launch(launch_->thread_count(), launch_->min_blocks);
    if (n.count != each)
      line(fmt::format("{}<{}>();", helper(n.count > each ? "tw_take_registers" : "tw_leave_registers"), n.count));
  }
  // Warps are numbered by one lane's word for all: the device compiler then sees that a warp takes one way.
  std::string is_in(const Role& n) const {
    const int64_t last = (launch_->threads[0] + kWarpThreads - 1) / kWarpThreads, begin = n.begin / kWarpThreads,
                  end = (n.end + kWarpThreads - 1) / kWarpThreads;
    const std::string from = begin > 0 ? fmt::format("{} >= {}", warp_, begin) : "";
    const std::string below = end < last ? fmt::format("{} < {}", warp_, end) : "";
    return end == begin + 1 && last > 1    ? fmt::format("{} == {}", warp_, begin)
           : from.empty() || below.empty() ? from + below
                                           : from + " && " + below;
  }
  // In one branch, neighbours without a common thread are its arms: what one of them needs is not kept alive in
  // another.
  size_t target_statements(const Body& b, size_t at) override {
    if (const auto join = warp_join(b, at, program_)) return joined_warp(*join, b[at]);
    if (const size_t additions = wide_additions(b, at); additions > 0) return additions;
    if (const size_t barriers = init_barriers(b, at); barriers > 0) return barriers;
    if (const size_t told = arrivals_at_peers(b, at); told > 0) return told;
    if (const auto* n = b[at].as<If>(); n && are_guarded_loads(*n, program_) && !owns_locals(*n)) {
      note_source(b[at]);
      open("{");
      guarded_loads(*n, "");
      close();
      return 1;
    }
    std::vector<const Role*> arms;
    for (size_t i = at; i < b.size() && (arms.empty() || style_.one_branch); ++i) {
      const auto* role = b[i].as<Role>();
      const bool apart = role && std::none_of(arms.begin(), arms.end(), [&](const Role* r) {
                           return r->begin < role->end && role->begin < r->end;
                         });
      if (!apart) break;
      arms.push_back(role);
    }
    for (size_t i = 0; i < arms.size(); ++i) {
      const std::string which = is_in(*arms[i]);
      if (i == 0) note_source(b[at]);
      if (i == 0)
        open(which.empty() ? "{" : fmt::format("if ({}) {{", which));
      else
        reopen(fmt::format("}} else if ({}) {{", which));
      if (i > 0) note_source(b[at + i]);
      body(arms[i]->body);
    }
    if (!arms.empty()) close();
    return arms.size();
  }

  void report(int site, bool failed, const std::vector<Expr>&, const std::vector<std::string>& values) override {
    reports_ = true;
    open(fmt::format("if (unsigned long long* to = {}(reports, {}, {})) {{", failed ? "tw_report_failure" : "tw_report",
                     site, values.size()));
    if (values.empty()) line("(void)to;");
    for (size_t i = 0; i < values.size(); ++i) line(fmt::format("to[{}] = {};", i, values[i]));
    close();
  }

  void target_statement(const Stmt& s) override {
    const SourceLocation& at = program_.location(s->location);
    if (async_statement(s)) return;
    if (const auto* n = s.as<Copy>()) return copy(*n);
    if (const auto* n = s.as<Atomic>()) return atomic(*n);
    if (const auto* n = s.as<Shuffle>()) return shuffle(*n);
    if (const auto* n = s.as<Vote>()) return vote(*n);
    if (const auto* n = s.as<Call>()) return call(*n);
    if (const auto* n = s.as<Sync>()) return sync(*n);
    if (const auto* n = s.as<Fence>()) return fence(*n);
    if (const auto* n = s.as<Commit>()) return commit(*n);
    if (const auto* n = s.as<Drain>()) return drain(*n);
    if (const auto* n = s.as<Mma>()) return mma(*n);
    if (const auto* n = s.as<LoadMatrix>()) return load_matrix(*n);
    if (const auto* n = s.as<StoreMatrix>()) return store_matrix(*n);
    if (const auto* n = s.as<Print>()) return print(*n, at);
    if (const auto* n = s.as<Assert>()) return assertion(*n, at);
    if (const auto* n = s.as<SetRegisters>()) return set_registers(*n);
    check_internal(false, "the CUDA text has no {}", name_of(s));
  }
  std::string loop_pragma(const For& n) const override {
    if (n.kind != LoopKind::Unroll) return "";
    return n.factor > 0 ? fmt::format("#pragma unroll {}", n.factor) : "#pragma unroll";
  }

  Text function(Function f, DType type, const std::vector<std::string>& args) override {
    const CudaFunction as = cuda_function(f, type, program_.options.fast_math);
    if (!as.piece.empty()) pieces_.insert(as.piece);
    if (as.piece != as.name && !as.piece.empty()) functions_.emplace(exact_of(f), type == f64);
    const Text called{fmt::format("{}({})", as.name, fmt::join(args, ", "))};
    return f == Function::Abs && type.is_int() ? after_minus(type, called) : called;
  }

  std::optional<Text> quotient(DType type, const Text& a, const Text& b) override {
    if (!style_.approximate_div || !type.is_float() || type == f64) return {};
    return Text{fmt::format("__fdividef({}, {})", a.text, b.text)};
  }

  Text after_minus(DType type, const Text& t) override {
    if (!type.is_signed() || !type.is_int() || (type.bits != 8 && type.bits != 16)) return rounded(type, t);
    return rounded(type, {fmt::format("{}<{}>({})", helper("tw_signed_low"), type.bits, t.text)});
  }
  // Of integers of 32 bits and less, where ptxas may not merge what it knows of them.
  bool is_plain(DType type) const {
    return style_.plain_integers && type.is_int() && type.bits <= 32 && (type.is_signed() || type.bits < 32);
  }
  std::optional<Text> comparison(const Binary& n) override {
    if (!is_plain(n.a->type)) return {};
    const auto called = [&](const char* name) { return fmt::format("{}({}, {})", helper(name), text(n.a), text(n.b)); };
    switch (n.op) {
      case BinaryOp::Eq: return Text{called("tw_equal")};
      case BinaryOp::Ne: return Text{"!" + called("tw_equal"), Binds::Unary};
      case BinaryOp::Min: return Text{called("tw_min")};
      case BinaryOp::Max: return Text{called("tw_max")};
      default: return {};
    }
  }
  static bool loads(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& x) { found = found || x.as<Load>(); });
    return found;
  }
  // Under the conditions that an expression's arms are computed for, whichever is taken.
  std::string load_bits(const Load& n, DType type) override {
    if (inside_.empty() || !is_global(n.buffer)) return CudaAsync::load_bits(n, type);
    return fmt::format("{}<{}>({}, &{})", helper("tw_load_or_zero"), constants_.contains(program_.root(n.buffer)),
                       fmt::join(inside_, " && "), element(n.buffer, n.indices));
  }
  static constexpr int64_t kMostForLoads = 64;  // work that may be for nothing: less than a load takes to come
  // Both arms, with the loads of each made where its condition is true, and no branch around them.
  std::optional<Text> loading_choice(const Select& n) {
    const bool a = loads(n.a) && may_load_under(n.a, program_), b = loads(n.b) && may_load_under(n.b, program_);
    if ((!a && !b) || loads(n.condition) || analysis::work_of(n.a) + analysis::work_of(n.b) > kMostForLoads) return {};
    const std::string condition = in(value(n.condition), Binds::And);
    const auto arm = [&](const Expr& e, bool loads_under, const std::string& is) {
      if (!loads_under) return loads(e) ? fmt::format("{} ? {} : 0", is, in(value(e), Binds::Conditional)) : text(e);
      inside_.push_back(is);
      std::string out = text(e);
      inside_.pop_back();
      return out;
    };
    // What is not loaded is zeros.
    if (a && is_zero_bits(n.b) && is_element(n.a)) return Text{arm(n.a, a, condition)};
    const std::string first = arm(n.a, a, condition), second = arm(n.b, b, "!(" + condition + ")");
    const std::string choose =
        is_plain(n.a->type) ? helper("tw_choose") : fmt::format("{}<{}>", helper("tw_select"), c_type(n.a->type));
    return Text{fmt::format("{}({}, {}, {})", choose, condition, first, second)};
  }
  // An element, or nothing but zeros.
  std::optional<std::string> choice_bits(const Select& n) override {
    if (!is_zero_bits(n.b) || !is_element(n.a) || !may_load_under(n.a, program_) || loads(n.condition)) return {};
    inside_.push_back(in(value(n.condition), Binds::And));
    std::string out = load_bits(*n.a.as<Load>(), n.a->type);
    inside_.pop_back();
    return out;
  }
  std::optional<std::string> converted_bits(const Cast& n, DType type) override {
    if (n.rounding != Rounding::TowardZero || n.value->type != f32 || type != f16) return {};
    return CFamily::call("store_f16_rz", {text(n.value)}).text;
  }
  static bool is_zero_bits(const Expr& e) { return e.as<Const>() && e.as<Const>()->bits == 0; }
  // A number that is 0 where memory has no bit of it.
  static bool is_element(const Expr& e) {
    const DType t = e->type;
    const bool floats = t == f64 || t == f32 || t == f16 || t == bf16 || t == e4m3 || t == e5m2;
    return e.as<Load>() && (t.is_int() || floats) && t.bits >= 8;
  }
  std::optional<Text> choice(const Select& n) override {
    if (auto loading = loading_choice(n)) return loading;
    // A function's arguments are computed whatever the condition is, which often says where memory may be read.
    if (is_plain(n.a->type) && !loads(n.a) && !loads(n.b))
      return Text{fmt::format("{}({}, {}, {})", helper("tw_choose"), text(n.condition), text(n.a), text(n.b))};
    if (!is_branch(n)) return {};
    return Text{fmt::format("{}<{}>({}, {}, {})", helper("tw_select"), c_type(n.a->type), text(n.condition), text(n.a),
                            text(n.b))};
  }
  // Of which the device's compiler makes a branch, though both sides are little work.
  static bool is_branch(const Select& n) {
    constexpr int64_t kLeastWork = 3, kMostWork = 32;
    const int64_t a = analysis::work_of(n.a), b = analysis::work_of(n.b);
    const auto no_load = [](const Load&) { return false; };
    return a + b >= kLeastWork && a <= kMostWork && b <= kMostWork && analysis::may_run_anywhere(n.a, no_load) &&
           analysis::may_run_anywhere(n.b, no_load);
  }

  // at ^ (at >> shift & mask)
  std::optional<Text> exchange(const Binary& n) override {
    const auto* moved = n.b.as<Binary>();
    const auto* from = moved && moved->op == BinaryOp::BitAnd ? moved->a.as<Binary>() : nullptr;
    if (!from || from->op != BinaryOp::Shr || !n.a.as<Sum>() || !equal(from->a, n.a)) return {};
    const auto shift = constant_int(from->b), mask = constant_int(moved->b);
    if (!shift || !mask || !n.a->type.is_int()) return {};
    return Text{fmt::format("{}<{}, {}>({})", helper("tw_swizzle"), *shift, *mask, text(n.a))};
  }

  // Neighbours that are converted from or to float: one instruction converts two.
  bool target_loop(const For& n) override {
    const auto extent = constant_int(n.extent);
    const auto* store = n.body.size() == 1 ? n.body[0].as<Store>() : nullptr;
    if (n.kind != LoopKind::Unroll || !extent || *extent < 2 || *extent > 16 || *extent % 2 != 0) return false;
    if (!store || constant_int(n.begin) != 0) return false;
    // What is computed in a short type is a float until it is stored.
    const auto* cast = store->value.as<Cast>();
    const DType type = program_.buffer(store->to.buffer).type;
    if (cast && cast->rounding != Rounding::Nearest) return false;
    const Expr& converted = cast ? cast->value : store->value;
    const auto* from = converted.as<Load>();
    const char* function = pair_conversion(cast ? converted->type : f32, type, target_.has);
    if (!function || !are_pairs(store->to, n.var) || reads_others(converted, store->to)) return false;
    if (!locals_of(n.body).empty()) return false;  // what nobody else reads or writes lives in the loop
    if (type == f32 && (!from || !are_pairs({from->buffer, from->indices}, n.var))) return false;
    auto at = [&](const Expr& e, int64_t i) {
      return substitute(e, {{n.var, ir::constant(program_.var(n.var).type, i)}});
    };
    const auto as_float = [&](int64_t i) { return cast ? text(at(converted, i)) : value(at(converted, i)).unrounded; };
    if (!cast && (converted->type != type || as_float(0).empty())) return false;
    pieces_.insert(function);
    for (int64_t i = 0; i < *extent; i += 2) {
      const std::string to = pointer_to(store->to.buffer, {at(store->to.indices[0], i)});
      const std::string given = type == f32 ? pointer_to(from->buffer, {at(from->indices[0], i)})
                                            : fmt::format("{}, {}", as_float(i), as_float(i + 1));
      line(fmt::format("{}({}, {});", function, to, given));
    }
    return true;
  }
  // Whether neighbours in a thread's own array, from an even one on, as the loop goes on.
  bool are_pairs(const Element& e, VarId step) const {
    const Buffer& b = program_.buffer(e.buffer);
    if (b.space != Space::Local || b.is_view() || e.indices.size() != 1) return false;
    auto at = [&](int64_t i) { return substitute(e.indices[0], {{step, ir::constant(program_.var(step).type, i)}}); };
    return ir::constant_int(ir::sub(at(1), at(0))) == 1 &&
           analysis::power_of_two_divisor(ir::cast(at(0), i64)) % 2 == 0;
  }

  // Whether it reads another element of the array than the one that is stored: a turn before may have stored that.
  bool reads_others(const Expr& e, const Element& stored) const {
    bool others = false;
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      const bool own = n && n->buffer == stored.buffer && equal(n->indices, stored.indices);
      others = others || (n && !own && program_.root(n->buffer) == program_.root(stored.buffer));
    });
    return others;
  }

  // ---- declarations
  // A thread keeps its locals from one turn to the next.
  std::set<BufferId> locals_of(const Body& b) const override {
    return analysis::locals_that_stay(b, program_, declared_);
  }
  void declare_local(BufferId id) override {
    const Buffer& b = program_.buffer(id);
    const std::string name = names_.declare(id, b.name);
    if (b.rank() == 0) return line(fmt::format("{} {};", storage_type(b.type), name));
    line(fmt::format("alignas(16) {} {}[{}];", storage_type(b.type), name, std::max<int64_t>(storage_elements(b), 1)));
  }
  void declare_shared(BufferId id, CudaKernel& k) {
    const Buffer& b = program_.buffer(id);
    const std::string name = names_.declare(id, b.name), type = storage_type(b.type);
    check_internal(b.place >= 0, "shared buffer {} has no place", b.name);
    if (b.space == Space::Barrier) {
      line(fmt::format("uint64_t* const {} = (uint64_t*)(tw_shared + {});", name, b.place));
      k.shared_bytes = std::max(k.shared_bytes, b.place + 8 * static_cast<int64_t>(b.arrive_counts.size()));
      return;
    }
    if (b.rank() == 0)
      line(fmt::format("{0}& {1} = *({0}*)(tw_shared + {2});", type, name, b.place));
    else
      line(fmt::format("{0}* const {1} = ({0}*)(tw_shared + {2});", type, name, b.place));
    k.shared_bytes = std::max(k.shared_bytes, b.place + (b.memory ? b.memory->bytes() : bytes_on_chip(b)));
  }
  static std::string parameter_type(DType type) {
    if (type == f64) return "double";
    if (type.is_float()) return "float";
    if (type.bits == 64 || type.is_pointer()) return type.is_signed() ? "int64_t" : "uint64_t";
    return type.is_signed() || type.is_bool() ? "int32_t" : "uint32_t";
  }
  std::string function_of(const Launch& launch) {
    std::string name;
    for (char c : launch.name.empty() ? program_.name : launch.name)
      name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "kernel_" + name;
    return program_.launches.size() == 1 ? name + "_kernel"
                                         : fmt::format("{}_kernel_{}", name, &launch - program_.launches.data());
  }
  // Bytes of a tensor whose elements lie one after the other; none: a call decides.
  static std::optional<int64_t> bytes_of_all(const Buffer& b) {
    if (!b.strides.empty()) return std::nullopt;
    int64_t count = 1;
    for (const Expr& e : b.shape) {
      const auto extent = constant_int(e);
      if (!extent) return std::nullopt;
      count *= *extent;
    }
    return (count * b.type.bits + 7) / 8;
  }
  // Parameters that the device's compiler may load from whenever it likes: past barriers, and past stores to others.
  // The launch only reads them, nobody who could change them is waited for, and no parameter that it writes can be the
  // same tensor: a call may hand in one for two only where they are as large (bind.cpp).
  std::set<BufferId> constant_parameters(const Launch& launch) const {
    std::set<BufferId> changed = changed_roots(launch.body, program_);
    bool waits = false;
    walk(launch.body, [&](const Stmt& s) {
      const auto* atomic = s.as<Atomic>();
      const auto* sync = s.as<Sync>();
      waits = waits || s.as<ir::Call>() || s.as<While>() || (atomic && atomic->order != MemoryOrder::Relaxed) ||
              (atomic && atomic->op == AtomicOp::Load) ||
              (sync && (sync->scope == SyncScope::Grid || sync->scope == SyncScope::Launches));
    });
    std::set<BufferId> out;
    if (waits) return out;
    walk_exprs(launch.body, [&](const Expr& e) {  // whoever has an address may write there
      if (const auto* n = e.as<Address>()) changed.insert(program_.root(n->buffer));
    });
    const auto may_be = [&](BufferId id, BufferId other) {
      const auto own = bytes_of_all(program_.buffer(id)), its = bytes_of_all(program_.buffer(other));
      return program_.buffer(other).space == Space::Global && !program_.buffer(other).workspace &&
             !(own && its && *own != *its);
    };
    for (const Param& p : program_.params)
      if (p.is_tensor() && !changed.contains(p.buffer) &&
          std::ranges::none_of(changed, [&](BufferId other) { return may_be(p.buffer, other); }))
        out.insert(p.buffer);
    return out;
  }
  void kernel(const Launch& launch) {
    launch_ = &launch;
    note_values(launch);
    constants_ = constant_parameters(launch);
    begin_launch(launch);
    CudaKernel k;
    k.function = function_of(launch);
    const std::string before = std::exchange(out_, {});
    names_.open();
    std::set<BufferId> used;
    for (BufferId id : buffers_needed(launch.body, program_)) used.insert(program_.root(id));
    const std::set<VarId>& vars = kernel_vars_ = needed_vars(launch.body);
    std::vector<std::string> parameters, narrowed;
    auto tensor = [&](BufferId id) {
      if (!used.contains(id)) return;
      const Buffer& b = program_.buffer(id);
      const std::string type = storage_type(b.type);
      const bool constant = constants_.contains(id);
      parameters.push_back(fmt::format("{} {}", constant ? fmt::format("const {}* __restrict__", type) : type + "*",
                                       names_.declare(id, b.name)));
      k.arguments.push_back({id, {}});
    };
    auto number = [&](VarId id) {
      if (!vars.contains(id)) return;
      const DType type = program_.var(id).type;
      const std::string name = names_.declare(id, program_.var(id).name), given = parameter_type(type);
      const bool narrows = given != c_type(type);
      const std::string parameter = narrows ? names_.fresh(name + "_wide") : name;
      parameters.push_back(fmt::format("{} {}", given, parameter));
      if (narrows) narrowed.push_back(fmt::format("const {0} {1} = ({0}){2};", c_type(type), name, parameter));
      k.arguments.push_back({{}, id});
    };
    for (const Param& p : program_.params)
      if (p.is_tensor()) tensor(p.buffer);
    for (uint32_t i = 0; i < program_.buffers.size(); ++i)
      if (program_.buffers[i].workspace) tensor({i});
    for (VarId id : program_.symbols) number(id);
    for (const Param& p : program_.params)
      if (!p.is_tensor()) number(p.var);
    ++depth_;
    for (const std::string& text : narrowed) line(text);
    static constexpr const char* kAxes = "xyz";
    auto places = [&](const std::vector<VarId>& ids, const char* what) {
      for (size_t d = 0; d < ids.size(); ++d) {
        const std::string name = names_.declare(ids[d], program_.var(ids[d]).name);
        if (vars.contains(ids[d])) line(fmt::format("const int32_t {} = {}.{};", name, what, kAxes[d]));
      }
    };
    places(launch.block, "blockIdx"), places(launch.thread, "threadIdx");
    for (BufferId id : used)
      if (const Space space = program_.buffer(id).space; space == Space::Shared || space == Space::Barrier)
        declare_shared(id, k);
    reports_ = sets_registers_ = cooperative_ = waits_ = false;
    bool roles = false;
    walk(launch.body, [&](const Stmt& s) { roles = roles || s.as<Role>(); });
    if (roles) {
      warp_ = names_.fresh("warp");
      line(fmt::format("const int32_t {} = __shfl_sync(0xffffffffu, (int32_t)threadIdx.x / 32, 0);", warp_));
    }
    body(launch.body);
    --depth_;
    names_.close();
    const std::string code = std::exchange(out_, before);
    for (const auto& [index, name] : kernel_maps_) {
      parameters.push_back(fmt::format("const __grid_constant__ tw_tensor_map {}", name));
      k.arguments.push_back({{}, {}, index});
    }
    kernel_maps_.clear();
    k.reports = reports_, k.cooperative = cooperative_, k.waits = waits_;
    if (reports_) parameters.push_back("tw_reports* reports");
    // setmaxnreg counts from the registers that so many blocks a multiprocessor leave to each.
    const int64_t blocks = sets_registers_ ? std::max<int64_t>(launch.min_blocks, 1) : launch.min_blocks;
    out_ += fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) {}({}) {{\n", launch.thread_count(),
                        blocks > 0 ? fmt::format(", {}", blocks) : "", k.function, fmt::join(parameters, ", "));
    if (k.shared_bytes > 0)
      out_ += fmt::format("  extern __shared__ __align__({}) unsigned char tw_shared[];\n", kSharedAlignment);
    if (descriptors_ > 0)  // in units of matrix descriptors
      out_ += "  const uint32_t tw_matrices = (tw_shared_address(tw_shared) & 0x3ffff) >> 4;\n";
    out_ += code + "}\n\n";
    kernels_.push_back(std::move(k));
  }

  const target::GpuTarget& target_;
  const std::string& report_head_;
  const CudaStyle style_;
  bool narrows_global_offsets() const override { return true; }
  Expr without_overflow(const Expr& e) const override { return passes::wrapped(e, values_); }

  std::vector<std::string> inside_;  // conditions of the arms that are being written
  std::set<BufferId> constants_;     // constant_parameters() of the launch
  const Launch* launch_ = nullptr;
  std::string warp_;  // the name of a warp's number
  bool uses_memory_ = false, reports_ = false, sets_registers_ = false, cooperative_ = false, waits_ = false;
  std::set<std::pair<Function, bool>> functions_;  // that have CUDA's names here; of double
  std::set<std::string> foreign_{""};
  std::string foreign_text_;
  std::set<VarId> kernel_vars_;  // that the kernel reads
  std::vector<CudaKernel> kernels_;
};

}  // namespace

CudaSource emit_cuda(const ThreadProgram& program, const target::GpuTarget& target, const std::string& report_head,
                     CudaStyle style) {
  return CudaText(program, target, report_head, style).write();
}

}  // namespace tilewright::codegen
