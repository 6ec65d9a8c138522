#include "codegen/cuda_async.h"

#include "analysis/panels.h"
#include "analysis/wgmma_blocks.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/narrow.h"
#include "passes/threads/wrap_sums.h"
#include "support/diagnostic.h"
#include "target/wgmma.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

constexpr int64_t kDescriptorUnit = 16;   // bytes: what addresses in a matrix descriptor count
constexpr size_t kDescriptorShifts = 12;  // that leave nothing of a number of bytes of shared memory
constexpr int kOperandsPerLine = 12;

// e / divisor where every term is a multiple of it; otherwise by division. e >= 0.
Expr divided(const Expr& e, int64_t divisor) {
  if (auto c = constant_int(e); c && *c % divisor == 0) return constant(e->type, *c / divisor);
  if (const auto* s = e.as<Sum>()) {
    bool exact = s->constant % divisor == 0;
    for (const Term& t : s->terms) exact = exact && t.coefficient % divisor == 0;
    if (exact) {
      std::vector<Term> terms = s->terms;
      for (Term& t : terms) t.coefficient /= divisor;
      return sum(std::move(terms), s->constant / divisor, e->type);
    }
  }
  return binary(BinaryOp::FloorDiv, e, constant(e->type, divisor));
}

// "%0, %1, ...", broken into lines of an asm string.
std::string numbers(int64_t first, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) out += i % kOperandsPerLine == 0 ? ",\"\n      \" " : ", ";
    out += fmt::format("%{}", first + i);
  }
  return out;
}

}  // namespace

std::string CudaAsync::operands(const std::vector<std::string>& list, const char* constraint) const {
  std::string out;
  for (size_t i = 0; i < list.size(); ++i)
    out += fmt::format("{}\"{}\"({})",
                       i == 0                      ? ""
                       : i % kOperandsPerLine == 0 ? ",\n        "
                                                   : ", ",
                       constraint, list[i]);
  return out;
}

std::string CudaAsync::made_helpers() const {
  std::string out;
  for (const auto& [name, text] : made_) out += text;
  return out;
}

// ---- TMA

// The dimensions of a map: the hardware need not walk those of one element, of which the box takes that one and no
// more.
std::vector<size_t> CudaAsync::walked_dims(const Region& global) const {
  const std::vector<Expr>& shape = program_.buffer(global.buffer).shape;
  const auto is_one = [&](size_t d) {
    return constant_int(shape[d]) == 1 && constant_int(global.min[d]) == 0 && constant_int(global.extent[d]) == 1;
  };
  std::vector<size_t> out;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d + 2 >= shape.size() || !is_one(d)) out.push_back(d);
  if (const size_t n = out.size(); n > 2 && is_one(out[n - 2])) out.erase(out.end() - 2);
  return out;
}

std::string CudaAsync::map_of(const Region& global, const Buffer& shared) {
  CudaTensorMap map;
  map.buffer = global.buffer, map.dims = walked_dims(global);
  for (size_t d : map.dims) map.box.push_back(constant_int(global.extent[d]).value_or(1));
  int64_t in_box = 1, copied = 1;
  for (int64_t n : map.box) in_box *= n;
  for (const Expr& n : global.extent) copied *= constant_int(n).value_or(1);
  check_internal(in_box == copied, "a box of {} elements for a copy of {}", in_box, copied);
  map.swizzle_bytes = shared.memory && shared.memory->swizzle().bits > 0 ? shared.memory->swizzle().span() : 0;
  auto found = std::find(maps_.begin(), maps_.end(), map);
  const int index = static_cast<int>(found - maps_.begin());
  if (found == maps_.end()) maps_.push_back(map);
  auto [name, added] = kernel_maps_.try_emplace(index);
  if (added) {
    // A parameter: other scopes must not use its name either.
    const auto taken = [&](const std::string& wish) {
      return std::any_of(kernel_maps_.begin(), kernel_maps_.end(), [&](const auto& m) { return m.second == wish; });
    };
    std::string wish = program_.buffer(global.buffer).name + "_map";
    while (taken(wish)) wish += "_" + std::to_string(index);
    name->second = names_.fresh(wish);
  }
  helper("tw_tensor_map");
  return name->second;
}

