/* Depthwise convolution with depth multiplier 1, int8 NHWC, one output row a call: four channels (a quad) at a time,
   kernel taps in pairs. Requantization is the bounded or the shifted form, or single rounding, where weights are times
   256 (tinyfuse_requantize.h). Any kernel, stride, dilation and padding; at least four channels. */
#ifndef TINYFUSE_DEPTHWISE_PACKED_H
#define TINYFUSE_DEPTHWISE_PACKED_H

#include "tinyfuse_conv.h"
#include "tinyfuse_half_even.h"

/* Returns the int32 constants of a quad with single rounding. */
TINYFUSE_INLINE int32_t tinyfuse_depthwise_1d_words(int form)
{
    return form == TINYFUSE_OWN_SHIFTS_FORM ? 12 : 8;
}

/* Four neighbouring channels at a time from `channel` on: sums over pairs of taps, where tap t of channel c is
   taps[t][c], requantized to out[c] as `form`, a constant, says. Weights:
   [fours][pairs][8], for channels c..c+3 and taps t, u of a pair
   {c t, c+1 t, c u, c+1 u, c+2 t, c+3 t, c+2 u, c+3 u}. */
TINYFUSE_INLINE void tinyfuse_depthwise_quads_c(const int8_t *const *taps, int32_t pairs, int32_t c,
                                                int32_t fours, const int8_t *w, const void *channels,
                                                int32_t rounding, int8_t *out, int form)
{
    const int32_t *l = (const int32_t *)channels;
    const tinyfuse_requant *r = (const tinyfuse_requant *)channels;
    const int rounds_twice = tinyfuse_form_rounds_twice(form);
    const int32_t unit = rounds_twice ? 1 : 256;
    for (; fours > 0; --fours) {
        int32_t s[4], i;
        for (i = 0; i < 4; ++i) {
            s[i] = 0;
        }
        for (i = 0; i < pairs; ++i) {
            const int8_t *a = taps[2 * i] + c;
            const int8_t *b = taps[2 * i + 1] + c;
            s[0] += a[0] * w[0] + b[0] * w[2];
            s[1] += a[1] * w[1] + b[1] * w[3];
            s[2] += a[2] * w[4] + b[2] * w[6];
            s[3] += a[3] * w[5] + b[3] * w[7];
            w += 8;
        }
        for (i = 0; i < 4; ++i) {
            const uint32_t bias = (uint32_t)(rounds_twice ? r[i].bias : l[i]);
            const int32_t sum = (int32_t)((uint32_t)s[i] * (uint32_t)unit + bias);
            out[c + i] = (int8_t)(form == TINYFUSE_BOUNDED_FORM
                                      ? tinyfuse_requantize_bounded(sum, r[i].multiplier, r[i].shift, rounding)
                                  : form == TINYFUSE_SHIFTED_FORM
                                      ? tinyfuse_requantize_shifted(sum, r[i].multiplier, r[i].shift, rounding)
                                  : form == TINYFUSE_SINGLE_ROUNDING_FORM
                                      ? tinyfuse_requantize_single_rounding(sum, l[4 + i], rounding)
                                  : form == TINYFUSE_HALF_EVEN_FORM
                                      ? tinyfuse_requantize_single_or_half_even(sum, l[4 + i], rounding)
                                      : tinyfuse_requantize_own_shift(sum, l[4 + i], l[8 + i]));
        }
        l += tinyfuse_depthwise_1d_words(form);
        r += 4;
        c += 4;
    }
}

#if TINYFUSE_DSP

enum { TINYFUSE_BEFORE_CHANNELS = 8 };

/* The job of a pixel's channels; assembly knows the offsets. With single rounding, `before` is eight bytes before a
   quad's four biases, four multipliers and, if there are some, four shifts; in forms with two roundings it is eight
   bytes before [4 * quads] tinyfuse_requant. The assembly advances `before` and `quads`. */
