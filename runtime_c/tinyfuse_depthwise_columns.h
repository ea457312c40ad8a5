/* Depthwise convolution with depth multiplier 1 for Helium, int8 NHWC, one output row a call, whose windows have
   at most three rows and four columns: eight outputs and sixteen channels at a time. Of each column the rows
   are interleaved, so that a channel's window is four words, one a column, which a gathering load fetches into
   the vector that one VMLADAV multiplies.

   weights  [in_c][4 columns][4 rows], zeros where the window has none
   channels [in_c][3] int32: bias with -zero point * sum of weights folded in, multiplier, shift (at most 0)
*/
#ifndef TINYFUSE_DEPTHWISE_COLUMNS_H
#define TINYFUSE_DEPTHWISE_COLUMNS_H

#include "tinyfuse_conv.h"

/* at most, of a window: rows, columns */
enum { TINYFUSE_COLUMNS_ROWS = 3 };
enum { TINYFUSE_COLUMNS_WIDTH = 4 };
/* at most: which columns are `stride_w` apart */
enum { TINYFUSE_COLUMNS_PLANES = 2 };
/* at a time: outputs of a row, channels */
enum { TINYFUSE_COLUMNS_OUTPUTS = 8 };
enum { TINYFUSE_COLUMNS_CHANNELS = 16 };
/* of a column in scratch: of each channel a word of four rows */
enum { TINYFUSE_COLUMNS_BYTES = 64 };
/* of a tinyfuse_columns in scratch */
enum { TINYFUSE_COLUMNS_JOB_BYTES = 148 };

/* Of a window's columns those that lie `stride_w` apart and in the image. The assembly loads all fields by one LDM. */
typedef struct {
    const int8_t *rows[TINYFUSE_COLUMNS_ROWS]; /* the first one's first channel */
    int32_t steps[TINYFUSE_COLUMNS_ROWS];      /* from a column to the next, in bytes */
    int8_t *to;
    int32_t count;
} tinyfuse_columns_plane;

/* A chunk of outputs. The assembly loads the first three fields by one LDM and uses up four, and loads `act_min` and
   `act_max` as a pair. */
typedef struct {
    int8_t *out; /* the first one, of the first channel */
    const int8_t *weights;
    const int32_t *channels;
    int32_t channels_left;
    int32_t outputs; /* at most eight, `in_c` bytes from one to the next */
    int32_t in_c, out_zero_point, act_min, act_max;
    const int8_t *columns;
    int32_t offsets[TINYFUSE_COLUMNS_WIDTH]; /* of the first window's columns, from `columns` */
    const tinyfuse_columns_plane *planes_end;
    tinyfuse_columns_plane planes[TINYFUSE_COLUMNS_PLANES];
    const int8_t *rows[TINYFUSE_COLUMNS_ROWS]; /* of the windows; from a column of a plane to the next */
    int32_t steps[TINYFUSE_COLUMNS_ROWS];
} tinyfuse_columns;

#if UINTPTR_MAX <= 0xFFFFFFFFu
typedef char tinyfuse_check_columns[sizeof(tinyfuse_columns) == TINYFUSE_COLUMNS_JOB_BYTES ? 1 : -1];
#endif

#if TINYFUSE_MVE

/* Interleaves the columns of sixteen channels, the r12th and those after. r0: the job; r10 to r11: the planes; r1 to r3:
   rows; r4 to r6: steps; r7: where columns go. */
#define TINYFUSE_COLUMNS_INTERLEAVE                                                                \
    "ldr r10, [r0, %[channels_left]]\n\t"                                                          \
    "ldr r11, [r0, %[planes_end]]\n\t"                                                             \
    "vctp.8 r10\n\t"                                                                               \
    "add r10, r0, %[planes]\n\t"                                                                   \
    "2:\n\t"                                                                                       \
    "ldm r10!, {r1-r8}\n\t"                                                                        \
    "cmp r8, #0\n\t"                                                                               \
    "beq 4f\n\t"                                                                                   \
    "add r1, r12\n\t"                                                                              \
    "add r2, r12\n\t"                                                                              \
    "add r3, r12\n\t"                                                                              \
    "dls lr, r8\n\t"                                                                               \
    "3:\n\t"                                                                                       \
    "vpsttt\n\t"                                                                                   \
    "vldrbt.8 q0, [r1]\n\t"                                                                        \
    "vldrbt.8 q1, [r2]\n\t"                                                                        \
    "vldrbt.8 q2, [r3]\n\t"                                                                        \
    "add r1, r4\n\t"                                                                               \
    "vst40.8 {q0, q1, q2, q3}, [r7]\n\t" /* q3: any bytes, times zero */                          \
    "add r2, r5\n\t"                                                                               \
    "vst41.8 {q0, q1, q2, q3}, [r7]\n\t"                                                           \
    "add r3, r6\n\t"                                                                               \
    "vst42.8 {q0, q1, q2, q3}, [r7]\n\t"                                                           \
    "vst43.8 {q0, q1, q2, q3}, [r7]!\n\t"                                                          \
    "le lr, 3b\n\t"                                                                                \
    "4:\n\t"                                                                                       \
    "cmp r10, r11\n\t"                                                                             \
    "bne 2b\n\t"

