/* REVERSE_SEQUENCE: reverses the first elements of each sequence of a batch. */
#ifndef TINYFUSE_REVERSE_SEQUENCE_H
#define TINYFUSE_REVERSE_SEQUENCE_H

#include "tinyfuse_common.h"

/* Data [dim[0]][dim[1]][dim[2]][dim[3]] of pieces of `bytes` bytes. Dimension `along`, 1 or 3, runs along the
   sequences; the other one of these two counts them. Lengths are int64 if `wide`, else int32. */
typedef struct {
    int32_t dim[4];
    int32_t bytes, along, wide;
} tinyfuse_sequences;

/* The length of a sequence, clamped to 0 and one more than the number of its elements. */
TINYFUSE_INLINE int32_t tinyfuse_sequence_length(const tinyfuse_sequences *p, const void *lengths, int32_t sequence)
{
    const int32_t most = p->dim[p->along] + 1;
    int64_t length;
    if (p->wide != 0) {
        memcpy(&length, (const uint8_t *)lengths + 8 * sequence, 8); /* memcpy: only aligned to words */
    } else {
        length = ((const int32_t *)lengths)[sequence];
    }
    return length < 0 ? 0 : length > most ? most : (int32_t)length;
}

/* Index of the input piece for output position `at`. */
TINYFUSE_INLINE int32_t tinyfuse_sequence_source(const tinyfuse_sequences *p, const int32_t *at, int32_t length)
{
    int32_t d, piece = 0;
    for (d = 0; d < 4; ++d) {
        const int32_t index = d == p->along && at[d] < length ? length - 1 - at[d] : at[d];
        piece = piece * p->dim[d] + index;
    }
    return piece;
}

/* Returns 0, or 1 if a length exceeds its sequence; `out` is then incomplete. */
TINYFUSE_INLINE int tinyfuse_reverse_sequence(const tinyfuse_sequences *p, const void *in, const void *lengths,
                                              void *out)
{
    uint8_t *to = (uint8_t *)out;
    int32_t at[4];
    for (at[0] = 0; at[0] < p->dim[0]; ++at[0]) {
        for (at[1] = 0; at[1] < p->dim[1]; ++at[1]) {
            for (at[2] = 0; at[2] < p->dim[2]; ++at[2]) {
                for (at[3] = 0; at[3] < p->dim[3]; ++at[3]) {
                    const int32_t length = tinyfuse_sequence_length(p, lengths, at[4 - p->along]);
                    if (length > p->dim[p->along]) {
                        return 1;
                    }
                    memcpy(to, (const uint8_t *)in + tinyfuse_sequence_source(p, at, length) * p->bytes,
                           (size_t)p->bytes);
                    to += p->bytes;
                }
            }
        }
    }
    return 0;
}

#endif
