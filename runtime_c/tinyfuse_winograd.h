/* 3x3 and 1x3 convolutions with stride 1 by Winograd's minimal filtering F(4x4, 3x3) and F(4, 3), int8 NHWC, for
   cores with the DSP extension: it takes weights of 16 bits. (Winograd 1980, "Arithmetic Complexity of Computations";
   Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.2.)

   A tile is 4x4 or 1x4 outputs. Its patch d are the inputs that they read, six in each dimension with a window of three. With filter g, per input channel,

       y = A [ (G g G') * (B d B') ] A'      * element by element, summed over the input channels

   takes 36 multiplications for 3x3 where the 16 windows take 144; in one dimension y = A [ (G g) * (B d) ] takes 6
   where four windows take 12. Row by row for the points 1, -1, 2, -2, 0 and infinity,

           0 -4 -4  1  1  0          -1/6 -1/6 -1/6
           0  4 -4 -1  1  0          -1/6  1/6 -1/6         1  1  1  1  1  0
       B = 0 -2 -1  2  1  0      G = 1/24 1/12  1/6     A = 1 -1  2 -2  0  0
           0  2 -1 -2  1  0          1/24 -1/12 1/6         1  1  4  4  0  0
           4  0 -5  0  1  0           1/4    0    0         1 -1  8 -8  0  1
           0  4  0 -5  0  1             0    0    1

   Everything here is integer: with 24G in the place of G, sums are 24 times the convolution's for one dimension, and 576
   times for two. Down the columns of two dimensions the rows of 24G are divided by 2, 2, 1, 1, 1 and 4, and the columns
   of A multiplied, so that weights fit int16. A transformed input lies within -12800..12700, a transformed weight within
   -21504..21504.

   Sums are exact modulo 2^32, and 3 and 9 have inverses there. Multiplied by these, sums are 8 or 64 times the
   convolution's, which the compiler has proven to lie within int32 (tinyfuse/kernels/layers/int8_dsp/winograd.py).

   Two tiles beside each other are a block. Where the row's width is no multiple of it, the last tiles lie over others.

   columns  [rows][6][in_c / 4][2 tiles][4] int16: B d B', or B d with one row; rows and positions in the order above; four
            inputs in the order 0 2 1 3. Aligned to 4.
   weights  [out_c / 2][rows][6][in_c / 4][2][2 channels][2] int16: the transformed filters in the same order: inputs 0 2 of
            both channels, then inputs 1 3. Aligned to 4.
   sums     [rows][4][2 channels][2 tiles] int32: row i of what is summed over positions, times A'. */
#ifndef TINYFUSE_WINOGRAD_H
#define TINYFUSE_WINOGRAD_H

#include "tinyfuse_conv.h"
#include "tinyfuse_matmul.h"

/* Outputs and inputs of a tile in a dimension with a window of three, and columns of a block's patches, at most. */
enum { TINYFUSE_WINOGRAD_TILE = 4, TINYFUSE_WINOGRAD_PATCH = 6, TINYFUSE_WINOGRAD_COLUMNS = 10 };

/* --- inputs ---------------------------------------------------------------------------------------- */

/* Patches of one dimension, of four channels each; assembly knows the offsets. Their positions are pairs of int16: inputs
   0 2 of the first patch go to `to`, its inputs 1 3 `odd` bytes behind, those of the next patch `next` bytes behind these. */
typedef struct {
    const int8_t *const *places; /* of the six inputs of the first patch */
    int32_t place_bytes;         /* to the places of the next patch */
    int32_t channel;             /* the first of four */
    uint32_t *to;
    int32_t position; /* 16: bytes from a position to the next */
    int32_t odd;
    int32_t next;
    const uint32_t *end; /* `to` of the patch after the last */
} tinyfuse_winograd_patches;

/* Bytes of a row of six rows of patches, of inputs 0 2 and of inputs 1 3 of each column. */
enum { TINYFUSE_WINOGRAD_HALF_ROW = 4 * TINYFUSE_WINOGRAD_COLUMNS, TINYFUSE_WINOGRAD_ROW = 2 * TINYFUSE_WINOGRAD_HALF_ROW };

#if TINYFUSE_DSP

typedef char tinyfuse_check_winograd_patches[offsetof(tinyfuse_winograd_patches, end) == 28 ? 1 : -1];
/* Stores B d of six inputs, r4 to r9, to r1; r2 bytes of a position, r3 of three, r12 of five. Changes r10. */
#define TINYFUSE_WINOGRAD_POSITIONS              \
    "ssub16 r9,r9,r7\n"                          \
    "ssub16 r7,r7,r5\n"                          \
    "ssub16 r8,r8,r6\n"                          \
    "ssub16 r4,r4,r6\n"                          \
    "sadd16 r4,r4,r4\n"                          \
    "sadd16 r4,r4,r4\n"                          \
    "sadd16 r4,r4,r8\n"                          \
    "str r4,[r1,r2,lsl #2]\n"                    \
    "sadd16 r10,r6,r6\n"                         \
    "sadd16 r6,r6,r10\n"                         \
    "ssub16 r6,r8,r6\n"                          \
    "sadd16 r10,r5,r5\n"                         \
    "sadd16 r5,r5,r10\n"                         \
    "ssub16 r5,r7,r5\n"                          \
    "sadd16 r10,r6,r5\n"                         \
    "str r10,[r1]\n"                             \
    "ssub16 r6,r6,r5\n"                          \
    "str r6,[r1,r2]\n"                           \
    "sadd16 r7,r7,r7\n"                          \
    "sadd16 r10,r8,r7\n"                         \
    "str r10,[r1,r2,lsl #1]\n"                   \
    "ssub16 r8,r8,r7\n"                          \
    "str r8,[r1,r3]\n"                           \
    "sadd16 r7,r7,r7\n"                          \
    "ssub16 r9,r9,r7\n"                          \
    "str r9,[r1,r12]\n"
