/* 2D convolution for Helium, int8 NHWC, one output row a call: four pixels times two channels, by three vectors of weights
   a channel in an iteration. The inputs of an iteration are read through a list of pointers, so that windows need not
   be copied. One group.

   channels [out_c][3] int32 as in tinyfuse_matmul_4x2_mve.h; out_c is even
   weights  [out_c / 2][iterations] of an iteration's two channels, zeros where an iteration is longer than what is left.
            Two forms:
            columns  where in_c is a multiple of sixteen and columns lie side by side with stride 1 and no dilation: an
                     iteration is three taps of a kernel row by sixteen channels, [2][3][16], iterations in the order [kernel_h]
                     [ceil(kernel_w / 3)][in_c / 16]; its inputs are six columns, which neighbouring pixels share
            chunks   where columns aren't dilated: an iteration is three chunks of sixteen terms, [3][2][16], and its inputs
                     are those of four pixels; the last chunk of a kernel row has its last sixteen terms, with zeros as the
                     weights of terms that the chunk before has, too
*/
#ifndef TINYFUSE_CONV_4X2_MVE_H
#define TINYFUSE_CONV_4X2_MVE_H

#include "tinyfuse_conv_2x4_mve.h"
#include "tinyfuse_matmul_4x2_mve.h"

enum { TINYFUSE_CONV_4X2_MVE_COLUMNS, TINYFUSE_CONV_4X2_MVE_CHUNKS };
/* pointers of an iteration */
enum { TINYFUSE_CONV_4X2_MVE_TAPS = 3 };
enum { TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS = 6 };
enum { TINYFUSE_CONV_4X2_MVE_CHUNK_POINTERS = 12 };
/* bytes of the end of a list in scratch */
enum { TINYFUSE_CONV_4X2_MVE_END_BYTES = 44 };

/* The end of a list. The assembly loads the first four fields as if they were pointers of an iteration, and act_min to
   channels_end as pairs. */
typedef struct {
    const int8_t *none; /* NULL */
    int8_t *out;        /* output of the first pixel's next two channels */
    const int32_t *channels;
    int32_t out_zero_point;
    uint16_t places[8]; /* offsets of both channels of each pixel, from `out` */
    int32_t act_min, act_max;
    const int32_t *channels_end;
} tinyfuse_conv_4x2_mve_end;
#if UINTPTR_MAX <= 0xFFFFFFFFu
typedef char tinyfuse_check_conv_4x2_mve_end[sizeof(tinyfuse_conv_4x2_mve_end) == TINYFUSE_CONV_4X2_MVE_END_BYTES ? 1 : -1];
#endif

#if TINYFUSE_MVE

/* An iteration of columns; the first four are at r1, r3, r7 and r9, the list goes on with the other two. */
#define TINYFUSE_CONV_4X2_MVE_BY_COLUMNS                                                           \
    "vldrb.8 q2, [r5], #96\n\t"                                                                    \
    "vldrb.8 q0, [r1]\n\t"                                                                         \
    "vldrb.8 q5, [r5, #-48]\n\t"                                                                   \
    "vmladava.s8 r0, q0, q2\n\t"                                                                   \
    "vldrb.8 q1, [r3]\n\t"                                                                         \
    "vmladava.s8 r8, q0, q5\n\t"                                                                   \
    "vldrb.8 q3, [r5, #-80]\n\t"                                                                   \
    "vmladava.s8 r2, q1, q2\n\t"                                                                   \
    "vldrb.8 q6, [r5, #-32]\n\t"                                                                   \
    "vmladava.s8 r10, q1, q5\n\t"                                                                  \
    "vmladava.s8 r0, q1, q3\n\t"                                                                   \
    "vldrb.8 q0, [r7]\n\t"                                                                         \
    "vmladava.s8 r8, q1, q6\n\t"                                                                   \
    "vldrb.8 q4, [r5, #-64]\n\t"                                                                   \
    "vmladava.s8 r4, q0, q2\n\t"                                                                   \
    "vldrb.8 q7, [r5, #-16]\n\t"                                                                   \
    "vmladava.s8 r12, q0, q5\n\t"                                                                  \
    "vldrb.8 q1, [r9]\n\t"                                                                         \
    "vmladava.s8 r2, q0, q3\n\t"                                                                   \
    "ldm r11!, {r1, r3}\n\t"                                                                       \
    "vmladava.s8 r10, q0, q6\n\t"                                                                  \
    "vmladava.s8 r0, q0, q4\n\t"                                                                   \
    "vmladava.s8 r8, q0, q7\n\t"                                                                   \
    "vldrb.8 q0, [r1]\n\t"                                                                         \
    "vmladava.s8 r6, q1, q2\n\t"                                                                   \
    "vmladava.s8 lr, q1, q5\n\t"                                                                   \
    "vmladava.s8 r4, q1, q3\n\t"                                                                   \
    "vmladava.s8 r12, q1, q6\n\t"                                                                  \
    "vmladava.s8 r2, q1, q4\n\t"                                                                   \
    "vmladava.s8 r10, q1, q7\n\t"                                                                  \
    "vldrb.8 q1, [r3]\n\t"                                                                         \
    "vmladava.s8 r6, q0, q3\n\t"                                                                   \
    "vmladava.s8 lr, q0, q6\n\t"                                                                   \
    "vmladava.s8 r4, q0, q4\n\t"                                                                   \
    "vmladava.s8 r12, q0, q7\n\t"                                                                  \
    "vmladava.s8 r6, q1, q4\n\t"                                                                   \
    "vmladava.s8 lr, q1, q7\n\t"

