/* What kernel_program.py's programs share: how a case's buffers are placed, filled and compared. */
#ifndef KERNEL_PROGRAM_H
#define KERNEL_PROGRAM_H

#include <string.h>
#include "port.h"

/* What the memory sanitizer takes for never written. */
#define FORGET(memory, bytes)
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#undef FORGET
#define FORGET(memory, bytes) __msan_allocated_memory(memory, bytes)
#endif
#endif

#if (defined(__ARM_FEATURE_DSP) && !TINYFUSE_DSP) || (defined(__ARM_FEATURE_MVE) && !TINYFUSE_MVE)
#error "the kernels give instructions up that the core has"
#endif

enum { ROOM = 1 << 18, GAP = 64, POISON = 0x5A, MOST = 16 };

/* `rows` rows of `row_bytes` at `data`. `distance`: from the output that is written over it, or -1. In a ring of
   `ring` rows lie, when output rows y to `last` are computed, those that their windows of `kernel` rows read. */
struct input {
    const uint8_t *data;
    int32_t distance, rows, row_bytes, ring, kernel, stride, spread, pad_top;
};

struct output {
    const uint8_t *expected;
    size_t bytes;
    int floats;
};

struct test {
    int (*call)(void *const *in, void *const *out, uint8_t *scratch, int32_t y);
    const struct input *inputs;
    const struct output *outputs;
    int32_t input_count, output_count, rows, at_once, rings;
    size_t scratch, both, shift, align; /* `both`: bytes of the output and the input above it; `align`: of tensors */
};

static uint8_t pool[ROOM] __attribute__((aligned(16)));
static size_t used = ROOM;
static struct { size_t start, end; } taken[MOST]; /* in the order of their places */
static int takes;

/* Forgets every buffer and forbids the pool. */
static void start(void)
{
    port_allow(pool, sizeof pool);
    memset(pool, POISON, used);
    port_forbid(pool, sizeof pool);
    used = 0;
    takes = 0;
}

/* Takes `bytes` from byte `first` of the pool on. */
static uint8_t *take(size_t first, size_t bytes)
{
    int at = takes++;
    used = first + bytes + GAP > used ? first + bytes + GAP : used;
    if (used > sizeof pool || takes == MOST) {
        port_exit(1);
    }
    for (; at > 0 && taken[at - 1].start > first; --at) {
        taken[at] = taken[at - 1];
    }
    taken[at].start = first;
    taken[at].end = first + bytes;
    port_allow(pool + first, bytes);
    FORGET(pool + first, bytes);
    return pool + first;
}

/* Whether all that was not taken is as it was. */
static int kept(void)
{
    size_t at = 0;
    port_allow(pool, sizeof pool);
    for (int i = 0; i <= takes; ++i) {
        for (; at < (i < takes ? taken[i].start : used); ++at) {
            if (pool[at] != POISON) {
                return 0;
            }
        }
        at = i < takes ? taken[i].end : used;
    }
    return 1;
}

