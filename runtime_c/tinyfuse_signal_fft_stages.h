/* Transforms of tinyfuse_signal_fft.h in one dtype; that header includes this one once for each dtype.
   TINYFUSE_FFT(name) adds the dtype's suffix to a function's name, TINYFUSE_FFT_SCALAR is its type. */
#ifdef TINYFUSE_FFT

typedef struct {
    TINYFUSE_FFT_SCALAR r, i;
} TINYFUSE_FFT(complex);

TINYFUSE_INLINE TINYFUSE_FFT(complex) TINYFUSE_FFT(sum)(TINYFUSE_FFT(complex) a, TINYFUSE_FFT(complex) b)
{
    a.r = TINYFUSE_FFT(add)(a.r, b.r);
    a.i = TINYFUSE_FFT(add)(a.i, b.i);
    return a;
}

TINYFUSE_INLINE TINYFUSE_FFT(complex) TINYFUSE_FFT(difference)(TINYFUSE_FFT(complex) a, TINYFUSE_FFT(complex) b)
{
    a.r = TINYFUSE_FFT(sub)(a.r, b.r);
    a.i = TINYFUSE_FFT(sub)(a.i, b.i);
    return a;
}

TINYFUSE_INLINE TINYFUSE_FFT(complex) TINYFUSE_FFT(product)(TINYFUSE_FFT(complex) a, TINYFUSE_FFT(complex) b)
{
    TINYFUSE_FFT(complex) p;
    p.r = TINYFUSE_FFT(product_difference)(a.r, b.r, a.i, b.i);
    p.i = TINYFUSE_FFT(product_sum)(a.r, b.i, a.i, b.r);
    return p;
}

TINYFUSE_INLINE TINYFUSE_FFT(complex) TINYFUSE_FFT(part)(TINYFUSE_FFT(complex) a, int32_t by)
{
    a.r = TINYFUSE_FFT(divide)(a.r, by);
    a.i = TINYFUSE_FFT(divide)(a.i, by);
    return a;
}

TINYFUSE_INLINE TINYFUSE_FFT(complex) TINYFUSE_FFT(mirrored)(TINYFUSE_FFT(complex) a)
{
    a.i = TINYFUSE_FFT_NEGATED(a.i);
    return a;
}

/* Butterflies over `length` adjacent elements. The inputs of one butterfly are `length` apart, the factors of
   adjacent butterflies `stride` apart. */
TINYFUSE_INLINE void TINYFUSE_FFT(radix_2)(TINYFUSE_FFT(complex) *w, const TINYFUSE_FFT(complex) *factors,
                                  int32_t length, int32_t stride)
{
    int32_t u;
    for (u = 0; u < length; ++u, ++w) {
        const TINYFUSE_FFT(complex) x = TINYFUSE_FFT(part)(w[0], 2);
        const TINYFUSE_FFT(complex) y = TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[length], 2), factors[u * stride]);
        w[0] = TINYFUSE_FFT(sum)(x, y);
        w[length] = TINYFUSE_FFT(difference)(x, y);
    }
}

TINYFUSE_INLINE void TINYFUSE_FFT(radix_4)(TINYFUSE_FFT(complex) *w, const TINYFUSE_FFT(complex) *factors,
                                  int32_t length, int32_t stride, int inverse)
{
    int32_t u;
    for (u = 0; u < length; ++u, ++w) {
        const TINYFUSE_FFT(complex) x = TINYFUSE_FFT(part)(w[0], 4);
        const TINYFUSE_FFT(complex) a = TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[length], 4), factors[u * stride]);
        const TINYFUSE_FFT(complex) b =
            TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[2 * length], 4), factors[2 * u * stride]);
        const TINYFUSE_FFT(complex) c =
            TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[3 * length], 4), factors[3 * u * stride]);
        const TINYFUSE_FFT(complex) even = TINYFUSE_FFT(sum)(x, b), rest = TINYFUSE_FFT(difference)(x, b);
        const TINYFUSE_FFT(complex) odd = TINYFUSE_FFT(sum)(a, c), rotated = TINYFUSE_FFT(difference)(a, c);
        TINYFUSE_FFT(complex) plus, minus;
        plus.r = TINYFUSE_FFT(add)(rest.r, rotated.i);
        plus.i = TINYFUSE_FFT(sub)(rest.i, rotated.r);
        minus.r = TINYFUSE_FFT(sub)(rest.r, rotated.i);
        minus.i = TINYFUSE_FFT(add)(rest.i, rotated.r);
        w[0] = TINYFUSE_FFT(sum)(even, odd);
        w[length] = inverse ? minus : plus;
        w[2 * length] = TINYFUSE_FFT(difference)(even, odd);
        w[3 * length] = inverse ? plus : minus;
    }
}

