#include "support/c_words.h"

#include <algorithm>
#include <map>
#include <regex>
#include <string>

namespace tilewright {
namespace {

// clang-format off
constexpr std::string_view kKeywords = R"(
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires restrict return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile
wchar_t while xor xor_eq
)";

// Those that the standard headers of C name, in strict C and with the extensions of a C library.
constexpr std::string_view kTypes = R"(
FILE atomic_bool atomic_char atomic_char16_t atomic_char32_t atomic_flag atomic_int atomic_int_fast16_t
atomic_int_fast32_t atomic_int_fast64_t atomic_int_fast8_t atomic_int_least16_t atomic_int_least32_t
atomic_int_least64_t atomic_int_least8_t atomic_intmax_t atomic_intptr_t atomic_llong atomic_long atomic_ptrdiff_t
atomic_schar atomic_short atomic_size_t atomic_uchar atomic_uint atomic_uint_fast16_t atomic_uint_fast32_t
atomic_uint_fast64_t atomic_uint_fast8_t atomic_uint_least16_t atomic_uint_least32_t atomic_uint_least64_t
atomic_uint_least8_t atomic_uintmax_t atomic_uintptr_t atomic_ullong atomic_ulong atomic_ushort atomic_wchar_t
blkcnt_t blksize_t caddr_t clock_t clockid_t cnd_t daddr_t dev_t div_t double_t fd_mask fd_set fenv_t fexcept_t
float_t fpos_t fpregset_t fsblkcnt_t fsfilcnt_t fsid_t gid_t greg_t gregset_t id_t imaxdiv_t ino_t int16_t int32_t
int64_t int8_t int_fast16_t int_fast32_t int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t
int_least8_t intmax_t intptr_t jmp_buf key_t ldiv_t lldiv_t locale_t loff_t max_align_t mbstate_t mcontext_t
memory_order mode_t mtx_t nlink_t off_t once_flag pid_t pthread_attr_t pthread_barrier_t pthread_barrierattr_t
pthread_cond_t pthread_condattr_t pthread_key_t pthread_mutex_t pthread_mutexattr_t pthread_once_t pthread_rwlock_t
pthread_rwlockattr_t pthread_spinlock_t pthread_t ptrdiff_t quad_t sig_atomic_t sig_t sigevent_t siginfo_t
sigjmp_buf sigset_t sigval_t size_t ssize_t stack_t suseconds_t thrd_t time_t timer_t tss_t u_char u_int u_int16_t
u_int32_t u_int64_t u_int8_t u_long u_quad_t u_short ucontext_t uid_t uint uint16_t uint32_t uint64_t uint8_t
uint_fast16_t uint_fast32_t uint_fast64_t uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t
uintmax_t uintptr_t ulong ushort va_list wctrans_t wctype_t wint_t
)";

constexpr std::string_view kMathFunctions = R"(
acos acosf acosh acoshf acoshl acosl asin asinf asinh asinhf asinhl asinl atan atan2 atan2f atan2l atanf atanh
atanhf atanhl atanl cabs cabsf cabsl cacos cacosf cacosh cacoshf cacoshl cacosl carg cargf cargl casin casinf casinh
casinhf casinhl casinl catan catanf catanh catanhf catanhl catanl cbrt cbrtf cbrtl ccos ccosf ccosh ccoshf ccoshl
ccosl ceil ceilf ceill cexp cexpf cexpl cimag cimagf cimagl clog clogf clogl conj conjf conjl copysign copysignf
copysignl cos cosf cosh coshf coshl cosl cpow cpowf cpowl cproj cprojf cprojl creal crealf creall csin csinf csinh
csinhf csinhl csinl csqrt csqrtf csqrtl ctan ctanf ctanh ctanhf ctanhl ctanl erf erfc erfcf erfcl erff erfl exp
exp10 exp10f exp2 exp2f exp2l expf expl expm1 expm1f expm1l fabs fabsf fabsl fdim fdimf fdiml floor floorf floorl
fma fmaf fmal fmax fmaxf fmaxl fmin fminf fminl fmod fmodf fmodl frexp frexpf frexpl hypot hypotf hypotl ilogb
ilogbf ilogbl ldexp ldexpf ldexpl lgamma lgammaf lgammal llrint llrintf llrintl llround llroundf llroundl log log10
log10f log10l log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf logl lrint lrintf lrintl lround lroundf
lroundl modf modff modfl nan nanf nanl nearbyint nearbyintf nearbyintl nextafter nextafterf nextafterl nexttoward
nexttowardf nexttowardl pow powf powl remainder remainderf remainderl remquo remquof remquol rint rintf rintl round
roundf roundl scalbln scalblnf scalblnl scalbn scalbnf scalbnl sin sincos sincosf sinf sinh sinhf sinhl sinl sqrt
sqrtf sqrtl tan tanf tanh tanhf tanhl tanl tgamma tgammaf tgammal trunc truncf truncl
)";