// Once for each name: a function of the place in shared memory, the map, what else the instruction takes, and the
// coordinates.
void CudaAsync::make_tma(const std::string& name, const std::string& head, const std::string& instruction,
                         const std::string& order, const std::vector<std::string>& inputs, size_t rank) {
  if (made_.contains(name)) return;
  std::string parameters, coordinates, operands;
  for (size_t i = 0; i < rank; ++i) {
    parameters += fmt::format(", int32_t x{}", i);
    coordinates += fmt::format("{}%{}", i > 0 ? ", " : "", inputs.size() + i);
    operands += fmt::format(", \"r\"(x{})", i);
  }
  made_[name] = fmt::format(
      "__device__ __forceinline__ void {}({}{}) {{\n  asm volatile(\"{} {};\"\n"
      "               ::{}{} : \"memory\");\n}}\n",
      name, head, parameters, instruction, fmt::format(fmt::runtime(order), coordinates), fmt::join(inputs, ", "),
      operands);
}

// Where a box begins, in 32 bits. What is far outside stays there: TMA takes 2^32 for 0.
Expr CudaAsync::coordinate(const Region& global, size_t d) const {
  if (!may_be_anything(global.min[d])) return narrowed(global.min[d], true);
  const Expr begin = widen(global.min[d]);
  if (const auto same = passes::in_32_bits(begin, values_)) return *same;
  constexpr int64_t kTurn = int64_t{1} << 32;
  const passes::Interval range = values_.of(begin);
  const int64_t size = values_.of(program_.buffer(global.buffer).shape[d]).high;
  const int64_t box = constant_int(global.extent[d]).value_or(analysis::kMaxBox);
  const Expr exact = passes::wrapped(begin, values_);
  if (range.low >= size - kTurn && range.high <= kTurn - box) return ir::cast(exact, i32);
  const Expr low = ir::binary(BinaryOp::Max, exact, ir::constant(i64, int64_t{INT32_MIN}));
  return ir::cast(ir::binary(BinaryOp::Min, low, ir::constant(i64, int64_t{INT32_MAX})), i32);
}

void CudaAsync::tma(const Copy& n) {
  const bool hint = n.completion.queue == Queue::Prefetch, loads = hint || n.completion.barrier.valid();
  const Region &global = loads ? n.from : n.to, &shared = loads ? n.to : n.from;
  if (const int64_t run = constant_int(global.extent.back()).value_or(0); loads && !hint && run > analysis::kMaxBox)
    return line(fmt::format(
        "{}({}, {}, {}, {});", helper("tw_bulk_load"), place(shared.buffer, offset(shared.buffer, shared.min)),
        pointer_to(global.buffer, global.min), run * program_.buffer(global.buffer).type.storage_bits() / 8,
        pointer_to(n.completion.barrier.buffer, n.completion.barrier.indices)));
  const std::string map = "&" + map_of(global, program_.buffer(shared.buffer));
  const std::vector<size_t> dims = walked_dims(global);
  const size_t rank = dims.size();
  std::vector<std::string> given;
  // The box begins with eight rows, where the swizzle moves nothing.
  if (!hint) given.push_back(place(shared.buffer, offset(shared.buffer, shared.min)));
  given.push_back(map);
  const std::string to = fmt::format("\"r\"({}(shared))", helper("tw_shared_address")), by = "\"l\"(map)";
  std::string name, head = "const tw_tensor_map* map";
  if (hint) {
    name = fmt::format("tw_tma_prefetch_{}d", rank);
    make_tma(name, head, fmt::format("cp.async.bulk.prefetch.tensor.{}d.L2.global", rank), "[%0, {{{0}}}]", {by}, rank);
  } else if (loads) {
    const bool several = n.multicast != 0;
    name = fmt::format("tw_tma_load{}_{}d", several ? "_multicast" : "", rank);
    given.push_back(pointer_to(n.completion.barrier.buffer, n.completion.barrier.indices));
    if (several) given.push_back(std::to_string(n.multicast));
    std::vector<std::string> inputs{to, by, "\"r\"(tw_shared_address(full))"};
    if (several) inputs.push_back("\"h\"(blocks)");
    make_tma(name, fmt::format("void* shared, {}, uint64_t* full{}", head, several ? ", uint16_t blocks" : ""),
             fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{}", rank,
                         several ? ".multicast::cluster" : ""),
             several ? "[%0], [%1, {{{0}}}], [%2], %3" : "[%0], [%1, {{{0}}}], [%2]", inputs, rank);
  } else {
    const bool stores = n.combine == Combine::None;
    const std::string how = stores ? "" : std::string(name_of(n.combine));
    name = fmt::format("tw_tma_{}_{}d", stores ? "store" : how, rank);
    make_tma(name, "const void* shared, " + head,
             fmt::format("cp{}.async.bulk.tensor.{}d.global.shared::cta{}.bulk_group", stores ? "" : ".reduce", rank,
                         stores ? "" : "." + how),
             "[%1, {{{0}}}], [%0]", {to, by}, rank);
  }
  for (size_t i = rank; i-- > 0;) given.push_back(text(coordinate(global, dims[i])));
  line(fmt::format("{}({});", name, fmt::join(given, ", ")));
}