typedef struct {
    const int8_t *const *taps;
    int32_t rounding; /* rounding of the form */
    int8_t *out;
    uintptr_t before; /* 12 */
    int32_t quads;    /* > 0 */
} tinyfuse_depthwise_pixel;

typedef char tinyfuse_check_depthwise_pixel[offsetof(tinyfuse_depthwise_pixel, quads) == 16 ? 1 : -1];

/* In the loop over taps:
     r1 weights; r2 channel; r3 to r6 sums; r7 mask of single rounding; r8 taps
     r0, lr     weights of channels c and c+1, c+2 and c+3, of both taps
     r9 to r12  inputs, converted; converted weights
   On the stack, in words from the stack pointer: tinyfuse_depthwise_pixel, weights, channel, end. */
#define TINYFUSE_TAPS_EVEN_BOUNDED(to, from) "sxtb16 " to ", " from "\n\t"
#define TINYFUSE_TAPS_ODD_BOUNDED(to) "sxtb16 " to ", " to ", ror #8\n\t"
#define TINYFUSE_TAPS_EVEN_SINGLE_ROUNDING(to, from) "and " to ", r7, " from ", lsl #8\n\t"
#define TINYFUSE_TAPS_ODD_SINGLE_ROUNDING(to) "and " to ", r7\n\t"
#define TINYFUSE_TAPS_BIAS_BOUNDED   \
    "ldr r3, [r11, #8]\n\t"          \
    "ldr r4, [r11, #20]\n\t"         \
    "ldr r5, [r11, #32]\n\t"         \
    "ldr r6, [r11, #44]\n\t"
#define TINYFUSE_TAPS_BIAS_SINGLE_ROUNDING \
    "mov r7, #0xFF00FF00\n\t"        \
    "ldrd r3, r4, [r11, #8]\n\t"     \
    "ldrd r5, r6, [r11, #16]\n\t"
/* The outputs: r0 the tinyfuse_depthwise_pixel, whose fields are in r8 to r12.
   tinyfuse_requantize_bounded: r7 multiplier, lr shift, r0 rounding << shift. */
#define TINYFUSE_TAPS_STORE(sum, channel, byte)  \
    "ldrd r7, lr, [r11, #" channel "\n\t"        \
    "lsl r0, r9, lr\n\t"                         \
    "add r0, " sum "\n\t"                        \
    "add r0, r0, " sum ", asr #31\n\t"           \
    "smmlar " sum ", " sum ", r7, r0\n\t"        \
    "asr " sum ", lr\n\t"                        \
    "ssat " sum ", #8, " sum ", asr #1\n\t"      \
    "strb " sum ", [r10, #" byte "]\n\t"
#define TINYFUSE_TAPS_OUTPUT_BY(store)             \
    store("r3", "12]", "0") store("r4", "24]", "1")  \
    store("r5", "36]", "2") store("r6", "48]!", "3") \
    "ldr r0, [sp]\n\t"
#define TINYFUSE_TAPS_OUTPUT_BOUNDED TINYFUSE_TAPS_OUTPUT_BY(TINYFUSE_TAPS_STORE)
/* tinyfuse_requantize_shifted: lr both shifts, of which register shifts take the lower byte. */
#define TINYFUSE_TAPS_STORE_SHIFTED(sum, channel, byte) \
    "ldrd r7, lr, [r11, #" channel "\n\t"              \
    "lsr r0, lr, #8\n\t"                               \
    "lsl " sum ", #1\n\t"                              \
    "lsl " sum ", r0\n\t"                              \
    "smmulr " sum ", " sum ", r7\n\t"                  \
    "lsl r0, r9, lr\n\t"                               \
    "add r0, r0, " sum ", asr #31\n\t"                 \
    "add " sum ", r0, " sum ", lsl #1\n\t"             \
    "asr " sum ", lr\n\t"                              \
    "ssat " sum ", #8, " sum ", asr #1\n\t"            \
    "strb " sum ", [r10, #" byte "]\n\t"