/* Whether input rows `first` to `end` lie where they are read, as they were. */
static int unchanged(const uint8_t *memory, const struct input *in, int32_t first, int32_t end)
{
    for (int32_t r = 0; r < in->rows; ++r) {
        if (r * in->spread >= first && r * in->spread < end &&
            memcmp(memory + r % in->ring * in->row_bytes, in->data + r * in->row_bytes, (size_t)in->row_bytes) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Puts the rows which output rows y to `last` need into the ring, and nothing else. */
static void fill(uint8_t *memory, const struct input *in, int32_t y, int32_t last)
{
    const int32_t first = y * in->stride - in->pad_top, end = last * in->stride - in->pad_top + in->kernel;
    memset(memory, POISON, (size_t)(in->ring * in->row_bytes));
    for (int32_t r = 0; r < in->rows; ++r) {
        if (r * in->spread >= first && r * in->spread < end) {
            memcpy(memory + r % in->ring * in->row_bytes, in->data + r * in->row_bytes, (size_t)in->row_bytes);
        }
    }
}

/* A float's bits; a NaN is any NaN. */
static uint32_t bits_at(const uint8_t *place)
{
    uint32_t bits;
    memcpy(&bits, place, sizeof bits);
    return (bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : bits;
}

static int same(const uint8_t *got, const struct output *wanted)
{
    if (!wanted->floats) {
        return memcmp(got, wanted->expected, wanted->bytes) == 0;
    }
    for (size_t i = 0; i < wanted->bytes; i += 4) {
        if (bits_at(got + i) != bits_at(wanted->expected + i)) {
            return 0;
        }
    }
    return 1;
}

struct buffer {
    uint8_t **place;
    size_t bytes;
};

/* Takes the buffers of a list, the first one `apart` bytes from `at`: each beyond the one before it, above it or below. */
static void stack_up(const struct buffer *list, int count, size_t at, size_t apart, size_t align, size_t shift, int below)
{
    for (int i = 0; i < count; ++i) {
        const size_t bytes = list[i].bytes;
        const size_t first = below ? (at - apart - bytes - shift) / align * align + shift
                                   : (at + apart + align - 1) / align * align + shift;
        *list[i].place = take(first, bytes);
        at = below ? first : first + bytes;
    }
}

/* How many ways `lay_out` knows: two for each buffer that may be scratch's neighbour. */
static int turns_of(const struct test *t)
{
    const int most = t->input_count > t->output_count ? t->input_count : t->output_count;
    return 1 + 2 * (most > 0 ? most : 1);
}

/* Takes every buffer. With turn 0 they lie apart. With others nothing lies between them but what their alignment takes,
   as in an arena: inputs below scratch and outputs above it, or the other way round, another one of each beside it by
   each two turns. */
static void lay_out(const struct test *t, int turn, uint8_t **in, uint8_t **out, uint8_t **scratch)
{
    const size_t apart = turn == 0 ? GAP : 0, align = turn == 0 ? 16 : t->align, shift = t->shift;
    const int first = turn / 2, inputs_below = turn % 2;
    struct buffer inputs[MOST], outputs[MOST];
    int input_count = 0, output_count = 0;
    size_t middle = GAP;
    uint8_t *both = NULL;
    for (int k = 0; k < t->input_count; ++k) {
        const int i = (first + k) % t->input_count;
        if (t->inputs[i].distance < 0) {
            inputs[input_count].place = &in[i];
            inputs[input_count++].bytes = (size_t)(t->inputs[i].ring * t->inputs[i].row_bytes);
        }
    }
    for (int k = 0; k < t->output_count && t->both == 0; ++k) {
        const int o = (first + k) % t->output_count;
        outputs[output_count].place = &out[o];
        outputs[output_count++].bytes = t->outputs[o].bytes;
    }
    if (t->both > 0) {
        outputs[output_count].place = &both;
        outputs[output_count++].bytes = t->both;
    }
    for (int k = 0; k < (inputs_below ? input_count : output_count); ++k) {
        middle += (inputs_below ? inputs : outputs)[k].bytes + apart + align + shift;
    }
    middle = (middle + 15) / 16 * 16;
    *scratch = t->scratch > 0 ? take(middle, t->scratch) : NULL;
    stack_up(inputs, input_count, middle + (inputs_below ? 0 : t->scratch), apart, align, shift, inputs_below);
    stack_up(outputs, output_count, middle + (inputs_below ? t->scratch : 0), apart, align, shift, !inputs_below);
    for (int i = 0; i < t->input_count; ++i) {
        in[i] = t->inputs[i].distance < 0 ? in[i] : both + t->inputs[i].distance;
    }
    for (int o = 0; o < t->output_count && both != NULL; ++o) {
        out[o] = both;
    }
}

static char verdict(const struct test *t, int turn)
{
    uint8_t *in[MOST], *out[MOST], *scratch;
    start();
    lay_out(t, turn, in, out, &scratch);
    for (int i = 0; i < t->input_count && !t->rings; ++i) {
        memcpy(in[i], t->inputs[i].data, (size_t)(t->inputs[i].rows * t->inputs[i].row_bytes));
    }
    for (int32_t y = 0; y < t->rows; y += t->at_once) {
        const int32_t last = (y + t->at_once < t->rows ? y + t->at_once : t->rows) - 1;
        for (int i = 0; t->rings && i < t->input_count; ++i) {
            fill(in[i], &t->inputs[i], y, last);
        }
        if (t->call((void *const *)in, (void *const *)out, scratch, y) != 0) {
            return 'e';
        }
        for (int i = 0; i < t->input_count; ++i) {
            const struct input *const from = &t->inputs[i];
            const int32_t first = t->rings ? y * from->stride - from->pad_top : 0;
            const int32_t end = t->rings ? last * from->stride - from->pad_top + from->kernel : INT32_MAX;
            if (from->distance < 0 && (t->rings || last == t->rows - 1) && !unchanged(in[i], from, first, end)) {
                return 'i';
            }
        }
    }
    for (int o = 0; o < t->output_count; ++o) {
        if (!same(out[o], &t->outputs[o])) {
            return 'x';
        }
    }
    return kept() ? '.' : 'g';
}

/* Writes a character a test, as run_program() says. */
static void run_tests(const struct test *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        char found = '.';
        for (int turn = 0; found == '.' && turn < turns_of(&tests[i]); ++turn) {
            found = verdict(&tests[i], turn);
        }
        port_write(&found, 1);
    }
}

/* the bytes of every input and expected output */
extern const uint8_t values[] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata\n\t.balign 16\n\t.globl values\n"
        "values:\n\t.incbin \"values.bin\"\n\t.popsection");

#endif