/* An iteration of chunks of as many terms as P0 says. The first chunk is at r1, r3, r7 and r9, the list goes on with the
   others. */
#define TINYFUSE_CONV_4X2_MVE_BY_CHUNKS                                                            \
    TINYFUSE_4X2_MVE_DOT_REST                                                                      \
    "ldm r11!, {r1, r3, r7, r9}\n\t" TINYFUSE_4X2_MVE_DOT_REST                                     \
    "ldm r11!, {r1, r3, r7, r9}\n\t" TINYFUSE_4X2_MVE_DOT_REST

#define TINYFUSE_CONV_4X2_MVE_FIELD(field)                                                         \
    [field] "i"(offsetof(tinyfuse_conv_4x2_mve_end, field) - offsetof(tinyfuse_conv_4x2_mve_end, places))

/* Computes all channels of the four pixels of a list. r0: the list, which stays on the stack; r1: the weights; r2:
   lanes of P0. */
#define TINYFUSE_CONV_4X2_MVE_ALL(predicate, iteration, round, clamp, store, behind)               \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "mov r5, r1\n\t" predicate " r2\n\t"                                            \
                   "1:\n\t"                                                                        \
                   "ldr r11, [sp]\n\t"                                                             \
                   "clrm " TINYFUSE_4X2_MVE_SUMS "\n\t"                                            \
                   "ldm r11!, {r1, r3, r7, r9}\n\t"                                                \
                   "2:\n\t" iteration                                                              \
                   "ldm r11!, {r1, r3, r7, r9}\n\t"                                                \
                   "cmp r1, #0\n\t"                                                                \
                   "bne 2b\n\t" TINYFUSE_4X2_MVE_SUMS_TO_VECTORS                                   \
                   TINYFUSE_4X2_MVE_SCALE("r7", "r9", round)                                       \
                   "ldr r1, [r11, %[channels_end]]\n\t"                                            \
                   "vldrw.u32 q2, [r11]\n\t" clamp store                                           \
                   "adds r3, #2\n\t"                                                               \
                   "strd r3, r7, [r11, #-12]\n\t"                                                  \
                   "cmp r7, r1\n\t"                                                                \
                   "bne 1b\n\t" behind TINYFUSE_ASM_END                                            \
                   : "+r"(from), "+r"(lanes)                                                       \
                   : "r"(list), TINYFUSE_CONV_4X2_MVE_FIELD(act_min),                              \
                     TINYFUSE_CONV_4X2_MVE_FIELD(channels_end)                                     \
                   : "r3", "r12", "cc", "memory", TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")
#define TINYFUSE_CONV_4X2_MVE_CLAMP                                                                \
    "ldrd r0, r2, [r11, %[act_min]]\n\t"                                                           \
    "vdup.16 q3, r0\n\t"                                                                           \
    "vdup.16 q4, r2\n\t"                                                                           \
    "vmax.s16 q0, q0, q3\n\t"                                                                      \
    "vmin.s16 q0, q0, q4\n\t"
#define TINYFUSE_CONV_4X2_MVE_STORE "vstrb.16 q0, [r3, q2]\n\t"
#define TINYFUSE_CONV_4X2_MVE_STORE_SOME                                                           \
    "vpst\n\t"                                                                                     \
    "vstrbt.16 q0, [r3, q2]\n\t"

