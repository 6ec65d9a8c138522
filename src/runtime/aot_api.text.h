/* What programs see of the runtime of Tilewright's kernels that were compiled ahead of time. */
#ifndef TILEWRIGHT_RUNTIME_H
#define TILEWRIGHT_RUNTIME_H
#ifdef __cplusplus
extern "C" {
#endif

/* What was wrong with the last call of this thread that did not return 0: "TW4003: scale: argument 0 'A' is null, but
   the program uses it". It lives until the next one. */
const char* tilewright_error_text(void);

#ifdef __cplusplus
}
#endif
#endif
