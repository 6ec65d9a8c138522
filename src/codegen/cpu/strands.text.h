// Barriers between the strands of a block, which take turns on one thread, so that nothing here is atomic.
struct tw_barrier {
  int64_t count, pending, bytes, completed;
};
static inline void tw_settle(tw_barrier* b) {
  if (b->pending == 0 && b->bytes == 0) b->pending = b->count, ++b->completed;
}
static inline void tw_expect(tw_barrier* b, int64_t bytes) {
  b->bytes += bytes;
  tw_settle(b);
}
// False: more arrive than it counts.
static inline bool tw_arrive(tw_barrier* b) {
  if (b->pending == 0) return false;
  --b->pending;
  tw_settle(b);
  return true;
}

template <class F>
static int tw_ready(const void* f) {
  return (*(const F*)f)();
}
template <class F>
static inline int tw_wait(const tw_call* call, const F& f) {
  return call->wait_for(call->host, tw_ready<F>, &f);
}
static inline int tw_wait_phase(const tw_call* call, const tw_barrier* b, int64_t parity) {
  return tw_wait(call, [=]() -> int { return (b->completed & 1) != (parity & 1); });
}

// Where strands meet that have `count` threads together. -1: more threads come than that.
struct tw_meeting {
  int64_t arrived, held;
};
static inline int tw_meet(const tw_call* call, tw_meeting* m, int64_t threads, int64_t count, bool waits) {
  m->arrived += threads;
  if (m->arrived > count) return -1;
  if (m->arrived == count) {
    m->arrived = 0, ++m->held;
    return 0;
  }
  const int64_t held = m->held;
  return waits ? tw_wait(call, [=]() -> int { return m->held != held; }) : 0;
}

template <class F>
static void tw_strand(void* f) {
  (*(F*)f)();
}