#define TINYFUSE_CONV_4X2_MVE(name, predicate, iteration, round, clamp, store, behind)             \
    TINYFUSE_SHARED void name(const int8_t *const *pointers, const int8_t *weights, int32_t count) \
    {                                                                                              \
        TINYFUSE_ARGUMENT(const int8_t *const *, list, pointers);                                  \
        register const int8_t *from __asm("r1") = weights;                                         \
        register int32_t lanes __asm("r2") = count;                                                \
        TINYFUSE_CONV_4X2_MVE_ALL(predicate, iteration, round, clamp, store, behind);              \
    }
#define TINYFUSE_CONV_4X2_MVE_FORM(form, round, clamp, behind)                                     \
    TINYFUSE_CONV_4X2_MVE(tinyfuse_conv_4x2_mve_columns_##form, "vctp.16", TINYFUSE_CONV_4X2_MVE_BY_COLUMNS, round, \
                          clamp, TINYFUSE_CONV_4X2_MVE_STORE_SOME, behind)                         \
    TINYFUSE_CONV_4X2_MVE(tinyfuse_conv_4x2_mve_chunks_##form, "vctp.8", TINYFUSE_CONV_4X2_MVE_BY_CHUNKS, round, clamp, \
                          TINYFUSE_CONV_4X2_MVE_STORE, behind)

TINYFUSE_CONV_4X2_MVE_FORM(each, HALVES_AWAY, TINYFUSE_CONV_4X2_MVE_CLAMP, "")
TINYFUSE_CONV_4X2_MVE_FORM(saturated, HALVES_AWAY, TINYFUSE_4X2_MVE_SATURATE, "")
TINYFUSE_CONV_4X2_MVE_FORM(rectified, HALVES_UP, TINYFUSE_4X2_MVE_SATURATE, "")
TINYFUSE_CONV_4X2_MVE_FORM(single_rounding, SINGLE_ROUNDING, TINYFUSE_CONV_4X2_MVE_CLAMP, "")
TINYFUSE_CONV_4X2_MVE_FORM(single_rounding_saturated, SINGLE_ROUNDING, TINYFUSE_4X2_MVE_SATURATE, "")
#if TINYFUSE_MVE_FLOATS
TINYFUSE_CONV_4X2_MVE_FORM(half_even, HALVES_EVEN, TINYFUSE_CONV_4X2_MVE_CLAMP, TINYFUSE_4X2_MVE_BEHIND("r9"))
TINYFUSE_CONV_4X2_MVE_FORM(half_even_saturated, HALVES_EVEN, TINYFUSE_4X2_MVE_SATURATE, TINYFUSE_4X2_MVE_BEHIND("r9"))
#endif

/* Adds `step` bytes to `count` pointers. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_mve_advance(const int8_t **list, int32_t count, int32_t step)
{
    __asm volatile("dlstp.32 lr, %[count]\n\t"
                   "1:\n\t"
                   "vldrw.u32 q0, [%[list]]\n\t"
                   "vadd.i32 q0, q0, %[step]\n\t"
                   "vstrw.32 q0, [%[list]], #16\n\t"
                   "letp lr, 1b\n\t"
                   : [list] "+r"(list)
                   : [count] "r"(count), [step] "r"(step)
                   : "lr", "cc", "memory", "q0");
}

#endif

#if !TINYFUSE_MVE_FLOATS

/* Returns the input that a pixel multiplies by weight k of an iteration. */
TINYFUSE_INLINE int8_t tinyfuse_conv_4x2_mve_input(const int8_t *const *iteration, int32_t pixel, int32_t k, int chunks)
{
    const int32_t vector = k / TINYFUSE_4X2_MVE_BLOCK;
    return iteration[chunks ? TINYFUSE_4X2_MVE_PIXELS * vector + pixel : vector + pixel][k % TINYFUSE_4X2_MVE_BLOCK];
}

