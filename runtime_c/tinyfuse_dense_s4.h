/* Fully connected layer with int4 weights, four outputs at a time, for cores with the DSP extension. It requantizes
   as tinyfuse_dense.h does in TINYFUSE_WIDE.

   16 bits hold the weights of four outputs for one input: 4096 * w3 + 256 * (w2 + 8) + 16 * (w1 + 8) + (w0 + 8).
   Inputs are multiplied by this number, by it without the highest digit, without the two highest, and by the lowest
   digit alone. Differences of these four sums are the outputs' sums; three of them exceed the true sums by 8 times
   the sum of all inputs. The four sums may wrap beyond int32; the compiler proves that the differences fit. */
#ifndef TINYFUSE_DENSE_S4_H
#define TINYFUSE_DENSE_S4_H

#include "tinyfuse_dense.h"

/* inputs: columns of the form TINYFUSE_WIDE; `quads.depth` is a multiple of 8. offset: 8 times the sum of the inputs. */
typedef struct {
    tinyfuse_dense_1x4 quads;
    int32_t offset; /* 40 */
} tinyfuse_dense_s4_job;

#if TINYFUSE_DSP

typedef char tinyfuse_check_dense_s4[offsetof(tinyfuse_dense_s4_job, offset) == 40 ? 1 : -1];

/* In the loop over inputs:
   r0       inputs; r1 weights, lr their end
   r2 to r5 sums: of the lowest digit, of two, of three, of all
   r6, r7   four inputs
   r8 to r11 weights of eight inputs; r12 some of their digits */
#define TINYFUSE_S4_DIGITS(x, w)                                                \
    "smlad r5, " x ", " w ", r5\n\t"                                            \
    "bic r12, " w ", #0xF000F000\n\tsmlad r4, " x ", r12, r4\n\t"               \
    "uxtb16 r12, " w "\n\tsmlad r3, " x ", r12, r3\n\t"                         \
    "and r12, " w ", #0x000F000F\n\tsmlad r2, " x ", r12, r2\n\t"
#define TINYFUSE_S4_DENSE_STEP                                                  \
    "ldm r1!, {r8, r9, r10, r11}\n\t"                                           \
    "ldrd r6, r7, [r0], #8\n\t" TINYFUSE_S4_DIGITS("r6", "r8") TINYFUSE_S4_DIGITS("r7", "r9") \
    "ldrd r6, r7, [r0], #8\n\t" TINYFUSE_S4_DIGITS("r6", "r10") TINYFUSE_S4_DIGITS("r7", "r11")

TINYFUSE_SHARED void tinyfuse_dense_1x4_s4(tinyfuse_dense_s4_job *p)
{
    TINYFUSE_ARGUMENT(tinyfuse_dense_s4_job *, arguments, p);
    __asm volatile(TINYFUSE_ASM_BEGIN
                   "ldr r1, [r0, #32]\n\t"
                   "6:\n\t"
                   "mov r2, #0\n\tmov r3, #0\n\tmov r4, #0\n\tmov r5, #0\n\t"
                   "ldrd r0, r12, [r0, #24]\n\t"
                   "add lr, r1, r12, lsl #1\n\t"
                   "tst r12, #8\n\t"
                   "bne 2f\n\t"
                   "1:\n\t" TINYFUSE_S4_DENSE_STEP
                   "2:\n\t" TINYFUSE_S4_DENSE_STEP
                   "cmp r1, lr\n\t"
                   "bne 1b\n\t"
                   "ldr r0, [sp]\n\t"
                   "ldr r12, [r0, #20]\n\t"
                   "ldm r12!, {r8, r9, r10, r11}\n\t"
                   "str r12, [r0, #20]\n\t"
                   "ldr r6, [r0, #40]\n\t"
                   "sub r5, r5, r4\n\tsub r4, r4, r3\n\tsub r3, r3, r2\n\t"
                   "sub r8, r8, r6\n\tsub r9, r9, r6\n\tsub r10, r10, r6\n\t"
                   "add r2, r8, r2\n\tadd r3, r9, r3, asr #4\n\t"
                   "add r4, r10, r4, asr #8\n\tadd r5, r11, r5, asr #12\n\t"
                   "ldm r0, {r6, r7, r8, r9, r10}\n\t"
                   TINYFUSE_DENSE_STORE(WIDE, "r2") TINYFUSE_DENSE_STORE(WIDE, "r3")
                   TINYFUSE_DENSE_STORE(WIDE, "r4") TINYFUSE_DENSE_STORE(WIDE, "r5")
                   "subs r10, #1\n\t"
                   "strd r8, r9, [r0, #8]\n\t"
                   "str r10, [r0, #16]\n\t"
                   "bne 6b\n\t" TINYFUSE_ASM_END
                   :
                   : "r"(arguments)
                   : TINYFUSE_ASM_CLOBBERS);
}

#else