#define TINYFUSE_COLUMNS_DOT(v, offset, sum)                                                       \
    "vldrw.u32 " v ", [q7, #" offset "]\n\t"                                                       \
    "vmladav.s8 " sum ", " v ", q1\n\t"

/* VRSHL rounds halves up, so that a negative value is first lowered by one. */
#define TINYFUSE_COLUMNS_ROUND_AWAY                                                                \
    "vshr.s32 q0, q2, #31\n\t"                                                                     \
    "vadd.i32 q2, q2, q0\n\t"                                                                      \
    "vshr.s32 q0, q3, #31\n\t"                                                                     \
    "vadd.i32 q3, q3, q0\n\t"

/* The outputs of sixteen channels. r1: 4, from a channel's word to the next's; r3: out; r5: weights; r7: channels; r9: how
   much of the eight dot products is left out, in bytes of code; r11: the last channel's weights' end. q1: a channel's
   weights; q4: where the outputs lie; q7: where the first window's columns lie. */
#define TINYFUSE_COLUMNS_SIXTEEN(round, store)                                                     \
    "ldr r10, [r0, %[outputs]]\n\t"                                                                \
    "ldr r2, [r0, %[channels_left]]\n\t"                                                           \
    "add r6, r0, %[offsets]\n\t"                                                                   \
    "ldr r4, [r0, %[columns]]\n\t"                                                                 \
    "ldm r0, {r3, r5, r7}\n\t"                                                                     \
    "vldrw.u32 q7, [r6]\n\t"                                                                       \
    "vctp.16 r10\n\t"                                                                              \
    "rsb r9, r10, #8\n\t"                                                                          \
    "lsls r9, r9, #3\n\t"                                                                          \
    "cmp r2, #16\n\t"                                                                              \
    "it gt\n\t"                                                                                    \
    "movgt r2, #16\n\t"                                                                            \
    "add r11, r5, r2, lsl #4\n\t"                                                                  \
    "movs r1, #4\n\t"                                                                              \
    "vadd.i32 q7, q7, r4\n\t"                                                                      \
    "5:\n\t"                                                                                       \
    "vldrb.8 q1, [r5], #16\n\t"                                                                    \
    "add pc, r9\n\t" /* eight bytes of code for each output that isn't there */                   \
    "nop\n\t"                                                                                      \
    TINYFUSE_COLUMNS_DOT("q2", "448", "lr") TINYFUSE_COLUMNS_DOT("q0", "384", "r12")               \
    TINYFUSE_COLUMNS_DOT("q2", "320", "r10") TINYFUSE_COLUMNS_DOT("q0", "256", "r8")               \
    TINYFUSE_COLUMNS_DOT("q2", "192", "r6") TINYFUSE_COLUMNS_DOT("q0", "128", "r4")                \
    TINYFUSE_COLUMNS_DOT("q2", "64", "r2") TINYFUSE_COLUMNS_DOT("q0", "0", "r0")                   \
    "vmov q2[2], q2[0], r0, r8\n\t"                                                                \
    "vmov q2[3], q2[1], r4, r12\n\t"                                                               \
    "vmov q3[2], q3[0], r2, r10\n\t"                                                               \
    "vmov q3[3], q3[1], r6, lr\n\t"                                                                \
    "ldm r7!, {r0, r2, r4}\n\t"                                                                    \
    "vadd.i32 q2, q2, r0\n\t"                                                                      \
    "vadd.i32 q3, q3, r0\n\t"                                                                      \
    "vqrdmulh.s32 q2, q2, r2\n\t"                                                                  \
    "vqrdmulh.s32 q3, q3, r2\n\t" round                                                            \
    "vrshl.s32 q2, r4\n\t"                                                                         \
    "vrshl.s32 q3, r4\n\t"                                                                         \
    "vqmovnb.s32 q2, q2\n\t"                                                                       \
    "vqmovnt.s32 q2, q3\n\t" store                                                                 \
    "vpst\n\t"                                                                                     \
    "vstrbt.16 q2, [r3, q4]\n\t"                                                                   \
    "vadd.i32 q7, q7, r1\n\t"                                                                      \
    "adds r3, #1\n\t"                                                                              \
    "cmp r5, r11\n\t"                                                                              \
    "bne 5b\n\t"

