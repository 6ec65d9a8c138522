#include "codegen/cpu.h"

#include "analysis/waiting_blocks.h"
#include "codegen/c_reports.h"
#include "codegen/cpu/brief_blocks.h"
#include "codegen/cpu/gemm_text.h"
#include "codegen/cpu/lanes.h"
#include "codegen/cpu/masked_groups.h"
#include "codegen/cpu/vector_text.h"
#include "embedded_text.h"
#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/fuse/panels.h"
#include "passes/lower/lowering.h"
#include "passes/lower/strands.h"
#include "scalar/convert.h"
#include "scalar/functions.h"
#include "scalar/pieces.h"
#include "support/diagnostic.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

// Names that a kernel's text uses itself.
const std::set<std::string>& reserved_names() {
  static const std::set<std::string> set = [] {
    std::set<std::string> names{"blocks", "run",       "place",   "values",   "old",
                                "index",  "tw_stream", "tw_line", "meetings", "tiles"};
    for (const std::string& piece : piece_names()) names.insert(piece);
    return names;
  }();
  return set;
}

// A part of the smallest stack that a thread may have been given; what else a block function keeps there is small.
constexpr int64_t kMostStackBytes = 64 << 10;

VectorFeatures vector_features(const target::CpuFeatures& f) {
  return {f.avx2, f.fma, f.f16c, f.avx512, f.avx512_bf16, f.avx512_vnni, f.amx};
}

class CpuText final : public LaneLoops {
 public:
  CpuText(const LoopProgram& program, const target::CpuFeatures& features)
      : LaneLoops(program, reserved_names()), features_(features) {}

  CpuKernelSource write() {
    for (const Launch& launch : program_.launches) block_function(launch);
    entry();
    std::string head = text::runtime_kernel_abi;
    pieces_.insert("types");
    head += pieces_text(pieces_);
    if (uses_lanes()) head += text::codegen_cpu_lanes;
    if (uses_memory_) head += text::codegen_cpu_memory;
    if (uses_scan_ || uses_transpose_) head += text::codegen_cpu_exchange;
    if (uses_scan_) head += text::codegen_cpu_scan;
    if (uses_fold_) head += text::codegen_cpu_fold;
    if (uses_stream_) head += text::codegen_cpu_stream;
    if (uses_strands_) head += text::codegen_cpu_strands;
    if (uses_transpose_) head += text::codegen_cpu_transpose;
    if (const size_t count = rooms().size(); count > 0)
      head += fmt::format(
          "{0}static char* tw_kept[{1}];\n__attribute__((destructor)) static void tw_end() {{\n  for (char* p : "
          "tw_kept) "
          "free(p);\n}}\n",
          text::codegen_cpu_room, count);
    for (const std::string& gemm : gemms_) head += "\n" + gemm;
    return {head + "\n" + out_, std::move(sites_), std::move(gemm_reports_), uses_strands_ || waits_,
            std::move(marks_)};
  }

 private:
  // ---- memory
  std::string load_nibble(BufferId, const std::string& pointer, const std::string& offset) override {
    uses_memory_ = true;
    return fmt::format("tw_nibble({}, {})", pointer, offset);
  }
  void store_nibble(BufferId id, const std::string& pointer, const std::string& offset,
                    const std::string& bits) override {
    uses_memory_ = true;
    line(fmt::format("tw_update_nibble{}({}, {}, [&](uint8_t) -> uint8_t {{ return {}; }});",
                     is_global(id) ? "_atomic" : "", pointer, offset, bits));
  }

  // ---- atomics
  // An addition to what no other thread touches, as it stands: g++ 12 loses some of those by way of their bits where it
  // makes a vector of them (AVX2, in the loop of an OpenMP function; none with -fno-tree-pre).
  bool is_plain_sum(const Atomic& n, DType type) const {
    const bool is_own_type = type == f32 || type == f64 || (type.is_int() && type.bits >= 8);
    return n.op == AtomicOp::Add && !n.result.valid() && is_own_type && !is_global(n.to.buffer);
  }
  void atomic(const Atomic& n) {
    const DType type = program_.buffer(n.to.buffer).type;
    if (is_plain_sum(n, type)) {
      const std::string sum = element(n.to.buffer, n.to.indices);
      return line(fmt::format("{0} = {0} + ({1});", sum, text(n.value)));
    }
    uses_memory_ = true;
    const std::string bits_type = fmt::format("uint{}_t", std::max(type.storage_bits(), 8));
    const std::string now = updated(n, type, value_of_bits(type, "old"));
    const char* suffix = is_global(n.to.buffer) ? "_atomic" : "";
    const std::string change = fmt::format("[&]({} old) -> {} {{ return {}; }}", bits_type, bits_type, now);
    const std::string call =
        fmt::format("tw_update{}(({}*)&{}, {})", suffix, bits_type, element(n.to.buffer, n.to.indices), change);
    if (!n.result.valid()) return line(call + ";");
    const std::string name = names_.declare(n.result, program_.var(n.result).name);
    line(fmt::format("const {} {} = {};", c_type(type), name, value_of_bits(type, call)));
  }

