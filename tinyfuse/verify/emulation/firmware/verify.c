/* Verification firmware: runs a generated module on the embedded inputs and writes all of its outputs.

   It writes one record a line, for tinyfuse/verify/emulation/result.py:

     output RUN INDEX HEX               the next bytes of an output
     guard RUN before|after OFFSET      a byte outside the arena changed, OFFSET from the arena
     state RUN before|after OFFSET      a byte outside the state changed, OFFSET from the state
     misuse RUN STATUS TEXT             a call that must be refused returned STATUS
     promise TEXT                       a promise of the header that does not hold
     weights NAME                       an array whose bytes are not the plan's
     changed RUN TEXT                   memory of the harness changed; RUN is -1 if it is not known when
     masked RUN TICKS                   an interrupt came so many ticks late
     within RUN STATUS                  an inference that an interrupt made returned STATUS, or other outputs than run 0
     register FUNCTION NAME             a function returned with another register or mode than it was called with
     trying TEXT                        the next call, which a faulty module may not survive
     error TEXT                         the run cannot go on
     crash TEXT                         a fault handler was entered
     wrong INSTRUCTION                  the emulated core computes it wrongly; nothing was run
     spread least=L most=M step=S       thousandths of ticks over all inputs: of an inference, of a step
     result runs=R bytes=N crc=C ticks=T stack=S [mean=M]

   In a result, N is the bytes of all outputs and C their CRC-32 in hex. T is the thousandths of ticks that run 1 took
   beyond one instruction, and S the bytes of stack of the other runs (decimal, or "none" if not measured), of which some
   are interrupted instead. One of these interrupts makes the inference of run 0, with an arena and a state of its own,
   unless this is built with WITHOUT_WITHIN.

   Every even run initializes an arena full of junk. Of the odd ones, every second run finds junk in an arena that was
   initialized before, and the others use the arena as the run before left it, as an application would.

   A module that is fed rows gets them one at a time in run 0, all at once in run 1, which is timed, and then in batches
   of random length. In between it is called in ways that it must refuse.

   Of a module with a sliding window, all runs with a result are timed, except every fifth, whose stack is measured: T
   is the maximum, M the mean.

   If the module has a state, two instances of it take turns (tinyfuse/verify/streams.py). Every second run is of the
   same stream, which begins with the reset of a state full of junk and has FRAMES runs. Memory around the state of the
   run, including the other instance's state, must not change.

   A module with NAME_step makes its untimed inferences in steps, and the arena moves after each one; in every fourth run,
   an inference was begun before and left. If weights are
   copied ahead, every second run fills the destination of each copy with junk until NAME_stage_wait is called.

   Built with MODULE_HEADER ("kws.h"), MODULE_NAME (kws), MODULE_PREFIX (KWS), RUNS and, for a module with state,
   FRAMES. With SPREAD all inputs are run once more, for their ticks. interface.c and a table of weights may be linked
   to it. */
#include "verify.h"

#include <string.h>

#include MODULE_HEADER

/* Makes the names of the module's functions call them through checked_calls.c, which is part of no measured run. */
#define DEFINE_CHECKED_CALLS
#include "entry_points.h"

#ifdef CHECKED_CALLS
#define DIRECT_(module, name) direct_##module##_##name
#define DIRECT__(module, name) DIRECT_(module, name)
#define DIRECT(name) DIRECT__(MODULE_NAME, name)
#else
#define DIRECT(name) MODULE(name)
#endif
#define MODULE(name) PASTE(MODULE_NAME, name)
#define MODULE_MACRO(name) PASTE(MODULE_PREFIX, name)

#define ARENA_BYTES MODULE_MACRO(ARENA_BYTES)
#define ARENA_ALIGN MODULE_MACRO(ARENA_ALIGN)
/* The inputs of all runs in order (inputs.s). */
extern const uint8_t tinyfuse_inputs[], tinyfuse_inputs_end[];
extern const uint8_t tinyfuse_blob[], tinyfuse_blob_end[]; /* weights of --weights-blob */

/* The arena between its guards. A guard is an odd multiple of the promised alignment, so that the arena has exactly
   that alignment. The guards' content differs from run to run, so a module that reads beyond its arena computes other
   outputs. */
#define GUARD (513 * ARENA_ALIGN)
#define IN_ARENA __attribute__((section(".arena"))) /* sections.ld keeps them from the other variables */
#define IN_STATES __attribute__((section(".states")))
/* Size and alignment of these variables are multiples of UNIT, so no byte between them is unchecked. */
#ifdef FRAMES
#define UNIT (2 * ARENA_ALIGN * MODULE_MACRO(STATE_ALIGN))
#else
#define UNIT (2 * ARENA_ALIGN)
#endif
#define WHOLE_UNITS(bytes) (((bytes) + UNIT - 1) / UNIT * UNIT)