TINYFUSE_INLINE void TINYFUSE_FFT(radix_3)(TINYFUSE_FFT(complex) *w, const TINYFUSE_FFT(complex) *factors,
                                  int32_t length, int32_t stride)
{
    const TINYFUSE_FFT_SCALAR root = factors[stride * length].i;
    int32_t u;
    for (u = 0; u < length; ++u, ++w) {
        const TINYFUSE_FFT(complex) x = TINYFUSE_FFT(part)(w[0], 3);
        const TINYFUSE_FFT(complex) a = TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[length], 3), factors[u * stride]);
        const TINYFUSE_FFT(complex) b =
            TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[2 * length], 3), factors[2 * u * stride]);
        const TINYFUSE_FFT(complex) both = TINYFUSE_FFT(sum)(a, b), rest = TINYFUSE_FFT(difference)(a, b);
        const TINYFUSE_FFT_SCALAR middle_r = TINYFUSE_FFT(sub)(x.r, TINYFUSE_FFT(half)(both.r));
        const TINYFUSE_FFT_SCALAR middle_i = TINYFUSE_FFT(sub)(x.i, TINYFUSE_FFT(half)(both.i));
        const TINYFUSE_FFT_SCALAR rotated_r = TINYFUSE_FFT(mul)(rest.r, root);
        const TINYFUSE_FFT_SCALAR rotated_i = TINYFUSE_FFT(mul)(rest.i, root);
        w[0] = TINYFUSE_FFT(sum)(x, both);
        w[length].r = TINYFUSE_FFT(sub)(middle_r, rotated_i);
        w[length].i = TINYFUSE_FFT(add)(middle_i, rotated_r);
        w[2 * length].r = TINYFUSE_FFT(add)(middle_r, rotated_i);
        w[2 * length].i = TINYFUSE_FFT(sub)(middle_i, rotated_r);
    }
}

/* x + a * one + b * two. */
TINYFUSE_INLINE TINYFUSE_FFT_SCALAR TINYFUSE_FFT(weighed)(TINYFUSE_FFT_SCALAR x, TINYFUSE_FFT_SCALAR a,
                                                 TINYFUSE_FFT_SCALAR one, TINYFUSE_FFT_SCALAR b,
                                                 TINYFUSE_FFT_SCALAR two)
{
    return TINYFUSE_FFT(add)(TINYFUSE_FFT(add)(x, TINYFUSE_FFT(mul)(a, one)), TINYFUSE_FFT(mul)(b, two));
}