/* Computes all channels of the four pixels of a list. `lanes`: for columns, two per existing pixel; for chunks, the
   terms of each. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_mve_all(const int8_t *const *list, const int8_t *weights, int32_t lanes,
                                               int chunks, int rule)
{
    const int32_t terms = TINYFUSE_CONV_4X2_MVE_TAPS * TINYFUSE_4X2_MVE_BLOCK;
    const int32_t pointers = chunks ? TINYFUSE_CONV_4X2_MVE_CHUNK_POINTERS : TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS;
    const int32_t outputs = TINYFUSE_4X2_MVE_PIXELS * TINYFUSE_4X2_MVE_CHANNELS;
    const int8_t *const *end = list;
    const tinyfuse_conv_4x2_mve_end *job;
    const int32_t *channels;
    int8_t *out;
    int32_t i, k;
    while (*end != NULL) {
        end += pointers;
    }
    job = (const tinyfuse_conv_4x2_mve_end *)(const void *)end;
    out = job->out;
    for (channels = job->channels; channels != job->channels_end; channels += 6) {
        for (i = 0; i < (chunks ? outputs : lanes); ++i) {
            const int32_t *const channel = channels + 3 * (i & 1);
            const int8_t *const *iteration;
            const int8_t *w = weights;
            uint32_t sum = 0; /* wraps */
            for (iteration = list; iteration != end; iteration += pointers) {
                for (k = 0; k < terms; ++k) {
                    const int32_t vector = k / TINYFUSE_4X2_MVE_BLOCK, term = k % TINYFUSE_4X2_MVE_BLOCK;
                    const int32_t at = chunks ? 2 * vector + (i & 1) : vector + TINYFUSE_CONV_4X2_MVE_TAPS * (i & 1);
                    if (!chunks || term < lanes) {
                        sum += (uint32_t)(tinyfuse_conv_4x2_mve_input(iteration, i >> 1, k, chunks) *
                                          w[TINYFUSE_4X2_MVE_BLOCK * at + term]);
                    }
                }
                w += TINYFUSE_4X2_MVE_CHANNELS * terms;
            }
            k = tinyfuse_vector_output(sum, channel, job->out_zero_point, rule);
            out[job->places[i]] = (int8_t)tinyfuse_clamp(k, job->act_min, job->act_max);
        }
        weights += (end - list) / pointers * TINYFUSE_4X2_MVE_CHANNELS * terms;
        out += TINYFUSE_4X2_MVE_CHANNELS;
    }
}

#define TINYFUSE_CONV_4X2_MVE_C(name, chunks, rule)                                                \
    TINYFUSE_SHARED void name(const int8_t *const *list, const int8_t *weights, int32_t lanes)     \
    {                                                                                              \
        tinyfuse_conv_4x2_mve_all(list, weights, lanes, chunks, rule);                             \
    }