/* Parts of the arena, each in a section of its own; a whole arena is one part. */
#ifdef ARENA_PARTS
#define IS_IN_PARTS 1
#else
#define IS_IN_PARTS 0
#define ARENA_PARTS(PART) PART(0, ARENA_BYTES)
#endif
#define IN_PART(n) section(".arena_" #n)
#define MEMORY_BYTES(size) WHOLE_UNITS(GUARD + (size) + GUARD)
#define DEFINE_MEMORY(n, size) static uint8_t memory_##n[MEMORY_BYTES(size)] __attribute__((aligned(UNIT), IN_PART(n)));
ARENA_PARTS(DEFINE_MEMORY)

static const struct part {
    uint8_t *memory;
    size_t after, end; /* end of the module's part, end of the guard behind it */
} parts[] = {
#define ROW(n, size) {memory_##n, GUARD + (size), MEMORY_BYTES(size)},
    ARENA_PARTS(ROW)
};
enum { PARTS = sizeof parts / sizeof *parts };

#if IS_IN_PARTS
#define ADDRESS(n, size) memory_##n + GUARD,
static const MODULE(arena_parts) first_place = {ARENA_PARTS(ADDRESS)};
static const arena_pointer arena = &first_place;
#define SIZE_FOR_INIT sizeof *arena
#else
static uint8_t *const arena = memory_0 + GUARD;
#define SIZE_FOR_INIT ARENA_BYTES
#endif

/* Arrays whose size build.py reads; nothing refers to them, so the linker drops them. */
uint8_t tinyfuse_arena_bytes[ARENA_BYTES];

#ifdef FRAMES
#define STATE_BYTES MODULE_MACRO(STATE_BYTES)
enum {
    INSTANCES = 2,
    STATE_GUARD = 33 * MODULE_MACRO(STATE_ALIGN),
    STATES = WHOLE_UNITS(INSTANCES * (STATE_GUARD + STATE_BYTES) + STATE_GUARD)
};
static uint8_t states[STATES] __attribute__((aligned(UNIT))) IN_STATES;
static uint8_t *state; /* of the current run */
uint8_t tinyfuse_state_bytes[STATE_BYTES];
#define FIRST_STATE (&states[STATE_GUARD])
#else
#define FIRST_STATE NULL
#endif

/* --- records ---------------------------------------------------------------------------------- */

static char line[256];
static size_t line_length;

static void put_char(char c)
{
    if (line_length < sizeof line) {
        line[line_length++] = c;
    }
}

static void put_text(const char *text)
{
    while (*text != '\0') {
        put_char(*text++);
    }
}

static void put_hex(uint32_t value, int digits)
{
    while (digits-- > 0) {
        put_char("0123456789abcdef"[(value >> (4 * digits)) & 15u]);
    }
}

static void put_number(int64_t value)
{
    char digits[20];
    int count = 0;
    uint64_t rest = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;

    if (value < 0) {
        put_char('-');
    }
    do {
        digits[count++] = (char)('0' + (int)(rest % 10u));
        rest /= 10u;
    } while (rest != 0u);
    while (count > 0) {
        put_char(digits[--count]);
    }
}

static void put_field(const char *text, int64_t value)
{
    put_text(text);
    put_number(value);
}

/* A figure, or "none" for what was not measured. */
static void put_measured(const char *text, int64_t value)
{
    put_text(text);
    if (value == NOT_MEASURED) {
        put_text("none");
    } else {
        put_number(value);
    }
}

static void end_line(void)
{
    put_char('\n');
    port_write(line, line_length);
    line_length = 0;
}

static void fail(const char *text, int64_t value)
{
    put_text("error ");
    put_field(text, value);
    end_line();
    port_exit(1);
}

static void put_record(const char *kind, const char *text)
{
    put_text(kind);
    put_text(text);
    end_line();
}

void promise(int kept, const char *text)
{
    if (!kept) {
        put_record("promise ", text);
    }
}

void trying(const char *call)
{
    put_record("trying ", call);
}

/* --- outputs ---------------------------------------------------------------------------------- */

static uint32_t crc = 0xFFFFFFFFu;
static int64_t bytes_written;

/* CRC-32 as in zlib, four bits at a time, without the inversions at both ends. */
static uint32_t crc_of(uint32_t before, uint8_t byte)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu,
    };

    before ^= byte;
    before = (before >> 4) ^ table[before & 15u];
    return (before >> 4) ^ table[before & 15u];
}

/* Writes an output; zeros for a run without a result (`none`). */
static void write_output(int run, size_t index, int none)
{
    enum { BYTES_A_LINE = 40 };
    const uint8_t *bytes = MODULE(output)(arena, index);
    size_t length = MODULE(output_bytes)(index);

    for (size_t start = 0; start < length; start += BYTES_A_LINE) {
        put_field("output ", run);
        put_field(" ", (int64_t)index);
        put_char(' ');
        for (size_t i = start; i < length && i < start + BYTES_A_LINE; ++i) {
            const uint8_t byte = none ? 0u : bytes[i];

            put_hex(byte, 2);
            crc = crc_of(crc, byte);
            ++bytes_written;
        }
        end_line();
    }
}

/* --- weights ---------------------------------------------------------------------------------- */