  // ---- reports
  void report(int site, bool failed, const std::vector<Expr>& place, const std::vector<std::string>& values) override {
    std::vector<std::string> at;
    for (const Expr& e : place) at.push_back(text(e));
    open("{");
    line(fmt::format("const long long place[6] = {{{}}};", fmt::join(at, ", ")));
    line(fmt::format("const unsigned long long values[{}] = {{{}}};", std::max<size_t>(values.size(), 1),
                     fmt::join(values, ", ")));
    line(fmt::format("call->report(call->host, {}, place, values, {});", site, values.size()));
    if (failed) line("__atomic_store_n(failed, 1, __ATOMIC_RELAXED);");
    close();
  }

  // ---- strands
  // Where the strand is, for reports.
  std::vector<Expr> place() const {
    std::vector<Expr> out(6, ir::constant(0));
    for (size_t d = 0; d < launch_->block.size(); ++d) out[d] = var(launch_->block[d], i32);
    out[3] = ir::constant(strand_.begin);
    return out;
  }
  // Ends the code of the strand: what it waits for will not come.
  void stuck(const std::string& wait, const std::string& what, const SourceLocation& at) {
    uses_strands_ = true;
    open(fmt::format("if ({}) {{", wait));
    add({ReportSite::Kind::Stuck, what, at, {}}, place(), {});
    line("return;");
    close();
  }
  void overflow(const std::string& arrival, const std::string& what, const SourceLocation& at) {
    uses_strands_ = true;
    open(fmt::format("if (!{}) {{", arrival));
    add({ReportSite::Kind::Overflow, what, at, {}}, place(), {});
    close();
  }
  std::string barrier(const Element& e) {
    const Expr at = offset(e.buffer, e.indices);
    return constant_int(at) == 0 ? names_.of(e.buffer) : fmt::format("&{}[{}]", names_.of(e.buffer), text(at));
  }
  std::string too_many(const Element& e) const {
    return fmt::format("more threads arrive at a barrier of '{}' than it counts in a phase",
                       program_.buffer(e.buffer).name);
  }
  void expect(const Expect& n, const SourceLocation& at) {
    uses_strands_ = true;
    if (!n.arrive) return line(fmt::format("tw_expect({}, {});", barrier(n.barrier), text(n.bytes)));
    line(fmt::format("({})->bytes += {};", barrier(n.barrier), text(n.bytes)));
    overflow(fmt::format("tw_arrive({})", barrier(n.barrier)), too_many(n.barrier), at);
  }
  void sync(const Sync& n, const SourceLocation& at) {
    if (n.scope == SyncScope::Grid) return stuck("call->sync_grid(call->host)", "for the other blocks of the grid", at);
    const std::string meet = fmt::format("const int met = tw_meet(call, &meetings[{}], {}, {}, {});", text(n.barrier),
                                         strand_.end - strand_.begin, n.count, !n.arrive_only);
    const bool is_own = constant_int(n.barrier).value_or(0) >= passes::kFirstMeeting;
    const std::string what =
        is_own ? "for the other threads of the block" : fmt::format("at named barrier {}", text(n.barrier));
    open("{");
    line(meet);
    overflow("(met >= 0)", fmt::format("more than {} threads arrive {}", n.count, what), at);
    stuck("met > 0", what, at);
    close();
  }
  // GCC 12 makes -x of 0 - x, which is -0 for 0, where it sees in one expression that x cannot be -0: an integer's
  // value, a magnitude. Behind a function's parameters it does not see it.
  bool subtracts_by_function(const Binary& n) override {
    return n.b->type.is_float() && (n.b.as<Cast>() || n.b.as<Intrinsic>() || n.b.as<Select>());
  }
  void begin_turn(const For& n) override {
    if (has_masked_group(n, program_))
      line("asm volatile(\"\");  // no vectors: g++ takes one mask for all that it makes of neighbours");
  }
  void begin_turn(const While&) override {
    if (!takes_turns_) return;
    waits_ = true;
    line("call->wait_for(call->host, 0, 0);");
  }
  // Roles that stand next to each other.
  size_t strands(const Body& b, size_t from) {
    uses_strands_ = true;
    std::vector<std::string> code, list;
    size_t at = from;
    for (; at < b.size() && b[at].as<Role>(); ++at) {
      strand_ = *b[at].as<Role>();
      const std::string name = names_.fresh("strand");
      open(fmt::format("auto {} = [&]() {{", name));
      body(strand_.body);
      close("};");
      code.push_back(fmt::format("tw_strand<decltype({})>", name)), list.push_back("&" + name);
    }
    open("{");
    line(fmt::format("void (*const code[])(void*) = {{{}}};", fmt::join(code, ", ")));
    line(fmt::format("void* const strands[] = {{{}}};", fmt::join(list, ", ")));
    line(fmt::format("call->run_strands(call->host, {}, code, strands);", code.size()));
    close();
    strand_ = {0, launch_->thread_count(), {}};
    return at - from;
  }

