// Square blocks whose rows and columns change places in registers. Put before a kernel that has any.
#if defined __GNUC__ && !defined __clang__
#define TW_EXCHANGE
// Rounds exchange halves, quarters, ... between pairs of rows. The round is a parameter: what is shuffled where is then
// known before loops are unrolled, and no work.
template <int n, int half = n / 2, class V>
[[gnu::always_inline]] static inline void tw_exchange(V* row) {
  decltype(row[0] == row[0]) low, high;
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) low[k] = k & half ? n + k - half : k, high[k] = k & half ? n + k : k + half;
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (i & half) continue;
    const V a = row[i], b = row[i + half];
    row[i] = __builtin_shuffle(a, b, low), row[i + half] = __builtin_shuffle(a, b, high);
  }
  if constexpr (half > 1) tw_exchange<n, half / 2>(row);
}
#endif