static void check_weights(const struct weights *array)
{
    for (; array->start != NULL; ++array) {
        uint32_t found = 0xFFFFFFFFu;

        for (uintptr_t at = 0; at < array->bytes; ++at) {
            found = crc_of(found, array->start[at]);
        }
        if ((uint32_t)~found != array->crc) {
            put_record("weights ", array->name);
        }
    }
}

/* --- arena and guards ------------------------------------------------------------------------- */

/* Junk that differs from run to run, so that no module writes the expected byte by chance every time. */
static uint8_t pattern(int run, size_t position)
{
    return (uint8_t)((position * 37u) ^ (position >> 8) ^ ((unsigned)run * 101u) ^ 0xA5u);
}

static void paint(int run, uint8_t *of, size_t from, size_t to)
{
    for (size_t i = from; i < to; ++i) {
        of[i] = pattern(run, i);
    }
}

/* Compares memory with the pattern. `record` and `name` begin the record; offsets count from `origin`. */
static void check_guard(int run, const char *record, const char *name, const uint8_t *of, size_t from,
                        size_t to, size_t origin)
{
    port_allow(&of[from], to - from);
    for (size_t i = from; i < to; ++i) {
        if (of[i] != pattern(run, i)) {
            put_field(record, run);
            put_text(name);
            put_number((int64_t)i - (int64_t)origin);
            end_line();
            return;
        }
    }
}

/* --- state ------------------------------------------------------------------------------------ */

#ifdef FRAMES
static uint8_t kept[INSTANCES][STATE_BYTES]; /* each instance's state while it waits */

/* Copies the state of the run's instance to its place; everything around it is junk that must not be touched. */
static void enter_state(int run)
{
    const int instance = run % INSTANCES, place = (run + run / INSTANCES) % INSTANCES; /* a state moves after each run */
    const size_t at = (size_t)(STATE_GUARD + place * (STATE_GUARD + STATE_BYTES));
    int status;

    state = &states[at];
    port_allow(states, STATES);
    paint(run, states, 0, STATES);
    if (run / INSTANCES % FRAMES == 0) {
        status = MODULE(reset)(state);
        if (status != MODULE_MACRO(OK)) {
            fail("reset returned ", status);
        }
    } else {
        memcpy(state, kept[instance], STATE_BYTES);
    }
    port_forbid(states, at);
    port_forbid(&states[at + STATE_BYTES], STATES - at - STATE_BYTES);
}

static void leave_state(int run)
{
    const size_t at = (size_t)(state - states);

    check_guard(run, "state ", " before ", states, 0, at, at);
    check_guard(run, "state ", " after ", states, at + STATE_BYTES, STATES, at);
    memcpy(kept[run % INSTANCES], state, STATE_BYTES);
}
#endif

static void check_inside(const char *what, const void *start, size_t bytes)
{
    for (int i = 0; i < PARTS; ++i) {
        const uintptr_t offset = (uintptr_t)start - (uintptr_t)parts[i].memory - GUARD, size = parts[i].after - GUARD;

        if (offset <= size && bytes <= size - offset) {
            return;
        }
    }
    fail(what, (int64_t)((uintptr_t)start - (uintptr_t)parts[0].memory - GUARD));
}

/* --- one inference ----------------------------------------------------------------------------- */

#if MODULE_MACRO(FEED_ROWS) || MODULE_MACRO(SLIDE_STEP)
/* Rows or frames as the module gets them: at every alignment, and only during the call. */
static uint8_t lent[INPUT_BYTES + 4 * ITEM_BYTES] __attribute__((aligned(16), section(".kept")));
static uint8_t *lent_at __attribute__((section(".kept")));

static const void *lend(const uint8_t *from, size_t bytes, size_t turn)
{
    lent_at = lent + turn % 4u * ITEM_BYTES;
    memcpy(lent_at, from, bytes);
    return lent_at;
}

static void take_back(const uint8_t *from, size_t bytes)
{
    promise(memcmp(lent_at, from, bytes) == 0, "rows and frames are not written");
    for (size_t i = 0; i < bytes; ++i) {
        lent_at[i] ^= 0xFFu;
    }
}
#endif

#if MODULE_MACRO(SLIDE_STEP)
/* Tells whether a step's instructions are counted; in the other steps the stack is measured. */
static int is_timed(int run)
{
    return run % 5 != 0;
}
#endif

#if MODULE_MACRO(FEED_ROWS)

/* Parameters of infer(): the run, and the rows of the input that is fed (with a sliding window those of a step). */
static int this_run;
static const uint8_t *fed_rows;
static size_t fed_index;

enum { FED_ROWS = MODULE_MACRO(FEED_ROWS) };

static void refused(int status, int expected, const char *what)
{
    if (status != expected) {
        put_field("misuse ", this_run);
        put_field(" ", status);
        put_char(' ');
        put_text(what);
        end_line();
    }
}

static int feed_from(const void *rows, size_t count)
{
#if MODULE_MACRO(SLIDE_STEP)
    return MODULE(feed_rows)(arena, state, rows, count);
#else
    return MODULE(feed_rows)(arena, rows, count);
#endif
}