#define TINYFUSE_COLUMNS_FIELD(field) [field] "i"(offsetof(tinyfuse_columns, field))

/* All channels. `begin` is in front of the loop over them, `round` before the shift, `store` before what is stored, in
   16 bits. On the stack: the zero point, the channels that are done, the job. */
#define TINYFUSE_COLUMNS_ALL(begin, round, store)                                                  \
    __asm volatile(TINYFUSE_ASM_BEGIN                                                              \
                   "ldr r4, [r0, %[in_c]]\n\t"                                                     \
                   "movs r2, #0\n\t"                                                               \
                   "vidup.u16 q4, r2, #1\n\t"                                                      \
                   "vmul.i16 q4, q4, r4\n\t"                                                       \
                   "ldr r2, [r0, %[out_zero_point]]\n\t"                                           \
                   "movs r12, #0\n\t" begin                                                        \
                   "push {r2, r12}\n\t"                                                            \
                   "1:\n\t"                                                                        \
                   TINYFUSE_COLUMNS_INTERLEAVE                                                     \
                   TINYFUSE_COLUMNS_SIXTEEN(round, store)                                          \
                   "ldrd r12, r0, [sp, #4]\n\t"                                                    \
                   "ldr r1, [r0, %[channels_left]]\n\t"                                            \
                   "stm r0, {r3, r5, r7}\n\t"                                                      \
                   "adds r12, #16\n\t"                                                             \
                   "str r12, [sp, #4]\n\t"                                                         \
                   "subs r1, #16\n\t"                                                              \
                   "str r1, [r0, %[channels_left]]\n\t"                                            \
                   "bgt 1b\n\t"                                                                    \
                   "pop {r2, r12}\n\t" TINYFUSE_ASM_END                                            \
                   :                                                                               \
                   : "r"(job), TINYFUSE_COLUMNS_FIELD(offsets), TINYFUSE_COLUMNS_FIELD(in_c),      \
                     TINYFUSE_COLUMNS_FIELD(out_zero_point), TINYFUSE_COLUMNS_FIELD(act_min),      \
                     TINYFUSE_COLUMNS_FIELD(outputs), TINYFUSE_COLUMNS_FIELD(channels_left),       \
                     TINYFUSE_COLUMNS_FIELD(columns), TINYFUSE_COLUMNS_FIELD(planes),              \
                     TINYFUSE_COLUMNS_FIELD(planes_end)                                            \
                   : TINYFUSE_ASM_CLOBBERS, TINYFUSE_CLOBBERS_P0 "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7")

/* All of int8 from the zero point on, which saturating clamps to: what is rounded otherwise is below it. */
TINYFUSE_SHARED void tinyfuse_columns_rectified(tinyfuse_columns *chunk)
{
    TINYFUSE_ARGUMENT(tinyfuse_columns *, job, chunk);
    TINYFUSE_COLUMNS_ALL("vdup.16 q5, r2\n\t", "",
                         "vqadd.s16 q2, q2, q5\n\t"
                         "vqmovnb.s16 q2, q2\n\t");
}

/* Any outputs. */
TINYFUSE_SHARED void tinyfuse_columns_clamped(tinyfuse_columns *chunk)
{
    TINYFUSE_ARGUMENT(tinyfuse_columns *, job, chunk);
    TINYFUSE_COLUMNS_ALL("ldrd r3, r4, [r0, %[act_min]]\n\t"
                         "vdup.16 q5, r3\n\t"
                         "vdup.16 q6, r4\n\t",
                         TINYFUSE_COLUMNS_ROUND_AWAY,
                         "ldr r0, [sp]\n\t"
                         "vqadd.s16 q2, q2, r0\n\t"
                         "vmax.s16 q2, q2, q5\n\t"
                         "vmin.s16 q2, q2, q6\n\t");
}