#define TINYFUSE_TAPS_OUTPUT_SHIFTED TINYFUSE_TAPS_OUTPUT_BY(TINYFUSE_TAPS_STORE_SHIFTED)
#define TINYFUSE_TAPS_ON_SINGLE_ROUNDING(sum, multiplier, byte) \
    "smmla " sum ", " sum ", " multiplier ", r9\n\t"      \
    TINYFUSE_SINGLE_ROUNDING_SATURATE(sum)                      \
    "strb " sum ", [r10, #" byte "]\n\t"
#define TINYFUSE_TAPS_OUTPUT_SINGLE_ROUNDING                                                      \
    "ldrd r7, lr, [r11, #24]\n\t"                                                           \
    TINYFUSE_TAPS_ON_SINGLE_ROUNDING("r3", "r7", "0") TINYFUSE_TAPS_ON_SINGLE_ROUNDING("r4", "lr", "1") \
    "ldrd r7, lr, [r11, #32]!\n\t"                                                          \
    TINYFUSE_TAPS_ON_SINGLE_ROUNDING("r5", "r7", "2") TINYFUSE_TAPS_ON_SINGLE_ROUNDING("r6", "lr", "3")
/* multipliers in r7 and lr, shifts in r0 and r9 */
#define TINYFUSE_TAPS_OUTPUT_OWN_SHIFTS                                      \
    "ldrd r7, lr, [r11, #24]\n\t"                                            \
    "ldrd r0, r9, [r11, #40]\n\t"                                            \
    TINYFUSE_OWN_SHIFT("r3", "r7", "r0") "strb r3, [r10]\n\t"                \
    TINYFUSE_OWN_SHIFT("r4", "lr", "r9") "strb r4, [r10, #1]\n\t"            \
    "ldrd r7, lr, [r11, #32]\n\t"                                            \
    "ldrd r0, r9, [r11, #48]!\n\t"                                           \
    TINYFUSE_OWN_SHIFT("r5", "r7", "r0") "strb r5, [r10, #2]\n\t"            \
    TINYFUSE_OWN_SHIFT("r6", "lr", "r9") "strb r6, [r10, #3]\n\t"            \
    "ldr r0, [sp]\n\t"
/* tinyfuse_requantize_single_or_half_even, of products below 2^30, as the first scale says: s4 to s7 the scales, r9 the
   rounding, then the zero point */
#define TINYFUSE_TAPS_EVERY_FLOAT(do_it) do_it("s0", "s4") do_it("s1", "s5") do_it("s2", "s6") do_it("s3", "s7")
#define TINYFUSE_TAPS_TO_FLOAT(s, scale) "vcvt.f32.s32 " s ", " s "\n\t"
#define TINYFUSE_TAPS_TIMES(s, scale) "vnmul.f32 " s ", " s ", " scale "\n\t"
#define TINYFUSE_TAPS_TO_NEAREST(s, scale) "vcvtr.s32.f32 " s ", " s "\n\t"
#define TINYFUSE_TAPS_STORE_INTEGER(sum, byte)  \
    "add " sum ", r9\n\t"                       \
    "ssat " sum ", #8, " sum "\n\t"             \
    "strb " sum ", [r10, #" byte "]\n\t"