static int feed(size_t row, size_t count)
{
    const size_t row_bytes = MODULE(input_bytes)(fed_index) / FED_ROWS;
    const size_t bytes = row + count <= FED_ROWS ? count * row_bytes : 0u;
    const uint8_t *const given = fed_rows + row * row_bytes;
    const int status = feed_from(lend(given, bytes, (size_t)this_run + row), count);

    take_back(given, bytes);
    return status;
}

/* Number between 1 and `most`, from a linear congruential generator. Its state is the caller's, because static
   variables must not change in a run. */
static size_t random_count(uint32_t *state, size_t most)
{
    *state = *state * 1664525u + 1013904223u;
    return 1u + (*state >> 8) % most;
}

#if MODULE_MACRO(SLIDE_STEP)

/* Makes a step: with all rows at once if it is timed, one by one in the first step, else in random batches. Between two
   calls the arena is overwritten, except what the caller writes for the last one. */
static int infer(arena_pointer same_arena, void *same_state)
{
    uint32_t random = (uint32_t)this_run;
    size_t row = 0;
    int status = MODULE_MACRO(NO_RESULT_YET);

    (void)same_arena;
    (void)same_state;
    if (is_timed(this_run)) {
        status = DIRECT(feed_rows)(arena, state, (const void *)fed_rows, FED_ROWS);
        __asm volatile(""); /* no tail call, because `profile` must see it return */
        return status;
    }
    while (row < FED_ROWS && status == MODULE_MACRO(NO_RESULT_YET)) {
        const size_t left = FED_ROWS - row;
        const size_t count = this_run == 0 ? 1u : random_count(&random, left);

        refused(feed(0, left + 1u), MODULE_MACRO(ERROR_ROWS), "too many rows");
        refused(feed(0, (size_t)-1), MODULE_MACRO(ERROR_ROWS), "far too many rows");
        refused(feed_from(NULL, 1), MODULE_MACRO(ERROR_NULL), "no rows");
        refused(feed_from(NULL, 0), MODULE_MACRO(NO_RESULT_YET), "an empty batch");
        if (MODULE_MACRO(INPUTS) == 1) {
            for (int i = 0; i < PARTS; ++i) {
                memset(parts[i].memory + GUARD, 0x5A ^ (int)row, parts[i].after - GUARD);
            }
        }
        status = feed(row, count);
        row += count;
    }
    if (row < FED_ROWS) {
        refused(status, MODULE_MACRO(NO_RESULT_YET), "a row before the last of a step");
    }
    return status;
}

#else

static int infer(arena_pointer same_arena)
{
    uint32_t random = (uint32_t)this_run;
    size_t row = 0;
    int status;

    (void)same_arena;
    if (this_run == 1) { /* the timed one */
        status = DIRECT(begin)(arena);
        if (status == MODULE_MACRO(OK)) {
            status = DIRECT(feed_rows)(arena, (const void *)fed_rows, FED_ROWS);
        }
        return status == MODULE_MACRO(OK) ? DIRECT(finish)(arena) : status;
    }
    refused(feed(0, 1), MODULE_MACRO(ERROR_ORDER), "rows before begin");
    refused(MODULE(finish)(arena), MODULE_MACRO(ERROR_ORDER), "finish before begin");
    if (this_run > 1 && MODULE_MACRO(INPUTS) == 1) { /* an abandoned inference; begin would destroy other inputs */
        (void)MODULE(begin)(arena);
        (void)feed(0, random_count(&random, FED_ROWS));
    }
    status = MODULE(begin)(arena);
    while (row < FED_ROWS && status == MODULE_MACRO(OK)) {
        const size_t left = FED_ROWS - row;
        const size_t count = this_run == 0 ? 1u : random_count(&random, left);

        refused(feed(0, left + 1u), MODULE_MACRO(ERROR_ROWS), "too many rows");
        refused(feed(0, (size_t)-1), MODULE_MACRO(ERROR_ROWS), "far too many rows");
        refused(MODULE(finish)(arena), MODULE_MACRO(ERROR_ROWS), "too few rows");
        refused(feed_from(NULL, 1), MODULE_MACRO(ERROR_NULL), "no rows");
        refused(feed_from(NULL, 0), MODULE_MACRO(OK), "an empty batch");
        status = feed(row, count);
        row += count;
    }
    refused(feed(0, 1), MODULE_MACRO(ERROR_ROWS), "a row after the last");
    if (status == MODULE_MACRO(OK)) {
        status = MODULE(finish)(arena);
    }
    refused(MODULE(finish)(arena), MODULE_MACRO(ERROR_ORDER), "finish again");
    refused(feed(0, 1), MODULE_MACRO(ERROR_ORDER), "rows after finish");
    return status;
}

#endif

#define whole_inference infer
#define checked_inference infer

#elif MODULE_MACRO(SLIDE_STEP)

static const uint8_t *new_frames; /* frames that infer() passes on */

static int infer(arena_pointer same_arena, void *same_state)
{
    const int status = DIRECT(slide)(same_arena, same_state, (const void *)new_frames);

    __asm volatile(""); /* no tail call, because `profile` must see it return */
    return status;
}

static size_t frame_bytes;

