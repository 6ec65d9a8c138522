/* How a kernel on a device reports prints and failed assertions; the head of a kernel that has some. */
struct tw_reports {
  unsigned used;     /* words taken; may pass capacity */
  unsigned capacity; /* words there are */
  unsigned end;      /* before the first report for which there was no room; else capacity */
  unsigned lost;     /* reports for which there was no room */
  unsigned failed;   /* 1 + site of one failed assertion, whether or not there was room */
  unsigned reserved;
  unsigned long long words[1];
};
/* Room for one report of `count` values, whose place the caller writes them to; null if there is none. A report is:
   site and count, block (x, y), block z and thread x, thread (y, z), two 32-bit numbers a word, low first; then the
   values as kernel_abi.text.h writes them. */
static __device__ unsigned long long* tw_report(tw_reports* reports, int site, unsigned count) {
  const unsigned at = atomicAdd(&reports->used, 4u + count);
  if (at + 4u + count > reports->capacity || at + 4u + count < at) {
    atomicMin(&reports->end, at);
    atomicAdd(&reports->lost, 1u);
    return nullptr;
  }
  unsigned long long* to = reports->words + at;
  to[0] = (unsigned)site | (unsigned long long)count << 32;
  to[1] = blockIdx.x | (unsigned long long)blockIdx.y << 32;
  to[2] = blockIdx.z | (unsigned long long)threadIdx.x << 32;
  to[3] = threadIdx.y | (unsigned long long)threadIdx.z << 32;
  return to + 4;
}
/* The same for a failed assertion: the run is an error even where its place is lost. */
static __device__ unsigned long long* tw_report_failure(tw_reports* reports, int site, unsigned count) {
  atomicExch(&reports->failed, 1u + (unsigned)site);
  return tw_report(reports, site, count);
}
