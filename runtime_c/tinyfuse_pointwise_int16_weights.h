/* 1x1 convolution with stride 1, int8, weights of int16: consecutive pixels by tinyfuse_int16_weights.h. */
#ifndef TINYFUSE_POINTWISE_INT16_WEIGHTS_H
#define TINYFUSE_POINTWISE_INT16_WEIGHTS_H

#include "tinyfuse_pointwise.h"
#include "tinyfuse_int16_weights.h"

/* Converts the inputs of two pixels, in_c > 0 each, a multiple of 4, as columns have them. */
TINYFUSE_INLINE void tinyfuse_widen_two(const int8_t *in, int32_t in_c, int8_t *to)
{
#if TINYFUSE_DSP
    const int8_t *const end = in + in_c;
    uint32_t even, first, second;
    __asm volatile("1:\n\t"
                   "ldr %[second], [%[in], %[in_c]]\n\t"
                   "ldr %[first], [%[in]], #4\n\t"
                   "sxtb16 %[even], %[first]\n\t"
                   "sxtb16 %[first], %[first], ror #8\n\t"
                   "strd %[even], %[first], [%[to]], #8\n\t"
                   "sxtb16 %[even], %[second]\n\t"
                   "sxtb16 %[second], %[second], ror #8\n\t"
                   "strd %[even], %[second], [%[to]], #8\n\t"
                   "cmp %[in], %[end]\n\t"
                   "bne 1b"
                   : [in] "+&r"(in), [to] "+&r"(to), [even] "=&r"(even), [first] "=&r"(first), [second] "=&r"(second)
                   : [in_c] "r"(in_c), [end] "r"(end)
                   : "cc", "memory");
#else
    (void)tinyfuse_widen(in, in_c / 4, to, 16, TINYFUSE_WIDE);
    (void)tinyfuse_widen(in + in_c, in_c / 4, to + 8, 16, TINYFUSE_WIDE);
#endif
}

TINYFUSE_INLINE void tinyfuse_pointwise_int16_weights_body(const tinyfuse_pointwise *p, const int8_t *in,
                                                           int32_t pixels, int8_t *out, const int32_t *pairs,
                                                           int8_t *columns, int form)
{
    tinyfuse_int16_weights s = tinyfuse_int16_weights_of(p->out_c, p->out_zero_point, pairs, columns, p->in_c, form);
    int8_t *const first = out;
    int32_t left = pixels;
    tinyfuse_int16_weights_begin(&s, 2);
    for (; left > 1; left -= 2) {
        tinyfuse_widen_two(in, p->in_c, columns);
        tinyfuse_int16_weights_pixels(&s, out, 2, form);
        in += 2 * p->in_c;
        out += 2 * p->out_c;
    }
    if (left > 0) {
        (void)tinyfuse_widen(in, p->in_c / 4, columns, 8, TINYFUSE_WIDE);
        tinyfuse_int16_weights_begin(&s, 1);
        tinyfuse_int16_weights_pixels(&s, out, 1, form);
    }
    tinyfuse_clamp_outputs(first, pixels * p->out_c, p->act_min, p->act_max);
}

#define TINYFUSE_POINTWISE_OF_PAIRS(name, form)                                                    \
    TINYFUSE_IN_FORM(name, form, tinyfuse_pointwise_int16_weights_body,                            \
                     (const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels, int8_t *out,  \
                      const int32_t *pairs, int8_t *columns),                                      \
                     p, in, pixels, out, pairs, columns)
TINYFUSE_POINTWISE_OF_PAIRS(tinyfuse_pointwise_of_pairs_single_rounding, TINYFUSE_PAIRS_SINGLE_ROUNDING)
TINYFUSE_POINTWISE_OF_PAIRS(tinyfuse_pointwise_of_pairs_beside, TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE)
TINYFUSE_POINTWISE_OF_PAIRS(tinyfuse_pointwise_of_pairs_bounded, TINYFUSE_PAIRS_BOUNDED)
TINYFUSE_POINTWISE_OF_PAIRS(tinyfuse_pointwise_of_pairs_half_even, TINYFUSE_PAIRS_HALF_EVEN)

/* Computes a layer, in [pixels][in_c] to out [pixels][out_c], forward by blocks of pixels: out may overlap pixels
   that were read already, those of the block included. in_c is a multiple of 4, p->block is 2. scratch, aligned to 8:
   columns of block * in_c inputs of 2 bytes. `form`, a constant: see tinyfuse_int16_weights.h. */
TINYFUSE_INLINE void tinyfuse_pointwise_int16_weights_s8(const tinyfuse_pointwise *p, const int8_t *in, int32_t pixels,
                                                         int8_t *out, const int32_t *pairs, void *scratch, int form)
{
    TINYFUSE_OF_PAIRS(form, tinyfuse_pointwise_of_pairs)(p, in, pixels, out, pairs, (int8_t *)scratch);
}

#endif