#define TINYFUSE_CONV_4X2_MVE_C_FORM(form, rule)                                                   \
    TINYFUSE_CONV_4X2_MVE_C(tinyfuse_conv_4x2_mve_columns_##form, 0, rule)                         \
    TINYFUSE_CONV_4X2_MVE_C(tinyfuse_conv_4x2_mve_chunks_##form, 1, rule)

TINYFUSE_CONV_4X2_MVE_C_FORM(half_even, TINYFUSE_VECTORS_HALF_EVEN)
TINYFUSE_CONV_4X2_MVE_C_FORM(half_even_saturated, TINYFUSE_VECTORS_HALF_EVEN)
#endif

#if !TINYFUSE_MVE
TINYFUSE_CONV_4X2_MVE_C_FORM(each, TINYFUSE_VECTORS_BY_SHIFTS)
TINYFUSE_CONV_4X2_MVE_C_FORM(saturated, TINYFUSE_VECTORS_BY_SHIFTS)
TINYFUSE_CONV_4X2_MVE_C_FORM(rectified, TINYFUSE_VECTORS_BY_SHIFTS)
TINYFUSE_CONV_4X2_MVE_C_FORM(single_rounding, TINYFUSE_VECTORS_SINGLE_ROUNDING)
TINYFUSE_CONV_4X2_MVE_C_FORM(single_rounding_saturated, TINYFUSE_VECTORS_SINGLE_ROUNDING)

/* Adds `step` bytes to `count` pointers. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_mve_advance(const int8_t **list, int32_t count, int32_t step)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        list[i] += step;
    }
}

#endif

/* The parts of a row's lists. */
typedef struct {
    const tinyfuse_conv *p;
    const int8_t *in;
    int32_t y;
    const int8_t **list;
    int8_t *padding; /* sixteen times the zero point, or a kernel row's terms */
} tinyfuse_conv_4x2_mve_row;

/* Returns the input row for row ky of the window, NULL in the padding. */
TINYFUSE_INLINE const int8_t *tinyfuse_conv_4x2_mve_in(const tinyfuse_conv_4x2_mve_row *r, int32_t ky)
{
    const tinyfuse_conv *const p = r->p;
    const int32_t iy = r->y * p->stride_h - p->pad_top + ky * p->dilation_h;
    return iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(r->in, iy, p->in_ring, p->in_w * p->in_c) : NULL;
}

/* Returns the address `offset` bytes after a place, which need not be in the same row. */
TINYFUSE_INLINE const int8_t *tinyfuse_conv_4x2_mve_at(const int8_t *place, int32_t offset)
{
    return (const int8_t *)((uintptr_t)place + (uintptr_t)(intptr_t)offset);
}

/* Lists the columns of pixel x and the three after it, even beyond the image. Returns whether no row of the window is
   padding. */
TINYFUSE_SHARED int tinyfuse_conv_4x2_mve_list_columns(const tinyfuse_conv_4x2_mve_row *r, int32_t x)
{
    const tinyfuse_conv *const p = r->p;
    const int8_t **put = r->list;
    int32_t ky, tap, c;
    int inside = 1;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int8_t *const row = tinyfuse_conv_4x2_mve_in(r, ky);
        const int32_t step = row != NULL ? p->in_c : 0, block = row != NULL ? TINYFUSE_4X2_MVE_BLOCK : 0;
        inside &= row != NULL;
        for (tap = 0; tap < p->kernel_w; tap += TINYFUSE_CONV_4X2_MVE_TAPS) {
            const int8_t *at =
                row != NULL ? tinyfuse_conv_4x2_mve_at(row, (x - p->pad_left + tap) * p->in_c) : r->padding;
            for (c = 0; c < p->in_c; c += TINYFUSE_4X2_MVE_BLOCK) {
                const int8_t *column = at;
                put[0] = column;
                put[1] = column = tinyfuse_conv_4x2_mve_at(column, step);
                put[2] = column = tinyfuse_conv_4x2_mve_at(column, step);
                put[3] = column = tinyfuse_conv_4x2_mve_at(column, step);
                put[4] = column = tinyfuse_conv_4x2_mve_at(column, step);
                put[5] = tinyfuse_conv_4x2_mve_at(column, step);
                put += TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS;
                at = tinyfuse_conv_4x2_mve_at(at, block);
            }
        }
    }
    return inside;
}

/* Points the list's columns outside of the image to the padding. */
TINYFUSE_SHARED void tinyfuse_conv_4x2_mve_pad_columns(const tinyfuse_conv_4x2_mve_row *r, int32_t x)
{
    const tinyfuse_conv *const p = r->p;
    const int32_t blocks = p->in_c / TINYFUSE_4X2_MVE_BLOCK;
    const int32_t taps = (p->kernel_w + TINYFUSE_CONV_4X2_MVE_TAPS - 1) / TINYFUSE_CONV_4X2_MVE_TAPS;
    int32_t i, tap, ky, c;
    for (tap = 0; tap < taps; ++tap) {
        const int32_t from = x - p->pad_left + tap * TINYFUSE_CONV_4X2_MVE_TAPS;
        for (i = 0; i < TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS; ++i) {
            const int8_t **put = r->list + tap * blocks * TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS + i;
            if (from + i >= 0 && from + i < p->in_w) {
                continue;
            }
            for (ky = 0; ky < p->kernel_h; ++ky) {
                for (c = 0; c < blocks; ++c) {
                    put[c * TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS] = r->padding;
                }
                put += taps * blocks * TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS;
            }
        }
    }
}

/* Fills the fields of a list's end that a row's pixels share. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_mve_begin(const tinyfuse_conv *p, tinyfuse_conv_4x2_mve_end *end,
                                                 const int32_t *channels)
{
    end->none = NULL;
    end->out_zero_point = p->out_zero_point;
    end->act_min = p->act_min;
    end->act_max = p->act_max;
    end->channels_end = channels + 3 * p->out_c;
}

/* Fills the output offsets of four pixels; those from `pixels` on repeat the last pixel's. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_mve_places(const tinyfuse_conv *p, tinyfuse_conv_4x2_mve_end *end,
                                                  int32_t pixels)
{
    int32_t i;
    for (i = 0; i < TINYFUSE_4X2_MVE_PIXELS; ++i) {
        const int32_t place = tinyfuse_min(i, pixels - 1) * p->out_c;
        end->places[2 * i] = (uint16_t)place;
        end->places[2 * i + 1] = (uint16_t)(place + 1);
    }
}

TINYFUSE_INLINE void tinyfuse_conv_4x2_columns_mve_row_in_form(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                               int8_t *out_row, const int8_t *weights,
                                                               const int32_t *channels, void *scratch, int form)
{
    const int32_t taps = (p->kernel_w + TINYFUSE_CONV_4X2_MVE_TAPS - 1) / TINYFUSE_CONV_4X2_MVE_TAPS;
    const int32_t pointers =
        p->kernel_h * taps * (p->in_c / TINYFUSE_4X2_MVE_BLOCK) * TINYFUSE_CONV_4X2_MVE_COLUMN_POINTERS;
    tinyfuse_conv_4x2_mve_row r;
    tinyfuse_conv_4x2_mve_end *end;
    int32_t x;
    int listed = 0; /* whether the list is that of the four pixels before, none of its columns replaced by padding */
    r.p = p;
    r.in = in;
    r.y = y;
    r.list = (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)pointers * sizeof *r.list + sizeof *end);
    end = (tinyfuse_conv_4x2_mve_end *)(void *)(r.list + pointers);
    r.padding = (int8_t *)scratch + pointers * TINYFUSE_POINTER_BYTES + TINYFUSE_CONV_4X2_MVE_END_BYTES;
    memset(r.padding, p->in_zero_point, TINYFUSE_4X2_MVE_BLOCK);
    tinyfuse_conv_4x2_mve_begin(p, end, channels);
    tinyfuse_conv_4x2_mve_places(p, end, TINYFUSE_4X2_MVE_PIXELS);
    for (x = 0; x < p->out_w; x += TINYFUSE_4X2_MVE_PIXELS) {
        const int32_t pixels = tinyfuse_min(p->out_w - x, TINYFUSE_4X2_MVE_PIXELS);
        /* the first column that they read, the one after the last */
        const int32_t first = x - p->pad_left;
        const int32_t after = first + TINYFUSE_4X2_MVE_PIXELS - 1 + taps * TINYFUSE_CONV_4X2_MVE_TAPS;
        if (listed != 0) {
            tinyfuse_conv_4x2_mve_advance(r.list, pointers, TINYFUSE_4X2_MVE_PIXELS * p->in_c);
        } else {
            listed = tinyfuse_conv_4x2_mve_list_columns(&r, x);
        }
        if (first < 0 || after > p->in_w) {
            tinyfuse_conv_4x2_mve_pad_columns(&r, x);
            listed = 0;
        }
        end->out = out_row + x * p->out_c;
        end->channels = channels;
        TINYFUSE_4X2_MVE_EVEN_OF(form, tinyfuse_conv_4x2_mve_columns)(
            r.list, weights, TINYFUSE_4X2_MVE_CHANNELS * pixels);
    }
}
TINYFUSE_4X2_MVE_BY_FORM(tinyfuse_conv_4x2_columns_mve_row, tinyfuse_conv_4x2_columns_mve_row_in_form,
                         (const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                          const int8_t *weights, const int32_t *channels, void *scratch),
                         p, in, y, out_row, weights, channels, scratch)

