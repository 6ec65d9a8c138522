// Functions of elements: of one tensor, of several that are repeated along dimensions, gated ones, and their gradients.
#include <algorithm>

#include "element_functions.h"
#include "elements.h"
#include "program_of.h"
#include "refusal.h"
#include "tilewright/kernels.h"

namespace tilewright::kernels {
namespace {

const ElementFunction& function_of(const std::string& name) {
  std::string all;
  for (const ElementFunction& f : element_functions()) {
    if (name == f.name) return f;
    all += (all.empty() ? "" : ", ") + std::string(f.name);
  }
  refuse("there is no function '" + name + "' of elements", "it is one of: " + all);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out(1);
  for (const char c : text) c == ',' ? out.emplace_back().clear() : out.back().push_back(c);
  return out;
}

// What the options say, checked.
struct Elements {
  explicit Elements(const ElementwiseOptions& options)
      : o(options), f(function_of(o.function)), words(words_of(o.operands)) {
    const std::string help = "one word for each operand, a 1 for each dimension that it has, or -, as \"11,01\"";
    const size_t wanted = o.gated ? 1 : f.operands;
    for (const std::string& word : words) rank = word == "-" ? rank : word.size();
    bool is_right = words.size() == wanted && rank > 0 && rank <= kMostDimensions;
    for (const std::string& word : words)
      is_right =
          is_right && (word == "-" || (word.size() == rank && word.find_first_not_of("01") == std::string::npos));
    for (size_t d = 0; is_right && d < rank; ++d)
      is_right = std::any_of(words.begin(), words.end(), [&](const std::string& w) { return w != "-" && w[d] == '1'; });
    if (!is_right) refuse("operands of '" + o.function + "' are '" + o.operands + "'", help);
    const bool one_tensor = std::all_of(words.begin() + 1, words.end(), [](const std::string& w) { return w == "-"; });
    if ((o.gated || o.backward) && (!f.slope || words[0] == "-" || !one_tensor))
      refuse("'" + o.function + "' has no gradient here", "functions of one tensor have");
    if (o.gated && o.operands != "11")
      refuse("operands of a gated '" + o.function + "' are '" + o.operands + "'", "they are \"11\"");
    if (!is_taken()) refuse("'" + o.function + "' is not computed on " + o.x.name(), "it takes floats");
  }
  bool is_taken() const {
    if (f.computes == Computes::Any) return true;
    if (f.computes == Computes::Integers) return o.x.is_integral();
    if (o.x.is_int()) return f.computes == Computes::Numbers && !o.gated && !o.backward;
    return o.x.is_float();
  }
  // The type that is computed in.
  DType computed() const { return f.computes == Computes::Any || !o.x.is_float() || o.x == f64 ? o.x : f32; }
  DType type_of(size_t operand) const { return std::string("where") == f.name && operand == 0 ? boolean : o.x; }
  // Of a number in a tensor's place: what does not fit an integer or a bool is refused where the call is made.
  DType number() const { return !o.x.is_float() || o.x == f64 ? o.x : f32; }
  // As what is computed in; a condition stays one.
  Value read(const Value& v, size_t operand = 1) const {
    return type_of(operand).is_bool() || v.dtype() == computed() ? v : Value(cast(v, computed()));
  }

  const ElementwiseOptions& o;
  const ElementFunction& f;
  std::vector<std::string> words;
  size_t rank = 0;
};

Value result_of(const Value& v, DType type) {
  if (type.is_bool() && !v.dtype().is_bool()) return v != cast(0, v.dtype());
  return v.dtype() == type ? v : Value(cast(v, type));
}

// Y = f(X[:, 0]) X[:, 1], or both gradients of it.
Program gated(const Elements& e) {
  const ElementwiseOptions& o = e.o;
  const Value M = dynamic("M"), N = dynamic("N");
  const Tensor X("X", {M, 2, N}, o.x), G("G", {M, N}, o.x);
  const Tensor Y = o.backward ? Tensor("Y", {M, 2, N}, o.result) : Tensor("Y", {M, N}, o.result);
  const auto body = [&] {
    for (auto [by, bx] : Kernel({ceildiv(M, o.rows), ceildiv(N, o.columns)}, {.threads = o.threads})) {
      auto x = alloc_fragment({o.rows, o.columns}, e.computed(), "x"),
           gate = alloc_fragment({o.rows, o.columns}, e.computed(), "gate");
      auto g = alloc_fragment({o.rows, o.columns}, e.computed(), "g");
      const Value row = by * o.rows, column = bx * o.columns;
      const auto half = [&](const Tensor& of, int64_t which) -> Region {
        return of(slice(row, row + o.rows), which, slice(column, column + o.columns));
      };
      copy(half(X, 0), x);
      copy(half(X, 1), gate);
      if (o.backward) copy(G(row, column), g);
      for (auto [i, j] : Parallel(o.rows, o.columns)) {
        const Value a = x(i, j), b = gate(i, j);
        if (!o.backward) {
          x(i, j) = e.f.value({a}) * b;
        } else {
          const Value c = g(i, j);
          x(i, j) = c * b * e.f.slope({a});
          gate(i, j) = c * e.f.value({a});
        }
      }
      if (!o.backward) {
        copy(x, Y(row, column));
      } else {
        copy(x, half(Y, 0));
        copy(gate, half(Y, 1));
      }
    }
  };
  return o.backward ? prim_func("elementwise", {X, G, Y}, body) : prim_func("elementwise", {X, Y}, body);
}

// An operand in a block: a number, an element, or a tile of the dimensions that it has.
struct BlockOperand {
  Value value;
  Buffer tile;
  bool rows = false, columns = false;

