/* Depthwise convolution with depth multiplier 1 for Helium, int8 NHWC, one output row a call: sixteen
   channels at a time, the last eight or fewer together, kernel taps in pairs. Any kernel, stride, dilation
   and padding.

   weights  of sixteen (at the end eight) channels [pairs of taps][2][16 or 8], none of them -128: so that
            the sum of two products fits int16
   channels [3][4] as in tinyfuse_matmul_2x4_mve.h: of each sixteen channels those that leave a remainder of
            0 by 4, those of 2, of 1 and of 3; of the last eight the even ones and the odd ones
*/
#ifndef TINYFUSE_DEPTHWISE_MVE_H
#define TINYFUSE_DEPTHWISE_MVE_H

#include "tinyfuse_depthwise_packed.h"
#include "tinyfuse_matmul_2x4_mve.h"

/* The job of a row's pixels; only `out` changes. The assembly loads the first six fields by one LDM, and the clamp's
   ends as a pair. taps as tinyfuse_depthwise_taps fills them. */
typedef struct {
    int32_t pairs;
    const int8_t *weights;
    const int32_t *channels;
    int32_t in_c;
    int8_t *out;
    int32_t out_zero_point;
    int32_t act_min, act_max;
    const int8_t *const *taps;
} tinyfuse_depthwise_mve_job;

#if TINYFUSE_MVE

/* Scales the sums `v` with the multipliers and shifts at r3. */
#define TINYFUSE_DEPTHWISE_SCALE(v, multipliers, shifts)                                           \
    TINYFUSE_LOAD_SCALES("q4", "q5", "q6", "r3", multipliers, shifts)                              \
    TINYFUSE_SCALE4(v, "q4", "q6", v ", q5")
#define TINYFUSE_DEPTHWISE_SCALE_SHIFTED(v, multipliers, shifts)                                   \
    TINYFUSE_LOAD_SCALES("q4", "q5", "q6", "r3", multipliers, shifts)                              \
    TINYFUSE_SHIFT4_LEFT(v, "q5")                                                                  \
    TINYFUSE_SCALE4(v, "q4", "q6", v ", q5")

/* Requantizes half to even; float32 scales are in the place of the multipliers. */
#define TINYFUSE_DEPTHWISE_NEAREST(v, scales, zeros)                                               \
    "vldrw.s32 q4, [r3, " scales "]\n\t" TINYFUSE_NEAREST4(v, "q4")

/* Computes all channels of an output pixel. r0: the first channel of those at hand; r1: pairs; r2: weights; r3:
   channels; r4 to r6: taps; r7: the job; r8: channels left; r9: out; r10: zero point; r11: all taps. `scale` as
   TINYFUSE_DEPTHWISE_SCALE. */