/* r0 the argument, lr places, r11 channel. */
#define TINYFUSE_WINOGRAD_HALF(rotation)         \
    "ldm lr,{r4-r9}\n"                           \
    "ldr r4,[r4,r11]\n"                          \
    "ldr r5,[r5,r11]\n"                          \
    "ldr r6,[r6,r11]\n"                          \
    "ldr r7,[r7,r11]\n"                          \
    "ldr r8,[r8,r11]\n"                          \
    "ldr r9,[r9,r11]\n"                          \
    "sxtb16 r4,r4" rotation "\n"                 \
    "sxtb16 r5,r5" rotation "\n"                 \
    "sxtb16 r6,r6" rotation "\n"                 \
    "sxtb16 r7,r7" rotation "\n"                 \
    "sxtb16 r8,r8" rotation "\n"                 \
    "sxtb16 r9,r9" rotation "\n" TINYFUSE_WINOGRAD_POSITIONS

/* Computes B d of each patch. */
TINYFUSE_SHARED void tinyfuse_winograd_down(const tinyfuse_winograd_patches *s)
{
    TINYFUSE_ARGUMENT(const tinyfuse_winograd_patches *, arguments, s);
    __asm volatile(TINYFUSE_ASM_BEGIN
                   "ldr lr,[r0]\n"
                   "ldrd r11,r1,[r0,#8]\n"
                   "ldr r2,[r0,#16]\n"
                   "add r3,r2,r2,lsl #1\n"
                   "add r12,r2,r2,lsl #2\n"
                   "1:\n" TINYFUSE_WINOGRAD_HALF("")
                   "ldr r10,[r0,#20]\n"
                   "add r1,r10\n" TINYFUSE_WINOGRAD_HALF(",ror #8")
                   "ldr r10,[r0,#4]\n"
                   "add lr,r10\n"
                   "ldrd r4,r5,[r0,#24]\n"
                   "add r1,r4\n"
                   "cmp r1,r5\n"
                   "bne 1b\n" TINYFUSE_ASM_END
                   :
                   : "r"(arguments)
                   : TINYFUSE_ASM_CLOBBERS);
}

/* Computes the columns of four channels from `rows`, what the function above makes of a block's columns of patches. The
   second tile begins `apart` bytes after the first; `position` bytes from a position to the next. r0 rows, r11 bytes from
   a tile to the other, lr the end of the rows' first halves; on the stack the first half's destination. */
