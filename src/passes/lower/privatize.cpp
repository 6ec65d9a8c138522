#include "passes/lower/threads.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr size_t kNoBox = SIZE_MAX;
using Box = size_t;  // its number in Lowering::boxes, or kNoBox: code of the whole block

class Privatize {
 public:
  Privatize(const std::set<BufferId>& uniform, Lowering& l) : uniform_(uniform), l_(l) {}

  Body run(const Body& block) {
    for (size_t i = 0; i < l_.user_buffers; ++i) {
      const Buffer& b = l_.program.buffers[i];
      if (b.space != Space::Local || b.is_view() || uniform_.contains({static_cast<uint32_t>(i)})) continue;
      if (b.launch == l_.number) locals_[{static_cast<uint32_t>(i)}];
    }
    survey(block, kNoBox, false);
    for (auto& [id, use] : locals_) {
      if (use.boxes.size() > 1 || (use.boxes.size() == 1 && !use.written_first && (use.in_map || use.repeated)))
        arrays_[id] = make_array(id);
      else if (use.boxes.size() == 1 && !use.written_first)
        begun_[*use.boxes.begin()].push_back(id);
    }
    return rewrite_outside(block);
  }

 private:
  struct Use {
    std::set<Box> boxes;
    bool written_first = true;  // in the one box: a store to all of it comes before any read
    bool repeated = false;      // the box stands in a loop
    bool in_map = false;
  };

  Box box_of(const For& f) const {
    auto found = l_.boxes.of.find(f.var);
    return found == l_.boxes.of.end() ? kNoBox : l_.boxes.box[found->second];
  }
  // The Map's points share a thread; a loop over the threads is its own thread index.
  bool is_map(Box box) const { return !l_.boxes.thread[box].as<Var>(); }