static int checked_inference(arena_pointer same_arena, void *same_state)
{
    const int status = MODULE(slide)(same_arena, same_state, lend(new_frames, frame_bytes, (uintptr_t)new_frames / 8u));

    take_back(new_frames, frame_bytes);
    return status;
}

#define whole_inference infer

#elif MODULE_MACRO(CURSOR_ROWS)

/* After each step, everything that the module may rely on moves. */
#define DEFINE_SECOND(n, size) static uint8_t second_##n[size] __attribute__((aligned(2 * ARENA_ALIGN), IN_PART(n)));
ARENA_PARTS(DEFINE_SECOND)
#define SECOND(n, size) second_##n,
static uint8_t *const second_parts[] = {ARENA_PARTS(SECOND)};
#if IS_IN_PARTS
static const MODULE(arena_parts) second_struct = {ARENA_PARTS(SECOND)};
#define SECOND_PLACE &second_struct
#else
#define SECOND_PLACE second_0
#endif
/* The cursor between words that must stay. */
static struct {
    uint32_t before[4];
    MODULE(cursor) cursor;
    uint32_t after[4];
} guarded IN_ARENA;

static const MODULE(cursor) first_step = MODULE_MACRO(FIRST_STEP);

#ifdef FRAMES
#define STEP_ARGUMENTS arena, state, &guarded.cursor
#else
#define STEP_ARGUMENTS arena, &guarded.cursor
#endif

static int checked_step(RUN_PARAMETERS)
{
    const int status = MODULE(step)(STEP_ARGUMENTS);

    for (int i = 0; i < 4; ++i) {
        promise(guarded.before[i] == 0u && guarded.after[i] == 0u, "nothing is written beside the cursor");
    }
    return status;
}

static int __attribute__((unused)) timed_step(RUN_PARAMETERS)
{
    return DIRECT(step)(STEP_ARGUMENTS);
}

/* Moves all parts to the second place, or back. */
static void move_arena(int to_second)
{
    for (int i = 0; i < PARTS; ++i) {
        uint8_t *const first = parts[i].memory + GUARD;
        uint8_t *const from = to_second ? first : second_parts[i];

        memcpy(to_second ? second_parts[i] : first, from, parts[i].after - GUARD);
        memset(from, 0xA5, parts[i].after - GUARD);
    }
}

/* Makes an inference in steps. Stores the maximal ticks of a step in `most`, unless that is NULL. */
static int in_steps(RUN_PARAMETERS, int64_t *most)
{
    const arena_pointer places[] = {arena, SECOND_PLACE};
    int at = 0, status;

    guarded.cursor = first_step;
    do {
        arena = places[at];
        if (most != NULL) {
            int64_t ticks;

            status = port_run_for_ticks(timed_step, RUN_ARGUMENTS, &ticks);
            *most = ticks > *most ? ticks : *most;
        } else {
            status = checked_step(RUN_ARGUMENTS);
        }
        at = 1 - at;
        move_arena(at);
    } while (status == MODULE_MACRO(MORE_STEPS));
    if (at == 1) {
        move_arena(0);
    }
    return status;
}

static int checked_inference(RUN_PARAMETERS)
{
    return in_steps(RUN_ARGUMENTS, NULL);
}

/* Begins an inference, and leaves it after a few steps. */
static void leave_inference(int run)
{
    int steps = 1 + run / 4 % 7, status;

    guarded.cursor = first_step;
    do {
        status = checked_step(RUN_ARGUMENTS);
    } while (status == MODULE_MACRO(MORE_STEPS) && --steps > 0);
}

#define whole_inference DIRECT(run)

#else

#define checked_inference MODULE(run)
#define whole_inference DIRECT(run) /* the function itself, because its instructions are counted exactly */

#endif

/* --- weights that are copied ahead -------------------------------------------------------------- */

#if MODULE_MACRO(STAGE_COPIES)
#define STAGED MODULE_MACRO(STAGE_COPIES)

/* A copy that was started. A DMA may finish at once, as in odd runs, or only when it is waited for. */
static struct {
    void *destination;
    const void *source;
    size_t bytes;
} begun[STAGED] IN_ARENA;
static int begun_count IN_ARENA, copies_wait IN_ARENA;
static int copies_apart IN_ARENA; /* of an inference in other places */

void MODULE(stage)(void *destination, const void *source, size_t bytes)
{
    if (!copies_apart) {
        check_inside("a copy of weights goes outside of the arena, offset ", destination, bytes);
    }
    if (copies_apart || !copies_wait) {
        memcpy(destination, source, bytes);
        return;
    }
    if (begun_count == STAGED) {
        fail("more copies of weights than the header says: ", begun_count + 1);
    }
    memset(destination, 0xA5, bytes);
    begun[begun_count].destination = destination;
    begun[begun_count].source = source;
    begun[begun_count].bytes = bytes;
    ++begun_count;
}

void MODULE(stage_wait)(void)
{
    while (!copies_apart && copies_wait && begun_count > 0) {
        --begun_count;
        memcpy(begun[begun_count].destination, begun[begun_count].source, begun[begun_count].bytes);
    }
}