#define TINYFUSE_TAPS_OUTPUT_HALF_EVEN                                                          \
    "ldr r7, [r11, #24]\n\t"                                                                    \
    "cmp r7, #0\n\t"                                                                            \
    "bmi 8f\n\t" TINYFUSE_TAPS_OUTPUT_SINGLE_ROUNDING                                           \
    "b 9f\n\t"                                                                                  \
    "8:\n\t" TINYFUSE_ZERO_POINT_OF("r9")                                                       \
    "add r11, #24\n\t"                                                                          \
    "vldm r11, {s4, s5, s6, s7}\n\t"                                                            \
    "add r11, #8\n\t"                                                                           \
    "vmov s0, s1, r3, r4\n\t"                                                                   \
    "vmov s2, s3, r5, r6\n\t"                                                                   \
    TINYFUSE_TAPS_EVERY_FLOAT(TINYFUSE_TAPS_TO_FLOAT)                                           \
    TINYFUSE_TAPS_EVERY_FLOAT(TINYFUSE_TAPS_TIMES)                                              \
    TINYFUSE_TAPS_EVERY_FLOAT(TINYFUSE_TAPS_TO_NEAREST)                                         \
    "vmov r3, r4, s0, s1\n\t"                                                                   \
    "vmov r5, r6, s2, s3\n\t"                                                                   \
    TINYFUSE_TAPS_STORE_INTEGER("r3", "0") TINYFUSE_TAPS_STORE_INTEGER("r4", "1")               \
    TINYFUSE_TAPS_STORE_INTEGER("r5", "2") TINYFUSE_TAPS_STORE_INTEGER("r6", "3")               \
    "9:\n\t"
#if TINYFUSE_FPU
#define TINYFUSE_TAPS_HALF_EVEN_ASM TINYFUSE_TAPS_ASM(SINGLE_ROUNDING, TINYFUSE_TAPS_OUTPUT_HALF_EVEN)
#else
#define TINYFUSE_TAPS_HALF_EVEN_ASM /* never reached */
#endif
#define TINYFUSE_TAPS_ASM(form, output)                                                      \
    {                                                                                        \
        register tinyfuse_depthwise_pixel *r0 __asm("r0") = pixel;                           \
        register const int8_t *r1 __asm("r1") = weights;                                     \
        register int32_t r2 __asm("r2") = channel;                                           \
        register const int8_t *const *r3 __asm("r3") = end;                                  \
        __asm volatile("push {r0-r11, lr}\n\t"                                               \
                       "ldr r8, [r0]\n\t"                                                    \
                       "ldr r11, [r0, #12]\n\t"                                              \
                       "6:\n\t" TINYFUSE_TAPS_BIAS_##form                                    \
                       "1:\n\t"                                                              \
                       "ldrd r9, r10, [r8], #8\n\t"                                          \
                       "ldr r9, [r9, r2]\n\t"                                                \
                       "ldr r10, [r10, r2]\n\t"                                              \
                       "ldrd r0, lr, [r1], #8\n\t"                                           \
                       "pkhbt r11, r9, r10, lsl #16\n\t"                                     \
                       "pkhtb r9, r10, r9, asr #16\n\t"                                      \
                       "sxtb16 r10, r11\n\t" TINYFUSE_TAPS_EVEN_##form("r12", "r0")          \
                       "smlad r3, r10, r12, r3\n\t"                                          \
                       "sxtb16 r11, r11, ror #8\n\t" TINYFUSE_TAPS_ODD_##form("r0")          \
                       "smlad r4, r11, r0, r4\n\t"                                           \
                       "sxtb16 r10, r9\n\t" TINYFUSE_TAPS_EVEN_##form("r12", "lr")           \
                       "smlad r5, r10, r12, r5\n\t"                                          \
                       "sxtb16 r9, r9, ror #8\n\t" TINYFUSE_TAPS_ODD_##form("lr")            \
                       "smlad r6, r9, lr, r6\n\t"                                            \
                       "ldr r0, [sp, #12]\n\t"                                               \
                       "cmp r8, r0\n\t"                                                      \
                       "bne 1b\n\t"                                                          \
                       "ldr r0, [sp]\n\t"                                                    \
                       "ldm r0, {r8, r9, r10, r11, r12}\n\t"                                 \
                       "add r10, r2\n\t" output                                              \
                       "adds r2, #4\n\t"                                                     \
                       "subs r12, #1\n\t"                                                    \
                       "strd r11, r12, [r0, #12]\n\t"                                        \
                       "bne 6b\n\t"                                                          \
                       "pop {r0-r11, lr}\n\t"                                                \
                       :                                                                     \
                       : "r"(r0), "r"(r1), "r"(r2), "r"(r3)                                  \
                       : "r12", TINYFUSE_CLOBBERS_FPU "cc", "memory");                       \
    }