TINYFUSE_INLINE void TINYFUSE_FFT(radix_5)(TINYFUSE_FFT(complex) *w, const TINYFUSE_FFT(complex) *factors,
                                  int32_t length, int32_t stride)
{
    const TINYFUSE_FFT(complex) one = factors[stride * length], two = factors[2 * stride * length];
    int32_t u;
    for (u = 0; u < length; ++u, ++w) {
        const TINYFUSE_FFT(complex) x = TINYFUSE_FFT(part)(w[0], 5);
        const TINYFUSE_FFT(complex) a = TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[length], 5), factors[u * stride]);
        const TINYFUSE_FFT(complex) b =
            TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[2 * length], 5), factors[2 * u * stride]);
        const TINYFUSE_FFT(complex) c =
            TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[3 * length], 5), factors[3 * u * stride]);
        const TINYFUSE_FFT(complex) d =
            TINYFUSE_FFT(product)(TINYFUSE_FFT(part)(w[4 * length], 5), factors[4 * u * stride]);
        const TINYFUSE_FFT(complex) outer = TINYFUSE_FFT(sum)(a, d), outer_rest = TINYFUSE_FFT(difference)(a, d);
        const TINYFUSE_FFT(complex) inner = TINYFUSE_FFT(sum)(b, c), inner_rest = TINYFUSE_FFT(difference)(b, c);
        TINYFUSE_FFT(complex) near_sum, far_sum, near_rotated, far_rotated;
        near_sum.r = TINYFUSE_FFT(weighed)(x.r, outer.r, one.r, inner.r, two.r);
        near_sum.i = TINYFUSE_FFT(weighed)(x.i, outer.i, one.r, inner.i, two.r);
        far_sum.r = TINYFUSE_FFT(weighed)(x.r, outer.r, two.r, inner.r, one.r);
        far_sum.i = TINYFUSE_FFT(weighed)(x.i, outer.i, two.r, inner.i, one.r);
        near_rotated.r =
            TINYFUSE_FFT(add)(TINYFUSE_FFT(mul)(outer_rest.i, one.i), TINYFUSE_FFT(mul)(inner_rest.i, two.i));
        near_rotated.i = TINYFUSE_FFT(sub)(TINYFUSE_FFT_NEGATED(TINYFUSE_FFT(mul)(outer_rest.r, one.i)),
                                        TINYFUSE_FFT(mul)(inner_rest.r, two.i));
        far_rotated.r = TINYFUSE_FFT(add)(TINYFUSE_FFT_NEGATED(TINYFUSE_FFT(mul)(outer_rest.i, two.i)),
                                       TINYFUSE_FFT(mul)(inner_rest.i, one.i));
        far_rotated.i =
            TINYFUSE_FFT(sub)(TINYFUSE_FFT(mul)(outer_rest.r, two.i), TINYFUSE_FFT(mul)(inner_rest.r, one.i));
        w[0] = TINYFUSE_FFT(sum)(x, TINYFUSE_FFT(sum)(outer, inner));
        w[length] = TINYFUSE_FFT(difference)(near_sum, near_rotated);
        w[2 * length] = TINYFUSE_FFT(sum)(far_sum, far_rotated);
        w[3 * length] = TINYFUSE_FFT(difference)(far_sum, far_rotated);
        w[4 * length] = TINYFUSE_FFT(sum)(near_sum, near_rotated);
    }
}

/* Runs all stages over work [points], which is in the input order of the first stage. */
TINYFUSE_INLINE void TINYFUSE_FFT(transform)(const tinyfuse_fft *p, TINYFUSE_FFT(complex) *work,
                                  const TINYFUSE_FFT(complex) *factors)
{
    int32_t length = 1, stage = 0, at;
    while (p->radices[stage] != 0) {
        ++stage;
    }
    while (--stage >= 0) {
        const int32_t radix = p->radices[stage], block = length * radix, stride = p->points / block;
        for (at = 0; at < p->points; at += block) {
            if ((p->used & 1 << 4) != 0 && radix == 4) {
                TINYFUSE_FFT(radix_4)(work + at, factors, length, stride, p->inverse);
            } else if ((p->used & 1 << 2) != 0 && radix == 2) {
                TINYFUSE_FFT(radix_2)(work + at, factors, length, stride);
            } else if ((p->used & 1 << 3) != 0 && radix == 3) {
                TINYFUSE_FFT(radix_3)(work + at, factors, length, stride);
            } else if ((p->used & 1 << 5) != 0) {
                TINYFUSE_FFT(radix_5)(work + at, factors, length, stride);
            } else {
                /* the plan has no other radix */
            }
        }
        length = block;
    }
}

/* in [count][samples] with samples <= 2 * points, zero-padded; out [count][2 * points + 2], real and imaginary
   parts interleaved. factors [points][2] are those of the stages, halves [points / 2][2] those of the last pass.
   places [points]: input index of each element of the first stage. */
