// Vectors of LANES doubles: 1 (any compiler), 2 (SSE2, NEON), or 4 (AVX2 with FMA). Included once per
// instruction set, inside its namespace. Results are identical for all of them.

#if LANES == 4
typedef __m256d vec;
typedef __m256i ivec;
typedef uint64_t uvec __attribute__((vector_size(32)));
#elif LANES == 2
typedef double vec __attribute__((vector_size(16)));
typedef int64_t ivec __attribute__((vector_size(16)));
typedef uint64_t uvec __attribute__((vector_size(16)));
#else
typedef double vec;
typedef int64_t ivec;
typedef uint64_t uvec;
#endif

template <class V, class T> INLINE V load(const T* from) { V v; memcpy(&v, from, sizeof v); return v; }
INLINE vec all(double x) { return vec{} + x; }
template <class V> INLINE void add(double* to, V v) { v += load<V>(to); memcpy(to, &v, sizeof v); }
INLINE ivec bits(vec v) { ivec b; memcpy(&b, &v, sizeof b); return b; }
INLINE ivec shifted(ivec v, int by) { return (ivec)((uvec)v << by); }  // also if it is negative
INLINE vec only(ivec mask, vec v) { mask &= bits(v); memcpy(&v, &mask, sizeof v); return v; }  // or 0

#if LANES == 1
INLINE ivec below(vec a, vec b) { return -(ivec)(a < b); }
INLINE ivec equal(vec a, vec b) { return -(ivec)(a == b); }
INLINE bool any(ivec mask) { return mask; }
#else
INLINE ivec below(vec a, vec b) { return (ivec)(a < b); }
INLINE ivec equal(vec a, vec b) { return (ivec)(a == b); }
#if LANES == 4
INLINE bool any(ivec mask) { return _mm256_movemask_pd((vec)mask); }
#else
INLINE bool any(ivec mask) { return mask[0] | mask[1]; }
#endif
#endif

// The lower (higher) of two values; b if a is NaN.
#if LANES == 4
INLINE vec least(vec a, vec b) { return _mm256_min_pd(a, b); }
INLINE vec most(vec a, vec b) { return _mm256_max_pd(a, b); }
#elif LANES == 2 && defined(__SSE2__)
INLINE vec least(vec a, vec b) { return _mm_min_pd(a, b); }
INLINE vec most(vec a, vec b) { return _mm_max_pd(a, b); }
#else
INLINE vec least(vec a, vec b) { return a < b ? a : b; }
INLINE vec most(vec a, vec b) { return a > b ? a : b; }
#endif

// k / n, correctly rounded, for integers k <= n <= 2^20, given 1 / n. With FMA this needs no division.
// The remainder k - q n of the first estimate q is exact, so the second estimate has an error below
// 2^-51 ulp before rounding. A k / n that is not a double lies at least 2^-21 ulp from a midpoint.
INLINE vec quotient(vec k, vec n, vec inverse) {
#if LANES == 4
  vec q = k * inverse;
  return _mm256_fmadd_pd(_mm256_fnmadd_pd(q, n, k), inverse, q);
#else
  (void)inverse;
  return k / n;
#endif
}

// Adds lane j of a, b, c and d to the four doubles at to[j] + by.
INLINE void scatter(vec a, vec b, vec c, vec d, double* const* to, size_t by) {
#if LANES == 4
  vec ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
  vec cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
  add(to[0] + by, _mm256_permute2f128_pd(ab0, cd0, 0x20));
  add(to[1] + by, _mm256_permute2f128_pd(ab1, cd1, 0x20));
  add(to[2] + by, _mm256_permute2f128_pd(ab0, cd0, 0x31));
  add(to[3] + by, _mm256_permute2f128_pd(ab1, cd1, 0x31));
#elif LANES == 2
  add(to[0] + by, vec{a[0], b[0]}); add(to[0] + by + 2, vec{c[0], d[0]});
  add(to[1] + by, vec{a[1], b[1]}); add(to[1] + by + 2, vec{c[1], d[1]});
#else
  add(to[0] + by, a); add(to[0] + by + 1, b); add(to[0] + by + 2, c); add(to[0] + by + 3, d);
#endif
}

// Adds lane j of a and b to the two doubles at to[j].
INLINE void scatter(vec a, vec b, double* const* to) {
#if LANES == 4
  const vec ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
  add(to[0], _mm256_castpd256_pd128(ab0));
  add(to[1], _mm256_castpd256_pd128(ab1));
  add(to[2], _mm256_extractf128_pd(ab0, 1));
  add(to[3], _mm256_extractf128_pd(ab1, 1));
#elif LANES == 2
  add(to[0], vec{a[0], b[0]});
  add(to[1], vec{a[1], b[1]});
#else
  add(to[0], a); add(to[0] + 1, b);
#endif
}
