// Functions of elements: of one tensor, of several that are repeated along dimensions, gated ones, and their gradients.
#include <algorithm>
#include <cmath>

#include "elements.h"
#include "refusal.h"
#include "tilewright/kernels.h"

namespace tilewright::kernels {
namespace {

constexpr double kHalfRoot = 0.7071067811865476, kPhi0 = 0.3989422804014327;  // sqrt(1/2), 1 / sqrt(2 pi)
constexpr double kGeluRoot = 0.7978845608028654, kGeluCube = 0.044715, kLn2 = 0.6931471805599453;

using Operands = std::vector<Value>;

// A function by name. Where it has a slope, its gradient is that of its first operand, times what comes in.
struct Function {
  const char* name;
  size_t operands;
  Value (*value)(const Operands&);
  Value (*slope)(const Value& x) = nullptr;
  bool integers = false;  // computes on integers too
  bool moves = false;     // leaves elements as they are, of any type
};

Value sigmoid_of(const Value& x) { return 1 / (1 + exp(-x)); }
Value gelu_tanh_of(const Value& x) { return tanh(kGeluRoot * (x + kGeluCube * x * x * x)); }
// NaN where one of them is.
Value with_nan(const Value& a, const Value& b, const Value& otherwise) {
  if (!a.dtype().is_float()) return otherwise;
  return if_then_else(isnan(a), a, if_then_else(isnan(b), b, otherwise));
}

// clang-format off
const Function kFunctions[] = {
    // Also of NaN, which max() would drop.
    {"relu", 1, [](const Operands& v) -> Value { return if_then_else(v[0] < 0, cast(0, v[0].dtype()), v[0]); },
     [](const Value& x) -> Value { return if_then_else(x > 0, 1.0, 0.0); }, true},
    {"gelu", 1, [](const Operands& v) -> Value { return 0.5 * v[0] * (1 + erf(v[0] * kHalfRoot)); },
     [](const Value& x) -> Value { return 0.5 * (1 + erf(x * kHalfRoot)) + x * kPhi0 * exp(-0.5 * x * x); }},
    {"gelu_tanh", 1, [](const Operands& v) -> Value { return 0.5 * v[0] * (1 + gelu_tanh_of(v[0])); },
     [](const Value& x) -> Value {
       const Value t = gelu_tanh_of(x);
       return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluRoot * (1 + 3 * kGeluCube * x * x);
     }},
    {"silu", 1, [](const Operands& v) -> Value { return v[0] / (1 + exp(-v[0])); },
     [](const Value& x) -> Value { const Value s = sigmoid_of(x); return s * (1 + x * (1 - s)); }},
    {"sigmoid", 1, [](const Operands& v) -> Value { return sigmoid_of(v[0]); },
     [](const Value& x) -> Value { const Value s = sigmoid_of(x); return s * (1 - s); }},
    {"tanh", 1, [](const Operands& v) -> Value { return tanh(v[0]); },
     [](const Value& x) -> Value { const Value t = tanh(x); return 1 - t * t; }},
    {"softplus", 1, [](const Operands& v) -> Value { return max(v[0], 0.0) + log1p(exp(-abs(v[0]))); },
     [](const Value& x) { return sigmoid_of(x); }},
    {"exp", 1, [](const Operands& v) -> Value { return exp(v[0]); }, [](const Value& x) -> Value { return exp(x); }},
    {"exp2", 1, [](const Operands& v) -> Value { return exp2(v[0]); }, [](const Value& x) -> Value { return kLn2 * exp2(x); }},
    {"expm1", 1, [](const Operands& v) -> Value { return expm1(v[0]); }, [](const Value& x) -> Value { return exp(x); }},
    {"log", 1, [](const Operands& v) -> Value { return log(v[0]); }, [](const Value& x) -> Value { return 1 / x; }},
    {"log2", 1, [](const Operands& v) -> Value { return log2(v[0]); }, [](const Value& x) -> Value { return 1 / (kLn2 * x); }},
    {"log1p", 1, [](const Operands& v) -> Value { return log1p(v[0]); }, [](const Value& x) -> Value { return 1 / (1 + x); }},
    {"sqrt", 1, [](const Operands& v) -> Value { return sqrt(v[0]); }, [](const Value& x) -> Value { return 0.5 / sqrt(x); }},
    {"rsqrt", 1, [](const Operands& v) -> Value { return rsqrt(v[0]); }, [](const Value& x) -> Value { return -0.5 * rsqrt(x) / x; }},
    {"reciprocal", 1, [](const Operands& v) -> Value { return 1 / v[0]; }, [](const Value& x) -> Value { return -1 / (x * x); }},
    {"square", 1, [](const Operands& v) -> Value { return v[0] * v[0]; }, [](const Value& x) -> Value { return 2 * x; }, true},
    {"abs", 1, [](const Operands& v) -> Value { return if_then_else(v[0] < 0, -v[0], v[0].dtype().is_float() ? Value(abs(v[0])) : v[0]); },
     [](const Value& x) -> Value { return if_then_else(x > 0, 1.0, if_then_else(x < 0, -1.0, 0.0)); }, true},
    {"neg", 1, [](const Operands& v) -> Value { return -v[0]; }, [](const Value&) -> Value { return -1.0; }, true},
    {"sin", 1, [](const Operands& v) -> Value { return sin(v[0]); }, [](const Value& x) -> Value { return cos(x); }},
    {"cos", 1, [](const Operands& v) -> Value { return cos(v[0]); }, [](const Value& x) -> Value { return -sin(x); }},
    {"erf", 1, [](const Operands& v) -> Value { return erf(v[0]); },
     [](const Value& x) -> Value { return 1.1283791670955126 * exp(-x * x); }},
    {"floor", 1, [](const Operands& v) -> Value { return floor(v[0]); }, [](const Value&) -> Value { return 0.0; }},
    {"ceil", 1, [](const Operands& v) -> Value { return ceil(v[0]); }, [](const Value&) -> Value { return 0.0; }},
    {"trunc", 1, [](const Operands& v) -> Value { return trunc(v[0]); }, [](const Value&) -> Value { return 0.0; }},
    {"round", 1, [](const Operands& v) -> Value { return nearbyint(v[0]); }, [](const Value&) -> Value { return 0.0; }},
    {"cast", 1, [](const Operands& v) { return v[0]; }, nullptr, true, true},
    {"add", 2, [](const Operands& v) -> Value { return v[0] + v[1]; }, nullptr, true},
    {"sub", 2, [](const Operands& v) -> Value { return v[0] - v[1]; }, nullptr, true},
    {"mul", 2, [](const Operands& v) -> Value { return v[0] * v[1]; }, nullptr, true},
    {"div", 2, [](const Operands& v) -> Value { return v[0] / v[1]; }},
    {"pow", 2, [](const Operands& v) -> Value { return pow(v[0], v[1]); }},
    {"maximum", 2, [](const Operands& v) { return with_nan(v[0], v[1], max(v[0], v[1])); }, nullptr, true},
    {"minimum", 2, [](const Operands& v) { return with_nan(v[0], v[1], min(v[0], v[1])); }, nullptr, true},
    {"where", 3, [](const Operands& v) -> Value { return if_then_else(v[0], v[1], v[2]); }, nullptr, true, true},
    // From the end that is nearer, so that weights of 0 and 1 give the ends themselves.
    {"lerp", 3, [](const Operands& v) -> Value {
       const Value d = v[1] - v[0];
       return if_then_else(abs(v[2]) < 0.5, v[0] + v[2] * d, v[1] - d * (1 - v[2]));
     }},
};
// clang-format on

const Function& function_of(const std::string& name) {
  std::string all;
  for (const Function& f : kFunctions) {
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
    if ((o.gated || o.backward) && (!f.slope || o.operands.find('-') != std::string::npos))
      refuse("'" + o.function + "' has no gradient here", "functions of one operand have");
    if (o.gated && o.operands != "11")
      refuse("operands of a gated '" + o.function + "' are '" + o.operands + "'", "they are \"11\"");
    if (!f.moves && !(o.x.is_int() ? f.integers && !o.gated && !o.backward : o.x.is_float()))
      refuse("'" + o.function + "' is not computed on " + o.x.name(), "it takes floats");
  }
  // The type that is computed in.
  DType computed() const { return f.moves || o.x.is_int() || o.x == f64 ? o.x : f32; }
  DType type_of(size_t operand) const { return std::string("where") == f.name && operand == 0 ? boolean : o.x; }
  DType number() const { return o.x.is_float() ? (o.x == f64 ? f64 : f32) : o.x.bits > 32 ? i64 : i32; }
  // As what is computed in; a condition stays one.
  Value read(const Value& v, size_t operand = 1) const {
    return type_of(operand).is_bool() || v.dtype() == computed() ? v : Value(cast(v, computed()));
  }

  const ElementwiseOptions& o;
  const Function& f;
  std::vector<std::string> words;
  size_t rank = 0;
};

Program program_of(const char* name, const std::vector<Parameter>& p, const std::function<void()>& body) {
  switch (p.size()) {
    case 2: return prim_func(name, {p[0], p[1]}, body);
    case 3: return prim_func(name, {p[0], p[1], p[2]}, body);
    default: return prim_func(name, {p[0], p[1], p[2], p[3]}, body);
  }
}

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
          x(i, j) = c * b * e.f.slope(a);
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
    const std::string name(1, "ABC"[i]);
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
      return result_of(o.backward ? Value(g.at(i, j) * e.f.slope(values[0])) : e.f.value(values), o.result);
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