TINYFUSE_INLINE void TINYFUSE_FFT(forward)(const tinyfuse_fft *p, const TINYFUSE_FFT_SCALAR *in,
                                  TINYFUSE_FFT_SCALAR *out, const TINYFUSE_FFT_SCALAR *factors,
                                  const TINYFUSE_FFT_SCALAR *halves, const uint16_t *places, int32_t count,
                                  int32_t samples)
{
    const TINYFUSE_FFT(complex) *const twiddles = (const TINYFUSE_FFT(complex) *)(const void *)halves;
    const int32_t points = p->points;
    int32_t k;
    for (; count > 0; --count, in += samples, out += 2 * points + 2) {
        TINYFUSE_FFT(complex) *const work = (TINYFUSE_FFT(complex) *)(void *)out;
        TINYFUSE_FFT(complex) first;
        for (k = 0; k < points; ++k) {
            TINYFUSE_FFT(complex) *const w = &work[places[k]];
            w->r = 2 * k < samples ? in[2 * k] : (TINYFUSE_FFT_SCALAR)0;
            w->i = 2 * k + 1 < samples ? in[2 * k + 1] : (TINYFUSE_FFT_SCALAR)0;
        }
        TINYFUSE_FFT(transform)(p, work, (const TINYFUSE_FFT(complex) *)(const void *)factors);
        first = TINYFUSE_FFT(part)(work[0], 2);
        work[0].r = TINYFUSE_FFT(add)(first.r, first.i);
        work[points].r = TINYFUSE_FFT(sub)(first.r, first.i);
        work[0].i = work[points].i = 0;
        for (k = 1; k <= points / 2; ++k) {
            const TINYFUSE_FFT(complex) low = TINYFUSE_FFT(part)(work[k], 2);
            const TINYFUSE_FFT(complex) high = TINYFUSE_FFT(part)(TINYFUSE_FFT(mirrored)(work[points - k]), 2);
            const TINYFUSE_FFT(complex) both = TINYFUSE_FFT(sum)(low, high);
            const TINYFUSE_FFT(complex) rotated =
                TINYFUSE_FFT(product)(TINYFUSE_FFT(difference)(low, high), twiddles[k - 1]);
            work[k].r = TINYFUSE_FFT(half_sum)(both.r, rotated.r);
            work[k].i = TINYFUSE_FFT(half_sum)(both.i, rotated.i);
            work[points - k].r = TINYFUSE_FFT(half_difference)(both.r, rotated.r);
            work[points - k].i = TINYFUSE_FFT(half_difference)(rotated.i, both.i);
        }
    }
}

/* The inverse transform: in [count][2 * points + 2], out [count][2 * points]. */
TINYFUSE_INLINE void TINYFUSE_FFT(backward)(const tinyfuse_fft *p, const TINYFUSE_FFT_SCALAR *in,
                                  TINYFUSE_FFT_SCALAR *out, const TINYFUSE_FFT_SCALAR *factors,
                                  const TINYFUSE_FFT_SCALAR *halves, const uint16_t *places, int32_t count)
{
    const TINYFUSE_FFT(complex) *const twiddles = (const TINYFUSE_FFT(complex) *)(const void *)halves;
    const int32_t points = p->points;
    int32_t k;
    for (; count > 0; --count, in += 2 * points + 2, out += 2 * points) {
        const TINYFUSE_FFT(complex) *const bins = (const TINYFUSE_FFT(complex) *)(const void *)in;
        TINYFUSE_FFT(complex) *const work = (TINYFUSE_FFT(complex) *)(void *)out;
        TINYFUSE_FFT(complex) first;
        first.r = TINYFUSE_FFT(add)(bins[0].r, bins[points].r);
        first.i = TINYFUSE_FFT(sub)(bins[0].r, bins[points].r);
        work[places[0]] = TINYFUSE_FFT(part)(first, 2);
        for (k = 1; k <= points / 2; ++k) {
            const TINYFUSE_FFT(complex) low = TINYFUSE_FFT(part)(bins[k], 2);
            const TINYFUSE_FFT(complex) high = TINYFUSE_FFT(part)(TINYFUSE_FFT(mirrored)(bins[points - k]), 2);
            const TINYFUSE_FFT(complex) even = TINYFUSE_FFT(sum)(low, high);
            const TINYFUSE_FFT(complex) odd =
                TINYFUSE_FFT(product)(TINYFUSE_FFT(difference)(low, high), twiddles[k - 1]);
            work[places[k]] = TINYFUSE_FFT(sum)(even, odd);
            work[places[points - k]] = TINYFUSE_FFT(mirrored)(TINYFUSE_FFT(difference)(even, odd));
        }
        TINYFUSE_FFT(transform)(p, work, (const TINYFUSE_FFT(complex) *)(const void *)factors);
    }
}

#endif
