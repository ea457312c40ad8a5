/* Listens to a recording as to a microphone: 20 ms of samples a step, one score a class.

   Every step is printed with its scores, of 0 to 255, and what is heard when it begins. The program ends with status 0
   when every step ran, whatever it heard; run.py compares the scores with the interpreter's. */
#include <stdint.h>
#include <stdio.h>

#include "doorbell.h"
#include "recording.h"

enum {
    MILLISECONDS = 20, /* that a step brings, samples of 8 kHz */
    CLASSES = DOORBELL_OUTPUT_SCORES_ELEMENTS,
    SURE = 3 /* steps in a row whose best class is the same: it is heard */
};

static const char *const names[CLASSES] = {"nothing", "a doorbell", "an alarm"};

static DOORBELL_DEFINE_ARENA(arena);
static DOORBELL_DEFINE_STATE(state);

/* What a microphone would fill. */
static int16_t samples[DOORBELL_INPUT_SAMPLES_ELEMENTS];

/* The next samples of the recording; 0 where it ends. */
static int microphone(void)
{
    return recording_next(samples, DOORBELL_INPUT_SAMPLES_ELEMENTS);
}

/* Prints a class when it is the best one of some steps in a row, and another than before. */
static void tell(int step, size_t best)
{
    static size_t last, heard;
    static int in_a_row;

    in_a_row = best == last ? in_a_row + 1 : 1;
    last = best;
    if (in_a_row == SURE && best != heard) {
        printf("%d ms: %s\n", (step + 1) * MILLISECONDS, names[best]);
        heard = best;
    }
}

int main(void)
{
    int status = doorbell_init(arena, sizeof arena);

    if (status == DOORBELL_OK) {
        status = doorbell_reset(state);
    }
    for (int step = 0; status == DOORBELL_OK && microphone(); ++step) {
        status = doorbell_slide(arena, state, samples);
        if (status == DOORBELL_OK) {
            const int8_t *scores = doorbell_output_scores(arena);

            printf("step %d", step);
            for (int i = 0; i < CLASSES; ++i) {
                printf(" %d", scores[i] + 128);
            }
            printf("\n");
            tell(step, doorbell_argmax_scores(scores));
        } else if (status == DOORBELL_NO_RESULT_YET) {
            status = DOORBELL_OK; /* the first second */
        }
    }
    if (status != DOORBELL_OK) {
        printf("doorbell: %s\n", doorbell_strerror(status));
        return 1;
    }
    printf("arena %u bytes, state %u bytes\n", (unsigned)sizeof arena, (unsigned)sizeof state);
    return 0;
}