void CudaAsync::store_to_peer(const Copy& n) {
  const Buffer& to = program_.buffer(n.to.buffer);
  const BufferId root = program_.root(n.to.buffer);
  const std::string type = storage_type(to.type), place = text(element_offset(n.to.buffer, n.to.min)),
                    word = to.type.storage_bits() == 32 ? "uint32_t" : "uint64_t",
                    value = fmt::format("*(const {}*){}", word, pointer_to(n.from.buffer, n.from.min));
  line(fmt::format("{}(&(({}*){})[{}], {}, {}, {});", helper("tw_store_to_peer"), type, pointer(root), place,
                   pointer_to(n.completion.barrier.buffer, n.completion.barrier.indices), text(narrowed(to.cta)),
                   value));
}

// ---- wgmma

std::string CudaAsync::descriptor(const Region& r, bool transposed) {
  const Buffer &b = program_.buffer(r.buffer), &root = program_.buffer(program_.root(r.buffer));
  check_internal(b.memory.has_value(), "wgmma reads '{}', which has no layout", b.name);
  check_internal(root.place >= 0, "wgmma reads '{}', which has no place", b.name);
  const auto d = target::matrix_descriptor(*b.memory, transposed);
  check_internal(d.has_value(), "wgmma cannot read '{}'", b.name);
  const Expr bytes =
      ir::add(mul(offset(r.buffer, r.min), ir::constant(i64, int64_t{b.type.bits / 8})), ir::constant(i64, root.place));
  std::vector<Term> shared;
  if (const auto* s = bytes.as<Sum>())
    for (const Term& t : s->terms) {
      const bool moves = std::ranges::any_of(used_vars(t.value), [&](VarId v) { return unrolled_.contains(v); });
      if (!moves && t.coefficient % kDescriptorUnit == 0) shared.push_back(t);
    }
  const Expr in_turns = shared.empty() ? Expr{} : ir::sum(std::move(shared), 0, i64);
  const Expr own = in_turns ? sub(bytes, in_turns) : bytes;
  const auto units = [&](const Expr& e) { return value(narrowed(divided(e, kDescriptorUnit))); };
  const std::string base = in_turns ? " + " + in(units(in_turns), Binds::Sum) : "";
  return fmt::format("{}<0x{:x}ull, {}>(tw_matrices{}, {})", helper("tw_matrix"), d->bits(),
                     31 - descriptors_++ % kDescriptorShifts, base, units(own).text);
}

// The instruction as a function of its registers, descriptors and whether it accumulates.
void CudaAsync::make_wgmma(const std::string& name, const Wgmma& n) {
  const auto shape = target::wgmma_named(n.instruction);
  check_internal(shape.has_value(), "there is no wgmma '{}'", n.instruction);
  const bool words = program_.buffer(n.a.buffer).space == Space::Local, whole = shape->row->c.is_int();
  const bool sparse = shape->row->sparse;
  const int64_t count = shape->n / 2, a = count, b = words ? count + 4 : count + 1;
  std::vector<std::string> registers;
  for (int64_t i = 0; i < count; ++i) registers.push_back(fmt::format("c[{}]", i));
  std::string tail;  // PTX: the scales of a and b, then what is transposed
  if (!whole) tail += ", 1, 1";
  if (shape->row->transposes)
    tail += words ? fmt::format(", {:d}", n.transpose_b) : fmt::format(", {:d}, {:d}", n.transpose_a, n.transpose_b);
  const std::string a_text = words ? fmt::format("{{{}}}", numbers(a, 4)) : fmt::format("%{}", a);
  std::string& out = made_[name];
  out = fmt::format("__device__ __forceinline__ void {}({}* c, {}, uint64_t b, {}bool accumulate) {{\n", name,
                    whole ? "int32_t" : "float", words ? "const uint32_t* a" : "uint64_t a",
                    sparse ? "uint32_t metadata, " : "");
  out += fmt::format("  asm volatile(\n      \"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{}, 0;\\n\"\n", b + 1);
  const std::string of_b = sparse ? fmt::format("%{}, %{}, 0", b, b + 2) : fmt::format("%{}", b);
  out += fmt::format("      \"wgmma.mma_async.{}sync.aligned.{}\"\n      \" {{{}}},\"\n      \" {}, {}, p{};\\n}}\"\n",
                     sparse ? "sp." : "", n.instruction, numbers(0, count), a_text, of_b, tail);
  out += fmt::format("      : {}\n", operands(registers, whole ? "+r" : "+f"));
  out += fmt::format("      : {}, \"l\"(b), \"r\"((int32_t)accumulate){});\n}}\n\n",
                     words ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)",
                     sparse ? ", \"r\"(metadata)" : "");
}