  // ---- where things are used
  void survey(const Body& body, Box box, bool repeated) {
    for (const Stmt& s : body) {
      Box inner = box;
      if (const auto* f = s.as<For>(); f && box == kNoBox) inner = box_of(*f);
      if (inner != box) enter(s, inner, repeated);
      note(s, inner);
      const bool loops = repeated || (inner == kNoBox && (s.as<For>() || s.as<While>()));
      for_each_body(s, [&](const Body& b) { survey(b, inner, loops); });
    }
  }
  void enter(const Stmt& nest, Box box, bool repeated) {
    Body inside{nest};
    std::vector<Expr> masks;
    while (inside.size() == 1 && (inside[0].as<For>() || inside[0].as<If>())) {  // the nest's own loops and masks
      const auto* f = inside[0].as<For>();
      if (f && box_of(*f) != box) break;
      if (const auto* i = inside[0].as<If>(); i && !i->else_body.empty()) break;
      if (const auto* i = inside[0].as<If>()) masks.push_back(i->condition);
      inside = f ? f->body : inside[0].as<If>()->then_body;
    }
    for (BufferId id : used_buffers({nest})) {
      auto found = locals_.find(l_.program.root(id));
      if (found == locals_.end()) continue;
      Use& use = found->second;
      use.boxes.insert(box);
      use.repeated = use.repeated || repeated;
      use.in_map = use.in_map || is_map(box);
      const bool masked = std::any_of(masks.begin(), masks.end(), [&](auto& e) { return reads(e, found->first); });
      use.written_first = use.written_first && !masked && writes_first(inside, found->first);
    }
  }
  bool writes_first(const Body& body, BufferId id) const {
    for (const Stmt& s : body) {
      if (!mentions({s}, id)) continue;
      if (const auto* n = s.as<Store>()) return n->to.buffer == id && l_.buffer(id).rank() == 0 && !reads(n->value, id);
      if (const auto* f = s.as<For>()) return fills(*f, id);
      return false;
    }
    return true;
  }
  // for v in 0 .. extent: id[v] = value
  bool fills(const For& f, BufferId id) const {
    const Buffer& b = l_.buffer(id);
    const auto* n = f.body.size() == 1 ? f.body[0].as<Store>() : nullptr;
    if (!n || n->to.buffer != id || b.rank() != 1 || reads(n->value, id)) return false;
    const Expr v = var(f.var, l_.program.var(f.var).type);
    return constant_int(f.begin) == 0 && constant_int(f.extent) == constant_int(b.shape[0]) &&
           equal(n->to.indices[0], widen(v));
  }
  bool reads(const Expr& e, BufferId id) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      found = found || (n && l_.program.root(n->buffer) == id);
    });
    return found;
  }
  bool mentions(const Body& body, BufferId id) const {
    for (BufferId b : used_buffers(body))
      if (l_.program.root(b) == id) return true;
    return false;
  }

  void note(const Stmt& s, Box box) {
    for_each_expr(s, [&](const Expr& e) {
      for (VarId v : used_vars(e)) {
        auto defined = defined_in_.find(v);
        if (defined != defined_in_.end() && defined->second != box && defined->second != kNoBox) spilled_.insert(v);
      }
      if (box != kNoBox) return;
      walk(e, [&](const Expr& x) {
        const auto* n = x.as<Load>();
        const auto found = n ? locals_.find(l_.program.root(n->buffer)) : locals_.end();
        if (found != locals_.end()) found->second.boxes.insert(kNoBox);
      });
    });
    if (const auto* n = s.as<Let>()) defined_in_[n->var] = box;
    if (const auto* n = s.as<Atomic>(); n && n->result.valid()) defined_in_[n->result] = box;
  }

  // ---- arrays over the threads
  BufferId make_array(BufferId id) {
    const Buffer& b = l_.buffer(id);
    std::vector<int64_t> shape{l_.launch.thread_count()};
    for (const Expr& e : b.shape) shape.push_back(*constant_int(e));
    return l_.temporary(std::string(b.name), b.type, shape, Space::Shared);
  }
  BufferId array_of_var(VarId v) {
    auto [at, fresh] = var_arrays_.try_emplace(v);
    if (fresh) {
      const VarInfo info = l_.program.var(v);
      at->second = l_.temporary(info.name, info.type, {l_.launch.thread_count()}, Space::Shared);
    }
    return at->second;
  }
  // The same view of every thread's own memory.
  BufferId array_of(BufferId id) {
    const Buffer b = l_.buffer(id);
    if (!b.is_view()) return arrays_.at(id);
    auto [at, fresh] = views_.try_emplace(id);
    if (fresh) {
      const Buffer& root = l_.buffer(b.root);
      int64_t elements = 1;
      for (const Expr& e : root.shape) elements *= *constant_int(e);
      Buffer view = b;
      view.root = arrays_.at(b.root);
      const int64_t own = elements * root.type.storage_bits() / b.type.storage_bits();
      std::vector<Expr> strides = b.strides;
      if (strides.empty()) {
        Expr step = constant(1);
        for (size_t d = b.rank(); d-- > 0;)
          strides.insert(strides.begin(), step), step = mul(step, cast(b.shape[d], i32));
      }
      view.shape.insert(view.shape.begin(), constant(l_.launch.thread_count()));
      strides.insert(strides.begin(), constant(own));
      view.strides = std::move(strides);
      view.space = Space::Shared;
      at->second = l_.program.new_buffer(std::move(view));
    }
    return at->second;
  }
  bool is_array(BufferId id) const { return arrays_.contains(l_.program.root(id)); }

  // ---- rewriting
  Body rewrite_outside(const Body& body) {
    Body out;
    for (const Stmt& given : body) {
      const auto* nest = given.as<For>();
      if (const Box box = nest ? box_of(*nest) : kNoBox; box != kNoBox) {
        const Body inside = rewrite_box(with_beginnings({given}, box), box, l_.boxes.thread[l_.boxes.of.at(nest->var)]);
        out.insert(out.end(), inside.begin(), inside.end());
        continue;
      }
      const Stmt s = of_first(given);
      if (const auto* f = s.as<For>()) {
        For g = *f;
        g.body = rewrite_outside(f->body);
        out.push_back(make_stmt(std::move(g), s->location));
      } else if (const auto* n = s.as<While>()) {
        out.push_back(make_stmt(While{n->condition, rewrite_outside(n->body)}, s->location));
      } else if (const auto* n = s.as<If>()) {
        out.push_back(
            make_stmt(If{n->condition, rewrite_outside(n->then_body), rewrite_outside(n->else_body)}, s->location));
      } else {
        out.push_back(s);
      }
    }
    return out;
  }

  // Threads agree on what they do together even where nothing proves it: it is as the first of them says.
  Stmt of_first(const Stmt& s) {
    const auto first = [](std::vector<Expr> index) {
      index.insert(index.begin(), constant(i64, int64_t{0}));
      return index;
    };
    return with_exprs(s, [&](const Expr& e) {
      return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
        if (const auto* n = x.as<Load>(); n && is_array(n->buffer))
          return load(array_of(n->buffer), first(n->indices), x->type);
        if (const auto* v = x.as<Var>(); v && spilled_.contains(v->id))
          return load(array_of_var(v->id), first({}), x->type);
        return std::nullopt;
      });
    });
  }

  // Private memory that some path reads before it writes gets a value at each point, so that it is private to the
  // point.
  Body with_beginnings(const Body& body, Box box) {
    auto found = begun_.find(box);
    if (found == begun_.end()) return body;
    const auto* f = body.size() == 1 ? body[0].as<For>() : nullptr;
    if (f && box_of(*f) == box) {
      For g = *f;
      g.body = with_beginnings(f->body, box);
      return {make_stmt(std::move(g), body[0]->location)};
    }
    Body out;
    for (BufferId id : found->second) {
      const Buffer b = l_.buffer(id);
      std::vector<Expr> index;
      for (const Expr& e : b.shape) index.push_back(l_.index("i", widen(e)));
      Body code{l_.make(Store{{id, index}, constant(b.type, int64_t{0})})};
      for (size_t d = index.size(); d-- > 0;) code = {loop(l_, index[d], wide(0), widen(b.shape[d]), code)};
      out.push_back(code[0]);
    }
    out.insert(out.end(), body.begin(), body.end());
    return out;
  }

  Body rewrite_box(const Body& nest, Box box, const Expr& linear_thread) {
    const Expr thread = cast(linear_thread, i64);
    std::set<VarId> mine;
    for (const auto& [v, where] : defined_in_)
      if (where == box) mine.insert(v);
    bool used_array = false;
    auto own = [&](std::vector<Expr> index) {
      used_array = true;
      index.insert(index.begin(), thread);
      return index;
    };
    // A map's extents are no point's: points are counted by them.
    Body out = rewrite(nest, [&](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      return f && box_of(*f) == box ? std::optional(Body{of_first(s)}) : std::nullopt;
    });
    out = rewrite_exprs(out, [&](const Expr& e) -> std::optional<Expr> {
      if (const auto* n = e.as<Load>(); n && is_array(n->buffer))
        return load(array_of(n->buffer), own(n->indices), e->type);
      if (const auto* v = e.as<Var>(); v && spilled_.contains(v->id) && !mine.contains(v->id))
        return load(array_of_var(v->id), own({}), e->type);
      return std::nullopt;
    });
    out = rewrite(out, [&](const Stmt& s) -> std::optional<Body> {
      if (const auto* n = s.as<Store>(); n && is_array(n->to.buffer))
        return Body{make_stmt(Store{{array_of(n->to.buffer), own(n->to.indices)}, n->value}, s->location)};
      VarId bound;
      if (const auto* n = s.as<Let>()) bound = n->var;
      if (const auto* n = s.as<Atomic>()) bound = n->result;
      if (!bound.valid() || !spilled_.contains(bound)) return std::nullopt;
      const Expr value = var(bound, l_.program.var(bound).type);
      return Body{s, make_stmt(Store{{array_of_var(bound), own({})}, value}, s->location)};
    });
    return used_array && is_map(box) ? serial(out) : out;
  }
  // Points of one thread follow one another.
  static Body serial(const Body& body) {
    return rewrite(body, [](const Stmt& s) -> std::optional<Body> {
      const auto* f = s.as<For>();
      if (!f || f->kind != LoopKind::Vectorized) return std::nullopt;
      For g = *f;
      g.kind = LoopKind::Serial, g.factor = 0;
      return Body{make_stmt(std::move(g), s->location)};
    });
  }

  const std::set<BufferId>& uniform_;
  Lowering& l_;
  std::map<BufferId, Use> locals_;
  std::map<Box, std::vector<BufferId>> begun_;
  std::map<VarId, Box> defined_in_;
  std::set<VarId> spilled_;
  std::map<BufferId, BufferId> arrays_, views_;
  std::map<VarId, BufferId> var_arrays_;
};

}  // namespace

Body privatize(const Body& block, const std::set<BufferId>& uniform, Lowering& l) {
  return Privatize(uniform, l).run(block);
}

}  // namespace tilewright::passes