TINYFUSE_SHARED void tinyfuse_winograd_across(const uint32_t *rows, uint32_t *columns, int32_t position, int32_t apart)
{
    register const uint32_t *r0 __asm("r0") = rows;
    register uint32_t *r1 __asm("r1") = columns;
    register int32_t r2 __asm("r2") = position;
    register int32_t r3 __asm("r3") = apart;
    __asm volatile("push {r0-r11,lr}\n"
                   "mov r11,r3\n"
                   "add r3,r2,r2,lsl #1\n"
                   "add r12,r2,r2,lsl #2\n"
                   "add lr,r0,#480\n"
                   "1:\n"
                   "ldm r0,{r4-r9}\n" TINYFUSE_WINOGRAD_POSITIONS
                   "add r4,r0,r11\n"
                   "ldm r4,{r4-r9}\n"
                   "adds r1,#8\n" TINYFUSE_WINOGRAD_POSITIONS
                   "add r1,r1,r3,lsl #1\n"
                   "subs r1,#8\n"
                   "adds r0,#80\n"
                   "cmp r0,lr\n"
                   "bne 1b\n"
                   "ldrd r4,r1,[sp]\n"
                   "adds r4,#40\n"
                   "adds r1,#4\n"
                   "sub r0,r0,#440\n"
                   "adds lr,#40\n"
                   "cmp r0,r4\n"
                   "beq 1b\n"
                   "pop {r0-r11,lr}\n"
                   :
                   : "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                   : "r12", "cc", "memory");
}

#else

/* C twin of the assembly above, with the same results. */
TINYFUSE_INLINE void tinyfuse_winograd_positions(const uint32_t *d, uint32_t *to, int32_t position)
{
    static const int8_t b[TINYFUSE_WINOGRAD_PATCH][TINYFUSE_WINOGRAD_PATCH] = {
        {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {4, 0, -5, 0, 1, 0}, {0, 4, 0, -5, 0, 1},
    };
    int32_t i, j;
    for (i = 0; i < TINYFUSE_WINOGRAD_PATCH; ++i) {
        int32_t low = 0, high = 0;
        for (j = 0; j < TINYFUSE_WINOGRAD_PATCH; ++j) {
            low += b[i][j] * (int16_t)(uint16_t)(d[j] & 0xFFFFu);
            high += b[i][j] * (int16_t)(uint16_t)(d[j] >> 16);
        }
        to[i * position / 4] = ((uint32_t)high << 16) | ((uint32_t)low & 0xFFFFu);
    }
}

TINYFUSE_SHARED void tinyfuse_winograd_down(const tinyfuse_winograd_patches *s)
{
    const int8_t *const *places = s->places;
    uint32_t *to;
    for (to = s->to; to != s->end; to += (s->odd + s->next) / 4) {
        uint32_t even[TINYFUSE_WINOGRAD_PATCH], odd[TINYFUSE_WINOGRAD_PATCH];
        int32_t i;
        for (i = 0; i < TINYFUSE_WINOGRAD_PATCH; ++i) {
            const int8_t *const from = places[i] + s->channel;
            even[i] = ((uint32_t)from[2] << 16) | ((uint32_t)from[0] & 0xFFFFu);
            odd[i] = ((uint32_t)from[3] << 16) | ((uint32_t)from[1] & 0xFFFFu);
        }
        tinyfuse_winograd_positions(even, to, s->position);
        tinyfuse_winograd_positions(odd, to + s->odd / 4, s->position);
        places += s->place_bytes / TINYFUSE_POINTER_BYTES;
    }
}

TINYFUSE_SHARED void tinyfuse_winograd_across(const uint32_t *rows, uint32_t *columns, int32_t position, int32_t apart)
{
    int32_t i, half;
    for (i = 0; i < TINYFUSE_WINOGRAD_PATCH; ++i) {
        for (half = 0; half < 2; ++half) {
            tinyfuse_winograd_positions(rows, columns + half, position);
            tinyfuse_winograd_positions(rows + apart / 4, columns + half + 2, position);
            rows += TINYFUSE_WINOGRAD_COLUMNS;
        }
        columns += TINYFUSE_WINOGRAD_PATCH * position / 4;
    }
}

#endif

/* Computes a block's columns. `places`: addresses of the inputs of `count` columns of patches, column by column, six
   rows; the second tile's patch begins `apart` columns after the first's. `down` is TINYFUSE_WINOGRAD_PATCH rows. */
TINYFUSE_INLINE void tinyfuse_winograd_columns(const int8_t *const *places, int32_t count, int32_t apart, int32_t in_c,
                                               uint32_t *down, uint32_t *columns)
{
    tinyfuse_winograd_patches s;
    s.places = places;
    s.place_bytes = TINYFUSE_WINOGRAD_PATCH * TINYFUSE_POINTER_BYTES;
    s.to = down;
    s.position = TINYFUSE_WINOGRAD_ROW;
    s.odd = TINYFUSE_WINOGRAD_HALF_ROW;
    s.next = 4 - TINYFUSE_WINOGRAD_HALF_ROW;
    s.end = down + count;
    for (s.channel = 0; s.channel < in_c; s.channel += 4) {
        tinyfuse_winograd_down(&s);
        tinyfuse_winograd_across(down, columns + s.channel, 4 * in_c, 4 * apart);
    }
}

/* Computes the same in one dimension: `places` are those of the first tile, those of the second begin `apart` after them. */
TINYFUSE_INLINE void tinyfuse_winograd_1d_columns(const int8_t *const *places, int32_t apart, int32_t in_c, uint32_t *columns)
{
    tinyfuse_winograd_patches s;
    s.places = places;
    s.place_bytes = apart * TINYFUSE_POINTER_BYTES;
    s.position = 4 * in_c;
    s.odd = 4;
    s.next = 4;
    for (s.channel = 0; s.channel < in_c; s.channel += 4) {
        s.to = columns + s.channel;
        s.end = s.to + 4;
        tinyfuse_winograd_down(&s);
    }
}

/* --- sums ------------------------------------------------------------------------------------------ */

#if TINYFUSE_DSP

/* Computes the positions of a block for a pair of channels; returns the weights of the next pair. A step multiplies four
   inputs of a position: r0 columns, r1 weights; sums of the first channel's tiles in r2 and r3, of the second's in r4 and
   r5; r6, r7 and r12, lr inputs of the two tiles; r8 to r11 weights. Of positions p, q of opposite points, p is summed
   first; with q added, that is their sum, and twice the first less that is their difference.

   On the stack, from the beginning of a row: destination of the sums, its end, end of the columns of this position, bytes
   of a position; then what is pushed. */
#define TINYFUSE_WINOGRAD_STEP               \
    "ldm r1!,{r8-r11}\n"                     \
    "ldm r0!,{r6,r7,r12,lr}\n"               \
    "smlad r2,r6,r8,r2\n"                    \
    "smlad r4,r6,r9,r4\n"                    \
    "smlad r3,r12,r8,r3\n"                   \
    "smlad r5,r12,r9,r5\n"                   \
    "smlad r2,r7,r10,r2\n"                   \
    "smlad r4,r7,r11,r4\n"                   \
    "smlad r3,lr,r10,r3\n"                   \
    "smlad r5,lr,r11,r5\n"
/* Repeated by the assembler. (A string of C99 has 4,095 characters.) */
#define TINYFUSE_WINOGRAD_STEPS(count) ".rept " count "\n" TINYFUSE_WINOGRAD_STEP ".endr\n"
#define TINYFUSE_WINOGRAD_LOOP(steps, end)                \
    "2:\n" steps                                          \
    "ldrd r6,r7,[sp,#" end "]\n"                          \
    "cmp r0,r6\n"                                         \
    "bne 2b\n"                                            \
    "add r6,r7\n"                                         \
    "str r6,[sp,#" end "]\n"
/* A position, by the offset of its end. Exactly four steps, as 16 input channels have, need no loop. */
#define TINYFUSE_WINOGRAD_FOUR(end) TINYFUSE_WINOGRAD_STEPS("4")
#define TINYFUSE_WINOGRAD_BY_4(end) TINYFUSE_WINOGRAD_LOOP(TINYFUSE_WINOGRAD_STEPS("4"), end)
#define TINYFUSE_WINOGRAD_BY_2(end) TINYFUSE_WINOGRAD_LOOP(TINYFUSE_WINOGRAD_STEPS("2"), end)
#define TINYFUSE_WINOGRAD_BY_1(end) TINYFUSE_WINOGRAD_LOOP(TINYFUSE_WINOGRAD_STEP, end)
/* Two positions of opposite points: their sums to r2 to r5, their differences to r6 to r9. */
#define TINYFUSE_WINOGRAD_OPPOSITE(first, second) \
    "movs r2,#0\n"                                \
    "movs r3,#0\n"                                \
    "movs r4,#0\n"                                \
    "movs r5,#0\n" first                          \
    "push {r2-r5}\n" second                       \
    "pop {r6-r9}\n"                               \
    "rsb r6,r2,r6,lsl #1\n"                       \
    "rsb r7,r3,r7,lsl #1\n"                       \
    "rsb r8,r4,r8,lsl #1\n"                       \
    "rsb r9,r5,r9,lsl #1\n"
/* Stores the third output: sums of points 1, -1 in r10 to r12, lr, those of 2, -2 in r2 to r5. */
#define TINYFUSE_WINOGRAD_THIRD                   \
    "ldr r6,[sp,#48]\n"                           \
    "add r7,r10,r2,lsl #2\n"                      \
    "add r8,r11,r3,lsl #2\n"                      \
    "strd r7,r8,[r6,#32]\n"                       \
    "add r7,r12,r4,lsl #2\n"                      \
    "add r8,lr,r5,lsl #2\n"                       \
    "strd r7,r8,[r6,#40]\n"
/* Stores the second output, and begins the fourth: differences of points 1, -1 in r2 to r5, those of 2, -2 in r7 to r10. */
#define TINYFUSE_WINOGRAD_SECOND                  \
    "add r11,r2,r7,lsl #1\n"                      \
    "add r12,r3,r8,lsl #1\n"                      \
    "strd r11,r12,[r6,#16]\n"                     \
    "add r11,r4,r9,lsl #1\n"                      \
    "add r12,r5,r10,lsl #1\n"                     \
    "strd r11,r12,[r6,#24]\n"                     \
    "add r2,r2,r7,lsl #3\n"                       \
    "add r3,r3,r8,lsl #3\n"                       \
    "add r4,r4,r9,lsl #3\n"                       \
    "add r5,r5,r10,lsl #3\n"
#define TINYFUSE_WINOGRAD_ASM(bytes, position)                                                          \
    "push {r0,r2-r11,lr}\n"                                                                             \
    "lsl r5,r3,#4\n"                                                                                    \
    "add r4,r0,r5\n"                                                                                    \
    "add r3,r2,#" bytes "\n"                                                                            \
    "push {r2-r5}\n"                                                                                    \
    "1:\n" TINYFUSE_WINOGRAD_OPPOSITE(position("8"), position("24"))                                    \
    "push {r2-r9}\n" TINYFUSE_WINOGRAD_OPPOSITE(position("40"), position("56"))                         \
    "ldm sp,{r10-r12,lr}\n"                                                                             \
    "push {r6-r9}\n" TINYFUSE_WINOGRAD_THIRD                                                            \
    "add r2,r10\n"                                                                                      \
    "add r3,r11\n"                                                                                      \
    "add r4,r12\n"                                                                                      \
    "add r5,lr\n" position("56")                                                                        \
    "ldr r6,[sp,#48]\n"                                                                                 \
    "stm r6,{r2-r5}\n"                                                                                  \
    "pop {r7-r10}\n"                                                                                    \
    "add sp,#16\n"                                                                                      \
    "pop {r2-r5}\n" TINYFUSE_WINOGRAD_SECOND position("8")                                              \
    "ldrd r6,r7,[sp]\n"                                                                                 \
    "add r8,r6,#48\n"                                                                                   \
    "stm r8!,{r2-r5}\n"                                                                                 \
    "str r8,[sp]\n"                                                                                     \
    "cmp r8,r7\n"                                                                                       \
    "bne 1b\n"                                                                                          \
    "add sp,#16\n"                                                                                      \
    "pop {r0,r2-r11,lr}\n"

/* `steps` is in_c / 4, for positions in loops any multiple of what an iteration takes; `bytes` of the sums. The statement is
   that of tinyfuse_common.h with three operands more. */
#define TINYFUSE_WINOGRAD_SUMS_OF(name, bytes, position)                                                \
    TINYFUSE_SHARED const int16_t *name(const uint32_t *columns, const int16_t *weights, int32_t *sums, \
                                        int32_t steps)                                                  \
    {                                                                                                   \
        register const uint32_t *r0 __asm("r0") = columns;                                              \
        register const int16_t *r1 __asm("r1") = weights;                                               \
        register int32_t *r2 __asm("r2") = sums;                                                        \
        register int32_t r3 __asm("r3") = steps;                                                        \
        __asm volatile(TINYFUSE_WINOGRAD_ASM(bytes, position)                                           \
                       : "+r"(r1)                                                                       \
                       : "r"(r0), "r"(r2), "r"(r3)                                                      \
                       : "r12", "cc", "memory");                                                        \
        return r1;                                                                                      \
    }

/* Defines the function of that name for any number of steps, a constant. */
#define TINYFUSE_WINOGRAD_FUNCTION(name, bytes)                                                         \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_four, bytes, TINYFUSE_WINOGRAD_FOUR)                               \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_by_4, bytes, TINYFUSE_WINOGRAD_BY_4)                               \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_by_2, bytes, TINYFUSE_WINOGRAD_BY_2)                               \
    TINYFUSE_WINOGRAD_SUMS_OF(name##_by_1, bytes, TINYFUSE_WINOGRAD_BY_1)                               \
    TINYFUSE_INLINE const int16_t *name(const uint32_t *columns, const int16_t *weights, int32_t *sums, \
                                        int32_t steps)                                                  \
    {                                                                                                   \
        return steps == 4       ? name##_four(columns, weights, sums, steps)                            \
               : steps % 4 == 0 ? name##_by_4(columns, weights, sums, steps)                            \
               : steps % 2 == 0 ? name##_by_2(columns, weights, sums, steps)                            \
                                : name##_by_1(columns, weights, sums, steps);                           \
    }
TINYFUSE_WINOGRAD_FUNCTION(tinyfuse_winograd_sums, "384")
TINYFUSE_WINOGRAD_FUNCTION(tinyfuse_winograd_1d_sums, "64")

#else

/* C twin of the assembly above, for `rows` rows of positions. */
TINYFUSE_SHARED const int16_t *tinyfuse_winograd_sums_c(const int16_t *columns, const int16_t *weights, int32_t *sums,
                                                        int32_t steps, int32_t rows)
{
    int32_t i, j, step, channel, tile, k;
    for (i = 0; i < rows; ++i) {
        uint32_t at[TINYFUSE_WINOGRAD_PATCH][4]; /* sums of a position: the tiles of each channel */
        memset(at, 0, sizeof at);
        for (j = 0; j < TINYFUSE_WINOGRAD_PATCH; ++j) {
            for (step = 0; step < steps; ++step) {
                for (channel = 0; channel < 2; ++channel) {
                    for (tile = 0; tile < 2; ++tile) {
                        const int16_t *const x = columns + 4 * tile, *const w = weights + 2 * channel;
                        for (k = 0; k < 4; ++k) {
                            at[j][2 * channel + tile] += (uint32_t)(x[k] * w[k / 2 * 4 + k % 2]);
                        }
                    }
                }
                columns += 8;
                weights += 8;
            }
        }
        for (k = 0; k < 4; ++k) {
            sums[k] = (int32_t)(at[0][k] + at[1][k] + at[2][k] + at[3][k] + at[4][k]);
            sums[4 + k] = (int32_t)(at[0][k] - at[1][k] + 2 * (at[2][k] - at[3][k]));
            sums[8 + k] = (int32_t)(at[0][k] + at[1][k] + 4 * (at[2][k] + at[3][k]));
            sums[12 + k] = (int32_t)(at[0][k] - at[1][k] + 8 * (at[2][k] - at[3][k]) + at[5][k]);
        }
        sums += 16;
    }
    return weights;
}

TINYFUSE_INLINE const int16_t *tinyfuse_winograd_sums(const uint32_t *columns, const int16_t *weights, int32_t *sums,
                                                      int32_t steps)
{
    return tinyfuse_winograd_sums_c((const int16_t *)(const void *)columns, weights, sums, steps, TINYFUSE_WINOGRAD_PATCH);
}

TINYFUSE_INLINE const int16_t *tinyfuse_winograd_1d_sums(const uint32_t *columns, const int16_t *weights, int32_t *sums,
                                                         int32_t steps)
{
    return tinyfuse_winograd_sums_c((const int16_t *)(const void *)columns, weights, sums, steps, 1);
}

#endif

/* --- outputs --------------------------------------------------------------------------------------- */

/* The outputs of a block for a pair of channels; assembly knows the offsets. Lines are rows of two dimensions, or pixels of
   a row. Where there are fewer than four, the last ones are the same: they are written backward. */
typedef struct {
    int32_t rounding; /* tinyfuse_matmul_rounding */
    const void *channels;
    const int32_t *sums;
    int8_t *lines[TINYFUSE_WINOGRAD_TILE];
    int32_t column; /* bytes from an output of a tile to the next one of its line */
    int32_t apart;  /* bytes from a tile to the other */
    /* inverse of 9 modulo 2^32, or in one dimension of 3; with a single rounding times what makes sums 256ths */
    uint32_t inverse; /* 36 */
} tinyfuse_winograd_outputs;

#if TINYFUSE_DSP

typedef char tinyfuse_check_winograd_outputs[offsetof(tinyfuse_winograd_outputs, inverse) == 36 ? 1 : -1];
/* Requantizes s, a sum that `inverse` (r10) scales, or half of one (r11). r8 bias, r9 multiplier; with single rounding r12
   rounding, else lr shift, r12 rounding << shift. */
#define TINYFUSE_WINOGRAD_SINGLE_ROUNDING(s, inverse, scale)            \
    "mla " s "," s "," inverse ",r8\n"                                  \
    "smmla " s "," s ",r9,r12\n" TINYFUSE_SINGLE_ROUNDING_SATURATE(s)
#define TINYFUSE_WINOGRAD_BOUNDED(s, inverse, scale)                    \
    "mul " s "," s "," inverse "\n"                                     \
    "add " s ",r8," s ",asr #" scale "\n"                               \
    "add r0," s ",r12\n"                                                \
    "add r0,r0," s ",asr #31\n"                                         \
    "smmlar " s "," s ",r9,r0\n"                                        \
    "asr " s ",lr\n"                                                    \
    "ssat " s ",#8," s ",asr #1\n"
/* tinyfuse_requantize_single_or_half_even of a channel whose negated scale is in s1: lr is the output zero point. */
#define TINYFUSE_WINOGRAD_HALF_EVEN(s, inverse, scale)                  \
    "mla " s "," s "," inverse ",r8\n"                                  \
    "vmov s0," s "\n"                                                   \
    "vcvt.f32.s32 s0,s0\n"                                              \
    "vnmul.f32 s0,s0,s1\n"                                              \
    "vcvtr.s32.f32 s0,s0\n"                                             \
    "vmov " s ",s0\n"                                                   \
    "add " s ",lr\n"                                                    \
    "ssat " s ",#8," s "\n"
/* Stores the outputs r6, r5, r3, r7 of the lines, at byte r2 of each. */
#define TINYFUSE_WINOGRAD_LINES(output, inverse, scale)                 \
    output("r7", inverse, scale) "ldr r0,[sp,#12]\nstrb r7,[r0,r2]\n"   \
    output("r3", inverse, scale) "ldr r0,[sp,#8]\nstrb r3,[r0,r2]\n"    \
    output("r5", inverse, scale) "ldr r0,[sp,#4]\nstrb r5,[r0,r2]\n"    \
    output("r6", "r10", scale) "ldr r0,[sp]\nstrb r6,[r0,r2]\n"
/* The outputs of a column of a tile. r1 sums. */
#define TINYFUSE_WINOGRAD_COLUMN(output)                                \
    "ldr r4,[r1,#64]\n"                                                 \
    "ldr r5,[r1,#128]\n"                                                \
    "ldr r6,[r1,#192]\n"                                                \
    "ldr r0,[r1,#256]\n"                                                \
    "ldr r3,[r1],#16\n"                                                 \
    "sub r7,r3,r4\n"                                                    \
    "add r3,r4\n"                                                       \
    "sub r4,r5,r6\n"                                                    \
    "add r5,r6\n"                                                       \
    "add r6,r0,r5\n"                                                    \
    "add r6,r6,r3,lsl #1\n"                                             \
    "add r3,r3,r5,lsl #1\n"                                             \
    "add r5,r7,r4\n"                                                    \
    "add r7,r7,r4,lsl #2\n"                                             \
    "ldr r4,[r1,#304]\n"                                                \
    "add r7,r7,r4,lsl #1\n" TINYFUSE_WINOGRAD_LINES(output, "r11", "6") \
    "ldr r0,[sp,#16]\n"                                                 \
    "add r2,r0\n"
/* The outputs of a tile; then its sums and place are those of the next tile, or channel. */
#define TINYFUSE_WINOGRAD_TILE_2D(output)                               \
    TINYFUSE_WINOGRAD_COLUMN(output)                                    \
    TINYFUSE_WINOGRAD_COLUMN(output)                                    \
    TINYFUSE_WINOGRAD_COLUMN(output)                                    \
    TINYFUSE_WINOGRAD_COLUMN(output)                                    \
    "subs r1,#60\n"                                                     \
    "ldr r0,[sp,#16]\n"                                                 \
    "sub r2,r2,r0,lsl #2\n"
/* TINYFUSE_WINOGRAD_TILE_2D as a shorter text, in which the assembler repeats the columns. */
#define TINYFUSE_WINOGRAD_SHORT_TILE_2D(output)                         \
    ".rept 4\n" TINYFUSE_WINOGRAD_COLUMN(output) ".endr\n"              \
    "subs r1,#60\n"                                                     \
    "ldr r0,[sp,#16]\n"                                                 \
    "sub r2,r2,r0,lsl #2\n"
#define TINYFUSE_WINOGRAD_TILE_1D(output)                               \
    "ldr r5,[r1,#16]\n"                                                 \
    "ldr r3,[r1,#32]\n"                                                 \
    "ldr r7,[r1,#48]\n"                                                 \
    "ldr r6,[r1],#4\n" TINYFUSE_WINOGRAD_LINES(output, "r10", "3")
/* The outputs of a tile of a channel with a single rounding, or with a negated scale. */
#define TINYFUSE_WINOGRAD_SINGLE_OR_HALF_EVEN(tile)                     \
    "asr lr,r12,#11\n"                                                  \
    "cmp r9,#0\n"                                                       \
    "bmi.w 3f\n" tile(TINYFUSE_WINOGRAD_SINGLE_ROUNDING)                \
    "b.w 4f\n"                                                          \
    "3:\n"                                                              \
    "vmov s1,r9\n" tile(TINYFUSE_WINOGRAD_HALF_EVEN)                    \
    "4:\n"
/* Constants of both channels, r0 being the argument. */
#define TINYFUSE_WINOGRAD_FIRST_LINE "ldrd r12,r0,[r0]\nldrd r8,r9,[r0]\n"
#define TINYFUSE_WINOGRAD_SECOND_LINE "ldr r0,[r0,#4]\nldrd r8,r9,[r0,#8]\n"
#define TINYFUSE_WINOGRAD_FIRST_BOUNDED "ldrd r12,r0,[r0]\nldm r0,{r8,r9,lr}\nlsl r12,lr\n"
#define TINYFUSE_WINOGRAD_SECOND_BOUNDED "ldrd r12,r0,[r0]\nadds r0,#12\nldm r0,{r8,r9,lr}\nlsl r12,lr\n"
/* On the stack the lines, bytes of a column and between the tiles. The bytes of sums that were used tell what is next: 4
   and 12 the second tile, 8 the second channel, 16 nothing. */
#define TINYFUSE_WINOGRAD_OUTPUTS(first, second, tile)                                             \
    {                                                                                              \
        TINYFUSE_ARGUMENT(const tinyfuse_winograd_outputs *, arguments, s);                        \
        __asm volatile(TINYFUSE_ASM_BEGIN                                                          \
                       "add r1,r0,#12\n"                                                           \
                       "ldm r1,{r2-r7}\n"                                                          \
                       "push {r2-r7}\n"                                                            \
                       "ldr r1,[r0,#8]\n"                                                          \
                       "movs r2,#0\n"                                                              \
                       "ldr r10,[r0,#36]\n"                                                        \
                       "lsl r11,r10,#1\n" first                                                    \
                       "1:\n" tile                                                                 \
                       "ldr r0,[sp,#24]\n"                                                         \
                       "ldr r3,[r0,#8]\n"                                                          \
                       "ldr r4,[r0,#32]\n"                                                         \
                       "sub r3,r1,r3\n"                                                            \
                       "lsls r3,r3,#29\n"                                                          \
                       "itt mi\n"                                                                  \
                       "addmi r2,r4\n"                                                             \
                       "bmi 1b\n"                                                                  \
                       "bcc 2f\n"                                                                  \
                       "sub r2,r4\n"                                                               \
                       "adds r2,#1\n" second                                                       \
                       "b 1b\n"                                                                    \
                       "2:\n"                                                                      \
                       "add sp,#24\n" TINYFUSE_ASM_END                                             \
                       :                                                                           \
                       : "r"(arguments)                                                            \
                       : TINYFUSE_CLOBBERS_FPU TINYFUSE_ASM_CLOBBERS);                                                   \
    }

#if TINYFUSE_FPU
#define TINYFUSE_WINOGRAD_HALF_EVEN_OUTPUTS(tile)                                                  \
    TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_LINE, TINYFUSE_WINOGRAD_SECOND_LINE,         \
                              TINYFUSE_WINOGRAD_SINGLE_OR_HALF_EVEN(tile))
#else
#define TINYFUSE_WINOGRAD_HALF_EVEN_OUTPUTS(tile) /* never reached */
#endif

#else

/* Returns the output of a sum: 24 times the convolution's if `flat`, else 576 times. */
TINYFUSE_INLINE int8_t tinyfuse_winograd_output(const tinyfuse_winograd_outputs *s, int32_t channel, uint32_t sum, int flat,
                                                int form)
{
    const uint32_t bias = (uint32_t)tinyfuse_channel_bias(s->channels, channel, form), scaled = sum * s->inverse;
    const uint32_t whole = form != TINYFUSE_WIDE ? scaled : (uint32_t)((int32_t)scaled >> (flat != 0 ? 3 : 6));
    return tinyfuse_channel_output(s->channels, channel, (int32_t)(bias + whole), s->rounding, form);
}

#endif

/* Stores the outputs. */
TINYFUSE_INLINE void tinyfuse_winograd_put(const tinyfuse_winograd_outputs *s, int flat, int form)
{
#if TINYFUSE_DSP
    if (form == TINYFUSE_SINGLE_ROUNDING && flat != 0) {
        TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_LINE, TINYFUSE_WINOGRAD_SECOND_LINE,
                                  TINYFUSE_WINOGRAD_TILE_1D(TINYFUSE_WINOGRAD_SINGLE_ROUNDING))
    } else if (form == TINYFUSE_SINGLE_ROUNDING) {
        TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_LINE, TINYFUSE_WINOGRAD_SECOND_LINE,
                                  TINYFUSE_WINOGRAD_TILE_2D(TINYFUSE_WINOGRAD_SINGLE_ROUNDING))
    } else if (form == TINYFUSE_HALF_EVEN && flat != 0) {
        TINYFUSE_WINOGRAD_HALF_EVEN_OUTPUTS(TINYFUSE_WINOGRAD_TILE_1D)
    } else if (form == TINYFUSE_HALF_EVEN) {
        TINYFUSE_WINOGRAD_HALF_EVEN_OUTPUTS(TINYFUSE_WINOGRAD_SHORT_TILE_2D)
    } else if (flat != 0) {
        TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_BOUNDED, TINYFUSE_WINOGRAD_SECOND_BOUNDED,
                                  TINYFUSE_WINOGRAD_TILE_1D(TINYFUSE_WINOGRAD_BOUNDED))
    } else {
        TINYFUSE_WINOGRAD_OUTPUTS(TINYFUSE_WINOGRAD_FIRST_BOUNDED, TINYFUSE_WINOGRAD_SECOND_BOUNDED,
                                  TINYFUSE_WINOGRAD_TILE_2D(TINYFUSE_WINOGRAD_BOUNDED))
    }
