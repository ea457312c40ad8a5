/* Listens and reads at once: a round robin of two tasks, each of which returns after a bounded piece of work.

   Every 20 ms an interrupt brings samples. The doorbell's task takes them, one NAME_slide a turn, and has to be done
   with them when the next ones are there, or they are lost. The digits' task reads one image after the other in the time
   that is left: a row of an image or one NAME_step a turn; with WHOLE a whole image, by NAME_run. What both find is
   printed at the end, for printing takes long; run.py compares it with the interpreter's. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "digits.h"
#include "doorbell.h"
#include "memory.h"
#include "recording.h"
#include "test_images.h"
#include "upscale.h"

#ifndef WHOLE
#define WHOLE 0
#endif

enum {
    PERIOD = 20000, /* microseconds of sound a step */
    SAMPLES = DOORBELL_INPUT_SAMPLES_ELEMENTS,
    CLASSES = DOORBELL_OUTPUT_SCORES_ELEMENTS,
    DIGITS = 10,
    STEPS = 400 /* of which results are kept: 8 s */
};

/* --- the microphone ------------------------------------------------------------------------- */

/* A DMA fills one half while the firmware has the other. */
static int16_t samples[2][SAMPLES];
static volatile unsigned filled; /* how many halves were, one after the other */
static volatile unsigned taken;  /* with how many the doorbell is done */
static volatile unsigned lost;
static volatile int silent; /* the recording has ended */

void clock_interrupt(void)
{
    if (silent) {
        return;
    }
    if (filled != taken) {
        ++lost; /* the DMA goes on in the half that still waits */
        taken = filled;
    }
    if (recording_next(samples[filled % 2u], SAMPLES)) {
        ++filled;
    } else {
        silent = 1;
    }
}

/* --- the doorbell's task -------------------------------------------------------------------- */

static DOORBELL_DEFINE_STATE(state);
static int8_t heard[STEPS][CLASSES];
static int first_heard = -1, steps;
static uint32_t longest_wait; /* from the last sample of a half to the beginning of its step */

/* One step, where its samples are there. DOORBELL_OK or an error. */
static int listen(void)
{
    const unsigned half = taken;

    if (filled == half || steps == STEPS) {
        return DOORBELL_OK;
    }
    const uint32_t wait = clock_now() - (half + 1u) * PERIOD;
    void *const arena = memory_sound();
    int status = doorbell_slide(arena, state, samples[half % 2u]);

    longest_wait = wait > longest_wait ? wait : longest_wait;
    if (status == DOORBELL_OK) {
        memcpy(heard[steps], doorbell_output_scores(arena), CLASSES);
        first_heard = first_heard < 0 ? steps : first_heard;
    } else if (status == DOORBELL_NO_RESULT_YET) {
        status = DOORBELL_OK;
    }
    memory_sound_done();
    ++steps;
    if (taken == half) { /* else the samples were lost while it took them */
        taken = half + 1u;
    }
    return status;
}

/* --- the digits' task ----------------------------------------------------------------------- */

static int8_t scores_read[TEST_IMAGE_COUNT][DIGITS];
static unsigned images; /* that were read */

/* A row of the image, or a step of the inference; with WHOLE all of both. DIGITS_OK or an error. */
static int look(void)
{
    static int row;
    static digits_cursor cursor = DIGITS_FIRST_STEP;

    if (images == TEST_IMAGE_COUNT) {
        return DIGITS_OK;
    }
    void *const arena = memory_digits();

    while (row < IMAGE_SIDE) {
        upscale_row(test_images[images], row, (int8_t *)digits_input(arena, 0) + row * IMAGE_SIDE);
        ++row;
        if (!WHOLE) {
            return DIGITS_OK;
        }
    }
    const int status = WHOLE ? digits_run(arena) : digits_step(arena, &cursor);

    if (status == DIGITS_OK) {
        memcpy(scores_read[images++], digits_output(arena, 0), DIGITS);
        row = 0;
    }
    return status == DIGITS_MORE_STEPS ? DIGITS_OK : status;
}

/* --- the round robin ------------------------------------------------------------------------ */

static struct {
    int (*turn)(void); /* 0 or an error */
    const char *(*error)(int status);
    const char *name;
    uint32_t longest; /* turn, microseconds */
} tasks[] = {{listen, doorbell_strerror, "doorbell", 0}, {look, digits_strerror, "digits", 0}};

enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* Turns, until the recording is over and heard. 0, or 1 where a task fails. */
static int go_round(void)
{
    while (!silent || filled != taken) {
        for (int t = 0; t < TASKS; ++t) {
            const uint32_t start = clock_now();
            const int status = tasks[t].turn();
            const uint32_t took = clock_now() - start;

            tasks[t].longest = took > tasks[t].longest ? took : tasks[t].longest;
            if (status != 0) {
                printf("%s: %s\n", tasks[t].name, tasks[t].error(status));
                return 1;
            }
        }
    }
    return 0;
}

static void print_scores(const char *name, int number, const int8_t *scores, int count)
{
    printf("%s %d", name, number);
    for (int i = 0; i < count; ++i) {
        printf(" %d", scores[i]);
    }
    printf("\n");
}

int main(void)
{
    if (doorbell_reset(state) != DOORBELL_OK) {
        return 1;
    }
    clock_start(PERIOD);
    if (go_round() != 0) {
        return 1;
    }
    for (int i = first_heard; i >= 0 && i < steps; ++i) {
        print_scores("step", i, heard[i], CLASSES);
    }
    for (unsigned i = 0; i < images; ++i) {
        print_scores("image", (int)i, scores_read[i], DIGITS);
    }
    printf("arenas %u state %u\n", (unsigned)memory_bytes(), (unsigned)sizeof state);
    printf("wait %u lost %u faults %u\n", (unsigned)longest_wait, lost, memory_faults());
    for (int t = 0; t < TASKS; ++t) {
        printf("turn %s %u\n", tasks[t].name, (unsigned)tasks[t].longest);
    }
    return 0;
}