void CudaAsync::wgmma(const Wgmma& n) {
  const bool words = program_.buffer(n.a.buffer).space == Space::Local;
  std::string name = "tw_wgmma_" + n.instruction;
  std::replace(name.begin(), name.end(), '.', '_');
  if (words) name += "_r";
  if (n.transpose_a) name += "_ta";
  if (n.transpose_b) name += "_tb";
  if (!made_.contains(name)) make_wgmma(name, n);
  pieces_.insert("types");
  const std::string a = words ? pointer_to(n.a.buffer, n.a.min) : descriptor(n.a, n.transpose_a),
                    b = descriptor(n.b, n.transpose_b);
  const std::string metadata = n.metadata.valid() ? element(n.metadata.buffer, n.metadata.min) + ", " : "";
  line(fmt::format("{}({}, {}, {}, {}{});", name, pointer_to(n.c.buffer, n.c.min), a, b, metadata,
                   text(logical_not(n.clear))));
}

void CudaAsync::hold(const std::vector<Region>& registers) {
  for (const Region& r : registers) {
    const Buffer& b = program_.buffer(r.buffer);
    const std::string array = b.is_view() ? fmt::format("*({}(*)[{}]){}", storage_type(b.type),
                                                        constant_int(b.shape[0]).value_or(0), names_.of(b.root))
                                          : pointer(r.buffer);
    line(fmt::format("{}({});", helper("tw_hold"), array));
  }
}

// ---- order

void CudaAsync::begin_launch(const Launch& launch) {
  split_ = analysis::wgmma_fences_to_split(launch.body, program_), fences_ = 0;
  first_arrival_ = nullptr;
  descriptors_ = 0, unrolled_.clear();
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<For>(); n && n->kind == LoopKind::Unroll) unrolled_.insert(n->var);
  });
  for (const Stmt& s : launch.body) {
    if (const auto* n = s.as<Sync>(); n && n->scope == SyncScope::Cluster) {
      if (n->arrive_only) first_arrival_ = &*s;
      break;
    }
    const std::set<BufferId> changed = ir::changed_roots({s}, program_);
    const bool own = std::ranges::all_of(changed, [&](BufferId id) {
      return program_.buffer(id).space == Space::Local || program_.buffer(id).space == Space::Barrier;
    });
    if (!own) break;
  }
}

// One after the other, and one fence for all.
size_t CudaAsync::init_barriers(const Body& body, size_t first) {
  size_t at = first;
  for (; at < body.size(); ++at) {
    const auto* n = body[at].as<InitBarriers>();
    if (!n) break;
    const Buffer& b = program_.buffer(n->barriers);
    for (size_t i = 0; i < b.arrive_counts.size(); ++i)
      line(fmt::format("{}({}, {});", helper("tw_init_barrier"),
                       pointer_to(n->barriers, {ir::constant(static_cast<int64_t>(i))}), b.arrive_counts[i]));
  }
  if (at > first) line(helper("tw_fence_barrier_init") + "();");
  return at - first;
}

// Several that follow each other behind one fence: it takes as long as all that is on its way to memory.
size_t CudaAsync::arrivals_at_peers(const Body& body, size_t first) {
  size_t at = first;
  while (at < body.size() && body[at].as<Arrive>() && body[at].as<Arrive>()->cta) ++at;
  if (at - first < 2 || !writes_peers()) return 0;
  line(helper("tw_fence_cluster") + "();");
  for (size_t i = first; i < at; ++i) {
    const auto* n = body[i].as<Arrive>();
    line(fmt::format("{}({}, {});", helper("tw_arrive_behind_fence"), pointer_to(n->barrier.buffer, n->barrier.indices),
                     text(n->cta)));
  }
  return at - first;
}