/* Computes output row y by columns. Reads only the input rows of y's own window, writes only the out_w * out_c bytes
   of out_row. `form` is a constant of tinyfuse_matmul_4x2_mve.h. scratch, aligned to 4: six pointers of 4 bytes for
   each of the kernel_h * ceil(kernel_w / 3) * in_c / 16 iterations; TINYFUSE_CONV_4X2_MVE_END_BYTES; 16 bytes. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_columns_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                          int8_t *out_row, const int8_t *weights,
                                                          const int32_t *channels, void *scratch, int form)
{
    TINYFUSE_4X2_MVE_EVEN_OF(form, tinyfuse_conv_4x2_columns_mve_row)(p, in, y, out_row, weights, channels, scratch);
}

/* Returns whether no column of pixel x's window is padding. */
TINYFUSE_INLINE int tinyfuse_conv_4x2_mve_inside(const tinyfuse_conv *p, int32_t x)
{
    const int32_t from = x * p->stride_w - p->pad_left;
    return from >= 0 && from + p->kernel_w <= p->in_w;
}

/* Lists the chunks of `pixels` pixels, 1 to 4, from x on, even beyond the image; the last pixel is repeated up to
   four. Returns whether no row of the window is padding. */
TINYFUSE_SHARED int tinyfuse_conv_4x2_mve_list_chunks(const tinyfuse_conv_4x2_mve_row *r, int32_t x, int32_t pixels)
{
    const tinyfuse_conv *const p = r->p;
    const int32_t run = p->kernel_w * p->in_c, from = (x * p->stride_w - p->pad_left) * p->in_c;
    const int32_t step = p->stride_w * p->in_c;
    const int8_t **put = r->list;
    int32_t ky, i, count = 0;
    int inside = 1;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int8_t *const row = tinyfuse_conv_4x2_mve_in(r, ky);
        const int32_t second = row != NULL && pixels > 1 ? step : 0, third = row != NULL && pixels > 2 ? step : 0;
        const int32_t fourth = row != NULL && pixels > 3 ? step : 0;
        const int8_t *const at = row != NULL ? tinyfuse_conv_4x2_mve_at(row, from) : r->padding;
        inside &= row != NULL;
        for (i = 0; i < run; i += TINYFUSE_4X2_MVE_BLOCK) {
            const int8_t *chunk =
                tinyfuse_conv_4x2_mve_at(at, tinyfuse_max(0, tinyfuse_min(i, run - TINYFUSE_4X2_MVE_BLOCK)));
            put[0] = chunk;
            put[1] = chunk = tinyfuse_conv_4x2_mve_at(chunk, second);
            put[2] = chunk = tinyfuse_conv_4x2_mve_at(chunk, third);
            put[3] = tinyfuse_conv_4x2_mve_at(chunk, fourth);
            put += TINYFUSE_4X2_MVE_PIXELS;
            ++count;
        }
    }
    for (; count % TINYFUSE_CONV_4X2_MVE_TAPS != 0; ++count) {
        memcpy(put, put - TINYFUSE_4X2_MVE_PIXELS, TINYFUSE_4X2_MVE_PIXELS * sizeof *put); /* any values: their weights are zeros */
        put += TINYFUSE_4X2_MVE_PIXELS;
    }
    return inside;
}