constexpr std::string_view kFunctions = R"(
_Exit abort abs aligned_alloc alloca asctime at_quick_exit atexit atof atoi atol atoll bsearch calloc clearerr clock
ctime difftime div exit fclose feof ferror fflush fgetc fgetpos fgets fopen fprintf fputc fputs fread free freopen
fscanf fseek fsetpos fstat ftell fwrite getc getchar getenv gets gmtime imaxabs imaxdiv isalnum isalpha isblank
iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit labs ldiv llabs lldiv localeconv localtime
longjmp lstat malloc mblen mbstowcs mbtowc memchr memcmp memcpy memmove memset mktime perror printf pthread_atfork
putc putchar puts qsort quick_exit raise rand realloc remove rename rewind scanf setbuf setlocale setvbuf signal
snprintf sprintf srand sscanf stat strcat strchr strcmp strcoll strcpy strcspn strerror strftime strlen strncat
strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtoimax strtok strtol strtold strtoll strtoul strtoull
strtoumax strxfrm system time tmpfile tmpnam tolower toupper ungetc vfprintf vfscanf vprintf vscanf vsnprintf
vsprintf vsscanf wcstombs wctomb
)";

constexpr std::string_view kMacros = R"(
AIO_PRIO_DELTA_MAX BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN BOOL_MAX BOOL_WIDTH BUFSIZ
BYTE_ORDER CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX CHAR_MIN CHAR_WIDTH CLOCKS_PER_SEC CLOSE_RANGE_CLOEXEC
CLOSE_RANGE_UNSHARE CMPLX CMPLXF CMPLXF128 CMPLXF32 CMPLXF32X CMPLXF64 CMPLXF64X CMPLXL COLL_WEIGHTS_MAX CSIGNAL
DECIMAL_DIG DELAYTIMER_MAX E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF
EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET
EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ
EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT
EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP
ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC
ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN
ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD
EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS
ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH
EUSERS EWOULDBLOCK EXDEV EXFULL EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO
FILENAME_MAX FOPEN_MAX F_LOCK F_OK F_TEST F_TLOCK F_ULOCK HOST_NAME_MAX HUGE_VAL HUGE_VALF HUGE_VALL HUGE_VAL_F128
HUGE_VAL_F32 HUGE_VAL_F32X HUGE_VAL_F64 HUGE_VAL_F64X I INFINITY IOV_MAX LINE_MAX LITTLE_ENDIAN LLONG_MAX LLONG_MIN
LLONG_WIDTH LOGIN_NAME_MAX LONG_BIT LONG_LONG_MAX LONG_LONG_MIN LONG_MAX LONG_MIN LONG_WIDTH L_INCR L_SET L_XTND
L_ctermid L_cuserid L_tmpnam MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX
MINSIGSTKSZ MQ_PRIO_MAX M_1_PI M_1_PIf M_1_PIf128 M_1_PIf32 M_1_PIf32x M_1_PIf64 M_1_PIf64x M_1_PIl M_2_PI M_2_PIf
M_2_PIf128 M_2_PIf32 M_2_PIf32x M_2_PIf64 M_2_PIf64x M_2_PIl M_2_SQRTPI M_2_SQRTPIf M_2_SQRTPIf128 M_2_SQRTPIf32
M_2_SQRTPIf32x M_2_SQRTPIf64 M_2_SQRTPIf64x M_2_SQRTPIl M_E M_Ef M_Ef128 M_Ef32 M_Ef32x M_Ef64 M_Ef64x M_El M_LN10
M_LN10f M_LN10f128 M_LN10f32 M_LN10f32x M_LN10f64 M_LN10f64x M_LN10l M_LN2 M_LN2f M_LN2f128 M_LN2f32 M_LN2f32x
M_LN2f64 M_LN2f64x M_LN2l M_LOG10E M_LOG10Ef M_LOG10Ef128 M_LOG10Ef32 M_LOG10Ef32x M_LOG10Ef64 M_LOG10Ef64x
M_LOG10El M_LOG2E M_LOG2Ef M_LOG2Ef128 M_LOG2Ef32 M_LOG2Ef32x M_LOG2Ef64 M_LOG2Ef64x M_LOG2El M_PI M_PI_2 M_PI_2f
M_PI_2f128 M_PI_2f32 M_PI_2f32x M_PI_2f64 M_PI_2f64x M_PI_2l M_PI_4 M_PI_4f M_PI_4f128 M_PI_4f32 M_PI_4f32x
M_PI_4f64 M_PI_4f64x M_PI_4l M_PIf M_PIf128 M_PIf32 M_PIf32x M_PIf64 M_PIf64x M_PIl M_SQRT1_2 M_SQRT1_2f
M_SQRT1_2f128 M_SQRT1_2f32 M_SQRT1_2f32x M_SQRT1_2f64 M_SQRT1_2f64x M_SQRT1_2l M_SQRT2 M_SQRT2f M_SQRT2f128
M_SQRT2f32 M_SQRT2f32x M_SQRT2f64 M_SQRT2f64x M_SQRT2l NAME_MAX NAN NFDBITS NGREG NGROUPS_MAX NL_ARGMAX NL_LANGMAX
NL_MSGMAX NL_NMAX NL_SETMAX NL_TEXTMAX NSIG NULL NZERO ONCE_FLAG_INIT PATH_MAX PDP_ENDIAN PIPE_BUF PTRDIFF_MAX
PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir RAND_MAX RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT RE_DUP_MAX RTSIG_MAX
R_OK SCHAR_MAX SCHAR_MIN SCHAR_WIDTH SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET SEM_VALUE_MAX SHRT_MAX SHRT_MIN
SHRT_WIDTH SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGEV_NONE SIGEV_SIGNAL SIGEV_THREAD SIGEV_THREAD_ID SIGFPE
SIGHUP SIGILL SIGINT SIGIO SIGIOT SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSEGV SIGSTKFLT
SIGSTKSZ SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU
SIGXFSZ SIZE_MAX SIZE_WIDTH SNAN SNANF SNANF128 SNANF32 SNANF32X SNANF64 SNANF64X SNANL SSIZE_MAX STDERR_FILENO
STDIN_FILENO STDOUT_FILENO TEMP_FAILURE_RETRY TIME_UTC TMP_MAX TSS_DTOR_ITERATIONS TTY_NAME_MAX UCHAR_MAX
UCHAR_WIDTH ULLONG_MAX ULLONG_WIDTH ULONG_LONG_MAX ULONG_MAX ULONG_WIDTH USHRT_MAX USHRT_WIDTH WCHAR_MAX WCHAR_MIN
WCHAR_WIDTH WCONTINUED WEOF WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WINT_MAX WINT_MIN
WINT_WIDTH WNOHANG WNOWAIT WORD_BIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED W_OK XATTR_LIST_MAX XATTR_NAME_MAX
XATTR_SIZE_MAX X_OK _tolower _toupper acos acosh alloca asin asinh assert assert_perror atan atan2 atanh
atomic_compare_exchange_strong atomic_compare_exchange_strong_explicit atomic_compare_exchange_weak
atomic_compare_exchange_weak_explicit atomic_exchange atomic_exchange_explicit atomic_fetch_add
atomic_fetch_add_explicit atomic_fetch_and atomic_fetch_and_explicit atomic_fetch_or atomic_fetch_or_explicit
atomic_fetch_sub atomic_fetch_sub_explicit atomic_fetch_xor atomic_fetch_xor_explicit atomic_flag_clear
atomic_flag_clear_explicit atomic_flag_test_and_set atomic_flag_test_and_set_explicit atomic_init
atomic_is_lock_free atomic_load atomic_load_explicit atomic_signal_fence atomic_store atomic_store_explicit
atomic_thread_fence be16toh be32toh be64toh carg cbrt ceil cimag complex conj copysign cos cosh cproj creal erf erfc
errno exp exp2 expm1 fabs fdim floor fma fmax fmin fmod fpclassify frexp htobe16 htobe32 htobe64 htole16 htole32
htole64 hypot ilogb isalnum isalnum_l isalpha isalpha_l isascii isascii_l isblank isblank_l iscntrl iscntrl_l
isdigit isdigit_l isfinite isgraph isgraph_l isgreater isgreaterequal isinf isless islessequal islessgreater islower
islower_l isnan isnormal isprint isprint_l ispunct ispunct_l isspace isspace_l issubnormal isunordered isupper
isupper_l isxdigit isxdigit_l kill_dependency ldexp le16toh le32toh le64toh lgamma linux llrint llround log log10
log1p log2 logb lrint lround math_errhandling nearbyint nextafter nexttoward noreturn offsetof pow
pthread_cleanup_pop pthread_cleanup_pop_restore_np pthread_cleanup_push pthread_cleanup_push_defer_np remainder
remquo rint round sa_handler sa_sigaction scalb scalbln scalbn sched_priority setjmp si_addr si_addr_lsb si_arch
si_band si_call_addr si_fd si_int si_lower si_overrun si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid
si_uid si_upper si_utime si_value sigev_notify_attributes sigev_notify_function sigmask signbit sigsetjmp sin sinh
sqrt stderr stdin stdout strdupa strndupa tan tanh tgamma toascii toascii_l trunc unix va_arg va_copy va_end
va_start
)";
// clang-format on