bool CudaAsync::writes_peers() const {
  return std::any_of(program_.buffers.begin(), program_.buffers.end(), [](const Buffer& b) { return !!b.cta; });
}

bool CudaAsync::tells_of_writes(BufferId barriers) const {
  bool found = false;
  for (const Launch& launch : program_.launches)
    if (writes_peers() && program_.buffer(barriers).launch == &launch - program_.launches.data())
      walk(launch.body, [&](const Stmt& s) {
        const auto* n = s.as<Arrive>();
        found = found || (n && n->cta && n->barrier.buffer == barriers);
      });
  return found;
}

bool CudaAsync::async_statement(const Stmt& s) {
  auto barrier = [&](const Element& e) { return pointer_to(e.buffer, e.indices); };
  if (const auto* n = s.as<Copy>()) {
    const Queue queue = n->completion.queue;
    if (queue == Queue::StAsync) return store_to_peer(*n), true;
    const bool bulk = n->completion.barrier.valid() || queue == Queue::BulkStore || queue == Queue::Prefetch;
    if (bulk) tma(*n);
    return bulk;
  }
  if (const auto* n = s.as<Wgmma>()) return wgmma(*n), true;
  if (const auto* n = s.as<Elect>()) {
    open(fmt::format("if ({}()) {{", helper("tw_elect")));
    body(n->body);
    close();
    return true;
  }
  if (const auto* n = s.as<Arrive>(); n && n->cta)
    return line(fmt::format("{}({}, {});", helper(writes_peers() ? "tw_arrive_written" : "tw_arrive_at"),
                            barrier(n->barrier), text(n->cta))),
           true;
  if (const auto* n = s.as<Arrive>()) {
    const char* name = n->queue == Queue::CpAsync ? "tw_arrive_copied" : "tw_arrive";
    return line(fmt::format("{}({});", helper(name), barrier(n->barrier))), true;
  }
  if (const auto* n = s.as<Sync>(); n && n->scope == SyncScope::Cluster) {
    const bool whole = !n->arrive_only && !n->wait_only;
    return line(helper(whole                   ? "tw_sync_cluster"
                       : &*s == first_arrival_ ? "tw_arrive_cluster_first"
                       : n->arrive_only        ? "tw_arrive_cluster"
                                               : "tw_wait_cluster") +
                "();"),
           true;
  }
  if (const auto* n = s.as<Expect>(); n && n->cta)
    return line(fmt::format("{}({}, {}, {});", helper("tw_arrive_expect_at"), barrier(n->barrier), text(n->cta),
                            text(n->bytes))),
           true;
  if (const auto* n = s.as<Expect>())
    return line(fmt::format("{}({}, {});", helper(n->arrive ? "tw_arrive_expect" : "tw_expect"), barrier(n->barrier),
                            text(n->bytes))),
           true;
  if (const auto* n = s.as<Wait>())
    return line(fmt::format("{}({}, {});", helper(tells_of_writes(n->barrier.buffer) ? "tw_wait_written" : "tw_wait"),
                            barrier(n->barrier), text(n->parity))),
           true;
  if (const auto* n = s.as<Fence>(); n && n->proxy == FenceProxy::Registers) return hold(n->registers), true;
  if (const auto* n = s.as<Fence>(); n && n->proxy == FenceProxy::Wgmma) {
    if (split_.at(fences_++)) line(helper("tw_branch") + "();");
    return hold(n->registers), line(helper("tw_wgmma_fence") + "();"), true;
  }
  if (const auto* n = s.as<Commit>(); n && n->queue != Queue::CpAsync)
    return line(helper(n->queue == Queue::Wgmma ? "tw_wgmma_commit" : "tw_bulk_commit") + "();"), true;
  if (const auto* n = s.as<Drain>(); n && n->queue != Queue::CpAsync) {
    const char* name = n->queue == Queue::Wgmma ? "tw_wgmma_wait"
                       : n->written             ? "tw_bulk_wait_written"
                                                : "tw_bulk_wait";
    line(fmt::format("{}<{}>();", helper(name), n->pending));
    return hold(n->registers), true;
  }
  return false;
}

}  // namespace tilewright::codegen