static void begin_copies(int run)
{
    begun_count = 0;
    copies_wait = run % 2 == 0;
    copies_apart = 0;
}

/* A DMA that continued after the inference would write to the application's memory. */
static void end_copies(void)
{
    PROMISE(begun_count == 0);
}
#define SET_COPIES_APART(apart) (copies_apart = (apart))
#else
#define SET_COPIES_APART(apart) (void)0

static void begin_copies(int run)
{
    (void)run;
}

static void end_copies(void)
{
}
#endif

/* --- an inference that an interrupt makes ------------------------------------------------------- */

#if defined(CHECKED_CALLS) && !defined(WITHOUT_WITHIN)
/* No variable of this part is summed or watched. */
#define APART __attribute__((section(".kept")))
#define DEFINE_APART(n, size) static uint8_t apart_##n[MEMORY_BYTES(size)] __attribute__((aligned(UNIT), IN_PART(n)));
ARENA_PARTS(DEFINE_APART)
#if IS_IN_PARTS
#define ROW_APART(n, size) apart_##n + GUARD,
static const MODULE(arena_parts) arena_apart = {ARENA_PARTS(ROW_APART)};
#define PLACE_APART &arena_apart
#else
#define PLACE_APART (apart_0 + GUARD)
#endif
#ifdef FRAMES
static uint8_t state_apart[WHOLE_UNITS(STATE_GUARD + STATE_BYTES + STATE_GUARD)] __attribute__((aligned(UNIT))) IN_STATES;
#define PLACES_APART PLACE_APART, state_apart + STATE_GUARD
#else
#define PLACES_APART PLACE_APART
#endif

/* Of run 0, and of the inference that an interrupt made; it made none yet if `was_within` is 0. */
static int first_status APART, status_within APART, was_within APART;
static uint32_t first_crc APART, crc_within APART;

/* Runs the module's functions on run 0's inputs, in places of its own, and returns the last status. */
static int run_apart(void)
{
    const uint8_t *input = tinyfuse_inputs, *lent_input __attribute__((unused)) = tinyfuse_inputs;
    int status = DIRECT(init)(PLACE_APART, SIZE_FOR_INIT);

#ifdef FRAMES
    status = status == MODULE_MACRO(OK) ? DIRECT(reset)(state_apart + STATE_GUARD) : status;
#endif
    if (status != MODULE_MACRO(OK)) {
        return status;
    }
    for (size_t i = 0; i != MODULE_MACRO(INPUTS); ++i) {
        void *const destination = DIRECT(input)(PLACE_APART, i);

        if (destination != NULL) {
            memcpy(destination, input, DIRECT(input_bytes)(i));
        } else {
            lent_input = input;
        }
        input += DIRECT(input_bytes)(i);
    }
#if MODULE_MACRO(FEED_ROWS) && MODULE_MACRO(SLIDE_STEP)
    return DIRECT(feed_rows)(PLACES_APART, (const void *)lent_input, FED_ROWS);
#elif MODULE_MACRO(FEED_ROWS)
    status = DIRECT(begin)(PLACE_APART);
    if (status == MODULE_MACRO(OK)) {
        status = DIRECT(feed_rows)(PLACE_APART, (const void *)lent_input, FED_ROWS);
    }
    return status == MODULE_MACRO(OK) ? DIRECT(finish)(PLACE_APART) : status;
#elif MODULE_MACRO(SLIDE_STEP)
    return DIRECT(slide)(PLACES_APART, (const void *)lent_input);
#else
    return DIRECT(run)(PLACES_APART);
#endif
}

static void infer_within(void)
{
#define FILL_APART(n, size) memset(apart_##n + GUARD, 0xA5, size);
    ARENA_PARTS(FILL_APART)
    SET_COPIES_APART(1);
    status_within = run_apart();
    SET_COPIES_APART(0);
    crc_within = 0xFFFFFFFFu;
    for (size_t i = 0; i < MODULE_MACRO(OUTPUTS); ++i) {
        const uint8_t *const bytes = DIRECT(output)(PLACE_APART, i);
        const size_t length = DIRECT(output_bytes)(i);

        for (size_t at = 0; at < length; ++at) {
            crc_within = crc_of(crc_within, status_within == MODULE_MACRO(OK) ? bytes[at] : 0u);
        }
    }
    was_within = 1;
}

/* Number of the interrupt that makes an inference: about 0.618 * run modulo 1 of a run's ticks are then over. */
static uint32_t turn_within(int run, int64_t ticks)
{
    const int64_t at = ticks == NOT_MEASURED ? 0 : ticks / 1000 * ((int64_t)run * 618 % 1000) / 1000;
    uint32_t turn = 1;

    while ((int64_t)turn * (turn + 6) / 2 < at) {
        ++turn;
    }
    return turn;
}

static void check_within(int run)
{
    if (was_within && (status_within != first_status || crc_within != first_crc)) {
        put_field("within ", run);
        put_field(" ", status_within);
        end_line();
    }
    was_within = 0;
}

