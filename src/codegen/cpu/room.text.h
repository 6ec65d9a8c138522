// Memory that a kernel keeps from call to call; calls at the same time have a piece each. Put before a kernel that
// needs any.
extern "C" void* aligned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ bytes);
extern "C" void free(void* p);

// So many bytes, which have their number in the 64 before them; none: no memory, or none wanted.
static char* tw_borrow(char** kept, int64_t bytes) {
  if (bytes <= 0) return nullptr;
  char* p = __atomic_exchange_n(kept, (char*)nullptr, __ATOMIC_ACQ_REL);
  if (!p || *(int64_t*)p < bytes) {
    free(p);
    p = (char*)aligned_alloc(64, (__SIZE_TYPE__)(64 + (bytes + 63) / 64 * 64));
    if (!p) return nullptr;
    *(int64_t*)p = bytes;
  }
  return p + 64;
}
static void tw_return(char** kept, char* p) {
  if (p) free(__atomic_exchange_n(kept, p - 64, __ATOMIC_ACQ_REL));
}