// Macros of limits, formats, signals and the like, whose names are made alike.
const std::regex& families_of_macros() {
  static const std::regex families(
      "(PRI|SCN)[diouxXbB](8|16|32|64|FAST|LEAST|MAX|PTR)\\w*"
      "|U?INT(8|16|32|64|MAX|PTR|_FAST\\d+|_LEAST\\d+)?_(MAX|MIN|WIDTH|C)"
      "|(FLT|DBL|LDBL|FE|FP|LC|ATOMIC|CLOCK|SIG|SA|SI|ILL|BUS|CLD|TRAP|POLL|SS|TIMER|SEGV|FPE|PTHREAD|SCHED|CLONE|CPU"
      "|ADJ|MOD|STA|REG)_[A-Z0-9_]+(f\\d+x?|F\\d+X?)?"
      "|FLT\\d+X?_\\w+");
  return families;
}

void add(std::map<std::string, CWord, std::less<>>& words, std::string_view text, CWord kind) {
  for (size_t at = text.find_first_not_of('\n'); at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    words.emplace(text.substr(at, end - at), kind);
    at = std::min(text.find_first_not_of(" \n", end), text.size());
  }
}

}  // namespace

CWord c_word(std::string_view name) {
  static const auto words = [] {
    std::map<std::string, CWord, std::less<>> out;  // the first meaning of a name counts
    add(out, kKeywords, CWord::Keyword);
    add(out, kMathFunctions, CWord::MathFunction);
    add(out, kTypes, CWord::Type);
    add(out, kMacros, CWord::Macro);
    add(out, kFunctions, CWord::Function);
    return out;
  }();
  if (const auto at = words.find(name); at != words.end()) return at->second;
  const bool shouts = !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
  return shouts && std::regex_match(name.begin(), name.end(), families_of_macros()) ? CWord::Macro : CWord::None;
}

}  // namespace tilewright