/* Notes what run 0 gave, of which `crc` is the checksum. */
static void note_first(int status)
{
    first_status = status;
    first_crc = crc;
    was_within = 0;
}
#else
#define infer_within NULL

static uint32_t turn_within(int run, int64_t ticks)
{
    (void)run;
    (void)ticks;
    return 0;
}

static void check_within(int run)
{
    (void)run;
}

static void note_first(int status)
{
    (void)status;
}
#endif

/* --- runs ------------------------------------------------------------------------------------- */

#ifdef AWAITS
#define NO_RESULT MODULE_MACRO(NO_RESULT_YET)
#else
#define NO_RESULT MODULE_MACRO(OK)
#endif

static void put_changed(int run, const char *name, uintptr_t address)
{
    put_field("changed ", run);
    put_char(' ');
    put_text(name);
    if (address != 0u) {
        put_field(", arena[", (int64_t)address - (int64_t)(uintptr_t)(parts[0].memory + GUARD));
        put_char(']');
    }
    end_line();
}

/* Tells whether interrupts overwrite the stack's unused memory in a run that isn't timed, instead of measuring it. */
static int is_interrupted(int run)
{
#if !defined(CHECKED_CALLS)
    (void)run;
    return 0;
#elif MODULE_MACRO(SLIDE_STEP)
    return run % 10 == 5;
#else
    return run % 4 == 3;
#endif
}

/* Runs one inference, and measures its stack or interrupts it. The module has no static variables, so none may
   change. An inference takes about so many thousandths of ticks. */
static int run_checked(int run, RUN_PARAMETERS, int64_t ticks, int64_t *stack)
{
    enum { MOST_LATE = 2 }; /* ticks within which an emulator delivers an interrupt */
    const uint32_t before = port_sum_of_variables(), system = port_sum_of_system();
    int64_t stack_of_run = *stack;
    uint32_t late = 0;
    const int status = is_interrupted(run) ? port_run_interrupted(checked_inference, RUN_ARGUMENTS, infer_within,
                                                                  turn_within(run, ticks), &late)
                                           : port_run_for_stack(checked_inference, RUN_ARGUMENTS, &stack_of_run);

    if (port_sum_of_variables() != before) {
        put_changed(run, "a static variable", 0);
    }
    if (port_sum_of_system() != system) {
        put_changed(run, "a system register", 0);
    }
    check_within(run);
    if (late > MOST_LATE) {
        put_field("masked ", run);
        put_field(" ", late);
        end_line();
    }
    *stack = stack_of_run > *stack ? stack_of_run : *stack;
    return status;
}

/* Copies a run's inputs to their places, and returns the next run's inputs. */
static const uint8_t *load_inputs(int run, const uint8_t *input)
{
    (void)run;
    for (size_t i = 0; i != MODULE_MACRO(INPUTS); ++i) {
        void *destination = MODULE(input)(arena, i);

#if MODULE_MACRO(FEED_ROWS)
        if (destination == NULL) {
            this_run = run;
            fed_rows = input;
            fed_index = i;
            input += MODULE(input_bytes)(i);
            continue;
        }
#elif MODULE_MACRO(SLIDE_STEP)
        if (destination == NULL) {
            new_frames = input;
            frame_bytes = MODULE(input_bytes)(i);
            input += MODULE(input_bytes)(i);
            continue;
        }
#endif
        check_inside("an input lies outside of the arena, offset ", destination, MODULE(input_bytes)(i));
        memcpy(destination, input, MODULE(input_bytes)(i));
        input += MODULE(input_bytes)(i);
    }
    return input;
}

#ifdef SPREAD
/* Runs all inputs once more, for the least and the most ticks of an inference, and the most of a step. */
static void put_spread(void)
{
    int64_t least = NOT_MEASURED, most = NOT_MEASURED, longest_step = NOT_MEASURED;
    const uint8_t *input = tinyfuse_inputs;

    for (int run = 0; run < RUNS; ++run) {
        const uint8_t *next;
        int64_t ticks;
        int status;

#if MODULE_MACRO(CURSOR_ROWS)
#ifdef FRAMES
        enter_state(run);
#endif
        (void)load_inputs(1, input);
        (void)in_steps(RUN_ARGUMENTS, &longest_step);
#endif
#ifdef FRAMES
        enter_state(run);
#endif
        begin_copies(1);
        next = load_inputs(1, input); /* as in run 1, a module that is fed gets all rows at once */
        status = port_run_for_ticks(whole_inference, RUN_ARGUMENTS, &ticks);
#ifdef FRAMES
        leave_state(run);
#endif
        input = next;
        if (status != MODULE_MACRO(OK) || ticks == NOT_MEASURED) {
            continue;
        }
        least = least == NOT_MEASURED || ticks < least ? ticks : least;
        most = ticks > most ? ticks : most;
    }
    put_measured("spread least=", least);
    put_measured(" most=", most);
    put_measured(" step=", longest_step);
    end_line();
}
#endif

