/* EMBEDDING_LOOKUP: rows of an int8 table as floats. */
#ifndef TINYFUSE_EMBEDDING_LOOKUP_H
#define TINYFUSE_EMBEDDING_LOOKUP_H

#include "tinyfuse_common.h"

/* A table of `rows` rows of `columns` values, and the number of `indexes`. */
typedef struct {
    int32_t rows, columns, indexes;
    float scale;
} tinyfuse_embedding;

/* Returns 0, or 1 if an index is outside the table; `out` is then incomplete. */
TINYFUSE_INLINE int tinyfuse_embedding_lookup_s8_f32(const tinyfuse_embedding *p, const int32_t *indexes,
                                                     const int8_t *table, float *out)
{
    int32_t i, c;
    for (i = 0; i < p->indexes; ++i) {
        const int8_t *row;
        if (indexes[i] < 0 || indexes[i] >= p->rows) {
            return 1;
        }
        row = table + indexes[i] * p->columns;
        for (c = 0; c < p->columns; ++c) {
            *out++ = (float)row[c] * p->scale;
        }
    }
    return 0;
}

#endif