#else

/* Interleaves the columns of a plane: of `channels`, the c-th and those after. */
TINYFUSE_INLINE void tinyfuse_columns_interleave(const tinyfuse_columns_plane *plane, int32_t c, int32_t channels)
{
    int32_t x, i, r;
    for (x = 0; x < plane->count; ++x) {
        for (i = 0; i < channels; ++i) {
            for (r = 0; r < TINYFUSE_COLUMNS_ROWS; ++r) {
                plane->to[x * TINYFUSE_COLUMNS_BYTES + 4 * i + r] = plane->rows[r][x * plane->steps[r] + c + i];
            }
        }
    }
}

TINYFUSE_INLINE int8_t tinyfuse_columns_output(const tinyfuse_columns *job, int32_t x, int32_t i)
{
    const int8_t *const weights = job->weights + TINYFUSE_COLUMNS_WIDTH * 4 * i;
    const int32_t *const channel = job->channels + 3 * i;
    uint32_t sum = (uint32_t)channel[0]; /* wraps */
    int32_t k, r;
    for (k = 0; k < TINYFUSE_COLUMNS_WIDTH; ++k) {
        const int8_t *const column = job->columns + job->offsets[k] + x * TINYFUSE_COLUMNS_BYTES + 4 * i;
        for (r = 0; r < TINYFUSE_COLUMNS_ROWS; ++r) {
            sum += (uint32_t)(column[r] * weights[4 * k + r]);
        }
    }
    return (int8_t)tinyfuse_clamp(tinyfuse_requantize((int32_t)sum, channel[1], channel[2]) + job->out_zero_point,
                                  job->act_min, job->act_max);
}

TINYFUSE_SHARED void tinyfuse_columns_clamped(tinyfuse_columns *job)
{
    const tinyfuse_columns_plane *plane;
    int32_t c, i, x;
    for (c = 0; job->channels_left > 0; c += TINYFUSE_COLUMNS_CHANNELS) {
        const int32_t channels = tinyfuse_min(job->channels_left, TINYFUSE_COLUMNS_CHANNELS);
        for (plane = job->planes; plane != job->planes_end; ++plane) {
            tinyfuse_columns_interleave(plane, c, channels);
        }
        for (i = 0; i < channels; ++i) {
            for (x = 0; x < job->outputs; ++x) {
                job->out[x * job->in_c + i] = tinyfuse_columns_output(job, x, i);
            }
        }
        job->out += channels;
        job->weights += TINYFUSE_COLUMNS_WIDTH * 4 * channels;
        job->channels += 3 * channels;
        job->channels_left -= TINYFUSE_COLUMNS_CHANNELS;
    }
}

TINYFUSE_SHARED void tinyfuse_columns_rectified(tinyfuse_columns *job)
{
    tinyfuse_columns_clamped(job);
}

#endif

/* Fills so many columns. */
TINYFUSE_INLINE void tinyfuse_columns_pad(int8_t *columns, int32_t value, int32_t count)
{
    if (count > 0) {
        memset(columns, value, (size_t)(count * TINYFUSE_COLUMNS_BYTES));
    }
}

/* Of the columns that the windows of `outputs` output columns from x on read, those `number` after a multiple of
   stride_w: says which lie in the image, and pads the others. `columns`: where they go. */
TINYFUSE_INLINE void tinyfuse_columns_place(const tinyfuse_conv *p, int32_t x, int32_t outputs, int32_t number,
                                            int8_t *columns, tinyfuse_columns *job)
{
    const int32_t stride = p->stride_w, column = x * stride - p->pad_left + number;
    const int32_t all = outputs + (p->kernel_w - 1 - number) / stride;
    /* the first one inside, the first one after the image */
    const int32_t first = column >= 0 ? 0 : tinyfuse_min(all, (stride - 1 - column) / stride);
    const int32_t inside = p->in_w - column, after = inside <= 0 ? 0 : (inside + stride - 1) / stride;
    const int32_t last = tinyfuse_max(first, tinyfuse_min(all, after));
    tinyfuse_columns_plane *const plane = job->planes + number;
    int32_t r;
    tinyfuse_columns_pad(columns, p->in_zero_point, first);
    tinyfuse_columns_pad(columns + last * TINYFUSE_COLUMNS_BYTES, p->in_zero_point, all - last);
    for (r = 0; r < TINYFUSE_COLUMNS_ROWS; ++r) {
        plane->steps[r] = job->steps[r];
        plane->rows[r] = job->rows[r];
        if (job->steps[r] != 0 && last > first) {
            plane->rows[r] += (column + first * stride) * p->in_c;
        }
    }
    plane->to = columns + first * TINYFUSE_COLUMNS_BYTES;
    plane->count = last - first;
}