int main(void)
{
    const uint8_t *input = tinyfuse_inputs;
    int64_t ticks = NOT_MEASURED, stack = NOT_MEASURED;
#if MODULE_MACRO(SLIDE_STEP)
    int64_t sum = 0, count = 0;
#endif
    size_t input_bytes = 0;
    int timed = 1; /* the run whose instructions are counted */
    uintptr_t address;
    const char *changed;

    /* a symbol for profile/image.py: offset of the arena in `memory_0` */
    __asm volatile(".globl guard_bytes\n\t.set guard_bytes, %c0" : : "i"(GUARD));
#if MODULE_MACRO(WEIGHTS_BYTES)
    if (check_unbound != NULL) {
        check_unbound(arena, FIRST_STATE);
    }
    if (MODULE(bind)(tinyfuse_blob, (size_t)(tinyfuse_blob_end - tinyfuse_blob)) != MODULE_MACRO(OK)) {
        fail("bind refused the weights, bytes: ", tinyfuse_blob_end - tinyfuse_blob);
    }
#endif
    port_watch();
    if (check_interface != NULL) {
        check_weights(tinyfuse_weights);
        check_interface(arena, FIRST_STATE);
    }
    for (size_t i = 0; i != MODULE_MACRO(INPUTS); ++i) {
        input_bytes += MODULE(input_bytes)(i);
    }
    if (input_bytes * RUNS != (size_t)(tinyfuse_inputs_end - tinyfuse_inputs)) {
        fail("the module wants other input bytes a run than were given: ", (int64_t)input_bytes);
    }
    for (int run = 0; run < RUNS; ++run) {
        int status, none = 0;

        for (const struct part *part = parts; part < &parts[PARTS]; ++part) {
            paint(run, part->memory, 0, GUARD);
            paint(run, part->memory, part->after, part->end);
            port_forbid(part->memory, GUARD);
            port_forbid(&part->memory[part->after], part->end - part->after);
            if (run % 2 == 0 || run % 4 == 3) {
                paint(run, part->memory, GUARD, part->after);
            }
        }
        if (run % 2 == 0) {
            status = MODULE(init)(arena, SIZE_FOR_INIT);
            if (status != MODULE_MACRO(OK)) {
                fail("init returned ", status);
            }
        }
#if MODULE_MACRO(CURSOR_ROWS)
        if (run % 4 == 2) {
            (void)load_inputs(run, input);
#ifdef FRAMES
            enter_state(run);
#endif
            leave_inference(run);
        }
#endif
        input = load_inputs(run, input);
        begin_copies(run);
#ifdef FRAMES
        enter_state(run);
#endif
#if MODULE_MACRO(SLIDE_STEP)
        (void)timed;
        if (is_timed(run)) {
            int64_t of_run;

            status = port_run_for_ticks(whole_inference, RUN_ARGUMENTS, &of_run);
            if (status == MODULE_MACRO(OK) && of_run != NOT_MEASURED) {
                ticks = of_run > ticks ? of_run : ticks;
                sum += of_run;
                ++count;
            }
        } else {
            status = run_checked(run, RUN_ARGUMENTS, ticks, &stack);
        }
#else
        if (run == timed) {
            status = port_run_for_ticks(whole_inference, RUN_ARGUMENTS, &ticks);
        } else {
            status = run_checked(run, RUN_ARGUMENTS, ticks, &stack);
        }
#endif
        end_copies();
#ifdef AWAITS
        if (status == MODULE_MACRO(NO_RESULT_YET)) {
#if !MODULE_MACRO(SLIDE_STEP)
            if (run == timed) { /* without a result; time the next run instead */
                ticks = NOT_MEASURED;
                ++timed;
            }
#endif
            none = 1;
            status = MODULE_MACRO(OK);
        }
#endif
        if (status != MODULE_MACRO(OK)) {
            fail("run returned ", status);
        }
#ifdef FRAMES
        leave_state(run);
#endif
        for (const struct part *part = parts; part < &parts[PARTS]; ++part) {
            check_guard(run, "guard ", " before ", part->memory, 0, GUARD, GUARD);
            check_guard(run, "guard ", " after ", part->memory, part->after, part->end, GUARD);
        }
        for (size_t i = 0; i < MODULE_MACRO(OUTPUTS); ++i) {
            check_inside("an output lies outside of the arena, offset ", MODULE(output)(arena, i),
                         MODULE(output_bytes)(i));
            write_output(run, i, none);
        }
        if (run == 0) {
            note_first(none ? NO_RESULT : MODULE_MACRO(OK));
        }
    }
#ifdef SPREAD
    put_spread();
#endif
    changed = port_changed(&address);
    if (changed != NULL) {
        put_changed(-1, changed, address);
    }
    if (check_refusals != NULL) {
        check_refusals(arena, FIRST_STATE);
    }
    put_field("result runs=", RUNS);
    put_field(" bytes=", bytes_written);
    put_text(" crc=");
    put_hex(~crc, 8);
    put_measured(" ticks=", ticks);
    put_measured(" stack=", stack);
#if MODULE_MACRO(SLIDE_STEP)
    put_measured(" mean=", count > 0 ? (sum + count / 2) / count : NOT_MEASURED);
#endif
    end_line();
    port_exit(0);
}