TINYFUSE_SHARED void tinyfuse_dense_1x4_s4(tinyfuse_dense_s4_job *p)
{
    const int16_t *const x = (const int16_t *)p->quads.inputs;
    const int8_t *weights = p->quads.weights;
    const int32_t *biases = p->quads.biases;
    const tinyfuse_dense_scale *scales = p->quads.scales;
    int8_t *out = p->quads.out;
    int32_t quads, o, k;
    for (quads = p->quads.quads; quads > 0; --quads) {
        for (o = 0; o < 4; ++o) {
            int32_t sum = *biases++;
            for (k = 0; k < p->quads.depth; ++k) {
                uint16_t digits;
                memcpy(&digits, weights + 2 * k, sizeof digits);
                /* the highest digit is signed, the others exceed theirs by 8 */
                sum += x[k] * ((int32_t)(((uint32_t)digits >> 4 * o & 15u) ^ (o == 3 ? 8u : 0u)) - 8);
            }
            *out++ = (int8_t)tinyfuse_requantize_bounded(sum, scales->multiplier, scales->shift, p->quads.rounding);
            scales = (const tinyfuse_dense_scale *)((uintptr_t)scales + (uintptr_t)p->quads.scale_bytes);
        }
        weights += 2 * p->quads.depth;
    }
}

#endif

/* Returns 8 times the sum of a column. */
TINYFUSE_INLINE int32_t tinyfuse_offset_s4(const int8_t *column, int32_t depth)
{
    int32_t sum = 0;
#if TINYFUSE_DSP
    const int8_t *const end = column + 2 * depth;
    uint32_t first, second;
    __asm volatile("1:\n\t"
                   "ldr %[first], [%[column]], #4\n\t"
                   "ldr %[second], [%[column]], #4\n\t"
                   "smlad %[sum], %[first], %[ones], %[sum]\n\t"
                   "smlad %[sum], %[second], %[ones], %[sum]\n\t"
                   "cmp %[column], %[end]\n\t"
                   "bne 1b"
                   : [column] "+&r"(column), [sum] "+&r"(sum), [first] "=&r"(first), [second] "=&r"(second)
                   : [ones] "r"(0x00080008), [end] "r"(end)
                   : "cc", "memory");
#else
    int32_t k;
    for (k = 0; k < depth; ++k) {
        int16_t x;
        memcpy(&x, column + 2 * k, sizeof x);
        sum += 8 * (int32_t)x;
    }
#endif
    return sum;
}

/* Computes a layer, in [batches][in_c] to out [batches][out_c]. Weights are [ceil(out_c / 4)][depth] times 16 bits,
   in the order of columns (tinyfuse_matmul.h), with depth = in_c rounded up to a multiple of 8; biases and scales are
   as in tinyfuse_dense_s8. scratch, aligned to 8: a column of `depth` inputs. out may overlap batches of in that were
   read already, the one that is computed included. */
TINYFUSE_SHARED void tinyfuse_dense_s4(const tinyfuse_dense *p, const int8_t *in, int8_t *out, const int8_t *weights,
                                       const int32_t *biases, const tinyfuse_dense_scale *scales, void *scratch)
{
    const int32_t words = p->in_c / 4, in_rest = p->in_c & 3, depth = (p->in_c + 7) & ~7;
    const int32_t quads = p->out_c / 4, out_rest = p->out_c & 3;
    int8_t *const column = (int8_t *)scratch, *const first = out;
    tinyfuse_dense_s4_job job;
    int32_t b;
    job.quads.rounding = 2 * p->out_zero_point + 1;
    job.quads.scale_bytes = p->scale_step * (int32_t)sizeof(tinyfuse_dense_scale);
    job.quads.depth = depth;
    job.quads.inputs = column;
    memset(column + 2 * (depth - 8), 0, 16);
    for (b = 0; b < p->batches; ++b) {
        int8_t *to = column;
        if (words > 0) {
            to = tinyfuse_widen(in, words, to, 8, TINYFUSE_WIDE);
        }
        if (in_rest > 0) {
            int8_t tail[4] = {0, 0, 0, 0};
            memcpy(tail, in + 4 * words, (size_t)in_rest);
            (void)tinyfuse_widen(tail, 1, to, 8, TINYFUSE_WIDE);
        }
        job.offset = tinyfuse_offset_s4(column, depth);
        if (quads > 0) {
            job.quads.scales = scales;
            job.quads.out = out;
            job.quads.quads = quads;
            job.quads.biases = biases;
            job.quads.weights = weights;
            tinyfuse_dense_1x4_s4(&job);
        }
        if (out_rest > 0) {
            int8_t last[4];
            job.quads.scales = scales + 4 * quads * p->scale_step;
            job.quads.out = last;
            job.quads.quads = 1;
            job.quads.biases = biases + 4 * quads;
            job.quads.weights = weights + 2 * quads * depth;
            tinyfuse_dense_1x4_s4(&job);
            memcpy(out + 4 * quads, last, (size_t)out_rest);
        }
        in += p->in_c;
        out += p->out_c;
    }
    tinyfuse_clamp_outputs(first, p->batches * p->out_c, p->act_min, p->act_max);
}

#endif