/* The statements are those of tinyfuse_common.h with four operands. */
TINYFUSE_INLINE void tinyfuse_depthwise_quads_dsp(tinyfuse_depthwise_pixel *pixel, const int8_t *weights,
                                                  int32_t channel, const int8_t *const *end, int form)
{
    if (form == TINYFUSE_SINGLE_ROUNDING_FORM) {
        TINYFUSE_TAPS_ASM(SINGLE_ROUNDING, TINYFUSE_TAPS_OUTPUT_SINGLE_ROUNDING)
    } else if (form == TINYFUSE_OWN_SHIFTS_FORM) {
        TINYFUSE_TAPS_ASM(SINGLE_ROUNDING, TINYFUSE_TAPS_OUTPUT_OWN_SHIFTS)
    } else if (form == TINYFUSE_HALF_EVEN_FORM) {
        TINYFUSE_TAPS_HALF_EVEN_ASM
    } else if (form == TINYFUSE_SHIFTED_FORM) {
        TINYFUSE_TAPS_ASM(BOUNDED, TINYFUSE_TAPS_OUTPUT_SHIFTED)
    } else {
        TINYFUSE_TAPS_ASM(BOUNDED, TINYFUSE_TAPS_OUTPUT_BOUNDED)
    }
}

#define TINYFUSE_DEPTHWISE_QUADS(name, form)                                                         \
    TINYFUSE_SHARED void name(tinyfuse_depthwise_pixel *pixel, const int8_t *weights,                \
                              int32_t channel, const int8_t *const *end)                             \
    {                                                                                                \
        tinyfuse_depthwise_quads_dsp(pixel, weights, channel, end, form);                            \
    }
TINYFUSE_DEPTHWISE_QUADS(tinyfuse_depthwise_quads_single_rounding, TINYFUSE_SINGLE_ROUNDING_FORM)
TINYFUSE_DEPTHWISE_QUADS(tinyfuse_depthwise_quads_own_shifts, TINYFUSE_OWN_SHIFTS_FORM)
TINYFUSE_DEPTHWISE_QUADS(tinyfuse_depthwise_quads_half_even, TINYFUSE_HALF_EVEN_FORM)
TINYFUSE_DEPTHWISE_QUADS(tinyfuse_depthwise_quads_shifted, TINYFUSE_SHIFTED_FORM)
TINYFUSE_DEPTHWISE_QUADS(tinyfuse_depthwise_quads_bounded, TINYFUSE_BOUNDED_FORM)

TINYFUSE_INLINE void tinyfuse_depthwise_quads(const int8_t *const *taps, int32_t pairs, int32_t channel,
                                              int32_t quads, const int8_t *weights, const void *channels,
                                              int32_t rounding, int8_t *out, int form)
{
    tinyfuse_depthwise_pixel pixel;
    if (form == TINYFUSE_HALF_EVEN_FORM && !TINYFUSE_FPU) {
        tinyfuse_depthwise_quads_c(taps, pairs, channel, quads, weights, channels, rounding, out, form);
        return;
    }
    pixel.taps = taps;
    pixel.rounding = rounding;
    pixel.out = out;
    pixel.before = (uintptr_t)channels - TINYFUSE_BEFORE_CHANNELS;
    pixel.quads = quads;
    (form == TINYFUSE_SINGLE_ROUNDING_FORM    ? tinyfuse_depthwise_quads_single_rounding
     : form == TINYFUSE_OWN_SHIFTS_FORM ? tinyfuse_depthwise_quads_own_shifts
     : form == TINYFUSE_HALF_EVEN_FORM  ? tinyfuse_depthwise_quads_half_even
     : form == TINYFUSE_SHIFTED_FORM    ? tinyfuse_depthwise_quads_shifted
                                        : tinyfuse_depthwise_quads_bounded)(&pixel, weights, channel, taps + 2 * pairs);
}

