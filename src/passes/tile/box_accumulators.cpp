#include "passes/tile/box_accumulators.h"

#include "analysis/accessed.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"

namespace tilewright::passes {

using namespace ir;

namespace {

struct Box {
  std::vector<int64_t> first, extent;
  bool operator==(const Box&) const = default;
};

// Of rows and columns; none: calls or turns move it, or it has more dimensions.
std::optional<Box> box_of(const Region& r) {
  Box out;
  if (r.min.size() < 2) return std::nullopt;
  for (size_t d = 0; d < r.min.size(); ++d) {
    const auto first = constant_int(r.min[d]), extent = constant_int(r.extent[d]);
    if (!first || !extent) return std::nullopt;
    if (d + 2 < r.min.size() && *extent != 1) return std::nullopt;
    out.first.push_back(*first), out.extent.push_back(*extent);
  }
  return out;
}

bool meet(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.first.size(); ++d)
    if (a.first[d] + a.extent[d] <= b.first[d] || b.first[d] + b.extent[d] <= a.first[d]) return false;
  return true;
}

class BoxAccumulators {
 public:
  explicit BoxAccumulators(TileProgram& p) : p_(p) {}

  // A loop, or a product, that does nothing else with the fragments has their boxes in fragments of its own.
  std::optional<Body> with_own(const Stmt& s) {
    parts_.clear();
    if (!find({s}) || parts_.empty() || may_jump({s})) return std::nullopt;
    const auto* loop = s.as<For>();
    const bool runs = !loop || constant_int(loop->extent).value_or(0) > 0;
    Body out, behind;
    for (Part& part : parts_) {
      part.own = make(part);
      if (!part.starts || !runs) out.push_back(move(part, true, s->location));
      behind.push_back(move(part, false, s->location));
    }
    out.push_back(with_parts({s})[0]);
    out.insert(out.end(), behind.begin(), behind.end());
    return out;
  }

 private:
  struct Part {
    BufferId of;
    Box box;
    bool starts = false;  // its first product clears it
    BufferId own = {};
  };

  // False: a fragment of which products have boxes is used otherwise, or boxes of it meet.
  bool find(const Body& body) {
    bool fits = true;
    walk(body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g || is_whole(g->c, p_.buffer(g->c.buffer))) return;
      const Buffer& b = p_.buffer(g->c.buffer);
      const auto box = box_of(g->c);
      const bool plain = b.space == Space::Fragment && !b.is_view() && !b.reducer && box && g->completion.immediate();
      fits = fits && plain && !is_viewed(g->c.buffer);
      if (!fits) return;
      const auto same = [&](const Part& part) { return part.of == g->c.buffer && part.box == *box; };
      if (std::ranges::any_of(parts_, same)) return;
      for (const Part& part : parts_) fits = fits && (part.of != g->c.buffer || !meet(part.box, *box));
      parts_.push_back({g->c.buffer, *box, g->clear && constant_int(g->clear) != 0});
    });
    for (const Part& part : parts_) {
      int products = 0;
      walk(body, [&](const Stmt& s) {
        const auto* g = s.as<Gemm>();
        products += g && g->c.buffer == part.of && !is_whole(g->c, p_.buffer(part.of));
      });
      fits = fits && analysis::accesses_of(body, part.of, p_) == products;
    }
    return fits;
  }
  bool is_viewed(BufferId id) const {
    return std::ranges::any_of(p_.buffers, [&](const Buffer& x) { return x.is_view() && x.root == id; });
  }
  BufferId make(const Part& part) {
    Buffer b = p_.buffer(part.of);
    b.name += "_part", b.layout = {}, b.shape.clear();
    for (size_t d = part.box.extent.size() - 2; d < part.box.extent.size(); ++d)
      b.shape.push_back(constant(part.box.extent[d]));
    return p_.new_buffer(std::move(b));
  }
  // Between the box and its own fragment, element by element.
  Stmt move(const Part& part, bool in, LocationId at) {
    const Buffer& own = p_.buffer(part.own);
    const DType type = own.type;
    Map m = map_over(p_, own.shape);
    std::vector<Expr> place, point;
    for (VarId v : m.vars) point.push_back(var(v, p_.var(v).type));
    for (size_t d = 0, rank = part.box.first.size(); d < rank; ++d) {
      const Expr first = constant(part.box.first[d]);
      place.push_back(d + 2 < rank ? first : add(point[d + 2 - rank], first));
    }
    if (in)
      m.body.push_back(make_stmt(Store{{part.own, point}, load(part.of, place, type)}, at));
    else
      m.body.push_back(make_stmt(Store{{part.of, place}, load(part.own, point, type)}, at));
    return make_stmt(std::move(m), at);
  }
  Body with_parts(const Body& body) const {
    return rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* g = s.as<Gemm>();
      if (!g || is_whole(g->c, p_.buffer(g->c.buffer))) return std::nullopt;
      const auto box = box_of(g->c);
      const auto part =
          std::ranges::find_if(parts_, [&](const Part& x) { return x.of == g->c.buffer && x.box == *box; });
      Gemm own = *g;
      own.c = whole(part->own, p_);
      return Body{make_stmt(std::move(own), s->location)};
    });
  }

  TileProgram& p_;
  std::vector<Part> parts_;
};

}  // namespace

TileProgram box_accumulators(TileProgram program) {
  for (Launch& launch : program.launches) {
    BoxAccumulators boxes(program);
    const auto of = [&]<class Op>() {
      launch.body = rewrite(launch.body, [&](const Stmt& s) { return s.as<Op>() ? boxes.with_own(s) : std::nullopt; });
    };
    of.operator()<For>(), of.operator()<Gemm>();
  }
  return program;
}

}  // namespace tilewright::passes
