/* Computes the shape to which two shapes broadcast. */
#ifndef TINYFUSE_BROADCAST_SHAPES_H
#define TINYFUSE_BROADCAST_SHAPES_H

#include "tinyfuse_common.h"

/* `out` is as long as the longer shape. Returns not 0 if they don't broadcast. */
#define TINYFUSE_DEFINE_BROADCAST_SHAPES(name, type)                                                             \
    TINYFUSE_INLINE int32_t tinyfuse_broadcast_shapes_##name(const type *first, const type *second, type *out,   \
                                                             int32_t first_length, int32_t second_length)        \
    {                                                                                                            \
        const int32_t length = tinyfuse_max(first_length, second_length);                                        \
        int32_t i;                                                                                               \
        for (i = 1; i <= length; ++i) {                                                                          \
            const type a = i <= first_length ? first[first_length - i] : 1;                                      \
            const type b = i <= second_length ? second[second_length - i] : 1;                                   \
            if (a != 1 && b != 1 && a != b) {                                                                    \
                return 1;                                                                                        \
            }                                                                                                    \
            out[length - i] = a == 1 ? b : a;                                                                    \
        }                                                                                                        \
        return 0;                                                                                                \
    }

TINYFUSE_DEFINE_BROADCAST_SHAPES(s32, int32_t)
TINYFUSE_DEFINE_BROADCAST_SHAPES(s64, int64_t)

#endif
