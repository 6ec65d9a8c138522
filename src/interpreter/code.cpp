// From IR to the tree that runs.
#include "interpreter/code.h"

#include "analysis/collectives.h"
#include "analysis/waiting_blocks.h"
#include "interpreter/arithmetic.h"
#include "ir/cluster.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/widen.h"
#include "support/diagnostic.h"

namespace tilewright::interpreter {

using namespace ir;

ProgramCode bind(const ProgramTables& program, const Binding& binding) {
  ProgramCode code;
  code.program = &program, code.binding = &binding;
  code.data.resize(program.buffers.size());
  code.constants.resize(program.vars.size());
  code.known.resize(program.vars.size());
  for (const BoundBuffer& b : binding.buffers) code.data[b.buffer.index] = b.data;
  for (const auto& [var, bits] : binding.values) {
    LaneKind kind = lane_kind(program.var(var).type);
    bool is_int = kind == LaneKind::Int64;
    code.constants[var.index] =
        is_int ? uniform_int(static_cast<int64_t>(bits)) : uniform_float(kind, std::bit_cast<double>(bits));
    code.known[var.index] = true;
  }
  return code;
}

namespace {

bool is_division(BinaryOp op) {
  return op == BinaryOp::FloorDiv || op == BinaryOp::FloorMod || op == BinaryOp::TruncDiv || op == BinaryOp::TruncMod;
}

class Preparer {
 public:
  // Without uniformity: thread code.
  Preparer(const ProgramCode& program, const Launch& launch, const analysis::Uniformity* uniformity)
      : program_(program), source_(*program.program), launch_(launch), uniformity_(uniformity) {}
  std::unique_ptr<LaunchCode> prepare();

 private:
  const Node* node(const Expr& e);
  const Node* keep(Node n);
  Node translate(const Expr& e);
  Node translate_binary(const Binary& op);
  std::optional<Value> fold(const Node& n);
  std::vector<const Node*> list(const std::vector<Expr>& exprs);
  int64_t number(const Expr& e, const char* what);

  void buffers();
  void shape_of(BufferCode& code, const Buffer& buffer);
  void check_view(const BufferCode& code);
  ElementCode element(const Element& e);
  RegionCode region(const Region& r);
  // Of indices and extents.
  const Node* place(const Expr& e);
  std::vector<const Node*> places(const std::vector<Expr>& exprs);
  Steps steps(const Body& body);
  Step step(const Stmt& stmt);
  void fill(Step& step, const Stmt& stmt);
  template <class Op>
  void fill_fields(Step& step, const Op& op);
  void map(Step& step, const Stmt& stmt, const Map& op);
  void find_distinct(Step& map_step, const Map& op, Steps& steps);
  void find_watched(Step& map_step, const Map& op);
  bool is_distinct(const Element& to, const Map& op) const;
  bool is_local(BufferId id) const { return id.valid() && source_.buffer(source_.root(id)).space == Space::Local; }
  analysis::ThreadSet block() const { return {{}, {code_->threads[0], code_->threads[1], code_->threads[2]}}; }
  void split_block();
  bool waits_for_blocks() const;
  void survey();