/* Layers share the assembly alone. */
#define TINYFUSE_DEPTHWISE_PIXEL TINYFUSE_INLINE

#else

#define tinyfuse_depthwise_quads tinyfuse_depthwise_quads_c

/* Layers share the function of a pixel. Its arguments are no struct, for which compilers take more stack. */
#define TINYFUSE_DEPTHWISE_PIXEL TINYFUSE_SHARED

#endif

/* Computes one output pixel, all in_c channels in quads. The last quad overlaps the one before where in_c is no
   multiple of 4. `form` is a constant. */
TINYFUSE_INLINE void tinyfuse_depthwise_pixel_body(const int8_t *const *taps, int32_t pairs, int32_t in_c,
                                                   const int8_t *weights, const void *channels,
                                                   int32_t rounding, int8_t *out, int form)
{
    const int32_t quads = in_c / 4, last = in_c - 4;
    tinyfuse_depthwise_quads(taps, pairs, 0, quads, weights, channels, rounding, out, form);
    if ((in_c & 3) != 0) {
        tinyfuse_depthwise_quads(taps, pairs, last, 1, weights + 8 * pairs * quads,
                                 tinyfuse_form_rounds_twice(form)
                                     ? (const void *)((const tinyfuse_requant *)channels + last)
                                     : (const void *)((const int32_t *)channels +
                                                      tinyfuse_depthwise_1d_words(form) * quads),
                                 rounding, out, form);
    }
}

#define TINYFUSE_DEPTHWISE_PIXEL_OF(name, form)                                                             \
    TINYFUSE_DEPTHWISE_PIXEL void name(const int8_t *const *taps, int32_t pairs, int32_t in_c,              \
                                       const int8_t *weights, const void *channels, int32_t rounding,       \
                                       int8_t *out)                                                         \
    {                                                                                                       \
        tinyfuse_depthwise_pixel_body(taps, pairs, in_c, weights, channels, rounding, out, form);           \
    }
TINYFUSE_DEPTHWISE_PIXEL_OF(tinyfuse_depthwise_pixel_single_rounding, TINYFUSE_SINGLE_ROUNDING_FORM)
TINYFUSE_DEPTHWISE_PIXEL_OF(tinyfuse_depthwise_pixel_own_shifts, TINYFUSE_OWN_SHIFTS_FORM)
TINYFUSE_DEPTHWISE_PIXEL_OF(tinyfuse_depthwise_pixel_half_even, TINYFUSE_HALF_EVEN_FORM)
TINYFUSE_DEPTHWISE_PIXEL_OF(tinyfuse_depthwise_pixel_shifted, TINYFUSE_SHIFTED_FORM)
TINYFUSE_DEPTHWISE_PIXEL_OF(tinyfuse_depthwise_pixel_bounded, TINYFUSE_BOUNDED_FORM)

/* Fills taps[2 * pairs] for output pixel (y, x). Taps in the padding point to `padding`, in_c bytes of the input zero
   point. A tap that makes the count even, with weights of zero, repeats the first. */
TINYFUSE_SHARED void tinyfuse_depthwise_taps(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                             int32_t x, const int8_t *padding, const int8_t **taps)
{
    const int32_t row_bytes = p->in_w * p->in_c;
    const int8_t **const first = taps;
    int32_t ky, kx;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int32_t iy = y * p->stride_h - p->pad_top + ky * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        const int8_t *row = inside ? tinyfuse_ring_row(in, iy, p->in_ring, row_bytes) : padding;
        int32_t ix = x * p->stride_w - p->pad_left;
        for (kx = 0; kx < p->kernel_w; ++kx) {
            *taps++ = inside && ix >= 0 && ix < p->in_w ? row + ix * p->in_c : padding;
            ix += p->dilation_w;
        }
    }
    if (((p->kernel_h * p->kernel_w) & 1) != 0) {
        *taps = *first;
    }
}

