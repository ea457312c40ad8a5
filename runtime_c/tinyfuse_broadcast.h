/* Loops over two operands that broadcast, and macros that define functions with these loops. */
#ifndef TINYFUSE_BROADCAST_H
#define TINYFUSE_BROADCAST_H

#include "tinyfuse_common.h"

/* Strides of a loop nest of four dimensions over both operands; a stride of 0 repeats an element. */
typedef struct {
    int32_t dim[4];
    int32_t a_stride[4];
    int32_t b_stride[4];
} tinyfuse_broadcast;

/* Loops of a function with the parameters `a`, `b`, `out` and `count` or `s`: each element of `out` is `expression`
   of the elements `x` and `y`. They go forward, element by element. The output may be an operand or lie below it if
   that operand is not repeated and output elements are not larger. */
#define TINYFUSE_EACH(in_type, out_type, expression) \
    int32_t i;                                       \
    for (i = 0; i < count; ++i) {                    \
        const in_type x = a[i], y = b[i];            \
        out[i] = (out_type)(expression);             \
    }

#define TINYFUSE_EACH_BROADCAST(in_type, out_type, expression)                                          \
    int32_t i, j, k, l;                                                                                 \
    for (i = 0; i < s->dim[0]; ++i) {                                                                \
        for (j = 0; j < s->dim[1]; ++j) {                                                            \
            for (k = 0; k < s->dim[2]; ++k) {                                                        \
                const in_type *row_a = a + i * s->a_stride[0] + j * s->a_stride[1] + k * s->a_stride[2]; \
                const in_type *row_b = b + i * s->b_stride[0] + j * s->b_stride[1] + k * s->b_stride[2]; \
                for (l = 0; l < s->dim[3]; ++l) {                                                    \
                    const in_type x = row_a[l * s->a_stride[3]], y = row_b[l * s->b_stride[3]];         \
                    *out++ = (out_type)(expression);                                                    \
                }                                                                                       \
            }                                                                                           \
        }                                                                                               \
    }

/* Defines tinyfuse_NAME_SUFFIX over `count` elements and tinyfuse_NAME_broadcast_SUFFIX over a nest;
   `expression` reads x, y and the parameters `p`. */
#define TINYFUSE_DEFINE_BINARY(name, suffix, params, in_type, out_type, expression)                     \
    TINYFUSE_INLINE void tinyfuse_##name##_##suffix(const params *p, const in_type *a,                  \
                                                    const in_type *b, out_type *out, int32_t count)     \
    {                                                                                                   \
        TINYFUSE_EACH(in_type, out_type, expression)                                                    \
    }                                                                                                   \
    TINYFUSE_INLINE void tinyfuse_##name##_broadcast_##suffix(                                          \
        const params *p, const tinyfuse_broadcast *s, const in_type *a, const in_type *b, out_type *out) \
    {                                                                                                   \
        TINYFUSE_EACH_BROADCAST(in_type, out_type, expression)                                          \
    }

/* Like TINYFUSE_DEFINE_BINARY, without parameters. */
#define TINYFUSE_DEFINE_PLAIN_BINARY(name, suffix, in_type, out_type, expression)                       \
    TINYFUSE_INLINE void tinyfuse_##name##_##suffix(const in_type *a, const in_type *b, out_type *out,  \
                                                    int32_t count)                                      \
    {                                                                                                   \
        TINYFUSE_EACH(in_type, out_type, expression)                                                    \
    }                                                                                                   \
    TINYFUSE_INLINE void tinyfuse_##name##_broadcast_##suffix(                                          \
        const tinyfuse_broadcast *s, const in_type *a, const in_type *b, out_type *out)                 \
    {                                                                                                   \
        TINYFUSE_EACH_BROADCAST(in_type, out_type, expression)                                          \
    }

#endif