  const ProgramCode& program_;
  const ProgramTables& source_;
  const Launch& launch_;
  const analysis::Uniformity* uniformity_;
  std::unique_ptr<LaunchCode> code_ = std::make_unique<LaunchCode>();
  std::unordered_map<const ExprNode*, const Node*> known_;
  std::vector<Expr> kept_;  // what known_ knows: another expression must not get its address
  std::unordered_map<const ExprNode*, Expr> wide_;
  Arena arena_;
};

const Node* Preparer::keep(Node n) {
  code_->nodes.push_back(std::move(n));
  return &code_->nodes.back();
}

const Node* Preparer::node(const Expr& e) {
  if (!e) return nullptr;
  auto [at, fresh] = known_.try_emplace(&*e, nullptr);
  if (!fresh) return at->second;
  kept_.push_back(e);
  Node n = translate(e);
  n.type = e->type;
  for (const Node* arg : n.args) n.faults = n.faults || arg->faults;
  if (auto value = fold(n)) {
    Node constant;
    constant.type = e->type, constant.value = *value;
    n = constant;
  }
  const Node* kept = keep(std::move(n));
  known_[&*e] = kept;
  return kept;
}

// The value of an operator whose operands are constants.
std::optional<Value> Preparer::fold(const Node& n) {
  using Op = Node::Op;
  if (n.op == Op::Const || n.op == Op::Slot || n.op == Op::Load || n.op == Op::Address) return std::nullopt;
  std::vector<Value> args;
  for (const Node* arg : n.args) {
    if (arg->op != Op::Const) {
      if (args.empty()) return std::nullopt;
      break;
    }
    args.push_back(arg->value);
  }
  if (n.op == Op::Select && !args.empty()) {
    const Node* chosen = n.args[args[0].base ? 1 : 2];
    return chosen->op == Op::Const ? std::optional(chosen->value) : std::nullopt;
  }
  if (n.op == Op::Logical && !args.empty()) {
    if ((args[0].base != 0) != (n.binary == BinaryOp::And)) return args[0];
    return args.size() == 2 ? std::optional(args[1]) : std::nullopt;
  }
  if (args.size() != n.args.size()) return std::nullopt;
  if (n.op == Op::Divide && bad_divisor(n, args[0], args[1], LaneShape{}, Mask{nullptr, 1}) >= 0) return std::nullopt;
  ArenaScope scope(arena_);
  return combine(n, args, LaneShape{}, arena_, arena_.allocate(8));
}

Node Preparer::translate_binary(const Binary& op) {
  Node n;
  n.args = {node(op.a), node(op.b)};
  n.binary = op.op;
  if (op.op == BinaryOp::And || op.op == BinaryOp::Or) {
    n.op = Node::Op::Logical;
  } else if (auto function = function_of(op.op)) {
    n.function = *function;
    n.op = is_division(op.op) ? Node::Op::Divide : Node::Op::Apply;
    n.faults = is_division(op.op) && !(n.args[1]->op == Node::Op::Const && n.args[1]->value.base > 0);
  } else {
    n.op = Node::Op::Binary;
  }
  return n;
}

Node Preparer::translate(const Expr& e) {
  Node n;
  match(e->op,
        Overloaded{
            [&](const Const& c) {
              LaneKind kind = lane_kind(e->type);
              n.value = kind == LaneKind::Int64 ? uniform_int(static_cast<int64_t>(c.bits))
                                                : uniform_float(kind, std::bit_cast<double>(c.bits));
            },
            [&](const Var& v) {
              n.op = program_.known[v.id.index] ? Node::Op::Const : Node::Op::Slot;
              n.slot = v.id.index, n.value = program_.constants[v.id.index];
            },
            [&](const Sum& s) {
              n.op = Node::Op::Sum, n.constant = s.constant;
              for (const Term& t : s.terms) {
                n.args.push_back(node(t.value));
                n.coefficients.push_back(t.coefficient);
              }
            },
            [&](const Unary& u) {
              n.op = u.op == UnaryOp::Neg ? Node::Op::Apply : u.op == UnaryOp::Not ? Node::Op::Not : Node::Op::BitNot;
              n.function = Function::Neg, n.args = {node(u.a)};
            },
            [&](const Binary& b) { n = translate_binary(b); },
            [&](const Fma& f) {
              n.op = Node::Op::Apply, n.function = Function::Fma;
              n.args = {node(f.a), node(f.b), node(f.c)};
            },
            [&](const Select& s) {
              n.op = Node::Op::Select, n.args = {node(s.condition), node(s.a), node(s.b)};
            },
            [&](const Cast& c) {
              n.op = Node::Op::Cast, n.rounding = c.rounding, n.args = {node(c.value)};
              if (c.random) n.args.push_back(node(c.random));
            },
            [&](const Bitcast& b) { n.op = Node::Op::Bitcast, n.args = {node(b.value)}; },
            [&](const Load& l) {
              n.op = Node::Op::Load, n.faults = true, n.args = places(l.indices);
              n.buffer = &code_->buffers[l.buffer.index];
            },
            [&](const Address& a) {
              n.op = Node::Op::Address, n.args = places(a.indices);
              n.buffer = &code_->buffers[a.buffer.index];
            },
            [&](const Intrinsic& i) { n.op = Node::Op::Apply, n.function = i.function, n.args = list(i.args); },
        });
  return n;
}

std::vector<const Node*> Preparer::list(const std::vector<Expr>& exprs) {
  std::vector<const Node*> nodes;
  for (const Expr& e : exprs) nodes.push_back(node(e));
  return nodes;
}

int64_t Preparer::number(const Expr& e, const char* what) {
  const Node* n = node(e);
  if (n->op != Node::Op::Const)  // all is known but for a division that cannot be
    fail(Code::BadDivision, source_.location(launch_.location), fmt::format("{} divides by zero", what));
  return n->value.base;
}

void Preparer::shape_of(BufferCode& code, const Buffer& buffer) {
  auto numbers = [&](const std::vector<Expr>& exprs, std::vector<int64_t>& values, std::vector<const Node*>& nodes) {
    bool all = true;
    for (const Expr& e : exprs) {
      nodes.push_back(place(e));
      bool constant = nodes.back()->op == Node::Op::Const;
      values.push_back(constant ? nodes.back()->value.base : 0);
      all = all && constant;
    }
    if (all) nodes.clear();
    return all;
  };
  bool known = numbers(buffer.shape, code.shape, code.shape_nodes);
  known &= numbers(buffer.strides, code.strides, code.stride_nodes);
  if (!known) {
    code.shape_nodes = places(buffer.shape), code.stride_nodes = places(buffer.strides);
    code.strides.resize(code.shape.size());
    return;
  }
  if (buffer.strides.empty()) {
    code.strides.resize(code.shape.size());
    int64_t compact = 1;
    for (size_t d = code.shape.size(); d-- > 0; compact *= code.shape[d]) code.strides[d] = compact;
  }
}

void Preparer::buffers() {
  code_->buffers.resize(source_.buffers.size());
  for (uint32_t i = 0; i < source_.buffers.size(); ++i) {
    const Buffer& buffer = source_.buffers[i];
    BufferCode& code = code_->buffers[i];
    code.source = &buffer, code.id = BufferId{i}, code.root = source_.root(BufferId{i}).index;
    code.type = buffer.type;
    code.space = source_.buffers[code.root].space;
  }
  for (uint32_t i = 0; i < source_.buffers.size(); ++i) {
    const Buffer& buffer = source_.buffers[i];
    BufferCode& code = code_->buffers[i];
    bool here = code.space == Space::Global || source_.buffers[code.root].launch < 0 ||
                &source_.launches[static_cast<size_t>(source_.buffers[code.root].launch)] == &launch_;
    if (!here) continue;
    shape_of(code, buffer);
    if (buffer.offset) code.offset = node(buffer.offset);
    if (buffer.cta) code.cta = node(buffer.cta);
    if (buffer.is_view() && source_.buffers[code.root].address) code.address = node(source_.buffers[code.root].address);
    if (buffer.address) code.address = node(buffer.address);
    if (buffer.fill) code.fill = node(buffer.fill);
    // Scales have no zero: its nearest is 2^-127.
    if (!buffer.fill && buffer.type == e8m0) code.fill = node(constant(e8m0, int64_t{0}));
    if (code.space == Space::Global || buffer.is_view()) continue;
    check_internal(!code.is_dynamic(), "the shape of '{}' on chip is not a number", buffer.name);
    code.elements = code.memory() ? code.memory()->bytes() * 8 / code.type.storage_bits() : elements_on_chip(buffer);
    code_->on_chip.push_back(i);
  }
  for (const BufferCode& code : code_->buffers)
    if (code.on_chip() && code.source->is_view() && !code.is_dynamic() && !code.shape.empty()) check_view(code);
}

// A view with a constant offset must lie inside the memory it looks into.
void Preparer::check_view(const BufferCode& code) {
  if (code.offset && code.offset->op != Node::Op::Const) return;
  int64_t first = code.offset ? code.offset->value.base : 0, last = first;
  if (code.memory())
    last += code.memory()->bytes() * 8 / code.type.storage_bits() - 1;
  else
    for (size_t d = 0; d < code.rank(); ++d) last += (code.shape[d] - 1) * code.strides[d];
  const BufferCode& root = code_->buffers[code.root];
  if (root.elements == 0) return;
  int64_t bits = root.elements * root.type.storage_bits();
  if (first >= 0 && (last + 1) * code.type.storage_bits() <= bits) return;
  fail(Code::OutOfBounds, source_.location(code.source->location),
       fmt::format("the view '{}' reaches past the memory of '{}'", code.source->name, root.source->name));
}

ElementCode Preparer::element(const Element& e) {
  if (!e.valid()) return {};
  return {&code_->buffers[e.buffer.index], places(e.indices)};
}

RegionCode Preparer::region(const Region& r) {
  if (!r.valid()) return {};
  return {&code_->buffers[r.buffer.index], places(r.min), places(r.extent)};
}

const Node* Preparer::place(const Expr& e) {
  const bool may_wrap = e && e->type == i32 && (e.as<Sum>() || e.as<Binary>());
  if (!may_wrap) return node(e);
  const auto [at, fresh] = wide_.try_emplace(&*e);
  if (fresh) at->second = widen(e);
  return node(at->second);
}

std::vector<const Node*> Preparer::places(const std::vector<Expr>& exprs) {
  std::vector<const Node*> nodes;
  for (const Expr& e : exprs) nodes.push_back(place(e));
  return nodes;
}

Steps Preparer::steps(const Body& body) {
  Steps result;
  result.reserve(body.size());
  for (const Stmt& stmt : body) result.push_back(step(stmt));
  return result;
}

Step Preparer::step(const Stmt& stmt) {
  Step s;
  s.stmt = stmt;
  s.set = uniformity_ ? uniformity_->executing_set(stmt) : block();
  fill(s, stmt);
  bool inner_jumps = false, returns = false;
  for_each_body(
      stmt, [&](const Body& body) { walk(body, [&](const Stmt& inner) { returns = returns || inner.as<Return>(); }); });
  for (const Steps& body : s.bodies)
    for (const Step& inner : body) inner_jumps = inner_jumps || inner.jumps;
  bool is_loop = stmt.as<For>() || stmt.as<While>();
  s.jumps_inside = inner_jumps;
  s.jumps = stmt.as<Break>() || stmt.as<Continue>() || stmt.as<Return>() || (is_loop ? returns : inner_jumps);
  if (stmt.as<Map>()) s.jumps = false;
  return s;
}

// What most tile ops are made of.
template <class Op>
void Preparer::fill_fields(Step& s, const Op& op) {
  Op::fields(op, [&](const char*, const auto& field) {
    using T = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Region>) s.regions.push_back(region(field));
    if constexpr (std::is_same_v<T, Expr>) s.nodes.push_back(node(field));
    if constexpr (std::is_same_v<T, Element>) s.elements.push_back(element(field));
    if constexpr (std::is_same_v<T, BufferId>) s.elements.push_back({&code_->buffers[field.index], {}});
  });
}

void Preparer::fill(Step& s, const Stmt& stmt) {
  if (is_tile_op(stmt))
    for_each_region(stmt, [&](const Region& r) { s.per_thread = s.per_thread || is_local(r.buffer); });
  match(stmt->op, Overloaded{
                      [&](const Let& op) { s.nodes = {node(op.value)}; },
                      [&](const Store& op) {
                        s.elements = {element(op.to)}, s.nodes = {node(op.value)};
                        s.once = uniformity_ && uniformity_->happens_once(stmt);
                      },
                      [&](const Atomic& op) {
                        s.elements = {element(op.to)}, s.nodes = {node(op.value), node(op.compare)};
                        s.once = uniformity_ && uniformity_->happens_once(stmt);
                      },
                      [&](const Shuffle& op) {
                        s.nodes = {node(op.value), node(op.lane)};
                      },
                      [&](const Vote& op) { s.nodes = {node(op.value)}; },
                      [&](const Call& op) { s.nodes = list(op.args); },
                      [&](const For& op) {
                        s.nodes = {node(op.begin), node(op.extent)}, s.bodies = {steps(op.body)};
                      },
                      [&](const While& op) { s.nodes = {node(op.condition)}, s.bodies = {steps(op.body)}; },
                      [&](const If& op) {
                        s.nodes = {node(op.condition)}, s.bodies = {steps(op.then_body), steps(op.else_body)};
                      },
                      [&](const Print& op) {
                        s.nodes = list(op.values);
                        if (op.buffer.valid()) s.elements = {{&code_->buffers[op.buffer.index], {}}};
                      },
                      [&](const Assert& op) { s.nodes = {node(op.condition)}; },
                      [&](const Assume& op) { s.nodes = {node(op.condition)}; },
                      [&](const Copy& op) {
                        s.regions = {region(op.from), region(op.to)};
                        s.nodes = {place(op.im2col.row_block), place(op.im2col.column_block)};
                        s.elements = {element(op.completion.barrier)};
                        s.once = !(uniformity_ && analysis::is_of_one_thread(stmt, *uniformity_));
                      },
                      [&](const Gemm& op) {
                        s.regions = {region(op.a), region(op.b), region(op.c)}, s.nodes = {node(op.clear)};
                        if (op.is_sparse()) s.regions.push_back(region(op.metadata));
                        s.elements = {element(op.completion.barrier)};
                        s.tf32 = operand_type(source_, op, op.a) != source_.buffer(op.a.buffer).type;
                      },
                      [&](const Map& op) { map(s, stmt, op); },
                      [&](const TileOp auto& op) { fill_fields(s, op); },
                      [&](const Role& op) { s.bodies = {steps(op.body)}; },
                      [&](const Arrive& op) { s.elements = {element(op.barrier)}, s.nodes = {node(op.cta)}; },
                      [&](const Expect& op) {
                        s.elements = {element(op.barrier)}, s.nodes = {node(op.bytes), node(op.cta)};
                        s.once = uniformity_ && uniformity_->is_uniform_control(stmt);
                      },
                      [&](const Wait& op) { s.elements = {element(op.barrier)}, s.nodes = {node(op.parity)}; },
                      [&](const Sync& op) { s.nodes = {node(op.barrier)}; },
                      [&](const Mma& op) {
                        s.regions = {region(op.a), region(op.b), region(op.c)};
                        if (op.metadata.valid()) s.regions.push_back(region(op.metadata));
                      },
                      [&](const Wgmma& op) {
                        s.regions = {region(op.a), region(op.b), region(op.c)}, s.nodes = {node(op.clear)};
                        if (op.metadata.valid()) s.regions.push_back(region(op.metadata));
                      },
                      [&](const Fence& op) {
                        for (const Region& r : op.registers) s.regions.push_back(region(r));
                      },
                      [&](const Drain& op) {
                        for (const Region& r : op.registers) s.regions.push_back(region(r));
                      },
                      [&](const Elect& op) { s.bodies = {steps(op.body)}; },
                      [&](const InitBarriers& op) {
                        s.elements = {{&code_->buffers[op.barriers.index], {}}};
                      },
                      [&](const LoadMatrix& op) { s.elements = {element(op.from)}, s.regions = {region(op.to)}; },
                      [&](const StoreMatrix& op) { s.elements = {element(op.to)}, s.regions = {region(op.from)}; },
                      [&](const auto&) {},
                  });
}

void Preparer::map(Step& s, const Stmt& stmt, const Map& op) {
  s.nodes = places(op.extents);
  s.bodies = {steps(op.body)};
  std::set<VarId> own = bound_vars(op.body);
  own.insert(op.vars.begin(), op.vars.end());
  std::set<VarId> used = used_vars(op.body);
  for (BufferId id : used_buffers(op.body)) {  // a view's offset and a tensor's address are read with it
    const Buffer &buffer = source_.buffer(id), &root = source_.buffer(source_.root(id));
    for (const Expr& e : {buffer.offset, buffer.cta, buffer.address, root.address, buffer.fill})
      if (e) used.merge(used_vars(e));
  }
  for (VarId var : used) {
    if (own.contains(var) || program_.known[var.index]) continue;
    s.outer.push_back(var.index);
    if (!uniformity_->is_uniform(ir::var(var, source_.var(var).type), stmt)) s.dealt = true;
  }
  // Local buffers: written ones belong to the thread of the point; so do those that differ between threads.
  walk(op.body, [&](const Stmt& inner) {
    if (const auto* store = inner.as<Store>()) s.dealt = s.dealt || is_local(store->to.buffer);
    if (const auto* atomic = inner.as<Atomic>()) s.dealt = s.dealt || is_local(atomic->to.buffer);
    if (inner.as<Shuffle>() || inner.as<Vote>()) s.dealt = true;
  });
  walk_exprs(op.body, [&](const Expr& e) {
    const auto* load = e.as<Load>();
    if (!load || !is_local(load->buffer)) return;
    Expr first = ir::load(load->buffer, std::vector<Expr>(load->indices.size(), constant(0)), e->type);
    if (!uniformity_->is_uniform(first, stmt)) s.dealt = true;
  });
  find_distinct(s, op, s.bodies[0]);
  find_watched(s, op);
}

namespace {

// s[i] = max(s[i], x): as often as one likes, in any order.
bool is_idempotent(const Store& store) {
  const auto* b = store.value.as<Binary>();
  const bool op = b && (b->op == BinaryOp::Min || b->op == BinaryOp::Max || b->op == BinaryOp::MinNan ||
                        b->op == BinaryOp::MaxNan || b->op == BinaryOp::BitAnd || b->op == BinaryOp::BitOr);
  const auto is_target = [&](const Expr& e) {
    const auto* load = e.as<Load>();
    return load && load->buffer == store.to.buffer && equal(load->indices, store.to.indices);
  };
  return op && (is_target(b->a) || is_target(b->b));
}

}  // namespace

// Roots that the Map reads and writes at other than the same elements, each point its own.
void Preparer::find_watched(Step& map_step, const Map& op) {
  std::map<uint32_t, Element> written;
  std::set<uint32_t> open;  // of which points may write one element, or different ones
  walk(op.body, [&](const Stmt& inner) {
    const auto* store = inner.as<Store>();
    if (!store || is_local(store->to.buffer)) return;
    const uint32_t root = source_.root(store->to.buffer).index;
    const auto [first, fresh] = written.emplace(root, store->to);
    const bool alike = first->second.buffer == store->to.buffer && equal(first->second.indices, store->to.indices);
    if (!alike || (!is_distinct(store->to, op) && !is_idempotent(*store))) open.insert(root);
  });
  walk_exprs(op.body, [&](const Expr& e) {
    const auto* load = e.as<Load>();
    const auto found = load ? written.find(source_.root(load->buffer).index) : written.end();
    if (found == written.end()) return;
    const Element& to = found->second;
    if (open.contains(found->first) || to.buffer != load->buffer || !equal(to.indices, load->indices))
      map_step.watched.insert(found->first);
  });
  if (!map_step.watched.empty()) map_step.distinct = false;
}

// Marks the stores of a Map that cannot collide: of one statement a buffer, with injective indices.
void Preparer::find_distinct(Step& map_step, const Map& op, Steps&) {
  std::map<uint32_t, int> stores;
  bool distinct = true;
  walk(op.body, [&](const Stmt& inner) {
    const auto* store = inner.as<Store>();
    if (!store || is_local(store->to.buffer)) return;
    if (++stores[source_.root(store->to.buffer).index] > 1 || !is_distinct(store->to, op)) distinct = false;
  });
  map_step.distinct = distinct;
}

// Whether different points give different indices: every variable of the Map stands in a dimension that tells it from
// the others. In one dimension that is a mixed radix: each coefficient exceeds what the smaller ones can add up to.
bool Preparer::is_distinct(const Element& to, const Map& op) const {
  std::set<VarId> told;
  for (const Expr& index : to.indices) {
    std::vector<std::pair<int64_t, VarId>> digits;
    bool clean = true;
    auto term = [&](int64_t coefficient, const Expr& e) {
      const auto* v = e.as<Var>();
      if (v && std::find(op.vars.begin(), op.vars.end(), v->id) != op.vars.end())
        return digits.emplace_back(std::abs(coefficient), v->id), void();
      std::set<VarId> used = used_vars(e), inner = bound_vars(op.body);
      for (VarId u : used)
        if (inner.contains(u) || std::find(op.vars.begin(), op.vars.end(), u) != op.vars.end()) clean = false;
      walk(e, [&](const Expr& part) { clean = clean && !part.as<Load>(); });
    };
    if (const auto* s = index.as<Sum>())
      for (const Term& t : s->terms) term(t.coefficient, t.value);
    else
      term(1, index);
    if (!clean) continue;
    std::sort(digits.begin(), digits.end());
    int64_t reach = 0;
    for (auto [coefficient, v] : digits) {
      auto at = std::find(op.vars.begin(), op.vars.end(), v) - op.vars.begin();
      auto found = known_.find(&*op.extents[static_cast<size_t>(at)]);
      if (coefficient <= reach || found == known_.end() || found->second->op != Node::Op::Const) clean = false;
      if (!clean) break;
      reach += coefficient * (found->second->value.base - 1);
    }
    if (clean)
      for (auto [coefficient, v] : digits) told.insert(v);
  }
  for (size_t d = 0; d < op.vars.size(); ++d)
    if (!told.contains(op.vars[d]) && constant_int(op.extents[d]) != 1) return false;
  return true;
}

// Cuts the block at the borders of all roles.
void Preparer::split_block() {
  std::array<std::set<int64_t>, 3> cuts;
  for (size_t d = 0; d < 3; ++d) cuts[d] = {0, code_->threads[d]};
  walk(launch_.body, [&](const Stmt& stmt) {
    if (const auto* role = stmt.as<Role>()) cuts[0].insert(role->begin), cuts[0].insert(role->end);
  });
  auto parts = [](const std::set<int64_t>& at) {
    std::vector<std::pair<int64_t, int64_t>> result;
    for (auto i = at.begin(); std::next(i) != at.end(); ++i) result.emplace_back(*i, *std::next(i));
    return result;
  };
  for (auto z : parts(cuts[2]))
    for (auto y : parts(cuts[1]))
      for (auto x : parts(cuts[0]))
        code_->strands.push_back({{x.first, y.first, z.first}, {x.second, y.second, z.second}});
  code_->needs_strands = code_->strands.size() > 1;
}

// Whether a loop reads global memory that the launch writes: it may wait for what another block does.
bool Preparer::waits_for_blocks() const {
  std::set<BufferId> read, written;
  const auto note = [&](std::set<BufferId>& set, BufferId id) {
    const Buffer& root = source_.buffer(source_.root(id));
    if (root.space == Space::Global) set.insert(source_.root(id));
  };
  walk(launch_.body, [&](const Stmt& stmt) {
    for (const Effect& e : effects_of(stmt).list)
      if (e.access != Access::Read) note(written, e.region.buffer);
    if (const auto* loop = stmt.as<While>()) {
      const auto loads = [&](const Expr& e) {
        if (const auto* load = e.as<Load>()) note(read, load->buffer);
      };
      walk(loop->condition, loads);
      walk_exprs(loop->body, loads);
    }
  });
  return std::any_of(read.begin(), read.end(), [&](BufferId id) { return written.contains(id); });
}

void Preparer::survey() {
  auto location = [&](const Stmt& stmt) { return source_.location(stmt->location); };
  auto is_global = [&](BufferId id) { return source_.buffer(source_.root(id)).space == Space::Global; };
  walk(launch_.body, [&](const Stmt& stmt) {
    code_->in_clusters = code_->in_clusters || reaches_blocks(source_, stmt);
    if (const auto* call = stmt.as<Call>())
      fail(Code::InterpreterRefuses, location(stmt),
           fmt::format("the interpreter cannot run the foreign function '{}'", call->function));
    if (const auto* sync = stmt.as<Sync>()) code_->grid_sync = code_->grid_sync || sync->scope == SyncScope::Grid;
    if (const auto* atomic = stmt.as<Atomic>()) code_->serial = code_->serial || is_global(atomic->to.buffer);
    // Blocks that write neighbouring 4-bit elements share a byte.
    auto shares_bytes = [&](BufferId id) { return is_global(id) && source_.buffer(id).type.is_packed(); };
    for (const Effect& e : own_effects_of(stmt).list)
      if (e.access == Access::Write || e.access == Access::Accumulate)
        code_->serial = code_->serial || shares_bytes(e.region.buffer) || (e.update && is_global(e.region.buffer));
    if (stmt.as<Print>()) code_->serial = true;
  });
  code_->serial = code_->serial || waits_for_blocks();
}

std::unique_ptr<LaunchCode> Preparer::prepare() {
  code_->launch = &launch_;
  code_->grid = {1, 1, 1}, code_->threads = {1, 1, 1};
  survey();
  for (size_t d = 0; d < launch_.threads.size(); ++d) code_->threads[d] = launch_.threads[d];
  code_->thread_count = launch_.thread_count();
  buffers();
  for (size_t d = 0; d < launch_.grid.size(); ++d) code_->grid[d] = number(launch_.grid[d], "an extent of the grid");
  const int64_t at_a_time = analysis::blocks_that_wait(source_, launch_);
  code_->together = at_a_time > 1 && code_->grid[0] * code_->grid[1] * code_->grid[2] <= at_a_time;
  if (uniformity_)
    split_block();
  else
    code_->strands = {block()};
  code_->body = steps(launch_.body);
  return std::move(code_);
}

}  // namespace

std::unique_ptr<LaunchCode> prepare(const ProgramCode& code, const Launch& launch) {
  const analysis::Uniformity uniformity(*code.program, launch);
  return Preparer(code, launch, &uniformity).prepare();
}

std::unique_ptr<LaunchCode> prepare_threads(const ProgramCode& code, const Launch& launch) {
  return Preparer(code, launch, nullptr).prepare();
}

}  // namespace tilewright::interpreter
