// What the programs of attention share: tensors with heads, sequences behind each other, and which key a query sees.
#pragma once
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;

// Of shared memory that a block can have, what barriers and results on their way out leave.
constexpr int64_t kSharedBytes = 224 * 1024;

// The symbols and numbers of a call. `queries` and `keys` are positions of a sequence, or of all of them together.
struct AttentionCall {
  explicit AttentionCall(const AttentionOptions& options) : o(options) {}

  // One with as many heads as K for each `group` of 1.
  Tensor tensor(const char* name, const Value& positions, int64_t group, int64_t dim) const {
    if (o.packed) return Tensor(name, {positions, kv_heads * group, dim}, o.dtype);
    if (o.heads_first) return Tensor(name, {batch, kv_heads * group, positions, dim}, o.dtype);
    return Tensor(name, {batch, positions, kv_heads * group, dim}, o.dtype);
  }
  // A number for each row of Q.
  Tensor row_tensor(const char* name) const {
    if (o.packed) return Tensor(name, {kv_heads * o.group, queries}, f32);
    return Tensor(name, {batch, kv_heads * o.group, queries}, f32);
  }
  // `n` positions of a head, `first` the first; of packed sequences counted from the first of all. `columns` of each:
  // those behind the tensor's own are zeros, and stay unwritten.
  Region tile(const Buffer& x, const Value& b, const Value& head, const Value& first, int64_t n,
              const Index& columns = all) const {
    if (o.packed) return x(slice(first, first + n), head, columns);
    if (o.heads_first) return x(b, head, slice(first, first + n), columns);
    return x(b, slice(first, first + n), head, columns);
  }

  const AttentionOptions& o;
  const Value batch = dynamic("batch"), kv_heads = dynamic("kv_heads");
  const Value queries = dynamic("queries"), keys = dynamic("keys");
  const Value scale = Scalar("scale", f32), left = Scalar("left", i32), right = Scalar("right", i32);
  const Value longest_query = Scalar("longest_query", i32), longest_key = Scalar("longest_key", i32);
  const Tensor query_starts = Tensor("query_starts", {batch + 1}, i32),
               key_starts = Tensor("key_starts", {batch + 1}, i32);
};

// A sequence of a call, read by its block. Queries and keys end together: query i stands at key i + ahead.
struct AttentionSequence {
  AttentionSequence(const AttentionCall& c, const Value& b)
      : o(c.o),
        query_start(o.packed ? Value(c.query_starts(b)) : Value(0)),
        key_start(o.packed ? Value(c.key_starts(b)) : Value(0)),
        queries(o.packed ? Value(c.query_starts(b + 1) - query_start) : c.queries),
        keys(o.packed ? Value(c.key_starts(b + 1) - key_start) : c.keys),
        ahead(keys - queries),
        left(c.left),
        right(o.causal ? Value(0) : c.right) {}

  bool ends() const { return o.causal || o.right; }  // whether a query sees no key from some position on

  // The keys that queries [i, i + m) can see: from this one, up to this one.
  Value first_key(const Value& i) const { return o.left ? Value(max(i + ahead - left, 0)) : Value(0); }
  Value last_key(const Value& i, int64_t m) const {
    return ends() ? Value(max(min(i + ahead + right + m, keys), 0)) : keys;
  }
  // The queries that can see keys [j, j + n).
  Value first_query(const Value& j) const { return ends() ? Value(max(j - ahead - right, 0)) : Value(0); }
  Value last_query(const Value& j, int64_t n) const {
    return o.left ? Value(max(min(j - ahead + left + n, queries), 0)) : queries;
  }
  // Whether one of the queries [i, i + m) does not see one of the keys [j, j + n).
  Value masked(const Value& i, int64_t m, const Value& j, int64_t n) const {
    Value out = j + n > keys;
    if (ends()) out = out || j + (n - 1) > i + ahead + right;
    if (o.left) out = out || j < i + (m - 1) + ahead - left;
    return out;
  }
  Value sees(const Value& i, const Value& j) const {
    Value out = j < keys;
    if (ends()) out = out && j <= i + ahead + right;
    if (o.left) out = out && j >= i + ahead - left;
    return out;
  }

  const AttentionOptions& o;
  const Value query_start, key_start, queries, keys, ahead, left, right;
};

}  // namespace tilewright::kernels