  // ---- gemm
  OperandLayout layout_of(const Region& r) const {
    const Buffer& b = program_.buffer(r.buffer);
    if (b.tile && b.tile->width > 0)
      return OperandLayout::panels(b.type, b.tile->axis, b.tile->width, b.tile->interleave);
    const size_t rank = b.rank();
    if (!b.strides.empty())
      return OperandLayout::strided(b.type, *constant_int(b.strides[rank - 2]), *constant_int(b.strides[rank - 1]));
    return OperandLayout::strided(b.type, *constant_int(b.shape[rank - 1]));
  }
  DType operand_type(const Region& r) const {
    const Buffer& b = program_.buffer(r.buffer);
    return b.tile ? b.tile->element : b.type;
  }
  std::string start(const Region& r) {
    // Of a tile all, or a panel; which need not be the first of its memory.
    const Buffer& b = program_.buffer(r.buffer);
    std::vector<Expr> index = r.min;
    if (b.tile) index.assign(b.rank(), wide(0));
    if (b.tile && b.tile->width > 0) index[0] = passes::panel_of(r, b);
    const std::string at = text(offset(r.buffer, index));
    return at == "0ll" ? pointer(r.buffer) : pointer(r.buffer) + " + " + at;
  }
  static std::string layout_name(const OperandLayout& l) {
    const std::string interleaved = l.interleave > 1 ? fmt::format(", {} interleaved", l.interleave) : "";
    if (l.form == OperandLayout::Form::Panels) return fmt::format("in panels of {}{}", l.width, interleaved);
    return fmt::format("strided ({}, {})", l.row_stride, l.column_stride);
  }
  GemmSpec spec_of(const Gemm& n) const {
    auto extent = [](const Region& r, size_t from_end) { return *constant_int(r.extent[r.extent.size() - from_end]); };
    GemmSpec spec;
    spec.m = extent(n.c, 2), spec.n = extent(n.c, 1);
    spec.k = n.transpose_a ? extent(n.a, 2) : extent(n.a, 1);
    spec.a = operand_type(n.a), spec.b = operand_type(n.b);
    spec.c = program_.buffer(n.c.buffer).type;
    spec.a_layout = layout_of(n.a), spec.b_layout = layout_of(n.b), spec.c_layout = layout_of(n.c);
    if (spec.a == f32 && spec.b == f32 && ir::operand_type(program_, n, n.a) == tf32)
      spec.a = spec.b = spec.a_layout.stored = spec.b_layout.stored = tf32;
    spec.transpose_a = n.transpose_a, spec.transpose_b = n.transpose_b;
    spec.clear = static_cast<bool>(n.clear);
    spec.features = vector_features(features_);
    if (n.next.present()) spec.fetch_lines = n.next.rows * ((n.next.bytes + 63) / 64);
    return spec;
  }
  bool has_tiles(const Launch& launch) const {
    bool found = false;
    walk(launch.body, [&](const Stmt& s) {
      const auto* n = s.as<Gemm>();
      found = found || (n && uses_tiles(spec_of(*n)));
    });
    return found;
  }
  // Tiles that nothing reads but products to which a subnormal is zero.
  std::set<BufferId> flushed_tiles(const Launch& launch) const {
    std::set<BufferId> found, others;
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* g = s.as<Gemm>()) {
        (flushes_subnormals(spec_of(*g)) ? found : others).insert({g->a.buffer, g->b.buffer});
        others.insert(g->c.buffer);
      } else if (!s.as<Store>() && !s.as<For>() && !s.as<If>() && !s.as<While>() && !s.as<Role>()) {
        for (BufferId id : used_buffers({s})) others.insert(id);
      }
    });
    walk_exprs(launch.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) others.insert(n->buffer);
      if (const auto* n = e.as<Address>()) others.insert(n->buffer);
    });
    std::erase_if(found, [&](BufferId id) {
      const Buffer& b = program_.buffer(id);
      const bool viewed =
          b.is_view() || std::ranges::any_of(program_.buffers, [&](const Buffer& x) { return x.root == id; });
      return viewed || b.space == Space::Global || b.type != bf16 || others.contains(id);
    });
    return found;
  }
  void gemm(const Gemm& n, const SourceLocation& at) {
    const GemmSpec spec = spec_of(n);
    std::string next;
    if (n.next.present()) {
      uses_memory_ = true;
      const std::string first = text(n.next.first), second = text(n.next.second);
      next = fmt::format(", {{(const char*){}, (int64_t)({} - {}), {}, 0}}", first, second, first, n.next.bytes);
    }
    if (auto reason = gemm_unsupported(spec.a, spec.b, spec.c))
      fail(Code::CpuGemmTypes, at, *reason, passes::kUseInterpreter);
    const GemmText g = gemm_text(spec);
    // Of packed tiles and of the block's own it is one product.
    const bool is_told = std::ranges::any_of(gemm_reports_, [&](const GemmReport& r) {
      const SourceLocation& told = r.location;
      return told.line == at.line && told.column == at.column && told.file == at.file && r.k == spec.k;
    });
    if (!is_told)
      gemm_reports_.push_back({at, spec.m, spec.n, spec.k, g.kernel, layout_name(spec.a_layout),
                               layout_name(spec.b_layout), layout_name(spec.c_layout), g.packs_a, g.packs_b,
                               g.updates_elements});
    pieces_.insert(g.pieces.begin(), g.pieces.end());
    if (gemm_names_.insert(g.name).second) gemms_.push_back(g.definition);
    // Code that takes turns with other code does not keep its tiles meanwhile.
    const char* here = g.tiles && takes_turns_ ? "tw_use_tiles(), " : "";
    line(fmt::format("{}{}({}, {}, {}{});", here, g.name, start(n.a), start(n.b), start(n.c), next));
  }

  static Expr wide(int64_t value) { return ir::constant(i64, value); }

  void stream(const Stream& n) {
    uses_stream_ = true;
    const Expr size = wide(program_.buffer(n.to.buffer).type.storage_bits() / 8);
    const std::string place = element(n.to.buffer, n.to.min), row = pointer(n.from.buffer), large = text(n.large);
    const std::string done = text(mul(n.done, size));
    if (n.rest)
      return line(fmt::format("tw_stream_rest((char*)&{}, {}, (const char*){}, {}, {});", place, done, row,
                              text(mul(n.rest, size)), large));
    line(fmt::format("tw_stream((char*)&{}, {}, (char*){}, {}, {});", place, done, row,
                     text(mul(n.to.extent.back(), size)), large));
  }

  void prefetch(const Prefetch& n) {
    uses_memory_ = true;
    line(fmt::format("tw_prefetch((const char*)({}) + {}, {}, {:d});", text(n.address), text(n.offset),
                     text(wide(n.bytes)), n.nearest));
  }

  // Elements of memory from the first of a matrix to the one that many further in the dimension.
  Expr distance(const Element& first, int64_t dimension, int64_t step) const {
    std::vector<Expr> there = first.indices;
    Expr& index = there[static_cast<size_t>(dimension)];
    index = ir::add(index, ir::constant(index->type, step));
    return sub(offset(first.buffer, there), offset(first.buffer, first.indices));
  }
  void transpose(const Transpose& n) {
    uses_stream_ = uses_transpose_ = true;
    auto place = [&](const Element& e) { return element(e.buffer, e.indices); };
    auto step = [&](const Matrix& m) {
      check_internal(constant_int(distance(m.first, m.along, m.along_step)) == n.unit,
                     "elements that are no neighbours");
      return text(ir::binary(BinaryOp::FloorDiv, distance(m.first, m.down, m.down_step), wide(n.unit)));
    };
    const std::string type = fmt::format("uint{}_t", program_.buffer(n.to.first.buffer).type.storage_bits() * n.unit);
    const std::string next = n.next.valid() ? "&" + place(n.next) : "0";
    line(fmt::format("tw_transpose(({0}*)&{1}, {2}, (const {0}*)&{3}, {4}, {5}, {6}, {7}, (const {0}*){8});", type,
                     place(n.to.first), step(n.to), place(n.from.first), step(n.from), text(wide(n.rows)),
                     text(wide(n.columns)), text(n.large), next));
  }

  // ---- reductions
  bool target_loop(const For& n) override {
    if (n.lanes > 0) lane_loop(n);
    return n.lanes > 0;
  }
  Expr lane(BufferId id, int64_t lane) const { return ir::load(id, {wide(lane)}, program_.buffer(id).type); }
  void fold(const Fold& n) {
    uses_fold_ = true;
    joined(fmt::format("tw_fold<{}>({}", n.half, pointer(n.lanes)),
           vector_text(n.value, lane(n.lanes, 0), lane(n.lanes, n.half)));
  }
  void row_scan(const RowScan& n) {
    uses_scan_ = true;
    auto place = [&](const Matrix& m) {
      check_internal(constant_int(distance(m.first, m.along, m.along_step)) == 1, "elements that are no neighbours");
      return fmt::format("&{}, {}", element(m.first.buffer, m.first.indices),
                         constant_int(distance(m.first, m.down, m.down_step)).value());
    };
    const Element& first = n.from.first;
    const Expr next = ir::load(first.buffer, first.indices, program_.buffer(first.buffer).type);
    joined(
        fmt::format("tw_scan<{}>({}, {}, {}, {}", n.rows, place(n.to), place(n.from), pointer(n.total), text(n.count)),
        vector_text(n.value, lane(n.total, 0), next));
  }
  void joined(const std::string& call, const std::string& join) {
    line(call + ", [](auto a, auto b) {");
    line("  typedef decltype(a) V;");
    if (join.find("(I)") != std::string::npos) line("  typedef decltype(a < b) I;");
    line(fmt::format("  return (V){};", join));
    line("});");
  }

  size_t target_statements(const Body& b, size_t at) override { return b[at].as<Role>() ? strands(b, at) : 0; }
  void target_statement(const Stmt& s) override {
    const SourceLocation& at = program_.location(s->location);
    if (const auto* n = s.as<Atomic>()) return atomic(*n);
    if (const auto* n = s.as<Print>()) return print(*n, at);
    if (const auto* n = s.as<Assert>()) return assertion(*n, at);
    if (const auto* n = s.as<Gemm>()) return gemm(*n, at);
    if (const auto* n = s.as<Arrive>())
      return overflow(fmt::format("tw_arrive({})", barrier(n->barrier)), too_many(n->barrier), at);
    if (const auto* n = s.as<Expect>()) return expect(*n, at);
    if (const auto* n = s.as<Wait>())
      return stuck(fmt::format("tw_wait_phase(call, {}, {})", barrier(n->barrier), text(n->parity)),
                   fmt::format("for a phase of barrier '{}'", program_.buffer(n->barrier.buffer).name), at);
    if (const auto* n = s.as<Sync>()) return sync(*n, at);
    if (const auto* n = s.as<Prefetch>()) return prefetch(*n);
    if (const auto* n = s.as<Stream>()) return stream(*n);
    if (const auto* n = s.as<Transpose>()) return transpose(*n);
    if (const auto* n = s.as<Fold>()) return fold(*n);
    if (const auto* n = s.as<RowScan>()) return row_scan(*n);
    check_internal(false, "the CPU text has no {}", name_of(s));
  }

  // ---- declarations
  void declare_local(BufferId id) override {
    const Buffer& b = program_.buffer(id);
    const std::string name = names_.declare(id, b.name);
    if (b.rank() == 0) return line(fmt::format("{} {};", storage_type(b.type), name));
    line(fmt::format("{} {}[{}] __attribute__((aligned(64)));", storage_type(b.type), name, storage_elements(b)));
  }
  // Tiles without padding lie on the stack while there are few: the host's compiler knows all of their uses, and their
  // addresses cost nothing, where those of thread-local memory are asked for anew in every loop.
  void declare_tiles(const std::set<BufferId>& used) {
    int64_t left = kMostStackBytes, taken = 0;
    for (BufferId id : used) {
      const Buffer& b = program_.buffer(id);
      if (b.space == Space::Barrier) declare_barriers(id);
      if (b.space != Space::Shared && b.space != Space::Fragment) continue;
      const std::string name = names_.declare(id, b.name);
      if (b.space == Space::Fragment) {
        line(fmt::format("{} {} = 0;", storage_type(b.type), name));
        continue;
      }
      const int64_t elements = std::max<int64_t>(storage_elements(b), 1);
      const int64_t bytes = elements * std::max(b.type.storage_bits(), 8) / 8;
      const bool on_stack = meets_ || (!b.tile && b.strides.empty() && bytes <= left);
      if (on_stack) left -= bytes, taken += bytes + 64;
      line(fmt::format("{}{} {}[{}] __attribute__((aligned(64)));", on_stack ? "" : "static __thread ",
                       storage_type(b.type), name, elements));
    }
    stack_bytes_.push_back(taken);
  }
  void declare_barriers(BufferId id) {
    uses_strands_ = true;
    const Buffer& b = program_.buffer(id);
    std::vector<std::string> list;
    for (int64_t i = 0; i < storage_elements(b); ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t count = at < b.arrive_counts.size() ? b.arrive_counts[at]
                            : b.arrive_counts.empty()   ? 1
                                                        : b.arrive_counts.back();
      list.push_back(fmt::format("{{{}, {}, 0, 0}}", count, count));
    }
    line(fmt::format("struct tw_barrier {}[] = {{{}}};", names_.declare(id, b.name), fmt::join(list, ", ")));
  }
  // The named barriers of the hardware, and then those of the lowering.
  void declare_meetings(const Launch& launch) {
    int64_t count = 0;
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Sync>(); n && n->scope == SyncScope::Named)
        count = std::max(count, constant_int(n->barrier).value_or(0) + 1),
        count = std::max(count, passes::kFirstMeeting);
    });
    if (count > 0) line(fmt::format("struct tw_meeting meetings[{}] = {{}};", count));
  }
  void declare_integers(const std::set<VarId>& vars) {
    int index = 0;
    auto declare = [&](VarId id) {
      const std::string from = fmt::format("call->integers[{}]", index++);
      if (!vars.contains(id)) return;
      const DType type = program_.var(id).type;
      const std::string name = names_.declare(id, program_.var(id).name);
      const std::string v = type == f64       ? bits_to(f64, "(uint64_t)" + from)
                            : type.is_float() ? bits_to(f32, "(uint32_t)" + from)
                                              : fmt::format("({}){}", c_type(type), from);
      line(fmt::format("const {} {} = {};", c_type(type), name, v));
    };
    for (VarId id : program_.symbols) declare(id);
    for (const Param& p : program_.params)
      if (!p.is_tensor()) declare(p.var);
  }
  std::string bits_to(DType type, const std::string& b) { return value_of_bits(type, b); }

  void declare_globals(const std::set<BufferId>& used) {
    int index = 0;
    auto declare = [&](BufferId id) {
      const int at = index++;
      if (!used.contains(id)) return;
      const Buffer& b = program_.buffer(id);
      const std::string name = names_.declare(id, b.name);
      line(fmt::format("{0}* const {1} = ({0}*)call->buffers[{2}];", storage_type(b.type), name, at));
    };
    for (const Param& p : program_.params)
      if (p.is_tensor()) declare(p.buffer);
    for (uint32_t i = 0; i < program_.buffers.size(); ++i)
      if (program_.buffers[i].workspace) declare({i});
  }

  // ---- functions
  std::string function_of(const Launch& launch) const {
    std::string name = "tw_";
    for (char c : launch.name.empty() ? program_.name : launch.name)
      name +=
          std::isalnum(static_cast<unsigned char>(c)) ? std::string(1, c == name.back() && c == '_' ? 'u' : c) : "_";
    return fmt::format("{}_{}", name, &launch - program_.launches.data());
  }
  bool may_fail() const {
    bool found = false;
    for (const Launch& l : program_.launches)
      walk(l.body, [&](const Stmt& s) {
        found = found || s.as<Assert>() || s.as<Arrive>() || s.as<Expect>() || s.as<Wait>() || s.as<Sync>();
      });
    return found;
  }
  bool meets(const Launch& launch) const {
    return joins_grid(launch) || analysis::blocks_that_wait(program_, launch) > 1;
  }
  static bool joins_grid(const Launch& launch) {
    bool found = false;
    walk(launch.body, [&](const Stmt& s) {
      const auto* n = s.as<Sync>();
      found = found || (n && n->scope == SyncScope::Grid);
    });
    return found;
  }
  static bool streams(const Launch& launch) {
    bool found = false;
    walk(launch.body, [&](const Stmt& s) { found = found || s.as<Stream>() || s.as<Transpose>(); });
    return found;
  }
  void block_function(const Launch& launch) {
    const For& grid = *launch.body.front().as<For>();
    launch_ = &launch, strand_ = {0, launch.thread_count(), {}};
    flushed_ = flushed_tiles(launch);
    note_values(launch);
    meets_ = meets(launch), takes_turns_ = meets_ || passes::has_waits(launch);
    names_.open();
    const std::string block = names_.declare(grid.var, program_.var(grid.var).name);
    open(fmt::format("static void {}(const struct tw_call* call, int64_t {}{}) {{", function_of(launch), block,
                     may_fail() ? ", int* failed" : ""));
    std::set<BufferId> used;
    for (BufferId id : buffers_needed(grid.body, program_)) used.insert(program_.root(id));
    declare_integers(needed_vars(grid.body));
    declare_globals(used);
    declare_tiles(used);
    declare_meetings(launch);
    if (!takes_turns_ && has_tiles(launch)) line("const tw_use_tiles tiles;");
    body(grid.body);
    close();
    names_.close();
    out_ += "\n";
  }
  // All blocks are under way at a time, or as many as a device holds.
  void run_meeting_blocks(const Launch& launch, const For& grid, const std::string& run) {
    int64_t strands = 0;
    walk(launch.body, [&](const Stmt& s) { strands += s.as<Role>() != nullptr; });
    const bool all = joins_grid(launch);
    const int64_t most = analysis::blocks_that_wait(program_, launch);
    line(fmt::format("const int64_t blocks = {};", text(grid.extent)));
    if (all)
      line("const int64_t first = 0, count = blocks;");
    else
      open(fmt::format("for (int64_t first = 0, count; first < blocks; first += {}) {{", most));
    if (!all) line(fmt::format("count = blocks - first < {} ? blocks - first : {};", most, most));
    open("auto code = [&](int64_t at) {");
    line("const int64_t block = first + at;");
    line(run);
    close("};");
    open(fmt::format("call->run_blocks(call->host, call->max_threads, count, {}, {}, [](void* f, long long at) {{",
                     std::max<int64_t>(strands, 1),
                     stack_bytes_[static_cast<size_t>(&launch - program_.launches.data())]));
    line("(*(decltype(code)*)f)(at);");
    close("}, &code);");
    if (!all) close();
  }
  // Workspaces of tiles, which no plan of a call knows: the kernel has memory for them.
  std::vector<BufferId> rooms() const {
    std::vector<BufferId> out;
    for (uint32_t i = 0; i < program_.buffers.size(); ++i)
      if (program_.buffers[i].workspace && program_.buffers[i].tile) out.push_back({i});
    return out;
  }
  // Of a call: its tensors, and the workspaces that its plan knows.
  size_t given_buffers() const {
    size_t count = 0;
    for (const Param& p : program_.params) count += p.is_tensor();
    for (const Buffer& b : program_.buffers) count += b.workspace && !b.tile;
    return count;
  }
  void borrow_rooms() {
    const size_t given = given_buffers();
    const std::vector<BufferId> rooms = this->rooms();
    line(fmt::format("void* buffers[{}];", given + rooms.size()));
    if (given > 0) line(fmt::format("for (int i = 0; i < {}; ++i) buffers[i] = call->buffers[i];", given));
    std::set<VarId> vars;
    for (BufferId id : rooms)
      for (VarId v : used_vars(program_.buffer(id).shape[0])) vars.insert(v);
    declare_integers(vars);
    for (size_t k = 0; k < rooms.size(); ++k) {
      const Buffer& b = program_.buffer(rooms[k]);
      int64_t bits = b.type.storage_bits();
      for (size_t d = 1; d < b.rank(); ++d) bits *= *constant_int(b.shape[d]);
      line(fmt::format("buffers[{}] = tw_borrow(&tw_kept[{}], {});", given + k, k,
                       text(ir::mul(cast(b.shape[0], i64), wide(bits / 8)))));
    }
    line("struct tw_call with_rooms = *call;");
    line("with_rooms.buffers = buffers, call = &with_rooms;");
  }
  void return_rooms() {
    const size_t count = rooms().size(), given = given_buffers();
    for (size_t k = 0; k < count; ++k) line(fmt::format("tw_return(&tw_kept[{}], (char*)buffers[{}]);", k, given + k));
  }
  void entry() {
    open("extern \"C\" __attribute__((visibility(\"default\"))) int tw_entry(const struct tw_call* call) {");
    const bool checks = may_fail();
    if (checks) line("int failed_here = 0, *const failed = &failed_here;");
    if (!rooms().empty()) borrow_rooms();
    for (const Launch& launch : program_.launches) {
      const For& grid = *launch.body.front().as<For>();
      open("{");
      declare_integers(used_vars(grid.extent));
      const std::string run = fmt::format("{}(call, block{});{}", function_of(launch), checks ? ", failed" : "",
                                          streams(launch) ? " tw_end_streams();" : "");
      if (meets(launch)) {
        run_meeting_blocks(launch, grid, run);
      } else if (constant_int(grid.extent) == 1) {
        line("const int64_t block = 0;");
        line(run);
      } else {
        line(fmt::format("const int64_t blocks = {};", text(grid.extent)));
        const std::string turns = fmt::format("for (int64_t block = 0; block < blocks; ++block) {}",
                                              streams(launch) ? "{ " + run + " }" : run);
        // A region of threads costs microseconds, even one of a single thread.
        open(fmt::format("if (call->max_threads == 1 || blocks <= {}) {{", brief_blocks(launch)));
        line(turns);
        reopen("} else {");
        // Blocks that follow one another go to one thread, for they read neighbouring memory; but few at a time, for
        // some take longer.
        line("const int64_t run = blocks / (64 * call->max_threads) + 1;");
        line("#pragma omp parallel for schedule(dynamic, run) num_threads(call->max_threads)");
        line(turns);
        close();
      }
      close();
    }
    return_rooms();
    line(checks ? "return failed_here;" : "return 0;");
    close();
  }

  const target::CpuFeatures& features_;
  bool uses_memory_ = false, uses_stream_ = false, uses_transpose_ = false, uses_strands_ = false, waits_ = false;
  const Launch* launch_ = nullptr;    // that is being written
  Role strand_;                       // of it
  bool meets_ = false;                // its blocks meet
  bool takes_turns_ = false;          // its code may wait for other code of it
  std::vector<int64_t> stack_bytes_;  // of the tiles of each launch
  bool uses_fold_ = false, uses_scan_ = false;
  std::vector<std::string> gemms_;
  std::set<std::string> gemm_names_;
  std::vector<GemmReport> gemm_reports_;
};

}  // namespace