#else
    int32_t channel, tile, x, k;
    for (channel = 0; channel < 2; ++channel) {
        for (tile = 0; tile < 2; ++tile) {
            for (x = 0; x < (flat != 0 ? 1 : TINYFUSE_WINOGRAD_TILE); ++x) {
                uint32_t m[TINYFUSE_WINOGRAD_PATCH], y[TINYFUSE_WINOGRAD_TILE];
                for (k = 0; k < (flat != 0 ? TINYFUSE_WINOGRAD_TILE : TINYFUSE_WINOGRAD_PATCH); ++k) {
                    m[k] = (uint32_t)s->sums[(flat != 0 ? 4 : 16) * k + 4 * x + 2 * channel + tile];
                }
                if (flat != 0) {
                    memcpy(y, m, sizeof y);
                } else {
                    y[0] = 2 * (m[0] + m[1]) + m[2] + m[3] + m[4];
                    y[1] = 2 * (m[0] - m[1] + m[2] - m[3]);
                    y[2] = 2 * (m[0] + m[1] + 2 * (m[2] + m[3]));
                    y[3] = 2 * (m[0] - m[1] + 4 * (m[2] - m[3]) + 2 * m[5]);
                }
                for (k = TINYFUSE_WINOGRAD_TILE - 1; k >= 0; --k) {
                    s->lines[k][channel + tile * s->apart + x * s->column] = tinyfuse_winograd_output(s, channel, y[k], flat, form);
                }
            }
        }
    }