#define TINYFUSE_DEPTHWISE_MVE_PIXEL(scale)                                                        \
    __asm volatile(                                                                                \
        TINYFUSE_ASM_BEGIN                                                                         \
        "mov r7, %[job]\n\t"                                                                       \
        "ldm r7, {r1, r2, r3, r8, r9, r10}\n\t"                                                    \
        "ldr r11, [r7, %[taps]]\n\t"                                                               \
        "movs r0, #0\n\t"                                                                          \
        "cmp r8, #8\n\t"                                                                           \
        "ble 3f\n\t"                                                                               \
        "1:\n\t"                                                                                   \
        "vctp.8 r8\n\t"                                                                            \
        "vldrw.s32 q0, [r3]\n\t"                                                                   \
        "vldrw.s32 q1, [r3, #48]\n\t"                                                              \
        "vldrw.s32 q2, [r3, #96]\n\t"                                                              \
        "vldrw.s32 q3, [r3, #144]\n\t"                                                             \
        "mov r4, r11\n\t"                                                                          \
        "dls lr, r1\n\t"                                                                           \
        "2:\n\t"                                                                                   \
        "ldrd r5, r6, [r4], #8\n\t"                                                                \
        "add r5, r0\n\t"                                                                           \
        "add r6, r0\n\t"                                                                           \
        "vpstt\n\t"                                                                                \
        "vldrbt.8 q4, [r5]\n\t"                                                                    \
        "vldrbt.8 q5, [r6]\n\t"                                                                    \
        "vldrb.8 q6, [r2], #16\n\t"                                                                \
        "vmullb.s8 q7, q4, q6\n\t" /* products of the even channels */                             \
        "vmullt.s8 q4, q4, q6\n\t"                                                                 \
        "vldrb.8 q6, [r2]\n\t"                                                                     \
        "vmullb.s8 q6, q5, q6\n\t"                                                                 \
        "vadd.i16 q7, q7, q6\n\t"                                                                  \
        "vldrb.8 q6, [r2], #16\n\t" /* loaded again: all registers are taken */                    \
        "vmullt.s8 q5, q5, q6\n\t"                                                                 \
        "vadd.i16 q4, q4, q5\n\t"                                                                  \
        "vmovlb.s16 q5, q7\n\t"                                                                    \
        "vmovlt.s16 q6, q7\n\t"                                                                    \
        "vadd.i32 q0, q0, q5\n\t"                                                                  \
        "vadd.i32 q1, q1, q6\n\t"                                                                  \
        "vmovlb.s16 q5, q4\n\t"                                                                    \
        "vmovlt.s16 q6, q4\n\t"                                                                    \
        "vadd.i32 q2, q2, q5\n\t"                                                                  \
        "vadd.i32 q3, q3, q6\n\t"                                                                  \
        "le lr, 2b\n\t"                                                                            \
        scale("q0", "#16", "#32") scale("q1", "#64", "#80")                                        \
        scale("q2", "#112", "#128") scale("q3", "#160", "#176")                                    \
        /* saturation gives the same result as a later clamp */                                    \
        "vqmovnb.s32 q0, q0\n\t"                                                                   \
        "vqmovnt.s32 q0, q1\n\t"                                                                   \
        "vqmovnb.s32 q2, q2\n\t"                                                                   \
        "vqmovnt.s32 q2, q3\n\t"                                                                   \
        "vqadd.s16 q0, q0, r10\n\t"                                                                \
        "vqadd.s16 q2, q2, r10\n\t"                                                                \
        "vqmovnb.s16 q0, q0\n\t"                                                                   \
        "vqmovnt.s16 q0, q2\n\t"                                                                   \
        "ldrd r5, r6, [r7, %[act_min]]\n\t"                                                        \
        "vdup.8 q4, r5\n\t"                                                                        \
        "vdup.8 q5, r6\n\t"                                                                        \
        "vmax.s8 q0, q0, q4\n\t"                                                                   \
        "vmin.s8 q0, q0, q5\n\t"                                                                   \
        "vctp.8 r8\n\t"                                                                            \
        "vpst\n\t"                                                                                 \
        "vstrbt.8 q0, [r9], #16\n\t"                                                               \
        "adds r3, #192\n\t"                                                                        \
        "adds r0, #16\n\t"                                                                         \
        "subs r8, #16\n\t"                                                                         \
        "ble 5f\n\t"                                                                               \
        "cmp r8, #8\n\t"                                                                           \
        "bgt 1b\n\t"                                                                               \
        "3:\n\t"                                                                                   \
        "vctp.16 r8\n\t"                                                                           \
        "vldrw.s32 q0, [r3]\n\t"                                                                   \
        "vldrw.s32 q1, [r3, #48]\n\t"                                                              \
        "dls lr, r1\n\t"                                                                           \
        "4:\n\t"                                                                                   \
        "ldrd r5, r6, [r11], #8\n\t"                                                               \
        "add r5, r0\n\t"                                                                           \
        "add r6, r0\n\t"                                                                           \
        "vpstt\n\t"                                                                                \
        "vldrbt.s16 q2, [r5]\n\t"                                                                  \
        "vldrbt.s16 q3, [r6]\n\t"                                                                  \
        "vldrb.s16 q4, [r2], #8\n\t"                                                               \
        "vmul.i16 q2, q2, q4\n\t"                                                                  \
        "vldrb.s16 q5, [r2], #8\n\t"                                                               \
        "vmul.i16 q3, q3, q5\n\t"                                                                  \
        "vadd.i16 q2, q2, q3\n\t"                                                                  \
        "vmovlb.s16 q4, q2\n\t"                                                                    \
        "vmovlt.s16 q5, q2\n\t"                                                                    \
        "vadd.i32 q0, q0, q4\n\t"                                                                  \
        "vadd.i32 q1, q1, q5\n\t"                                                                  \
        "le lr, 4b\n\t"                                                                            \
        scale("q0", "#16", "#32") scale("q1", "#64", "#80")                                        \
        "vqmovnb.s32 q0, q0\n\t"                                                                   \
        "vqmovnt.s32 q0, q1\n\t"                                                                   \
        "vqadd.s16 q0, q0, r10\n\t"                                                                \
        "ldrd r5, r6, [r7, %[act_min]]\n\t"                                                        \
        "vdup.16 q4, r5\n\t"                                                                       \
        "vdup.16 q5, r6\n\t"                                                                       \
        "vmax.s16 q0, q0, q4\n\t"                                                                  \
        "vmin.s16 q0, q0, q5\n\t"                                                                  \
        "vctp.16 r8\n\t"                                                                           \
        "mov r4, r9\n\t"                                                                           \
        "vpst\n\t"                                                                                 \
        "vstrbt.16 q0, [r4]\n\t"                                                                   \
        "5:\n\t"                                                                                   \
        TINYFUSE_ASM_END                                                                           \
        :                                                                                          \
        : [job] "r"(job), [taps] "i"(offsetof(tinyfuse_depthwise_mve_job, taps)),                  \
          [act_min] "i"(offsetof(tinyfuse_depthwise_mve_job, act_min))                             \
        : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")

TINYFUSE_SHARED void tinyfuse_depthwise_mve_pixel(const tinyfuse_depthwise_mve_job *job)
{
    TINYFUSE_DEPTHWISE_MVE_PIXEL(TINYFUSE_DEPTHWISE_SCALE);
}

/* Where channels may shift to the left. */
TINYFUSE_SHARED void tinyfuse_depthwise_mve_shifted_pixel(const tinyfuse_depthwise_mve_job *job)
{
    TINYFUSE_DEPTHWISE_MVE_PIXEL(TINYFUSE_DEPTHWISE_SCALE_SHIFTED);
}

#if TINYFUSE_MVE_FLOATS
TINYFUSE_SHARED void tinyfuse_depthwise_half_even_mve_pixel(const tinyfuse_depthwise_mve_job *job)
{
    TINYFUSE_DEPTHWISE_MVE_PIXEL(TINYFUSE_DEPTHWISE_NEAREST);
}
#endif

#endif

#if !TINYFUSE_MVE_FLOATS

TINYFUSE_INLINE void tinyfuse_depthwise_mve_pixel_c(const tinyfuse_depthwise_mve_job *job, int half_even)
{
    const int8_t *weights = job->weights;
    const int32_t *channels = job->channels;
    int32_t c = 0, i, k;
    while (c < job->in_c) {
        const int32_t quads = job->in_c - c > 8 ? 4 : 2, width = 4 * quads;
        for (i = 0; i < width && c + i < job->in_c; ++i) {
            const int32_t place = quads == 4 ? 2 * (i & 1) + (i >> 1 & 1) : i & 1;
            const int32_t *const r = channels + 12 * place + i / quads;
            uint32_t sum = (uint32_t)r[0]; /* wraps */
            for (k = 0; k < 2 * job->pairs; ++k) {
                sum += (uint32_t)(job->taps[k][c + i] * weights[width * k + i]);
            }
            job->out[c + i] = (int8_t)tinyfuse_clamp(
                (half_even ? tinyfuse_scale_half_even((int32_t)sum, r[4])
                           : tinyfuse_requantize((int32_t)sum, r[4], r[8])) +
                    job->out_zero_point,
                job->act_min, job->act_max);
        }
        weights += 2 * job->pairs * width;
        channels += 12 * quads;
        c += width;
    }
}

TINYFUSE_SHARED void tinyfuse_depthwise_half_even_mve_pixel(const tinyfuse_depthwise_mve_job *job)
{
    tinyfuse_depthwise_mve_pixel_c(job, 1);
}

#endif

#if !TINYFUSE_MVE

TINYFUSE_SHARED void tinyfuse_depthwise_mve_pixel(const tinyfuse_depthwise_mve_job *job)
{
    tinyfuse_depthwise_mve_pixel_c(job, 0);
}

TINYFUSE_SHARED void tinyfuse_depthwise_mve_shifted_pixel(const tinyfuse_depthwise_mve_job *job)
{
    tinyfuse_depthwise_mve_pixel(job);
}

#endif

TINYFUSE_INLINE void tinyfuse_depthwise_mve_row_in_form(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                        int8_t *out_row, const int8_t *weights,
                                                        const int32_t *channels, void *scratch, int form)
{
    const int32_t pairs = (p->kernel_h * p->kernel_w + 1) / 2;
    const int8_t **const taps =
        (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, 2 * (size_t)pairs * sizeof *taps);
    int8_t *const padding = (int8_t *)scratch + 2 * pairs * TINYFUSE_POINTER_BYTES;
    const int rows_inside = tinyfuse_depthwise_rows_inside(p, y);
    tinyfuse_depthwise_mve_job job;
    int32_t x;
    job.pairs = pairs;
    job.weights = weights;
    job.channels = channels;
    job.in_c = p->in_c;
    job.out = out_row;
    job.out_zero_point = p->out_zero_point;
    job.act_min = p->act_min;
    job.act_max = p->act_max;
    job.taps = (const int8_t *const *)taps;
    if (!rows_inside || !tinyfuse_depthwise_columns_inside(p)) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
    for (x = 0; x < p->out_w; ++x) {
        tinyfuse_depthwise_next_taps(p, in, y, x, padding, taps, rows_inside);
        (form == TINYFUSE_MVE_SHIFTED     ? tinyfuse_depthwise_mve_shifted_pixel
         : form == TINYFUSE_MVE_HALF_EVEN ? tinyfuse_depthwise_half_even_mve_pixel
                                          : tinyfuse_depthwise_mve_pixel)(&job);
        job.out += p->in_c;
    }
}
TINYFUSE_MVE_BY_FORM(tinyfuse_depthwise_mve_row, tinyfuse_depthwise_mve_row_in_form,
                     (const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row, const int8_t *weights,
                      const int32_t *channels, void *scratch),
                     p, in, y, out_row, weights, channels, scratch)

/* Computes output row y. Reads only the input rows of y's own window, writes only out_row. scratch, aligned to
   pointers: 2 * pairs pointers, then in_c bytes where any window reaches into the padding. `form`:
   TINYFUSE_MVE_EACH, TINYFUSE_MVE_SHIFTED, or TINYFUSE_MVE_HALF_EVEN, which has scales in the multipliers' place. */
TINYFUSE_INLINE void tinyfuse_depthwise_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                   int8_t *out_row, const int8_t *weights, const int32_t *channels,
                                                   void *scratch, int form)
{
    TINYFUSE_MVE_OF(form, tinyfuse_depthwise_mve_row)(p, in, y, out_row, weights, channels, scratch);
}

#endif