namespace {

target::OperandTile tile_of(const OperandLayout& layout) {
  if (layout.form == OperandLayout::Form::Strided) return {layout.stored, layout.row_stride, 0, 0, 1};
  return {layout.stored, 0, layout.axis, layout.width, layout.interleave};
}

target::GemmTiles preferred_tiles(const target::GemmShape& shape, bool along_rows, const target::CpuFeatures& f) {
  GemmSpec spec;
  spec.m = shape.m, spec.n = shape.n, spec.k = shape.k, spec.a = shape.a, spec.b = shape.b, spec.c = shape.c;
  spec.transpose_a = shape.transpose_a, spec.transpose_b = shape.transpose_b;
  spec.features = vector_features(f);
  if (gemm_unsupported(spec.a, spec.b, spec.c)) return {{spec.a}, {spec.b}, {spec.c}};
  const PreferredLayouts p = preferred_layouts(spec, along_rows ? VectorAxis::M : VectorAxis::N);
  return {tile_of(p.a), tile_of(p.b), tile_of(p.c)};
}

}  // namespace

target::CpuTarget cpu_target(const target::CpuFeatures& features) { return {features, preferred_tiles}; }

CpuKernelSource emit_cpu(const LoopProgram& program, const target::CpuFeatures& features) {
  return CpuText(program, features).write();
}

}  // namespace tilewright::codegen