/* The rows of output row y's window, `padding` for those that the image doesn't have, and from a column to the next. */
TINYFUSE_INLINE void tinyfuse_columns_rows(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *padding,
                                           tinyfuse_columns *job)
{
    int32_t r, outside = 0;
    for (r = 0; r < TINYFUSE_COLUMNS_ROWS; ++r) {
        const int32_t iy = y * p->stride_h - p->pad_top + r * p->dilation_h;
        const int inside = iy >= 0 && iy < p->in_h;
        job->rows[r] = padding;
        job->steps[r] = 0;
        if (r >= p->kernel_h) { /* any bytes, times zero */
            job->rows[r] = job->rows[0];
            job->steps[r] = job->steps[0];
        } else if (inside) {
            job->rows[r] = tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c);
            job->steps[r] = p->stride_w * p->in_c;
        } else {
            ++outside;
        }
    }
    if (outside > 0) {
        memset(padding, p->in_zero_point, (size_t)p->in_c);
    }
}

/* Output row y. Reads only the input rows of y's own window, writes only out_row. `rectified`, a constant: the clamp
   is all of int8 from the zero point on; else no channel's shift is 0. scratch, aligned to 4: a tinyfuse_columns, then the
   columns that a chunk of outputs reads: of the `stride_w`, at most `kernel_w` and two, planes of columns that lie so
   far apart each as many as outputs + (kernel_w - 1) / stride_w; then in_c bytes where any window has rows in the
   padding. */
TINYFUSE_SHARED void tinyfuse_depthwise_columns_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y,
                                                       int8_t *out_row, const int8_t *weights,
                                                       const int32_t *channels, void *scratch, int rectified)
{
    tinyfuse_columns *const job = (tinyfuse_columns *)TINYFUSE_WITH_POINTERS(scratch, sizeof *job);
    int8_t *const columns = (int8_t *)scratch + TINYFUSE_COLUMNS_JOB_BYTES;
    const int32_t stride = p->stride_w, planes = tinyfuse_min(stride, p->kernel_w);
    const int32_t plane_columns = tinyfuse_min(TINYFUSE_COLUMNS_OUTPUTS, p->out_w) + (p->kernel_w - 1) / stride;
    const int32_t plane_bytes = plane_columns * TINYFUSE_COLUMNS_BYTES;
    int32_t x, k;
    tinyfuse_columns_rows(p, in, y, columns + planes * plane_bytes, job);
    for (k = 0; k < TINYFUSE_COLUMNS_WIDTH; ++k) { /* columns beyond the window: any, times zero */
        const int32_t column = k < p->kernel_w ? k : 0;
        job->offsets[k] = column % stride * plane_bytes + column / stride * TINYFUSE_COLUMNS_BYTES;
    }
    job->columns = columns;
    job->planes_end = job->planes + planes;
    job->in_c = p->in_c;
    job->out_zero_point = p->out_zero_point;
    job->act_min = p->act_min;
    job->act_max = p->act_max;
    for (x = 0; x < p->out_w; x += TINYFUSE_COLUMNS_OUTPUTS) {
        job->out = out_row + x * p->in_c;
        job->weights = weights;
        job->channels = channels;
        job->channels_left = p->in_c;
        job->outputs = tinyfuse_min(TINYFUSE_COLUMNS_OUTPUTS, p->out_w - x);
        for (k = 0; k < planes; ++k) {
            tinyfuse_columns_place(p, x, job->outputs, k, columns + k * plane_bytes, job);
        }
        (rectified ? tinyfuse_columns_rectified : tinyfuse_columns_clamped)(job);
    }
}

#endif