/* Fills the taps of a pixel from those of its left neighbour in `taps`: they only move where no tap of both is in the
   padding. `rows_inside`: no row of y's window is in the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_next_taps(const tinyfuse_conv *p, const int8_t *in,
                                                  int32_t y, int32_t x, const int8_t *padding,
                                                  const int8_t **taps, int rows_inside)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    const int32_t span = (p->kernel_w - 1) * p->dilation_w + 1;
    if (x > 0 && rows_inside && from >= p->stride_w && from + span <= p->in_w) {
        const int32_t step = p->stride_w * p->in_c;
        int32_t i;
        for (i = (p->kernel_h * p->kernel_w + 1) / 2; i > 0; --i) {
            taps[0] += step;
            taps[1] += step;
            taps += 2;
        }
    } else {
        tinyfuse_depthwise_taps(p, in, y, x, padding, taps);
    }
}

/* Returns whether no row of the window of output row y is in the padding. */
TINYFUSE_INLINE int tinyfuse_depthwise_rows_inside(const tinyfuse_conv *p, int32_t y)
{
    const int32_t from = y * p->stride_h - p->pad_top;
    return from >= 0 && from + (p->kernel_h - 1) * p->dilation_h < p->in_h;
}

/* Returns whether no column of any window is in the padding. */
TINYFUSE_INLINE int tinyfuse_depthwise_columns_inside(const tinyfuse_conv *p)
{
    const int32_t last = (p->out_w - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w;
    return p->pad_left <= 0 && last - p->pad_left < p->in_w;
}

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row. Weights are [ceil(in_c /
   4)][pairs] groups of eight as tinyfuse_depthwise_quads takes them, the last four channels ending at in_c. Channels
   are as many int32[8], biases and multipliers, or int32[12], with per-channel shifts, or [in_c] tinyfuse_requant, as
   `form`, a constant, says. scratch, aligned to 8: 2 * pairs pointers of 4 bytes, then in_c bytes where any window
   reaches into the padding. */
TINYFUSE_INLINE void tinyfuse_depthwise_packed_row_s8(const tinyfuse_conv *p, const int8_t *in,
                                                      int32_t y, int8_t *out_row,
                                                      const int8_t *weights,
                                                      const void *channels, void *scratch,
                                                      int form)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int32_t rounding = tinyfuse_form_rounding(p->out_zero_point, form);
    int8_t *out = out_row;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    int32_t x;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        if (form == TINYFUSE_SINGLE_ROUNDING_FORM) {
            tinyfuse_depthwise_pixel_single_rounding(taps, pairs, p->in_c, weights, channels, rounding, out);
        } else if (form == TINYFUSE_OWN_SHIFTS_FORM) {
            tinyfuse_depthwise_pixel_own_shifts(taps, pairs, p->in_c, weights, channels, rounding, out);
        } else if (form == TINYFUSE_HALF_EVEN_FORM) {
            tinyfuse_depthwise_pixel_half_even(taps, pairs, p->in_c, weights, channels, rounding, out);
        } else if (form == TINYFUSE_SHIFTED_FORM) {
            tinyfuse_depthwise_pixel_shifted(taps, pairs, p->in_c, weights, channels, rounding, out);
        } else {
            tinyfuse_depthwise_pixel_bounded(taps, pairs, p->in_c, weights, channels, rounding, out);
        }
        out += p->in_c;
    }
    tinyfuse_clamp_outputs(out_row, p->out_w * p->out_c, p->act_min, p->act_max);
}

#endif