/* Copies the window of pixel x, which reaches into the padding, and points the chunks of the list's pixels from
   `first` to `last` to the copy. */
TINYFUSE_SHARED void tinyfuse_conv_4x2_mve_copy_window(const tinyfuse_conv_4x2_mve_row *r, int32_t x, int32_t first,
                                                       int32_t last, int8_t *window)
{
    const tinyfuse_conv *const p = r->p;
    const int32_t run = p->kernel_w * p->in_c;
    const int8_t **put = r->list;
    int32_t ky, i, pixel, count = 0;
    for (ky = 0; ky < p->kernel_h; ++ky) {
        const int8_t *const row = tinyfuse_conv_4x2_mve_in(r, ky);
        if (row != NULL) {
            tinyfuse_window_row(p, row, x, window);
        } else {
            tinyfuse_fill(window, p->in_zero_point, run);
        }
        for (i = 0; i < run; i += TINYFUSE_4X2_MVE_BLOCK) {
            for (pixel = first; pixel <= last; ++pixel) {
                put[pixel] = window + tinyfuse_max(0, tinyfuse_min(i, run - TINYFUSE_4X2_MVE_BLOCK));
            }
            put += TINYFUSE_4X2_MVE_PIXELS;
            ++count;
        }
        window += run;
    }
    for (; count % TINYFUSE_CONV_4X2_MVE_TAPS != 0; ++count) {
        memcpy(put, put - TINYFUSE_4X2_MVE_PIXELS, TINYFUSE_4X2_MVE_PIXELS * sizeof *put); /* any values: their weights are zeros */
        put += TINYFUSE_4X2_MVE_PIXELS;
    }
}