#endif
}

#define TINYFUSE_WINOGRAD_PUT_FORM(name, flat, form)                                               \
    TINYFUSE_IN_FORM(name, form, tinyfuse_winograd_put, (const tinyfuse_winograd_outputs *s), s, flat)
TINYFUSE_WINOGRAD_PUT_FORM(tinyfuse_winograd_put_single_rounding, 0, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_WINOGRAD_PUT_FORM(tinyfuse_winograd_put_bounded, 0, TINYFUSE_WIDE)
TINYFUSE_WINOGRAD_PUT_FORM(tinyfuse_winograd_put_half_even, 0, TINYFUSE_HALF_EVEN)
TINYFUSE_WINOGRAD_PUT_FORM(tinyfuse_winograd_1d_put_single_rounding, 1, TINYFUSE_SINGLE_ROUNDING)
TINYFUSE_WINOGRAD_PUT_FORM(tinyfuse_winograd_1d_put_bounded, 1, TINYFUSE_WIDE)
TINYFUSE_WINOGRAD_PUT_FORM(tinyfuse_winograd_1d_put_half_even, 1, TINYFUSE_HALF_EVEN)

/* Selects the function of a form, whose name begins with `name`. */
#define TINYFUSE_WINOGRAD_PUT(form, name)                          \
    ((form) == TINYFUSE_SINGLE_ROUNDING ? name##_single_rounding   \
     : (form) == TINYFUSE_HALF_EVEN     ? name##_half_even         \
                                        : name##_bounded)

/* --- rows ------------------------------------------------------------------------------------------ */

/* Computes what the functions below do, from output row y on to the rows `to`: one for windows of 1x3, else four. */
TINYFUSE_INLINE void tinyfuse_winograd(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *const *to,
                                       const int8_t *weights, const void *channels, void *scratch, int form)
{
    const int flat = p->kernel_h == 1;
    /* where the last tile begins, rows of a patch, and its columns and rows that are read */
    const int32_t last = tinyfuse_max(p->out_w - TINYFUSE_WINOGRAD_TILE, 0), height = flat != 0 ? 1 : TINYFUSE_WINOGRAD_PATCH;
    const int32_t width = tinyfuse_min(p->in_w, p->out_w - 1 + p->kernel_w - p->pad_left);
    const int32_t reads = flat != 0 ? 1 : 3 + (to[1] != to[0]) + (to[2] != to[1]) + (to[3] != to[2]);
    uint32_t *const columns = (uint32_t *)scratch;
    int8_t *const padding = (int8_t *)(columns + (flat != 0 ? 6 : 36) * p->in_c);
    const int8_t *places[TINYFUSE_WINOGRAD_PATCH * TINYFUSE_WINOGRAD_COLUMNS];
    /* rows of patches, then sums */
    union {
        uint32_t down[TINYFUSE_WINOGRAD_PATCH * TINYFUSE_WINOGRAD_ROW / 4];
        int32_t sums[TINYFUSE_WINOGRAD_PATCH * 16];
    } work;
    const int8_t *rows[TINYFUSE_WINOGRAD_PATCH];
    tinyfuse_winograd_outputs s;
    int32_t r, j, x, channel;
    for (r = 0; r < height; ++r) {
        const int32_t iy = y - p->pad_top + r;
        rows[r] = r < reads && iy >= 0 && iy < p->in_h ? tinyfuse_ring_row(in, iy, p->in_ring, p->in_w * p->in_c) : NULL;
    }
    memset(padding, p->in_zero_point, (size_t)p->in_c);
    s.rounding = tinyfuse_matmul_rounding(p->out_zero_point, form);
    s.sums = work.sums;
    s.column = p->out_c;
    s.inverse = (flat != 0 ? 0xAAAAAAABu : 0x38E38E39u) << (form == TINYFUSE_WIDE ? 0 : flat != 0 ? 5 : 2);
    for (x = 0; x < p->out_w; x += 2 * TINYFUSE_WINOGRAD_TILE) {
        const int32_t from = tinyfuse_min(x, last), apart = tinyfuse_min(x + TINYFUSE_WINOGRAD_TILE, last) - from;
        const int32_t count = apart + TINYFUSE_WINOGRAD_PATCH;
        const int16_t *w = (const int16_t *)(const void *)weights;
        for (j = 0; j < count; ++j) {
            const int32_t ix = from - p->pad_left + j;
            for (r = 0; r < height; ++r) {
                places[height * j + r] = rows[r] != NULL && ix >= 0 && ix < width ? rows[r] + ix * p->in_c : padding;
            }
        }
        for (r = 0; r < TINYFUSE_WINOGRAD_TILE; ++r) {
            s.lines[r] = flat != 0 ? to[0] + tinyfuse_min(from + r, p->out_w - 1) * p->out_c : to[r] + from * p->out_c;
        }
        s.apart = apart * p->out_c;
        s.channels = channels;
        if (flat != 0) {
            tinyfuse_winograd_1d_columns(places, apart, p->in_c, columns);
        } else {
            tinyfuse_winograd_columns(places, count, apart, p->in_c, work.down, columns);
        }
        for (channel = 0; channel < p->out_c; channel += 2) {
            w = flat != 0 ? tinyfuse_winograd_1d_sums(columns, w, work.sums, p->in_c / 4)
                     : tinyfuse_winograd_sums(columns, w, work.sums, p->in_c / 4);
            if (flat != 0) {
                TINYFUSE_WINOGRAD_PUT(form, tinyfuse_winograd_1d_put)(&s);
            } else {
                TINYFUSE_WINOGRAD_PUT(form, tinyfuse_winograd_put)(&s);
            }
            s.channels = (const int8_t *)s.channels + 2 * tinyfuse_channel_bytes(form);
            for (r = 0; r < TINYFUSE_WINOGRAD_TILE; ++r) {
                s.lines[r] += 2;
            }
        }
    }
    if (p->act_min > -128 || p->act_max < 127) {
        for (r = 0; r < (flat != 0 ? 1 : TINYFUSE_WINOGRAD_TILE); ++r) {
            tinyfuse_clamp_row(to[r], p->out_w * p->out_c, p->act_min, p->act_max);
        }
    }
}

/* Computes output rows y to y + 3 of a 3x3 convolution to `out` and `next` to `fourth`; where there are fewer, the others
   are the last. in_c is a multiple of 4, out_c of 2, out_w at least 4. `form` is TINYFUSE_SINGLE_ROUNDING, with
   tinyfuse_single_rounding channels, TINYFUSE_HALF_EVEN, with tinyfuse_half_even (and an FPU), or TINYFUSE_WIDE, with
   tinyfuse_requant of the bounded form. Reads only the input
   rows of these rows' windows that exist, writes only the out_w * out_c bytes of each row. scratch, aligned to 4: 145 *
   in_c bytes. */
TINYFUSE_INLINE void tinyfuse_winograd_rows_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out, int8_t *next,
                                               int8_t *third, int8_t *fourth, const int8_t *weights, const void *channels,
                                               void *scratch, int form)
{
    int8_t *const to[TINYFUSE_WINOGRAD_TILE] = {out, next, third, fourth};
    tinyfuse_winograd(p, in, y, to, weights, channels, scratch, form);
}

/* Computes output row y of a 1x3 convolution under the same conditions, but with any out_w. scratch, aligned to 4: 25 *
   in_c bytes. */
TINYFUSE_INLINE void tinyfuse_winograd_along_row_s8(const tinyfuse_conv *p, const int8_t *in, int32_t y, int8_t *out,
                                                    const int8_t *weights, const void *channels, void *scratch, int form)
{
    tinyfuse_winograd(p, in, y, &out, weights, channels, scratch, form);
}

#endif