  Value at(const Value& i, const Value& j) const {
    if (rows && columns) return tile(i, j);
    return rows ? Value(tile(i)) : columns ? Value(tile(j)) : value;
  }
};

}  // namespace

Program elementwise(const ElementwiseOptions& o) {
  const Elements e(o);
  if (o.gated) return gated(e);
  const size_t rank = e.rank, count = e.words.size();
  std::vector<Value> extents;
  for (size_t d = 0; d < rank; ++d) extents.push_back(dynamic("D" + std::to_string(d)));
  std::vector<Tensor> tensors;
  std::vector<Value> numbers;
  for (size_t i = 0; i < count; ++i) {
    const std::string name(1, "ABCD"[i]);
    if (e.words[i] == "-")
      numbers.push_back(Scalar(name, e.number()));
    else
      tensors.push_back(tensor_of(name, those_of(extents, e.words[i]), e.type_of(i)));
  }
  const Tensor G = tensor_of("G", extents, o.x), Y = tensor_of("Y", extents, o.result);

  // A tile of rows and columns; of one dimension, of columns.
  const auto block = [&](const std::vector<Value>& at) {
    const auto tile = [&](bool rows, bool columns, DType type) {
      if (rows && columns) return alloc_fragment({o.rows, o.columns}, type, "tile");
      return alloc_fragment({rows ? o.rows : o.columns}, type, "tile");
    };
    const auto read = [&](const Buffer& from, const std::string& word, size_t operand) {
      BlockOperand out;
      out.columns = word[rank - 1] == '1', out.rows = rank > 1 && word[rank - 2] == '1';
      if (out.rows || out.columns) {
        out.tile = tile(out.rows, out.columns, e.type_of(operand).is_bool() ? boolean : e.computed());
        copy(element_of(from, those_of(at, word)), out.tile);
      } else {
        out.value = e.read(element_of(from, those_of(at, word)), operand);
      }
      return out;
    };
    std::vector<BlockOperand> operands;
    size_t tensor = 0, number = 0;
    for (size_t i = 0; i < count; ++i) {
      if (e.words[i] == "-")
        operands.push_back({e.read(numbers[number++], i), {}});
      else
        operands.push_back(read(tensors[tensor++], e.words[i], i));
    }
    const std::string whole(rank, '1');
    const BlockOperand g = o.backward ? read(G, whole, 1) : BlockOperand();
    const Buffer y = tile(rank > 1, true, o.result);
    const auto element = [&](const Value& i, const Value& j) -> Value {
      Operands values;
      for (const BlockOperand& operand : operands) values.push_back(operand.at(i, j));
      return result_of(o.backward ? Value(g.at(i, j) * e.f.slope(values)) : e.f.value(values), o.result);
    };
    if (rank == 1)
      for (auto j : Parallel(o.columns)) y(j) = element(0, j);
    else
      for (auto [i, j] : Parallel(o.rows, o.columns)) y(i, j) = element(i, j);
    copy(y, element_of(Y, at));
  };
  const auto body = [&] {
    if (rank == 1) {
      for (auto bx : Kernel(ceildiv(extents[0], o.columns), {.threads = o.threads})) block({bx * o.columns});
      return;
    }
    // Columns are numbered by the second dimension of the grid, so that their begin is known to be a whole tile.
    const Value down = ceildiv(extents[rank - 2], o.rows);
    Value places = down;
    for (size_t d = 0; d + 2 < rank; ++d) places = places * extents[d];
    for (auto [by, bx] : Kernel({places, ceildiv(extents[rank - 1], o.columns)}, {.threads = o.threads})) {
      std::vector<Value> at(rank);
      at[rank - 1] = bx * o.columns;
      at[rank - 2] = rank > 2 ? Value(by % down * o.rows) : Value(by * o.rows);
      Value rest = rank > 2 ? Value(floordiv(by, down)) : Value(0);
      for (size_t d = rank - 2; d-- > 0;) {
        at[d] = d > 0 ? Value(rest % extents[d]) : rest;
        if (d > 0) rest = floordiv(rest, extents[d]);
      }
      block(at);
    }
  };
  std::vector<Parameter> parameters(tensors.begin(), tensors.end());
  if (o.backward) parameters.emplace_back(G);
  parameters.emplace_back(Y);
  parameters.insert(parameters.end(), numbers.begin(), numbers.end());
  return program_of("elementwise", parameters, body);
}

}  // namespace tilewright::kernels