TINYFUSE_INLINE void tinyfuse_conv_4x2_chunks_mve_row_in_form(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                              int8_t *out_row, const int8_t *weights,
                                                              const int32_t *channels, void *scratch, int form)
{
    const int32_t run = p->kernel_w * p->in_c;
    const int32_t chunks = p->kernel_h * ((run + TINYFUSE_4X2_MVE_BLOCK - 1) / TINYFUSE_4X2_MVE_BLOCK);
    const int32_t iterations = (chunks + TINYFUSE_CONV_4X2_MVE_TAPS - 1) / TINYFUSE_CONV_4X2_MVE_TAPS;
    const int32_t pointers = iterations * TINYFUSE_CONV_4X2_MVE_CHUNK_POINTERS;
    tinyfuse_conv_4x2_mve_row r;
    tinyfuse_conv_4x2_mve_end *end;
    int8_t *windows;
    int32_t x, i;
    int listed = 0; /* whether the list is that of the four pixels before, none of its columns replaced by padding */
    r.p = p;
    r.in = in;
    r.y = y;
    r.list = (const int8_t **)TINYFUSE_WITH_POINTERS(scratch, (size_t)pointers * sizeof *r.list + sizeof *end);
    end = (tinyfuse_conv_4x2_mve_end *)(void *)(r.list + pointers);
    r.padding = (int8_t *)scratch + pointers * TINYFUSE_POINTER_BYTES + TINYFUSE_CONV_4X2_MVE_END_BYTES;
    windows = r.padding;
    for (i = 0; i < p->kernel_h; ++i) {
        if (tinyfuse_conv_4x2_mve_in(&r, i) == NULL) {
            windows = tinyfuse_fill(r.padding, p->in_zero_point, run);
            break;
        }
    }
    tinyfuse_conv_4x2_mve_begin(p, end, channels);
    tinyfuse_conv_4x2_mve_places(p, end, TINYFUSE_4X2_MVE_PIXELS);
    for (x = 0; x < p->out_w; x += TINYFUSE_4X2_MVE_PIXELS) {
        const int32_t pixels = tinyfuse_min(p->out_w - x, TINYFUSE_4X2_MVE_PIXELS);
        if (listed && pixels == TINYFUSE_4X2_MVE_PIXELS) {
            tinyfuse_conv_4x2_mve_advance(r.list, pointers, TINYFUSE_4X2_MVE_PIXELS * p->stride_w * p->in_c);
        } else {
            listed = tinyfuse_conv_4x2_mve_list_chunks(&r, x, pixels);
            tinyfuse_conv_4x2_mve_places(p, end, pixels);
        }
        if (!tinyfuse_conv_4x2_mve_inside(p, x) || !tinyfuse_conv_4x2_mve_inside(p, x + pixels - 1)) {
            int8_t *window = windows;
            for (i = 0; i < pixels; ++i) {
                if (tinyfuse_conv_4x2_mve_inside(p, x + i) == 0) {
                    tinyfuse_conv_4x2_mve_copy_window(&r, x + i, i, i + 1 < pixels ? i : TINYFUSE_4X2_MVE_PIXELS - 1,
                                                      window);
                    window += p->kernel_h * run;
                }
            }
            listed = 0;
        }
        end->out = out_row + x * p->out_c;
        end->channels = channels;
        TINYFUSE_4X2_MVE_EVEN_OF(form, tinyfuse_conv_4x2_mve_chunks)(
            r.list, weights, tinyfuse_min(run, TINYFUSE_4X2_MVE_BLOCK));
    }
}
TINYFUSE_4X2_MVE_BY_FORM(tinyfuse_conv_4x2_chunks_mve_row, tinyfuse_conv_4x2_chunks_mve_row_in_form,
                         (const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out_row,
                          const int8_t *weights, const int32_t *channels, void *scratch),
                         p, in, y, out_row, weights, channels, scratch)

/* Computes output row y by chunks. Reads only the input rows of y's own window, writes only the out_w * out_c bytes
   of out_row. `form` is a constant of tinyfuse_matmul_4x2_mve.h. scratch, aligned to 4: twelve pointers of 4 bytes
   for each iteration of three chunks, of which a window has kernel_h * ceil(kernel_w * in_c / 16);
   TINYFUSE_CONV_4X2_MVE_END_BYTES; kernel_w * in_c bytes where any window has rows in the padding; `windows` copies
   of kernel_h * kernel_w * in_c bytes, `windows` being the most pixels of an aligned four whose windows have columns
   in the padding. */
TINYFUSE_INLINE void tinyfuse_conv_4x2_chunks_mve_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                         int8_t *out_row, const int8_t *weights,
                                                         const int32_t *channels, void *scratch, int form)
{
    TINYFUSE_4X2_MVE_EVEN_OF(form, tinyfuse_conv_4x2_chunks_mve_row)(p, in, y, out_row, weights, channels, scratch);
}

#endif
